"""Nodes of one cluster in this process, on a log that they share; and a log that keeps its lines."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Mapping
from typing import Any

import structlog
from structlog.typing import EventDict, FilteringBoundLogger

from ringleader.coordinator.cluster.node import ClusterNode
from ringleader.coordinator.config import Settings
from ringleader.coordinator.security.store import SecurityStore
from ringleader.testing import Coordinator
from tests.support import leftovers
from tests.support.fenced_store import FencedLog, FencedStorage


class Lines(list[Mapping[str, Any]]):
    """Log lines; `log` writes them. One with a traceback fails the test."""

    def __init__(self) -> None:
        super().__init__()

        def keep(_logger: Any, method: str, event: EventDict) -> EventDict:
            if event.get("exc_info") is True:
                event["exc_info"] = traceback.format_exc()
                leftovers.note(f"logged by a node: {event}")
            self.append({"level": method, **event})
            raise structlog.DropEvent

        self.log: FilteringBoundLogger = structlog.wrap_logger(
            None, processors=[keep], wrapper_class=structlog.make_filtering_bound_logger(0)
        )

    def of(self, event: str) -> list[Mapping[str, Any]]:
        """Those of this event."""
        return [line for line in self if line["event"] == event]


class Nodes:
    """Nodes that share a log, and a store of who may what. They are stopped at the end."""

    def __init__(
        self, kafka_cluster: Coordinator, lines: Lines, security_store: SecurityStore | None = None
    ) -> None:
        self._bootstrap = kafka_cluster.bootstrap
        self._lines = lines
        self._security_store = security_store
        self.shared = FencedLog()
        """The log that all of them have written."""
        self.stores: dict[int, FencedStorage] = {}
        """The way of each to it."""
        self._stack = contextlib.AsyncExitStack()
        self.by_id: dict[int, ClusterNode] = {}

    async def __aenter__(self) -> Nodes:
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self._stack.aclose()

    async def start(self, node_id: int, **settings: Any) -> ClusterNode:
        """One more that serves."""
        given = {
            "node_id": node_id,
            "cluster": self._bootstrap,
            "listen": "127.0.0.1:0",
            "cluster_replication_factor": 1,
            "group_initial_rebalance_delay_ms": 0,
            "shutdown_grace_ms": 0,
            **settings,
        }
        if "listeners" in settings:
            del given["listen"]
        store = self.stores[node_id] = FencedStorage(self.shared)
        node = ClusterNode(
            Settings(**given),
            storage=store,
            security_store=self._security_store,
            log=self._lines.log,
        )
        self.by_id[node_id] = await self._stack.enter_async_context(node)
        return node
