"""Membership of groups.

FindCoordinator (10) v0-4: v1 key types, v3 flexible, v4 several keys. JoinGroup (11) v0-9, Heartbeat (12)
v0-4, LeaveGroup (13) v0-5, SyncGroup (14) v0-5: the group machine knows their versions. DescribeGroups (15)
v0-6: v6 says that there is no such group. ListGroups (16) v0-5: v4 state filter, v5 type filter. DeleteGroups
(42) v0-2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, cast

from ringleader.coordinator.groups.routing import partition_for
from ringleader.coordinator.run_queue import SLICE_ELEMENTS, Slices
from ringleader.coordinator.security.acls import Operation, ResourceType
from ringleader.coordinator.server.call import HELD_ENTRY_BYTES, Call, Message
from ringleader.coordinator.server.gather import Gather, Part
from ringleader.coordinator.server.services import Handler, Services
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode, KafkaError
from ringleader.protocol.refusals import join_refusal, refusal

GROUP_KEY_TYPE = 0
TRANSACTION_KEY_TYPE = 1

ALL_GROUP_OPERATIONS = 1 << 3 | 1 << 6 | 1 << 8 | 1 << 10 | 1 << 11
"""Read, delete, describe, describe and alter configurations: the rights of every caller without an authorizer
(KIP-430)."""

_UNKNOWN_KEY_TYPE = (
    "This most likely occurs because of a request being malformed by the client library or the message was "
    "sent to an incompatible broker. See the broker logs for more details."
)
_NO_OWNER = "The coordinator is not available."
_KEYS = {
    GROUP_KEY_TYPE: (
        ResourceType.GROUP,
        ErrorCode.GROUP_AUTHORIZATION_FAILED,
        "Group authorization failed.",
    ),
    TRANSACTION_KEY_TYPE: (
        ResourceType.TRANSACTIONAL_ID,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        "Transactional Id authorization failed.",
    ),
}
"""By type of key: the type of resource, and the error for a caller that may not describe it."""


def register(services: Services) -> dict[int, Handler]:
    """Handlers of this family."""
    family = _Groups(services)
    return {
        10: family.find_coordinator,
        11: family.join,
        12: family.handle,
        13: family.handle,
        14: family.sync,
        15: family.describe,
        16: family.list,
        42: family.delete,
    }


class _Groups:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._runtime = services.runtime

    def find_coordinator(self, call: Call, request: kafka.FindCoordinatorRequest) -> Message:
        """The owner of a group's partition. With several nodes any of them forwards requests of a
        transaction: all nodes name the same one for a transactional id."""
        answers = kafka.FindCoordinatorResponse(
            coordinators=[
                self._coordinator(key, request.key_type, call)
                for key in (request.coordinator_keys if call.api_version >= 4 else [request.key])
            ]
        )
        if call.api_version >= 4:
            return answers
        [one] = answers.coordinators
        return kafka.FindCoordinatorResponse(
            error_code=one.error_code,
            error_message=one.error_message,
            node_id=one.node_id,
            host=one.host,
            port=one.port,
        )

    def _coordinator(self, key: str, key_type: int, call: Call) -> kafka.FindCoordinatorResponseCoordinator:
        answer = kafka.FindCoordinatorResponseCoordinator
        if key_type not in _KEYS:
            return answer(key, -1, "", -1, ErrorCode.INVALID_REQUEST, _UNKNOWN_KEY_TYPE)
        kind, code, text = _KEYS[key_type]
        if not self._services.may(call, Operation.DESCRIBE, kind, key):
            return answer(key, -1, "", -1, code, text if call.api_version < 4 else "")
        directory = self._services.directory_for(call)
        if key_type == GROUP_KEY_TYPE:
            node = directory.owner(self._runtime.partition_of(key))
        else:
            nodes = directory.nodes()
            node = nodes[partition_for(key, len(nodes))] if nodes else None
        if node is None:
            return answer(key, -1, "", -1, ErrorCode.COORDINATOR_NOT_AVAILABLE, _NO_OWNER)
        # Before v4 Kafka answers the word NONE on success; clients show it at most.
        text = "NONE" if call.api_version < 4 else ""
        return answer(key, node.node_id, node.host, node.port, ErrorCode.NONE, text)

    def join(self, call: Call, request: kafka.JoinGroupRequest) -> Message | None:
        """Parks until the join phase is over."""
        if not self._may_read(call, request.group_id):
            return join_refusal(call.api_version, ErrorCode.GROUP_AUTHORIZATION_FAILED, "")
        return self._park(call, request)

    def _may_read(self, call: Call, group_id: str) -> bool:
        return self._services.may(call, Operation.READ, ResourceType.GROUP, group_id)

    def _park(self, call: Call, request: kafka.JoinGroupRequest | kafka.SyncGroupRequest) -> Message | None:
        response = self._runtime.handle(request, call)
        if response is None:
            call.on_closed = partial(self._runtime.ticket_closed, request.group_id, call)
        return response

    def sync(self, call: Call, request: kafka.SyncGroupRequest) -> Message | None:
        """Parks until the leader's assignment is durable."""
        if call.api_version >= 5 and (request.protocol_type is None or request.protocol_name is None):
            return kafka.SyncGroupResponse(error_code=ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        if not self._may_read(call, request.group_id):
            return refusal(request, call.api_version, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        return self._park(call, request)

    def handle(self, call: Call, request: kafka.HeartbeatRequest | kafka.LeaveGroupRequest) -> Message | None:
        """Most heartbeats take the connection's shorter way (see `heartbeats`), unless they have to wait. The
        last member's leave is answered when its record is durable."""
        if not self._may_read(call, request.group_id):
            return refusal(request, call.api_version, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        return self._runtime.handle(request, call)

    def describe(self, call: Call, request: kafka.DescribeGroupsRequest) -> Slices:
        """One entry per id, in the order of the request; an id that is given twice counts once. May wait for
        what it shows to be durable."""

        return described(
            self._services,
            call,
            request.groups,
            lambda group_id, part: self._runtime.describe(group_id, call.api_version, part),
            kafka.DescribeGroupsResponseDescribedGroup,
            kafka.DescribeGroupsResponse,
            with_operations=request.include_authorized_operations,
        )

    def delete(self, call: Call, request: kafka.DeleteGroupsRequest) -> Slices:
        """Each group by itself; a name that is given twice counts once, as in Kafka."""
        gather = Gather(call, lambda results: kafka.DeleteGroupsResponse(results=results))
        names = dict.fromkeys(request.groups_names)
        refused = kafka.DeleteGroupsResponseDeletableGroupResult

        def ask(group_id: str, part: Part) -> Any:
            if not self._services.may(part, Operation.DELETE, ResourceType.GROUP, group_id):
                return refused(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED)
            return self._runtime.delete_group(group_id, part)

        return _each(self._services, gather, names, ask, refused)

    def list(self, call: Call, request: kafka.ListGroupsRequest) -> Slices:
        """All groups that the caller may see, or those in the asked states and of the asked types. May wait,
        as `describe`."""
        found = 0

        def ask(partition: int, part: Part) -> Any:
            nonlocal found
            listed = self._runtime.list_groups(partition, request.states_filter, request.types_filter, part)
            count = len(listed or ())
            found += count
            call.takes(HELD_ENTRY_BYTES * count)
            return listed

        may = self._services.may
        everything = may(call, Operation.DESCRIBE, ResourceType.CLUSTER, quietly=True)

        def finish(shards: list[Any]) -> kafka.ListGroupsResponse:
            response = _listed(shards)
            if not everything:
                response.groups = [
                    group
                    for group in response.groups
                    if may(call, Operation.DESCRIBE, ResourceType.GROUP, group.group_id, quietly=True)
                ]
            return response

        gather = Gather(call, finish)
        for partition in range(self._runtime.partitions):
            try:
                gather.add(partial(ask, partition), int)
            except KafkaError as error:
                return kafka.ListGroupsResponse(error_code=error.code)
            if found > SLICE_ELEMENTS:
                found = 0
                yield
        return gather.answer()


def described(
    services: Services,
    call: Call,
    group_ids: Iterable[str],
    describe: Callable[[str, Part], Any],
    entry: type[Any],
    response: type[Any],
    *,
    with_operations: bool,
) -> Slices:
    """The answer to a request that describes groups: an `entry` for each id, in the order of the request; an
    id that is given twice counts once. `describe` asks a shard; `with_operations`: the caller's (KIP-430)."""

    def finish(groups: list[Any]) -> Message:
        for group in groups if with_operations else ():
            if not group.error_code:
                group.authorized_operations = services.operations(
                    call, ResourceType.GROUP, group.group_id, ALL_GROUP_OPERATIONS
                )
        return cast(Message, response(groups=groups))

    def ask(group_id: str, part: Part) -> Any:
        if not services.may(part, Operation.DESCRIBE, ResourceType.GROUP, group_id):
            return refused(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        found = describe(group_id, part)
        call.takes(HELD_ENTRY_BYTES * (1 + (0 if found is None else len(found.members))))
        return found

    def refused(group_id: str, error: int) -> Any:
        return entry(group_id=group_id, error_code=error)

    return _each(services, Gather(call, finish), dict.fromkeys(group_ids), ask, refused)


def _each(
    services: Services,
    gather: Gather,
    group_ids: Iterable[str],
    ask: Callable[[str, Part], Any],
    refused: Callable[[str, int], Any],
) -> Slices:
    for group_id in group_ids:
        gather.add(
            partial(ask, group_id),
            partial(refused, group_id),
            partial(services.runtime.ticket_closed, group_id),
        )
        yield  # it may have many members, or offsets
    return gather.answer()


def _listed(shards: list[Any]) -> kafka.ListGroupsResponse:
    """`shards`: of each the groups, or an error code."""
    errors = [found for found in shards if isinstance(found, int)]
    if errors:
        return kafka.ListGroupsResponse(error_code=errors[0])
    return kafka.ListGroupsResponse(groups=[group for found in shards for group in found])
