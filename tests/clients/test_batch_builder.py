"""Batches out of columns are, byte for byte, those that the plain builder makes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleader.clients.produce.arrow import ArrowRows
from ringleader.clients.produce.batch_builder import FRAME_BYTES, BatchBuilder, RowTooLargeError
from ringleader.clients.produce.lane import Parcel
from ringleader.clients.produce.partition_queue import OutgoingBatch, PartitionQueue
from ringleader.clients.produce.rows import Row as ListedRow
from ringleader.clients.produce.rows import RowList
from ringleader.protocol.compression import Compression
from ringleader.protocol.records import HEADER_BYTES, Record, build_batch, check_batch, iter_batches
from ringleader.spark_bridge.sink.rows import sink_rows

Row = tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]
HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
NOW_MS = 1_700_000_000_000


def columns(rows: list[Row]) -> ArrowRows:
    """Through an Arrow batch as Spark hands it over."""
    headers = [[{"key": name, "value": value} for name, value in found] or None for _, _, found in rows]
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array([key for key, _, _ in rows], pa.binary()),
            pa.array([value for _, value, _ in rows], pa.binary()),
            pa.array(headers, HEADERS),
        ],
        names=["key", "value", "headers"],
    )
    return sink_rows(batch, False)


def plain(rows: list[Row], **settings: Any) -> bytes:
    records = [Record(at, NOW_MS, key, value, headers) for at, (key, value, headers) in enumerate(rows)]
    return build_batch(records, **settings)


binary = st.none() | st.binary(max_size=70)
some_headers = st.lists(st.tuples(st.text(max_size=3), st.none() | st.binary(max_size=3)), max_size=2)


@given(st.lists(st.tuples(binary, binary, some_headers), min_size=1, max_size=90), st.integers(0, 89))
def test_the_same_bytes_as_the_plain_builder(rows: list[Row], cut: int) -> None:
    builder = BatchBuilder(1_000_000, 1_000_000)
    for part in filter(None, (rows[:cut], rows[cut:])):
        found = columns(part)
        assert builder.fill(found, found.sizes(), 0) == len(part)
    built = builder.build(NOW_MS, producer_id=7, producer_epoch=1, base_sequence=5)
    assert built == plain(rows, producer_id=7, producer_epoch=1, base_sequence=5)
    assert builder.count == 0


times = st.integers(-1, 2**40)


@given(st.lists(st.tuples(binary, binary, some_headers, times), min_size=1, max_size=90), st.integers(0, 89))
def test_records_one_by_one_are_the_same_bytes(rows: list[Any], cut: int) -> None:
    """Each with its own time; -1: the one of the batch."""
    builder = BatchBuilder(1_000_000, 1_000_000)
    for part in filter(None, (rows[:cut], rows[cut:])):
        found = RowList([ListedRow(0, time, *record) for *record, time in part])
        assert builder.fill(found, found.sizes(), 0) == len(part)
    size = builder.size_bytes
    built = builder.build(NOW_MS, producer_id=7, producer_epoch=1, base_sequence=5)
    wanted = [Record(at, NOW_MS if time < 0 else time, *record) for at, (*record, time) in enumerate(rows)]
    assert built == build_batch(wanted, producer_id=7, producer_epoch=1, base_sequence=5)
    assert len(built) - HEADER_BYTES <= size


def test_long_rows_have_long_lengths() -> None:
    rows: list[Row] = [(b"k" * 70_000, b"v" * 100_000, []), (None, b"", []), (b"", None, [])]
    builder = BatchBuilder(1_000_000, 1_000_000)
    found = columns(rows)
    assert builder.fill(found, found.sizes(), 0) == 3
    assert builder.build(NOW_MS) == plain(rows)


@pytest.mark.parametrize("codec", list(Compression))
def test_every_codec(codec: Compression) -> None:
    rows: list[Row] = [(b"%d" % n, b"v" * 100, []) for n in range(50)]
    builder = BatchBuilder(1_000_000, 1_000_000)
    found = columns(rows)
    builder.fill(found, found.sizes(), 0)
    built = builder.build(NOW_MS, codec)
    check_batch(bytes(built))
    (view,) = iter_batches(built)
    assert view.header.compression == codec
    assert [(record.key, record.value) for record in view.records()] == [(row[0], row[1]) for row in rows]


def test_batches_are_cut_at_their_limit() -> None:
    rows: list[Row] = [(None, b"v" * (100 - FRAME_BYTES), []) for _ in range(25)]
    builder = BatchBuilder(1_000, 10_000)
    found = columns(rows)
    sizes, stops = found.sizes(), [0]
    while stops[-1] < len(rows):
        stops.append(builder.fill(found, sizes, stops[-1]))
        assert builder.full == (stops[-1] != 25)
        assert len(builder.build(NOW_MS)) <= 1_000 + 61
    assert stops == [0, 10, 20, 25]


def test_a_row_larger_than_a_batch_goes_alone() -> None:
    rows: list[Row] = [(None, b"a", []), (None, b"b" * 5_000, []), (None, b"c", [])]
    builder = BatchBuilder(1_000, 10_000)
    found = columns(rows)
    sizes = found.sizes()
    assert builder.fill(found, sizes, 0) == 1
    assert builder.fill(found, sizes, 1) == 1
    assert builder.full
    builder.build(NOW_MS)
    assert builder.fill(found, sizes, 1) == 2
    assert builder.full
    assert builder.build(NOW_MS) == plain(rows[1:2])
    assert builder.fill(found, sizes, 2) == 3


def test_a_row_larger_than_a_request_is_refused() -> None:
    found = columns([(None, b"b" * 5_000, [])])
    with pytest.raises(RowTooLargeError) as caught:
        BatchBuilder(1_000, 4_000).fill(found, found.sizes(), 0)
    assert 5_000 < caught.value.size_bytes < 5_100


def test_halves_of_a_batch_take_the_memory_that_the_whole_has_taken() -> None:
    records = [Record(at, 0, None, b"v") for at in range(3)]
    fate: Any = None
    whole = Parcel("t", 0, 0, 3, build_batch(records), 0.0, fate, 0, 101, 0)
    assert sum(half.size_bytes for half in whole.halves()) == 101


def test_batches_go_ahead_of_answers_again_when_what_came_back_is_on_its_way() -> None:
    queue = PartitionQueue("t", 0, BatchBuilder(100, 100), idempotent=True)
    first, second, _ = queue.batches = [OutgoingBatch("t", 0, at, 1, b"", 0.0) for at in range(3)]
    queue.sent(first, 1)
    queue.in_flight -= 1
    queue.taken(first, 0)
    queue.sent(second, 1)
    queue.back(second)
    assert not queue.may_send(1), "before all others are answered"
    queue.in_flight -= 1
    queue.sent(second, 1)
    assert queue.may_send(1)
