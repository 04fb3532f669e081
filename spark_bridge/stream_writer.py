"""``df.writeStream`` with format ``ringleader``: as ``df.write``, each micro-batch. PySpark 4.1 and newer."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage

from ringleader.spark_bridge.writer import Writer, total

logger = logging.getLogger("ringleader.spark")


class RingleaderStreamWriter(Writer, DataSourceStreamArrowWriter):
    """A streaming query's rows into topics. In complete mode each batch writes the whole result again."""

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Nothing is left to do: every row is in its topic already."""
        logger.info("batch %d wrote %s", batchId, total(messages))

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Written rows stay in their topics, and come again when Spark runs the batch again."""
        logger.warning("batch %d failed; %s of finished tasks stay in their topics", batchId, total(messages))
