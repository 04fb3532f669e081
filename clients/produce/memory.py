"""The bytes that a producer may hold: records wait for room in the order of their coming."""

from __future__ import annotations

import asyncio
from collections import deque

from ringleader.clients.produce.entrance import Entrance


class Memory:
    """Belongs to one event loop."""

    def __init__(self, limit_bytes: int, entrance: Entrance) -> None:
        """`entrance`: takes of it, too."""
        self.limit_bytes = limit_bytes
        self._entrance = entrance
        self.waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        """Records that wait for room."""
        self._admit()

    @property
    def used_bytes(self) -> int:
        """The bytes of all records that were accepted and are not confirmed."""
        return self._entrance.used_bytes

    def has_room(self, size_bytes: int) -> bool:
        """Whether no caller has to wait for it."""
        return not self.waiting and self.used_bytes + size_bytes <= self.limit_bytes

    def take_now(self, size_bytes: int) -> bool:
        """Whether there was room, and no earlier caller waits."""
        if not self.has_room(size_bytes):
            return False
        self._entrance.used_bytes += size_bytes
        return True

    async def take(self, size_bytes: int) -> None:
        """Wait for room. A caller that is cancelled has taken nothing."""
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (size_bytes, turn)
        self.waiting.append(entry)
        self._entrance.limit_bytes = 0
        try:
            await turn
        except BaseException:
            if turn.done() and not turn.cancelled():
                self.give(size_bytes)
            else:
                self.waiting.remove(entry)
                self._admit()
            raise

    def give(self, size_bytes: int) -> None:
        """Give back."""
        self._entrance.used_bytes -= size_bytes
        self._admit()

    def _admit(self) -> None:
        while self.waiting and self.used_bytes + self.waiting[0][0] <= self.limit_bytes:
            size_bytes, turn = self.waiting.popleft()
            if not turn.done():
                self._entrance.used_bytes += size_bytes
                turn.set_result(None)
        self._entrance.limit_bytes = 0 if self.waiting else self.limit_bytes
