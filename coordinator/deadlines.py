"""All deadlines of a shard machine in one heap with lazy deletion.

Moving a deadline later costs one attribute store: the heap entry stays where it is, is found early when it
pops, and is pushed again for the time that holds by then. That is what makes a heartbeat cheap.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

NEVER = 1 << 62
"""Due time of a deadline that is not running."""

_COMPACT_ABOVE = 64


@dataclass(slots=True, eq=False, repr=False)
class Deadline:
    """One thing that is due at some time. `due_ms` may be stored to directly if it only moves LATER."""

    due_ms: int = field(default=NEVER, init=False)
    armed_ms: int = field(default=NEVER, init=False)
    """Its earliest heap entry; entries for other times are stale."""


D = TypeVar("D", bound=Deadline)


class DeadlineHeap(Generic[D]):
    """Deadlines by due time; equal times in the order of arming."""

    __slots__ = ("_heap", "_sequence", "_useless", "changes")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, D]] = []
        self._sequence = 0
        self._useless = 0
        self.changes = 0
        """How often a deadline was armed or cancelled."""

    def arm(self, deadline: D, due_ms: int) -> None:
        """Start or move a deadline, to an earlier or a later time."""
        self.changes += 1
        deadline.due_ms = due_ms
        if due_ms < deadline.armed_ms:
            moved = deadline.armed_ms != NEVER
            self._push(deadline, due_ms)
            if moved:  # the later entry is of no use any more
                self._count_useless()

    def cancel(self, deadline: D) -> None:
        """It will not fire. Cancelled entries leave the heap when they pop, or all at once when they are
        many."""
        if deadline.due_ms != NEVER:
            self.changes += 1
            deadline.due_ms = NEVER
            self._count_useless()

    def clear(self) -> None:
        """None of them fires."""
        self._heap.clear()
        self._useless = 0

    def _count_useless(self) -> None:
        self._useless += 1
        if self._useless > _COMPACT_ABOVE and self._useless * 2 > len(self._heap):
            self._compact()

    def next_ms(self) -> int | None:
        """When the earliest entry pops: never later than the earliest deadline, sometimes earlier."""
        while self._heap:
            entry_ms, _, deadline = self._heap[0]
            if entry_ms == deadline.armed_ms and deadline.due_ms != NEVER:
                return entry_ms
            self._pop()
        return None

    def due(self, now_ms: int) -> Iterator[D]:
        """Deadlines that are due, one after the other, each no longer running when it is given out. Deadlines
        that are armed for `now_ms` or earlier meanwhile are included."""
        while self._heap and self._heap[0][0] <= now_ms:
            deadline = self._pop()
            if deadline is None or deadline.due_ms == NEVER:
                continue
            if deadline.due_ms > now_ms:  # it was moved later: wait for the time that holds now
                self._push(deadline, deadline.due_ms)
                continue
            deadline.due_ms = NEVER
            yield deadline

    def _push(self, deadline: D, due_ms: int) -> None:
        deadline.armed_ms = due_ms
        self._sequence += 1
        heappush(self._heap, (due_ms, self._sequence, deadline))

    def _pop(self) -> D | None:
        """Take the top entry off; its deadline, or None if the entry was stale."""
        entry_ms, _, deadline = heappop(self._heap)
        if entry_ms != deadline.armed_ms:
            return None
        deadline.armed_ms = NEVER
        return deadline

    def _compact(self) -> None:
        live = []
        for entry in self._heap:
            deadline = entry[2]
            if deadline.due_ms != NEVER and entry[0] == deadline.armed_ms:
                live.append(entry)
            elif entry[0] == deadline.armed_ms:
                deadline.armed_ms = NEVER
        heapify(live)
        self._heap = live
        self._useless = 0

    def __len__(self) -> int:
        return len(self._heap)
