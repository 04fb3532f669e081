"""Several queries in one group, cut off anywhere: whatever happens, every record is processed.

A model of Spark's engine (offset log, sink, commit log) and of a group, eager or cooperative, drives the
source's logic; Hypothesis chooses what happens next, and where a process dies.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from ringleader.clients.model import TopicPartition
from ringleader.spark_bridge.batch.document import OffsetDocument
from ringleader.spark_bridge.group.driver import SourceDriver
from ringleader.spark_bridge.options import stream_options
from tests.spark_bridge.fakes import QUICK, FakeLog
from tests.spark_bridge.simulated_group import Group, Members
from tests.support.shares import share

PARTITIONS = 4
# How many members each query has.
QUERIES = (1, 2, 1)

Row = tuple[int, int]


class Cut(Enum):
    """Where a process dies within a trigger."""

    NOWHERE = 0
    PLANNED = 1
    LOGGED = 2
    WRITTEN = 3
    COMMITTED = 4


Step = tuple[str, int, int | None, Cut]


@dataclass
class Query:
    """One query: what Spark keeps on disk, and the process that runs now, if one does."""

    group: Group
    log: FakeLog
    policy: str
    member_count: int
    durable: set[Row]
    sink: Counter[Row] = field(default_factory=Counter)
    logged: list[Any] = field(default_factory=list)
    committed: int = 0
    driver: SourceDriver | None = None
    members: Members | None = None

    def trigger(self, limit: int | None, cut: Cut) -> bool:
        """One turn of Spark's loop; whether a batch ran."""
        if self.driver is None:
            self.members = Members(self.group, f"q{id(self)}")
            given = {
                "kafka.bootstrap.servers": "x:1",
                "subscribe": "t",
                "kafka.group.id": "g",
                "parallelism": "1",
                "members": str(self.member_count),
                "startingOffsets": "earliest",
                "replayPolicy": self.policy,
            }
            self.driver = SourceDriver(stream_options(given), self.members, self.log, QUICK)
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
        assert self.members is not None
        if self.driver._batch is None:
            # A replay waits for its assignment; here others may have to move first.
            self.driver._start(OffsetDocument.from_json(self.logged[-1], "g"))
            self.group.settle()
            if not self.members.everybody_here():
                return False
        tasks = self.driver.slices(self.logged[-1])
        if cut is Cut.LOGGED:
            self.kill()
            return True
        rows = [
            (partition, offset)
            for task in tasks
            for _, partition, start, end in task
            for offset in range(start, end)
        ]
        # Anything may happen in the group while the tasks run.
        self.group.settle()
        self.sink.update(rows)
        if cut is Cut.WRITTEN:
            self.kill()
            return True
        self.committed = len(self.logged)
        self.durable.update(rows)
        if cut is Cut.COMMITTED:
            self.kill()
        return True

    def kill(self) -> None:
        """The process dies; the group finds out by its session timeout, at the next rebalance."""
        assert self.members is not None
        self.members.leave("")
        self.driver = self.members = None

    def stop(self) -> None:
        if self.driver is not None:
            self.driver.stop()
            self.driver = self.members = None


# Most turns go well: a process that always dies at once never meets the others.
cuts = st.sampled_from([Cut.NOWHERE] * 16 + list(Cut))
numbers = st.integers(0, len(QUERIES) - 1)
turns = st.tuples(st.just("trigger"), numbers, st.none() | st.integers(1, 8), cuts)


def events(*names: str) -> st.SearchStrategy[Step]:
    return st.tuples(st.sampled_from(names), numbers, st.none(), st.just(Cut.NOWHERE))


others = events("produce", "produce", "stop", "kill", "rebalance", "expire", "fence", "notice")
steps_of_many = st.lists(turns | turns | turns | others, min_size=15, max_size=80)
calm_steps = st.lists(
    turns.map(lambda turn: (*turn[:3], Cut.NOWHERE)) | events("produce", "rebalance"),
    min_size=15,
    max_size=60,
)


class World:
    """The queries, their group, and what has to hold all the time."""

    def __init__(self, policy: str, cooperative: bool) -> None:
        self.log = FakeLog({("t", p): 5 for p in range(PARTITIONS)})
        self.durable: set[Row] = set()
        self.group = Group(list(self.log.end), cooperative, self.check_commit)
        self.queries = [
            Query(self.group, self.log, policy, member_count, self.durable) for member_count in QUERIES
        ]

    def check_commit(self, offsets: dict[TopicPartition, int]) -> None:
        """Nothing is committed that Spark has not logged as finished, here or in another query, and nothing
        that takes the group back."""
        for (topic, partition), offset in offsets.items():
            assert offset >= self.group.offsets.get((topic, partition), 0), "the group is taken back"
            missing = {(partition, n) for n in range(offset)} - self.durable
            assert not missing, f"{offset} was committed, but {sorted(missing)} are in no finished batch"

    def play(self, steps: list[Step]) -> Counter[Row]:
        """Take the steps, then go on until nothing is left to do; how often each row was seen."""
        for step in steps:
            self._step(*step)
            self.group.settle()
        quiet = 0
        for _ in range(300):
            for query in self.queries:
                for member in query.members.members if query.members else ():
                    self.group.notice(member)
            quiet = 0 if sum([query.trigger(None, Cut.NOWHERE) for query in self.queries]) else quiet + 1
            self.group.settle()
            if quiet == 8:
                break
        assert quiet == 8, "the queries do not come to rest"
        return sum((query.sink for query in self.queries), Counter())

    def _step(self, what: str, which: int, limit: int | None, cut: Cut) -> None:
        query = self.queries[which]
        first = query.members.members[0] if query.members and query.members.members else None
        if what == "trigger":
            query.trigger(limit, cut)
        elif what == "produce":
            self.log.end["t", which] += 4
        elif what == "stop":
            query.stop()
        elif what == "kill" and query.driver is not None:
            query.kill()
        elif what == "rebalance":
            self.group.rebalance()
        elif what == "expire":
            self.group.expire()
        elif what == "fence" and first is not None:
            self.group.fence(first)
        elif what == "notice" and first is not None:
            self.group.notice(first)

    def all_rows(self) -> set[Row]:
        return {(p, offset) for (_, p), end in self.log.end.items() for offset in range(end)}


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


# A batch that is run again after another member went on beyond it: its end must not be committed.
WENT_ON: list[Step] = [
    *[("trigger", 0, None, Cut.LOGGED)] * 3,
    ("kill", 0, None, Cut.NOWHERE),
    ("produce", 0, None, Cut.NOWHERE),
    *[("trigger", 2, None, Cut.NOWHERE)] * 6,
    ("stop", 2, None, Cut.NOWHERE),
    *[("trigger", 0, None, Cut.NOWHERE)] * 4,
]


@settings(max_examples=share(50, whole=200), deadline=None)
@given(steps_of_many, st.sampled_from(["clip", "exact"]), st.booleans())
@example(TAKEN_OVER, "clip", False)
@example(TAKEN_OVER, "clip", True)
@example(WENT_ON, "exact", True)
def test_every_record_is_processed_whatever_is_cut_off(
    steps: list[Step], policy: str, cooperative: bool
) -> None:
    world = World(policy, cooperative)
    seen = world.play(steps)
    assert not world.all_rows() - seen.keys()
    assert world.group.offsets == world.log.end


@settings(max_examples=share(25, whole=80), deadline=None)
@given(calm_steps, st.booleans())
def test_nothing_is_processed_twice_when_nothing_is_cut_off(steps: list[Step], cooperative: bool) -> None:
    world = World("clip", cooperative)
    assert world.play(steps) == Counter(world.all_rows())


@settings(max_examples=share(20, whole=60), deadline=None)
@given(st.lists(turns.map(lambda turn: (turn[2], turn[3])), max_size=30), st.integers(1, 3), st.booleans())
def test_alone_with_exact_replay_a_batch_id_always_has_the_same_rows(
    steps: list[tuple[int | None, Cut]], member_count: int, cooperative: bool
) -> None:
    log = FakeLog({("t", p): 20 for p in range(PARTITIONS)})
    group = Group(list(log.end), cooperative)
    query = Query(group, log, "exact", member_count, set())
    batches: dict[int, Counter[Row]] = {}
    for limit, cut in [*steps, *[(None, Cut.NOWHERE)] * 40]:
        log.end["t", 0] += 1
        before = query.sink.copy()
        query.trigger(limit, cut)
        group.settle()
        written = query.sink - before
        if written:
            assert batches.setdefault(len(query.logged), written) == written
    everything = sum(batches.values(), Counter())
    assert set(everything.values()) == {1}, "an idempotent sink holds every row once"
    assert {(p, o) for (_, p), end in log.end.items() for o in range(end - 4)} <= everything.keys()
