"""A Python source that does nothing but hand Spark rows it has: what any Python source costs at least."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from ringleader.spark_bridge.rows import arrow_schema, spark_schema

SLICES = 2


class EmptySource(DataSource):
    """Options: `batches` until AvailableNow ends; `rows` of each slice."""

    @classmethod
    def name(cls) -> str:
        """For `format`."""
        return "bench-empty"

    def schema(self) -> StructType:
        """The columns of a Kafka row."""
        return spark_schema(False)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """The reader."""
        return _Reader(int(self.options.get("batches", "1")), int(self.options.get("rows", "0")))


class _Reader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, batches: int, rows: int) -> None:
        self._batches = batches
        self._rows = rows

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return {"n": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        pass

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        return {"n": min(start["n"] + 1, self._batches)}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return [InputPartition(number) for number in range(SLICES)] if start != end else []

    def read(self, partition: InputPartition) -> Iterator[Any]:
        import pyarrow as pa

        if self._rows:
            schema = arrow_schema(False)
            row = dict.fromkeys(schema.names) | {"value": b"v", "topic": "t", "partition": 0, "offset": 0}
            yield pa.RecordBatch.from_pylist([row] * self._rows, schema=schema)
