"""A cluster and its groups as they are now: what it serves, what it allows, and who is in the groups."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field

from ringleader.clients.admin import Admin
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.requests import plain
from ringleader.clients.connection.security.sasl import Sasl
from ringleader.clients.descriptions import GroupDescription, GroupListing
from ringleader.clients.errors import UnsupportedVersionError
from ringleader.insight.advice.consumer_protocol import SETTINGS, Server
from ringleader.insight.feed.broker_settings import of_first_broker
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import ConsumerGroupDescribeRequest

TIMEOUT_S = 30.0
"""For all questions together."""


@dataclass(frozen=True, slots=True)
class Present:
    """The answers."""

    server: Server
    listed: dict[str, GroupListing] = field(default_factory=dict)
    """All groups, by id."""
    groups: dict[str, GroupDescription] = field(default_factory=dict)
    """Those of the classic and the consumer protocol that were asked for."""


async def present(
    bootstrap: str | Sequence[str],
    group: str | None = None,
    *,
    tls: ssl.SSLContext | None = None,
    sasl: Sasl | None = None,
) -> Present:
    """Ask for one group, or for all. Raises ClientError."""
    async with (
        asyncio.timeout(TIMEOUT_S),
        Admin(bootstrap, tls=tls, sasl=sasl) as admin,
        Cluster(bootstrap, tls=tls, sasl=sasl) as cluster,
    ):
        listed = {one.group_id: one for one in await admin.list_groups()}
        wanted = [
            one.group_id
            for one in listed.values()
            if group in (None, one.group_id) and one.group_type in ("", "classic", "consumer")
        ]
        groups = {one.group_id: one for one in await admin.describe_groups(wanted)}
        return Present(Server(await _serves(cluster), await _settings(cluster)), listed, groups)


async def _serves(cluster: Cluster) -> bool:
    """Whether the consumer protocol is served. Where its feature is off, the request is refused by name."""
    try:
        answer = await cluster.send(None, plain(ConsumerGroupDescribeRequest(["-"])))
    except UnsupportedVersionError:
        return False
    return all(one.error_code != ErrorCode.UNSUPPORTED_VERSION for one in answer.groups)


async def _settings(cluster: Cluster) -> dict[str, str]:
    """Of the first broker that says them; none where it may not be asked."""
    metadata = await cluster.metadata([])
    found = await of_first_broker(metadata.brokers.values(), SETTINGS, cluster.send, dict)
    return {name: value for name, value in (found or {}).items() if value is not None}
