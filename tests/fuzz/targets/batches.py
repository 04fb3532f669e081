"""Record batches, read by Python, by compiled code and for Spark; and the four codecs."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from itertools import pairwise
from random import Random
from typing import Any

import pyarrow as pa
from crc32c import crc32c

from ringleader.clients.fetch.model import Record as ConsumerRecord
from ringleader.protocol import compression, native, record_writer, rows
from ringleader.protocol.columns import BatchRows, Columns, decode_columns
from ringleader.protocol.compression import decompress, inflate_limit
from ringleader.protocol.errors import MalformedError
from ringleader.protocol.records import (
    CRC_START,
    HEADER_BYTES,
    OVERHEAD_BYTES,
    Compression,
    CorruptBatchError,
    Record,
    build_batch,
    check_batch,
    empty_batch,
    iter_batches,
)
from ringleader.protocol.wire import INT64_MAX
from ringleader.spark_bridge.fetching import columns as arrow
from tests.fuzz.mutation import changed_bytes, number
from tests.fuzz.target import Target, promise

FROM, TO = 2, 1 << 40
"""Of the offsets that are asked for: more than none are left out."""
FEW = 200
"""Records whose single rows are looked at, too."""
COMPILED = native.compiled


def check(data: bytes) -> None:
    _codecs(data)
    _produced(data)
    ways = (None,) if COMPILED is None else (None, COMPILED)
    try:
        found = [[_outcome(look, data, way) for look in LOOKS] for way in ways]
    finally:
        native.compiled = COMPILED
    for other in found[1:]:
        for look, one, two in zip(LOOKS, found[0], other, strict=True):
            promise(one == two, f"{look.__name__}: Python says {one!r:.300}, compiled code {two!r:.300}")
    _small_numbers(found[0][0])


def _outcome(look: Callable[[bytes], Any], data: bytes, way: Any) -> Any:
    native.compiled = way
    try:
        return look(data)
    except CorruptBatchError as error:
        return str(error)


def _everything(data: bytes) -> Columns:
    return decode_columns(data, check_crc=False)


def _range(data: bytes) -> Columns:
    return decode_columns(data, FROM, TO, with_headers=False, aborted=[(7, 0)], check_crc=False)


def _single_rows(data: bytes) -> list[Any]:
    """The rows that a consumer takes, some at a time."""
    found: list[Any] = []
    for view in iter_batches(data):
        batch, count = BatchRows(view), min(view.header.record_count, FEW)
        half = count // 2
        for first, some in ((half, count - half), (0, half), (0, count)):
            columns = Columns()
            batch.read(first, some, columns)
            promise(batch.values(first, some) == columns.values, "values are other ones than those of rows")
            tuples = batch.tuples(first, some, ConsumerRecord, "t", 3, "create")
            if tuples is not None:
                made = list(tuples)
                lists = zip(columns.offsets, columns.timestamps_ms, columns.keys, columns.values,
                            columns.headers, strict=True)  # fmt: skip
                same = [ConsumerRecord("t", 3, o, at, "create", k, v, h) for o, at, k, v, h in lists]
                promise(made == same, f"tuples {made!r:.200} are other ones than {same!r:.200}")
            found.append(columns)
        part, start = batch.cut(0, half)
        columns = Columns()
        part.read(start, half, columns)
        found.append(columns)
    return found


def _for_spark(data: bytes) -> list[list[Any]]:
    made = arrow.answer_batches("t", 1, data, FROM, TO, include_headers=True)
    columns = (column for batch in made for column in batch.columns)
    return [
        (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()
        for column in columns
    ]


LOOKS = (_everything, _range, _single_rows, _for_spark)


def _small_numbers(found: Any) -> None:
    if isinstance(found, Columns):
        for number in (*found.offsets, *found.timestamps_ms):
            promise(-INT64_MAX - 1 <= number <= INT64_MAX, f"{number} is no number of 64 bits")


def _produced(data: bytes) -> None:
    """The batch that a broker accepts, and the batch that it makes of it."""
    try:
        check_batch(data)
        [view] = iter_batches(data)
        records = list(view.records())
    except CorruptBatchError:
        return
    if any(second.offset <= first.offset for first, second in pairwise(records)):
        return  # only one who writes a batch is held to it
    again = build_batch(records)
    [built] = iter_batches(again)
    promise(list(built.records()) == records, "records that were written are read as others")
    if COMPILED is not None:
        _written(records, COMPILED.RecordWriter())


def _written(records: list[Record], writer: Any) -> None:
    """One by one, by compiled code and by Python."""
    other = record_writer._InPython()
    for one in records:
        given = one.key, one.value, tuple(one.headers), one.timestamp_ms
        try:
            writer.write(*given)
        except OverflowError:  # a time too far from the first one's: Python writes more than 64 bits
            return
        other.write(*given)
    promise(writer.times_ms == other.times_ms, "the times of records are other ones")
    promise(writer.taken() == other.taken(), "compiled code writes other records")


def _codecs(data: bytes) -> None:
    for codec in Compression:
        try:
            size = len(decompress(codec, data))
        except CorruptBatchError:
            continue
        limit = inflate_limit(len(data))
        promise(size <= limit or codec == Compression.NONE, f"{codec.name}: {size} bytes, above {limit}")


def _records(count: int, holes: bool = False) -> list[Record]:
    headers = [("h", b"v"), ("\u043a", None)]
    return [Record((3 if holes else 1) * i, 1_000 + 7 * i, None if i % 4 == 3 else b"k" * i,
                   None if i % 5 == 4 else b"v" * (i % 80),
                   headers[: i % 3]) for i in range(count)]  # fmt: skip


def seeds() -> Iterator[bytes]:
    for codec in Compression:
        yield build_batch(_records(5), compression=codec, producer_id=7, producer_epoch=0, base_sequence=0)
        yield compression.compress(codec, b"record" * 20)
    yield build_batch(_records(3)) + build_batch(_records(4, holes=True)) + build_batch(_records(2))
    yield build_batch(_records(70))
    yield build_batch(_records(1), producer_id=7, producer_epoch=0, transactional=True, control=True)
    yield empty_batch(0, 9) + build_batch(_records(1), producer_id=7, producer_epoch=0, transactional=True)
    for stamp_ms in (-1, 2**52, 2**54, 2**62):
        yield build_batch([Record(3, stamp_ms, b"k", b"v"), Record(4, 5, b"k", b"v")])


def mutate(data: bytes, rng: Random) -> bytes:
    """Fields of a header, the records inside a compressed batch, or any byte; mostly the checksum is made
    right again, and so is the length."""
    if rng.random() < 0.05:
        data = rng.choice(list(seeds()))
    try:
        views = list(iter_batches(data))
    except MalformedError:
        views = []
    if not views or rng.random() < 0.15:
        return changed_bytes(data, rng)
    view = rng.choice(views)
    head, body = (
        bytearray(data[view.start : view.start + HEADER_BYTES]),
        data[view.start + HEADER_BYTES : view.end],
    )
    match rng.randrange(5):
        case 0:
            at, form = rng.choice(((0, ">q"), (12, ">i"), (21, ">h"), (23, ">i"), (27, ">q"), (35, ">q"),
                                   (43, ">q"), (51, ">h"), (53, ">i"), (57, ">i")))  # fmt: skip
            struct.pack_into(form, head, at, _fitting(form, rng))
        case 1:
            # Another codec, with the records as they are or packed by it.
            inner = _inflated(view.header.compression, body)
            codec = rng.randrange(5)
            body = compression.compress(codec, changed_bytes(inner, rng) if rng.random() < 0.7 else inner)
            head[22] = head[22] & 0xF8 | codec
        case 2:
            head[22] = rng.randrange(64)
        case 3:
            at = rng.randrange(len(body) + 1)
            new = number(rng)
            body = body[:at] + new + body[at + rng.choice((0, 1, len(new))) :]
        case _:
            body = changed_bytes(body, rng)
    return data[: view.start] + sealed(bytes(head), body, rng) + data[view.end :]


def sealed(head: bytes, body: bytes, rng: Random) -> bytes:
    """A batch whose length and checksum are mostly right."""
    if rng.random() < 0.9:
        head = head[:8] + struct.pack(">i", HEADER_BYTES - OVERHEAD_BYTES + len(body)) + head[12:]
        head = head[:17] + struct.pack(">I", crc32c(body, crc32c(head[CRC_START:]))) + head[CRC_START:]
    return head + body


def _fitting(form: str, rng: Random) -> int:
    bits = 8 * struct.calcsize(form)
    value: int = rng.choice(
        (0, 1, -1, 2, 5, 63, 64, 2**bits // 2 - 1, -(2**bits // 2), 2**bits // 4, rng.getrandbits(16))
    )
    low: int = -(2**bits // 2)
    return max(low, min(-low - 1, value))


def _inflated(codec: int, body: bytes) -> bytes:
    try:
        return decompress(codec, body)
    except MalformedError:
        return body


def plant(patch: Any) -> None:
    """Python's way takes a null for empty."""
    original = rows._read_rows

    def careless(*args: Any) -> Any:
        found = original(*args)
        return found._replace(values=[value or b"" for value in found.values])

    patch.setattr(rows, "_read_rows", careless)


TARGET = Target(
    "batches",
    "Compiled code and Python find the same records in any bytes, or refuse them in the same words; for "
    "Spark "
    "likewise; times and offsets have 64 bits; what is read can be written and read again; no codec gives "
    "more "
    "than its limit.",
    check,
    seeds,
    mutate,
    plant,
)
