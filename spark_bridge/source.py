"""Format ``ringleader``: what Spark finds by the name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)

from ringleader.spark_bridge.errors import OptionsError, sentence_only
from ringleader.spark_bridge.rows import spark_schema
from ringleader.spark_bridge.settings import StreamSettings

if TYPE_CHECKING:
    from pyspark.sql.types import StructType


class RingleaderDataSource(DataSource):
    """Kafka topics as rows: a stream is a member of its consumer group, a batch read is not; and a sink."""

    def __init__(self, options: Any) -> None:
        # Spark builds this for sources and sinks alike, so the options are looked at by what it is used for.
        super().__init__(options)
        self._given = dict(options)
        self._checked: tuple[tuple[str, ...], StreamSettings | None] | None = None

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "ringleader"

    @sentence_only
    def schema(self) -> StructType:
        """The rows of Spark's Kafka connector. Raises OptionsError for what no source could use."""
        columns, _ = self._check()
        return spark_schema("headers" in columns, columns)

    @sentence_only
    def reader(self, schema: StructType) -> DataSourceReader:
        """A batch read."""
        from ringleader.spark_bridge.batch_reader import RingleaderBatchReader

        self._refuse_other(schema)
        return RingleaderBatchReader(self._given)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """A streaming read. For wrong options a reader that says so when it is used: what this method raises,
        Spark hides behind an error of its own."""
        from ringleader.spark_bridge.refused import RefusedStreamReader

        try:
            from ringleader.spark_bridge.reader import RingleaderStreamReader
        except ImportError as error:
            return RefusedStreamReader(
                f"a stream of format ringleader needs PySpark 4.2 or newer, and pyarrow: {error}. spark.read "
                "works with PySpark 4.0 and newer."
            )
        try:
            self._refuse_other(schema)
            _, settings = self._check()
            return RingleaderStreamReader(self._given, settings)
        except OptionsError as error:
            return RefusedStreamReader(str(error))

    @sentence_only
    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """A batch of rows into topics."""
        from ringleader.spark_bridge.writer import RingleaderWriter

        return RingleaderWriter(self._given, schema, overwrite)

    @sentence_only
    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:  # noqa: N802
        """A stream of rows into topics; ``overwrite`` is complete mode: the whole result each time."""
        try:
            from ringleader.spark_bridge.stream_writer import RingleaderStreamWriter
        except ImportError as error:
            raise OptionsError(
                f"a streaming sink of format ringleader needs PySpark 4.1 or newer: {error}. With "
                "PySpark 4.0 use foreachBatch, and df.write in it."
            ) from None

        return RingleaderStreamWriter(self._given, schema)

    def _check(self) -> tuple[tuple[str, ...], StreamSettings | None]:
        """As the function, once: Spark pickles this object after ``schema``."""
        if self._checked is None:
            self._checked = _check(self._given)
        return self._checked

    def _refuse_other(self, schema: StructType) -> None:
        if _columns(schema) != _columns(self.schema()):
            raise OptionsError(
                f"format ringleader takes no schema; its rows are {self.schema().simpleString()}. "
                "Parse the value with from_json, from_avro or a cast."
            )


def _columns(schema: StructType) -> list[tuple[str, str]]:
    return [(field.name, field.dataType.simpleString()) for field in schema.fields]


def _check(options: dict[str, str]) -> tuple[tuple[str, ...], StreamSettings | None]:
    """Refuse at load() what neither a stream nor a batch read could use.

    The columns of the rows, and what a stream needs to know if these are options for one.
    """
    from ringleader.spark_bridge.options import batch_options, stream_options

    try:
        found = stream_options(options)
        return found.row_columns, StreamSettings(found)
    except OptionsError as error:
        try:
            return batch_options(options).row_columns, None
        except OptionsError:
            if any(name.lower() == "kafka.group.id" for name in options):
                raise error from None
            raise
