"""Work in hand: who begins it, who ends it, and how a revocation waits for its end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable

from ringleader.clients.model import Assigned


class WorkGate:
    """Lets work begin while there is a share and nobody wants it back. From any thread; never waits.

    Work of one owner (a task, a thread) inside of its own work always gets in: it is a part of it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._share: Assigned | None = None
        self._owners: dict[Hashable, list[Assigned]] = {}
        self._closings = 0
        self._idle: Callable[[], None] | None = None

    @property
    def in_hand(self) -> int:
        """Pieces of work that have begun and not ended; those inside of others do not count."""
        return len(self._owners)

    @property
    def closings(self) -> int:
        """How often it was closed; what `open` has to know."""
        return self._closings

    def holds(self, owner: Hashable) -> bool:
        """Whether that owner has work in hand."""
        return owner in self._owners

    def enter(self, owner: Hashable) -> Assigned | None:
        """Begin work: the share that it belongs to. None: not now."""
        with self._lock:
            held = self._owners.get(owner)
            share = self._share if held is None else held[-1]
            if share is not None:
                self._owners.setdefault(owner, []).append(share)
            return share

    def exit(self, owner: Hashable) -> None:
        """End it."""
        with self._lock:
            held = self._owners[owner]
            held.pop()
            if held:
                return
            del self._owners[owner]
            idle = None
            if not self._owners:
                idle, self._idle = self._idle, None
        if idle is not None:
            idle()

    def open(self, share: Assigned, closings: int) -> None:
        """Let work begin, unless it was closed after that many closings."""
        with self._lock:
            if closings == self._closings:
                self._share = share

    def close(self, idle: Callable[[], None] | None = None) -> int:
        """Let nothing begin. The pieces of work in hand; if there are any, `idle` is called at their end, in
        the thread that ends the last one."""
        with self._lock:
            self._share = None
            self._closings += 1
            self._idle = idle if self._owners else None
            return len(self._owners)
