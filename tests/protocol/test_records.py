"""Record batches: bytes against other libraries, checksums, bounds, every truncation."""

from __future__ import annotations

import importlib
import random
import warnings
from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AiokafkaBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AiokafkaBuilder
from hypothesis import given
from hypothesis import strategies as st

from ringleader.protocol.columns import decode_columns
from ringleader.protocol.errors import MalformedError
from ringleader.protocol.records import (
    CRC_START,
    BatchView,
    ChecksumError,
    Compression,
    CorruptBatchError,
    InvalidBatchError,
    Record,
    build_batch,
    check_batch,
    iter_batches,
    parse_header,
    stamp,
    stamp_append_time,
    varint,
)
from ringleader.protocol.rows import read_varint

with warnings.catch_warnings():
    # It uses a function of the standard library that is on its way out.
    warnings.simplefilter("ignore")
    kafka_python: Any = importlib.import_module("kafka.record.default_records")

pytestmark = pytest.mark.usefixtures("both_ways")

PythonBatch = kafka_python.DefaultRecordBatch
PythonBuilder = kafka_python.DefaultRecordBatchBuilder
STAMP_MS = 1_700_000_000_000
CODECS = list(Compression)
# kafka-python needs further packages for the other codecs.
READERS = [(AiokafkaBatch, codec) for codec in CODECS] + [(PythonBatch, 0), (PythonBatch, 1)]
BUILDERS = [(AiokafkaBuilder, codec) for codec in CODECS] + [(PythonBuilder, 0), (PythonBuilder, 1)]

payloads = st.none() | st.binary(max_size=200)
headers = st.lists(
    st.tuples(st.text(st.characters(exclude_categories=["Cs"]), max_size=9), payloads), max_size=3
)
rows = st.tuples(st.integers(-1000, 10**9), payloads, payloads, headers.map(tuple))


@st.composite
def record_lists(draw: st.DrawFn) -> list[Record]:
    base = draw(st.integers(0, 2**40))
    found = draw(st.lists(rows, min_size=1, max_size=20))
    return [
        Record(base + i, STAMP_MS + delta, key, value, head)
        for i, (delta, key, value, head) in enumerate(found)
    ]


def sample(count: int = 50, base: int = 0) -> list[Record]:
    return [
        Record(base + i, STAMP_MS + i, b"key-%d" % i, b"value " * (i % 40), [("h", b"1")] if i % 3 else [])
        for i in range(count)
    ]


def other_builder(kind: Any, records: list[Record], codec: int = 0, **producer: int) -> bytes:
    names = {"producer_id": -1, "producer_epoch": -1, "base_sequence": -1} | producer
    builder = kind(magic=2, compression_type=codec, is_transactional=False, batch_size=10_000_000, **names)
    for i, record in enumerate(records):
        added = builder.append(
            i, record.timestamp_ms, record.key, record.value, headers=[(k, v) for k, v in record.headers]
        )
        assert added is not None
    return bytes(builder.build())


def at_zero(records: list[Record]) -> list[Record]:
    base = records[0].offset
    return [Record(r.offset - base, r.timestamp_ms, r.key, r.value, r.headers) for r in records]


def plain(records: Any) -> list[Any]:
    return [(r.offset, r.timestamp_ms, r.key, r.value, [tuple(h) for h in r.headers]) for r in records]


@given(record_lists())
def test_uncompressed_bytes_are_those_of_aiokafka(records: list[Record]) -> None:
    mine = build_batch(at_zero(records), leader_epoch=0, producer_id=7, producer_epoch=1, base_sequence=3)
    theirs = other_builder(AiokafkaBuilder, records, producer_id=7, producer_epoch=1, base_sequence=3)
    assert stamp(theirs, 0, 0) == stamp(mine, 0, 0)


@given(record_lists())
def test_uncompressed_bytes_are_those_of_kafka_python(records: list[Record]) -> None:
    theirs = other_builder(PythonBuilder, records)
    assert stamp(theirs, 0, 0) == build_batch(at_zero(records), leader_epoch=0)


@pytest.mark.parametrize(("kind", "codec"), READERS)
def test_other_readers_read_ours(kind: Any, codec: int) -> None:
    records = sample(base=90)
    batch = kind(bytearray(build_batch(records, compression=codec)))
    assert batch.validate_crc()
    found = [(r.offset, r.timestamp, r.key, r.value, list(r.headers)) for r in batch]
    assert found == plain(records)


@pytest.mark.parametrize(("kind", "codec"), BUILDERS)
def test_we_read_what_others_build(kind: Any, codec: int) -> None:
    data = other_builder(kind, sample(), codec)
    header = check_batch(data)
    assert (header.compression, header.record_count) == (codec, 50)
    (batch,) = iter_batches(data)
    assert plain(batch.records()) == plain(sample())


@given(record_lists(), st.sampled_from(CODECS))
def test_records_come_back(records: list[Record], codec: int) -> None:
    data = build_batch(records, compression=codec)
    header = parse_header(data)
    assert header.size_bytes == len(data)
    assert header.max_timestamp == max(r.timestamp_ms for r in records)
    assert header.last_offset == records[-1].offset
    assert header.next_offset == records[-1].offset + 1
    (batch,) = iter_batches(data)
    batch.check_crc()
    assert plain(batch.records()) == plain(records)


def test_the_checksum_is_of_every_byte_behind_it() -> None:
    data = build_batch(sample(base=0)[:2])
    for at in range(CRC_START, len(data)):
        changed = bytearray(data)
        changed[at] ^= 1
        header = parse_header(data)
        for whole in (bytes(changed), bytes(changed) + data):
            with pytest.raises(ChecksumError):
                BatchView(whole, 0, header).check_crc()


@given(record_lists(), st.integers(0, 2**62), st.integers(-1, 2**31 - 1))
def test_stamping_changes_base_offset_and_epoch_only(records: list[Record], base: int, epoch: int) -> None:
    data = build_batch(records, producer_id=5, producer_epoch=0, base_sequence=9)
    stamped = stamp(data, base, epoch)
    before, after = parse_header(data), check_batch(stamped)
    assert after == before._replace(base_offset=base, leader_epoch=epoch)
    assert stamped[16:] == data[16:]


def test_append_time_stands_for_every_record() -> None:
    data = stamp_append_time(build_batch(sample(3), compression=Compression.ZSTD), STAMP_MS + 99)
    assert check_batch(data).is_log_append_time
    assert [r.timestamp_ms for r in next(iter_batches(data)).records()] == [STAMP_MS + 99] * 3


@given(st.integers(-(2**63), 2**63 - 1))
def test_varints(value: int) -> None:
    data = varint(value)
    assert read_varint(data, 0) == (value, len(data))
    assert len(data) <= 10


def test_a_cut_off_last_batch_is_left_out() -> None:
    one, two = build_batch(sample(3)), build_batch(sample(3, base=3))
    for length in range(len(two)):
        assert [b.header.base_offset for b in iter_batches(one + two[:length])] == [0]


@pytest.mark.parametrize("codec", CODECS)
def test_every_truncation_is_refused(codec: int) -> None:
    data = build_batch(sample(5), compression=codec)
    for length in range(len(data)):
        with pytest.raises(CorruptBatchError):
            check_batch(data[:length])


def test_every_flipped_byte_is_found() -> None:
    data = build_batch(sample(3))
    for position in range(16, len(data)):
        broken = bytearray(data)
        broken[position] ^= 0x40
        with pytest.raises(CorruptBatchError):
            check_batch(bytes(broken))
    with pytest.raises(ChecksumError):
        check_batch(data[:-1] + bytes([data[-1] ^ 1]))


@pytest.mark.parametrize(
    "data",
    [
        b"",
        build_batch(sample(1)) * 2,
        build_batch([Record(0), Record(2)]),
        build_batch([Record(0)], producer_id=4),
        build_batch([Record(0)])[:16] + b"\x01" + build_batch([Record(0)])[17:],
    ],
    ids=["nothing", "two batches", "gap in offsets", "producer without sequence", "magic 1"],
)
def test_batches_that_no_producer_may_send(data: bytes) -> None:
    with pytest.raises(InvalidBatchError):
        check_batch(data)


def with_body(data: bytes, body: bytes, count: int) -> bytes:
    """A batch with these bytes for its records and a right checksum."""
    from crc32c import crc32c

    rest = data[21:57] + count.to_bytes(4, "big") + body
    length = (49 + len(body)).to_bytes(4, "big")
    return data[:8] + length + data[12:17] + crc32c(rest).to_bytes(4, "big") + rest


@given(st.binary(max_size=60), st.integers(0, 5), st.sampled_from(CODECS))
def test_any_record_bytes_give_records_or_the_one_error(body: bytes, count: int, codec: int) -> None:
    data = with_body(build_batch(sample(5), compression=codec), body, count)
    try:
        found = list(next(iter_batches(data)).records())
    except CorruptBatchError:
        return
    assert len(found) == count


def test_damage_inside_records_is_found_or_harmless(seed: int) -> None:
    data = build_batch(sample(8))
    rng = random.Random(seed)
    for _ in range(3000):
        body = bytearray(data[61:])
        for _ in range(rng.randint(1, 3)):
            body[rng.randrange(len(body))] = rng.randrange(256)
        broken = with_body(data, bytes(body), 8)
        try:
            found = decode_columns(broken)
        except CorruptBatchError:
            continue
        assert len(found.keys) == len(found.values) == len(found.headers) == 8


def test_record_counts_are_checked_before_anything_is_decoded() -> None:
    data = with_body(build_batch(sample(1)), b"", 2**31 - 1)
    with pytest.raises(CorruptBatchError):
        list(next(iter_batches(data)).records())


@pytest.mark.parametrize("value", [[], [Record(3), Record(3)], [Record(3), Record(2)]])
def test_values_that_make_no_batch_are_refused(value: list[Record]) -> None:
    with pytest.raises(ValueError, match=r"at least one|ascend"):
        build_batch(value)


def test_errors_are_of_one_family() -> None:
    assert issubclass(CorruptBatchError, MalformedError)
    assert issubclass(ChecksumError, CorruptBatchError)
    assert issubclass(InvalidBatchError, CorruptBatchError)


def test_a_compressed_batch_cannot_claim_more_records_than_it_may_inflate_to() -> None:
    data = build_batch(sample(5), compression=Compression.ZSTD)
    body = data[61:]
    claimed = with_body(data, body, 2**31 - 1)
    claimed = with_body(claimed[:23] + (2**31 - 2).to_bytes(4, "big") + claimed[27:], body, 2**31 - 1)
    with pytest.raises(InvalidBatchError):
        check_batch(claimed)


@pytest.mark.parametrize(("epoch", "sequence"), [(-1, 0), (0, -1), (-1, -1)])
def test_a_producer_id_comes_with_an_epoch_and_a_sequence(epoch: int, sequence: int) -> None:
    batch = build_batch([Record(0)], producer_id=7, producer_epoch=epoch, base_sequence=sequence)
    with pytest.raises(InvalidBatchError, match="a producer id without epoch or sequence"):
        check_batch(batch)
