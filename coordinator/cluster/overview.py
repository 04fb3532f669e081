"""The nodes as an operator sees them, and an operator's wishes to the controller.

Everything is in the nodes' group on the cluster: its description has the map and the last state of each node;
a wish is a member for a moment, whose metadata the controller reads. So a principal that may join that group
may move partitions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.requests import plain
from ringleader.clients.connection.security import ClientSecurity
from ringleader.clients.errors import BrokerError, ClientError, CoordinatorUnavailableError
from ringleader.clients.group.membership import GroupMember
from ringleader.clients.model import MemberProtocol
from ringleader.coordinator.cluster.map import NOBODY, ClusterMap
from ringleader.coordinator.cluster.membership import (
    HEARTBEAT_INTERVAL_MS,
    PROTOCOL_TYPE,
    PROTOCOLS,
    REBALANCE_TIMEOUT_MS,
    assign,
)
from ringleader.coordinator.cluster.state import MemberState
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import error_name

LOOK_INTERVAL_S = 0.1
STABLE = "Stable"


class Overview(NamedTuple):
    """The map, and the states of the nodes from which it was made."""

    cluster: ClusterMap
    states: dict[int, MemberState]


async def look(cluster: Cluster, group_id: str, timeout_s: float) -> Overview | None:
    """The nodes now; None if there are none. Waits while they agree on another map.

    Raises ClientError; `MapError` for what a newer version wrote.
    """
    return await look_until(cluster, group_id, lambda _overview: True, timeout_s)


async def look_until(
    cluster: Cluster, group_id: str, condition: Callable[[Overview], bool], timeout_s: float
) -> Overview | None:
    """Look until this holds. Raises TimeoutError besides what `look` raises."""
    deadline_s = asyncio.get_running_loop().time() + timeout_s
    async with asyncio.timeout_at(deadline_s):
        while True:
            try:
                group = await _described(cluster, group_id, deadline_s)
            except CoordinatorUnavailableError:
                group = None
            else:
                if not group.members:
                    return None
            found = _read(group) if group is not None and group.group_state == STABLE else None
            if found is not None and condition(found):
                return found
            await asyncio.sleep(LOOK_INTERVAL_S)


async def _described(cluster: Cluster, group_id: str, deadline_s: float) -> Any:
    coordinator = await cluster.coordinator(group_id, deadline_s=deadline_s)
    request = plain(kafka.DescribeGroupsRequest(groups=[group_id]))
    answer = await cluster.send(coordinator, request, deadline_s=deadline_s)
    [group] = answer.groups
    if group.error_code and group.group_state != "Dead":
        raise BrokerError(f"group {group_id!r}: {error_name(group.error_code)}", group.error_code)
    if group.members and group.protocol_type != PROTOCOL_TYPE:
        raise ClientError(f"group {group_id!r} is of type {group.protocol_type!r}, not of nodes")
    return group


def _read(group: Any) -> Overview | None:
    maps = [
        ClusterMap.decode(member.member_assignment) for member in group.members if member.member_assignment
    ]
    states = [MemberState.decode(member.member_metadata) for member in group.members]
    if not maps:
        return None
    newest = max(maps, key=lambda one: one.generation)
    return Overview(newest, {state.node.node_id: state for state in states if state.node is not None})


async def wish(
    bootstrap: str, group_id: str, wanted: MemberState, security: ClientSecurity, timeout_s: float
) -> ClusterMap:
    """Join the nodes' group, let the controller read what is wanted, and leave; the map that it made. Raises
    ClientError and TimeoutError."""
    member = GroupMember(
        bootstrap,
        group_id,
        protocols=[MemberProtocol(name, wanted.encode()) for name in PROTOCOLS],
        protocol_type=PROTOCOL_TYPE,
        # Should this member be made the leader, when another one leaves: it decides as any node does.
        assign=partial(assign, None, NOBODY, dict, None),
        heartbeat_interval_ms=HEARTBEAT_INTERVAL_MS,
        session_timeout_ms=6_000,
        rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
        client_id="ringleader-nodes",
        tls=security.tls,
        sasl=security.sasl,
    )
    async with member:
        await member.ready(timeout_s)
        assigned = await member.wait_assigned(timeout_s)
        await member.leave("its wish was read")
    return ClusterMap.decode(assigned.assignment)
