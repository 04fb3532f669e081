"""Which brokers of the cluster answer this node, and so of which partitions it can be the owner.

Every broker is asked something small all the time: an owner whose partitions have nothing to write would not
notice otherwise that it could not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.requests import plain
from ringleader.clients.errors import ClientError
from ringleader.clients.model import Node
from ringleader.coordinator.clock import monotonic_ms
from ringleader.coordinator.logs import Failures, Log
from ringleader.coordinator.storage.kafka.leaders import Leaders
from ringleader.protocol.messages import ApiVersionsRequest

ASK_INTERVAL_S = 0.5
"""Between two questions to a broker."""
ANSWER_S = 1.0
"""A question that takes longer is asked again, on another connection."""
LOOK_INTERVAL_S = 30.0
"""Interval at which the cluster is asked for leaders; shorter while one is silent or unknown."""
PURPOSE = "reach"


class Reach:
    """`start` it and `stop` it in one event loop, whose clock all times are of."""

    def __init__(self, cluster: Cluster, topic: str, log: Log) -> None:
        """`topic`: that of the groups."""
        self._cluster = cluster
        self._failures = Failures(log, monotonic_ms)
        self._leaders = Leaders(cluster, topic, self._follow)
        self._asking: dict[Node, asyncio.Task[None]] = {}
        self._unanswered_s: dict[Node, float] = {}
        """By broker: when the first question was put that it has not answered."""
        self._watching: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to ask."""
        self._watching = asyncio.create_task(self._watch(), name="reach of brokers")

    async def stop(self) -> None:
        """Ask no more."""
        # In this order: the watch makes the leaders look, and a look makes questions.
        await _ended([] if self._watching is None else [self._watching])
        await self._leaders.close()
        await _ended([*self._asking.values()])
        self._asking.clear()

    def awoke(self, now_s: float) -> None:
        """This node was away itself: what it did not hear meanwhile says nothing of the brokers."""
        for node in self._unanswered_s:
            self._unanswered_s[node] = now_s

    def silence_s(self, now_s: float) -> Mapping[int, float]:
        """By broker id: for how long it has answered nothing."""
        return {node.node_id: max(0.0, now_s - self._unanswered_s.get(node, now_s)) for node in self._asking}

    def silent(self, now_s: float, for_s: float) -> frozenset[int]:
        """The partitions whose leaders have not answered for that time."""
        nodes = {node for node, since_s in self._unanswered_s.items() if now_s - since_s >= for_s}
        if not nodes:
            return frozenset()
        return frozenset(partition for partition, node in self._leaders.known.items() if node in nodes)

    def leaders(self) -> Mapping[int, int]:
        """Broker ids by partition, as the cluster reported them last. May be called in any thread."""
        return {partition: node.node_id for partition, node in self._leaders.known.items()}

    def _follow(self) -> None:
        """Follow the brokers and leaders that the cluster reports."""
        brokers = dict.fromkeys(self._leaders.brokers)
        for node in [node for node in self._asking if node not in brokers]:
            self._asking.pop(node).cancel()
            self._unanswered_s.pop(node, None)
        for node in brokers:
            if node in self._asking:
                continue
            self._asking[node] = asyncio.create_task(self._ask(node), name=f"reach of {node}")

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        looked_s = -LOOK_INTERVAL_S
        while True:
            now_s = loop.time()
            silent = any(now_s - since_s >= ANSWER_S for since_s in self._unanswered_s.values())
            if silent or not self._leaders.complete or now_s - looked_s >= LOOK_INTERVAL_S:
                looked_s = now_s
                self._leaders.moved()
            await asyncio.sleep(ASK_INTERVAL_S)

    async def _ask(self, node: Node) -> None:
        loop = asyncio.get_running_loop()
        while True:
            began_s = loop.time()
            self._unanswered_s.setdefault(node, began_s)
            try:
                await self._cluster.send(
                    node,
                    plain(ApiVersionsRequest()),
                    deadline_s=began_s + ANSWER_S,
                    request_timeout_ms=round(ANSWER_S * 1000),
                    purpose=PURPOSE,
                )
                del self._unanswered_s[node]
            except ClientError:
                pass  # for how long, `silence_s` tells
            except Exception:
                # An error of our own says nothing of the broker.
                self._unanswered_s.pop(node, None)
                self._failures.tell("broker not asked", broker=node.node_id)
            await asyncio.sleep(max(0.0, began_s + ASK_INTERVAL_S - loop.time()))


async def _ended(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
