"""Columns: the same records as one by one, cut to a range, without control batches and aborted ones."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ringleader.protocol.columns import decode_columns
from ringleader.protocol.records import Compression, Record, build_batch, iter_batches

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
