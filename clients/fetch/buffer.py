"""The fetched records of one partition that have not been handed out. No I/O here.

Batches are checked and inflated when it is their turn, one at a time, and their records are decoded when the
application looks at them (`Batch`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from struct import Struct
from typing import NamedTuple, cast

from ringleader.protocol.columns import AbortedTransactions, BatchRows
from ringleader.protocol.errors import MalformedError
from ringleader.protocol.records import HEADER_BYTES, MAGIC, OVERHEAD_BYTES, BatchView, parse_header

_INT32, _INT64 = Struct(">i"), Struct(">q")
_LENGTH_AT, _MAGIC_AT, _LAST_DELTA_AT = 8, 16, 23

INLINE_RECORDS = 4_096
"""A batch with holes and more records takes some milliseconds to decode, and is decoded in a thread."""
HELD_MAX = 32
"""A batch that the application keeps holds no more than this multiple of its own bytes."""
HELD_RATIO = 8
"""The records of a partition hold no more than this multiple of their own bytes, of the answer that they came
in."""
INLINE_BYTES = 256 * 1024
"""One of more compressed bytes is inflated in a thread."""


class Chunk:
    """The records of one answer for one partition, from batch to batch."""

    __slots__ = ("_aborted", "_at", "_data")

    def __init__(self, data: bytes | memoryview, aborted: Sequence[tuple[int, int]] | None) -> None:
        """`aborted`: (producer id, first offset) of aborted transactions; None: they are delivered, too."""
        self._data = data
        self._at = 0
        self._aborted = None if aborted is None else AbortedTransactions(aborted)

    @property
    def is_over(self) -> bool:
        """Whether nothing is left of it."""
        return len(self._data) - self._at < HEADER_BYTES

    @property
    def size_bytes(self) -> int:
        """The bytes it takes as long as anything of it is left."""
        return len(self._data)

    def next_view(self, check_crcs: bool) -> tuple[BatchView, bool] | None:
        """The next batch, and whether its records are to be skipped; None at the end. Raises MalformedError;
        `at` then stays before the batch."""
        data, start = self._data, self._at
        if len(data) - start < HEADER_BYTES:
            return None
        header = parse_header(data, start)
        view = BatchView(data, start, header)
        end = start + OVERHEAD_BYTES + header.batch_length
        if end > len(data):
            self._at = len(data)  # cut off, as Kafka allows for the last one
            return None
        if check_crcs:
            view.check_crc()
        self._at = end
        skip = self._aborted is not None and self._aborted.drops(view)
        return view, skip or header.is_control

    def end_of_bad(self, position: int) -> int:
        """First offset after the batch that cannot be read: where the next one begins, else what its own
        header says, else the next offset."""
        data, start = self._data, self._at
        if len(data) - start < HEADER_BYTES:
            return position + 1
        (length,) = _INT32.unpack_from(data, start + _LENGTH_AT)
        behind = start + OVERHEAD_BYTES + length
        if length > 0 and len(data) - behind >= HEADER_BYTES and data[behind + _MAGIC_AT] == MAGIC:
            next_base = int(_INT64.unpack_from(data, behind)[0])
            if next_base > position:
                return next_base
        (base,) = _INT64.unpack_from(data, start)
        (delta,) = _INT32.unpack_from(data, start + _LAST_DELTA_AT)
        after = int(base + delta + 1)
        return after if base <= position < after else position + 1


def end_of(data: bytes | memoryview) -> int | None:
    """The offset after the last whole batch; None when there is none. Looks at no more than needed."""
    at, last, size = 0, -1, len(data)
    length_of = _INT32.unpack_from
    while size - at >= HEADER_BYTES:
        (length,) = length_of(data, at + _LENGTH_AT)
        if length < HEADER_BYTES - OVERHEAD_BYTES or at + OVERHEAD_BYTES + length > size:
            break
        last = at
        at += OVERHEAD_BYTES + length
    if last < 0:
        return None
    return int(_INT64.unpack_from(data, last)[0] + length_of(data, last + _LAST_DELTA_AT)[0] + 1)


class Part(NamedTuple):
    """Rows of one batch that are handed out together."""

    rows: BatchRows
    first: int
    length: int


def holder(data: bytes | memoryview) -> bytes | bytearray:
    """The object that holds the memory of these bytes: they themselves, or the buffer they are a view of."""
    return cast("bytearray", data.obj) if isinstance(data, memoryview) else data


def apart(parts: Sequence[Part]) -> Sequence[Part]:
    """The same rows, without the answers that they came in where those are much larger."""
    if not all(part.rows.is_open for part in parts):
        return parts
    own = sum(part.rows.size_bytes(part.length) for part in parts)
    holders = [holder(part.rows.view.data) for part in parts]
    held = {id(one): len(one) for one in holders}
    if sum(held.values()) + sum(part.rows.inflated_bytes for part in parts) <= HELD_MAX * own:
        return parts
    try:
        return [Part(*part.rows.cut(part.first, part.length), part.length) for part in parts]
    except MalformedError:
        return parts  # the look tells


class Buffer:
    """The chunks of one partition, and the batch of them whose turn it is."""

    __slots__ = ("_again", "_chunks", "rows")

    def __init__(self) -> None:
        self._chunks: deque[Chunk] = deque()
        self._again: list[BatchRows] = []
        """Batches that come before the chunks: they were handed out and came back."""
        self.rows: BatchRows | None = None
        """The batch that is being handed out, or is next."""

    def __bool__(self) -> bool:
        return bool(self._chunks or self._again) or self.rows is not None

    @property
    def fetched_bytes(self) -> int:
        """The bytes of its chunks."""
        return sum(chunk.size_bytes for chunk in self._chunks)

    @property
    def inflated_bytes(self) -> int:
        """The bytes of the batch that is being handed out, besides."""
        return 0 if self.rows is None else self.rows.inflated_bytes

    def add(self, chunk: Chunk) -> None:
        """An answer."""
        self._chunks.append(chunk)

    def next_view(self, check_crcs: bool) -> tuple[BatchView, bool] | None:
        """As `Chunk.next_view`, of all chunks."""
        while self._chunks:
            found = self._chunks[0].next_view(check_crcs)
            if found is not None:
                return found
            self._chunks.popleft()
        return None

    def give_back(self, handed: Iterable[BatchRows]) -> None:
        """These come again, before all others."""
        first = list(dict.fromkeys(handed))
        rest = [*([] if self.rows is None else [self.rows]), *self._again]
        self._again = first + [rows for rows in rest if rows not in first]
        self.rows = None

    def next_again(self) -> BatchRows | None:
        """The next batch that came back."""
        return self._again.pop(0) if self._again else None

    def done(self) -> None:
        """All of the batch has been handed out."""
        self.rows = None
        while self._chunks and self._chunks[0].is_over:
            self._chunks.popleft()

    def end_of_bad(self, position: int) -> int:
        """As `Chunk.end_of_bad`, of the batch that `next_view` could not read."""
        return self._chunks[0].end_of_bad(position)

    def close(self) -> None:
        """Give back what the open batch takes: it is another partition's turn."""
        if self.rows is not None:
            self.rows.close()


def heavy(rows: BatchRows) -> bool:
    """Whether to open it in a thread, so that the loop goes on."""
    header = rows.header
    if header.batch_length > INLINE_BYTES and header.compression:
        return not rows.is_open
    return header.record_count > INLINE_RECORDS and not header.is_dense and not rows.is_open
