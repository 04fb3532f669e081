"""The handlers of one node of several: groups at the node, everything else at the brokers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ringleader.coordinator.logs import get_log
from ringleader.coordinator.relay import admin, fetch, metadata, offsets, produce, transactions
from ringleader.coordinator.relay.deletions import Deletions
from ringleader.coordinator.relay.following import Following
from ringleader.coordinator.relay.relay import Relay
from ringleader.coordinator.server.call import Call
from ringleader.coordinator.server.handlers import versions
from ringleader.coordinator.server.handlers.offsets import TOPIC_IDS_VERSION
from ringleader.coordinator.server.services import Handler, Services
from ringleader.coordinator.server.tables import of_every_node
from ringleader.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    FetchRequest,
    FindCoordinatorRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    ProduceRequest,
    data,
)

METADATA_BY_ID_VERSION = 12
"""The first version of Metadata that looks topics up by their ids: with older brokers no offsets are
committed or fetched by them, and no records written or fetched."""

Family = Callable[[Services, Relay], dict[int, Handler]]
"""Makes the handlers of some APIs, by API key."""


def build(services: Services, relay: Relay, *more: Family) -> dict[int, Handler]:
    """All handlers, by API key; `more`: families that need both the node's groups and the brokers.
    ApiVersions answers with these, in versions that the brokers serve, too."""
    table: dict[int, Handler] = {}
    families = [one.register for one in (metadata, produce, fetch, offsets, admin, transactions)]
    for family in (*families, *more):
        table.update(family(services, relay))
    narrowed = {key: relay.versions[key] for key in table if key in relay.versions}
    if relay.versions.get(MetadataRequest.API_KEY, (0, 0))[1] < METADATA_BY_ID_VERSION:
        for request in OffsetCommitRequest, OffsetFetchRequest:
            narrowed[request.API_KEY] = request.MIN_VERSION, TOPIC_IDS_VERSION - 1
        for records in FetchRequest, ProduceRequest:
            least, most = narrowed.get(records.API_KEY, (records.MIN_VERSION, records.MAX_VERSION))
            narrowed[records.API_KEY] = least, min(most, data.TOPIC_IDS_VERSION - 1)
    table.update(of_every_node(services))
    find_coordinator = table[FindCoordinatorRequest.API_KEY]
    table[FindCoordinatorRequest.API_KEY] = _once_mapped(services, relay, find_coordinator)
    table.update(versions.register(services, tuple(table), narrowed))
    services.spawn(None, Deletions(relay.topology, services.runtime, get_log()).watch())
    if ConsumerGroupHeartbeatRequest.API_KEY in table:
        services.spawn(None, Following(relay.topology, services.runtime, get_log()).watch())
    return table


def _once_mapped(services: Services, relay: Relay, handler: Handler) -> Handler:
    """The handler of FindCoordinator, asked when the other nodes are known: librdkafka gives up after three
    times COORDINATOR_NOT_AVAILABLE, which are half a second."""

    async def find(call: Call, request: Any) -> Any:
        await services.mapped()
        return handler(call, request)

    return relay.handler(services, find)
