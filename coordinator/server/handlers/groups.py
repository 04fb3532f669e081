"""Membership of groups.

FindCoordinator (10) v0-4: v1 key types, v3 flexible, v4 several keys. JoinGroup (11) v0-9, Heartbeat (12)
v0-4, LeaveGroup (13) v0-5, SyncGroup (14) v0-5: the group machine knows their versions. DescribeGroups (15)
v0-6: v6 says that there is no such group. ListGroups (16) v0-5: v4 state filter, v5 type filter. DeleteGroups
(42) v0-2.
"""

from __future__ import annotations

from functools import partial

from ringleader.coordinator.server.handlers import Call, Handler, Services
from ringleader.coordinator.server.parts import Gather
from ringleader.protocol.errors import ErrorCode, KafkaError
from ringleader.protocol.messages import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    FindCoordinatorResponseCoordinator,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)

GROUP_KEY_TYPE = 0
TRANSACTION_KEY_TYPE = 1

ALL_GROUP_OPERATIONS = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
"""Read, delete, describe, describe and alter configurations: what everybody may do without an authorizer
(KIP-430)."""

_UNKNOWN_KEY_TYPE = (
    "This most likely occurs because of a request being malformed by the client library or the message was "
    "sent to an incompatible broker. See the broker logs for more details."
)


def register(services: Services) -> dict[int, Handler]:
    """Handlers of this family."""
    family = _Groups(services)
    return {
        10: family.find_coordinator,
        11: family.join,
        12: family.heartbeat,
        13: family.leave,
        14: family.sync,
        15: family.describe,
        16: family.list,
        42: family.delete,
    }


class _Groups:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._runtime = services.runtime

    def find_coordinator(self, call: Call, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        """This node coordinates everything there is."""
        known = request.key_type in (GROUP_KEY_TYPE, TRANSACTION_KEY_TYPE)
        error = ErrorCode.NONE if known else ErrorCode.INVALID_REQUEST
        node, host, port = -1, "", -1
        if known:
            node, host, port = self._services.node_id, self._services.host, self._services.port
        if call.api_version < 4:
            # Kafka answers the word NONE here on success; clients show it at most.
            text = "NONE" if known else _UNKNOWN_KEY_TYPE
            return FindCoordinatorResponse(
                error_code=error, error_message=text, node_id=node, host=host, port=port
            )
        return FindCoordinatorResponse(
            coordinators=[
                FindCoordinatorResponseCoordinator(
                    key=key,
                    node_id=node,
                    host=host,
                    port=port,
                    error_code=error,
                    error_message="" if known else _UNKNOWN_KEY_TYPE,
                )
                for key in request.coordinator_keys
            ]
        )

    def join(self, call: Call, request: JoinGroupRequest) -> JoinGroupResponse | None:
        """Parks until the join phase is over."""
        response: JoinGroupResponse | None = self._runtime.handle(request, call)
        if response is None:
            call.on_closed = partial(self._runtime.ticket_closed, request.group_id, call)
        return response

    def sync(self, call: Call, request: SyncGroupRequest) -> SyncGroupResponse | None:
        """Parks until the leader's assignment is durable."""
        if call.api_version >= 5 and (request.protocol_type is None or request.protocol_name is None):
            return SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        response: SyncGroupResponse | None = self._runtime.handle(request, call)
        if response is None:
            call.on_closed = partial(self._runtime.ticket_closed, request.group_id, call)
        return response

    def heartbeat(self, call: Call, request: HeartbeatRequest) -> HeartbeatResponse | None:
        """Registered so that ApiVersions lists it; the connection has a shorter way (see `beats`)."""
        response: HeartbeatResponse | None = self._runtime.handle(request, call)
        return response

    def leave(self, call: Call, request: LeaveGroupRequest) -> LeaveGroupResponse | None:
        """May wait for a record: the last member's leave is answered when it is durable."""
        response: LeaveGroupResponse | None = self._runtime.handle(request, call)
        return response

    def describe(self, call: Call, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
        """One entry per id, in the order of the request."""
        version = call.api_version
        groups = [self._runtime.describe(group_id, version) for group_id in request.groups]
        if request.include_authorized_operations:
            for group in groups:
                if not group.error_code:
                    group.authorized_operations = ALL_GROUP_OPERATIONS
        return DescribeGroupsResponse(groups=groups)

    def list(self, call: Call, request: ListGroupsRequest) -> ListGroupsResponse:
        """All groups, or those in the asked states and of the asked types."""
        try:
            found = self._runtime.list_groups(request.states_filter, request.types_filter)
            return ListGroupsResponse(groups=found)
        except KafkaError as error:
            return ListGroupsResponse(error_code=error.code)

    def delete(self, call: Call, request: DeleteGroupsRequest) -> DeleteGroupsResponse | None:
        """Each group by itself; a name that is given twice counts once, as in Kafka."""
        gather = Gather(call, lambda results: DeleteGroupsResponse(results=results))
        for group_id in dict.fromkeys(request.groups_names):
            gather.add(
                partial(self._runtime.delete_group, group_id),
                partial(self._runtime.ticket_closed, group_id),
            )
        return gather.answer()
