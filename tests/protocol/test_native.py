"""Records found by compiled code: what Python finds or nothing, for any bytes; and which way is taken."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleader.clients.fetch.model import Record as ConsumerRecord
from ringleader.clients.produce.model import RecordMetadata
from ringleader.clients.produce.outcome import Place
from ringleader.protocol import native, rows
from ringleader.protocol.columns import BatchRows, Columns
from ringleader.protocol.records import (
    HEADER_BYTES,
    Compression,
    CorruptBatchError,
    Record,
    build_batch,
    iter_batches,
    varint,
)
from tests.protocol.native_threads import hold
from tests.support.shares import share

MOST = sys.maxsize
SIZES = st.one_of(st.none(), st.integers(0, 3), st.sampled_from([62, 63, 64, 8_191, 8_192]))
HEADERS = st.lists(
    st.tuples(st.sampled_from(["", "trace", "ключ"]), st.sampled_from([None, b"", b"x" * 70])), max_size=2
)
# Times, keys, values, headers; now and then a hole in the offsets.
RECORDS = st.lists(
    st.tuples(st.integers(-(10**13), 10**13), SIZES, SIZES, HEADERS, st.sampled_from([1, 1, 1, 2, 90])),
    min_size=1,
    max_size=80,
)


def made(found: list[tuple[int, int | None, int | None, Any, int]], *, holes: bool) -> list[Record]:
    records, offset = [], 5
    for time_ms, key, value, headers, step in found:
        key_bytes = None if key is None else b"k" * key
        value_bytes = None if value is None else random.Random(offset).randbytes(value)
        records.append(Record(offset, time_ms, key_bytes, value_bytes, headers))
        offset += step if holes else 1
    return records


@settings(deadline=None)
@given(RECORDS, st.booleans(), st.booleans(), st.data())
def test_batches_of_producers_are_always_accepted(
    compiled: ModuleType, found: Any, holes: bool, with_headers: bool, draw: st.DataObject
) -> None:
    records = made(found, holes=holes)
    [view] = iter_batches(build_batch(records))
    buffer, start, stop = view.data, HEADER_BYTES, view.end
    assert isinstance(buffer, bytes)
    first = 0 if holes else draw.draw(st.integers(0, len(records)))
    count = len(records) - first
    begin = rows.skip_rows(buffer, start, first)
    dense = view.header.is_dense
    taken = compiled.read_rows(buffer, begin, first, count, with_headers, dense)
    assert taken == rows._read_rows(buffer, begin, first, first + count, with_headers, dense)
    assert taken[-1] == stop
    if dense:
        assert compiled.read_values(buffer, begin, first, count) == (taken[1], stop)


def test_the_hash_of_what_is_no_key(compiled: ModuleType) -> None:
    with pytest.raises(TypeError, match="a key is bytes"):
        compiled.murmur2("text")


WRITTEN: list[Any] = [
    (RecordMetadata, "t", 3, 70, [5, 6, 7]),
    (RecordMetadata, "t", 3, -1, [5, 6, 7]),
    (RecordMetadata, "t", 3, 2**62, 9),
]


@pytest.mark.parametrize("written", WRITTEN)
def test_outcomes_are_those_of_python(compiled: ModuleType, written: Any) -> None:
    for index in range(3):
        one, other = compiled.Place([written, None], index), Place([written, None], index)
        assert one.done()
        assert other.done()
        found = one.result()
        assert found == other.result()
        assert type(found) is RecordMetadata
        assert (one._index, one._fate) == (index, None)


@pytest.mark.parametrize(
    "written",
    [
        (),
        [RecordMetadata, "t", 3, 70, 9],
        (int, "t", 3, 70, 9),
        ("kind", "t", 3, 70, 9),
        (RecordMetadata, "t", 3, "70", 9),
    ],
)
def test_what_was_not_written_has_no_place(compiled: ModuleType, written: Any) -> None:
    with pytest.raises(TypeError):
        compiled.Place([written, None], 0).result()


def test_a_place_outside_of_its_batch(compiled: ModuleType) -> None:
    with pytest.raises(IndexError):
        compiled.Place([WRITTEN[0], None], 3).result()
    with pytest.raises(IndexError):
        compiled.Place([WRITTEN[0], None], -1).result()
    with pytest.raises(OverflowError):
        compiled.Place([(RecordMetadata, "t", 3, 2**63 - 1, 9), None], 1).result()
    with pytest.raises(IndexError):
        compiled.Place([], 0).done()
    with pytest.raises((AttributeError, IndexError)):  # what is not known yet is asked for by methods on top
        compiled.Place([None], 0).done()
    many: list[Any] = [(), ([],), ((), 1), ([], "1"), ([], 2**70), ([], 1, 2)]
    for wrong in many:
        with pytest.raises((TypeError, OverflowError)):
            compiled.Place(*wrong)
    with pytest.raises(TypeError):
        compiled.Place(batch=[], index=1)


@settings(deadline=None, max_examples=share(80, whole=300))
@given(RECORDS, st.booleans(), st.booleans(), st.data())
def test_any_bytes_are_read_as_by_python_or_left_to_it(
    compiled: ModuleType, found: Any, with_headers: bool, dense: bool, draw: st.DataObject
) -> None:
    data = build_batch(made(found, holes=not dense))
    damaged = bytearray(data[HEADER_BYTES:])
    for _ in range(draw.draw(st.integers(1, 4))):
        at = draw.draw(st.integers(0, min(len(damaged), 400) - 1))
        # Bytes that make long numbers, nulls and zeros, too.
        damaged[at] = draw.draw(st.one_of(st.integers(0, 255), st.sampled_from([0, 1, 127, 128, 255])))
    buffer = bytes(
        damaged[: draw.draw(st.integers(0, len(damaged)))] if draw.draw(st.booleans()) else damaged
    )
    taken = compiled.read_rows(buffer, 0, 0, len(found), with_headers, dense)
    if taken is not None:
        assert taken == rows._read_rows(buffer, 0, 0, len(found), with_headers, dense)


@settings(deadline=None, max_examples=share(80, whole=300))
@given(st.integers(HEADER_BYTES, 400), st.sampled_from([0, 1, 2, 3, 127, 128, 255]), st.integers(1, 70))
def test_a_changed_byte_gives_the_same_records_or_the_same_words(
    compiled: ModuleType, at: int, byte: int, count: int
) -> None:
    """Of everything that a consumer looks at; a number too long, a count too high, a length too far."""
    headers = [("h", b"v"), ("n", None)]
    records = [Record(i, 7 * i, b"k" * (i % 3), b"v" * (i % 70), headers[: i % 3]) for i in range(count)]
    data = bytearray(build_batch(records))
    data[min(at, len(data) - 1)] = byte
    [view] = iter_batches(bytes(data))

    def looked(look: Any) -> Any:
        try:
            return look(BatchRows(view))
        except CorruptBatchError as error:
            return str(error)

    def everything(batch: BatchRows) -> Columns:
        columns = Columns()
        batch.read(0, count, columns)
        return columns

    def by_row(batch: BatchRows) -> Iterator[ConsumerRecord] | None:
        return batch.tuples(0, count, ConsumerRecord, "t", 3, "create")

    looks = (everything, lambda batch: batch.values(0, count))
    before = native.compiled
    try:
        native.compiled = None
        wanted = [looked(look) for look in looks]
        native.compiled = compiled
        assert [looked(look) for look in looks] == wanted
        tuples = looked(by_row)
    finally:
        native.compiled = before
    if tuples is not None:
        c = wanted[0]
        lists = zip(c.offsets, c.timestamps_ms, c.keys, c.values, c.headers, strict=True)
        assert list(tuples) == [ConsumerRecord("t", 3, o, t, "create", k, v, h) for o, t, k, v, h in lists]


@pytest.mark.parametrize(
    ("pos", "count"), [(-1, 1), (-MOST - 1, 1), (10**6, 0), (0, -1), (0, MOST), (0, 10**6), (MOST, MOST)]
)
def test_places_that_are_none_are_not_looked_at(compiled: ModuleType, pos: int, count: int) -> None:
    data = build_batch([Record(i, 0, None, b"v") for i in range(5)])[HEADER_BYTES:]
    assert compiled.read_values(data, pos, 0, count) is None
    assert compiled.read_rows(data, pos, 0, count, True, True) is None
    assert compiled.read_records(data, pos, 0, count, ConsumerRecord, "t", 0, None, 0, 0, False) is None
    for stop in (len(data), len(data) + 1, -1, MOST):
        assert compiled.read_columns([(data, pos, stop, count, 0, 4, 0, False)], 0, 9, True) is None


@pytest.mark.parametrize("length", [2**62, 2**63 - 1, -(2**63), 2**31, 100, -5])
@pytest.mark.parametrize("place", ["record", "key", "value", "headers", "header key", "header value"])
def test_a_length_that_leads_too_far_is_not_followed(compiled: ModuleType, length: int, place: str) -> None:
    def at(name: str, usual: int) -> bytes:
        return varint(length if name == place else usual)

    inner = b"\0" + varint(0) + varint(0) + at("key", 1) + b"k" + at("value", 1) + b"v" + at("headers", 1)
    inner += at("header key", 1) + b"h" + at("header value", 1) + b"x"
    buffer = at("record", len(inner)) + inner
    taken = compiled.read_rows(buffer, 0, 0, 1, True, True)
    # A value of a header may be null; what is behind it does not fit then.
    assert taken is None
    assert compiled.read_columns([(buffer, 0, len(buffer), 1, 0, 0, 0, False)], 0, 9, True) is None
    with pytest.raises((CorruptBatchError, IndexError)):
        rows._read_rows(buffer, 0, 0, 1, True, True)


def test_a_number_of_more_than_64_bits_is_left_to_python(compiled: ModuleType) -> None:
    inner = b"\0" + b"\x80" * 9 + b"\2" + varint(0) + varint(-1) + varint(1) + b"v" + varint(0)
    buffer = varint(len(inner)) + inner
    assert compiled.read_rows(buffer, 0, 0, 1, True, True) is None
    with pytest.raises(CorruptBatchError, match="longer than 64 bits"):
        rows._read_rows(buffer, 0, 0, 1, True, True)


def test_a_record_that_ends_behind_its_value_is_left_to_python(compiled: ModuleType) -> None:
    """The number of its headers is missing; the next byte is another record's."""
    inner = b"\0" + varint(0) + varint(0) + varint(-1) + varint(1) + b"v"
    buffer = varint(len(inner)) + inner + b"\0"
    assert compiled.read_values(buffer, 0, 0, 1) is None
    with pytest.raises(CorruptBatchError, match="longer than its length"):
        rows._read_values(buffer, 0, 0, 1)


def test_a_time_that_comes_back_is_that_of_its_record(compiled: ModuleType) -> None:
    buffer = build_batch([Record(at, time_ms) for at, time_ms in enumerate([70, 75, 70, 75])])[HEADER_BYTES:]
    records, _ = compiled.read_records(buffer, 0, 0, 4, ConsumerRecord, "t", 0, None, 0, 70, False)
    assert [record.timestamp_ms for record in records] == [70, 75, 70, 75]


def test_times_and_offsets_beyond_64_bits_are_left_to_python(compiled: ModuleType) -> None:
    buffer = build_batch([Record(0, 0), Record(1, 2**62)])[HEADER_BYTES:]

    def taken(base_offset: int, base_ms: int) -> Any:
        return compiled.read_records(
            buffer, 0, 0, 2, ConsumerRecord, "t", 0, None, base_offset, base_ms, False
        )

    assert taken(0, 0) is not None
    assert taken(0, 2**62) is None
    assert taken(2**63 - 1, 0) is None
    assert compiled.read_columns([(buffer, 0, len(buffer), 2, 0, 1, 0, False)], 0, 9, False) is None


def test_the_last_of_nine_values_has_its_bit(compiled: ModuleType) -> None:
    values = [None, *[b"v"] * 8]
    data = build_batch([Record(at, 0, None, value) for at, value in enumerate(values)])[HEADER_BYTES:]
    found = compiled.read_columns([(data, 0, len(data), 9, 0, 8, 0, False)], 0, 9, False)
    keys, written = found[1], found[2]
    assert (keys[0], written[0]) == (b"\0\0", b"\xfe\1")


def test_columns_are_of_offsets_that_ascend_up_to_the_end_of_the_part(compiled: ModuleType) -> None:
    first = build_batch([Record(0, 0, None, b"a" * 50)])[HEADER_BYTES:]
    whole = build_batch([Record(0, 0, None, b"a" * 50), Record(3, 0, None, b"b" * 50)])[HEADER_BYTES:]
    again = whole[len(first) :]

    def taken(data: bytes | memoryview, stop: int, count: int) -> Any:
        return compiled.read_columns([(data, 0, stop, count, 0, 3, 0, False)], 0, 9, False)

    assert taken(whole, len(whole), 2)[0] == 2
    assert taken(whole + again, len(whole + again), 3) is None, "an offset comes twice"
    assert taken(whole + b"\0", len(whole) + 1, 2) is None, "something stands behind the last record"
    beginning = memoryview(whole)[: len(first)]
    assert taken(beginning, len(whole), 2) is None, (
        "the part ends behind its buffer, where bytes fit by chance"
    )


def test_headers_of_a_record_that_is_left_out_have_to_fit_as_in_python(compiled: ModuleType) -> None:
    data = build_batch([Record(i, 0, None, b"v", [("h", b"x")]) for i in range(3)])[HEADER_BYTES:]
    broken = data.replace(b"\2h", b"\20h", 1)

    def taken(records: bytes, with_headers: bool) -> Any:
        return compiled.read_columns([(records, 0, len(records), 3, 0, 2, 0, False)], 2, 9, with_headers)

    assert taken(data, True)[0] == taken(broken, False)[0] == 1
    assert taken(broken, True) is None


def test_records_are_made_when_their_turn_comes_of_bytes_that_are_held_until_then(
    compiled: ModuleType,
) -> None:
    data = bytearray(build_batch([Record(i, 0, None, b"%d" % i, [("h", b"x")]) for i in range(3)]))
    made, end = compiled.read_records(data, HEADER_BYTES, 0, 3, ConsumerRecord, "t", 3, None, 5, 7, True)
    assert (end, next(made).value) == (len(data), b"0")
    with pytest.raises(BufferError):
        data.clear()
    data[HEADER_BYTES:] = b"\xff" * (len(data) - HEADER_BYTES)
    with pytest.raises(RuntimeError, match="have changed while it was read"):
        next(made)
    assert list(made) == [], "nothing is read behind that"
    del made
    data.clear()


def test_only_known_kinds_of_tuples_are_made(compiled: ModuleType) -> None:
    with pytest.raises(TypeError, match="a kind of tuple"):
        compiled.read_records(b"", 0, 0, 0, list, "t", 0, None, 0, 0, False)
    with pytest.raises(TypeError, match="each part is a tuple"):
        compiled.read_columns([[]], 0, 9, False)


def test_records_are_made_in_one_step_where_there_are_no_holes(compiled: ModuleType) -> None:
    data = build_batch([Record(i, 0, None, b"%d" % i) for i in range(5)], compression=Compression.LZ4)
    thin = build_batch([Record(i * 2, 0, None, b"%d" % i) for i in range(5)])
    before = native.compiled
    try:
        native.compiled = compiled
        [whole], [holes] = iter_batches(data), iter_batches(thin)
        found = list(BatchRows(whole).tuples(1, 3, ConsumerRecord, "t", 3, "create") or ())
        assert found == [ConsumerRecord("t", 3, i, 0, "create", None, b"%d" % i, ()) for i in (1, 2, 3)]
        assert {type(one) for one in found} == {ConsumerRecord}
        assert BatchRows(holes).tuples(1, 3, ConsumerRecord, "t", 3, "create") is None
    finally:
        native.compiled = before


def test_the_environment_chooses() -> None:
    assert native.load("0") is None
    assert native.load(None, "ringleader.no_such_module") is None
    with pytest.raises(ImportError, match="RINGLEADER_NATIVE=1, but the compiled module cannot be used"):
        native.load("1", "ringleader.no_such_module")
    with pytest.raises(ImportError, match="set it to 0"):
        native.load("yes")


def test_code_of_an_earlier_build_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    stale = ModuleType("ringleader_stale")
    stale.INTERFACE = native.INTERFACE - 1  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "ringleader_stale", stale)
    assert native.load(None, "ringleader_stale") is None
    with pytest.raises(ImportError, match="left by an earlier build"):
        native.load("1", "ringleader_stale")


def test_the_compiled_code_is_of_this_interface(compiled: ModuleType) -> None:
    assert compiled.INTERFACE == native.INTERFACE


def test_threads_that_share_what_they_read_disturb_nobody(compiled: ModuleType) -> None:
    """And under a Python without the GIL `python tests/protocol/native_threads.py` does the same."""
    assert hold(compiled) > 8
