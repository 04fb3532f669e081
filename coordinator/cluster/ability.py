"""The partitions that this node cannot serve, and when the controller has to know of it. Pure: no clock, no
socket.

A node that does not reach one broker keeps its session, but no node serves the partitions that this broker
leads. So it reports them to the controller, which places them elsewhere. Two rules keep that from doing harm:

- A broker that answers no node is Kafka's to replace: every node reports at each join the brokers that it
  does not reach, sooner than it would ask for a join itself, and nothing moves to a node that does not reach
  them either.
- A node that was in trouble is given nothing more until it was well for a while, twice as long each time.
"""

from __future__ import annotations

import math
from collections.abc import Collection

SILENT_S = 1.5
"""A broker that has not answered for this time counts as unreachable."""
LOST_S = 3.0
"""The silence after which it is reported to the controller: pauses of a broker are shorter."""
LATE_S = 5.0
"""The time that a partition may take until the store has given it to this node; reading it comes after
that."""
REFUSED_S, REFUSED_MAX_S = 30.0, 300.0
"""A partition that could not be taken over is not wanted for this time, twice as long each time."""
CALM_S, CALM_MAX_S = 10.0, 300.0
"""The time that all has to be well again, twice as long where trouble comes back within twice
`CALM_MAX_S`."""
AGAIN_S, AGAIN_MAX_S = 5.0, 60.0
"""The interval of reports to the controller: another node may reach the broker by now."""


class Ability:
    """The view of one node of itself. All times are of one clock, in seconds."""

    def __init__(self) -> None:
        self.unable: frozenset[int] = frozenset()
        """The partitions that this node could not serve, as of the last look."""
        self.wary = False
        """Whether it should be given nothing more for now."""
        self._doubted = False
        """Whether the controller was told that this node is unable or wary."""
        self._not_before_s: dict[int, float] = {}
        """Partitions that could not be taken over."""
        self._refusals: dict[int, int] = {}
        self._reported: frozenset[int] = frozenset()
        self._again_s = 0.0
        self._wait_s = AGAIN_S
        self._calm_s = CALM_S / 2
        self._troubled = False
        self._trouble_s = -math.inf
        """When there was trouble last."""
        self._wary_until_s = 0.0

    def report(self) -> tuple[frozenset[int], bool]:
        """`unable` and `wary`, as this node tells the controller now. May be called in another thread."""
        unable, wary = self.unable, self.wary
        self._doubted = wary or bool(unable)
        return unable, wary

    def look(
        self,
        now_s: float,
        wanted: Collection[int],
        serving: Collection[int],
        silent: frozenset[int],
        lost: frozenset[int],
        late: frozenset[int],
    ) -> str:
        """The reason for a report to the controller now; "": there is none.

        `wanted`: what the map gives it; `serving`: what it has; `silent`, `lost`: whose leaders have not
        answered for `SILENT_S` and `LOST_S`; `late`: what has not been taken over for `LATE_S`.
        """
        for partition in self._refusals.keys() & serving:
            del self._refusals[partition], self._not_before_s[partition]
        for partition in late:
            if now_s >= self._not_before_s.get(partition, 0.0):
                tries = self._refusals[partition] = self._refusals.get(partition, 0) + 1
                self._not_before_s[partition] = now_s + min(REFUSED_MAX_S, REFUSED_S * 2 ** min(tries - 1, 8))
        self.unable = silent | {one for one, until_s in self._not_before_s.items() if now_s < until_s}
        needed = (lost | late).intersection(wanted)
        self._see_trouble(now_s, bool(lost or late))
        if not needed:
            self._reported, self._wait_s = frozenset(), AGAIN_S
        elif needed - self._reported or now_s >= self._again_s:
            self._reported = needed
            self._again_s = now_s + self._wait_s
            self._wait_s = min(AGAIN_MAX_S, 2 * self._wait_s)
            return f"it cannot serve {len(needed)} of its partitions"
        if not self._troubled and now_s >= self._wary_until_s:
            self.wary = False
        # A controller that was told of a silence, perhaps a short one, gives this node nothing until it hears
        # that it is over.
        if self._doubted and not (self.wary or self.unable):
            self._doubted = False
            return "it can serve all partitions again"
        return ""

    def _see_trouble(self, now_s: float, trouble: bool) -> None:
        if trouble:
            if not self._troubled:
                soon = now_s - self._trouble_s < 2 * CALM_MAX_S
                self._calm_s = min(CALM_MAX_S, 2 * self._calm_s) if soon else CALM_S
            self.wary = True
            self._trouble_s = now_s
            self._wary_until_s = max([now_s + self._calm_s, *self._not_before_s.values()])
        self._troubled = trouble
