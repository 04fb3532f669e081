"""The settings of a task that fetches: plain values, which pickle small and import fast.

Spark unpickles the reader in several kinds of process, and most of them never speak to a broker.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ringleader.clients.blocking.endpoint import Endpoint

if TYPE_CHECKING:
    from ringleader.spark_bridge.options import BatchOptions, StreamOptions
    from ringleader.spark_bridge.settings import StreamSettings


@dataclass(frozen=True)
class FetchSettings:
    """The settings of a task; plain values, so that pickling is cheap."""

    endpoint: Endpoint
    poll_timeout_ms: int = 120_000
    read_committed: bool = False
    include_headers: bool = False
    fail_on_data_loss: bool = True
    fetch_max_bytes: int = 8 * 1024 * 1024
    partition_max_bytes: int = 4 * 1024 * 1024
    fetch_max_wait_ms: int = 500
    columns: tuple[str, ...] | None = None
    """Of the rows; None: all."""

    @classmethod
    def of(cls, options: StreamOptions | BatchOptions | StreamSettings) -> FetchSettings:
        """The part of the options that executors need."""
        return cls(
            options.endpoint,
            options.poll_timeout_ms,
            options.isolation_level == "read_committed",
            "headers" in options.row_columns,
            options.fail_on_data_loss,
            options.fetch_max_bytes,
            options.partition_max_bytes,
            options.fetch_max_wait_ms,
            None if options.columns is None else options.row_columns,
        )
