"""Topics that were deleted: the offsets that groups committed for them go, too.

A topic may be deleted at any node, or past all of them at the cluster. So every node looks, for the groups
that it has, whether topics that it once saw are still there. Nothing is forgotten on doubt: a topic is gone
when every broker of the cluster answers, twice with some time between, that it knows neither its name nor its
id. One that was deleted and created again keeps its offsets: a node that has not seen yet that the topic is
another one stores the old id with what is committed for the new one by name. Callers that ask by id get only
those that were stored for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from ringleader.clients.connection.requests import plain
from ringleader.clients.errors import ClientError
from ringleader.clients.model import Node
from ringleader.coordinator.logs import Log
from ringleader.coordinator.relay.topology import METADATA, Topology
from ringleader.coordinator.runtime import GroupRuntime
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ringleader.protocol.schema import ZERO_UUID

INTERVAL_S = 30.0
"""Interval of the looks; a topic is gone at the second one."""
NAMES_AT_A_TIME = 500

_UNKNOWN_CODES = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


class Deletions:
    """Looks for topics that are gone."""

    def __init__(self, topology: Topology, runtime: GroupRuntime, log: Log) -> None:
        self._topology = topology
        self._runtime = runtime
        self._log = log
        self._seen: dict[str, bytes] = {}
        """Topics that were there, with their ids."""
        self._missing: set[str] = set()
        """Those that were gone the last time."""

    async def watch(self, interval_s: float = INTERVAL_S) -> None:
        """Look again and again."""
        while True:
            await asyncio.sleep(interval_s)
            await self.look()

    async def look(self) -> None:
        """Once. A broker that does not answer is a doubt."""
        self._seen |= {topic.name: topic.id for topic in self._topology.all()}
        missing: set[str] = set()
        names = sorted(self._seen)
        for start in range(0, len(names), NAMES_AT_A_TIME):
            try:
                missing |= await self._unknown_to_all(names[start : start + NAMES_AT_A_TIME])
            except ClientError as error:
                self._log.debug("topics not looked for", reason=str(error))
        again, self._missing = missing & self._missing, missing
        for name in again:
            self._log.info("topic is gone", topic=name, text="its committed offsets are forgotten")
            await self._runtime.forget_topic(name, self._seen.pop(name))
            self._missing.discard(name)

    async def _unknown_to_all(self, names: Sequence[str]) -> set[str]:
        """Those that no broker knows. Raises ClientError."""
        found = await self._topology.metadata(names)
        self._topology.learn(found)
        unknown = {topic.name for topic in found.topics if topic.name and topic.error_code in _UNKNOWN_CODES}
        for broker in list(self._topology.brokers.values()):
            if not unknown:
                break
            unknown &= await self._unknown_to(broker, sorted(unknown))
        return unknown

    async def _unknown_to(self, broker: Node, names: Sequence[str]) -> set[str]:
        by_name = [MetadataRequestTopic(name=name) for name in names]
        unknown = {
            topic.name or ""
            for topic in (await self._metadata_from(broker, by_name)).topics
            if topic.error_code in _UNKNOWN_CODES
        }
        ids = {self._seen[name]: name for name in names if self._seen[name] != ZERO_UUID}
        if len(ids) < len(names):
            return set()  # a cluster without topic ids: no answer is sure
        by_id = [MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in ids]
        return unknown & {
            ids[topic.topic_id]
            for topic in (await self._metadata_from(broker, by_id)).topics
            if topic.error_code in _UNKNOWN_CODES and topic.topic_id in ids
        }

    async def _metadata_from(self, broker: Node, topics: list[MetadataRequestTopic]) -> MetadataResponse:
        request = plain(MetadataRequest(topics=topics, allow_auto_topic_creation=False))
        response: MetadataResponse = await self._topology.ask(broker, request, METADATA)
        return response
