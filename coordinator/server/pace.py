"""The waits of a connection: when it came too fast (KIP-612), and while a quota throttles it (KIP-219)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ringleader.coordinator.server.connection import Connection
    from ringleader.coordinator.server.shared import Shared
    from ringleader.coordinator.server.throttle import Account


class Pace:
    """See the module. Also the connection as quotas see it (`Metered`)."""

    __slots__ = ("_connection", "_server", "_timer", "exempt")

    def __init__(self, server: Shared[Connection], connection: Connection) -> None:
        self._server = server
        self._connection = connection
        self._timer: asyncio.TimerHandle | None = None
        self.exempt = False
        """No quota counts: the peer is another node."""

    @property
    def account(self) -> Account | None:
        """See `Metered`."""
        return self._connection.account

    @property
    def moved_ms(self) -> int:
        """See `Metered`."""
        return self._connection.moved_ms

    def quotas_changed(self) -> None:
        """Look up again which quotas count."""
        throttle, connection = self._server.throttle, self._connection
        if throttle is None:
            connection.account = None
        elif connection.account is None:
            connection.account = throttle.unknown(self)
        else:
            connection.account.over = True

    def come_in(self) -> None:
        """The connection was accepted. Over TLS the same is done before the handshake."""
        delay = self._server.arriving.delay(self._connection.address)
        if delay.refused:
            self._server.throttles += 1
            self._wait(delay.ms, partial(self._connection.close, quietly=True))
        else:
            self.mute(delay.ms)

    def mute(self, throttle_ms: int) -> None:
        """See `Metered`."""
        if throttle_ms and not self.exempt and not self._connection.closing:
            self._server.throttles += 1
            self._wait(throttle_ms, self._over)

    def _wait(self, ms: int, then: Callable[[], object]) -> None:
        self.end()
        self._timer = asyncio.get_running_loop().call_later(ms / 1000, then)
        self._connection.mute(True)

    def _over(self) -> None:
        account = self._connection.account
        more_ms = 0 if account is None else account.rests_ms()
        if more_ms:
            self._timer = asyncio.get_running_loop().call_later(more_ms / 1000, self._over)
            return
        self._timer = None
        self._connection.mute(False)

    def end(self) -> None:
        """The connection is about to close."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
