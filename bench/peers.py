"""Rounds of the daemon and its peers in turn, under the same load."""

from __future__ import annotations

import contextlib
import math
import os
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.plan import RINGLEADER, Plan
from bench.processes import Pins, run_load
from bench.report import Goal, median, say

# A warm-up ends after a multiple of its CPU time by the wall clock.
PATIENCE = 10


@dataclass(frozen=True, slots=True)
class Peer:
    """A server under load. `error_at`: where its answers keep their error code (see bench/load/load.c)."""

    name: str
    port: int
    pid: int
    frames: Path
    error_at: int
    warmup_s: float = 0.0
    """CPU seconds that it spends under this load before the first round."""
    prepare: Callable[[], None] | None = None
    """Called before each of its rounds."""
    load: Sequence[str] = ()
    """The command of another load program than the one in C, which takes the same options."""


def _measure(peer: Peer, depth: int, warmup_s: float, seconds: float, pins: Pins) -> dict[str, Any]:
    if peer.prepare is not None:
        peer.prepare()
    options = {
        "port": peer.port,
        "frames": peer.frames,
        "depth": depth,
        "warmup": warmup_s,
        "seconds": seconds,
        "error_at": peer.error_at,
        "server_pid": peer.pid,
    }
    measured = run_load(pins.load, "load", options, peer.load)
    if measured["errors"]:
        raise RuntimeError(f"{peer.name} answered with errors: {measured['errors']}")
    measured["per_s"] = measured["answers"] / measured["seconds"]
    # Too short a run may show no tick of CPU time at all.
    measured["per_cpu_s"] = measured["answers"] / max(measured["server_cpu_s"], 0.01)
    return measured


def _warm_up(peer: Peer, depth: int, pins: Pins) -> None:
    """By its CPU time: on a machine with other work a JVM gets less done, and compiled, in a second."""
    piece_s = min(1.0, peer.warmup_s)
    used = 0.0
    for _ in range(math.ceil(PATIENCE * peer.warmup_s / piece_s)):
        measured = _measure(peer, depth, 0, piece_s, pins)
        used += measured["server_cpu_s"]
        if used >= peer.warmup_s:
            break
    say(f"  depth {depth}, {peer.name}: warm after {used:.0f} CPU seconds, {measured['per_cpu_s']:,.0f} each")


@contextlib.contextmanager
def _alone(peer: Peer, peers: Sequence[Peer]) -> Iterator[None]:
    """The other servers stand still: even an idle JVM does things now and then on their common CPU."""
    others = {other.pid for other in peers} - {peer.pid}
    for pid in others:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in others:
            os.kill(pid, signal.SIGCONT)


def in_turn(peers: Sequence[Peer], depth: int, plan: Plan, pins: Pins) -> dict[str, list[dict[str, Any]]]:
    """`plan.rounds` rounds, A B C A B C ...; the measurements of each peer by its name.

    Raises `RuntimeError` when an answer had an error code: a rate of refusals means nothing.
    """
    results: dict[str, list[dict[str, Any]]] = {peer.name: [] for peer in peers}
    for peer in peers:
        if peer.warmup_s:
            _warm_up(peer, depth, pins)
    for number in range(plan.rounds):
        for peer in peers:
            with _alone(peer, peers):
                measured = _measure(peer, depth, plan.warmup_s, plan.seconds, pins)
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


def goals_against(
    name: str, medians: Mapping[str, Mapping[str, float]], key: str, bounds: Mapping[str, float]
) -> list[Goal]:
    """A goal for each peer in `bounds` that ran: Ringleader's `key` as a multiple of the peer's."""
    ours = medians[RINGLEADER][key]
    return [
        Goal(name, peer, ours / medians[peer][key], bound)
        for peer, bound in bounds.items()
        if peer in medians
    ]
