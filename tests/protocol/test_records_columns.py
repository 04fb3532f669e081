"""Columns: the same records as one by one, cut to a range, without control batches and aborted ones."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ringleader.protocol.columns import BatchRows, Columns, decode_columns
from ringleader.protocol.records import Compression, CorruptBatchError, Record, build_batch, iter_batches
from tests.support.shares import share

pytestmark = pytest.mark.usefixtures("both_ways")

STAMP_MS = 1_700_000_000_000


def records(base: int, count: int, size: int = 10) -> list[Record]:
    return [
        Record(
            base + i,
            STAMP_MS + base + i,
            None if i % 4 == 0 else b"k%d" % i,
            b"v" * (i * size),
            [("h", None)],
        )
        for i in range(count)
    ]


@given(
    st.lists(
        st.tuples(st.integers(1, 8), st.integers(0, 2000), st.sampled_from(list(Compression))), max_size=6
    ),
    st.integers(-3, 60),
    st.integers(-3, 60),
)
def test_columns_are_the_records_of_the_range(
    batches: list[tuple[int, int, Compression]], start: int, stop: int
) -> None:
    data, offset = b"", 0
    for count, size, codec in batches:
        data += build_batch(records(offset, count, size), compression=codec)
        offset += count
    everything = [r for batch in iter_batches(data) for r in batch.records()]
    wanted = [r for r in everything if start <= r.offset < stop]
    found = decode_columns(data, start, stop)
    assert found.offsets == [r.offset for r in wanted]
    assert found.keys == [r.key for r in wanted]
    assert found.values == [r.value for r in wanted]
    assert found.timestamps_ms == [r.timestamp_ms for r in wanted]
    assert found.headers == [r.headers for r in wanted]
    assert len(found.append_time) == len(found)
    bare = decode_columns(data, start, stop, with_headers=False)
    assert (bare.offsets, bare.values, bare.headers) == (found.offsets, found.values, [])


def test_numbers_of_all_lengths() -> None:
    sizes = [0, 1, 63, 64, 8191, 8192, 1_048_576]
    made = [
        Record(i * 5000, STAMP_MS + i * 10**9, b"k" * (size % 9000), b"v" * size)
        for i, size in enumerate(sizes)
    ]
    found = decode_columns(build_batch(made))
    assert found.offsets == [r.offset for r in made]
    assert found.timestamps_ms == [r.timestamp_ms for r in made]
    assert [len(value or b"") for value in found.values] == sizes


def marker(offset: int, producer: int) -> bytes:
    return build_batch(
        [Record(offset, STAMP_MS, b"\0\0\0\0", b"\0\0\0\0\0\0")],
        producer_id=producer,
        producer_epoch=0,
        transactional=True,
        control=True,
    )


def written(offset: int, producer: int) -> bytes:
    return build_batch(
        records(offset, 2), producer_id=producer, producer_epoch=0, base_sequence=0, transactional=True
    )


def test_control_batches_are_left_out_but_counted() -> None:
    found = decode_columns(build_batch(records(0, 2)) + marker(2, 1))
    assert found.offsets == [0, 1]
    assert found.next_offset == 3


def test_aborted_transactions_are_left_out() -> None:
    data = written(0, 1) + written(2, 2) + marker(4, 1) + written(5, 1) + marker(7, 2) + marker(8, 1)
    assert decode_columns(data).offsets == [0, 1, 2, 3, 5, 6]
    # Producer 1's first transaction was aborted, its second was not.
    assert decode_columns(data, aborted=[(1, 0)]).offsets == [2, 3, 5, 6]
    assert decode_columns(data, aborted=[(1, 5), (2, 2)]).offsets == [0, 1]


def test_nothing_gives_empty_columns() -> None:
    found = decode_columns(b"")
    assert (len(found), found.next_offset) == (0, -1)


def test_offsets_with_gaps_and_offsets_written_the_long_way() -> None:
    sparse = [Record(100 + i * i, STAMP_MS, None, b"%d" % i) for i in range(200)]
    assert decode_columns(build_batch(sparse)).offsets == [r.offset for r in sparse]
    data = build_batch(records(0, 1))
    # The offset delta 0 as two bytes: legal, though nobody writes it so.
    at = data.index(b"\x00", 62) + 2
    body = data[61:at] + b"\x80\x00" + data[at + 1 :]
    longer = bytes([body[0] + 2]) + body[1:]
    length = (49 + len(longer)).to_bytes(4, "big")
    rebuilt = data[:8] + length + data[12:61] + longer
    found = decode_columns(rebuilt, check_crc=False)
    assert (found.offsets, found.keys, found.values) == ([0], [None], [b""])
    assert found.headers == [[("h", None)]]


def test_very_many_records_in_a_batch() -> None:
    made = [Record(i, STAMP_MS, None, b"") for i in range(9_000)]
    found = decode_columns(build_batch(made), 8_190, 8_195)
    assert found.offsets == list(range(8_190, 8_195))
    assert found.values == [b""] * 5


unhurried = settings(
    deadline=None, max_examples=share(20, whole=60), suppress_health_check=[HealthCheck.too_slow]
)
SIZES = st.one_of(
    st.none(), st.integers(0, 200), st.sampled_from([8_190, 8_191, 8_192, 8_193, 1_048_575, 1_048_576])
)


@unhurried
@given(st.lists(st.tuples(SIZES, SIZES), min_size=1, max_size=70), st.data())
def test_values_alone_are_those_of_the_records(
    sizes: list[tuple[int | None, int | None]], draw: st.DataObject
) -> None:
    """Whichever rows are read first."""
    made = [
        Record(
            i,
            STAMP_MS + i * 10**7,
            None if key is None else b"k" * key,
            None if value is None else b"v" * value,
            [("h", b"")] if i % 3 else (),
        )
        for i, (key, value) in enumerate(sizes)
    ]
    [view] = iter_batches(build_batch(made))
    rows = BatchRows(view)
    first = draw.draw(st.integers(0, len(made)))
    count = draw.draw(st.integers(0, len(made) - first))
    for begin, length in ((first, count), (0, len(made)), (first, count)):
        assert rows.values(begin, length) == [record.value for record in made[begin : begin + length]]
        columns = Columns()
        rows.read(begin, length, columns)
        assert columns.values == rows.values(begin, length)
        assert columns.keys == [record.key for record in made[begin : begin + length]]


@unhurried
@given(st.integers(61, 400), st.integers(0, 255), st.integers(1, 6))
def test_values_of_bytes_that_were_changed_are_those_of_the_records_or_none(
    at: int, byte: int, size: int
) -> None:
    """A look at the values alone finds no others than a look at everything."""
    data = bytearray(build_batch(records(0, 6, size)))
    data[min(at, len(data) - 1)] = byte
    [view] = iter_batches(bytes(data))
    columns = Columns()
    try:
        BatchRows(view).read(0, 6, columns)
    except CorruptBatchError:
        return
    assert BatchRows(view).values(0, 6) == columns.values
