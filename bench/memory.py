"""Resident memory of the daemon for each 1,000 idle members and their connections."""

from __future__ import annotations

from typing import Any

from bench.plan import RINGLEADER, TOPIC, Plan
from bench.processes import Pins, daemon, resident_bytes, work_dir
from bench.report import Goal, print_goals, save, say, table
from bench.server_assignor import Member, settle
from ringleader.protocol.messages import ApiVersionsRequest
from tests.support.rawclient import RawConnection, address_of
from tests.support.rawgroup import allow_connections, form_group

GROUP_MEMBERS = 100
CONSUMER_BOUND = 2.0
"""Of a member of the consumer protocol, over a classic one."""


def _settled(bootstrap: str, pid: int) -> int:
    """Resident memory once everything sent before has been handled."""
    with RawConnection(bootstrap) as connection:
        connection.call(ApiVersionsRequest(), 0)
    return resident_bytes(pid)


def _consumer_groups(bootstrap: str, groups: range, members: int) -> None:
    """Stable groups of the consumer protocol. All join before any has its target: that of a group comes a
    second after the one before."""
    with RawConnection(bootstrap) as connection:
        made = [
            [Member(f"modern-{group}", f"member-{number:015}", [TOPIC]) for number in range(members)]
            for group in groups
        ]
        for one in (one for group in made for one in group):
            one.beat(connection)
        for group in made:
            settle(connection, group, members)


def run(plan: Plan) -> dict[str, Any]:
    """Runs it, prints the table, writes memory.json, returns its content."""
    pins = Pins.choose()
    group_members = min(GROUP_MEMBERS, plan.idle_members // 2)
    groups = plan.idle_members // group_members
    allow_connections(2 * plan.idle_members)
    with (
        work_dir(plan.data_dir) as directory,
        daemon(directory, pins.server, topics=[f"{TOPIC}:{group_members}"]) as server,
    ):
        address = address_of(server.bootstrap)

        def form(name: str) -> None:
            # Closed at once: a membership does not hang on its connection.
            form_group(address, name, group_members, topic=TOPIC).close()

        form("first")  # whatever is loaded or made on first use must not count
        empty = _settled(server.bootstrap, server.pid)
        for number in range(groups):
            form(f"idle-{number}")
        members = _settled(server.bootstrap, server.pid)
        connections = [RawConnection(address) for _ in range(groups * group_members)]
        for connection in connections:
            connection.call(ApiVersionsRequest(), 0)
        connected = _settled(server.bootstrap, server.pid)
        for connection in connections:
            connection.close()
        _consumer_groups(server.bootstrap, range(1), group_members)
        before = _settled(server.bootstrap, server.pid)
        _consumer_groups(server.bootstrap, range(1, groups + 1), group_members)
        modern = _settled(server.bootstrap, server.pid)
    thousands = groups * group_members / 1_000
    results = {
        "members": groups * group_members,
        "group_members": group_members,
        "start_mib": empty / 2**20,
        "members_mib_per_1000": (members - empty) / 2**20 / thousands,
        "connections_mib_per_1000": (connected - members) / 2**20 / thousands,
        "consumer_mib_per_1000": (modern - before) / 2**20 / thousands,
    }
    say(f"  {groups} groups of {group_members} members")
    rows = [
        ["daemon before", f"{results['start_mib']:.1f}"],
        ["1,000 idle members", f"{results['members_mib_per_1000']:.2f}"],
        ["1,000 of the consumer protocol", f"{results['consumer_mib_per_1000']:.2f}"],
        ["1,000 idle connections", f"{results['connections_mib_per_1000']:.2f}"],
    ]
    table("Resident memory", ["", "MiB"], rows)
    ratio = results["consumer_mib_per_1000"] / max(results["members_mib_per_1000"], 0.01)
    name = "memory of a member of the consumer protocol, over a classic one"
    goals = [Goal(name, RINGLEADER, ratio, CONSUMER_BOUND, is_time=True)]
    print_goals(goals)
    whole = {"results": results}
    save(plan.out_dir, "memory", whole, goals)
    return whole
