"""Decoding all records together, by Arrow's kernels and by compiled code: the same columns as one by one,
whatever the records look like."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleader.protocol import native
from ringleader.protocol.columns import decode_columns
from ringleader.protocol.records import (
    HEADER_BYTES,
    Compression,
    CorruptBatchError,
    Record,
    build_batch,
    iter_batches,
    stamp_append_time,
)
from ringleader.spark_bridge.fetching import batches as walk
from ringleader.spark_bridge.fetching import columns
from ringleader.spark_bridge.fetching.batches import UnfitError, record_batches
from ringleader.spark_bridge.fetching.columns import answer_batches

pytestmark = pytest.mark.usefixtures("both_ways")

STAMP_MS = 1_700_000_000_000
ALL = 1 << 60

LENGTHS = st.one_of(
    st.none(), st.integers(0, 3), st.sampled_from([62, 63, 64, 65, 127, 128, 1024, 8190, 8191, 8192, 8200])
)
HEADERS = st.lists(
    st.tuples(st.sampled_from(["", "trace", "ключ"]), st.sampled_from([None, b"", b"x" * 70])), max_size=2
)


@st.composite
def batches(draw: st.DrawFn) -> bytes:
    """A Fetch answer: like records in a run, mixed ones, gaps, codecs, both kinds of timestamps."""
    data, offset = b"", draw(st.integers(0, 1 << 40))
    for _ in range(draw(st.integers(0, 5))):
        count = draw(st.sampled_from([1, 2, 15, 63, 64, 65, 130]))
        alike = draw(st.booleans())
        one = draw(LENGTHS), draw(LENGTHS), draw(HEADERS)
        made, stamp = [], STAMP_MS
        for _ in range(count):
            key, value, headers = one if alike else (draw(LENGTHS), draw(LENGTHS), draw(HEADERS))
            made.append(
                Record(
                    offset,
                    stamp,
                    None if key is None else b"k" * key,
                    None if value is None else random.Random(offset).randbytes(value),
                    headers,
                )
            )
            offset += 1 if alike else draw(st.sampled_from([1, 1, 1, 2, 90]))
            stamp += 0 if alike else draw(st.sampled_from([0, 1, 63, 64, -70, 9_000, 10**9]))
        batch = build_batch(made, compression=draw(st.sampled_from(list(Compression))))
        data += stamp_append_time(batch, STAMP_MS + 7) if draw(st.booleans()) else batch
        offset += draw(st.sampled_from([0, 0, 5]))
    return data


def as_rows(found: Sequence[Any]) -> list[dict[str, Any]]:
    """Plain values; every batch is checked against Arrow's rules first."""
    for batch in found:
        batch.validate(full=True)
    return [row for batch in found for row in batch.to_pylist()]


def together(data: bytes, start: int = 0, stop: int = ALL, headers: bool = True, **more: Any) -> list[Any]:
    """By the fast way only: what does not fit is an error here."""
    found: list[Any] = []
    for batches in record_batches(data, start, stop, **more):
        part = columns._rows(batches, start, stop, headers)
        if part is not None:
            found += columns._cut("t", 3, part, headers)
    return as_rows(found)


def one_by_one(data: bytes, start: int = 0, stop: int = ALL, headers: bool = True, **more: Any) -> list[Any]:
    decoded = decode_columns(data, start, stop, with_headers=headers, **more)
    return as_rows(
        list(columns._cut("t", 3, columns._few(decoded, headers), headers)) if len(decoded) else []
    )


@settings(deadline=None)
@given(batches(), st.booleans(), st.data())
def test_both_ways_give_the_same_rows(data: bytes, headers: bool, choice: st.DataObject) -> None:
    everything = one_by_one(data, headers=headers)
    assert together(data, headers=headers) == everything
    offsets = [row["offset"] for row in everything]
    if offsets:
        start = choice.draw(st.sampled_from(offsets)) + choice.draw(st.integers(-1, 1))
        stop = choice.draw(st.sampled_from(offsets)) + choice.draw(st.integers(-1, 1))
        wanted = [row for row in everything if start <= row["offset"] < stop]
        assert together(data, start, stop, headers) == wanted
    cut_off = data[: len(data) - choice.draw(st.integers(0, 200))]
    assert together(cut_off, headers=headers) == one_by_one(cut_off, headers=headers)


@settings(deadline=None)
@given(batches(), st.data())
def test_broken_bytes_give_the_same_rows_or_an_error(data: bytes, choice: st.DataObject) -> None:
    """Checksums are made right again, so that the damage reaches the records."""
    found = list(iter_batches(data))
    if not found:
        return
    batch = choice.draw(st.sampled_from(found))
    damaged = bytearray(data[batch.start : batch.end])
    for _ in range(choice.draw(st.integers(1, 3))):
        at = choice.draw(st.integers(HEADER_BYTES - 4, len(damaged) - 1))
        damaged[at] = choice.draw(st.integers(0, 255))
    damaged[17:21] = crc32c(bytes(damaged[21:])).to_bytes(4, "big")
    broken = data[: batch.start] + bytes(damaged) + data[batch.end :]
    try:
        rows = together(broken)
    except UnfitError:
        return
    for row in rows:
        assert row.pop("offset") >= 0
    # One by one, offsets of a batch without gaps follow from their place, not from what is written.
    assert rows == [{k: v for k, v in row.items() if k != "offset"} for row in one_by_one(broken)]


def records(base: int, count: int, size: int) -> list[Record]:
    return [Record(base + i, STAMP_MS + i, b"key-%03d" % i, b"v" * size) for i in range(count)]


def test_large_answers_come_together_in_batches_of_spark_s_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "decode_columns", None)
    data = b"".join(build_batch(records(base, 500, 100)) for base in range(0, 12_000, 500))
    found = list(answer_batches("t", 3, data, 0, ALL, include_headers=False))
    assert [batch.num_rows for batch in found] == [5000, 5000, 2000]
    monkeypatch.setattr(columns, "BATCH_BYTES", 100_000)
    found = list(answer_batches("t", 3, data, 0, ALL, include_headers=False))
    assert max(batch.nbytes for batch in found) < 200_000
    assert [row["offset"] for row in as_rows(found)] == list(range(12_000))


@pytest.mark.parametrize("seed", range(5), indirect=True)
def test_codecs_that_change_from_batch_to_batch_cost_no_arrow_batches(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A producer leaves a batch uncompressed that does not shrink, so such answers are the usual ones."""
    monkeypatch.setattr(columns, "decode_columns", None)
    chance = random.Random(seed)
    written: list[Record] = []
    data = b""
    while len(written) < 12_000:
        base, count = len(written), min(chance.randint(1, 200), 12_000 - len(written))
        made = [
            Record(
                base + i,
                STAMP_MS + chance.randint(-9, 9),
                chance.choice([None, b"", b"key"]),
                chance.choice([None, chance.randbytes(chance.randint(0, 400))]),
            )
            for i in range(count)
        ]
        written += made
        data += build_batch(made, compression=chance.choice(list(Compression)))
    found = list(answer_batches("t", 3, data, 0, ALL, include_headers=False))
    assert [batch.num_rows for batch in found] == [5000, 5000, 2000]
    assert [
        (row["offset"], round(row["timestamp"].timestamp() * 1000), row["key"], row["value"])
        for row in as_rows(found)
    ] == [(one.offset, one.timestamp_ms, one.key, one.value) for one in written]


def test_much_that_inflates_comes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "MOST_INFLATED_BYTES", 100_000)
    batch = [build_batch(records(base, 50, 1000), compression=Compression.ZSTD) for base in range(0, 500, 50)]
    data = b"".join(batch) + build_batch(records(500, 50, 1000))
    several = list(record_batches(data, 0, ALL))
    assert len(several) > 3
    assert together(data) == one_by_one(data)


def test_what_comes_before_bad_data_is_not_given_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walk, "MOST_INFLATED_BYTES", 1_000)
    monkeypatch.setattr(columns, "FEW_BYTES", 1)
    good = [build_batch(records(base, 50, 1000), compression=Compression.LZ4) for base in range(0, 200, 50)]
    broken = bytearray(build_batch(records(200, 50, 1000)))
    broken[-1] ^= 1
    found = answer_batches("t", 3, b"".join(good) + broken, 0, ALL, include_headers=False)
    offsets: list[int] = []
    with pytest.raises(CorruptBatchError, match="checksum"):
        offsets.extend(offset for batch in found for offset in batch["offset"].to_pylist())
    assert offsets == list(range(len(offsets)))
    assert offsets


def test_records_that_only_seem_equally_long() -> None:
    """The first record's length times their number is the batch's size, but the second is longer."""
    sizes = [100, 101, 99, 100]
    made = [Record(i, STAMP_MS, None, b"v" * size) for i, size in enumerate(sizes)]
    data = build_batch(made)
    if native.compiled is None:
        with pytest.raises(UnfitError):
            together(data)
    else:
        assert together(data) == one_by_one(data)
    data += b"".join(build_batch(records(base, 50, 1000)) for base in range(4, 204, 50))
    found = list(answer_batches("t", 3, data, 0, ALL, include_headers=False))
    assert as_rows(found) == one_by_one(data, headers=False)


def test_where_the_other_way_takes_over_no_row_comes_twice(
    monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Records that only one way can read, behind pieces that were given the other way."""
    monkeypatch.setattr(walk, "MOST_INFLATED_BYTES", 1_000)
    monkeypatch.setattr(columns, "FEW_BYTES", 1)
    drawn = random.Random(seed)
    data, offset, odd = b"", 0, drawn.randrange(1, 8)
    for number in range(8):
        if number == odd:
            sizes = [100, 101, 99, 100]
            data += build_batch([Record(offset + n, STAMP_MS, None, b"v" * s) for n, s in enumerate(sizes)])
            offset += len(sizes)
            continue
        data += build_batch(records(offset, 50, 1000), compression=drawn.choice(list(Compression)))
        offset += 50
    start, stop = sorted(drawn.sample(range(offset), 2))
    for bounds in ((0, ALL), (start, stop)):
        found = list(answer_batches("t", 3, data, *bounds, include_headers=True))
        assert as_rows(found) == one_by_one(data, *bounds)


def test_aborted_transactions_and_markers_are_left_out() -> None:
    def written(base: int, producer: int, **more: Any) -> bytes:
        return build_batch(records(base, 2, 10), producer_id=producer, transactional=True, **more)

    data = written(0, 1) + written(2, 2) + written(4, 1, control=True) + written(6, 1)
    offsets = [row["offset"] for row in together(data, aborted=[(1, 0)])]
    assert offsets == [2, 3, 6, 7]
    assert [row["offset"] for row in together(data)] == [0, 1, 2, 3, 6, 7]
    assert together(data, aborted=[(1, 0)]) == one_by_one(data, aborted=[(1, 0)])
