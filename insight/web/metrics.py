"""Metrics of the groups of a cluster, for Prometheus. Lag, members and states are current; rebalances and
partition-seconds without owner count from the start of the process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from ringleader.host.clock import wall_ms
from ringleader.insight.web.live import Live
from ringleader.insight.web.sources import CLUSTER, Places

GROUPS_MAX = 1_000
"""Groups of a cluster that have labels of their own, by name. `ringleader_watch_groups` counts all."""
STATES = ("Stable", "Empty", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")


class _Groups(Collector):
    """Asked at every scrape."""

    def __init__(self, places: Mapping[str, Live], now_ms: Callable[[], int], *, named: bool = False) -> None:
        """`places`: by the name of the cluster; `named`: it is a label of each series."""
        self._places = places
        self._now_ms = now_ms
        self._named = named

    def describe(self) -> list[Metric]:
        """Nothing before the first scrape."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The families."""
        now_ms = self._now_ms()
        found = _Families((CLUSTER,) if self._named else ())
        for name, live in self._places.items():
            found.add((name,) if self._named else (), live, now_ms)
        yield from found.all


class _Families:
    """Series of one cluster after the other."""

    def __init__(self, labels: tuple[str, ...]) -> None:
        def gauge(name: str, text: str, *more: str) -> GaugeMetricFamily:
            return GaugeMetricFamily(f"ringleader_watch_{name}", text, labels=[*labels, *more])

        def counter(name: str, text: str, *more: str) -> CounterMetricFamily:
            return CounterMetricFamily(f"ringleader_watch_{name}", text, labels=[*labels, *more])

        self.up = gauge("history_readable", "1 while the history can be read")
        self.answers = gauge("cluster_answers", "1 while the cluster answers its watcher")
        self.known = gauge("groups", "Groups of the cluster, by state", "state")
        self.left_out = gauge(
            "groups_left_out", f"Groups beyond the first {GROUPS_MAX}, which have no figures of their own"
        )
        self.rebalances = counter("rebalances", "Rebalances by cause", "group", "cause")
        self.unowned = counter(
            "unowned_partition_seconds", "How long partitions had no owner, summed over them", "group"
        )
        self.members = gauge("members", "Members of the group", "group")
        self.idle = gauge("idle_members", "Members without a partition", "group")
        self.records = gauge("lag_records", "Records that are not committed yet", "group")
        self.seconds = gauge(
            "lag_seconds",
            "How long ago the next record of the partition that is furthest behind was written, about",
            "group",
        )
        self.all: list[Metric] = [*vars(self).values()]

    def add(self, cluster: tuple[str, ...], live: Live, now_ms: int) -> None:
        """Those of one cluster; `cluster`: its label, if it has one."""
        board, groups = live.board, live.board.groups()
        readable = live.ready and live.trouble is None
        self.up.add_metric(cluster, int(readable))
        self.answers.add_metric(cluster, int(readable and live.away is None))
        for state in (*STATES, "other"):
            self.known.add_metric(
                [*cluster, state],
                sum(one.state == state or (state == "other" and one.state not in STATES) for one in groups),
            )
        self.left_out.add_metric(cluster, max(len(groups) - GROUPS_MAX, 0))
        for one in groups[:GROUPS_MAX]:
            labels, totals = [*cluster, one.group], board.totals(one.group)
            for cause, count in sorted(totals.rebalances.items()):
                self.rebalances.add_metric([*labels, cause], count)
            self.unowned.add_metric(labels, totals.unowned_ms / 1000)
            self.members.add_metric(labels, len(one.members))
            self.idle.add_metric(labels, sum(not member.assigned for member in one.members))
            if (lag := board.lags.of(one.group, now_ms)) is not None:
                self.records.add_metric(labels, lag.records)
                self.seconds.add_metric(labels, lag.behind_ms / 1000)


def exposition(places: Places) -> bytes:
    """All of it in Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    lives = {one.source.name: one.live for one in places.all}
    registry.register(_Groups(lives, wall_ms, named=places.named))
    return generate_latest(registry)
