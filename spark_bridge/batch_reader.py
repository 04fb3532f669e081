"""``spark.read.format("ringleader")``: a plain read of ranges; never a member, never commits.

The ranges come from offsets, timestamps or a group's commits, and are fixed when the DataFrame is first
used. ``committing.plan_read`` fixes them earlier, and commits them on request.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from ringleader.clients.model import EARLIEST, LATEST, TopicPartition
from ringleader.spark_bridge.batch.planning import cut_slices, plan_ranges
from ringleader.spark_bridge.batch.slices import Slice
from ringleader.spark_bridge.batch.starting import first_positions, last_positions, listed, subscribed
from ringleader.spark_bridge.errors import DataLossError, SourceError
from ringleader.spark_bridge.fetching.fetch import read_slice
from ringleader.spark_bridge.network.coordinator import GroupCoordinator
from ringleader.spark_bridge.network.log import KafkaLog
from ringleader.spark_bridge.network.ports import Lookup
from ringleader.spark_bridge.options import BatchOptions, batch_options
from ringleader.spark_bridge.tasks import TaskSettings

logger = logging.getLogger("ringleader.spark")


class RingleaderBatchReader(DataSourceReader):
    """The offsets are fixed when the DataFrame is first used; Spark asks for the slices once."""

    def __init__(self, options: dict[str, str]) -> None:
        self._options = dict(options)
        self._fetch = batch_options(options).task

    def partitions(self) -> Sequence[InputPartition]:
        """The tasks of the read; at least one, as Spark reads without a slice when it is given none."""
        options = batch_options(self._options)
        log = KafkaLog.of(self._fetch.endpoint, options)
        try:
            ranges = plan_ranges(*batch_bounds(options, self._fetch, log))
        finally:
            log.close()
        slices = cut_slices(
            ranges, options.parallelism, options.min_partitions, options.max_records_per_partition
        )
        return [Slice(found) for found in slices or [[]]]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Fetch the ranges of a task as Arrow batches."""
        assert isinstance(partition, Slice)
        return read_slice(self._fetch, partition.ranges)


def batch_bounds(
    options: BatchOptions, fetch: TaskSettings, log: Lookup
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """Where each partition of a batch read starts, and where it ends (exclusive, perhaps before that).

    Raises SourceError for what does not fit the topics, DataLossError for ranges that are (partly) gone
    while ``failOnDataLoss`` is set.
    """
    known = _wanted(options, log)
    # Logs lose records at their start and gain some at their end meanwhile: bounds are never narrower.
    first = log.offsets(dict.fromkeys(known, EARLIEST))
    starts, ends = _starts(options, fetch, known, log), last_positions(options, known, log)
    last = log.offsets(dict.fromkeys(known, LATEST))
    for tp in sorted(starts.keys() & ends.keys()):
        start, end = starts[tp], ends[tp]
        low, high = first.get(tp, start), last.get(tp, end)
        if start > high or (start < end and (start < low or end > high)):
            text = f"{tp[0]}-{tp[1]} should be read from {start} to {end}, but the log holds {low} to {high}"
            if options.fail_on_data_loss:
                raise DataLossError(f"{text}. Set failOnDataLoss=false to read what is there.")
            logger.warning("%s; reading what is there (failOnDataLoss=false)", text)
        starts[tp], ends[tp] = max(low, start), min(high, end)
    return starts, ends


def _wanted(options: BatchOptions, log: Lookup) -> list[TopicPartition]:
    if options.assign:
        there = set(log.partitions(tuple(sorted({topic for topic, _ in options.assign}))))
        if unknown := [tp for tp in options.assign if tp not in there]:
            raise SourceError(f"assign names {listed(unknown)}, which does not exist")
        known = list(options.assign)
    else:
        known = subscribed(options.subscription, log)
        if options.subscribe_pattern is not None and not known:
            logger.warning("no topic matches %r: there is nothing to read", options.subscribe_pattern)
        if missing := sorted(set(options.subscribe) - {topic for topic, _ in known}):
            raise SourceError(f"no such topic: {', '.join(missing)}")
    for name, given in (
        ("startingOffsets", options.starting_offsets),
        ("startingOffsetsByTimestamp", options.starting_offsets_by_timestamp),
        ("endingOffsets", options.ending_offsets),
        ("endingOffsetsByTimestamp", options.ending_offsets_by_timestamp),
    ):
        if isinstance(given, dict) and (strange := set(given) - set(known)):
            raise SourceError(f"{name} names {listed(strange)}, which does not exist")
    return known


def _starts(
    options: BatchOptions, fetch: TaskSettings, known: Sequence[TopicPartition], log: Lookup
) -> dict[TopicPartition, int]:
    if options.timed_start or options.starting_offsets != "committed":
        return first_positions(options, known, log)
    timeout_s = options.api_timeout_ms / 1000
    with GroupCoordinator(options.coordinators, options.group_id or "", timeout_s) as offsets:
        committed = {tp: found.offset for tp, found in offsets.fetch(known).items()}
    return first_positions(options, [tp for tp in known if tp not in committed], log) | committed
