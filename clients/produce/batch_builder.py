"""Batches as a partition's records fill them, whatever form the records come in."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from struct import Struct
from typing import Any, NamedTuple, Protocol, Self

from crc32c import crc32c

from ringleader.protocol.compression import Compression, compress
from ringleader.protocol.records import CRC_START, HEADER_BYTES, MAGIC, OVERHEAD_BYTES, TRANSACTIONAL

_HEADER = Struct(">qiibIhiqqqhii")
_CRC = Struct(">I")
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
    """The records of a batch, one after another, as offsets from 0 on. Times: Unix, in ms."""

    body: bytes | memoryview
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


class BatchBuilder:
    """Gathers the records of one partition until they fill a batch."""

    def __init__(self, limit_bytes: int, max_record_bytes: int) -> None:
        """``limit_bytes``: of a batch, unless one record is larger; ``max_record_bytes``: of one record."""
        self._limit = limit_bytes
        self._max_record = max_record_bytes
        self._slices: list[Rows] = []
        self.count = 0
        self.size_bytes = 0

    @property
    def full(self) -> bool:
        """Whether the batch has to go before it takes more."""
        return self.size_bytes >= self._limit or self.count >= MAX_BATCH_ROWS

    def fill(self, rows: Rows, known: RowSizes, at: int) -> int:
        """Take records from ``at`` on until the batch is full or they end; where it stopped.

        Nothing is taken only when the next record does not fit beside what is there. Raises
        RowTooLargeError.
        """
        if known.largest - FRAME_BYTES > self._max_record:
            raise RowTooLargeError(known.largest)
        sizes = known.running
        done = sizes[at - 1] if at else 0
        stop = bisect.bisect_right(sizes, done + self._limit - self.size_bytes, at)
        stop = min(stop, at + MAX_BATCH_ROWS - self.count)
        if stop == at and not self.count:
            stop = at + 1
        if stop > at:
            self._slices.append(rows if stop - at == len(rows) else rows.slice(at, stop))
            self.count += stop - at
            self.size_bytes += sizes[stop - 1] - done
        # A batch that did not take the next row is full, whatever its size.
        if stop < len(sizes):
            self.size_bytes = max(self.size_bytes, self._limit)
        return stop

    def build(
        self,
        timestamp_ms: int,
        codec: Compression = Compression.NONE,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        transactional: bool = False,
    ) -> bytes:
        """The batch of all records taken, at least one; the builder is empty after it.

        ``timestamp_ms``: of the records that have none of their own.
        """
        body, base_ms, max_ms = self._slices[0].encode(self._slices, timestamp_ms)
        count = self.count
        self._slices, self.count, self.size_bytes = [], 0, 0
        if codec is not Compression.NONE:
            body = compress(codec, bytes(body))
        header = _HEADER.pack(
            0,
            HEADER_BYTES - OVERHEAD_BYTES + len(body),
            -1,
            MAGIC,
            0,
            codec | (TRANSACTIONAL if transactional else 0),
            count - 1,
            base_ms,
            max_ms,
            producer_id,
            producer_epoch,
            base_sequence,
            count,
        )
        crc = crc32c(body, crc32c(header[CRC_START:]))
        return b"".join((header[:17], _CRC.pack(crc), header[CRC_START:], body))
