"""The committed offsets of one group: the newest of each partition, how often it comes, and which are kept.

A commit is by far the most frequent fact: it costs a few field writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from ringleader.insight.codec import codec_of
from ringleader.insight.inference.facts import COMMIT_EVERY_MS, Output, Source
from ringleader.insight.model import Commit, Event, EventKind, TopicPartition

NEVER = -(2**62)
_TOGETHER_MS = 2_000
"""Resets and deletions nearer to each other than this are one event."""

_LATER_MS = 30_000
"""Metadata shows that a topic is deleted that much later at most."""

_SAME_MS = 50
"""Commits nearer to each other than this are one, as far as the usual time between them is concerned: clients
commit once more when they give partitions up."""

_REGULAR = 3
"""The number of commits that make a usual time between them."""


_SAVED = ("offset", "at_ms", "gap_ms", "count", "kept_ms", "fresh", "moved_ms")
"""Attributes of a slot that stand in a snapshot."""
_saved = attrgetter("topic", "partition", *_SAVED)


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
    """All of a group. `out` gets the commits that are kept, `changed` the group's name with every commit,
    `groups_changed` where a commit changed the group itself. `deleted` gives the topics that were deleted
    lately. `events`: resets and deletions of offsets come out."""

    def __init__(
        self,
        group: str,
        out: list[Output],
        changed: set[str],
        groups_changed: set[str],
        deleted: Callable[[], set[str]] = set,
        *,
        events: bool = True,
    ) -> None:
        self.group = group
        self.slots: dict[TopicPartition, Slot] = {}
        self.nobody = False
        """The group had members and has none: a tool commits now."""
        self.on_first: Callable[[int], bool] | None = None
        """Called with the time of a partition's first commit in a generation; whether that changed it."""
        self._out = out
        self._changed = changed
        self._groups_changed = groups_changed
        self._deleted = deleted
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

    def topics_deleted(self, at_ms: int) -> None:
        """Topics were seen to be deleted: offsets that went shortly before may have gone with them."""
        burst = self._burst
        if burst is None or burst.kind is not EventKind.OFFSETS_DELETED or at_ms - burst.last_ms > _LATER_MS:
            return
        if {topic for topic, _ in burst.partitions} <= self._deleted():
            self._say(burst)

    def generation(self, moved: Iterable[TopicPartition], *, nobody: bool = False) -> None:
        """A generation ends: the last commits before it are kept, the first ones after it will be. Partitions
        that `moved` have owners that may commit at other times. `nobody`: the group has no members now."""
        self.nobody = nobody
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
        """Keep newest commits that are old by now."""
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
            burst = _Burst(f"offsets-{source.partition}-{source.offset}-{name}", kind, at_ms, at_ms)
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
            how = "deleted: expired, or by an operator"
            if {topic for topic, _ in burst.partitions} <= self._deleted():
                how = "deleted with the topic"
            text = f"The committed offsets of {where} were {how}."
        else:
            back = -sum(by for by in burst.partitions.values() if by < 0)
            ahead = sum(by for by in burst.partitions.values() if by > 0)
            moved = " and ".join(
                f"{by:,} records {way}" for by, way in ((back, "back"), (ahead, "ahead")) if by
            )
            by_tool = " by a tool, as the group had no members" if self.nobody else ""
            text = f"Committed offsets of {where} went {moved}{by_tool}."
        self._out.append(Event(burst.id, self.group, burst.at_ms, burst.kind, text))

    def dump(self) -> dict[str, Any] | None:
        """The snapshot, as JSON; None: there is nothing to restore."""
        if not self.slots and not self.nobody:
            return None
        return {
            "slots": [_saved(slot) for slot in self.slots.values()],
            "burst": _BURST.write(self._burst),
            "nobody": self.nobody,
        }

    def load(self, saved: Mapping[str, Any]) -> None:
        """Take over a snapshot that `dump` of another one has made."""
        for topic, partition, *values in saved["slots"]:
            slot = self.slot(topic, partition)
            for name, value in zip(_SAVED, values, strict=True):
                setattr(slot, name, value)
            if slot.kept_ms != slot.at_ms:
                self._unkept.add(slot)
        self._burst, self.nobody = _BURST.read(saved["burst"]), saved["nobody"]


def usual_gap_ms(slots: Iterable[Slot]) -> int | None:
    """The longest usual time between commits; None where there were too few."""
    gaps = [slot.gap_ms for slot in slots if slot.count >= _REGULAR]
    return max(gaps, default=None)


def newest_ms(slots: Iterable[Slot]) -> int | None:
    """Of their newest commit."""
    return max((slot.at_ms for slot in slots), default=None)


@dataclass
class _Burst:
    """Offsets that moved or went at about one time."""

    id: str
    kind: EventKind
    at_ms: int
    last_ms: int
    partitions: dict[TopicPartition, int] = field(default_factory=dict)
    """By how much each moved."""


_BURST = codec_of(_Burst | None)


def _topics(partitions: Iterable[TopicPartition]) -> str:
    names = sorted({topic for topic, _ in partitions})
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more topics" if len(names) > 3 else "")
