"""Groups of the consumer protocol (KIP-848).

ConsumerGroupHeartbeat (68) v0-1: v1 regular expressions, and members make their ids. ConsumerGroupDescribe
(69) v0-1: v1 types of members.
"""

from __future__ import annotations

from collections.abc import Coroutine
from functools import partial
from typing import Any

from ringleader.coordinator.run_queue import Slices
from ringleader.coordinator.security.acls import Operation, ResourceType
from ringleader.coordinator.security.principal import Principal
from ringleader.coordinator.server.call import Call, Message
from ringleader.coordinator.server.handlers import existing
from ringleader.coordinator.server.handlers.groups import described
from ringleader.coordinator.server.services import Handler, Services
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.refusals import refusal


def register(services: Services) -> dict[int, Handler]:
    """Handlers of this family."""
    family = _ConsumerGroups(services)
    services.runtime.sight = _Sight(services)
    services.authorizer.observe(services.runtime.topics.seen_anew)
    return {68: family.heartbeat, 69: family.describe}


class _Sight:
    """See `runtime.patterns.Sight`."""

    def __init__(self, services: Services) -> None:
        self._services = services

    @property
    def is_open(self) -> bool:
        return self._services.authorizer.is_open

    @property
    def names_hosts(self) -> bool:
        return self._services.authorizer.names_hosts

    def sees(self, principal: str, host: str, topic: str) -> bool:
        services, (kind, _, name) = self._services, principal.partition(":")
        return topic not in services.withheld and services.authorizer.authorize(
            Principal(kind, name), host[1:], Operation.DESCRIBE, ResourceType.TOPIC, topic
        )


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
        then = partial(self._runtime.handle, request, call)
        look = self._look(request)
        if look is None:
            return then()
        existing.after(self._services, call, look, then)
        return None

    def _look(self, request: kafka.ConsumerGroupHeartbeatRequest) -> Coroutine[Any, Any, None] | None:
        """Where topics live elsewhere: what finds those of the request that are not known here. None: there
        are none, or the group is another node's."""
        runtime, find = self._runtime, self._services.find_topics
        if find is None or runtime.look_at_topics is None or runtime.refusal(request.group_id):
            return None
        if not runtime.topics.complete:
            return runtime.look_at_topics()
        names = request.subscribed_topic_names or ()
        unknown = [name for name in dict.fromkeys(names) if runtime.topics.named(name) is None]
        return find(unknown) if unknown else None

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
