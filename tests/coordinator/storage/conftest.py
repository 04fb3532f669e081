"""A coordinator that stands for a Kafka cluster, and how a topic of nodes is set there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ringleader.testing import Coordinator

CONFIGS = {
    "cleanup.policy": "compact",
    "max.message.bytes": "20000000",
    "unclean.leader.election.enable": "false",
    "message.timestamp.type": "LogAppendTime",
}


@pytest.fixture
def kafka_cluster() -> Iterator[Coordinator]:
    """Keeps its port."""
    with Coordinator() as coordinator:
        yield coordinator
