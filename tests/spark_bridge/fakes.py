"""A group and a topic log in memory, for the source's logic without sockets or a JVM."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Future

from ringleader.clients.model import EARLIEST, TopicPartition
from ringleader.spark_bridge.batch.document import OffsetDocument
from ringleader.spark_bridge.group.driver import SourceDriver, Timing
from ringleader.spark_bridge.group.membership import (
    CommitRefusedError,
    GroupUnavailableError,
    MemberCommit,
    Ownership,
)
from ringleader.spark_bridge.options import stream_options
from ringleader.spark_bridge.values import Committed, CommitToken, SliceRange

QUICK = Timing(
    first_assignment_wait_s=0.0,
    assignment_wait_s=0.0,
    idle_wait_s=0.0,
    idle_poll_s=0.001,
    missing_s=0.0,
    no_topic_s=0.0,
)


class FakeGroup:
    """The members of one query, as a group treats them. ``offsets`` and ``tokens`` outlive members, as a
    coordinator's would."""

    def __init__(
        self, offsets: dict[TopicPartition, int], tokens: dict[TopicPartition, tuple[int, CommitToken | None]]
    ) -> None:
        self.offsets = offsets
        # With the offset that they came with: a test that writes another one into `offsets` is a stranger.
        self._tokens = tokens
        self.generation = 0
        self.commits: list[dict[TopicPartition, int]] = []
        self.requested: list[frozenset[TopicPartition]] = []
        self.away = 0
        self.unknown_topic = False
        self.fenced = False
        self.between = False
        self.strangers: list[str] = []
        self.nobody = False
        self.rebalanced: list[str] = []
        self.left: list[tuple[str, bool]] = []
        self.ownership: Ownership | None = None
        self._first: list[frozenset[TopicPartition]] | None = None

    def empty(self) -> bool:
        return self.nobody

    def start(self, ownership: Ownership, alone: bool) -> None:
        assert self.ownership is None, "joined twice"
        self.ownership = ownership
        if self._first is not None:
            self.give(*self._first)

    def grow(self, member_count: int) -> None:
        assert self.ownership is not None
        self.ownership.grow(member_count)

    def rebalance(self, reason: str) -> None:
        self.rebalanced.append(reason)

    def give(self, *shares: Iterable[TopicPartition]) -> None:
        """A rebalance that ends with these shares of the query's members."""
        if self.ownership is None:
            self._first = [frozenset(share) for share in shares]
            return
        self.generation += 1
        for index, share in enumerate(shares):
            self.ownership.assigned(index, self.generation, f"member-{index}", share)

    def revoke(self, *partitions: TopicPartition, index: int = 0) -> Future[None]:
        """The group asks for these, or (none named) for everything."""
        assert self.ownership is not None
        return self.ownership.revoke(index, self.generation, partitions or None)

    def lose(self, *partitions: TopicPartition, index: int = 0) -> None:
        """The group took these, or (none named) everything."""
        assert self.ownership is not None
        self.ownership.lost(index, partitions or None)

    def commit(
        self, parts: Sequence[MemberCommit]
    ) -> list[CommitRefusedError | GroupUnavailableError | None]:
        return [self._commit(part) for part in parts]

    def committed(self, partitions: frozenset[TopicPartition]) -> dict[TopicPartition, Committed]:
        if self.away:
            self.away -= 1
            raise GroupUnavailableError("COORDINATOR_LOAD_IN_PROGRESS")
        self.requested.append(partitions)
        found = {tp: self.offsets[tp] for tp in partitions if tp in self.offsets}
        kept = {tp: self._tokens.get(tp, (-1, None)) for tp in found}
        return {tp: Committed(at, kept[tp][1] if kept[tp][0] == at else None) for tp, at in found.items()}

    def stable(self) -> bool:
        return not self.between

    def newest_generation(self) -> int:
        return self.generation

    def others(self) -> list[str]:
        return self.strangers

    def leave(self, reason: str, for_good: bool = False) -> None:
        self.left.append((reason, for_good))

    def _commit(self, part: MemberCommit) -> CommitRefusedError | GroupUnavailableError | None:
        if self.away:
            self.away -= 1
            return GroupUnavailableError("COORDINATOR_LOAD_IN_PROGRESS", self.unknown_topic)
        if self.fenced or part.generation != self.generation:
            return CommitRefusedError("ILLEGAL_GENERATION")
        self.commits.append(dict(part.offsets))
        self.offsets.update(part.offsets)
        self._tokens.update({tp: (offset, part.token) for tp, offset in part.offsets.items()})
        return None


class FakeLog:
    """Log starts and ends of partitions."""

    def __init__(self, ends: dict[TopicPartition, int]) -> None:
        self.end = ends
        self.start = dict.fromkeys(ends, 0)
        self.ids: dict[str, bytes] = {}
        self.closed = False

    def topics(self, pattern: str) -> tuple[str, ...]:
        return tuple(sorted({topic for topic, _ in self.end if re.fullmatch(pattern, topic)}))

    def offsets_for_times(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        return {tp: when if when < self.end[tp] else None for tp, when in wanted.items() if tp in self.end}

    def partitions(self, topics: tuple[str, ...]) -> list[TopicPartition]:
        return [tp for tp in self.end if tp[0] in topics]

    def offsets(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        return {
            tp: self.start.get(tp, 0) if when == EARLIEST else self.end[tp]
            for tp, when in wanted.items()
            if tp in self.end
        }

    def topic_id(self, topic: str) -> bytes:
        return self.ids.get(topic, b"1" * 16)

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
            "members": "1",
        }
        if "weight" in options or "members" in options:
            del given["members"]
        self._given = {k: v for k, v in (given | {"startingOffsets": "earliest"} | options).items() if v}
        self.options = stream_options(self._given)
        self.tokens: dict[TopicPartition, tuple[int, CommitToken | None]] = {}
        self.group = FakeGroup(self.offsets, self.tokens)
        self.driver = SourceDriver(self.options, self.group, self.log, QUICK)
        self.start = OffsetDocument("g").to_json()

    def restart(self, *owned: int, **options: str) -> None:
        """A new process with the same checkpoint, and perhaps other options; it will be given these
        partitions."""
        self._given |= options
        self.options = stream_options(self._given)
        self.group = FakeGroup(self.offsets, self.tokens)
        self.driver = SourceDriver(self.options, self.group, self.log, QUICK)
        self.assign(*owned)

    def assign(self, *partitions: int) -> None:
        """A share of the one member."""
        self.group.give([("t", p) for p in partitions])

    def share(self, *shares: Iterable[int]) -> None:
        """Shares of all members."""
        self.group.give(*[[("t", p) for p in share] for share in shares])

    def reset(self, partition: int, offset: int) -> None:
        """An operator sets the group's offset."""
        self.offsets["t", partition] = offset
        self.tokens.pop(("t", partition), None)

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
        """The offsets that the tasks of the batch that ends at ``start`` are given to read."""
        found: list[SliceRange] = [split for task in self.driver.slices(self.start) for split in task]
        return {split.partition: (split.start, split.end) for split in found}

    def committed(self) -> dict[int, int]:
        return {p: offset for (_, p), offset in sorted(self.offsets.items())}
