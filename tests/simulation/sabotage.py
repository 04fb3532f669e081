"""An exception in the middle of the machine: a method of one of its parts raises once."""

from __future__ import annotations

import random
from typing import Any

from ringleader.coordinator import deadlines
from ringleader.coordinator.groups.core import Core
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.rebalance import Rebalances
from ringleader.coordinator.groups.reports import Reports
from ringleader.coordinator.machine import Outbox
from ringleader.coordinator.unix_time import UnixTime

_TARGETS: tuple[tuple[type, str], ...] = (
    (Outbox, "emit"),
    (Outbox, "answer"),
    (Outbox, "advance"),
    (Outbox, "take"),
    (Core, "arm"),
    (Core, "arm_session"),
    (Core, "reply"),
    (Core, "durable"),
    (Core, "_apply"),
    (Core, "_apply_offset"),
    (Core, "_apply_pending"),
    (Core, "write_offsets"),
    (Core, "write_group"),
    (Reports, "end_rebalance"),
    (Core, "forget_if_absent"),
    (Group, "transition"),
    (Group, "follow_record"),
    (Group, "add"),
    (Group, "remove"),
    (Group, "rename"),
    (Group, "check_member"),
    (deadlines.DeadlineHeap, "_push"),
    (deadlines.DeadlineHeap, "_pop"),
    (Rebalances, "complete"),
    (Rebalances, "_prepare"),
    (Rebalances, "unpark_join"),
    (Rebalances, "session_fired"),
    (UnixTime, "stamp_ms"),
)
_COMPACT_ABOVE = 4
"""So few cancelled deadlines, that compactions of the heap happen in these small worlds."""


class InjectedError(Exception):
    """Raised in the machine on purpose."""


class Sabotage:
    """Arms one target at a time. `inside`: the machine is being called by its runtime."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.inside = False
        self.thrown = 0
        self._armed: tuple[type, str, Any] | None = None
        self._compact_above = deadlines._COMPACT_ABOVE
        deadlines._COMPACT_ABOVE = _COMPACT_ABOVE

    def arm(self) -> None:
        """The next, or one of the next calls of some method raises: before it does its work, or after."""
        self._disarm()
        target, name = self.rng.choice(_TARGETS)
        left, after = self.rng.choice((1, 1, 2, 10)), self.rng.random() < 0.5
        real = getattr(target, name)

        def broken(*args: Any) -> Any:
            nonlocal left
            if not self.inside:
                return real(*args)
            left -= 1
            if left:
                return real(*args)
            self._disarm()
            if after:
                real(*args)
            self.thrown += 1
            raise InjectedError(f"{target.__name__}.{name}")

        self._armed = (target, name, real)
        setattr(target, name, broken)

    def _disarm(self) -> None:
        if self._armed is not None:
            target, name, real = self._armed
            setattr(target, name, real)
            self._armed = None

    def over(self) -> None:
        """Everything is as it was."""
        self._disarm()
        deadlines._COMPACT_ABOVE = self._compact_above
