"""The committed offsets of one group: the newest of each partition, how often it comes, and what is kept of
all.

A commit is by far the most frequent fact: it costs a few field writes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ringleader.insight.inference.facts import COMMIT_EVERY_MS, Output, Source
from ringleader.insight.model import Commit, Event, EventKind, TopicPartition

FORMAT = 1

NEVER = -(2**62)
_TOGETHER_MS = 2_000
"""Resets and deletions nearer to each other than this are one event."""

_SAME_MS = 50
"""Commits nearer to each other than this are one, as far as the usual time between them is concerned: clients
commit once more when they give partitions up."""

_REGULAR = 3
"""So many commits make a usual time between them."""


class Slot:
    """A partition's committed offset."""

    __slots__ = (
        "at_ms", "commits", "count", "fresh", "gap_ms", "kept_ms", "key", "moved_ms", "offset", "partition",
        "topic",
    )  # fmt: skip

    def __init__(self, commits: Commits, topic: str, partition: int) -> None:
        self.commits = commits
        self.key: bytes | None = None
        """Of its record, where the engine finds it by that."""
        self.topic = topic
        self.partition = partition
        self.offset = -1
        self.at_ms = NEVER
        """Of the newest commit."""
        self.moved_ms = NEVER
        """Of the last one that was ahead of the one before."""
        self.gap_ms = 0
        """The longest time between two commits of its owner, lately."""
        self.count = 0
        """Commits of its owner."""
        self.kept_ms = NEVER
        """Of the newest commit that came out."""
        self.fresh = True
        """Nothing was committed in this generation."""


class Commits:
    """All of a group. `out` gets what is kept, `changed` the group's name with every commit, `groups_changed`
    where a commit told the group itself something. `events`: that offsets were reset or deleted comes out."""

    def __init__(
        self,
        group: str,
        out: list[Output],
        changed: set[str],
        groups_changed: set[str],
        *,
        events: bool = True,
    ) -> None:
        self.group = group
        self.slots: dict[TopicPartition, Slot] = {}
        self.nobody = False
        """The group had members and has none: who commits now is a tool."""
        self.on_first: Callable[[int], bool] | None = None
        """Called with the time of a partition's first commit in a generation; whether that changed it."""
        self._out = out
        self._changed = changed
        self._groups_changed = groups_changed
        self._events = events
        self._unkept: set[Slot] = set()
        self._burst: _Burst | None = None

    def slot(self, topic: str, partition: int) -> Slot:
        """Of a partition, made if there is none."""
        found = self.slots.get((topic, partition))
        if found is None:
            found = self.slots[topic, partition] = Slot(self, topic, partition)
        return found

    def of(self, partitions: Iterable[TopicPartition]) -> Iterator[Slot]:
        """Those that there are, of these partitions, with a commit."""
        for one in partitions:
            slot = self.slots.get(one)
            if slot is not None and slot.count:
                yield slot

    def commit(self, slot: Slot, partition: int, position: int, at_ms: int, offset: int) -> None:
        """A commit. `partition` and `position`: where its record stands."""
        if offset != slot.offset:
            if offset < slot.offset or (self.nobody and slot.offset >= 0):
                self._moved(Source(partition, position), at_ms, slot, offset)
            slot.offset = offset
            slot.moved_ms = at_ms
        gap_ms = at_ms - slot.at_ms
        slot.at_ms = at_ms
        if slot.fresh:
            slot.fresh = False
            slot.count += 1
            if self.on_first is not None and self.on_first(at_ms):
                self._groups_changed.add(self.group)
            self._keep(slot)
        else:
            if gap_ms > _SAME_MS:
                slot.count += 1
                if gap_ms > slot.gap_ms:
                    slot.gap_ms = gap_ms
                else:
                    slot.gap_ms -= (slot.gap_ms - gap_ms) >> 3
            if at_ms - slot.kept_ms >= COMMIT_EVERY_MS:
                self._keep(slot)
            else:
                self._unkept.add(slot)
        self._changed.add(self.group)

    def delete(self, source: Source, at_ms: int, topic: str, partition: int) -> None:
        """A tombstone."""
        slot = self.slots.get((topic, partition))
        if slot is None or slot.offset < 0:
            return
        slot.offset, slot.at_ms, slot.kept_ms, slot.count, slot.fresh = -1, NEVER, NEVER, 0, True
        self._unkept.discard(slot)
        burst = self._bursting(source, at_ms, EventKind.OFFSETS_DELETED)
        burst.partitions[topic, partition] = 0
        self._say(burst)

    def generation(self, moved: Iterable[TopicPartition]) -> None:
        """A generation ends: the last commits before it are kept, the first ones after it will be. Partitions
        that `moved` have owners that may commit at other times."""
        for slot in self.slots.values():
            if slot.kept_ms != slot.at_ms:
                self._keep(slot)
            slot.fresh = True
        self.moved(moved)
        self._changed.add(self.group)

    def moved(self, partitions: Iterable[TopicPartition]) -> None:
        """They have another owner."""
        for slot in self.of(partitions):
            slot.count = 0
            slot.gap_ms = 0

    def tick(self, now_ms: int) -> None:
        """What is old and newest is kept."""
        due = [slot for slot in self._unkept if now_ms - slot.at_ms >= COMMIT_EVERY_MS]
        due.sort(key=lambda slot: (slot.topic, slot.partition))
        for slot in due:
            self._keep(slot)
            self._changed.add(self.group)

    def _keep(self, slot: Slot) -> None:
        slot.kept_ms = slot.at_ms
        self._unkept.discard(slot)
        self._out.append(Commit(self.group, slot.topic, slot.partition, slot.at_ms, slot.offset))

    def _moved(self, source: Source, at_ms: int, slot: Slot, offset: int) -> None:
        burst = self._bursting(source, at_ms, EventKind.OFFSETS_RESET)
        burst.partitions[slot.topic, slot.partition] = offset - slot.offset
        self._say(burst)

    def _bursting(self, source: Source, at_ms: int, kind: EventKind) -> _Burst:
        burst = self._burst
        if burst is None or burst.kind is not kind or at_ms - burst.last_ms > _TOGETHER_MS:
            name = "reset" if kind is EventKind.OFFSETS_RESET else "deleted"
            burst = _Burst(f"offsets-{source.partition}-{source.offset}-{name}", kind, at_ms)
            self._burst = burst
        burst.last_ms = at_ms
        return burst

    def _say(self, burst: _Burst) -> None:
        self._changed.add(self.group)
        if not self._events:
            return
        count = len(burst.partitions)
        where = f"{count} partition{'s' if count != 1 else ''} of {_topics(burst.partitions)}"
        if burst.kind is EventKind.OFFSETS_DELETED:
            text = f"The committed offsets of {where} were deleted: expired, or by an operator."
        else:
            back = -sum(by for by in burst.partitions.values() if by < 0)
            ahead = sum(by for by in burst.partitions.values() if by > 0)
            moved = " and ".join(
                f"{by:,} records {way}" for by, way in ((back, "back"), (ahead, "ahead")) if by
            )
            who = " by a tool, as the group had no members" if self.nobody else ""
            text = f"Committed offsets of {where} went {moved}{who}."
        self._out.append(Event(burst.id, self.group, burst.at_ms, burst.kind, text))

    def dump(self) -> bytes:
        """One small row."""
        slots = [
            (
                one.topic,
                one.partition,
                one.offset,
                one.at_ms,
                one.gap_ms,
                one.count,
                one.kept_ms,
                one.fresh,
                one.moved_ms,
            )
            for one in self.slots.values()
        ]
        if not slots:
            return b""
        said: dict[str, Any] = {"format": FORMAT, "slots": slots}
        if self._burst is not None:
            burst = self._burst
            lost = [[*where, by] for where, by in burst.partitions.items()]
            said["burst"] = [burst.id, burst.kind, burst.at_ms, burst.last_ms, lost]
        return json.dumps(said, separators=(",", ":")).encode()

    def load(self, data: bytes) -> None:
        """What `dump` made. Raises `ValueError`."""
        said = checked(data)
        for topic, partition, *rest in said["slots"]:
            slot = self.slot(topic, partition)
            slot.offset, slot.at_ms, slot.gap_ms, slot.count, slot.kept_ms, slot.fresh, slot.moved_ms = rest
            if slot.kept_ms != slot.at_ms:
                self._unkept.add(slot)
        if "burst" in said:
            name, kind, at_ms, last_ms, lost = said["burst"]
            self._burst = _Burst(name, EventKind(kind), at_ms)
            self._burst.last_ms = last_ms
            self._burst.partitions = {(topic, number): by for topic, number, by in lost}


def usual_gap_ms(slots: Iterable[Slot]) -> int | None:
    """The longest usual time between commits; None where there were too few to say."""
    gaps = [slot.gap_ms for slot in slots if slot.count >= _REGULAR]
    return max(gaps, default=None)


def newest_ms(slots: Iterable[Slot]) -> int | None:
    """Of their newest commit."""
    return max((slot.at_ms for slot in slots), default=None)


def checked(data: bytes) -> Any:
    """A snapshot's JSON. Raises `ValueError` for a format that is not known here."""
    said = json.loads(data)
    found = said.get("format") if isinstance(said, dict) else None
    if found != FORMAT:
        raise ValueError(
            f"a snapshot of inference has format {found!r}; this version knows {FORMAT}: use a newer one"
        )
    return said


class _Burst:
    """Offsets that moved or went at about one time."""

    __slots__ = ("at_ms", "id", "kind", "last_ms", "partitions")

    def __init__(self, name: str, kind: EventKind, at_ms: int) -> None:
        self.id = name
        self.kind = kind
        self.at_ms = at_ms
        self.last_ms = at_ms
        self.partitions: dict[TopicPartition, int] = {}


def _topics(partitions: Iterable[TopicPartition]) -> str:
    names = sorted({topic for topic, _ in partitions})
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more topics" if len(names) > 3 else "")
