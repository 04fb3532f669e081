"""Record batches, magic 2: their header, their checksum, the records in them, and building them.

Source: KIP-98 (format), KIP-82 (headers). A batch is 12 bytes of base offset and length, then `batch_length`
bytes; the CRC-32C covers everything from the attributes on, so that a broker can set base offset and leader
epoch without touching the rest. Older formats (magic 0 and 1) are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Any, NamedTuple

from crc32c import crc32c

from ringleader.protocol import native
from ringleader.protocol.compression import (
    Compression,
    CorruptBatchError,
    compress,
    inflate,
    inflate_limit,
)
from ringleader.protocol.wire import INT64_MAX

__all__ = [
    "BatchHeader",
    "BatchView",
    "ChecksumError",
    "Compression",
    "CorruptBatchError",
    "Headers",
    "InvalidBatchError",
    "Record",
    "build_batch",
    "build_pairs",
    "check_batch",
    "iter_batches",
    "parse_header",
    "stamp",
    "stamp_append_time",
    "stamp_producer",
]

Headers = Sequence[tuple[str, "bytes | None"]]

HEADER_BYTES = 61
"""A batch without records."""
OVERHEAD_BYTES = 12
"""Base offset and length: what comes before the bytes that the length counts."""
CRC_START = 21
"""The checksum covers the batch from here on."""
MAGIC = 2
NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_SEQUENCE = -1
LEAST_RECORD_BYTES = 7
"""The seven one-byte fields of a record without key, value and headers."""

_CODEC_MASK = 7
_LOG_APPEND_TIME = 8
TRANSACTIONAL = 16
_CONTROL = 32

_HEADER = Struct(">qiibIhiqqqhii")
_new: Any = tuple.__new__
"""As `BatchHeader._make`, in half the time."""
_STAMP = Struct(">q4xi")
_ATTRIBUTES = Struct(">h")
_INT64 = Struct(">q")
_PRODUCER = Struct(">qhi")
_CRC = Struct(">I")


class ChecksumError(CorruptBatchError):
    """The bytes of a batch are not those that its CRC-32C was made from."""


class InvalidBatchError(CorruptBatchError):
    """A batch that is whole, but says what no producer may say (Kafka's INVALID_RECORD)."""


@dataclass(slots=True)
class Record:
    """One record. `offset` is absolute; `timestamp_ms` is Unix time, -1 for none."""

    offset: int = 0
    timestamp_ms: int = NO_TIMESTAMP
    key: bytes | None = None
    value: bytes | None = None
    headers: Headers = ()


class BatchHeader(NamedTuple):
    """The fixed fields of a batch in the order of the wire. `batch_length` leaves out the first 12 bytes."""

    base_offset: int
    batch_length: int
    leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_bytes(self) -> int:
        """The whole batch."""
        return self.batch_length + OVERHEAD_BYTES

    @property
    def last_offset(self) -> int:
        """Offset of the last record the batch had when it was written (compaction keeps it)."""
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        """The first offset after the batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> int:
        """Codec number (`Compression`)."""
        return self.attributes & _CODEC_MASK

    @property
    def is_dense(self) -> bool:
        """Whether each offset has its record: true of every batch but one that compaction has thinned out."""
        return self.record_count == self.last_offset_delta + 1

    @property
    def is_log_append_time(self) -> bool:
        """The broker's time of appending, `max_timestamp`, stands for every record's timestamp."""
        return bool(self.attributes & _LOG_APPEND_TIME)

    @property
    def is_transactional(self) -> bool:
        """Part of a transaction."""
        return bool(self.attributes & TRANSACTIONAL)

    @property
    def is_control(self) -> bool:
        """A transaction marker: not for applications."""
        return bool(self.attributes & _CONTROL)


@dataclass(slots=True)
class BatchView:
    """A batch inside `data`, which it begins at `start`. Records are decoded when they are asked for."""

    data: bytes | memoryview
    start: int
    header: BatchHeader

    @property
    def end(self) -> int:
        """Where the next batch begins in `data`."""
        return self.start + self.header.batch_length + OVERHEAD_BYTES

    def check_crc(self) -> None:
        """Raises ChecksumError."""
        start, header = self.start, self.header
        end = start + OVERHEAD_BYTES + header.batch_length
        found = crc32c(memoryview(self.data)[start + CRC_START : end])
        if found != header.crc:
            raise ChecksumError(f"checksum is {found:#010x}, {header.crc:#010x} is due", start)

    def payload(self) -> tuple[bytes | memoryview, int, int]:
        """The records, inflated: bytes, where they begin and end in them. Raises CorruptBatchError.

        The number of records that the header tells is checked against the bytes there are.
        """
        header, data = self.header, self.data
        found: tuple[bytes | memoryview, int, int] = data, self.start + HEADER_BYTES, self.end
        if header.compression:
            inflated = inflate(header.compression, memoryview(data)[found[1] : found[2]])
            if native.compiled is None:
                inflated = bytes(inflated)
            found = inflated, 0, len(inflated)
        elif isinstance(data, memoryview):
            found = data[found[1] : found[2]], 0, found[2] - found[1]
        if not 0 <= header.record_count * LEAST_RECORD_BYTES <= found[2] - found[1]:
            raise CorruptBatchError(f"{header.record_count} records cannot be in {found[2] - found[1]} bytes")
        return found

    def records(self) -> Iterator[Record]:
        """The records with absolute offsets; those of a control batch too. Raises CorruptBatchError."""
        # Here, for the columns module stands on this one.
        from ringleader.protocol.columns import Columns, append_columns

        columns = Columns()
        append_columns(self, columns)
        return map(
            Record, columns.offsets, columns.timestamps_ms, columns.keys, columns.values, columns.headers
        )


def parse_header(data: bytes | memoryview, start: int = 0) -> BatchHeader:
    """The header of the batch that begins at `start`; `data` need not hold all of the batch.

    Raises CorruptBatchError for a header that is cut off, an impossible length, or another magic than 2.
    """
    if len(data) - start < HEADER_BYTES:
        raise CorruptBatchError(f"a batch header is cut off after {len(data) - start} bytes", start)
    header: BatchHeader = _new(BatchHeader, _HEADER.unpack_from(data, start))
    if header.magic != MAGIC:
        raise InvalidBatchError(f"record format {header.magic} is not known, only {MAGIC}", start)
    if header.batch_length < HEADER_BYTES - OVERHEAD_BYTES:
        raise CorruptBatchError(f"a batch length of {header.batch_length} is impossible", start)
    if header.last_offset_delta < 0 or header.record_count < 0:
        raise InvalidBatchError(f"{header.record_count} records up to {header.last_offset_delta}", start)
    if header.base_offset + header.last_offset_delta >= INT64_MAX:
        raise CorruptBatchError(f"offsets from {header.base_offset} on are longer than 64 bits", start)
    return header


def iter_batches(data: bytes | memoryview, start: int = 0) -> Iterator[BatchView]:
    """The whole batches of a Fetch answer; a last one that is cut off is left out, as Kafka allows.

    Checksums are not looked at: `BatchView.check_crc`. Raises CorruptBatchError.
    """
    end = len(data)
    while end - start >= HEADER_BYTES:
        header = parse_header(data, start)
        if header.batch_length + OVERHEAD_BYTES > end - start:
            return
        yield BatchView(data, start, header)
        start += header.batch_length + OVERHEAD_BYTES


def check_batch(data: bytes) -> BatchHeader:
    """Check what a producer sent: exactly one whole batch with a right checksum that claims n records.

    The records themselves are not decoded. Raises CorruptBatchError: ChecksumError, InvalidBatchError
    (Kafka's INVALID_RECORD), or the plain one (CORRUPT_MESSAGE).
    """
    if not data:
        raise InvalidBatchError("no record batch")
    header = parse_header(data)
    size = header.batch_length + OVERHEAD_BYTES
    if size > len(data):
        raise CorruptBatchError(f"a batch of {size} bytes is cut off after {len(data)}")
    if size < len(data):
        raise InvalidBatchError("more than one record batch")
    found = crc32c(memoryview(data)[CRC_START:])
    if found != header.crc:
        raise ChecksumError(f"checksum is {found:#010x}, {header.crc:#010x} is due")
    if header.record_count < 1 or header.record_count != header.last_offset_delta + 1:
        raise InvalidBatchError(f"{header.record_count} records at offsets up to {header.last_offset_delta}")
    if header.compression > Compression.ZSTD:
        raise InvalidBatchError(f"unknown compression codec {header.compression}")
    room = size - HEADER_BYTES
    if header.compression:
        room = inflate_limit(room)
    if header.record_count * LEAST_RECORD_BYTES > room:
        raise InvalidBatchError(f"{header.record_count} records cannot be in {room} bytes")
    if header.producer_id >= 0 and (header.base_sequence < 0 or header.producer_epoch < 0):
        raise InvalidBatchError("a producer id without epoch or sequence")
    return header


def stamp(batch: bytes, base_offset: int, leader_epoch: int) -> bytes:
    """The batch with another base offset and leader epoch; nothing else changes, the checksum stays right."""
    view = memoryview(batch)
    return b"".join(
        (_INT64.pack(base_offset), view[8:12], leader_epoch.to_bytes(4, "big", signed=True), view[16:])
    )


def stamp_producer(
    batch: bytes | memoryview, producer_id: int, producer_epoch: int, base_sequence: int
) -> bytes:
    """The batch as another producer's, or with another sequence; its checksum is made again."""
    out = bytearray(batch)
    _PRODUCER.pack_into(out, 43, producer_id, producer_epoch, base_sequence)
    _CRC.pack_into(out, 17, crc32c(memoryview(out)[CRC_START:]))
    return bytes(out)


def stamp_append_time(batch: bytes, timestamp_ms: int) -> bytes:
    """The batch with the broker's time for all its records (`message.timestamp.type=LogAppendTime`)."""
    out = bytearray(batch)
    (attributes,) = _ATTRIBUTES.unpack_from(out, 21)
    _ATTRIBUTES.pack_into(out, 21, attributes | _LOG_APPEND_TIME)
    _INT64.pack_into(out, 35, timestamp_ms)
    _CRC.pack_into(out, 17, crc32c(memoryview(out)[CRC_START:]))
    return bytes(out)


def build_batch(
    records: Sequence[Record],
    *,
    compression: int = Compression.NONE,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
    leader_epoch: int = -1,
    transactional: bool = False,
    control: bool = False,
) -> bytes:
    """A batch of these records, whose offsets ascend; the first one's is the base offset.

    Raises ValueError when there is none, when offsets do not ascend, or for an unknown codec.
    """
    if not records:
        raise ValueError("a batch has at least one record")
    base_offset, base_timestamp = records[0].offset, records[0].timestamp_ms
    out: list[bytes] = []
    last = -1
    for record in records:
        delta = record.offset - base_offset
        if delta <= last:
            raise ValueError(f"offset {record.offset} does not ascend")
        last = delta
        out.append(encode_record(record, delta, record.timestamp_ms - base_timestamp))
    body = compress(compression, b"".join(out))
    header = header_of(
        body,
        base_offset,
        leader_epoch,
        compression | (TRANSACTIONAL if transactional else 0) | (_CONTROL if control else 0),
        last,
        base_timestamp,
        max([record.timestamp_ms for record in records]),
        (producer_id, producer_epoch, base_sequence),
        len(records),
    )
    return header + body


def build_pairs(
    pairs: Sequence[tuple[bytes, bytes | None]],
    timestamp_ms: int,
    *,
    compression: int = Compression.NONE,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = -1,
    base_sequence: int = NO_SEQUENCE,
) -> bytes:
    """As `build_batch`, of records from offset 0 on that are but key and value and have one time: in a third
    of the time. Raises ValueError when there is none, or for an unknown codec."""
    if not pairs:
        raise ValueError("a batch has at least one record")
    out: list[bytes] = []
    for delta, (key, value) in enumerate(pairs):
        head = b"\0\0", varint(delta), varint(len(key)), key
        body = b"".join((*head, b"\1\0") if value is None else (*head, varint(len(value)), value, b"\0"))
        out += (varint(len(body)), body)
    producer = producer_id, producer_epoch, base_sequence
    body, count = compress(compression, b"".join(out)), len(pairs)
    header = header_of(body, 0, -1, compression, count - 1, timestamp_ms, timestamp_ms, producer, count)
    return header + body


def empty_batch(first_offset: int, last_offset: int) -> bytes:
    """A batch without records, that leads readers over these offsets: what compaction leaves where nothing is
    left."""
    nobody = NO_PRODUCER_ID, -1, NO_SEQUENCE
    delta = last_offset - first_offset
    return header_of(b"", first_offset, -1, 0, delta, NO_TIMESTAMP, NO_TIMESTAMP, nobody, 0)


def header_of(
    body: bytes | memoryview,
    base_offset: int,
    leader_epoch: int,
    attributes: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    producer: tuple[int, int, int],
    count: int,
) -> bytes:
    """The header of the batch of these records, compressed as the attributes say, with its checksum."""
    header = _HEADER.pack(
        base_offset,
        HEADER_BYTES - OVERHEAD_BYTES + len(body),
        leader_epoch,
        MAGIC,
        0,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        *producer,
        count,
    )
    crc = crc32c(body, crc32c(header[CRC_START:]))
    return b"".join((header[:17], _CRC.pack(crc), header[CRC_START:]))


def encode_record(record: Record, offset_delta: int, timestamp_delta: int) -> bytes:
    """One record as it stands in a batch; its own offset and time are not looked at."""
    out = [b"\x00", varint(timestamp_delta), varint(offset_delta)]
    _put_bytes(out, record.key)
    _put_bytes(out, record.value)
    out.append(varint(len(record.headers)))
    for key, value in record.headers:
        _put_bytes(out, key.encode())
        _put_bytes(out, value)
    body = b"".join(out)
    return varint(len(body)) + body


def _put_bytes(out: list[bytes], data: bytes | None) -> None:
    if data is None:
        out.append(b"\x01")
    else:
        out += (varint(len(data)), data)


def _zigzag(value: int) -> bytes:
    left = (value << 1) ^ (value >> 63)
    out = bytearray()
    while left > 127:
        out.append(left & 127 | 128)
        left >>= 7
    out.append(left)
    return bytes(out)


_SMALL = tuple(_zigzag(value) for value in range(512))


def varint(value: int) -> bytes:
    """A signed 64-bit number in the zigzag form of records."""
    return _SMALL[value] if 0 <= value < 512 else _zigzag(value)
