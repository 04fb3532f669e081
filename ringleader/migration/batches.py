"""Batches as the log has them, made into those of a plain producer: the payload stays as it is."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from crc32c import crc32c

from ringleader.coordinator.topics.transactional import TransactionIndex
from ringleader.protocol.records import BatchView, build_batch

_TRANSACTIONAL = 16
_CRC, _ATTRIBUTES, _PRODUCER = Struct(">I"), Struct(">h"), Struct(">qhi")
_CRC_AT, _ATTRIBUTES_AT, _PRODUCER_AT = 17, 21, 43
_BASE_OFFSET, _LEADER_EPOCH = Struct(">q"), Struct(">i")
SEQUENCES = 2**31


class Kept(NamedTuple):
    """The part of a batch that is copied: `records` records, which are here from `offset` on."""

    offset: int
    records: int
    data: bytes


class Aborted:
    """The aborted transactions of one partition."""

    def __init__(self, index: TransactionIndex) -> None:
        self._of: dict[int, list[tuple[int, int]]] = {}
        for marker, first, producer_id, _ in index.dump_aborted(0, 2**63 - 1):
            self._of.setdefault(producer_id, []).append((first, marker))

    def has(self, producer_id: int, offset: int) -> bool:
        """Whether a transactional batch at that offset is of one."""
        found: Sequence[tuple[int, int]] = self._of.get(producer_id, ())
        at = bisect_right(found, (offset, 2**63)) - 1
        return at >= 0 and offset < found[at][1]


def kept(batch: BatchView, start: int, aborted: Aborted) -> Kept | None:
    """The part of a batch that a reader of committed records sees, in a log that begins at `start`. Raises
    CorruptBatchError."""
    header = batch.header
    batch.check_crc()
    if header.is_control or (header.is_transactional and aborted.has(header.producer_id, header.base_offset)):
        return None
    if header.base_offset >= start and not header.is_log_append_time:
        return Kept(header.base_offset, header.record_count, bytes(batch.data[batch.start : batch.end]))
    # A producer may not send the broker's time; and a deletion may have ended inside of the batch.
    records = [record for record in batch.records() if record.offset >= start]
    return Kept(records[0].offset, len(records), build_batch(records, compression=header.compression))


def of_producer(batch: bytes, producer_id: int, epoch: int, sequence: int) -> bytes:
    """The batch as this producer sends it, outside of any transaction."""
    out = bytearray(batch)
    (attributes,) = _ATTRIBUTES.unpack_from(out, _ATTRIBUTES_AT)
    _ATTRIBUTES.pack_into(out, _ATTRIBUTES_AT, attributes & ~_TRANSACTIONAL)
    _PRODUCER.pack_into(out, _PRODUCER_AT, producer_id, epoch, sequence % SEQUENCES)
    _BASE_OFFSET.pack_into(out, 0, 0)
    _LEADER_EPOCH.pack_into(out, 12, -1)
    _CRC.pack_into(out, _CRC_AT, crc32c(memoryview(out)[_ATTRIBUTES_AT:]))
    return bytes(out)
