"""The reader of GroupConsumer against brokers that answer as a test says: leaders move, logs shrink."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.requests import Request
from ringleader.clients.errors import CommitFailedError, RequestTimedOutError
from ringleader.clients.fetch.errors import CorruptRecordError, LogTruncatedError, PartitionError
from ringleader.clients.fetch.model import ConsumerSettings
from ringleader.clients.fetch.reader import Reader
from ringleader.clients.model import OffsetAndMetadata, TopicPartition
from ringleader.clients.offsets.consumed import ConsumedOffsets
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    FetchRequest,
    FetchResponse,
    FetchResponsePartitionData,
    ListOffsetsResponse,
    ListOffsetsResponseListOffsetsPartitionResponse,
    ListOffsetsResponseListOffsetsTopicResponse,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderEpochResponseEpochEndOffset,
    OffsetForLeaderEpochResponseOffsetForLeaderTopicResult,
)
from ringleader.protocol.records import Record, build_batch
from tests.support.consuming import PATIENCE_S, until
from tests.support.reader_world import PLACE, World, answer, from_the_start, reader, take
from tests.support.scripted_broker import CLOSE
from tests.support.two_brokers import fetched, two_brokers


async def test_the_leader_moves(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.append(5)
    async with reader(world) as one:
        assert await take(one, 5) == [0, 1, 2, 3, 4]
        world.elect(2)
        world.append(5)
        assert await take(one, 5) == [5, 6, 7, 8, 9]
        assert {node for node, _ in world.fetching} == {1, 2}
    assert "are gone" not in caplog.text, "a log that ends where it was read has lost nothing"


async def test_a_broker_whose_metadata_are_old() -> None:
    """It names the earlier leader with the earlier epoch for a while after the new one was known."""
    world = World()
    world.append(5)
    async with reader(world) as one:
        await take(one, 5)
        world.elect(2)
        world.append(1)
        await take(one, 1)
        world.named_leader, world.epoch = 1, 0
        world.append(3, epoch=1)
        world.trick = lambda node, _partition: (
            answer(FetchResponsePartitionData(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER))
            if node == 1
            else None
        )
        seen = len(world.fetching)
        await until(lambda: len(world.brokers[0].requests) > 4)
        world.epoch = 1
        assert await take(one, 3) == [6, 7, 8]
        assert all(node == 2 for node, _ in world.fetching[seen:])


async def test_a_leader_that_dies() -> None:
    world = World()
    world.append(5)
    async with reader(world) as one:
        await take(one, 5)
        world.trick = lambda node, _partition: CLOSE if node == 1 else None
        world.elect(2)
        world.append(2)
        assert await take(one, 2) == [5, 6]


async def test_a_broker_that_answers_has_no_failures_to_its_account() -> None:
    """The next outage begins with short waits."""
    world, answers = World(), iter([CLOSE] * 3)
    world.append(1)
    world.trick = lambda _node, _partition: next(answers, None)
    async with reader(world) as one:
        await take(one, 1)
        assert one.fetcher.failed_fetches == 3
        assert one.fetcher._backoffs == {}


async def test_a_broker_may_wait_for_records_and_has_its_request_timeout_beside(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world, given_ms, send = World(), set[int](), Cluster.send

    async def note(one: Cluster, node: Any, request: Request, **options: Any) -> Any:
        if request.message is FetchRequest:
            given_ms.add(options["request_timeout_ms"])
        return await send(one, node, request, **options)

    monkeypatch.setattr(Cluster, "send", note)
    world.append(1)
    async with reader(world, request_timeout_ms=5_000, fetch_max_wait_ms=50) as one:
        await take(one, 1)
    assert given_ms == {5_050}


async def test_a_batch_that_needed_much_room_leaves_the_next_none_of_it() -> None:
    world = World()
    async with reader(world) as one:
        one.states[PLACE].floor_bytes = 10**7
        world.append(1)
        await take(one, 1)
        assert one.states[PLACE].floor_bytes == 0


async def test_a_leader_that_dies_before_it_says_where_the_log_begins() -> None:
    """Nobody says that there is another one: it has to be looked for."""
    world = World()
    world.append(2)

    requests = 0

    def dies(*_: Any) -> Any:
        """After some answers that say nothing: by then its leaders are looked up and not asked for again."""
        nonlocal requests
        requests += 1
        if requests < 4:
            part = ListOffsetsResponseListOffsetsPartitionResponse(error_code=ErrorCode.REQUEST_TIMED_OUT)
            topic = ListOffsetsResponseListOffsetsTopicResponse(name="t", partitions=[part])
            return ListOffsetsResponse(topics=[topic])
        if world.leader == 1:
            world.elect(2)
        return CLOSE

    # It is asked before anything is fetched: the answer to a fetch would name the new leader.
    world.brokers[0].handlers[2] = dies
    async with reader(world, metadata_max_age_ms=600_000) as one:
        assert await take(one, 2) == [0, 1]


async def test_a_topic_made_anew_is_known_by_its_id_though_its_leader_epoch_is_lower() -> None:
    world = World()
    world.append(3)
    for node in (2, 1, 2):
        world.elect(node)
    async with reader(world) as one:
        assert await take(one, 3) == [0, 1, 2]
        world.make_anew(5)
        assert await take(one, 5) == [0, 1, 2, 3, 4]


async def test_what_was_processed_of_a_topic_is_no_position_in_the_next_one_of_its_name() -> None:
    """The partition is given up, and a commit of what was processed last arrives after the topic was deleted
    and created again."""
    world = World()
    world.append(5)
    committed: dict[TopicPartition, OffsetAndMetadata] = {PLACE: OffsetAndMetadata(2)}
    async with reader(world, committed) as one:
        assert await take(one, 3) == [2, 3, 4]
        one.suspend([PLACE])
        one.drop([PLACE])
        committed[PLACE] = OffsetAndMetadata(5)
        world.make_anew(8)
        one.add([PLACE])
        one.release([PLACE])
        assert await take(one, 8) == list(range(8))


async def test_a_log_that_was_truncated(caplog: pytest.LogCaptureFixture) -> None:
    world = World()
    world.append(10)
    async with reader(world) as one:
        await take(one, 10)
        world.elect(2, keeps=6)
        world.append(3)
        assert await take(one, 3) == [6, 7, 8]
    assert "truncated below position 10: going on at 6" in caplog.text


async def test_a_log_that_was_truncated_is_an_error_without_a_reset() -> None:
    world = World()
    world.append(10)
    async with reader(world, {PLACE: OffsetAndMetadata(0)}, auto_offset_reset="none") as one:
        await take(one, 10)
        world.elect(2, keeps=6)
        with pytest.raises(LogTruncatedError, match="part at offset 6") as found:
            await take(one, 1)
        assert found.value.end_offset == 6


async def test_records_truncated_before_they_were_read_are_fetched_again() -> None:
    world = World()
    world.append(10)
    async with reader(world) as one:
        assert await take(one, 3) == [0, 1, 2]
        world.elect(2, keeps=6)
        world.append(1)
        await until(lambda: (2, 3) in world.fetching)
        assert await take(one, 4) == [3, 4, 5, 6]


async def test_records_that_were_asked_for_before_the_leader_changed_are_validated_by_their_epoch() -> None:
    world = World()
    world.append(10)
    world.may_answer.clear()
    async with reader(world) as one:
        await until(lambda: world.fetching == [(1, 0)])
        world.elect(2, keeps=6)
        world.append(1)
        looks = len(world.brokers[0].requests)
        await until(lambda: len(world.brokers[0].requests) > looks + 1)
        world.may_answer.set()
        await until(lambda: (2, 0) in world.fetching)
        assert world.validated == [0]
        assert await take(one, 7) == [0, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(("isolation", "lag"), [("read_committed", 0), ("read_uncommitted", 4)])
async def test_lag_counts_what_may_be_read(isolation: str, lag: int) -> None:
    world = World()
    world.append(10)
    world.stable = 6
    async with reader(world, isolation_level=isolation) as one:
        assert await take(one, 6) == [0, 1, 2, 3, 4, 5]
        assert one.states[PLACE].lag == lag


async def test_a_committed_position_is_validated() -> None:
    world = World()
    world.append(10)
    world.elect(2, keeps=6)
    world.append(1)
    async with reader(world, {PLACE: OffsetAndMetadata(9, "", 0)}) as one:
        assert await take(one, 1) == [6]
        assert world.fetching[0] == (2, 6)


@pytest.mark.parametrize("how", ["not served", "refused"])
async def test_a_broker_that_cannot_validate_is_read_on(how: str, caplog: pytest.LogCaptureFixture) -> None:
    """Without OffsetForLeaderEpoch, or one that brokers before 2.3 keep to themselves."""
    world = World()
    part = OffsetForLeaderEpochResponseEpochEndOffset(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    topic = OffsetForLeaderEpochResponseOffsetForLeaderTopicResult(topic="t", partitions=[part])
    refused = OffsetForLeaderEpochResponse(topics=[topic])
    for broker in world.brokers:
        if how == "not served":
            del broker.versions[23]
        else:
            broker.handlers[23] = lambda _request, _version, _id: refused
    world.append(4)
    async with reader(world, {PLACE: OffsetAndMetadata(1, "", 0)}) as one:
        assert await take(one, 3) == [1, 2, 3]
        for node in (2, 1, 2):
            world.elect(node)
            world.append(1)
            await take(one, 1)
    lines = [line for line in caplog.messages if "OffsetForLeaderEpoch" in line]
    assert len(lines) == 2  # one about each broker
    assert "read on without validation" in lines[0]


async def test_a_broker_that_cannot_tell_where_the_log_begins() -> None:
    world = World()
    for broker in world.brokers:
        del broker.versions[2]
    async with reader(world) as one:
        with pytest.raises(PartitionError, match="does not give its offsets: UNSUPPORTED_VERSION"):
            await take(one, 1)


async def test_a_follower_that_is_nearer(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World()
    world.append(5)
    world.preferred = 2
    async with reader(world, client_rack="here") as one:
        assert await take(one, 5) == [0, 1, 2, 3, 4]
        assert world.fetching[:2] == [(1, 0), (2, 0)]
        # The follower cannot any more: back to the leader.
        world.preferred = -1
        world.append(1)
        assert await take(one, 1) == [5]
        assert world.fetching[-1][0] == 1 or (1, 5) in world.fetching


async def test_a_follower_that_dies_is_not_waited_for() -> None:
    """The leader would name another one: so it is asked, and not the dead one until its time is over."""
    world = World()
    world.append(5)
    world.preferred = 2
    async with reader(world, client_rack="here") as one:
        assert await take(one, 5) == [0, 1, 2, 3, 4]
        world.trick = lambda node, _partition: CLOSE if node == 2 else None
        world.preferred = -1
        world.append(2)
        assert await take(one, 2) == [5, 6]


async def test_the_leader_is_asked_from_time_to_time_whether_a_follower_is_still_the_nearest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ringleader.clients.fetch.fetcher.REPLICA_S", 0.1)
    world = World()
    world.append(5)
    world.preferred = 2
    async with reader(world, client_rack="here") as one:
        assert await take(one, 5) == [0, 1, 2, 3, 4]
        await until(lambda: [node for node, _ in world.fetching].count(1) >= 3)
        world.append(1)
        assert await take(one, 1) == [5]


async def test_a_follower_that_lags_is_no_reason_to_begin_again() -> None:
    world = World()
    world.append(5)
    world.preferred = 2

    def lags(node: int, partition: Any) -> Any:
        if node != 2 or partition.fetch_offset < 5:
            return None
        world.preferred = -1
        return answer(FetchResponsePartitionData(error_code=ErrorCode.OFFSET_OUT_OF_RANGE))

    world.trick = lags
    async with reader(world, client_rack="here") as one:
        assert await take(one, 5) == [0, 1, 2, 3, 4]
        world.append(1)
        assert await take(one, 1) == [5]


async def test_a_batch_that_is_cut_off_is_asked_for_with_more_room() -> None:
    world = World()
    world.append(1)
    sizes: list[int] = []

    def cut(_node: int, partition: Any) -> Any:
        sizes.append(partition.partition_max_bytes)
        if partition.fetch_offset:
            return None
        records = world.log[0][: partition.partition_max_bytes]
        return answer(FetchResponsePartitionData(high_watermark=1, records=records))

    world.trick = cut
    async with reader(world, max_partition_fetch_bytes=20) as one:
        assert await take(one, 1) == [0]
    assert sizes[:3] == [20, 40, 80]


async def test_a_corrupt_batch_is_told_once_the_good_ones_are_out() -> None:
    world = World()
    world.append(5)
    good = world.log[2]
    world.log[2] = good[:-1] + bytes([good[-1] ^ 1])
    async with reader(world) as one:
        assert await take(one, 2) == [0, 1]
        with pytest.raises(CorruptRecordError, match="t-0 at offset 2: checksum") as found:
            await take(one, 1)
        with pytest.raises(CorruptRecordError):
            await take(one, 1)
        one.seek(PLACE, found.value.next_offset)
        assert await take(one, 2) == [3, 4]


async def test_a_partition_that_got_records_is_asked_for_behind_the_others() -> None:
    orders: list[list[int]] = []
    again = asyncio.Event()

    async def fetch(request: FetchRequest, _version: int, _id: int) -> FetchResponse:
        orders.append([one.partition for topic in request.topics for one in topic.partitions])
        if len(orders) > 1:
            again.set()
            await asyncio.Event().wait()
        response = fetched(request)
        for part in response.responses[0].partitions:
            if part.partition_index == 1:
                part.records = build_batch([Record(0, 1_000, None, b"x")])
        return response

    places = [("t", partition) for partition in range(3)]

    async with two_brokers() as cluster:
        cluster.leaders = {"t": [1, 1, 1]}
        cluster.on(1, fetch)
        one = Reader(Cluster(cluster.bootstrap), ConsumerSettings(), from_the_start)
        one.start()
        try:
            one.add(places)
            for place in places:
                one.pause(place)
            one.release(places)
            async with asyncio.timeout(PATIENCE_S):
                while None in [one.position_of(place) for place in places]:
                    await one.moved()
                for place in places:
                    one.resume(place)
                await again.wait()
        finally:
            await one.close()
    assert orders == [[0, 1, 2], [0, 2, 1]]


async def test_an_answer_without_the_partition_is_asked_again() -> None:
    world = World()
    world.append(1)
    left = [FetchResponse(), answer(FetchResponsePartitionData(partition_index=9))]
    world.trick = lambda _node, _partition: left.pop() if left else None
    async with reader(world) as one:
        assert await take(one, 1) == [0]


class Late(World):
    """No record is as late as any time that is asked for, and one comes after each lookup."""

    def list_offsets(self, request: Any, version: int, number: int) -> ListOffsetsResponse:
        response = super().list_offsets(request, version, number)
        if request.topics[0].partitions[0].timestamp >= 0:
            response.topics[0].partitions[0].offset = -1
        self.append()
        return response


async def test_a_record_that_comes_between_two_lookups_is_not_passed() -> None:
    world = Late()
    world.append(10)
    async with reader(world, auto_offset_reset="by_duration:PT1H") as one:
        assert await take(one, 1) == [10]


async def test_a_commit_that_is_repeated_has_one_deadline() -> None:
    """Rebalances come faster than commits, and the partition stays through all of them."""
    consumed, times_s = ConsumedOffsets(), []

    class Crossed:
        """In the place of a member."""

        async def commit(self, _offsets: object, *, generation: int, timeout_s: float) -> None:
            times_s.append(timeout_s)
            await asyncio.sleep(min(timeout_s, 0.01))
            if timeout_s < 0.01:
                raise RequestTimedOutError("no time is left")
            consumed.assigned(generation + 1)
            raise CommitFailedError("this generation is over")

    async with reader(World()) as one, asyncio.timeout(PATIENCE_S):
        consumed.of(one)
        consumed.assigned(1)
        with pytest.raises(RequestTimedOutError):
            await consumed.commit(cast(Any, Crossed()), {PLACE: 1}, timeout_s=0.2)
    assert times_s == sorted(times_s, reverse=True)
    assert consumed.generation == len(times_s)


async def test_what_is_asked_for_fits_into_the_buffer() -> None:
    """Also of two brokers at a time, which could both send all of it."""
    settings = ConsumerSettings(buffer_max_bytes=1_500_000, max_partition_fetch_bytes=1_000_000)
    under_way = most = requests = 0

    async def fetch(request: FetchRequest, _version: int, _id: int) -> FetchResponse:
        nonlocal under_way, most, requests
        requests += 1
        under_way += request.max_bytes
        most = max(most, under_way)
        await asyncio.sleep(0.01)
        under_way -= request.max_bytes
        return fetched(request)

    places = [("t", partition) for partition in range(4)]

    async with two_brokers() as cluster:
        cluster.leaders = {"t": [1, 2, 1, 2]}
        cluster.on(1, fetch)
        one = Reader(Cluster(cluster.bootstrap), settings, from_the_start)
        one.start()
        try:
            one.add(places)
            one.release(places)
            await until(lambda: requests > 20)
        finally:
            await one.close()
    assert 0 < most <= settings.buffer_max_bytes
