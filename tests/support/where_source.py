"""A streaming source whose rows say where Spark's Python processes import PySpark from."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyspark
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit


@dataclass
class Where(InputPartition):
    """The figures that the driver-side worker reports."""

    file: str
    zips: int


class WhereReader(DataSourceStreamReader):
    """One batch: a row of the process that plans it, and one of the process that reads it."""

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return {"batch": 0}

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        return {"batch": 1}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        return [Where(*_here())]

    def read(self, partition: InputPartition) -> Iterator[tuple[str, str, int]]:
        assert isinstance(partition, Where)
        yield ("driver", partition.file, partition.zips)
        yield ("task", *_here())


class WhereSource(DataSource):
    """Format `where`: process, file of PySpark, zips of Spark's on the path."""

    @classmethod
    def name(cls) -> str:
        return "where"

    def schema(self) -> str:
        return "process string, file string, zips int"

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802
        return WhereReader()


def _here() -> tuple[str, int]:
    return pyspark.__file__, sum(entry.endswith(".zip") and "spark" in entry for entry in sys.path)
