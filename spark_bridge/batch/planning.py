"""The ranges of a batch, and how they are dealt out to Spark tasks. Pure functions."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Mapping, Sequence

from ringleader.clients.model import TopicPartition
from ringleader.spark_bridge.values import OffsetRange, SliceRange

# A Python task costs tens of milliseconds; below this number of rows a task of its own is not worth it.
MIN_SLICE_ROWS = 2_000
# A Kafka partition is cut across tasks only when every split is worth a task of its own.
MIN_SPLIT_ROWS = 20_000
# A range may be so much bigger than an even share before it is cut.
OVERSIZE = 1.25


def plan_ranges(
    positions: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    max_rows: int | None = None,
) -> dict[TopicPartition, OffsetRange]:
    """The ranges of the next batch: from each position up to its end, within ``max_rows`` in all.

    A limit is shared out in proportion to each partition's backlog, at least 1 row for each that has any (a
    great number of small partitions may exceed it), as Spark's Kafka source does. The remainder of rounding
    goes to the first ones, or a backlog of n limits would take n + 1 batches. Partitions without backlog are
    left out.
    """
    backlog = {tp: ends[tp] - start for tp, start in positions.items() if ends.get(tp, start) > start}
    total = sum(backlog.values())
    shares = backlog
    if max_rows is not None and total > max_rows:
        # Integers throughout: a float share of a large backlog is off by thousands of rows.
        shares = {tp: max(1, rows * max_rows // total) for tp, rows in backlog.items()}
        left = max_rows - sum(shares.values())
        roomy = [tp for tp in sorted(backlog) if shares[tp] < backlog[tp]]
        for tp in roomy[: max(0, left)]:
            shares[tp] += 1
    return {tp: OffsetRange(positions[tp], positions[tp] + shares[tp]) for tp in sorted(backlog)}


def cut_slices(
    ranges: Mapping[TopicPartition, OffsetRange],
    parallelism: int | None,
    min_partitions: int | None = None,
    max_records: int | None = None,
) -> list[list[SliceRange]]:
    """Deal ranges out to tasks: small partitions share one, big ones are cut.

    ``parallelism`` is how many tasks can run at once; None: not known, so one for each range. Without
    ``min_partitions`` there are at most that number of tasks, and fewer when the rows are few. With it, there
    are about that number of tasks (never more than rows), however small. ``max_records`` bounds the rows of a
    task, with as many tasks as that takes. The splits of a task are sorted, so a partition's offsets ascend.
    """
    total = sum(found.rows for found in ranges.values())
    if total == 0:
        return []
    if parallelism is None:
        parallelism = len(ranges)
    if min_partitions is not None:
        tasks, min_split_rows = min(min_partitions, total), 1
        tasks = max(tasks, min(len(ranges), parallelism))
    else:
        tasks, min_split_rows = max(1, min(parallelism, -(-total // MIN_SLICE_ROWS))), MIN_SPLIT_ROWS
    slices = _deal(_cut(ranges, total / tasks, min_split_rows), tasks)
    if max_records is None:
        return slices
    return [task for found in slices for task in _bounded(found, max_records)]


def _bounded(splits: Sequence[SliceRange], max_records: int) -> list[list[SliceRange]]:
    """One task's splits as tasks of at most this number of rows each, evenly."""
    total = sum(split.end - split.start for split in splits)
    tasks = -(-total // max_records)
    bounds = [total * i // tasks for i in range(1, tasks + 1)]
    slices: list[list[SliceRange]] = [[]]
    done = 0
    for topic, partition, start, end in splits:
        while start < end:
            if done == bounds[len(slices) - 1]:
                slices.append([])
            stop = min(end, start + bounds[len(slices) - 1] - done)
            slices[-1].append(SliceRange(topic, partition, start, stop))
            done += stop - start
            start = stop
    return slices


def _cut(ranges: Mapping[TopicPartition, OffsetRange], share: float, min_split_rows: int) -> list[SliceRange]:
    splits: list[SliceRange] = []
    for (topic, partition), (start, end) in sorted(ranges.items()):
        count = end - start
        if count == 0:
            continue
        parts = round(count / share) if count > share * OVERSIZE else 1
        parts = max(1, min(parts, count // min_split_rows))
        bounds = [start + count * i // parts for i in range(parts + 1)]
        splits.extend(SliceRange(topic, partition, a, b) for a, b in itertools.pairwise(bounds))
    return splits


def _deal(splits: Sequence[SliceRange], tasks: int) -> list[list[SliceRange]]:
    """Longest first, each to the task with the fewest rows."""
    heap: list[tuple[int, int]] = [(0, task) for task in range(min(tasks, len(splits)))]
    slices: list[list[SliceRange]] = [[] for _ in heap]
    for split in sorted(splits, key=lambda found: (found.start - found.end, found)):
        rows, task = heapq.heappop(heap)
        slices[task].append(split)
        heapq.heappush(heap, (rows + split.end - split.start, task))
    return [sorted(found) for found in slices]
