"""With `latest` a consumer reads what is new while it runs from its beginning: nothing in it is old."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ringleader import Admin, GroupConsumer, PartitionConsumer
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.metadata import ClusterMetadata, PartitionMetadata, TopicMetadata
from ringleader.clients.errors import RetriableError
from ringleader.clients.fetch.baseline import Baseline
from ringleader.clients.fetch.buffer import Chunk
from ringleader.clients.fetch.leaders import Leaders
from ringleader.clients.fetch.partition_state import BY_POLICY, PartitionState
from ringleader.clients.fetch.positions import PositionLookup
from ringleader.clients.model import EARLIEST, OffsetAndMetadata
from ringleader.clients.model import LATEST as END
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.records import Record, build_batch
from ringleader.testing.coordinator import Coordinator
from tests.support.consuming import PATIENCE_S, Source, consumer, read_count, until

COUNT = 50
LATEST: dict[str, Any] = {"auto_offset_reset": "latest", "metadata_max_age_ms": 50}


@pytest.fixture
def source(coordinator: Coordinator) -> Source:
    return Source(coordinator)


async def grown(
    admin: Admin, source: Source, one: GroupConsumer | PartitionConsumer
) -> dict[tuple[str, int], int]:
    await admin.create_partitions("t", 6)
    source.put(("t", 4), COUNT)
    source.put(("t", 5), COUNT)
    return {("t", 4): COUNT, ("t", 5): COUNT}


async def made_again(
    admin: Admin, source: Source, one: GroupConsumer | PartitionConsumer
) -> dict[tuple[str, int], int]:
    """With more records than before, or fewer: the position is inside of the new log, or outside."""
    await admin.delete_topics(["t"])
    await admin.create_topic("t", 4)
    source.counts.clear()
    source.put(("t", 0), COUNT)
    source.put(("t", 1), 5)
    return {("t", 0): COUNT, ("t", 1): 5}


async def made_again_later(
    admin: Admin, source: Source, one: GroupConsumer | PartitionConsumer
) -> dict[tuple[str, int], int]:
    """The group has heard that it was gone."""
    await admin.delete_topics(["t"])
    await until(lambda: not one.assignment())
    await admin.create_topic("t", 4)
    source.counts.clear()
    source.put(("t", 0), COUNT)
    return {("t", 0): COUNT}


async def appeared(
    admin: Admin, source: Source, one: GroupConsumer | PartitionConsumer
) -> dict[tuple[str, int], int]:
    await admin.create_topic("t-later", 2)
    source.put(("t-later", 1), COUNT)
    return {("t-later", 1): COUNT}


EVENTS = {
    "grown": grown,
    "made again": made_again,
    "made again later": made_again_later,
    "appeared": appeared,
}


@pytest.mark.parametrize("event", EVENTS)
@pytest.mark.parametrize("by", ["names", "pattern"])
@pytest.mark.parametrize("assignors", [("cooperative-sticky",), ("range",)])
async def test_what_is_new_while_it_runs_is_read_from_its_beginning(
    coordinator: Coordinator, source: Source, event: str, by: str, assignors: tuple[str, ...]
) -> None:
    for partition in range(4):
        source.put(("t", partition), 10)  # old: not for this consumer
    topics: dict[str, Any] = {"pattern": "t.*"} if by == "pattern" else {"topics": ["t", "t-later"]}
    async with (
        Admin(coordinator.bootstrap) as admin,
        consumer(coordinator, assignors=assignors, **LATEST, **topics) as one,
    ):
        await one.wait_assigned(PATIENCE_S)
        assert await one.position(("t", 0)) == 10
        assert await one.getmany(timeout_s=0) == []
        expected = await EVENTS[event](admin, source, one)
        sink = await read_count(one, sum(expected.values()))
        assert sink.offsets == {at: list(range(count)) for at, count in expected.items()}
        assert await one.getmany(timeout_s=0.1) == []


async def test_what_was_there_at_the_start_begins_at_its_end(
    coordinator: Coordinator, source: Source
) -> None:
    """Also for one that joins a group later, and of a topic that it subscribes to later."""
    coordinator.create_topic("u", 1)
    source.put(("t", 0), 10)
    source.put(("u", 0), 10)
    async with consumer(coordinator, **LATEST) as one:
        await one.wait_assigned(PATIENCE_S)
        assert await one.position(("t", 0)) == 10
        await one.subscribe(["t", "u", "v"])
        await until(lambda: ("u", 0) in one.assignment())
        assert await one.position(("u", 0)) == 10
        source.put(("u", 0), 1)
        coordinator.create_topic("v", 1)
        source.put(("v", 0), COUNT)
        sink = await read_count(one, COUNT + 1)
        assert sink.offsets == {("u", 0): [10], ("v", 0): list(range(COUNT))}


async def test_the_end_is_where_seek_to_end_says(coordinator: Coordinator, source: Source) -> None:
    async with (
        Admin(coordinator.bootstrap) as admin,
        consumer(coordinator, **LATEST) as one,
    ):
        await one.wait_assigned(PATIENCE_S)
        await grown(admin, source, one)
        await until(lambda: ("t", 5) in one.assignment())
        one.seek_to_end(("t", 5))
        assert await one.position(("t", 5)) == COUNT
        assert await one.position(("t", 4)) == 0


async def test_partitions_without_a_group(coordinator: Coordinator, source: Source) -> None:
    source.put(("t", 0), 10)
    async with (
        Admin(coordinator.bootstrap) as admin,
        PartitionConsumer(coordinator.bootstrap, ["t"], **LATEST) as one,
    ):
        assert await one.position(("t", 0)) == 10
        await grown(admin, source, one)
        await one.assign(["t"])
        assert [await one.position(("t", number)) for number in (0, 4, 5)] == [10, 0, 0]


async def test_a_topic_made_again_while_its_end_is_looked_up(
    coordinator: Coordinator, source: Source
) -> None:
    """The end of the new one is no position in the old one, nor the place to begin in the new one."""
    source.put(("t", 0), 10)
    looked_up = coordinator.faults.delay("ListOffsets", 1.0, times=1)
    async with (
        Admin(coordinator.bootstrap) as admin,
        PartitionConsumer(coordinator.bootstrap, [("t", 0)], **LATEST) as one,
    ):
        await until(lambda: looked_up.hits == 1)
        await admin.delete_topics(["t"])
        await admin.create_topic("t", 4)
        source.counts.clear()
        source.put(("t", 0), COUNT)
        offsets: list[int] = []
        async with asyncio.timeout(PATIENCE_S):
            while len(offsets) < COUNT:
                offsets += [at for batch in await one.getmany() for at in batch.offsets]
        assert offsets == list(range(COUNT))


class Meanwhile(Leaders):
    """Knows a topic; while its end is asked for, another one of its name takes its place, or it is gone."""

    def __init__(self, now: bytes | None) -> None:
        self.id: bytes | None = b"before"
        self._now = now
        self.requested: list[int] = []

    def topic_id(self, tp: tuple[str, int]) -> bytes | None:
        return self.id

    async def list_offsets(self, times: Any, committed_only: bool) -> Any:
        self.requested += times.values()
        if len(self.requested) == 1:
            self.id = self._now
        return {tp: (0 if time == EARLIEST else COUNT, -1, -1) for tp, time in times.items()}, {}


@pytest.mark.parametrize("now", [b"after", None], ids=["made anew", "gone"])
async def test_an_end_is_not_taken_for_that_of_another_topic(now: bytes | None) -> None:
    """The answer is of whichever topic had the name: a position in it belongs to the one that was asked
    about, at most."""
    state, leaders, baseline = PartitionState(("t", 0)), Meanwhile(now), Baseline()
    baseline.note(seen(TopicMetadata("t", b"before", False, (PartitionMetadata(0, 0, 0, (), ()),), 0)), None)
    state.reset_position(BY_POLICY)
    states = {("t", 0): state}
    lookup = PositionLookup(
        states, leaders, _no_offsets, "latest", False, baseline, lambda _state: positioned.set()
    )
    positioned = asyncio.Event()
    works = [asyncio.create_task(work) for work in lookup.runs()]
    async with asyncio.timeout(PATIENCE_S):
        await positioned.wait()
    for work in works:
        work.cancel()
    await asyncio.gather(*works, return_exceptions=True)
    if now is None:
        assert (leaders.requested, state.position, state.topic_id) == ([END], COUNT, b"before")
    else:
        assert (leaders.requested, state.position, state.topic_id) == ([END, EARLIEST], 0, b"after")


async def test_offsets_that_were_consumed_in_another_topic_of_the_name_are_not_taken() -> None:
    """A commit that was under way when the topic was deleted may come behind the deletion."""
    leaders, former, state = Meanwhile(b"after"), PartitionState(("t", 0)), PartitionState(("t", 0))
    leaders.id, former.topic_id = b"after", b"before"
    former.consumed, former.committed = OffsetAndMetadata(5), OffsetAndMetadata(3)
    positioned = asyncio.Event()

    async def committed(partitions: Any) -> dict[Any, Any]:
        return {partition: OffsetAndMetadata(5) for partition in partitions}

    lookup = PositionLookup(
        {("t", 0): state}, leaders, committed, "earliest", False, Baseline(), lambda _state: positioned.set()
    )
    lookup.left(former)
    works = [asyncio.create_task(work) for work in lookup.runs()]
    async with asyncio.timeout(PATIENCE_S):
        await positioned.wait()
    for work in works:
        work.cancel()
    await asyncio.gather(*works, return_exceptions=True)
    assert (state.position, state.topic_id) == (0, b"after")


@pytest.mark.parametrize("held", [False, True])
async def test_what_was_fetched_of_a_log_that_ends_before_it_is_handed_out_first(held: bool) -> None:
    state, leaders = PartitionState(("t", 0)), Meanwhile(b"before")
    lookup = PositionLookup(
        {("t", 0): state}, leaders, _no_offsets, "earliest", False, Baseline(), lambda _state: None
    )
    state.set_position(0)
    state.suspended, state.begun, state.held = False, True, held
    data = build_batch([Record(0, 1, None, b"a"), Record(1, 1, None, b"b")])
    state.add(Chunk(data, None), 2)
    lookup.out_of_range(state)
    assert (state.position, state.fetch_offset, bool(state.buffer)) == (0, 2, True)


async def test_a_log_that_lost_what_is_asked_for_is_asked_for_the_position() -> None:
    """Nothing is left to hand out before it: the partition does not ask for the same for ever."""
    state, leaders = PartitionState(("t", 0)), Meanwhile(b"before")
    lookup = PositionLookup(
        {("t", 0): state}, leaders, _no_offsets, "earliest", False, Baseline(), lambda _state: None
    )
    state.set_position(0)
    state.suspended, state.fetch_offset = False, 2
    lookup.out_of_range(state)
    assert (state.position, state.fetch_offset) == (0, 0)
    lookup.out_of_range(state)
    assert (state.position, state.reset_to) == (None, BY_POLICY)


async def _no_offsets(_partitions: Any) -> dict[Any, Any]:
    return {}


async def test_another_member_that_knew_takes_it_over_from_its_beginning(
    coordinator: Coordinator, source: Source
) -> None:
    """The first owner ends before it has committed anything."""
    async with (
        Admin(coordinator.bootstrap) as admin,
        consumer(coordinator, "a", auto_commit=False, **LATEST) as one,
        consumer(coordinator, "b", auto_commit=False, **LATEST) as two,
    ):
        members: list[GroupConsumer] = [one, two]
        await until(lambda: all(len(member.assignment()) == 2 for member in members))
        await grown(admin, source, one)
        await until(lambda: sum(len(member.assignment()) for member in members) == 6)
        first, other = sorted(members, key=lambda member: ("t", 5) not in member.assignment())
        assert await first.position(("t", 5)) == 0
        await first.stop()
        await until(lambda: ("t", 5) in other.assignment())
        assert await other.position(("t", 5)) == 0


def seen(*topics: TopicMetadata) -> ClusterMetadata:
    return ClusterMetadata(0, {}, {topic.name: topic for topic in topics})


def topic(name: str, count: int, number: int = 1, code: int = 0) -> TopicMetadata:
    partitions = tuple(PartitionMetadata(at, 0, 0, (0,), (0,)) for at in range(count))
    return TopicMetadata(name, bytes([number]) * 16, False, partitions, code)


class Answers(Cluster):
    """Tells these things about topics, one after the other."""

    def __init__(self, *answers: ClusterMetadata) -> None:
        super().__init__("127.0.0.1:1")
        self._answers = list(answers)

    async def metadata(self, *_topics: Any, **_options: Any) -> ClusterMetadata:
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


MISSING = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
TROUBLE = ErrorCode.LEADER_NOT_AVAILABLE


async def test_a_topic_that_seems_to_be_missing_is_looked_for_again() -> None:
    """A broker that has just started may not know it yet."""
    baseline = Baseline()
    await baseline.look(Answers(seen(topic("a", 0, code=MISSING)), seen(topic("a", 2))), ["a"], 30)
    assert not baseline.is_new(("a", 0), b"\1" * 16)
    assert baseline.is_new(("a", 2), b"\1" * 16)


@pytest.mark.parametrize("topics", [None, ["a"]])
async def test_a_topic_in_trouble_is_not_new(topics: list[str] | None) -> None:
    """It is there: what is in it is old. Its partitions are counted when they can be seen."""
    baseline, trouble = Baseline(), seen(topic("a", 0, code=TROUBLE), topic("b", 1))
    with pytest.raises(RetriableError, match="in trouble: a"):
        await baseline.look(Answers(trouble), topics, 30)
    assert not baseline.is_new(("a", 0), b"\1" * 16)
    await baseline.look(Answers(seen(topic("a", 2), topic("b", 1))), topics, 30)
    assert not baseline.is_new(("a", 1), b"\1" * 16)
    assert baseline.is_new(("a", 2), b"\1" * 16)


@pytest.mark.parametrize("by", ["names", "pattern"])
async def test_a_look_that_was_not_possible_is_made_again(
    coordinator: Coordinator, source: Source, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    look, failures, looked = Baseline.look, [1, 2], asyncio.Event()

    async def fail_first(self: Baseline, *arguments: Any) -> None:
        if failures:
            failures.pop()
            raise RetriableError("of the test")
        await look(self, *arguments)
        looked.set()

    monkeypatch.setattr(Baseline, "look", fail_first)
    topics: dict[str, Any] = {"pattern": "t.*"} if by == "pattern" else {"topics": ["t", "t-later"]}
    async with (
        Admin(coordinator.bootstrap) as admin,
        consumer(coordinator, **LATEST, **topics) as one,
    ):
        await one.wait_assigned(PATIENCE_S)
        async with asyncio.timeout(PATIENCE_S):
            await looked.wait()
        expected = await appeared(admin, source, one)
        sink = await read_count(one, COUNT)
        assert sink.offsets == {at: list(range(count)) for at, count in expected.items()}


def test_only_what_was_looked_for_can_be_new() -> None:
    here, other = b"\1" * 16, b"\2" * 16
    baseline = Baseline()
    assert not baseline.is_new(("a", 0), here)
    codes = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    none, hidden = (topic(name, 0, code=code) for name, code in zip("bc", codes, strict=True))
    baseline.note(seen(topic("a", 2), none, hidden), ["a", "b", "c"])
    found = [("a", 1, here), ("a", 2, here), ("a", 0, other), ("b", 0, here), ("c", 0, here), ("d", 0, here)]
    assert [baseline.is_new((name, at), number) for name, at, number in found] == [
        False,
        True,
        True,
        True,
        False,
        False,
    ]
    baseline.note(seen(topic("a", 9), topic("b", 9), topic("d", 1)), None)  # the first sight counts
    assert baseline.is_new(("a", 2), here)
    assert baseline.is_new(("b", 0), here)
    assert baseline.is_new(("e", 0), here)
    assert not baseline.is_new(("d", 0), here)
