"""How long a group takes to form, and to take in one more member and let it go, beside real brokers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bench.brokers import Broker, await_group, brokers
from bench.plan import KAFKA, RINGLEADER, TOPIC, Plan
from bench.processes import Pins, daemon, run_load, work_dir
from bench.report import Goal, by_phase, print_goals, save, say, table
from tests.support.rawclient import Address, address_of

PHASES = ("form", "join", "leave")
KEYS = ("seconds", "server_cpu_s", "client_cpu_s")
# All members' heartbeats together: 1,000 members beat every 50 ms, so that they learn of a rebalance soon.
HEARTBEATS_PER_S = 20_000
GOAL = 2.0
WORDS = {"form": "{} members form a group", "join": "one joins {} members", "leave": "one leaves {} members"}


def _round(port: int, pid: int, group: str, members: int, plan: Plan, pins: Pins) -> dict[str, Any]:
    options = {
        "port": port,
        "group": group,
        "topic": TOPIC,
        "members": members,
        "heartbeats_per_second": HEARTBEATS_PER_S,
        "pause": plan.pause_s,
        "server_pid": pid,
    }
    return run_load(pins.load, "members", options)


def _warm_up(broker: Broker, plan: Plan, pins: Pins) -> None:
    """Rebalances that do not count, enough of them that the broker runs at its speed."""
    members = max(plan.rebalance_members)
    if broker.warmup_s:
        say(f"  {broker.name} warms up with {plan.jvm_warmup_rounds} rounds of {members} members")
    for number in range(plan.jvm_warmup_rounds if broker.warmup_s else 0):
        group = f"warm-{number}"
        await_group(broker.address, group)
        _round(broker.address[1], broker.pid, group, members, replace(plan, pause_s=0.05), pins)


def _rounds(
    servers: dict[str, tuple[Address, int]], members: int, plan: Plan, pins: Pins
) -> dict[str, list[dict[str, Any]]]:
    """`plan.rounds` rounds in turn, each with a new group; the measurements of each server by its name."""
    rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in servers}
    for number in range(plan.rounds):
        for name, ((_, port), pid) in servers.items():
            one = _round(port, pid, f"{members}-{number}", members, plan, pins)
            rounds[name].append(one)
            times = ", ".join(f"{phase} {one[phase]['seconds']:.3f} s" for phase in PHASES)
            say(f"  {members} members, round {number + 1}, {name}: {times}")
    return rounds


def _goals(results: dict[str, Any]) -> list[Goal]:
    return [
        Goal(
            WORDS[phase].format(f"{int(count):,}") + ", seconds",
            KAFKA,
            medians[RINGLEADER]["seconds"] / medians[KAFKA]["seconds"],
            GOAL,
            is_time=True,
        )
        for count, result in results.items()
        for phase, medians in result["medians"].items()
        if KAFKA in medians
    ]


def run(plan: Plan) -> dict[str, Any]:
    """Runs it, prints the table, writes rebalance.json, returns its content."""
    pins = Pins.choose()
    results: dict[str, Any] = {}
    say("rebalance: a connection for each member")
    with (
        pins.aside(),
        work_dir(plan.data_dir) as directory,
        daemon(directory, pins.server) as server,
        brokers(
            plan.brokers, directory, pins.server, partitions=1, warmup_s=plan.jvm_warmup_s, jvm=plan.jvm
        ) as others,
    ):
        servers = {RINGLEADER: (address_of(server.bootstrap), server.pid)}
        servers |= {name: (one.address, one.pid) for name, one in others.running.items()}
        for one in others.running.values():
            _warm_up(one, plan, pins)
        for members in plan.rebalance_members:
            for number in range(plan.rounds):
                for address, _ in servers.values():
                    await_group(address, f"{members}-{number}")
            rounds = _rounds(servers, members, plan, pins)
            results[str(members)] = {
                "medians": by_phase(rounds, PHASES, KEYS),
                "heartbeat_interval_ms": 1_000 * members / HEARTBEATS_PER_S,
                "rounds": rounds,
            }
    rows = [
        [f"{WORDS[phase].format(count)}: {name}", *(f"{values[key]:.3f}" for key in KEYS)]
        for count, result in results.items()
        for phase, medians in result["medians"].items()
        for name, values in medians.items()
    ]
    table(
        "First request to last SyncGroup answer (medians)",
        ["", "seconds", "server CPU s", "client CPU s"],
        rows,
    )
    goals = _goals(results)
    print_goals(goals)
    whole = {
        "pins": {"server": pins.server, "load": pins.load},
        "heartbeats_per_s": HEARTBEATS_PER_S,
        **others.to_dict(),
        "results": results,
    }
    save(plan.out_dir, "rebalance", whole, goals)
    return whole
