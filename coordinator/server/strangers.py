"""Peers that have not authenticated, and the small pool of memory that they share.

They cost each other, never the clients that have logged in: when the pool is full, or the node has no room
for one more connection, one of them is closed. It is one of the address that holds most, and of these one
that holds most, the oldest first. All that a login can take counts as the same: a client on its way through
one is not closed before silent peers that came earlier.
"""

from __future__ import annotations

from typing import Final, Generic, Protocol, TypeVar

from ringleader.coordinator.clock import Clock
from ringleader.coordinator.logs import Log

CONNECTION_BYTES: Final = 8_192
"""Memory for a connection besides the bytes it has sent, roughly."""
HANDSHAKE_BYTES: Final = 65_536
"""Likewise with TLS, from the ClientHello on."""
LONG_READ_BYTES: Final = 655_360
"""Memory that TLS takes besides from a long read on, roughly: the buffer that it reads into (256 KiB) and the
one in which it waits to be decrypted keep the size of the longest read, as long as the connection lives."""
LOGIN_BYTES: Final = 524_287
"""Memory that a peer may hold while it logs in: handshake, TLS, messages of SASL. Below it no peer counts as
holding more than another."""
LOG_INTERVAL_S = 5.0
"""One line reports a peer that was closed; those within this time after it are counted in the next."""


class Stranger(Protocol):
    """A peer that has not authenticated."""

    address: str
    peer: str

    def give_way(self) -> None:
        """Close it. Without a log line."""


T = TypeVar("T")


class _Ranked(Generic[T]):
    """Things by what they hold above `floor`, to a factor of two; within that the oldest first."""

    __slots__ = ("_by_rank", "_floor", "held")

    def __init__(self, floor: int) -> None:
        self._floor = floor
        self.held: dict[T, int] = {}
        self._by_rank: dict[int, dict[T, None]] = {}

    def put(self, one: T, held: int) -> None:
        before = self.held.get(one)
        self.held[one] = held
        rank = self._rank(held)
        if before is not None:
            if self._rank(before) == rank:
                return
            self._take(one, before)
        self._by_rank.setdefault(rank, {})[one] = None

    def remove(self, one: T) -> int:
        """Returns the bytes that it held."""
        held = self.held.pop(one)
        self._take(one, held)
        return held

    def most(self) -> T:
        return next(iter(self._by_rank[max(self._by_rank)]))

    def _rank(self, held: int) -> int:
        return max(held, self._floor).bit_length()

    def _take(self, one: T, held: int) -> None:
        rank = self._rank(held)
        del self._by_rank[rank][one]
        if not self._by_rank[rank]:
            del self._by_rank[rank]


class Strangers:
    """Those of a server, on all listeners with SASL or TLS."""

    def __init__(self, most_bytes: int, now_ms: Clock, log: Log) -> None:
        self._most = most_bytes
        self._now_ms = now_ms
        self._log = log
        self._floor = min(LOGIN_BYTES, most_bytes // 2)
        self._addresses: _Ranked[str] = _Ranked(self._floor)
        self._at: dict[str, _Ranked[Stranger]] = {}
        self.held_bytes = 0
        """Bytes that all of them hold."""
        self.closed = 0
        """Peers that were closed so far to make room."""
        self._base: dict[Stranger, int] = {}
        """Memory for each besides the bytes it has sent."""
        self._unreported = 0
        self._reported_ms: int | None = None

    def __len__(self) -> int:
        return len(self._base)

    def has(self, one: Stranger) -> bool:
        """Whether it is one of them."""
        return one in self._base

    def enter(self, one: Stranger, base: int) -> None:
        """It is here, and takes `base` bytes besides those it sends, at least 1; may be called again with
        more. Closes some, perhaps this one, if all hold too much."""
        self._base[one] = base
        self._weigh(one, base)

    def weigh(self, one: Stranger, held: int) -> None:
        """`held` bytes that it has sent are kept. Closes some likewise."""
        if one in self._base:
            self._weigh(one, self._base[one] + held)

    def leave(self, one: Stranger) -> None:
        """It is gone, or has authenticated. May be called again."""
        if self._base.pop(one, None) is not None:
            at = self._at[one.address]
            less = at.remove(one)
            if not at.held:
                del self._at[one.address]
            self._changed(one.address, -less)

    def _weigh(self, one: Stranger, held: int) -> None:
        at = self._at.get(one.address)
        if at is None:
            at = self._at[one.address] = _Ranked(self._floor)
        before = at.held.get(one, 0)
        at.put(one, held)
        self._changed(one.address, held - before)
        while self.held_bytes > self._most:
            self._close("they hold more than connections.unauthenticated.max.bytes")

    def make_room(self, reason: str, address: str | None = None) -> bool:
        """Close one, of this address if one is given. Whether there was one."""
        if not self._base or (address is not None and address not in self._at):
            return False
        self._close(reason, address)
        return True

    def _changed(self, address: str, more: int) -> None:
        self.held_bytes += more
        held = self._addresses.held.get(address, 0) + more
        if held:
            self._addresses.put(address, held)
        else:
            self._addresses.remove(address)

    def _close(self, reason: str, address: str | None = None) -> None:
        one = self._at[self._addresses.most() if address is None else address].most()
        held = self.held_bytes
        self.leave(one)
        self.closed += 1
        one.give_way()
        now_ms = self._now_ms()
        if self._reported_ms is not None and now_ms - self._reported_ms < LOG_INTERVAL_S * 1000:
            self._unreported += 1
            return
        self._log.warning(
            "a peer that has not authenticated was closed",
            peer=one.peer,
            reason=reason,
            unauthenticated=len(self._base) + 1,
            held_bytes=held,
            closed_before=self._unreported,
        )
        self._reported_ms, self._unreported = now_ms, 0
