"""How fast connections may come (KIP-612): from one address by its quota, and all together by
`max.connection.creation.rate`.

Who comes too fast from an address is not listened to for a while and closed then, as by Kafka: to close at
once would bring the next attempt at once. What is too much for the node alone comes in later, one after the
other.
"""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

from ringleader.coordinator.clock import Clock
from ringleader.coordinator.logs import Log
from ringleader.coordinator.security.quotas import ClientQuotas, TokenBucket, Windows

MAX_HELD = 1_000
"""So many connections wait to be closed; more are closed at once."""
LOG_INTERVAL_S = 5.0
"""One line tells of who came too fast; those within this time after it are counted in the next."""


class Delay(NamedTuple):
    """What is done with a connection that has come."""

    ms: int
    """For how long it is not listened to."""
    refused: bool
    """It is closed after that."""


NO_DELAY: Final = Delay(0, False)


class Arriving:
    """Of a server."""

    def __init__(
        self,
        quotas: ClientQuotas | None,
        most_per_second: int | None,
        windows: Windows,
        now_ms: Clock,
        log: Log,
    ) -> None:
        """`most_per_second`: from all addresses; None: as many as like."""
        self._quotas = quotas
        self._most_ms = windows.window_ms
        self._now_ms = now_ms
        self._log = log
        self._bucket = (
            None if most_per_second is None else TokenBucket(float(most_per_second), windows, now_ms())
        )
        self._held = 0
        self._untold = 0
        self._told_ms: int | None = None

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
                    rate.record(-1, now_ms)  # it is not let in
                    return self._refused(address, throttle_ms, now_ms)
        if self._bucket is None:
            return NO_DELAY
        now_ms = self._now_ms()
        self._bucket.record(1, now_ms)
        return Delay(self._bucket.throttle_ms(now_ms), False)

    def _refused(self, address: str, throttle_ms: int, now_ms: int) -> Delay:
        if self._told_ms is None or now_ms - self._told_ms >= LOG_INTERVAL_S * 1000:
            self._log.warning(
                "connections come faster than the quota of their address",
                address=address,
                left_out_before=self._untold,
            )
            self._told_ms, self._untold = now_ms, 0
        else:
            self._untold += 1
        if self._held >= MAX_HELD:
            return Delay(0, True)
        self._held += 1
        asyncio.get_running_loop().call_later(throttle_ms / 1000, self._release)
        return Delay(throttle_ms, True)

    def _release(self) -> None:
        self._held -= 1
