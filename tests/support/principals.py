"""Clients of a node in this process, with the principal that a test chooses."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Protocol

from ringleader.coordinator.config import Settings
from ringleader.coordinator.security.principal import Principal
from ringleader.coordinator.server.server import Server
from ringleader.protocol import messages as kafka
from tests.support.requests_of_all import ACLS, TOPICS
from tests.support.served import Client, connected

ADMINISTRATOR = "ANONYMOUS"
"""A super user: who says nothing."""


def guarded(directory: Path, **more: Any) -> Settings:
    """Settings of a node with an authorizer."""
    settings: dict[str, Any] = {
        "listen": "127.0.0.1:0",
        "authorizer": "acl",
        "super_users": f"User:{ADMINISTRATOR}",
        "group_initial_rebalance_delay_ms": 0,
        "telemetry_enable": True,
        **more,
    }
    if "listeners" in more:
        del settings["listen"]
    return Settings(data_dir=directory, **settings)


class Listening(Protocol):
    """A node of any kind."""

    @property
    def host(self) -> str: ...
    @property
    def port(self) -> int: ...
    @property
    def server(self) -> Server: ...


@contextlib.asynccontextmanager
async def connected_as(node: Listening, name: str) -> AsyncIterator[Client]:
    """A connection whose principal is set from within, as an authentication would."""
    async with connected(node.host, node.port) as client:
        await client.call(kafka.ApiVersionsRequest(), 0)
        host, port = client.writer.get_extra_info("sockname")
        [connection] = [one for one in node.server.connections if one.peer == f"{host}:{port}"]
        connection.session.principal = Principal("User", name)
        yield client


async def make_topics(client: Client) -> None:
    """As an administrator: those of `requests_of_all`."""
    topics = [
        kafka.CreateTopicsRequestCreatableTopic(name=name, num_partitions=1, replication_factor=1)
        for name in TOPICS
    ]
    made = await client.call(kafka.CreateTopicsRequest(topics=topics, timeout_ms=20_000), 7)
    assert {one.error_code for one in made.topics} == {0}


async def prepare(client: Client) -> None:
    """Likewise the topics and the ACLs."""
    await make_topics(client)
    creations = [
        kafka.CreateAclsRequestAclCreation(kind, name, pattern, principal, host, operation, permission)
        for kind, name, pattern, principal, host, operation, permission in ACLS
    ]
    created = await client.call(kafka.CreateAclsRequest(creations=creations), 3)
    assert {one.error_code for one in created.results} == {0}
