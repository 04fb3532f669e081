"""Transactions as one partition sees them: which are open, and which were aborted.

Sans-I/O. Source: KIP-98; Kafka's ProducerStateManager and TransactionIndex. Readers of committed records get
what is before the first record of the first open transaction (the last stable offset), and the list of
aborted ones, by which they skip those records.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from struct import Struct
from typing import NamedTuple

from ringleader.protocol.errors import ErrorCode, KafkaError
from ringleader.protocol.records import BatchView, CorruptBatchError, Record, build_batch

ABORT, COMMIT = 0, 1
"""Types of a marker."""

COORDINATOR_EPOCH = 0
"""Of the transaction coordinator: there is one node."""

_MARKER_KEY = Struct(">hh")  # version, type
_MARKER_VALUE = Struct(">hi")  # version, coordinator epoch
_BATCH_HEAD = Struct(">qi")  # base offset, length of what follows
_BATCH_SPAN = Struct(">qi11xi")  # the same, and the last offset delta


class Aborted(NamedTuple):
    """An aborted transaction: offsets of its marker and its first record, and the last stable offset when
    it was over. Those that end later were open by then, or began after it: their first is not below."""

    marker_offset: int
    first_offset: int
    producer_id: int
    stable_offset: int


class TransactionIndex:
    """The transactions of one partition, as far as written."""

    __slots__ = ("_aborted", "open")

    def __init__(self) -> None:
        self.open: dict[int, int] = {}
        """Producer id to the offset of the first record, which ascend."""
        # Columns of `Aborted`; markers ascend.
        self._aborted = tuple(array("q") for _ in Aborted._fields)

    def add(self, producer_id: int, base_offset: int) -> None:
        """A batch of a transaction was written."""
        self.open.setdefault(producer_id, base_offset)

    def end(self, producer_id: int, marker_offset: int, *, committed: bool) -> None:
        """A marker was written. Nothing happens for a producer without records since its last one."""
        first = self.open.pop(producer_id, None)
        if first is not None and not committed:
            stable = next(iter(self.open.values()), marker_offset + 1)
            self.put(Aborted(marker_offset, first, producer_id, stable))

    def put(self, aborted: Aborted) -> None:
        """An aborted transaction, the marker after those of all others."""
        for column, value in zip(self._aborted, aborted, strict=True):
            column.append(value)

    def follow(self, later: TransactionIndex) -> None:
        """These are open now, and these were aborted after all others."""
        self.open = later.open
        for column, more in zip(self._aborted, later._aborted, strict=True):
            column.extend(more)

    def aborted(self, start: int, end: int) -> list[tuple[int, int]]:
        """Aborted transactions with records at offsets from `start` up to but not including `end`, or
        around it: producer id and first offset."""
        markers, firsts, producer_ids, stables = self._aborted
        found: list[tuple[int, int]] = []
        for index in range(bisect_left(markers, start), len(markers)):
            if firsts[index] < end:
                found.append((producer_ids[index], firsts[index]))
            if stables[index] >= end:
                break
        return found

    def forget_before(self, start_offset: int) -> None:
        """Records before this offset are gone."""
        count = bisect_left(self._aborted[0], start_offset)
        if count:
            for column in self._aborted:
                del column[:count]

    @classmethod
    def load(cls, transactions: list[tuple[int, int]], aborted: list[list[int]]) -> TransactionIndex:
        """Open and aborted ones as plain lists. Raises ValueError or TypeError for anything else."""
        if not all(type(number) is int for row in (*transactions, *aborted) for number in row):
            raise ValueError("no transactions")
        found = cls()
        found.open = {producer_id: first for producer_id, first in transactions}  # noqa: C416
        for row in aborted:
            found.put(Aborted(*row))
        return found

    def dump_aborted(self, start: int, end: int) -> list[list[int]]:
        """Those whose markers are from `start` up to but not including `end`, as plain lists."""
        markers = self._aborted[0]
        rows = range(bisect_left(markers, start), bisect_left(markers, end))
        return [[column[index] for column in self._aborted] for index in rows]

    def __len__(self) -> int:
        """How many aborted ones are remembered."""
        return len(self._aborted[0])


def marker(producer_id: int, producer_epoch: int, timestamp_ms: int, *, committed: bool) -> bytes:
    """The control batch that ends a transaction (KIP-98: EndTransactionMarker v0)."""
    key = _MARKER_KEY.pack(0, COMMIT if committed else ABORT)
    record = Record(0, timestamp_ms, key, _MARKER_VALUE.pack(0, COORDINATOR_EPOCH))
    return build_batch(
        [record], producer_id=producer_id, producer_epoch=producer_epoch, transactional=True, control=True
    )


def is_commit(view: BatchView) -> bool | None:
    """Whether a control batch is a marker that commits, or one that aborts; None for another one."""
    try:
        record = next(iter(view.records()), None)
    except CorruptBatchError:
        return None
    if record is None or record.key is None or len(record.key) < _MARKER_KEY.size:
        return None
    kind = _MARKER_KEY.unpack_from(record.key)[1]
    return None if kind not in (ABORT, COMMIT) else kind == COMMIT


def before(records: bytes, end_offset: int) -> bytes:
    """The whole batches before an offset that one begins at."""
    start, size = 0, len(records)
    while start < size:
        base_offset, length = _BATCH_HEAD.unpack_from(records, start)
        if base_offset >= end_offset:
            return records[:start]
        start += length + _BATCH_HEAD.size
    return records


def next_offset(records: bytes) -> int:
    """The offset after whole batches."""
    start, size, end = 0, len(records), 0
    while start < size:
        base_offset, length, last_delta = _BATCH_SPAN.unpack_from(records, start)
        end = base_offset + last_delta + 1
        start += length + _BATCH_HEAD.size
    return end


def refuse_unverified(producer_id: int, producer_epoch: int) -> None:
    """A transactional batch whose request names no transactional id. Raises KafkaError."""
    raise KafkaError(
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        f"producer {producer_id} at epoch {producer_epoch} names no transactional id",
    )
