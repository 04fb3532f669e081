"""Resources of a process at one moment, and its metrics."""

from __future__ import annotations

import http.client
import os
import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
ANSWER_S = 10.0
_HTTP = re.compile(r"health and metrics.*?(127\.0\.0\.1:\d+)")
METRICS = {
    "ringleader_tasks": "tasks",
    "ringleader_connections": "connections",
    "ringleader_members": "members",
    "ringleader_committed_partitions": "committed partitions",
    "ringleader_groups_metadata_bytes": "bytes that groups count",
}
"""The metrics that are read."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One process at one moment."""

    at_s: float
    """Since the beginning of the soak."""
    memory_bytes: int
    """Resident."""
    descriptors: int
    threads: int
    cpu_s: float
    """Since its start."""
    metrics: dict[str, float] = field(default_factory=dict)
    """By the values of `METRICS`."""

    def to_dict(self) -> dict[str, Any]:
        """For the JSON file."""
        return asdict(self)


def take(pid: int, address: str, at_s: float) -> Sample:
    """Look at a process that has its metrics at an address. Raises OSError when it is gone."""
    place = Path(f"/proc/{pid}")
    status = (place / "status").read_text()
    # The name of the program stands in parentheses, and may hold spaces.
    times = (place / "stat").read_text().rpartition(")")[2].split()
    return Sample(
        round(at_s, 3),
        _number(status, "VmRSS") * 1024,
        len(os.listdir(place / "fd")),
        _number(status, "Threads"),
        (int(times[11]) + int(times[12])) / TICKS_PER_S,
        _metrics(address),
    )


def _number(status: str, name: str) -> int:
    found = re.search(rf"^{name}:\s+(\d+)", status, re.MULTILINE)
    assert found is not None, name
    return int(found[1])


def _metrics(address: str) -> dict[str, float]:
    connection = http.client.HTTPConnection(address, timeout=ANSWER_S)
    try:
        connection.request("GET", "/metrics")
        text = connection.getresponse().read().decode()
    finally:
        connection.close()
    return {
        METRICS[sample.name]: sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name in METRICS
    }


def address_in(log: str) -> str:
    """Where a daemon has its metrics, as its log says: of its last start."""
    return str(_HTTP.findall(log)[-1])


@dataclass(frozen=True, slots=True)
class Spread:
    """How long calls of one kind took in a stretch of time, in ms."""

    at_s: float
    """Its end, since the beginning of the soak."""
    calls: int
    half_ms: float
    """The median."""
    most_ms: float
    """The 99th of a hundred."""
    longest_ms: float

    def to_dict(self) -> dict[str, Any]:
        """For the JSON file."""
        return asdict(self)


def spread(at_s: float, took_ms: Sequence[float]) -> Spread | None:
    """None where there were no calls."""
    if not took_ms:
        return None
    ordered = sorted(took_ms)
    nearest = ordered[min(len(ordered) - 1, round(0.99 * (len(ordered) - 1)))]
    half = ordered[(len(ordered) - 1) // 2]
    return Spread(round(at_s, 3), len(ordered), round(half, 3), round(nearest, 3), round(ordered[-1], 3))


def now_s() -> float:
    """The clock of all histories."""
    return time.monotonic()
