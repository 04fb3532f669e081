"""Groups of the consumer protocol (KIP-848).

ConsumerGroupHeartbeat (68) v0-1: v1 regular expressions, and members make their ids. ConsumerGroupDescribe
(69) v0-1: v1 types of members.
"""

from __future__ import annotations

from ringleader.coordinator.run_queue import Slices
from ringleader.coordinator.security.acls import Operation, ResourceType
from ringleader.coordinator.server.call import Call, Message
from ringleader.coordinator.server.handlers.groups import described
from ringleader.coordinator.server.services import Handler, Services
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.refusals import refusal


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
            return refusal(request, call.api_version, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        for name in dict.fromkeys(request.subscribed_topic_names or ()):
            if not may(call, Operation.DESCRIBE, ResourceType.TOPIC, name):
                return refusal(request, call.api_version, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        return self._runtime.handle(request, call)

    def describe(self, call: Call, request: kafka.ConsumerGroupDescribeRequest) -> Slices:
        """As DescribeGroups."""
        return described(
            self._services,
            call,
            request.group_ids,
            self._runtime.describe_consumer,
            kafka.ConsumerGroupDescribeResponseDescribedGroup,
            kafka.ConsumerGroupDescribeResponse,
            with_operations=request.include_authorized_operations,
        )
