"""The cost of each partition of groups to a node, and when the controller compares nodes. Pure: no
clock, no socket."""

from __future__ import annotations

from collections.abc import Mapping

from ringleader.coordinator.cluster.map import ClusterMap

LOOK_INTERVAL_S = 300.0
"""The interval at which the controller looks whether load is uneven."""
STANDSTILL_S = 10.0
"""The controller plans again when planned moves have stood still for this time."""
SMOOTHED_OVER = 40
"""Measurements, some ten seconds of them."""
STANDSTILL = "planned moves stand still"


class Load:
    """Of one node: members and records per second, by partition."""

    def __init__(self, interval_s: float) -> None:
        """`interval_s`: between two measurements."""
        self._interval_s = interval_s
        self.by_partition: Mapping[int, float] = {}
        self._written: dict[int, int] = {}
        self._looked_s = 0.0
        self._mapped_s = 0.0

    def measure(self, activity: Mapping[int, tuple[int, int]]) -> None:
        """By partition that is served: its members, and the records that it has written."""
        loads = {}
        for partition, (members, written) in activity.items():
            rate = max(0, written - self._written.get(partition, written)) / self._interval_s
            self._written[partition] = written
            before = self.by_partition.get(partition, members)
            loads[partition] = before + (members + rate - before) / SMOOTHED_OVER
        self.by_partition = loads

    def follow(self, now_s: float) -> None:
        """A map came."""
        self._mapped_s = now_s

    def look(self, cluster: ClusterMap, now_s: float) -> str:
        """The reason why the controller, which this node is, has to plan again; "": there is none."""
        due = now_s - self._looked_s >= LOOK_INTERVAL_S
        first = not self._looked_s
        if due:
            self._looked_s = now_s
        if cluster.moving and now_s - self._mapped_s >= STANDSTILL_S:
            self._mapped_s = now_s
            return STANDSTILL
        return "a look at the load" if due and not first else ""
