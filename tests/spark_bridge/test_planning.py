"""Ranges of a batch and their deal to tasks: nothing lost, nothing twice, limits kept."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleader.clients.model import TopicPartition
from ringleader.spark_bridge.batch.planning import MIN_SLICE_ROWS, MIN_SPLIT_ROWS, cut_slices, plan_ranges
from ringleader.spark_bridge.values import OffsetRange

partitions = st.tuples(st.sampled_from(["a", "b"]), st.integers(0, 20))
backlogs = st.dictionaries(partitions, st.tuples(st.integers(0, 2**40), st.integers(0, 10**6)), max_size=12)


def spread(sizes: dict[int, int]) -> dict[TopicPartition, OffsetRange]:
    return {("t", partition): OffsetRange(100, 100 + rows) for partition, rows in sizes.items()}


def test_without_a_limit_everything_there_is_is_read() -> None:
    planned = plan_ranges({("t", 0): 5, ("t", 1): 7, ("t", 2): 9}, {("t", 0): 15, ("t", 1): 7, ("t", 2): 3})
    assert planned == {("t", 0): OffsetRange(5, 15)}


def test_a_limit_is_shared_in_proportion_to_the_backlog() -> None:
    planned = plan_ranges(
        {("t", 0): 0, ("t", 1): 0, ("t", 2): 0}, {("t", 0): 900, ("t", 1): 99, ("t", 2): 1}, 100
    )
    assert planned == {("t", 0): OffsetRange(0, 90), ("t", 1): OffsetRange(0, 9), ("t", 2): OffsetRange(0, 1)}


def test_rounding_leaves_nothing_of_a_limit() -> None:
    sizes = {("t", 0): 499_397, ("t", 1): 500_603}
    positions, batches = dict.fromkeys(sizes, 0), 0
    while positions != sizes:
        planned = plan_ranges(positions, sizes, 250_000)
        assert sum(found.rows for found in planned.values()) == 250_000
        positions |= {tp: found.end for tp, found in planned.items()}
        batches += 1
    assert batches == 4


def test_what_rounding_leaves_goes_to_partitions_that_have_more() -> None:
    ends = {("t", 0): 1, ("t", 1): 7, ("t", 2): 7}
    planned = plan_ranges(dict.fromkeys(ends, 0), ends, 14)
    assert {tp: found.end for tp, found in planned.items()} == {("t", 0): 1, ("t", 1): 7, ("t", 2): 6}


def test_a_small_partition_moves_even_when_its_share_rounds_to_nothing() -> None:
    planned = plan_ranges({("t", p): 0 for p in range(5)}, {("t", p): 10 for p in range(5)}, 2)
    assert {found.rows for found in planned.values()} == {1}


@given(backlogs, st.none() | st.integers(1, 10**7))
def test_ranges_start_at_positions_and_keep_the_limit(
    backlog: dict[TopicPartition, tuple[int, int]], limit: int | None
) -> None:
    positions = {tp: start for tp, (start, _) in backlog.items()}
    ends = {tp: start + rows for tp, (start, rows) in backlog.items()}
    planned = plan_ranges(positions, ends, limit)
    assert planned.keys() == {tp for tp, (_, rows) in backlog.items() if rows}
    assert all(positions[tp] == found.start < found.end <= ends[tp] for tp, found in planned.items())
    if limit is not None:
        assert sum(found.rows for found in planned.values()) <= max(limit, 0) + len(planned)


@given(backlogs, st.integers(1, 16), st.none() | st.integers(1, 50))
def test_slices_cover_every_offset_once_in_ascending_pieces(
    backlog: dict[TopicPartition, tuple[int, int]], parallelism: int, wanted: int | None
) -> None:
    ranges = {tp: OffsetRange(start, start + rows) for tp, (start, rows) in backlog.items()}
    slices = cut_slices(ranges, parallelism, wanted)
    assert all(slices)
    assert all(found == sorted(found) for found in slices)
    for (topic, partition), (start, end) in ranges.items():
        splits = sorted(p for found in slices for p in found if p[:2] == (topic, partition))
        covered = [edge for split in splits for edge in (split.start, split.end)]
        assert covered[1:-1:2] == covered[2:-1:2]
        assert not splits or (splits[0].start, splits[-1].end) == (start, end)
        assert bool(splits) == (end > start)
    if wanted is None:
        assert len(slices) <= parallelism


def test_small_partitions_share_a_task() -> None:
    assert len(cut_slices(spread(dict.fromkeys(range(20), MIN_SLICE_ROWS // 20)), 2)) == 1
    assert len(cut_slices(spread(dict.fromkeys(range(20), MIN_SLICE_ROWS)), 2)) == 2


def test_one_big_partition_is_cut_for_all_cores() -> None:
    rows = [sum(p.end - p.start for p in found) for found in cut_slices(spread({0: 10 * MIN_SPLIT_ROWS}), 4)]
    assert rows == [10 * MIN_SPLIT_ROWS // 4] * 4


def test_a_partition_is_not_cut_into_crumbs() -> None:
    assert cut_slices(spread({0: MIN_SPLIT_ROWS}), 4) == [[("t", 0, 100, 100 + MIN_SPLIT_ROWS)]]


@pytest.mark.parametrize("wanted", [3, 7])
def test_min_partitions_cuts_however_small(wanted: int) -> None:
    assert len(cut_slices(spread({0: 30, 1: 40}), 1, wanted)) == wanted


def test_tasks_are_never_empty_when_rows_are_few() -> None:
    assert len(cut_slices(spread({0: 2}), 4, 100)) == 2


def test_big_and_small_partitions_even_out() -> None:
    slices = cut_slices(spread({0: 200_000, 1: 10_000, 2: 10_000, 3: 180_000}), 2)
    rows = [sum(split.end - split.start for split in found) for found in slices]
    assert len(rows) == 2
    assert max(rows) <= 1.1 * min(rows)


@pytest.mark.parametrize("most", [1, 3, 7, 1_000])
def test_a_task_has_no_more_rows_than_allowed(most: int) -> None:
    slices = cut_slices(spread({0: 20, 1: 1, 2: 9}), 2, None, most)
    rows = [sum(split.end - split.start for split in found) for found in slices]
    assert sum(rows) == 30
    assert max(rows) <= most
    assert len(rows) == max(1, -(-30 // most))
    splits = sorted(split for found in slices for split in found)
    assert next(split.start for split in splits if split.partition == 0) == 100
    assert sum(split.end - split.start for split in splits if split.partition == 0) == 20
