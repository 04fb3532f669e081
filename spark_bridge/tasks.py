"""The settings of a task that fetches: plain values, which pickle small and import fast.

Spark unpickles the reader in several kinds of process, and most of them never speak to a broker. The options
take their defaults from here.
"""

from __future__ import annotations

from dataclasses import dataclass

from ringleader.clients.blocking.endpoint import Endpoint

DEFAULT_TIMEOUT_S = 60.0
"""Kafka's default.api.timeout.ms."""


@dataclass(frozen=True)
class TaskSettings:
    """The part of the options that executors need."""

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
