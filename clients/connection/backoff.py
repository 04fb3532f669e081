"""How long to wait before trying again."""

from __future__ import annotations

from collections.abc import Callable

JITTER = 0.2


class Backoff:
    """Doubles from `first_ms` to `most_ms`, each wait up to 20 % longer or shorter by chance, so that the
    members of a group do not come back all at once (KIP-580). `random` gives numbers from 0 to 1."""

    def __init__(self, first_ms: int, most_ms: int, random: Callable[[], float]) -> None:
        self._first_ms = first_ms
        self._most_ms = most_ms
        self._random = random
        self._tries = 0

    def next_ms(self) -> int:
        """The wait before the next try."""
        plain_ms = min(self._most_ms, self._first_ms << min(self._tries, 32))
        self._tries += 1
        return round(plain_ms * (1 - JITTER + 2 * JITTER * self._random()))

    def reset(self) -> None:
        """It worked: start small again."""
        self._tries = 0
