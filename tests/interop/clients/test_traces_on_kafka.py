"""Apache Kafka answers members of the consumer protocol as docs/spec allows."""

from __future__ import annotations

import secrets
from pathlib import Path

import pytest

from tests.interop.brokers import kafka, warm_up
from tests.spec.wire import WireWorld, judge_wire

pytestmark = pytest.mark.xdist_group("tlc")


async def test_kafka_answers_as_the_specification_allows(tmp_path: Path) -> None:
    with kafka("plain", tmp_path / "kafka") as broker:
        await warm_up(broker.host, broker.port)
        world = WireWorld(broker.bootstrap, "g", "orders", secrets.randbits(48))
        trace = world.record(tmp_path / "trace.json")
    judge_wire(trace)
