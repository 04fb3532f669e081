"""An older commit never overtakes a newer one, whatever goes wrong; and the outcome of each is reported."""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringleader.clients.errors import (
    BrokerError,
    ClientError,
    CommitFailedError,
    MembershipOverError,
    RequestTimedOutError,
    RetriableError,
)
from ringleader.clients.group.membership import GroupMember, SyncGroupMember
from ringleader.clients.metrics import Counters
from ringleader.clients.model import MemberProtocol, OffsetAndMetadata, TopicPartition
from ringleader.clients.offsets.commit_queue import Commit, CommitQueue
from ringleader.protocol.errors import ErrorCode
from ringleader.testing.coordinator import Coordinator
from tests.support.sharding import PATIENCE_S, assign, member

PLACE = ("t", 0)


class Ends:
    """The outcomes of commits that nobody waits for."""

    def __init__(self) -> None:
        self.reported: list[Exception | None] = []
        self._changed = asyncio.Event()

    def __call__(self, error: Exception | None) -> None:
        self.reported.append(error)
        self._changed.set()

    async def until(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while len(self.reported) < count:
                self._changed.clear()
                await self._changed.wait()


def seen_offsets(coordinator: Coordinator, place: TopicPartition = PLACE) -> list[int]:
    """The offsets of that partition in the order in which they were asked for on the wire."""
    return [
        part.committed_offset
        for one in coordinator.faults.seen("OffsetCommit")
        for topic in one.request.topics
        for part in topic.partitions
        if (topic.name, part.partition_index) == place
    ]


# ---- the queue by itself ----


class Maker:
    """Makes commits on request."""

    def __init__(self) -> None:
        self.made: list[dict[TopicPartition, Any]] = []
        self.go = asyncio.Event()
        self.began = asyncio.Event()
        self.error: Exception | None = None

    async def make(self, commit: Commit) -> None:
        self.began.set()
        await self.go.wait()
        self.made.append(dict(commit.offsets))
        if self.error is not None:
            raise self.error


def commit(
    offsets: dict[TopicPartition, int], ends: Ends, repeats: bool = False, generation: int = 1
) -> Commit:
    return Commit(dict(offsets), (generation, "m"), 0, 30_000, repeats, [ends])


async def test_waiting_commits_are_merged_and_the_newest_counts() -> None:
    maker, ends, queue = Maker(), Ends(), CommitQueue(Counters(), lambda: 0, lambda: "over")
    queue.open()
    task = asyncio.create_task(queue.run(maker.make))
    queue.add(commit({PLACE: 1}, ends))
    await maker.began.wait()
    for offset in range(2, 1_000):
        queue.add(commit({PLACE: offset, ("t", offset % 3): offset}, ends))
    assert len(queue) == 2, "no more room than there are partitions"
    queue.add(commit({PLACE: 5}, ends))  # going back is newer, too
    queue.add(commit({PLACE: 2_000}, ends, repeats=True))
    queue.add(commit({PLACE: 2_001}, ends))
    queue.add(commit({PLACE: 2_002}, ends, generation=2))
    assert len(queue) == 5
    maker.go.set()
    await ends.until(1_003)
    assert [made[PLACE] for made in maker.made] == [1, 5, 2_000, 2_001, 2_002]
    assert maker.made[1] == {PLACE: 5, ("t", 1): 997, ("t", 2): 998}
    task.cancel()
    await asyncio.wait([task])


async def test_a_commit_without_a_callback_is_logged_though_it_was_merged_into_one_with_a_callback() -> None:
    ends, warned, queue = Ends(), list[Exception | None](), CommitQueue(Counters(), lambda: 0, lambda: "over")
    queue.open()
    silent = [Commit({PLACE: at}, (1, "m"), 0, 30_000, False, warn=warned.append) for at in (2, 3)]
    for one in (commit({PLACE: 1}, ends), *silent):
        queue.add(one)
    assert len(queue) == 1
    queue.close()
    assert [type(error) for error in warned] == [MembershipOverError]


async def test_the_wait_of_a_commit_for_its_turn_counts_from_when_it_was_asked_for() -> None:
    """The driver's loop may come to it late."""
    ends, queue = Ends(), CommitQueue(Counters(), lambda: 30_000, lambda: "over")
    queue.open()
    queue.add(commit({PLACE: 1}, ends, repeats=True))
    await ends.until(1)
    assert len(queue) == 0


async def test_commits_from_before_and_after_a_loss_of_partitions_are_two() -> None:
    """Each has its own outcome, whatever becomes of the other."""
    ends, queue = Ends(), CommitQueue(Counters(), lambda: 0, lambda: "over")
    queue.open()
    before, after = commit({PLACE: 1}, ends), commit({PLACE: 2}, ends)
    after.shrinks = before.shrinks + 1
    for one in (before, after, commit({PLACE: 3}, ends)):
        queue.add(one)
    assert len(queue) == 3


async def test_a_commit_that_fails_does_not_stop_the_next() -> None:
    maker, ends, queue = Maker(), Ends(), CommitQueue(Counters(), lambda: 0, lambda: "over")
    queue.open()
    task = asyncio.create_task(queue.run(maker.make))
    maker.go.set()
    maker.error = BrokerError("refused")
    queue.add(commit({PLACE: 1}, ends))
    await ends.until(1)
    maker.error = None
    queue.add(commit({PLACE: 2}, ends))
    await ends.until(2)
    assert repr(ends.reported) == "[BrokerError('refused'), None]"
    maker.go.clear()
    maker.began.clear()
    queue.add(commit({PLACE: 3}, ends))
    queue.add(commit({PLACE: 4}, ends))
    await maker.began.wait()
    queue.close()
    task.cancel()
    await asyncio.wait([task])
    assert [type(error) for error in ends.reported[2:]] == [MembershipOverError] * 2
    assert queue.add(commit({PLACE: 5}, ends)) is False


async def test_an_error_of_our_own_ends_the_queue() -> None:
    """The error reaches the caller; and the driver, which ends the member."""
    maker, ends, queue = Maker(), Ends(), CommitQueue(Counters(), lambda: 0, lambda: "over")
    queue.open()
    maker.go.set()
    maker.error = KeyError("a bug")
    queue.add(commit({PLACE: 1}, ends))
    with pytest.raises(KeyError):
        await queue.run(maker.make)
    assert ends.reported == [maker.error]


async def test_commits_that_have_ended_leave_no_timers(coordinator: Coordinator) -> None:
    """Or each would be kept until its time is over."""
    async with member(coordinator) as one:
        await one.wait_assigned(PATIENCE_S)
        await asyncio.gather(*(one.commit({PLACE: offset}) for offset in range(300)))
        loop: Any = one._driver._loop
        assert sum(not timer.cancelled() for timer in loop._scheduled) < 20


# ---- members ----


async def test_commits_with_and_without_waiting_are_one_queue(coordinator: Coordinator) -> None:
    ends = Ends()
    async with member(coordinator) as one:
        await one.wait_assigned(PATIENCE_S)
        coordinator.faults.error("OffsetCommit", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=3)
        first = asyncio.create_task(one.commit({PLACE: 1}))
        await asyncio.sleep(0)
        one.commit_nowait({PLACE: 2}, on_done=ends)
        one.commit_nowait({PLACE: 3, ("t", 1): 1}, on_done=ends)
        second = asyncio.create_task(one.commit({PLACE: 4}))
        await asyncio.sleep(0)
        one.commit_nowait({PLACE: 5}, on_done=ends)
        await asyncio.gather(first, second)
        await ends.until(3)
        assert ends.reported == [None] * 3
        assert seen_offsets(coordinator) == [1, 1, 1, 1, 3, 4, 5]
        assert await one.committed() == {PLACE: OffsetAndMetadata(5), ("t", 1): OffsetAndMetadata(1)}
        figures = one.metrics()
        assert (figures.commits, figures.commit_failures, figures.commits_waiting) == (4, 0, 0)


async def test_one_that_is_not_repeated_fails_once(
    coordinator: Coordinator, caplog: pytest.LogCaptureFixture
) -> None:
    ends = Ends()
    async with member(coordinator) as one:
        await one.wait_assigned(PATIENCE_S)
        coordinator.faults.error("OffsetCommit", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=2)
        one.commit_nowait({PLACE: 1}, on_done=ends)
        await ends.until(1)
        one.commit_nowait({PLACE: 2})
        await one.commit({PLACE: 3})
        coordinator.faults.drop("OffsetCommit")
        one.commit_nowait({PLACE: 4}, on_done=ends)
        await ends.until(2)
        one.commit_nowait({("t", 0): OffsetAndMetadata(1, "x" * 5_000)}, on_done=ends)
        await ends.until(3)
        kinds = [type(error) for error in ends.reported]
        assert issubclass(kinds[0], RetriableError)
        assert issubclass(kinds[1], RetriableError)
        assert kinds[2] is BrokerError
        assert seen_offsets(coordinator) == [1, 2, 3, 4, 1]
        lines = [r for r in caplog.records if r.levelno == logging.WARNING and "a commit failed" in r.message]
        assert len(lines) == 1
        assert "COORDINATOR_LOAD_IN_PROGRESS" in lines[0].message
        assert one.metrics().commit_failures == 4


async def test_commits_of_another_generation_ask_nobody(coordinator: Coordinator) -> None:
    ends = Ends()
    async with member(coordinator) as one:
        share = await one.wait_assigned(PATIENCE_S)
        with pytest.raises(CommitFailedError, match=r"generation 7 is over, this is generation 1"):
            await one.commit({PLACE: 1}, generation=7)
        one.commit_nowait({PLACE: 1}, generation=0, on_done=ends)
        await ends.until(1)
        assert isinstance(ends.reported[0], CommitFailedError)
        assert seen_offsets(coordinator) == []
        await one.commit({PLACE: 2}, generation=share.generation)
        one.commit_nowait({PLACE: 3}, generation=share.generation, on_done=ends)
        await ends.until(2)
        assert seen_offsets(coordinator) == [2, 3]
    with pytest.raises(MembershipOverError, match="left"):
        one.commit_nowait({PLACE: 4})


async def test_a_commit_does_not_wait_for_its_turn_longer_than_told(coordinator: Coordinator) -> None:
    async with member(coordinator) as one:
        await one.wait_assigned(PATIENCE_S)
        slow = coordinator.faults.delay("OffsetCommit", 1.0, times=1)
        first = asyncio.create_task(one.commit({PLACE: 1}))
        while not slow.hits:  # noqa: ASYNC110 -- the relay tells nobody
            await asyncio.sleep(0.01)
        with pytest.raises(RequestTimedOutError, match=r"its turn within 0\.1 s"):
            await one.commit({PLACE: 2}, timeout_s=0.1)
        await first
        assert seen_offsets(coordinator) == [1]


async def test_a_commit_that_nobody_waits_for_any_more_is_not_made_again(coordinator: Coordinator) -> None:
    async with member(coordinator) as one:
        await one.wait_assigned(PATIENCE_S)
        coordinator.faults.error("OffsetCommit", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=-1)
        task = asyncio.create_task(one.commit({PLACE: 1}))
        waits = asyncio.create_task(one.commit({PLACE: 2}))
        while not coordinator.faults.seen("OffsetCommit"):  # noqa: ASYNC110 -- the relay tells nobody
            await asyncio.sleep(0.01)
        task.cancel()
        waits.cancel()
        await asyncio.wait([task, waits])
        coordinator.faults.clear()
        await one.commit({PLACE: 3})
        assert set(seen_offsets(coordinator)) == {1, 3}
        assert (await one.committed())[PLACE].offset == 3


async def test_waiting_commits_are_made_before_the_member_leaves(coordinator: Coordinator) -> None:
    async with member(coordinator) as one:
        await one.wait_assigned(PATIENCE_S)
        coordinator.faults.delay("OffsetCommit", 0.1)
        for offset in range(1, 50):
            one.commit_nowait({PLACE: offset, ("t", 1): offset})
    async with member(coordinator) as two:
        found = await two.committed()
    assert found == {PLACE: OffsetAndMetadata(49), ("t", 1): OffsetAndMetadata(49)}


def test_a_synchronous_member_tells_the_end_in_its_thread(coordinator: Coordinator) -> None:
    reported: list[tuple[str, ClientError | None]] = []
    done = threading.Event()

    def on_done(error: ClientError | None) -> None:
        reported.append((threading.current_thread().name, error))
        done.set()

    given_options: dict[str, Any] = {"protocol_type": "sharding", "protocols": [MemberProtocol("deal")]}
    with SyncGroupMember(coordinator.bootstrap, "jobs", assign=assign, **given_options) as one:
        share = one.wait_assigned(PATIENCE_S)
        one.commit_nowait({PLACE: 1}, generation=share.generation, on_done=on_done)
        assert done.wait(PATIENCE_S)
        one.commit({PLACE: 2}, generation=share.generation)
        with pytest.raises(CommitFailedError):
            one.commit({PLACE: 3}, generation=9)
    assert reported == [("group member callbacks", None)]


# ---- whatever goes wrong ----

FAULTS = st.lists(
    st.one_of(
        st.tuples(
            st.just("error"),
            st.sampled_from(
                [
                    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                    ErrorCode.NOT_COORDINATOR,
                    ErrorCode.REQUEST_TIMED_OUT,
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                ]
            ),
        ),
        st.tuples(st.just("drop"), st.booleans()),
        st.tuples(st.just("delay"), st.sampled_from([0.001, 0.02])),
    ),
    max_size=6,
)
STEPS = st.lists(st.sampled_from(["wait", "no wait", "store", "pause", "rejoin"]), min_size=5, max_size=40)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(faults=FAULTS, steps=STEPS)
async def test_an_older_commit_never_overtakes_a_newer_one(faults: list[Any], steps: list[str]) -> None:
    """The offsets sent to the coordinator never go back, and a commit is not undone: the last commit that
    succeeded, or something newer, stands in the end."""
    with Coordinator(topics={"t": 4}) as coordinator:
        for nth, (kind, what) in enumerate(faults, start=1):
            if kind == "error":
                coordinator.faults.error("OffsetCommit", what, nth=nth)
            elif kind == "drop":
                coordinator.faults.drop("OffsetCommit", nth=nth, done=what)
            else:
                coordinator.faults.delay("OffsetCommit", what, nth=nth, times=1)
        best = 0
        waiting: list[asyncio.Task[None]] = []

        async def committed(one: GroupMember, offset: int) -> None:
            nonlocal best
            try:
                await one.commit({PLACE: offset}, timeout_s=PATIENCE_S)
                best = max(best, offset)
            except ClientError:
                pass

        options: dict[str, Any] = {
            "auto_commit_interval_ms": 20,
            "retry_backoff_ms": 1,
            "retry_backoff_max_ms": 5,
        }
        async with member(coordinator, **options) as one:
            await one.wait_assigned(PATIENCE_S)
            for offset, step in enumerate(steps, start=1):
                if step == "wait":
                    waiting.append(asyncio.create_task(committed(one, offset)))
                    await asyncio.sleep(0)
                elif step == "no wait":
                    one.commit_nowait({PLACE: offset})
                elif step == "pause":
                    await asyncio.sleep(0.01)
                elif step == "rejoin":
                    await one.rejoin("as it likes")
                else:
                    try:
                        one.store({PLACE: offset})
                    except CommitFailedError:
                        continue
            await asyncio.gather(*waiting)
        requested = seen_offsets(coordinator)
        assert requested == sorted(requested)
        async with member(coordinator) as two:
            found = await two.committed()
        last = found[PLACE].offset if found else 0
        assert last >= best
