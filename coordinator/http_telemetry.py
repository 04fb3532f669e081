"""The metrics of client telemetry: what clients tell of themselves (KIP-714), see `telemetry`.

ringleader_telemetry_clients, ..._limit         client instances that are remembered
ringleader_telemetry_pushes_total{error}        pushes of clients: NONE, THROTTLING_QUOTA_EXCEEDED, ...
ringleader_client_...{group,client_id,member_id}    of members of the groups that are named in the request,
                                                of MEMBERS_MAX at most: what each told last
ringleader_client_told_ago_seconds{...}         how long ago that was
ringleader_clients_left_out                     members beyond that
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from ringleader.coordinator.journal.entries import ClientReport, ReportEntry
from ringleader.coordinator.journal.record import report_fields
from ringleader.coordinator.telemetry import INSTANCES_MAX, MEASURES, Telemetry
from ringleader.protocol.errors import error_name

MEMBERS_MAX = 1_000
"""Members with figures of their own in one answer."""
REPORTS_MAX = 1_000
"""Reports in one answer of `/clients`."""


@dataclass(slots=True)
class TelemetryFigures:
    """The figures, counted on the node's loop."""

    clients: int
    pushes: Mapping[int, int]
    reports: list[ClientReport] | None
    """Of named groups; None: none are named."""
    left_out: int
    wall_ms: int

    @classmethod
    def of(
        cls, telemetry: Telemetry, named: Collection[str] | None, now_ms: int, wall_ms: int
    ) -> TelemetryFigures:
        """`named`: groups that are asked for; None: none."""
        found = iter(()) if named is None else telemetry.of_groups(named, now_ms)
        reports = list(islice(found, MEMBERS_MAX))
        left_out = sum(1 for _ in found)
        clients, pushes = telemetry.count(now_ms), dict(telemetry.pushes)
        return cls(clients, pushes, None if named is None else reports, left_out, wall_ms)


def reports(telemetry: Telemetry, after: int, now_ms: int) -> bytes:
    """JSON: the reports of clients after that number (`reports`, each as the journal's entry "client
    told"), the number to go on from (`last`), and whether there are `more` now."""
    newest, last, more = telemetry.since(after, REPORTS_MAX, now_ms)
    rows = [report_fields(ReportEntry(one)) for one in newest]
    return json.dumps({"reports": rows, "last": last, "more": more}).encode()


def families(found: TelemetryFigures) -> Iterator[Metric]:
    """All of them."""
    text = "Client instances that tell of themselves (KIP-714)"
    yield GaugeMetricFamily("ringleader_telemetry_clients", text, found.clients)
    yield GaugeMetricFamily("ringleader_telemetry_clients_limit", "Their limit", INSTANCES_MAX)
    pushes = CounterMetricFamily("ringleader_telemetry_pushes", "Pushes of clients", labels=["error"])
    for code, count in sorted(found.pushes.items()):
        pushes.add_metric([error_name(code) or str(code)], count)
    yield pushes
    if found.reports is None:
        return
    labels = ["group", "client_id", "member_id"]
    ago = GaugeMetricFamily("ringleader_client_told_ago_seconds", "Since its last push", labels=labels)
    of_clients = {
        key: GaugeMetricFamily(f"ringleader_client_{key}", one.text, labels=labels)
        for key, one in MEASURES.items()
    }
    for report in found.reports:
        values = [report.group_id, report.client_id, report.member_id]
        ago.add_metric(values, max(found.wall_ms - report.at_ms, 0) / 1000)
        for key, value in report.values.items():
            of_clients[key].add_metric(values, value)
    yield from (ago, *of_clients.values())
    text = f"Members beyond the first {MEMBERS_MAX}"
    yield GaugeMetricFamily("ringleader_clients_left_out", text, found.left_out)
