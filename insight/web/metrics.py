"""Metrics of the groups of a cluster, for Prometheus. Lag, members and states are current; rebalances and
partition-seconds without owner count from the start of the process."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from ringleader.insight.web.board import Board
from ringleader.insight.web.live import Live

GROUPS_MAX = 1_000
"""Groups that have labels of their own, by name. `ringleader_watch_groups` counts all of them."""
STATES = ("Stable", "Empty", "PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")


class _Groups(Collector):
    """Asked at every scrape."""

    def __init__(self, live: Live, now_ms: Callable[[], int]) -> None:
        self._live = live
        self._now_ms = now_ms

    def describe(self) -> list[Metric]:
        """Nothing before the first scrape."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The families."""
        board, now_ms = self._live.board, self._now_ms()
        groups = board.groups()
        up = GaugeMetricFamily(
            "ringleader_watch_history_readable", "1 while the history can be read", int(self._readable())
        )
        answers = GaugeMetricFamily(
            "ringleader_watch_cluster_answers",
            "1 while the cluster answers its watcher",
            int(self._readable() and self._live.away is None),
        )
        known = GaugeMetricFamily(
            "ringleader_watch_groups", "Groups of the cluster, by state", labels=["state"]
        )
        for state in (*STATES, "other"):
            known.add_metric(
                [state],
                sum(one.state == state or (state == "other" and one.state not in STATES) for one in groups),
            )
        left_out = GaugeMetricFamily(
            "ringleader_watch_groups_left_out",
            f"Groups beyond the first {GROUPS_MAX}, which have no figures of their own",
            max(len(groups) - GROUPS_MAX, 0),
        )
        yield from (up, answers, known, left_out)
        yield from _families(board, [one.group for one in groups[:GROUPS_MAX]], now_ms)

    def _readable(self) -> bool:
        return self._live.ready and self._live.trouble is None


def _families(board: Board, names: list[str], now_ms: int) -> list[Metric]:
    rebalances = CounterMetricFamily(
        "ringleader_watch_rebalances", "Rebalances by cause", labels=["group", "cause"]
    )
    unowned = CounterMetricFamily(
        "ringleader_watch_unowned_partition_seconds",
        "How long partitions had no owner, summed over them",
        labels=["group"],
    )
    members = GaugeMetricFamily("ringleader_watch_members", "Members of the group", labels=["group"])
    idle = GaugeMetricFamily("ringleader_watch_idle_members", "Members without a partition", labels=["group"])
    records = GaugeMetricFamily(
        "ringleader_watch_lag_records", "Records that are not committed yet", labels=["group"]
    )
    seconds = GaugeMetricFamily(
        "ringleader_watch_lag_seconds",
        "How long ago the next record of the partition that is furthest behind was written, about",
        labels=["group"],
    )
    states = {state.group: state for state in board.groups()}
    for name in names:
        totals, state = board.totals(name), states[name]
        for cause, count in sorted(totals.rebalances.items()):
            rebalances.add_metric([name, cause], count)
        unowned.add_metric([name], totals.unowned_ms / 1000)
        members.add_metric([name], len(state.members))
        idle.add_metric([name], sum(not member.assigned for member in state.members))
        lag = board.lags.of(name, now_ms)
        if lag is not None:
            records.add_metric([name], lag.records)
            seconds.add_metric([name], lag.behind_ms / 1000)
    return [rebalances, unowned, members, idle, records, seconds]


def exposition(live: Live) -> bytes:
    """All of it in Prometheus' text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Groups(live, lambda: time.time_ns() // 1_000_000))
    return generate_latest(registry)
