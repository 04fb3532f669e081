"""``df.write`` with format ``ringleader``: rows into topics, at least once.

A task is done when brokers have acknowledged all its rows. After a failure Spark runs a task or a micro-batch
again, which writes its rows again: Spark gives a sink no point where all tasks could commit together.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from ringleader.spark_bridge.options.build import OptionsError
from ringleader.spark_bridge.options.sink import sink_options
from ringleader.spark_bridge.sink.produce import SinkProducer, SinkSettings
from ringleader.spark_bridge.sink.rows import check_schema, sink_rows

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

logger = logging.getLogger("ringleader.spark")


@dataclass
class TaskRows(WriterCommitMessage):
    """The rows that one task has written."""

    rows: int
    bytes: int


class Writer:
    """The common part of both kinds of sink."""

    def __init__(self, options: dict[str, str], schema: StructType) -> None:
        parsed = sink_options(options)
        check_schema(schema, parsed.topic)
        self._settings = SinkSettings.of(parsed)

    def write(self, iterator: Iterator[Any]) -> TaskRows:
        """Write a task's Arrow batches. Raises ProduceError: then nothing is promised of any of its rows."""
        producer = SinkProducer(self._settings)
        with_topics = self._settings.topic is None
        try:
            for batch in iterator:
                producer.write_rows(sink_rows(batch, with_topics))
            producer.flush()
        finally:
            producer.close()
        return TaskRows(producer.rows, producer.bytes)


class RingleaderWriter(Writer, DataSourceArrowWriter):
    """A batch of rows into topics."""

    def __init__(self, options: dict[str, str], schema: StructType, overwrite: bool) -> None:
        if overwrite:
            raise OptionsError(
                'a topic cannot be overwritten: set .mode("append") next to .format("ringleader").'
            )
        super().__init__(options, schema)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Nothing is left to do: every row is in its topic already."""
        logger.info("wrote %s", total(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Written rows stay in their topics, as those take nothing back."""
        logger.warning("a write failed; %s of finished tasks stay in their topics", total(messages))


def total(messages: Sequence[WriterCommitMessage | None]) -> str:
    """The rows of finished tasks, in words."""
    written = [found for found in messages if isinstance(found, TaskRows)]
    rows, size = sum(found.rows for found in written), sum(found.bytes for found in written)
    return f"{rows} rows ({size} bytes of batches) in {len(written)} tasks"
