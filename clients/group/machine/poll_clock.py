"""How long the application has made no progress (KIP-62's max.poll.interval.ms), with no clock of its own."""

from __future__ import annotations


class PollClock:
    """Counts the time in which the application held an assignment and did not call `polled`.

    It stands still while there is no assignment, and while a revocation waits for the application: then the
    application waits for the member, or works for it, and cannot be expected to ask for more.
    `polled` may come from any thread; all else belongs to the thread that runs the machine.
    """

    def __init__(self, interval_ms: int | None) -> None:
        self.interval_ms = interval_ms
        self.polled_ms: int | None = None
        """The newest progress of the application; None: never."""
        self._since_ms: int | None = None
        self._stopped_ms = 0
        self._carried_ms = 0

    def polled(self, now_ms: int) -> None:
        """The application makes progress."""
        self.polled_ms = now_ms

    def let_run(self, running: bool, now_ms: int) -> None:
        """Count from now on, or stand still."""
        if running and self._since_ms is None:
            self._since_ms = now_ms
        elif not running and self._since_ms is not None:
            self._carried_ms, self._stopped_ms = self.idle_ms(now_ms), now_ms
            self._since_ms = None

    def restart(self, now_ms: int) -> None:
        """Nothing is counted before now."""
        self._since_ms, self._carried_ms, self._stopped_ms = None, 0, now_ms

    def idle_ms(self, now_ms: int) -> int:
        """Time without progress."""
        begin_ms = self._begin_ms()
        return self._left_over_ms() if begin_ms is None else max(0, now_ms - begin_ms)

    def due_ms(self) -> int | None:
        """When the interval is over, if nothing happens before; None: never."""
        begin_ms = self._begin_ms()
        return None if self.interval_ms is None or begin_ms is None else begin_ms + self.interval_ms

    def expired(self, now_ms: int) -> bool:
        """Whether the interval is over."""
        due_ms = self.due_ms()
        return due_ms is not None and due_ms <= now_ms

    def _begin_ms(self) -> int | None:
        """Where the present stretch without progress would have begun, had the clock never stood still."""
        if self._since_ms is None:
            return None
        if self.polled_ms is not None and self.polled_ms >= self._since_ms:
            return self.polled_ms
        return self._since_ms - self._left_over_ms()

    def _left_over_ms(self) -> int:
        """The time that was counted before the clock stood still, unless there was progress since."""
        polled_ms = self.polled_ms
        return 0 if polled_ms is not None and polled_ms >= self._stopped_ms else self._carried_ms
