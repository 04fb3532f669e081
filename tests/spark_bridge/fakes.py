"""A group and a topic log in memory, for the source's logic without sockets or a JVM."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future

from ringleader.spark_bridge.driver import SourceDriver, Timing
from ringleader.spark_bridge.membership import CommitRefusedError, GroupUnavailableError, Hold, Share
from ringleader.spark_bridge.offsets import EARLIEST, OffsetDocument, TopicPartition
from ringleader.spark_bridge.options import stream_options
from ringleader.spark_bridge.planning import SliceRange

QUICK = Timing(first_share_wait_s=0.0, share_wait_s=0.0, idle_wait_s=0.0, idle_poll_s=0.001)


class FakeGroup:
    """One member's view of a group. ``offsets`` outlives members, as a coordinator's would."""

    def __init__(self, offsets: dict[TopicPartition, int]) -> None:
        self.offsets = offsets
        self.generation = 0
        self.commits: list[dict[TopicPartition, int]] = []
        self.away = 0
        self.fenced = False
        self.left: list[str] = []
        self.hold: Hold | None = None
        self._first: frozenset[TopicPartition] | None = None

    def start(self, hold: Hold) -> None:
        assert self.hold is None, "joined twice"
        self.hold = hold
        if self._first is not None:
            self._give(self._first)

    def assign(self, *partitions: TopicPartition) -> None:
        """A rebalance that ends with these partitions."""
        if self.hold is None:
            self._first = frozenset(partitions)
        else:
            self._give(frozenset(partitions))

    def revoke(self) -> Future[None]:
        assert self.hold is not None
        return self.hold.revoke()

    def commit(self, offsets: Mapping[TopicPartition, int], generation: int) -> None:
        self._reachable()
        if self.fenced or generation != self.generation:
            raise CommitRefusedError("ILLEGAL_GENERATION")
        self.commits.append(dict(offsets))
        self.offsets.update(offsets)

    def committed(self, partitions: frozenset[TopicPartition]) -> dict[TopicPartition, int]:
        self._reachable()
        return {tp: self.offsets[tp] for tp in partitions if tp in self.offsets}

    def leave(self, reason: str) -> None:
        self.left.append(reason)

    def _give(self, partitions: frozenset[TopicPartition]) -> None:
        assert self.hold is not None
        self.generation += 1
        self.hold.assigned(Share(self.generation, "member", partitions))

    def _reachable(self) -> None:
        if self.away:
            self.away -= 1
            raise GroupUnavailableError("COORDINATOR_LOAD_IN_PROGRESS")


class FakeLog:
    """Log starts and ends of partitions."""

    def __init__(self, ends: dict[TopicPartition, int]) -> None:
        self.end = ends
        self.start = dict.fromkeys(ends, 0)
        self.closed = False

    def partitions(self, topics: tuple[str, ...]) -> list[TopicPartition]:
        return [tp for tp in self.end if tp[0] in topics]

    def offsets(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        return {
            tp: (self.start if when == EARLIEST else self.end)[tp]
            for tp, when in wanted.items()
            if tp in self.end
        }

    def ends(self, wanted: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return {tp: self.end[tp] for tp in wanted if tp in self.end}

    def close(self) -> None:
        self.closed = True


class World:
    """Topic ``t`` of some partitions and a group, with one driver at a time, as Spark would run it."""

    def __init__(self, *ends: int, offsets: dict[int, int] | None = None, **options: str) -> None:
        self.offsets = {("t", p): offset for p, offset in (offsets or {}).items()}
        self.log = FakeLog({("t", p): end for p, end in enumerate(ends)})
        given = {
            "kafka.bootstrap.servers": "x:1",
            "subscribe": "t",
            "kafka.group.id": "g",
            "parallelism": "1",
        }
        self.options = stream_options(given | {"startingOffsets": "earliest"} | options)
        self.group = FakeGroup(self.offsets)
        self.driver = SourceDriver(self.options, self.group, self.log, QUICK)
        self.start = OffsetDocument("g").to_json()

    def restart(self, *owned: int) -> None:
        """A new process with the same checkpoint; it will be given these partitions."""
        self.group = FakeGroup(self.offsets)
        self.driver = SourceDriver(self.options, self.group, self.log, QUICK)
        self.assign(*owned)

    def assign(self, *partitions: int) -> None:
        self.group.assign(*[("t", p) for p in partitions])

    def produce(self, partition: int, rows: int) -> None:
        self.log.end["t", partition] += rows

    def plan(self, limit: int | None = None) -> dict[int, tuple[int, int]] | None:
        """One trigger: the ranges of the next batch by partition, None when there is none."""
        before = self.start
        self.start = self.driver.latest(before, limit)
        if self.start is before:
            return None
        document = OffsetDocument.from_json(self.start, "g")
        return {p: (found.start, found.end) for (_, p), found in document.ranges.items()}

    def read(self) -> dict[int, tuple[int, int]]:
        """What the tasks of the batch that ends at ``start`` are told to read."""
        found: list[SliceRange] = [piece for task in self.driver.slices(self.start) for piece in task]
        return {piece.partition: (piece.start, piece.end) for piece in found}

    def committed(self) -> dict[int, int]:
        return {p: offset for (_, p), offset in sorted(self.offsets.items())}
