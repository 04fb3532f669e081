"""Groups of the consumer protocol (KIP-848) beside Apache Kafka's: steady heartbeats per second of the
server's CPU; how long a group takes to form, and to hand on what a member leaves behind; records per join."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.brokers import CONSUMER_SESSION, await_group, brokers
from bench.frames import deal, frame, write_frames
from bench.peers import Peer, goals_against, summary
from bench.peers import in_turn as rates_in_turn
from bench.plan import DEPTHS, KAFKA, RINGLEADER, TOPIC, Plan, in_turn
from bench.processes import Pins, daemon, run_load, work_dir
from bench.report import Goal, by_phase, print_goals, save, say, table
from bench.server_assignor import Member, settle
from ringleader.coordinator.groups.routing import partition_for
from ringleader.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ListOffsetsRequest,
    ListOffsetsRequestListOffsetsPartition,
    ListOffsetsRequestListOffsetsTopic,
)
from tests.support.rawclient import Address, RawConnection, address_of

VERSION = 1
# A ConsumerGroupHeartbeat v1 answer: size, correlation id, tags, throttle time, error code, ...
ERROR_AT = 13
GOALS = {1: {KAFKA: 2.0}, 16: {KAFKA: 5.0}}
"""By depth: how many times the rate of the peer is wanted."""
HEARTBEATS_PER_S = {"20,000 heartbeats a second": 20_000, "the interval that the coordinator tells": 0}
"""Of all members together; 0: each beats when the last answer said."""
PHASES = {"form": "{} members join an empty group", "leave": "one of {} members leaves"}
KEYS = ("seconds", "server_cpu_s", "client_cpu_s", "heartbeats")
TIME_BOUND = 1.0
GROWTH_BOUND = 1.1
"""Of the records per join from the smallest group to the largest."""
ASSIGNMENT_INTERVAL_S = 1.0
"""`group.consumer.assignment.interval.ms` of both: so a target is due as soon as a member leaves."""
OFFSETS_TOPIC, OFFSETS_PARTITIONS, LATEST = "__consumer_offsets", 50, -1


def steady_frames(path: Path, address: Address, members: int, partitions: int, connections: int) -> Path:
    """A file with one heartbeat of each member of a stable group, dealt out to `connections`. The members say
    nothing but that they are there."""
    await_group(address, "steady")
    group = [Member("steady", f"member-{number:015}", [TOPIC]) for number in range(members)]
    with RawConnection(address) as connection:
        for one in group:
            one.beat(connection)
        settle(connection, group, partitions)
    requests = [ConsumerGroupHeartbeatRequest(one.group_id, one.member_id, one.epoch) for one in group]
    return write_frames(path, deal([frame(one, VERSION) for one in requests], connections))


def written(address: Address, group: str) -> int:
    """The end of the log that has the group's records."""
    partition = ListOffsetsRequestListOffsetsPartition(
        partition_index=partition_for(group, OFFSETS_PARTITIONS), timestamp=LATEST
    )
    topics = [ListOffsetsRequestListOffsetsTopic(OFFSETS_TOPIC, [partition])]
    with RawConnection(address) as connection:
        [topic] = connection.call(ListOffsetsRequest(replica_id=-1, topics=topics), 7).topics
    [found] = topic.partitions
    if found.error_code:
        raise RuntimeError(f"ListOffsets: error {found.error_code}")
    offset: int = found.offset
    return offset


Servers = dict[str, tuple[Address, int]]
"""By name: address and process id."""


def _group(
    server: tuple[Address, int],
    group: str,
    members: int,
    rate: int,
    plan: Plan,
    pins: Pins,
    *,
    stay: bool = False,
) -> dict[str, Any]:
    """A group forms, and one member leaves. `stay`: then the others do not leave, too."""
    options = {
        "port": server[0][1],
        "group": group,
        "topic": TOPIC,
        "members": members,
        "partitions": _partitions(plan),
        "heartbeats_per_second": rate,
        "pause": plan.pause_s + ASSIGNMENT_INTERVAL_S,
        "server_pid": server[1],
        "stay": int(stay),
    }
    await_group(server[0], group)
    return run_load(pins.load, "consumer_members", options)


def _partitions(plan: Plan) -> int:
    return max(*plan.consumer_members, plan.members)


def _rebalances(servers: Servers, plan: Plan, pins: Pins) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """By pace and server: the rounds of the largest group."""
    members, found = max(plan.consumer_members), dict[str, dict[str, list[dict[str, Any]]]]()
    for pace, rate in HEARTBEATS_PER_S.items():
        rounds = found[pace] = {name: list[dict[str, Any]]() for name in servers}
        for number in range(plan.rounds):
            for name in in_turn(list(servers), number):
                one = _group(servers[name], f"{rate}-{number}", members, rate, plan, pins)
                rounds[name].append(one)
                times = ", ".join(f"{phase} {one[phase]['seconds']:.3f} s" for phase in PHASES)
                say(f"  {members} members, {pace}, round {number + 1}, {name}: {times}")
    return found


def _records(servers: Servers, plan: Plan, pins: Pins) -> dict[str, dict[str, float]]:
    """By server and size: the records of a group that forms and that one member leaves, for each member."""
    found: dict[str, dict[str, float]] = {name: {} for name in servers}
    rate = max(HEARTBEATS_PER_S.values())
    for members in plan.consumer_members:
        group = f"records-{members}"
        for name, server in servers.items():
            await_group(server[0], group)
            before = written(server[0], group)
            _group(server, group, members, rate, plan, pins, stay=True)
            found[name][str(members)] = (written(server[0], group) - before) / members
        say(f"  {members} members, records each: {[each[str(members)] for each in found.values()]}")
    return found


def _goals(results: dict[str, Any], plan: Plan) -> list[Goal]:
    goals: list[Goal] = []
    for depth, result in results["heartbeats"].items():
        name = f"heartbeats of the consumer protocol per CPU second, {depth}"
        goals += goals_against(name, result["medians"], "per_cpu_s", GOALS[int(depth.split()[1])])
    for pace, result in results["rebalances"].items():
        for phase, medians in result["medians"].items():
            if KAFKA in medians:
                ratio = medians[RINGLEADER]["seconds"] / medians[KAFKA]["seconds"]
                name = f"{PHASES[phase].format(f'{max(plan.consumer_members):,}')}, {pace}, seconds"
                goals.append(Goal(name, KAFKA, ratio, TIME_BOUND, is_time=True))
    each = results["records"][RINGLEADER]
    few, many = (str(of(plan.consumer_members)) for of in (min, max))
    name = f"records per join, {int(many):,} members over {int(few):,}"
    goals.append(Goal(name, RINGLEADER, each[many] / each[few], GROWTH_BOUND, is_time=True))
    return goals


def run(plan: Plan) -> dict[str, Any]:
    """Runs it, prints the tables, writes consumer_groups.json, returns its content."""
    pins = Pins.choose()
    partitions, members = _partitions(plan), max(plan.consumer_members)
    say(
        f"consumer_groups: {plan.members} members beat; {members:,} members of {partitions:,} partitions form"
    )
    with (
        pins.aside(),
        work_dir(plan.data_dir) as directory,
        daemon(
            directory,
            pins.server,
            topics=[f"{TOPIC}:{partitions}"],
            options=[word for name, value in CONSUMER_SESSION.items() for word in (_option(name), value)],
        ) as server,
        brokers(
            [name for name in plan.brokers if name == KAFKA],
            directory,
            pins.server,
            partitions=partitions,
            warmup_s=plan.jvm_warmup_s,
            jvm=plan.jvm,
        ) as others,
    ):
        servers: Servers = {RINGLEADER: (address_of(server.bootstrap), server.pid)}
        servers |= {name: (one.address, one.pid) for name, one in others.running.items()}
        peers = [
            Peer(
                name,
                address[1],
                pid,
                steady_frames(
                    directory / f"frames {name}", address, plan.members, partitions, plan.connections
                ),
                ERROR_AT,
                plan.jvm_warmup_s if name == KAFKA else 0.0,
            )
            for name, (address, pid) in servers.items()
        ]
        beats: dict[str, Any] = {}
        for depth in DEPTHS:
            rounds = rates_in_turn(peers, depth, plan, pins)
            medians = {name: summary(measured) for name, measured in rounds.items()}
            beats[f"depth {depth}"] = {"medians": medians, "rounds": rounds}
        rate = max(HEARTBEATS_PER_S.values())
        for name in others.running:
            say(f"  {name} warms up with {plan.jvm_warmup_rounds} rounds of {members} members")
            for number in range(plan.jvm_warmup_rounds):
                _group(servers[name], f"warm-{number}", members, rate, replace(plan, pause_s=0.05), pins)
        rebalances = {
            pace: {"medians": by_phase(rounds, PHASES, KEYS), "rounds": rounds}
            for pace, rounds in _rebalances(servers, plan, pins).items()
        }
        records = _records(servers, plan, pins)
    results = {"heartbeats": beats, "rebalances": rebalances, "records": records}
    whole = {
        "version": VERSION,
        "pins": {"server": pins.server, "load": pins.load},
        "members": members,
        "partitions": partitions,
        **others.to_dict(),
        "results": results,
    }
    rows = [
        [f"{name}, {depth}", *(values[key] for key in ("per_s", "per_cpu_s", "p50_us", "p99_us"))]
        for depth, result in beats.items()
        for name, values in result["medians"].items()
    ]
    table(
        "ConsumerGroupHeartbeat v1 (medians)",
        ["server", "per second", "per CPU second", "p50 us", "p99 us"],
        rows,
    )
    table("A group forms; one member leaves (medians)", REBALANCES, rebalance_cells(whole))
    goals = _goals(results, plan)
    print_goals(goals)
    save(plan.out_dir, "consumer_groups", whole, goals)
    return whole


def _option(name: str) -> str:
    return "--" + name.replace(".", "-")


REBALANCES = ("", "server", "seconds", "server CPU s", "client CPU s", "heartbeats")


def rebalance_cells(run: dict[str, Any]) -> list[list[str]]:
    """Rows under `REBALANCES`."""
    return [
        [
            f"{PHASES[phase].format(format(run['members'], ','))}, {pace}",
            name,
            *(f"{values[key]:.3f}" for key in KEYS[:-1]),
            f"{values['heartbeats']:,.0f}",
        ]
        for pace, result in run["results"]["rebalances"].items()
        for phase, medians in result["medians"].items()
        for name, values in medians.items()
    ]
