"""Work in hand: its beginning, its end, and how a revocation waits for that."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar

from ringleader.clients.model import Assigned

_inside: ContextVar[tuple[Work, ...]] = ContextVar("work in hand", default=())
"""The work that the running code is a part of. A task begins with what the code that made it is a part of."""


class Work:
    """One block of work, until it ends. Work that begins inside of it is a part of the same piece."""

    __slots__ = ("assigned", "before", "gate", "live", "piece")

    def __init__(self, gate: WorkGate, assigned: Assigned, piece: Piece, before: tuple[Work, ...]) -> None:
        self.gate = gate
        self.assigned = assigned
        self.piece = piece
        self.before = before
        self.live = True


class Piece:
    """A block of work with all that began inside of it: the unit that a revocation waits for."""

    __slots__ = ("blocks",)

    def __init__(self) -> None:
        self.blocks = 0


class WorkGate:
    """Lets work begin while there is an assignment that the group does not want back. From any
    thread; never waits.

    Work inside of work in hand always gets in: it is a part of it. Inside are the same task or thread, and
    tasks that were made there (`asyncio.TaskGroup`, `asyncio.to_thread`), as long as that work lasts.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._assigned: Assigned | None = None
        self._pieces: set[Piece] = set()
        self._closings = 0
        self._idle: Callable[[], None] | None = None

    @property
    def in_hand(self) -> int:
        """Pieces of work that have begun and not ended; those inside of others do not count."""
        return len(self._pieces)

    @property
    def closings(self) -> int:
        """How often it was closed; what `open` has to know."""
        return self._closings

    def inside(self) -> bool:
        """Whether the running code is a part of work in hand."""
        return self._around() is not None

    def enter(self) -> Work | None:
        """Begin work. None: not now."""
        with self._lock:
            around = self._around()
            assigned = self._assigned if around is None else around.assigned
            if assigned is None:
                return None
            piece = Piece() if around is None else around.piece
            piece.blocks += 1
            self._pieces.add(piece)
        before = tuple(work for work in _inside.get() if work.live)
        work = Work(self, assigned, piece, before)
        _inside.set((*before, work))
        return work

    def exit(self, work: Work) -> None:
        """End it."""
        if work in _inside.get():  # else it is ended elsewhere than it was begun
            _inside.set(work.before)
        with self._lock:
            work.live = False
            work.piece.blocks -= 1
            if work.piece.blocks:
                return
            self._pieces.discard(work.piece)
            idle = None
            if not self._pieces:
                idle, self._idle = self._idle, None
        if idle is not None:
            idle()

    def open(self, assigned: Assigned, closings: int) -> None:
        """Let work begin, unless it was closed after that many closings."""
        with self._lock:
            if closings == self._closings:
                self._assigned = assigned

    def close(self, idle: Callable[[], None] | None = None) -> int:
        """Let nothing begin. The pieces of work in hand; if there are any, `idle` is called at their end, in
        the thread that ends the last one."""
        with self._lock:
            self._assigned = None
            self._closings += 1
            self._idle = idle if self._pieces else None
            return len(self._pieces)

    def _around(self) -> Work | None:
        for work in reversed(_inside.get()):
            if work.gate is self and work.live:
                return work
        return None
