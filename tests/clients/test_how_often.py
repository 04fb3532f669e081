"""How often clients ask. Nobody asks a broker all the time, whatever it answers for ever; and what is known
is not asked for again. A bug that polls without waiting passes every test of results."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from ringleader import Producer
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.errors import RetriableError
from ringleader.clients.fetch.model import ConsumerSettings
from ringleader.clients.fetch.reader import Reader
from ringleader.clients.group.machine.phases import OVER, Phase
from ringleader.clients.model import OffsetAndMetadata, TopicPartition
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
from tests.clients.test_producer_bounds import Alone
from tests.support.consumer_protocol_script import ConsumerProtocolScript
from tests.support.consuming import until
from tests.support.member_script import MemberScript
from tests.support.reader_world import PLACE, World, answer, from_the_start, reader, take
from tests.support.scripted_broker import CLOSE
from tests.support.two_brokers import fetched, two_brokers

WINDOW_S = 1.0
MOST = 45
"""Requests of all kinds in that time: one every 50 ms at the end of a log, and every 100 ms where something
is wrong, of which the first come sooner. Slow machines ask less."""

# ---- a consumer ----


def refused(code: ErrorCode) -> Callable[[World], None]:
    def begin(world: World) -> None:
        world.trick = lambda _node, _partition: answer(FetchResponsePartitionData(error_code=code))

    return begin


def old_records(world: World) -> None:
    """As of a broker that looks for offsets in a wrong index."""
    data = FetchResponsePartitionData(high_watermark=10, records=world.log[0])
    world.trick = lambda _node, _partition: answer(data)


def left_out(world: World) -> None:
    world.trick = lambda _node, _partition: FetchResponse()


def refused_as_a_whole(world: World) -> None:
    world.trick = lambda _node, _partition: FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)


def hung_up(world: World) -> None:
    world.trick = lambda _node, _partition: CLOSE


def named(node: int) -> Callable[[World], None]:
    """A follower to read from, by which there is nothing."""

    def begin(world: World) -> None:
        data = FetchResponsePartitionData(preferred_read_replica=node)
        world.trick = lambda _node, _partition: answer(data)

    return begin


def named_by_turns(world: World) -> None:
    world.trick = lambda node, _partition: answer(FetchResponsePartitionData(preferred_read_replica=3 - node))


def no_leader(world: World) -> None:
    world.named_leader = -1
    refused(ErrorCode.NOT_LEADER_OR_FOLLOWER)(world)


def nothing(_world: World) -> None:
    """It waits at the end of the log."""


READING = {
    "old records": old_records,
    "left out": left_out,
    "as a whole": refused_as_a_whole,
    "hung up": hung_up,
    "named an unknown one": named(7),
    "named itself": named(1),
    "named the other": named(2),
    "named by turns": named_by_turns,
    "no leader": no_leader,
    "nothing new": nothing,
    **{
        code.name: refused(code)
        for code in (
            ErrorCode.UNKNOWN_SERVER_ERROR,
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            ErrorCode.FENCED_LEADER_EPOCH,
            ErrorCode.UNKNOWN_LEADER_EPOCH,
            ErrorCode.KAFKA_STORAGE_ERROR,
            ErrorCode.OFFSET_NOT_AVAILABLE,
            ErrorCode.OFFSET_OUT_OF_RANGE,
            ErrorCode.UNKNOWN_TOPIC_ID,
            ErrorCode.CORRUPT_MESSAGE,
        )
    },
}


async def requests_in_the_window(world: World) -> int:
    def count() -> int:
        return sum(len(broker.requests) for broker in world.brokers)

    before = count()
    await asyncio.sleep(WINDOW_S)
    return count() - before


@pytest.mark.parametrize("what", READING)
async def test_a_broker_is_not_asked_for_records_all_the_time(what: str) -> None:
    world = World()
    world.append(3)
    async with reader(world, client_rack="here") as one:
        assert await take(one, 3) == [0, 1, 2]
        READING[what](world)
        assert await requests_in_the_window(world) <= MOST


async def test_a_broker_that_keeps_hanging_up_is_asked_less_and_less_often() -> None:
    """Waits double from 50 ms to a second, though its leader is looked for every 100 ms."""
    world = World()
    world.append(3)
    async with reader(world) as one:
        await take(one, 3)
        hung_up(world)
        before = len(world.fetching)
        await asyncio.sleep(3 * WINDOW_S)
    assert 2 <= len(world.fetching) - before <= 10


async def test_the_end_of_a_log_is_not_asked_for_without_waiting() -> None:
    """Two requests wait there for two partitions. The third may not wait: it asks where there is more."""
    hurried = 0

    async def fetch(request: FetchRequest, _version: int, _id: int) -> FetchResponse:
        nonlocal hurried
        if request.max_wait_ms:
            await asyncio.Event().wait()
        hurried += 1
        return fetched(request)

    places = [("t", partition) for partition in range(3)]

    async with two_brokers() as cluster:
        cluster.leaders = {"t": [1, 1, 1]}
        cluster.on(1, fetch)
        one = Reader(Cluster(cluster.bootstrap), ConsumerSettings(), from_the_start)
        one.start()
        try:
            one.add(places)
            for count, place in enumerate(places, 1):
                one.release([place])
                await until(lambda: len(cluster.requests_of(FetchRequest)) >= count)  # noqa: B023
            await asyncio.sleep(WINDOW_S)
        finally:
            await one.close()
    assert hurried == 1, "until it is known that there is no more"


def list_refused(code: ErrorCode) -> Callable[..., Any]:
    part = ListOffsetsResponseListOffsetsPartitionResponse(error_code=code)
    topic = ListOffsetsResponseListOffsetsTopicResponse(name="t", partitions=[part])
    return lambda *_: ListOffsetsResponse(topics=[topic])


def end_refused(code: ErrorCode) -> Callable[..., Any]:
    part = OffsetForLeaderEpochResponseEpochEndOffset(error_code=code)
    topic = OffsetForLeaderEpochResponseOffsetForLeaderTopicResult(topic="t", partitions=[part])
    return lambda *_: OffsetForLeaderEpochResponse(topics=[topic])


@pytest.mark.parametrize(
    ("api_key", "handler"),
    [
        (2, list_refused(ErrorCode.LEADER_NOT_AVAILABLE)),
        (2, list_refused(ErrorCode.REQUEST_TIMED_OUT)),
        (2, lambda *_: ListOffsetsResponse()),
        (2, lambda *_: CLOSE),
        (3, lambda *_: CLOSE),
        (23, end_refused(ErrorCode.FENCED_LEADER_EPOCH)),
        (23, end_refused(ErrorCode.REQUEST_TIMED_OUT)),
        (23, lambda *_: OffsetForLeaderEpochResponse()),
        (23, lambda *_: CLOSE),
    ],
)
async def test_a_broker_is_not_asked_for_a_position_all_the_time(
    api_key: int, handler: Callable[..., Any]
) -> None:
    world = World()
    world.append(3)
    committed = {PLACE: OffsetAndMetadata(1, "", 0)} if api_key == 23 else {}
    for broker in world.brokers:
        broker.handlers[api_key] = handler
    async with reader(world, committed):
        assert await requests_in_the_window(world) <= MOST


async def test_a_coordinator_is_not_asked_for_committed_offsets_all_the_time() -> None:
    requests = 0

    class Refused(Mapping[TopicPartition, OffsetAndMetadata]):
        """In the place of committed offsets."""

        def __bool__(self) -> bool:
            nonlocal requests
            requests += 1
            raise RetriableError("the coordinator is loading")

        def __getitem__(self, _key: object) -> Any:
            raise KeyError

        def __iter__(self) -> Any:
            return iter(())

        def __len__(self) -> int:
            return 1

    async with reader(World(), Refused()):
        await asyncio.sleep(WINDOW_S)
    assert 1 <= requests <= MOST


async def test_a_leader_that_stays_is_not_asked_where_its_epoch_ends() -> None:
    """The leaders are looked up again and again, and each time they are the same."""
    world = World()
    world.append(3)
    async with reader(world, metadata_max_age_ms=20) as one:
        await take(one, 3)
        looks = sum(broker.names().count("Metadata") for broker in world.brokers)
        await until(lambda: sum(broker.names().count("Metadata") for broker in world.brokers) > looks + 3)
        world.append(1)
        assert await take(one, 1) == [3]
    assert world.validated == []


# ---- a producer ----


@pytest.mark.parametrize("leader", [1, -1])
@pytest.mark.parametrize(
    "code",
    [
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.REQUEST_TIMED_OUT,
    ],
)
async def test_a_broker_is_not_asked_to_write_all_the_time(leader: int, code: ErrorCode) -> None:
    async with Alone(leader=leader, error_code=code) as broker:
        producer = Producer(broker.address, linger_ms=0)
        await producer.start()
        lost = await producer.send("t", b"0")
        before = len(broker.requests)
        await asyncio.sleep(WINDOW_S)
        assert len(broker.requests) - before <= MOST
        await producer.stop(timeout_s=0)
        assert lost.exception() is not None


# ---- a member ----

MEMBER_MS = 10_000
MEMBER_MOST = 320
"""Requests in that time, on a clock of its own, at a coordinator that answers at once: every 100 ms a join
that it takes, the sync that it refuses, and a look for it in between."""
APIS = ("FindCoordinator", "JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup")


@pytest.mark.parametrize("api", APIS)
def test_no_coordinator_is_asked_by_a_member_all_the_time(api: str) -> None:
    counts = {}
    for code in [*ErrorCode, None]:
        script = MemberScript().start()
        generation = sent = 0
        end_ms = script.now_ms + MEMBER_MS
        left = False
        while script.now_ms < end_ms and script.phase() not in OVER:
            if script.phase() is Phase.REVOKING and not script.wanted:
                script.revoked()
            elif not script.wanted:
                script.wait(10)
                if script.phase() is Phase.STABLE and api == "LeaveGroup" and not left:
                    left = True
                    script.leave(timeout_ms=MEMBER_MS)
            else:
                sent += 1
                name = script.wanted[0]
                refuses = int(code or 0) if name == api else 0
                if name == api and code is None:
                    script.fail(name)
                    continue
                match name:
                    case "FindCoordinator":
                        script.find(refuses)
                    case "JoinGroup":
                        generation += 1
                        script.join(
                            refuses, member_id="m-1", **({} if refuses else {"generation_id": generation})
                        )
                        if script.phase() is Phase.ASSIGNING:
                            script.compute({})
                    case "SyncGroup":
                        script.sync(refuses)
                    case "Heartbeat":
                        script.beat(refuses)
                    case "LeaveGroup":
                        script.left(refuses)
                    case _:
                        script.fail(name)
            if sent > 2_000:
                break
        counts["no answer" if code is None else code.name] = sent
    assert {code: sent for code, sent in counts.items() if sent > MEMBER_MOST} == {}


def test_no_coordinator_is_asked_by_a_member_of_the_consumer_protocol_all_the_time() -> None:
    counts = {}
    for code in [*ErrorCode, None]:
        script = ConsumerProtocolScript()
        script.start()
        sent = 0
        end_ms = script.now_ms + MEMBER_MS
        while script.now_ms < end_ms and script.phase() not in OVER and sent <= 2_000:
            if not script.wanted:
                script.wait(10)
                continue
            sent += 1
            match script.wanted[0]:
                case "FindCoordinator":
                    script.find()
                case "Metadata":
                    script.name("t")
                case name if code is None:
                    script.fail(name)
                case _:
                    script.beaten(1, {"t": [0]}, code=int(code))
        counts["no answer" if code is None else code.name] = sent
    assert {code: sent for code, sent in counts.items() if sent > MEMBER_MOST} == {}
