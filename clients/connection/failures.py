"""Repeated failures of one address: logged at once, then at falling frequency."""

from __future__ import annotations

from dataclasses import dataclass

from ringleader.clients.errors import ClientError

AGAIN_AFTER_S = (1.0, 10.0, 60.0, 600.0)
"""Pauses between two lines about the same kind of failure; the last one stays."""
FORGOTTEN_AFTER_S = 120.0
"""A kind of failure that did not come for this time is new again."""


@dataclass(slots=True)
class _Kind:
    first_s: float
    last_s: float
    say_at_s: float
    count: int = 0
    logged: int = 0


class Failures:
    """Those of one address. Two are of one kind if their class is the same, and the system's error number."""

    def __init__(self) -> None:
        self._kinds: dict[tuple[type, int | None], _Kind] = {}
        self._logged = False
        self.last: ClientError | None = None
        """The newest one; None since it works."""

    def failed(self, error: ClientError, now_s: float) -> str | None:
        """It happened again: what to say about it now, None: nothing."""
        self.last = error
        number = getattr(error.__cause__, "errno", None)
        kind = self._kinds.get((type(error), number))
        if kind is None or now_s - kind.last_s > FORGOTTEN_AFTER_S:
            kind = self._kinds[type(error), number] = _Kind(now_s, now_s, now_s)
        kind.last_s = now_s
        kind.count += 1
        if now_s < kind.say_at_s:
            return None
        kind.say_at_s = now_s + AGAIN_AFTER_S[min(kind.logged, len(AGAIN_AFTER_S) - 1)]
        kind.logged += 1
        self._logged = True
        so_far = f" ({kind.count} times in {now_s - kind.first_s:.0f} s)" if kind.count > 1 else ""
        return f"{error}{so_far}"

    def works(self) -> bool:
        """It worked: whether that is worth a line, as a failure was logged."""
        logged, self._logged = self._logged, False
        self.last = None
        return logged
