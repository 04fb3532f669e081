"""When a batch is worth planning, and whether triggers come often enough for the group. No clock here."""

from __future__ import annotations

import logging
from dataclasses import dataclass

logger = logging.getLogger("ringleader.spark")

# A hold that takes so much of the rebalance timeout is about to lose its partitions.
NEAR = 0.7
# A worse case is logged again when it is this factor worse than the last one.
WORSE = 1.5
# Calls that follow each other faster say nothing about a trigger: Spark asks an idle source all the time.
LEAST_INTERVAL_MS = 500

# Spark asks an idle query again within some 10 ms.
AT_ONCE_S = 0.05
FIRST_WAIT_S = 0.01


@dataclass(slots=True)
class Threshold:
    """minOffsetsPerTrigger: hold a batch back until enough rows wait, or ``max_delay_ms`` have passed.

    The first batch is never held back, as in Spark's own source.
    """

    min_rows: int | None
    max_delay_ms: int
    last_ms: int | None = None

    def reached(self, rows: int, now_ms: int) -> bool:
        """Whether a batch of this number of rows is to be made now."""
        if self.min_rows is None or rows >= self.min_rows or self.last_ms is None:
            return True
        return now_ms - self.last_ms >= self.max_delay_ms

    def planned(self, now_ms: int) -> None:
        """A batch was made."""
        self.last_ms = now_ms


class Idle:
    """How long a source without news may block Spark's call: an idle one is asked 90 times a second.

    Only when Spark asks again at once, and then longer from call to call. After anything that took time, such
    as a batch of another source of the query, or such a source that blocks its call, this one does not block.
    """

    def __init__(self, longest_s: float) -> None:
        self._longest_s = longest_s
        self._wait_s = 0.0
        self._answered_s: float | None = None

    def wait_s(self, now_s: float) -> float:
        """How long this call may block."""
        if self._answered_s is None or now_s - self._answered_s > AT_ONCE_S:
            self._wait_s = 0.0
        else:
            self._wait_s = min(self._longest_s, max(FIRST_WAIT_S, 2 * self._wait_s))
        return self._wait_s

    def answered(self, now_s: float) -> None:
        """The call is over, without news."""
        self._answered_s = now_s

    def over(self) -> None:
        """There is a batch."""
        self._answered_s = None


class Triggers:
    """How long partitions are held: from the plan of a batch to its commit, which needs the next trigger.

    A source does not get the trigger interval: it is learnt from Spark's calls without a batch between.
    """

    def __init__(self, rebalance_timeout_ms: int) -> None:
        self._limit_ms = rebalance_timeout_ms
        self._reported_ms = 0.0
        self._idle_since_ms: int | None = None
        self.interval_ms: int | None = None
        """Between two triggers, as far as it could be learnt."""
        self.hold_ms: int | None = None
        """From the plan of the last batch to the call that committed it."""

    def called(self, now_ms: int) -> None:
        """Spark asks for a batch."""
        if self._idle_since_ms is not None:
            interval_ms = now_ms - self._idle_since_ms
            self.interval_ms = interval_ms if interval_ms >= LEAST_INTERVAL_MS else None
            self._warn()
        self._idle_since_ms = now_ms

    def forget(self) -> None:
        """The call that ``called`` was for gave a batch, or waited for something: the time to the next one is
        not the trigger interval."""
        self._idle_since_ms = None

    def batch_committed(self, took_ms: int) -> None:
        """That batch was over with the next call, this time after its plan."""
        self.hold_ms = took_ms
        self._warn()

    def _warn(self) -> None:
        worst_ms = max(self.hold_ms or 0, self.interval_ms or 0)
        if worst_ms <= max(self._limit_ms * NEAR, self._reported_ms * WORSE):
            return
        self._reported_ms = worst_ms
        logger.warning(
            "partitions are held for up to %d ms (the last batch took %s from its plan to its commit, "
            "triggers come every %s), and kafka.max.poll.interval.ms is %d: a rebalance meanwhile would take "
            "the partitions away before the commit. Raise it, shorten the trigger interval, or make batches "
            "smaller (maxOffsetsPerTrigger).",
            worst_ms,
            _ms(self.hold_ms),
            _ms(self.interval_ms),
            self._limit_ms,
        )


def _ms(value: int | None) -> str:
    return "an unknown time" if value is None else f"{value} ms"
