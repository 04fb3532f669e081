"""The same requests to an Apache Kafka broker and to a node of ours."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any

from ringleader.coordinator.config import Settings
from ringleader.coordinator.node import Node
from tests.interop.kafka import KafkaBroker

Found = dict[str, Any]
"""The answer to each step, by its name."""


async def on_both(directory: Path, played: Callable[[str, int], Awaitable[Found]]) -> tuple[Found, Found]:
    """The answers that `played` finds at our node, and at Kafka. Neither creates topics by itself."""
    with KafkaBroker(directory / "kafka", properties={"auto.create.topics.enable": "false"}) as broker:
        theirs = await played(broker.host, broker.port)
    settings = Settings(listen="127.0.0.1:0", data_dir=directory / "node", auto_create_topics_enable=False)
    async with Node(settings) as node:
        return await played(node.host, node.port), theirs


def assert_alike(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> None:
    """Every step was answered as by Kafka."""
    differ = [name for name in ours if ours[name] != theirs[name]]
    assert not differ, "\n".join(f"{name}\n ours  {ours[name]}\n Kafka {theirs[name]}" for name in differ)
