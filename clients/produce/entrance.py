"""The way of most records into their batches, in one call of compiled code."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ringleader.clients.produce.batch_builder import MAX_BATCH_ROWS
from ringleader.clients.produce.outcome import Outcome
from ringleader.clients.produce.rows import PLAIN_BYTES
from ringleader.protocol import native


class _InPython:
    """As Entrance of `_native.c`. Python has no quicker way than that of all records."""

    def __init__(self, _outcome: type, _by_murmur2: bool, _around_bytes: int, _most_rows: int) -> None:
        self.ways: dict[str, list[Any]] = {}
        """By topic: its `Turns`, if they alone tell where records without a key go, and the builders of its
        partitions, as far as they are known."""
        self.used_bytes = self.limit_bytes = 0
        """The memory of records that are not confirmed, and how much there may be for those that do not
        wait."""
        self.closed = 0
        """Whether every record goes another way."""

    def begin(self, now_ms: int, left_s: float) -> None:
        """For this time from now on, and in this thread, records have that time."""

    def accept(
        self, topic: Any, value: Any, key: Any, partition: Any, headers: Any, timestamp_ms: Any
    ) -> Outcome | None:
        """As `BatchSender.add_now`, of what `Producer.send` was given. None, and nothing done, for all but
        bytes without headers, time and partition that are neither the first nor the last of their batch."""


if TYPE_CHECKING:
    Entrance = _InPython
else:
    Entrance = _InPython if native.compiled is None else native.compiled.Entrance


def entrance(by_murmur2: bool) -> Entrance:
    """Closed to records with a key, unless `by_murmur2` they find their partition."""
    return Entrance(Outcome, by_murmur2, PLAIN_BYTES, MAX_BATCH_ROWS)
