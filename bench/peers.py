"""Rounds of the daemon and the C server in turn, under the same load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.plan import Plan
from bench.processes import Pins, run_load
from bench.report import median, say


@dataclass(frozen=True, slots=True)
class Peer:
    """A server under load. `error_at`: where its answers keep their error code (see bench/load/load.c)."""

    name: str
    port: int
    pid: int
    frames: Path
    error_at: int


def in_turn(peers: Sequence[Peer], depth: int, plan: Plan, pins: Pins) -> dict[str, list[dict[str, Any]]]:
    """`plan.rounds` rounds, A B A B ...; the measurements of each peer by its name.

    Raises `RuntimeError` when an answer had an error code: a rate of refusals means nothing.
    """
    results: dict[str, list[dict[str, Any]]] = {peer.name: [] for peer in peers}
    for number in range(plan.rounds):
        for peer in peers:
            options = {
                "port": peer.port,
                "frames": peer.frames,
                "depth": depth,
                "warmup": plan.warmup_s,
                "seconds": plan.seconds,
                "error_at": peer.error_at,
                "server_pid": peer.pid,
            }
            measured = run_load(pins.load, "load", options)
            if measured["errors"]:
                raise RuntimeError(f"{peer.name} answered with errors: {measured['errors']}")
            measured["per_s"] = measured["answers"] / measured["seconds"]
            # Too short a run may show no tick of CPU time at all.
            measured["per_cpu_s"] = measured["answers"] / max(measured["server_cpu_s"], 0.01)
            results[peer.name].append(measured)
            say(
                f"  depth {depth}, round {number + 1}, {peer.name}: {measured['per_s']:,.0f}/s, "
                f"{measured['per_cpu_s']:,.0f} per CPU second, p99 {measured['p99_us']:,.0f} us"
            )
    return results


def summary(rounds: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Medians over the rounds of one peer."""
    keys = ("per_s", "per_cpu_s", "p50_us", "p99_us")
    return {key: median(float(one[key]) for one in rounds) for key in keys}
