"""How far the records of one partition are processed, where they end in another order than they came in.

No I/O here. The group's committed offset says only where the first record stands that is not done; what is
done beyond it goes into the commit's metadata, so that a restart, or another member, does not do it again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise

from ringleader.clients.model import OffsetAndMetadata

PREFIX = "done:"
"""Begins the metadata of such a commit. Behind it stand lengths in base 36, between commas, from the
committed offset on: a count of offsets to do, a count of offsets done, and so on."""
METADATA_MAX_LENGTH = 3_000
"""Characters; Kafka takes 4,096 bytes (`offset.metadata.max.bytes`). The rest is done again."""
DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"

Run = tuple[int, int]
"""Offsets that are done: the first one, and the one behind the last."""


class Progress:
    """The records of one partition that are handed out and not done, from one position on."""

    __slots__ = ("_before", "_open")

    def __init__(self, before: Iterable[Run] = ()) -> None:
        """`before`: what was done beyond the position by then."""
        self._before = deque(before)
        self._open: dict[int, int] = {}

    def __len__(self) -> int:
        """Records that are handed out and not done."""
        return len(self._open)

    def begin(self, offset: int, epoch: int) -> bool:
        """The record there is handed out; offsets come in their order. False: it was done before. `epoch`:
        the leader epoch of the record before it."""
        before = self._before
        while before and before[0][1] <= offset:
            before.popleft()
        if before and before[0][0] <= offset:
            return False
        self._open[offset] = epoch
        return True

    def done(self, offset: int) -> None:
        """It is processed."""
        del self._open[offset]

    def reached(self, position: int, epoch: int) -> OffsetAndMetadata:
        """The offset and metadata to commit when all before that position is handed out. `epoch`: that of
        the record before the position."""
        first = next(iter(self._open), None)
        if first is not None:
            epoch = self._open[first]
        offset, *runs = self._runs(position)
        return OffsetAndMetadata(offset[1], encode(offset[1], runs), epoch)

    def _runs(self, position: int) -> Iterator[Run]:
        """The offsets that are done: before the first that is not, and behind it, joined."""
        first = next(iter(self._open), position)
        last = first, first
        handed = ((one + 1, other) for one, other in pairwise(chain(self._open, (position,))))
        for run in chain(handed, self._before):
            if run[0] > last[1]:
                yield last
                last = run
            else:
                last = last[0], max(last[1], run[1])
        yield last


def encode(offset: int, runs: Iterable[Run]) -> str:
    """The metadata of a commit at that offset; "" when nothing behind it is done."""
    lengths: list[str] = []
    at, size = offset, len(PREFIX)
    for first, after in runs:
        if first == after:
            continue
        pair = f"{_base36(first - at)},{_base36(after - first)}"
        size += len(pair) + 1
        if size > METADATA_MAX_LENGTH:
            break
        lengths.append(pair)
        at = after
    return PREFIX + ",".join(lengths) if lengths else ""


def decode(offset: int, metadata: str) -> list[Run]:
    """The offsets that are done beyond the committed one; none if the metadata is another application's."""
    if not metadata.startswith(PREFIX) or len(metadata) > METADATA_MAX_LENGTH:
        return []
    try:
        lengths = [int(one, 36) for one in metadata[len(PREFIX) :].split(",")]
    except ValueError:
        return []
    if len(lengths) % 2 or min(lengths) < 1:
        return []
    runs, at = [], offset
    for todo, done in zip(lengths[::2], lengths[1::2], strict=True):
        runs.append((at + todo, at + todo + done))
        at += todo + done
    return runs


def _base36(number: int) -> str:
    digits = ""
    while number:
        number, digit = divmod(number, 36)
        digits = DIGITS[digit] + digits
    return digits
