"""``spark.read.format("ringleader")``: a plain read of ranges by offsets; never a member, never commits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from ringleader.spark_bridge.errors import DataLossError, SourceError
from ringleader.spark_bridge.fetch import FetchSettings, read_slice
from ringleader.spark_bridge.log import KafkaLog
from ringleader.spark_bridge.offsets import EARLIEST, LATEST, TopicPartition
from ringleader.spark_bridge.planning import cut_slices, plan_ranges
from ringleader.spark_bridge.slices import Slice


class RingleaderBatchReader(DataSourceReader):
    """The offsets are fixed when the DataFrame is first used; Spark asks for the slices once."""

    def __init__(self, options: dict[str, str]) -> None:
        from ringleader.spark_bridge.options import batch_options

        self._options = dict(options)
        self._fetch = FetchSettings.of(batch_options(options))

    def partitions(self) -> Sequence[InputPartition]:
        """The tasks of the read."""
        from ringleader.spark_bridge.options import batch_options

        options = batch_options(self._options)
        log = KafkaLog(self._fetch.endpoint, self._fetch.read_committed)
        try:
            known = log.partitions(options.subscribe)
            if missing := sorted(set(options.subscribe) - {topic for topic, _ in known}):
                raise SourceError(f"no such topic: {', '.join(missing)}")
            bounds = log.offsets(dict.fromkeys(known, EARLIEST)), log.ends(known)
            starting: Any = options.starting_offsets
            if starting == "committed":
                from ringleader.spark_bridge.group import committed_offsets

                starting = dict.fromkeys(known, EARLIEST) | committed_offsets(options, known)
            starts = _resolve(starting, known, *bounds, "startingOffsets")
            ends = _resolve(options.ending_offsets, known, *bounds, "endingOffsets")
        finally:
            log.close()
        if options.fail_on_data_loss:
            _check_bounds(starts, ends, *bounds)
        starts = {tp: max(offset, bounds[0].get(tp, offset)) for tp, offset in starts.items()}
        ends = {tp: min(offset, bounds[1].get(tp, offset)) for tp, offset in ends.items()}
        ranges = plan_ranges(starts, ends)
        return [Slice(found) for found in cut_slices(ranges, options.parallelism, options.min_partitions)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Fetch the ranges of a task as Arrow batches."""
        assert isinstance(partition, Slice)
        return read_slice(self._fetch, partition.ranges)


def _resolve(
    wanted: Any,
    known: Sequence[TopicPartition],
    first: dict[TopicPartition, int],
    last: dict[TopicPartition, int],
    name: str,
) -> dict[TopicPartition, int]:
    if wanted == "earliest":
        return dict(first)
    if wanted == "latest":
        return dict(last)
    given = set(wanted)
    if strange := sorted(given - set(known)):
        raise SourceError(f"{name} names {_listed(strange)}, which does not exist")
    if missing := sorted(set(known) - given):
        raise SourceError(
            f"{name} must name every partition of the subscription; {_listed(missing)} is missing"
        )
    special = {EARLIEST: first, LATEST: last}
    return {tp: special[offset][tp] if offset in special else offset for tp, offset in wanted.items()}


def _check_bounds(
    starts: dict[TopicPartition, int],
    ends: dict[TopicPartition, int],
    first: dict[TopicPartition, int],
    last: dict[TopicPartition, int],
) -> None:
    for tp, start in starts.items():
        end = ends[tp]
        if start < end and not (first[tp] <= start and end <= last[tp]):
            raise DataLossError(
                f"{tp[0]}-{tp[1]} should be read from {start} to {end}, but the log holds {first[tp]} to "
                f"{last[tp]}. Set "
                "failOnDataLoss=false to read what is there."
            )


def _listed(partitions: Sequence[TopicPartition]) -> str:
    return ", ".join(f"{topic}-{partition}" for topic, partition in partitions)
