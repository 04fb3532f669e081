"""Clients work on uvloop, as nodes in front of a Kafka cluster run on it."""

from __future__ import annotations

import uvloop

from ringleader.clients.connection.cluster import Cluster
from ringleader.testing import Coordinator


async def _topics(bootstrap: str) -> list[str]:
    async with Cluster(bootstrap) as cluster:
        return list((await cluster.metadata()).topics)


def test_a_connection_works_on_uvloop() -> None:
    with Coordinator(topics={"orders": 1}) as coordinator:
        assert uvloop.run(_topics(coordinator.bootstrap)) == ["orders"]
