"""Heartbeats per second of the server's CPU, beside a C server that only answers, and real brokers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.brokers import await_group, brokers
from bench.frames import deal, frame, write_frames
from bench.peers import Peer, goals_against, in_turn, summary
from bench.plan import DEPTHS, KAFKA, KFAKE, RINGLEADER, TOPIC, YARDSTICK, Plan
from bench.processes import Pins, daemon, work_dir, yardstick
from bench.report import Goal, print_goals, save, say, table
from ringleader.protocol.messages import HeartbeatRequest
from tests.support.ports import free_ports
from tests.support.rawclient import Address, address_of
from tests.support.rawgroup import FormedGroup, form_group

VERSION = 4
# A Heartbeat v4 answer: size, correlation id, tags, throttle time, error code, tags.
ERROR_AT = 13
# By depth: how many times the rate of each peer is wanted.
WITH_PAGE = "ringleader --ui"
"""The same with its page beside it, a process that reads its journal on the same CPU."""
PAGE_BOUND = 1.05
GOALS = {1: {YARDSTICK: 0.45, KAFKA: 2.0, KFAKE: 1.5}, 16: {YARDSTICK: 0.08, KAFKA: 4.0, KFAKE: 4.0}}


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


def formed(address: Address, group_id: str, members: int) -> FormedGroup:
    """A stable group whose connections are closed: the load brings its own."""
    await_group(address, group_id)
    group = form_group(address, group_id, members, topic=TOPIC)
    group.close()
    return group


def run(plan: Plan) -> dict[str, Any]:
    """Runs it, prints the table, writes heartbeats.json, returns its content."""
    pins = Pins.choose()
    results: dict[str, Any] = {}
    goals: list[Goal] = []
    say(f"heartbeats: {plan.members} members, {plan.connections} connections")
    with (
        pins.aside(),
        work_dir(plan.data_dir) as directory,
        daemon(directory, pins.server, topics=[f"{TOPIC}:{plan.members}"]) as server,
        daemon(
            directory / "with-page",
            pins.server,
            topics=[f"{TOPIC}:{plan.members}"],
            options=["--ui", f"127.0.0.1:{free_ports(1)[0]}"],
        ) as watched,
        yardstick(pins.server) as (port, pid),
        brokers(
            plan.brokers,
            directory,
            pins.server,
            partitions=plan.members,
            warmup_s=plan.jvm_warmup_s,
            jvm=plan.jvm,
        ) as others,
    ):

        def frames(name: str, address: Address) -> Path:
            group = formed(address, "heartbeats", plan.members)
            return heartbeat_frames(directory / f"frames {name}", group, plan.connections)

        own = frames(RINGLEADER, address_of(server.bootstrap))
        with_page = frames(WITH_PAGE, address_of(watched.bootstrap))
        peers = [
            Peer(RINGLEADER, server.port, server.pid, own, ERROR_AT),
            Peer(WITH_PAGE, watched.port, watched.pid, with_page, ERROR_AT),
            Peer(YARDSTICK, port, pid, own, ERROR_AT),
        ]
        for one in others.running.values():
            sent = frames(one.name, one.address)
            peers.append(Peer(one.name, one.address[1], one.pid, sent, ERROR_AT, one.warmup_s))
        for depth in DEPTHS:
            rounds = in_turn(peers, depth, plan, pins)
            medians = {name: summary(measured) for name, measured in rounds.items()}
            goals += goals_against(
                f"heartbeats per CPU second, depth {depth}", medians, "per_cpu_s", GOALS[depth]
            )
            ratio = medians[RINGLEADER]["per_cpu_s"] / medians[WITH_PAGE]["per_cpu_s"]
            name = f"heartbeats per CPU second, depth {depth}, over those with a page"
            goals.append(Goal(name, WITH_PAGE, ratio, PAGE_BOUND, is_time=True))
            results[f"depth {depth}"] = {"medians": medians, "rounds": rounds}
    rows = [
        [f"{name}, {depth}", *(float(values[key]) for key in ("per_s", "per_cpu_s", "p50_us", "p99_us"))]
        for depth, result in results.items()
        for name, values in result["medians"].items()
    ]
    table("Heartbeat v4 (medians)", ["server", "per second", "per CPU second", "p50 us", "p99 us"], rows)
    print_goals(goals)
    whole = {
        "version": VERSION,
        "pins": {"server": pins.server, "load": pins.load},
        **others.to_dict(),
        "results": results,
    }
    save(plan.out_dir, "heartbeats", whole, goals)
    return whole
