"""Quotas are described and altered as by Apache Kafka, field by field."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from pathlib import Path
from typing import Any

import pytest

from ringleader.coordinator.config import Settings
from ringleader.coordinator.node import Node
from ringleader.protocol.messages import DescribeClientQuotasRequest
from tests.interop.kafka import KafkaBroker
from tests.support.quota_scripts import SCRIPT
from tests.support.served import Client, connected


def plain(value: Any) -> Any:
    """A message as what is compared: lists without their order."""
    if dataclasses.is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return sorted(map(plain, value), key=repr) if isinstance(value, list) else value


async def played(client: Client, request: Any, version: int) -> Any:
    return plain(await client.call(request, version))


@pytest.mark.parametrize("version", [0, 1])
async def test_the_answers_are_kafkas(tmp_path: Path, version: int) -> None:
    async with (
        Node(Settings(listen="127.0.0.1:0", data_dir=tmp_path / "node")) as node,
        connected(node.host, node.port) as client,
    ):
        ours = [await played(client, request, version) for request in SCRIPT]
    theirs = []
    with KafkaBroker(tmp_path / "kafka") as broker:
        async with connected(broker.host, broker.port) as client:
            for request, expected in zip(SCRIPT, ours, strict=True):
                their = await played(client, request, version)
                if isinstance(request, DescribeClientQuotasRequest):
                    # A broker learns of it from its controller, some time after an alteration is answered.
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(10):
                            while their != expected:
                                await asyncio.sleep(0.1)
                                their = await played(client, request, version)
                theirs.append(their)
    differ = [
        f"{request}\n ours  {mine}\n Kafka {their}"
        for request, mine, their in zip(SCRIPT, ours, theirs, strict=True)
        if mine != their
    ]
    assert not differ, "\n".join(differ)
