"""Heartbeats per second of the server's CPU, against a C server that only frames and answers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.frames import deal, frame, write_frames
from bench.peers import Peer, in_turn, summary
from bench.plan import DEPTHS, TOPIC, Plan
from bench.processes import Pins, daemon, work_dir, yardstick
from bench.report import Goal, print_goals, save, say, table
from ringleader.protocol.messages import HeartbeatRequest
from tests.support.rawclient import address_of
from tests.support.rawgroup import FormedGroup, form_group

VERSION = 4
# A Heartbeat v4 answer: size, correlation id, tags, throttle time, error code, tags.
ERROR_AT = 13
GOALS = {1: 0.45, 16: 0.08}
YARDSTICK, DAEMON = "C server", "ringleader"


def heartbeat_frames(path: Path, group: FormedGroup, connections: int) -> Path:
    """A file with one Heartbeat of each member, dealt out to `connections`."""
    frames = [
        frame(
            HeartbeatRequest(
                group_id=group.group_id, generation_id=group.generation, member_id=member.member_id
            ),
            VERSION,
        )
        for member in group.members
    ]
    return write_frames(path, deal(frames, connections))


def run(plan: Plan) -> dict[str, Any]:
    """Runs it, prints the table, writes heartbeats.json, returns its content."""
    pins = Pins.choose()
    results: dict[str, Any] = {}
    goals: list[Goal] = []
    with (
        work_dir(plan.data_dir) as directory,
        daemon(directory, pins.server, topics=[f"{TOPIC}:{plan.members}"]) as server,
        yardstick(pins.server) as (port, pid),
    ):
        group = form_group(address_of(server.bootstrap), "heartbeats", plan.members, topic=TOPIC)
        group.close()
        say(f"heartbeats: {plan.members} members, {plan.connections} connections")
        frames = heartbeat_frames(directory / "frames", group, plan.connections)
        peers = [
            Peer(DAEMON, server.port, server.pid, frames, ERROR_AT),
            Peer(YARDSTICK, port, pid, frames, ERROR_AT),
        ]
        for depth in DEPTHS:
            rounds = in_turn(peers, depth, plan, pins)
            medians = {name: summary(measured) for name, measured in rounds.items()}
            ratio = medians[DAEMON]["per_cpu_s"] / medians[YARDSTICK]["per_cpu_s"]
            goals.append(Goal(f"heartbeats per CPU second, depth {depth}", ratio, GOALS[depth]))
            results[f"depth {depth}"] = {"medians": medians, "ratio": ratio, "rounds": rounds}
    rows = [
        [f"{name}, {depth}", *(float(values[key]) for key in ("per_s", "per_cpu_s", "p50_us", "p99_us"))]
        for depth, result in results.items()
        for name, values in result["medians"].items()
    ]
    table("Heartbeat v4 (medians)", ["server", "per second", "per CPU second", "p50 us", "p99 us"], rows)
    print_goals(goals)
    whole = {"version": VERSION, "pins": {"server": pins.server, "load": pins.load}, "results": results}
    save(plan.out_dir, "heartbeats", whole, goals)
    return whole
