"""The stream reader as Spark calls it: a thin shell around the driver, and the process's manners.

Spark builds this object in three kinds of process: in short-lived planner workers, in one driver-side
worker per query (which makes all calls but ``read``), and in every executor task. So nothing is joined,
opened or started before a call needs it, and nothing of that kind is pickled.
"""

from __future__ import annotations

import logging
import signal
import threading
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from ringleader.spark_bridge.batch.document import empty
from ringleader.spark_bridge.batch.slices import Slice
from ringleader.spark_bridge.errors import SourceError
from ringleader.spark_bridge.settings import StreamSettings

# Passed where there is no limit: with trigger(once=True), and only then, Spark passes ReadAllAvailable.
NO_LIMIT = ReadMaxRows(2**63 - 1)


class RingleaderStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A streaming query that is a member of its consumer group."""

    def __init__(self, options: dict[str, str], settings: StreamSettings | None = None) -> None:
        """``settings``: what is known of the options already. Raises OptionsError."""
        if settings is None:
            from ringleader.spark_bridge.options import stream_options

            settings = StreamSettings(stream_options(options))
        self._settings: Any = settings
        self._fetch = self._settings.task
        self._driver: Any = None
        self._previous_handler: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_driver": None, "_previous_handler": None}

    # -- driver-side worker

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """A constant: the true start is resolved once and pinned in the group, as Spark may ask again."""
        return empty(self._settings.group_id).to_json()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """maxOffsetsPerTrigger."""
        rows = self._settings.max_offsets_per_trigger
        return NO_LIMIT if rows is None else ReadMaxRows(rows)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Read what is there now, then end."""
        self._live().prepare_available_now()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """The end of the next batch; commits the batch that ended at ``start``.

        Raises SourceError for trigger(once=True), what ``SourceDriver.latest`` raises.
        """
        if isinstance(limit, ReadAllAvailable):
            raise SourceError(
                "trigger(once=True) tells a source nothing when its batch is over, so that batch could not "
                "be committed to the group. Use trigger(availableNow=True): it reads what is there, commits, "
                "and ends."
            )
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        found: dict[str, Any] = self._live().latest(start, rows)
        return found

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802
        """Log ends, lag, what is owned by which member, for the query's progress."""
        found: dict[str, Any] | None = None if self._driver is None else self._driver.report()
        return found

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """The tasks of a batch; ``end`` alone says everything."""
        if start == end:
            return []
        return [Slice(found) for found in self._live().slices(end)]

    def commit(self, end: dict[str, Any]) -> None:
        """Not the signal to commit: it comes late and sometimes never. ``latestOffset`` is."""
        if self._driver is not None:
            self._driver.note_commit(end)

    def stop(self) -> None:
        """Leave the group."""
        driver, self._driver = self._driver, None
        if driver is None:
            return
        if self._previous_handler is not None:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        try:
            driver.stop()
        finally:
            if self._previous_handler is not None:
                signal.signal(signal.SIGTERM, self._previous_handler)
                self._previous_handler = None

    # -- executors

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Fetch the ranges of a task as Arrow batches."""
        assert isinstance(partition, Slice)
        from ringleader.spark_bridge.fetching.fetch import read_slice

        return read_slice(self._fetch, partition.ranges)

    def _live(self) -> Any:
        """The driver, joined at the first call that needs it."""
        if self._driver is None:
            from ringleader.spark_bridge.group.driver import SourceDriver
            from ringleader.spark_bridge.network.log import KafkaLog

            _log_to_stderr()
            self._leave_on_sigterm()
            log = KafkaLog.of(self._fetch.endpoint, self._settings)
            self._driver = SourceDriver(self._settings, self._group(), log)
        return self._driver

    def _group(self) -> Any:
        if self._settings.assign:
            from ringleader.spark_bridge.group.assigned_partitions import AssignedPartitions

            return AssignedPartitions(self._settings)
        from ringleader.spark_bridge.group.consumer_group import ConsumerGroup

        return ConsumerGroup(self._settings)

    def _leave_on_sigterm(self) -> None:
        """Spark ends this process with SIGTERM, often twice within milliseconds, and without ``stop``."""
        if threading.current_thread() is not threading.main_thread():
            return

        def leave(signum: int, frame: FrameType | None) -> None:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            # Unwinding frees locks and buffers, and runs ``stop`` in Spark's own ``finally``.
            raise SystemExit(128 + signum)

        self._previous_handler = signal.signal(signal.SIGTERM, leave) or signal.SIG_DFL


def _log_to_stderr() -> None:
    """In Spark's worker nobody has set up logging, and what the member does should be seen."""
    from ringleader.spark_bridge.group.other_members import in_spark_worker

    logger = logging.getLogger("ringleader")
    if in_spark_worker() and not logger.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        logger.addHandler(handler)
        logger.setLevel(logging.INFO)
        # A query has several members; each rebalance is logged once, by the query.
        logging.getLogger("ringleader.clients").setLevel(logging.WARNING)
