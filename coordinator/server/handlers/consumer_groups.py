"""Groups of the consumer protocol (KIP-848).

ConsumerGroupHeartbeat (68) v0-1: v1 regular expressions, and members make their ids. ConsumerGroupDescribe
(69) v0-1: v1 types of members.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from ringleader.coordinator.run_queue import Slices
from ringleader.coordinator.security.acls import Operation, ResourceType
from ringleader.coordinator.server.call import HELD_ENTRY_BYTES, Call, Message
from ringleader.coordinator.server.gather import Gather, Part
from ringleader.coordinator.server.handlers.groups import ALL_GROUP_OPERATIONS
from ringleader.coordinator.server.services import Handler, Services
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode


def register(services: Services) -> dict[int, Handler]:
    """Handlers of this family."""
    family = _ConsumerGroups(services)
    return {68: family.heartbeat, 69: family.describe}


class _ConsumerGroups:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._runtime = services.runtime

    def heartbeat(self, call: Call, request: kafka.ConsumerGroupHeartbeatRequest) -> Message | None:
        """May wait for the records of what it changes."""
        may = self._services.may
        if not may(call, Operation.READ, ResourceType.GROUP, request.group_id):
            return _refused(ErrorCode.GROUP_AUTHORIZATION_FAILED)
        for name in dict.fromkeys(request.subscribed_topic_names or ()):
            if not may(call, Operation.DESCRIBE, ResourceType.TOPIC, name):
                return _refused(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        return self._runtime.handle(request, call)

    def describe(self, call: Call, request: kafka.ConsumerGroupDescribeRequest) -> Slices:
        """One entry for each id, in the order of the request; an id that is given twice counts once."""

        def finish(groups: list[Any]) -> Message:
            if request.include_authorized_operations:
                for group in groups:
                    if not group.error_code:
                        group.authorized_operations = self._services.operations(
                            call, ResourceType.GROUP, group.group_id, ALL_GROUP_OPERATIONS
                        )
            return kafka.ConsumerGroupDescribeResponse(groups=groups)

        def ask(group_id: str, part: Part) -> Any:
            if not self._services.may(part, Operation.DESCRIBE, ResourceType.GROUP, group_id):
                return refused(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED)
            described = self._runtime.describe_consumer(group_id, part)
            call.takes(HELD_ENTRY_BYTES * (1 + (0 if described is None else len(described.members))))
            return described

        def refused(group_id: str, error: int) -> Any:
            return kafka.ConsumerGroupDescribeResponseDescribedGroup(group_id=group_id, error_code=error)

        gather = Gather(call, finish)
        for group_id in dict.fromkeys(request.group_ids):
            gather.add(
                partial(ask, group_id),
                partial(refused, group_id),
                partial(self._runtime.ticket_closed, group_id),
            )
            yield  # it may have many members
        return gather.answer()


def _refused(error: ErrorCode) -> Message:
    return kafka.ConsumerGroupHeartbeatResponse(error_code=int(error))
