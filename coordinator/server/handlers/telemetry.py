"""Client telemetry: GetTelemetrySubscriptions (71) and PushTelemetry (72), v0 (KIP-714)."""

from __future__ import annotations

import os
from functools import partial

from ringleader.coordinator.security.acls import Operation, ResourceType
from ringleader.coordinator.server.call import Call
from ringleader.coordinator.server.services import Handler, Services
from ringleader.coordinator.telemetry import Caller, Telemetry
from ringleader.protocol import messages as kafka

CLIENT_ID_MAX_CHARS = 255
"""More of a client id is not kept."""


def register(services: Services) -> dict[int, Handler]:
    """Handlers of this family; none where telemetry is switched off."""
    if services.telemetry is None:
        return {}
    handlers = _Telemetry(services, services.telemetry)
    return {71: handlers.subscription, 72: handlers.push}


class _Telemetry:
    def __init__(self, services: Services, telemetry: Telemetry) -> None:
        self._services = services
        self._telemetry = telemetry

    def subscription(
        self, call: Call, request: kafka.GetTelemetrySubscriptionsRequest
    ) -> kafka.GetTelemetrySubscriptionsResponse:
        """The same for all clients, whatever ACLs say, as in Kafka."""
        return self._telemetry.subscription(request, partial(os.urandom, 16), self._services.now_ms())

    def push(self, call: Call, request: kafka.PushTelemetryRequest) -> kafka.PushTelemetryResponse:
        """Every client may push, as in Kafka; what it reports of a group that it may not read is dropped."""

        def may_read(group_id: str) -> bool:
            return self._services.may(call, Operation.READ, ResourceType.GROUP, group_id, quietly=True)

        caller = Caller((call.client_id or "")[:CLIENT_ID_MAX_CHARS], call.client_host, may_read)
        return self._telemetry.push(request, caller, self._services.now_ms(), self._services.wall_ms())
