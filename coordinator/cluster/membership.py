"""This node as a member of the nodes' group on the cluster.

A static member (`node-<id>`), so that a process that comes back soon gets its partitions without a rebalance.
Its assignment is the whole map. It keeps what it has while the group rebalances: the map is a plan, the fence
in the store decides. Versions side by side: the protocol's name has the format's number, and the group
settles on one that all members offer; who offers none of them is refused.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.requests import Request
from ringleader.clients.connection.security import ClientSecurity
from ringleader.clients.errors import ClientError, FencedInstanceIdError, MembershipError
from ringleader.clients.group.machine.classic_requests import leave_group
from ringleader.clients.group.membership import GroupMember
from ringleader.clients.model import Assigned, Lost, MemberInfo, MemberProtocol
from ringleader.coordinator.cluster.controller import next_map
from ringleader.coordinator.cluster.map import FORMAT, NOBODY, PLAINTEXT, ClusterMap, MapError
from ringleader.coordinator.cluster.state import MemberState
from ringleader.coordinator.config import Settings
from ringleader.coordinator.logs import Log
from ringleader.protocol.errors import ErrorCode, error_name

PROTOCOL_TYPE = "ringleader"
PROTOCOLS = tuple(f"map-{number}" for number in range(FORMAT, 0, -1))
"""The protocols that members offer, the newest first."""
HEARTBEAT_INTERVAL_MS = 250
"""Members learn of a rebalance by heartbeat, so a move waits for this."""
REBALANCE_TIMEOUT_MS = 3_000
"""A rebalance does not wait longer for a member that hangs."""
LEAVE_TIMEOUT_S = 2.0


def instance_id(node_id: int) -> str:
    """The static member's name of a node."""
    return f"node-{node_id}"


def assign(
    partitions: int | None,
    controller: int,
    leaders: Callable[[], Mapping[int, int]],
    log: Log | None,
    _protocol: str,
    members: list[MemberInfo],
) -> Mapping[str, bytes]:
    """The assignment of the leader of the nodes' group: to every member the next map. Raises `MapError`."""
    states = []
    for member in members:
        try:
            states.append(MemberState.decode(member.metadata))
        except MapError as error:
            # It goes without: its partitions go to others.
            if log is not None:
                log.error(
                    "the state of a member cannot be read", member_id=member.member_id, reason=str(error)
                )
    data = next_map(states, controller, partitions, leaders()).encode()
    return {member.member_id: data for member in members}


class Membership:
    """The member, its map, and what it says to others about nodes that are gone."""

    def __init__(
        self,
        settings: Settings,
        cluster: Cluster,
        security: ClientSecurity,
        state: Callable[[], MemberState],
        leaders: Callable[[], Mapping[int, int]],
        *,
        on_map: Callable[[ClusterMap], None],
        on_lost: Callable[[str], None],
        on_failed: Callable[[Exception], None],
        log: Log,
    ) -> None:
        """`state` is asked at each join, and `leaders` (broker ids by partition of the groups' topic) when
        this node is the controller, in another thread. `on_map`: there is a new map; `on_lost`: the
        group took this node out, and it joins again; `on_failed`: it is over, for good."""
        self.group_id = settings.cluster_group_id
        # Older formats do not tell listeners by name.
        is_plain = [listener.name for listener in settings.served()] == [PLAINTEXT]
        offered = PROTOCOLS if is_plain else PROTOCOLS[:1]
        self._node_id = settings.node_id
        self._cluster = cluster
        self._log = log
        self._on_map, self._on_lost, self._on_failed = on_map, on_lost, on_failed
        self._map_generation = -1
        self._member = GroupMember(
            [str(address) for address in settings.cluster],
            self.group_id,
            protocols=[MemberProtocol(name, lambda: self._metadata(state())) for name in offered],
            protocol_type=PROTOCOL_TYPE,
            assign=partial(assign, settings.offsets_topic_num_partitions, settings.node_id, leaders, log),
            given_up=lambda _before, _after: None,
            client_id=f"ringleader-node-{settings.node_id}",
            group_instance_id=instance_id(settings.node_id),
            session_timeout_ms=settings.cluster_session_timeout_ms,
            heartbeat_interval_ms=min(HEARTBEAT_INTERVAL_MS, settings.cluster_session_timeout_ms // 4),
            rebalance_timeout_ms=REBALANCE_TIMEOUT_MS,
            request_timeout_ms=settings.cluster_session_timeout_ms,
            retry_backoff_ms=50,
            retry_backoff_max_ms=500,
            on_assigned=self._assigned,
            on_lost=self._lost,
            on_failed=self._failed,
            tls=security.tls,
            sasl=security.sasl,
        )

    async def start(self, timeout_s: float) -> None:
        """Begin to join. Raises ClientError if the cluster names no coordinator for the group in time."""
        await self._member.start()
        await self._member.ready(timeout_s)

    async def leave(self, reason: str) -> None:
        """End the membership at once: the others need not wait for its session to end."""
        await self._member.leave(reason, timeout_s=LEAVE_TIMEOUT_S)

    async def rejoin(self, reason: str) -> None:
        """Have the controller look at what this node reports now."""
        try:
            await self._member.rejoin(reason)
        except MembershipError as error:
            self._log.warning("cannot tell the controller", reason=str(error))

    def silence_ms(self) -> int | None:
        """How long ago the group's coordinator took this node for a member the last time; None: never."""
        metrics = self._member.metrics()
        ages = [age for age in (metrics.last_heartbeat_age_ms, metrics.assigned_age_ms) if age is not None]
        return min(ages, default=None)

    def map_silence_s(self) -> float:
        """The time since the group's coordinator confirmed this node's map as the newest; infinite: there is
        a newer one already."""
        silence_ms = self.silence_ms()
        # Asked for after that, it is no older than what was confirmed then.
        held = self._member.machine.state.last_held
        if silence_ms is None or held is None or held.generation != self._map_generation:
            return math.inf
        return silence_ms / 1000

    async def remove(self, node_id: int, reason: str, timeout_s: float) -> None:
        """End another node's session now, as the admin client's removeMembersFromConsumerGroup does: the
        group assigns again without it. Raises ClientError."""
        deadline_s = asyncio.get_running_loop().time() + timeout_s
        coordinator = await self._cluster.coordinator(self.group_id, deadline_s=deadline_s)
        request: Request = leave_group(self.group_id, "", instance_id(node_id), reason)
        response = await self._cluster.send(coordinator, request, deadline_s=deadline_s)
        codes = [response.error_code, *(member.error_code for member in response.members)]
        code = next((code for code in codes if code), 0)
        if code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID):
            raise ClientError(f"the nodes' group does not remove node {node_id}: {error_name(code)}", code)

    def _metadata(self, state: MemberState) -> bytes:
        """In the member's thread: the group may be a map ahead of the node, and none may get lost."""
        held = self._member.machine.state.last_held
        newest = None if held is None else ClusterMap.decode(held.assignment)
        if newest is not None and (state.known is None or newest.generation > state.known.generation):
            state = replace(state, known=newest)
        return state.encode()

    # ---- callbacks ----

    def _assigned(self, assigned: Assigned) -> None:
        try:
            cluster = ClusterMap.decode(assigned.assignment)
        except MapError as error:
            self._on_failed(error)
            return
        self._map_generation = assigned.generation
        self._on_map(cluster)

    def _failed(self, error: MembershipError) -> None:
        if isinstance(error, FencedInstanceIdError):
            text = f"another node with node.id {self._node_id} has started: give each a number of its own"
            error = FencedInstanceIdError(text, error.code)
        self._on_failed(error)

    def _lost(self, lost: Lost) -> None:
        self._on_lost(lost.reason)


__all__ = ["NOBODY", "Membership", "assign", "instance_id"]
