"""Several queries in one group, cut off anywhere: whatever happens, every record is processed.

A model of Spark's engine (offset log, sink, commit log) and of a group with an eager protocol drives the
source's logic; Hypothesis chooses what happens next, and where a process dies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ringleader.spark_bridge.driver import SourceDriver
from ringleader.spark_bridge.membership import CommitRefusedError, Hold, Share
from ringleader.spark_bridge.offsets import OffsetDocument, TopicPartition
from ringleader.spark_bridge.options import stream_options
from tests.spark_bridge.fakes import QUICK, FakeLog

PARTITIONS = 3
QUERIES = 3


class Cut(Enum):
    """Where a process dies within a trigger."""

    NOWHERE = 0
    PLANNED = 1
    LOGGED = 2
    WRITTEN = 3
    COMMITTED = 4


class Group:
    """Offsets, generation, and who is in. A rebalance ends when everybody has given up."""

    def __init__(self) -> None:
        self.offsets: dict[TopicPartition, int] = {}
        self.generation = 0
        self.members: list[Member] = []
        self.waiting: dict[Member, Future[None]] | None = None

    def rebalance(self) -> None:
        if self.waiting is None:
            self.waiting = {}
        self.settle()

    def settle(self) -> None:
        """Ask those who were not asked; hand out the partitions when all have given up."""
        if self.waiting is None:
            return
        for member in self.members:
            if member not in self.waiting:
                self.waiting[member] = member.revoke()
        if all(self.waiting[member].done() for member in self.members):
            self.waiting = None
            self.generation += 1
            for place, member in enumerate(self.members):
                mine = [("t", p) for p in range(PARTITIONS) if p % len(self.members) == place]
                member.given(self.generation, frozenset(mine))

    def expire(self) -> None:
        """The rebalance timeout: who has not given up is put out, and joins again."""
        if self.waiting is None:
            return
        for member in self.members:
            if not self.waiting.setdefault(member, Future()).done():
                member.lost()
                self.waiting[member] = done()
        self.settle()


def done() -> Future[None]:
    future: Future[None] = Future()
    future.set_result(None)
    return future


class Member:
    """The membership of one process."""

    def __init__(self, group: Group) -> None:
        self.group = group
        self.generation = -1
        self.hold: Hold | None = None

    def start(self, hold: Hold) -> None:
        self.hold = hold
        self.group.members.append(self)
        self.group.rebalance()

    def revoke(self) -> Future[None]:
        assert self.hold is not None
        return self.hold.revoke() if self.generation >= 0 else done()

    def given(self, generation: int, partitions: frozenset[TopicPartition]) -> None:
        assert self.hold is not None
        self.generation = generation
        self.hold.assigned(Share(generation, "m", partitions))

    def lost(self) -> None:
        assert self.hold is not None
        self.generation = -1
        self.hold.lost()

    def commit(self, offsets: Mapping[TopicPartition, int], generation: int) -> None:
        if self not in self.group.members or not self.generation == generation == self.group.generation:
            raise CommitRefusedError("fenced")
        self.group.offsets.update(offsets)

    def committed(self, partitions: frozenset[TopicPartition]) -> dict[TopicPartition, int]:
        return {tp: self.group.offsets[tp] for tp in partitions if tp in self.group.offsets}

    def leave(self, reason: str) -> None:
        if self in self.group.members:
            self.group.members.remove(self)
            self.group.rebalance()


@dataclass
class Query:
    """One query: what Spark keeps on disk, and the process that runs now, if one does."""

    group: Group
    log: FakeLog
    policy: str
    sink: Counter[tuple[int, int]] = field(default_factory=Counter)
    logged: list[Any] = field(default_factory=list)
    committed: int = 0
    driver: SourceDriver | None = None
    member: Member | None = None

    def trigger(self, limit: int | None, cut: Cut) -> bool:
        """One turn of Spark's loop; whether a batch ran."""
        if self.driver is None:
            self.member = Member(self.group)
            given = {
                "kafka.bootstrap.servers": "x:1",
                "subscribe": "t",
                "kafka.group.id": "g",
                "parallelism": "1",
            }
            given |= {"startingOffsets": "earliest", "replayPolicy": self.policy}
            self.driver = SourceDriver(stream_options(given), self.member, self.log, QUICK)
        if self.committed < len(self.logged):
            return self.run(cut)
        start = self.logged[-1] if self.logged else OffsetDocument("g").to_json()
        end = self.driver.latest(start, limit)
        self.group.settle()
        if end is start:
            return False
        if cut is Cut.PLANNED:
            self.kill()
            return True
        self.logged.append(end)
        return self.run(cut)

    def run(self, cut: Cut) -> bool:
        assert self.driver is not None
        assert self.member is not None
        if self.driver._flight is None:
            # A replay waits for its assignment; here others may have to move first.
            self.driver._start()
            self.group.settle()
            assert self.member.hold is not None
            if self.member.hold.share() is None:
                return False
        tasks = self.driver.slices(self.logged[-1])
        if cut is Cut.LOGGED:
            self.kill()
            return True
        for task in tasks:
            for _, partition, start, end in task:
                self.sink.update((partition, offset) for offset in range(start, end))
        if cut is Cut.WRITTEN:
            self.kill()
            return True
        self.committed = len(self.logged)
        if cut is Cut.COMMITTED:
            self.kill()
        return True

    def kill(self) -> None:
        """The process dies; the group finds out by its session timeout, at the next rebalance."""
        assert self.member is not None
        self.member.leave("")
        self.driver = self.member = None

    def stop(self) -> None:
        if self.driver is not None:
            self.driver.stop()
            self.driver = self.member = None


# Most turns go well: a process that always dies at once never meets the others.
cuts = st.sampled_from([Cut.NOWHERE] * 16 + list(Cut))
turns = st.tuples(st.just("trigger"), st.integers(0, QUERIES - 1), st.none() | st.integers(1, 8), cuts)
others = st.tuples(
    st.sampled_from(["produce", "produce", "stop", "kill", "rebalance", "expire"]),
    st.integers(0, 2),
    st.none(),
    st.just(Cut.NOWHERE),
)
steps_of_many = st.lists(turns | turns | turns | others, min_size=15, max_size=80)


calm_steps = st.lists(
    turns.map(lambda turn: (*turn[:3], Cut.NOWHERE))
    | others.filter(lambda other: other[0] in ("produce", "rebalance")),
    min_size=15,
    max_size=60,
)
Step = tuple[str, int, int | None, Cut]


def play(steps: list[Step], policy: str) -> tuple[Group, FakeLog, Counter[tuple[int, int]]]:
    """Take the steps, then let everybody go on until nothing is left to do; how often each row was seen."""
    group, log = Group(), FakeLog({("t", p): 5 for p in range(PARTITIONS)})
    queries = [Query(group, log, policy) for _ in range(QUERIES)]
    for what, which, limit, cut in steps:
        query = queries[which]
        if what == "trigger":
            query.trigger(limit, cut)
        elif what == "produce":
            log.end["t", which] += 4
        elif what == "stop":
            query.stop()
        elif what == "kill" and query.driver is not None:
            query.kill()
        elif what == "rebalance":
            group.rebalance()
        elif what == "expire":
            group.expire()
        group.settle()
    quiet = 0
    for _ in range(200):
        quiet = 0 if sum([query.trigger(None, Cut.NOWHERE) for query in queries]) else quiet + 1
        group.settle()
        if quiet == 3:
            break
    assert quiet == 3, "the queries do not come to rest"
    return group, log, sum((query.sink for query in queries), Counter())


def all_rows(log: FakeLog) -> set[tuple[int, int]]:
    return {(p, offset) for (_, p), end in log.end.items() for offset in range(end)}


# A batch that is run again while another member has the partition, and a restart after it: what the batch
# did not read must not count as written.
TAKEN_OVER: list[Step] = [
    ("trigger", 2, None, Cut.LOGGED),
    ("produce", 2, None, Cut.NOWHERE),
    ("trigger", 2, None, Cut.NOWHERE),
    *[("trigger", 0, None, Cut.NOWHERE)] * 4,
    ("trigger", 0, None, Cut.NOWHERE),
    ("trigger", 2, None, Cut.NOWHERE),
    ("trigger", 1, None, Cut.LOGGED),
    ("stop", 0, None, Cut.NOWHERE),
    ("trigger", 1, None, Cut.COMMITTED),
]


@settings(max_examples=200, deadline=None)
@given(steps_of_many, st.sampled_from(["clip", "exact"]))
@example(TAKEN_OVER, "clip")
def test_every_record_is_processed_whatever_is_cut_off(steps: list[Step], policy: str) -> None:
    group, log, seen = play(steps, policy)
    assert not all_rows(log) - seen.keys()
    assert group.offsets == log.end


@settings(max_examples=100, deadline=None)
@given(calm_steps)
def test_nothing_is_processed_twice_when_nothing_is_cut_off(steps: list[Step]) -> None:
    _, log, seen = play(steps, "clip")
    assert seen == Counter(all_rows(log))


@settings(max_examples=100, deadline=None)
@given(st.lists(turns.map(lambda turn: (turn[2], turn[3])), max_size=30))
def test_alone_with_exact_replay_a_batch_id_always_has_the_same_rows(
    steps: list[tuple[int | None, Cut]],
) -> None:
    group, log = Group(), FakeLog({("t", p): 20 for p in range(PARTITIONS)})
    query = Query(group, log, "exact")
    batches: dict[int, Counter[tuple[int, int]]] = {}
    for limit, cut in [*steps, *[(None, Cut.NOWHERE)] * 4]:
        log.end["t", 0] += 1
        before = query.sink.copy()
        query.trigger(limit, cut)
        written = query.sink - before
        if written:
            assert batches.setdefault(len(query.logged), written) == written
    everything = sum(batches.values(), Counter())
    assert set(everything.values()) == {1}, "an idempotent sink holds every row once"
    assert {(p, o) for (_, p), end in log.end.items() for o in range(end - 4)} <= everything.keys()
