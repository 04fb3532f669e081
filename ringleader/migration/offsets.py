"""Which offset a record has on the cluster, from the one that it has here.

A partition there begins at 0, and has no markers of transactions and no records of aborted ones. So offsets
differ by what is missing before them: nothing, where the log still begins at 0 and nobody wrote in
transactions.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right


class OffsetMap:
    """Of one partition: runs of records that follow each other on both sides."""

    def __init__(self, base: int = 0) -> None:
        """`base`: the offset of the first record there."""
        self._sources = array("q")
        self._targets = array("q")
        self.start = base
        self.end = base
        """The offset that the next record gets there."""
        self._next = -1
        self._source_end = base

    @property
    def count(self) -> int:
        """How many records there are."""
        return self.end - self.start

    def add(self, offset: int, count: int) -> None:
        """Add `count` records, which are here from `offset` on."""
        if offset != self._next:
            self._sources.append(offset)
            self._targets.append(self.end)
        self._next = offset + count
        self.end += count

    def translate(self, offset: int) -> int:
        """The offset there of what is to be read at this offset here, or next after it. One before the first
        record becomes the first, one behind the last becomes the end."""
        at = bisect_right(self._sources, offset) - 1
        if at < 0:
            return self.start
        last = at + 1 == len(self._targets)
        after = self.end if last else self._targets[at + 1]
        return min(self._targets[at] + offset - self._sources[at], after)

    def finish(self, source_end: int) -> None:
        """There are no more; the next record here would have that offset."""
        self._source_end = source_end

    @property
    def shifted(self) -> bool:
        """Whether any record has another offset there, or the next one would have."""
        runs = zip(self._sources, self._targets, strict=True)
        return self._source_end != self.end or any(source != target for source, target in runs)
