"""Fetch through a node: one leader, several, long polls, errors, and what stays in memory."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest

from ringleader.coordinator.relay import fetch as relayed_fetch
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchResponse,
    FetchResponseLeaderIdAndEpoch,
    ListOffsetsResponse,
)
from tests.support.relayed import relaying
from tests.support.served import Client, connected, until
from tests.support.two_brokers import fetched, two_brokers

NEWEST = 12


def ask(*partitions: int, offset: int = 0, wait_ms: int = 20_000, **more: Any) -> FetchRequest:
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=1,
        session_epoch=more.pop("session_epoch", 0),
        topics=[
            FetchRequestFetchTopic(
                "orders",
                partitions=[
                    FetchRequestFetchPartition(one, 5, offset, partition_max_bytes=1_000_000)
                    for one in partitions
                ],
            )
        ],
        **more,
    )


def by_partition(response: FetchResponse) -> dict[int, Any]:
    [topic] = response.responses
    assert topic.topic == "orders"
    return {one.partition_index: one for one in topic.partitions}


class Held:
    """A broker that answers what waits there when the test says so."""

    def __init__(self) -> None:
        self.requests: list[FetchRequest] = []
        self.records: asyncio.Queue[bytes] = asyncio.Queue()

    async def fetch(self, request: FetchRequest, version: int, correlation_id: int) -> FetchResponse:
        self.requests.append(request)
        if not request.max_wait_ms:
            return fetched(request)
        return fetched(request, await self.records.get())


@pytest.mark.parametrize("version", range(4, NEWEST + 1))
@pytest.mark.parametrize("size", [0, 100, 70_000, 3_000_000])
async def test_records_of_one_leader_come_as_they_are(version: int, size: int) -> None:
    records = os.urandom(size)
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        cluster.on(1, lambda request, *_: fetched(request, records))
        async with connected("127.0.0.1", node.port) as client:
            for _ in range(2):
                answer = await client.call(
                    ask(0, 2) if version >= 7 else ask(0, 2, session_epoch=-1), version
                )
                found = by_partition(answer)
                assert found.keys() == {0, 2}
                assert all(one.records == records for one in found.values())
                assert found[2].high_watermark == 102
                assert answer.session_id == 0
        [(sent, sent_version), *_] = [
            (one, version) for one, version in cluster.brokers[1].requests if isinstance(one, FetchRequest)
        ]
        assert sent_version == version
        assert (sent.session_epoch, sent.rack_id, sent.max_wait_ms) == (-1, "", 20_000)
        assert node.relay.arrivals.taken_bytes == 0


async def test_a_session_is_refused() -> None:
    async with (
        two_brokers() as cluster,
        relaying(cluster.bootstrap) as [node],
        connected("127.0.0.1", node.port) as client,
    ):
        answer = await client.call(ask(0, session_epoch=3), NEWEST)
        assert answer.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


async def test_brokers_are_not_named() -> None:
    leader = FetchResponseLeaderIdAndEpoch(2, 6)

    def answer(request: FetchRequest, *_: int) -> FetchResponse:
        return fetched(request, b"r", preferred_read_replica=2, current_leader=leader)

    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        cluster.on(1, answer)
        async with connected("127.0.0.1", node.port) as client:
            for query in (ask(0), ask(0, 1)):
                for one in by_partition(await client.call(query, NEWEST)).values():
                    assert one.preferred_read_replica == -1
                    assert one.current_leader.leader_id == -1
                    assert one.records == b"r"


async def test_what_waits_at_one_broker_is_in_nobody_elses_way() -> None:
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        held = Held()
        cluster.on(1, held.fetch)
        cluster.on(2, lambda *_: ListOffsetsResponse())
        port = node.port
        async with connected("127.0.0.1", port) as waiting, connected("127.0.0.1", port) as other:
            waiting.send(ask(0), NEWEST)
            await until(lambda: len(held.requests) == 1)
            other.send(ask(2), NEWEST)
            await until(lambda: len(held.requests) == 2)
            held.records.put_nowait(b"first")
            held.records.put_nowait(b"second")
            _, first = await waiting.receive(FetchRequest, NEWEST)
            _, second = await other.receive(FetchRequest, NEWEST)
            assert by_partition(first)[0].records == b"first"
            assert by_partition(second)[2].records == b"second"


async def test_what_a_client_asks_for_no_more_is_forgotten() -> None:
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        waits_ms: list[int] = []

        def fetch(request: FetchRequest, *_: int) -> FetchResponse:
            waits_ms.append(request.max_wait_ms)
            return fetched(request, b"r")

        cluster.on(1, fetch)
        async with connected("127.0.0.1", node.port) as client:
            for partitions in ((0, 1), (0, 1), (2, 3), (0, 1)):
                answer = await client.call(ask(*partitions), NEWEST)
                assert by_partition(answer).keys() == set(partitions)
        # A partition that is new is answered at once.
        assert [any(waits_ms[start : start + 2]) for start in (0, 2, 4, 6)] == [False, True, False, False]


async def test_a_client_that_hangs_up_leaves_nothing_at_the_brokers() -> None:
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        held = Held()
        cluster.on(1, held.fetch)
        before = [len(broker.writers) for broker in cluster.brokers.values()]
        async with connected("127.0.0.1", node.port) as client:
            client.send(ask(0, 1), NEWEST)
            await until(lambda: len(held.requests) == 4)  # each broker: what is there, then what comes
        held.records.put_nowait(b"for nobody")
        held.records.put_nowait(b"for nobody")
        await until(lambda: [len(broker.writers) for broker in cluster.brokers.values()] == before)
        await until(lambda: not node.server.connections)
        assert node.server.held_bytes == 0
        assert node.relay.arrivals.taken_bytes == 0


# ---- several leaders ----


async def test_records_of_one_leader_do_not_wait_for_another() -> None:
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        one, two = Held(), Held()
        cluster.on(1, one.fetch, two.fetch)
        async with connected("127.0.0.1", node.port) as client:
            client.send(ask(0, 1, 2), NEWEST)
            await until(lambda: len(one.requests) == len(two.requests) == 2)
            one.records.put_nowait(b"here")
            _, answer = await client.receive(FetchRequest, NEWEST)
            found = by_partition(answer)
            assert [found[0].records, found[1].records, found[2].records] == [b"here", b"", b"here"]
            assert [found[index].high_watermark for index in range(3)] == [100, 101, 102]

            # The fetch that waits at the second broker goes on waiting; its records are in the next answer.
            two.records.put_nowait(b"later" * 20_000)
            again = ask(0, 1, 2)
            for entry in again.topics[0].partitions:
                entry.fetch_offset = 10 if entry.partition != 1 else 0
            client.send(again, NEWEST)
            _, answer = await client.receive(FetchRequest, NEWEST)
            found = by_partition(answer)
            assert found[1].records == b"later" * 20_000
            assert found[0].records == b""
            assert len(two.requests) == 2


@pytest.mark.parametrize(("max_bytes", "each"), [(1_000, 500), (1, 1), (0, 1)])
async def test_each_of_several_leaders_is_asked_for_its_share(max_bytes: int, each: int) -> None:
    requests: list[FetchRequest] = []

    def fetch(request: FetchRequest, *_: Any) -> FetchResponse:
        requests.append(request)
        return fetched(request, b"records")

    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        cluster.on(1, fetch)
        async with connected("127.0.0.1", node.port) as client:
            found = by_partition(await client.call(ask(0, 1, max_bytes=max_bytes), NEWEST))
    assert found.keys() == {0, 1}
    assert {one.max_bytes for one in requests} == {each}


async def test_several_leaders_together_wait_for_no_less_than_the_client() -> None:
    requests: list[FetchRequest] = []

    def fetch(request: FetchRequest, *_: Any) -> FetchResponse:
        requests.append(request)
        return fetched(request, b"records")

    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        cluster.on(1, fetch)
        async with connected("127.0.0.1", node.port) as client:
            request = ask(0, 1)
            request.min_bytes = 5
            await client.call(request, NEWEST)
    assert {one.min_bytes for one in requests} == {3}


async def answered_late(client: Client, one: Held, two: Held, again: FetchRequest, records: bytes) -> None:
    """The second broker owes an answer while the first one gives its; the client asks `again`, and gets these
    records of the second."""
    client.send(ask(0, 1), NEWEST)
    await until(lambda: len(one.requests) == len(two.requests) == 2)
    one.records.put_nowait(b"here")
    await client.receive(FetchRequest, NEWEST)
    client.send(again, NEWEST)
    await until(lambda: len(two.requests) == 3)
    two.records.put_nowait(b"to nobody")
    two.records.put_nowait(records)
    _, answer = await client.receive(FetchRequest, NEWEST)
    assert by_partition(answer)[1].records == records


@pytest.mark.parametrize(("field", "value"), [("fetch_offset", 50), ("current_leader_epoch", 6)])
async def test_another_question_takes_the_place_of_one_that_waits(field: str, value: int) -> None:
    again = ask(0, 1)
    for entry in again.topics[0].partitions:
        setattr(entry, field, value)
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        one, two = Held(), Held()
        cluster.on(1, one.fetch, two.fetch)
        async with connected("127.0.0.1", node.port) as client:
            await answered_late(client, one, two, again, b"of that")
            assert getattr(two.requests[-1].topics[0].partitions[0], field) == value


async def test_another_isolation_level_takes_the_place_of_what_waits() -> None:
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        one, two = Held(), Held()
        cluster.on(1, one.fetch, two.fetch)
        async with connected("127.0.0.1", node.port) as client:
            await answered_late(client, one, two, ask(0, 1, isolation_level=1), b"of that")
            assert two.requests[-1].isolation_level == 1


async def test_a_broker_that_owes_an_answer_for_too_long_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(relayed_fetch, "LEFT_S", -1_000.0)
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        one, two = Held(), Held()
        cluster.on(1, one.fetch, two.fetch)
        async with connected("127.0.0.1", node.port) as client:
            await answered_late(client, one, two, ask(0, 1), b"at last")


async def test_nothing_comes_of_several_leaders_in_time() -> None:
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:

        async def wait(request: FetchRequest, *_: int) -> FetchResponse:
            await asyncio.sleep(request.max_wait_ms / 1000)
            return fetched(request)

        cluster.on(1, wait)
        async with connected("127.0.0.1", node.port) as client:
            now_s = asyncio.get_running_loop().time
            begun_s = now_s()
            answer = await client.call(ask(0, 1, wait_ms=200), NEWEST)
            assert now_s() - begun_s >= 0.2
            assert [one.high_watermark for _, one in sorted(by_partition(answer).items())] == [100, 101]


# ---- leaders move ----


async def test_a_leader_that_moved_is_found_again() -> None:
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        cluster.on(
            1, lambda request, *_: fetched(request, error_code=6), lambda request, *_: fetched(request, b"r")
        )
        async with connected("127.0.0.1", node.port) as client:
            answer = await client.call(ask(0), NEWEST)
            assert by_partition(answer)[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            cluster.leaders["orders"][0] = 2
            answer = await client.call(ask(0), NEWEST)
            assert by_partition(answer)[0].records == b"r"


@pytest.mark.parametrize("partitions", [(1,), (0, 1)])
async def test_the_next_leader_of_a_broker_that_is_gone_is_found(partitions: tuple[int, ...]) -> None:
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        cluster.on(1, lambda request, *_: fetched(request, b"r"))
        async with connected("127.0.0.1", node.port) as client:
            await client.call(ask(*partitions), NEWEST)
            cluster.brokers[2].hang_up()
            await cluster.brokers[2].__aexit__(None, None, None)
            cluster.leaders["orders"] = [1] * 4
            found = by_partition(await client.call(ask(*partitions), NEWEST))
            assert found[1].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            found = by_partition(await client.call(ask(*partitions), NEWEST))
            assert {one.records for one in found.values()} == {b"r"}


@pytest.mark.parametrize("version", [10, 11, NEWEST])
@pytest.mark.parametrize("partitions", [(0,), (0, 1)])
async def test_an_offset_is_out_of_range_when_the_leader_says_so(
    version: int, partitions: tuple[int, ...]
) -> None:
    """A follower that lags says it, too, from version 11 on; the node then looks for the leader again, and
    its client stays where it is."""
    out, moved = ErrorCode.OFFSET_OUT_OF_RANGE, ErrorCode.NOT_LEADER_OR_FOLLOWER
    versions = []

    def follower(request: FetchRequest, version: int, _: int) -> FetchResponse:
        versions.append(version)
        return fetched(request, error_code=out if version > 10 else moved)

    def leader(request: FetchRequest, *_: int) -> FetchResponse:
        beyond = request.topics[0].partitions[0].fetch_offset > 100
        return fetched(request, error_code=out) if beyond else fetched(request, b"r")

    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        cluster.on(1, follower, leader)
        async with connected("127.0.0.1", node.port) as client:
            question = ask(*partitions, offset=50)
            if version == NEWEST:
                question.topics[0].partitions[0].last_fetched_epoch = 4
            found = by_partition(await client.call(question, version))
            assert found[0].error_code == moved
            assert versions == ([10] if version == 10 else [version, 10])
            cluster.leaders["orders"][0] = 2
            found = by_partition(await client.call(ask(*partitions, offset=50), version))
            assert [one.records for one in found.values()] == [b"r"] * len(partitions)
            found = by_partition(await client.call(ask(*partitions, offset=101), version))
            assert {one.error_code for one in found.values()} == {out}
    assert node.relay.arrivals.taken_bytes == 0


async def test_partitions_without_a_leader_do_not_keep_the_others_back() -> None:
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        cluster.leaders["orders"][3] = -1
        cluster.on(1, lambda request, *_: fetched(request, b"r"))
        async with connected("127.0.0.1", node.port) as client:
            found = by_partition(await client.call(ask(0, 3, 9), NEWEST))
            assert found[0].records == b"r"
            assert found[3].error_code == ErrorCode.LEADER_NOT_AVAILABLE
            assert found[9].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            cluster.leaders["orders"][3] = 2
            found = by_partition(await client.call(ask(3), NEWEST))
            assert found[3].records == b"r"


async def test_a_broker_that_is_gone_costs_its_partitions_only() -> None:
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        cluster.on(1, lambda request, *_: fetched(request, b"r"))
        async with connected("127.0.0.1", node.port) as client:
            found = by_partition(await client.call(ask(0, 1), NEWEST))
            await cluster.brokers[2].__aexit__(None, None, None)
            found = by_partition(await client.call(ask(0, 1), NEWEST))
            assert found[0].records == b"r"
            found = by_partition(await client.call(ask(1), NEWEST))
            assert found[1].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            async with cluster.brokers[2]:
                found = by_partition(await client.call(ask(1), NEWEST))
                assert found[1].records == b"r"


# ---- memory ----


async def test_answers_arrive_as_far_as_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten clients, each with an answer of 1 MB, and room for three."""
    monkeypatch.setattr("ringleader.coordinator.relay.relay.ARRIVALS_MAX_BYTES", 3_500_000)
    records = os.urandom(1_000_000)
    most = 0
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        arrivals = node.relay.arrivals
        give = arrivals.give

        def watched(count: int) -> None:
            nonlocal most
            most = max(most, arrivals.taken_bytes)
            give(count)

        arrivals.give = watched  # type: ignore[method-assign]
        cluster.on(1, lambda request, *_: fetched(request, records))

        async def fetch() -> None:
            async with connected("127.0.0.1", node.port) as client:
                for _ in range(3):
                    assert by_partition(await client.call(ask(0), NEWEST))[0].records == records

        await asyncio.gather(*(fetch() for _ in range(10)))
        assert 1_000_000 < most < 3_500_000
        assert arrivals.taken_bytes == 0


async def test_an_answer_that_is_cut_off_leaves_its_room_to_the_next_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Room for one: the next answer would wait for ever."""
    monkeypatch.setattr("ringleader.coordinator.relay.relay.ARRIVALS_MAX_BYTES", 1_500_000)
    records = os.urandom(1_000_000)
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        cluster.on(1, lambda *_: (1_000_000).to_bytes(4, "big") + bytes(100_000))
        async with connected("127.0.0.1", node.port) as client:
            client.send(ask(0), NEWEST)
            await until(lambda: node.relay.arrivals.taken_bytes > 1_000_000)
            cluster.on(1, lambda request, *_: fetched(request, records))
            cluster.brokers[1].hang_up()
            await client.receive(FetchRequest, NEWEST)
            assert by_partition(await client.call(ask(0), NEWEST))[0].records == records
        assert node.relay.arrivals.taken_bytes == 0


async def test_an_answer_that_cannot_be_read_is_the_brokers_fault() -> None:
    async with two_brokers() as cluster, relaying(cluster.bootstrap) as [node]:
        cluster.on(1, lambda _request, _version, number: b"\0\0\0\x08" + number.to_bytes(4, "big") + b"\0abc")
        async with connected("127.0.0.1", node.port) as client:
            found = by_partition(await client.call(ask(0), NEWEST))
            assert found[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
