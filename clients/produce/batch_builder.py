"""Batches as a partition's records fill them, whatever form the records come in."""

from __future__ import annotations

import bisect
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Protocol, Self

from ringleader.protocol.compression import Compression, compress
from ringleader.protocol.record_writer import RecordWriter
from ringleader.protocol.records import HEADER_BYTES, TRANSACTIONAL, Headers, header_of

FRAME_BYTES = 20
"""The bytes of a record around key, value and headers: 5 at the least; with the time of its batch never
more."""
MAX_BATCH_ROWS = 65_536


class RowTooLargeError(ValueError):
    """A record that no request can hold. ``size_bytes``: its own."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__(size_bytes)
        self.size_bytes = size_bytes


class RowSizes(NamedTuple):
    """Bytes of records, a little too high: of each with all before it, and of the largest."""

    running: list[int]
    largest: int


class Encoded(NamedTuple):
    """The records of a batch, one after another, as offsets from 0 on, behind room for its header where they
    are a bytearray. Times: Unix, in ms."""

    body: bytes | memoryview | bytearray
    base_timestamp_ms: int
    max_timestamp_ms: int


class Rows(Protocol):
    """Records that a producer is given, in columns (``arrow``) or one by one (``rows``)."""

    def __len__(self) -> int:
        """How many."""

    def slice(self, start: int, stop: int) -> Self:
        """A run of them."""

    def sizes(self) -> RowSizes:
        """The bytes of the records; there is one at least."""

    def by_partition(self, partitions: int) -> Iterator[tuple[int | None, Self]]:
        """Each partition's records in their order: the one that a record names, or its key's among that
        number of partitions; None for records with neither."""

    @staticmethod
    def encode(slices: Sequence[Any], now_ms: int) -> Encoded:
        """The records of all slices. ``now_ms``: the time of those that have none."""


class Builder(ABC):
    """Gathers the records of one partition until they fill a batch."""

    def __init__(self, limit_bytes: int, max_record_bytes: int) -> None:
        """``limit_bytes``: of a batch, unless one record is larger; ``max_record_bytes``: of one record."""
        self.limit = limit_bytes
        self._max_record = max_record_bytes
        self.count = 0
        self.size_bytes = 0
        self.full = False
        """Whether the batch has to go before it takes more."""

    @abstractmethod
    def _taken(self, timestamp_ms: int) -> Encoded:
        """All records, which are in no later batch. ``timestamp_ms``: of those that have no time."""

    def build(
        self,
        timestamp_ms: int,
        codec: Compression = Compression.NONE,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        transactional: bool = False,
    ) -> bytes | memoryview:
        """The batch of all records taken, at least one; the builder is empty after it.

        ``timestamp_ms``: of the records that have none of their own.
        """
        count = self.count
        body, base_ms, max_ms = self._taken(timestamp_ms)
        self.count, self.size_bytes, self.full = 0, 0, False
        records = memoryview(body)[HEADER_BYTES:] if isinstance(body, bytearray) else body
        if codec is not Compression.NONE:
            records = compress(codec, bytes(records))
        attributes = codec | (TRANSACTIONAL if transactional else 0)
        producer = producer_id, producer_epoch, base_sequence
        header = header_of(records, 0, -1, attributes, count - 1, base_ms, max_ms, producer, count)
        if codec is Compression.NONE and isinstance(body, bytearray):
            body[:HEADER_BYTES] = header
            return memoryview(body)
        return b"".join((header, records))


class RecordBuilder(RecordWriter, Builder):
    """Is given records one by one, each with its time."""

    def __init__(self, limit_bytes: int, max_record_bytes: int) -> None:
        RecordWriter.__init__(self)
        Builder.__init__(self, limit_bytes, max_record_bytes)

    def add(
        self, key: bytes | None, value: bytes | None, headers: Headers, timestamp_ms: int, size_bytes: int
    ) -> bool:
        """Take a record; False when it has no room beside those that are in the batch. Raises
        RowTooLargeError."""
        if size_bytes - FRAME_BYTES > self._max_record:
            raise RowTooLargeError(size_bytes)
        size = self.size_bytes + size_bytes
        if self.count and (size > self.limit or self.full):
            return False
        self.write(key, value, headers, timestamp_ms)
        self.size_bytes = size
        self.full = size >= self.limit or self.count >= MAX_BATCH_ROWS
        return True

    def _taken(self, timestamp_ms: int) -> Encoded:
        return Encoded(self.taken(), self.base_ms, self.max_ms)


class BatchBuilder(Builder):
    """Is given runs of records in any form."""

    def __init__(self, limit_bytes: int, max_record_bytes: int) -> None:
        super().__init__(limit_bytes, max_record_bytes)
        self._slices: list[Rows] = []

    def fill(self, rows: Rows, known: RowSizes, at: int) -> int:
        """Take records from ``at`` on until the batch is full or they end; where it stopped.

        Nothing is taken only when the next record does not fit beside what is there. Raises
        RowTooLargeError.
        """
        if self.full:
            return at
        if known.largest - FRAME_BYTES > self._max_record:
            raise RowTooLargeError(known.largest)
        sizes = known.running
        done = sizes[at - 1] if at else 0
        stop = bisect.bisect_right(sizes, done + self.limit - self.size_bytes, at)
        stop = min(stop, at + MAX_BATCH_ROWS - self.count)
        if stop == at and not self.count:
            stop = at + 1
        if stop > at:
            self._slices.append(rows if stop - at == len(rows) else rows.slice(at, stop))
            self.count += stop - at
            self.size_bytes += sizes[stop - 1] - done
        # A batch that did not take the next row is full, whatever its size.
        self.full = stop < len(sizes) or self.size_bytes >= self.limit or self.count >= MAX_BATCH_ROWS
        return stop

    def _taken(self, timestamp_ms: int) -> Encoded:
        slices, self._slices = self._slices, []
        return slices[0].encode(slices, timestamp_ms)
