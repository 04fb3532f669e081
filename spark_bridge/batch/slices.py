"""The slices that one Spark task reads."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql.datasource import InputPartition

from ringleader.spark_bridge.values import SliceRange


class Slice(InputPartition):
    """The ranges of one task."""

    def __init__(self, ranges: Sequence[SliceRange]) -> None:
        super().__init__(None)
        self.ranges = list(ranges)
