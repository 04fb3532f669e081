"""How fast connections may come (KIP-612): from one address by its quota, and all together by
`max.connection.creation.rate`.

A connection that comes too fast for its address is not read from for a while and closed then, as by Kafka: to
close it at once would bring the next attempt at once. Connections that come too fast for the node alone are
served later, one after the other.
"""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

from ringleader.coordinator.clock import Clock
from ringleader.coordinator.logs import Log
from ringleader.coordinator.security.quotas import ClientQuotas, TokenBucket, Windows

MAX_HELD = 1_000
"""Connections that wait to be closed; more are closed at once."""
LOG_INTERVAL_S = 5.0
"""One line reports a connection that came too fast; those within this time after it are counted in the
next."""


class Delay(NamedTuple):
    """The treatment of a new connection."""

    ms: int
    """For how long it is not read from."""
    refused: bool
    """It is closed after that."""


NO_DELAY: Final = Delay(0, False)


class Arriving:
    """The rates of new connections of a server."""

    def __init__(
        self,
        quotas: ClientQuotas | None,
        most_per_second: int | None,
        windows: Windows,
        now_ms: Clock,
        log: Log,
    ) -> None:
        """`most_per_second`: from all addresses; None: without a bound."""
        self._quotas = quotas
        self._most_ms = windows.window_ms
        self._now_ms = now_ms
        self._log = log
        self._bucket = (
            None if most_per_second is None else TokenBucket(float(most_per_second), windows, now_ms())
        )
        self._held = 0
        self._unreported = 0
        self._reported_ms: int | None = None

    def delay(self, address: str) -> Delay:
        """A connection has come."""
        quotas = self._quotas
        if quotas is not None and quotas.of_addresses:
            now_ms = self._now_ms()
            rate = quotas.connections(address, now_ms)
            if rate is not None:
                rate.record(1, now_ms)
                throttle_ms = min(rate.throttle_ms(now_ms), self._most_ms)
                if throttle_ms:
                    rate.record(-1, now_ms)  # it is not accepted
                    return self._refused(address, throttle_ms, now_ms)
        if self._bucket is None:
            return NO_DELAY
        now_ms = self._now_ms()
        self._bucket.record(1, now_ms)
        return Delay(self._bucket.throttle_ms(now_ms), False)

    def _refused(self, address: str, throttle_ms: int, now_ms: int) -> Delay:
        if self._reported_ms is None or now_ms - self._reported_ms >= LOG_INTERVAL_S * 1000:
            self._log.warning(
                "connections come faster than the quota of their address",
                address=address,
                left_out_before=self._unreported,
            )
            self._reported_ms, self._unreported = now_ms, 0
        else:
            self._unreported += 1
        if self._held >= MAX_HELD:
            return Delay(0, True)
        self._held += 1
        asyncio.get_running_loop().call_later(throttle_ms / 1000, self._release)
        return Delay(throttle_ms, True)

    def _release(self) -> None:
        self._held -= 1
