"""The rates at which groups of the consumer protocol commit, for the assignor `weighted`.

Measured is what the machine sees anyway: how far the committed offset of each partition has come between two
looks. It is the same on a daemon and on nodes, and asks nobody. It is not in the log: after a load the first
look is at the first heartbeat, and the first rates come with the second one.
"""

from __future__ import annotations

from collections.abc import Iterator

from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.core import Part
from ringleader.coordinator.groups.group import Group

INTERVAL_MS = 60_000
"""From one look to the next, at least."""
WEIGHTED = "weighted"


class Rates(Part):
    """The looks of one shard."""

    def look(self, group: Group, now_ms: int) -> None:
        """At a heartbeat: look at the group's offsets, if its members ask for the assignor and it is time."""
        consumer, looked_ms = group.consumer, group.looked_ms
        if consumer is None or (looked_ms >= 0 and now_ms - looked_ms < INTERVAL_MS):
            return
        if self.core.assignor(consumer) != WEIGHTED:
            return
        self.core.begin_change()
        group.looked_ms = now_ms
        passed_s = (now_ms - looked_ms) / 1_000 if looked_ms >= 0 else 0.0
        self.core.begin_work(self._steps(group, passed_s), now_ms)

    def _steps(self, group: Group, passed_s: float) -> Iterator[None]:
        """`passed_s`: since the look before; 0: there was none."""
        most, looked = self.core.settings.offsets_per_step, 0
        for topic in [*group.rates, *(one for one in group.offsets if one not in group.rates)]:
            known = group.rates.pop(topic, {})
            for partition, value in list(group.offsets.get(topic, {}).items()):
                offset = records.decode_offset_value(value).offset
                before, rate = known.get(partition, (offset, -1.0))
                fresh = max(0, offset - before) / passed_s if passed_s else -1.0
                rate = fresh if rate < 0 else (rate + fresh) / 2
                group.rates.setdefault(topic, {})[partition] = offset, rate
                looked += 1
                if looked >= most:
                    self.core.begin_change()
                    looked = 0
                    yield
        self.core.begin_change()
