"""Requests that only the leader of a partition can answer, besides those for records.

ListOffsets (2) v1-7, OffsetForLeaderEpoch (23) v2-4, DeleteRecords (21) v0-2: each leader is asked about its
partitions, and the answers become one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from ringleader.clients.errors import ClientError
from ringleader.clients.model import Node
from ringleader.coordinator.relay.authorization import request_for
from ringleader.coordinator.relay.relay import Relay, code_of
from ringleader.coordinator.security.acls import Operation, ResourceType
from ringleader.coordinator.server.call import Call
from ringleader.coordinator.server.handlers import checks
from ringleader.coordinator.server.services import Handler, Services
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode

CONSUMER = -1
"""The replica id of every client that is no broker."""


def register(services: Services, relay: Relay) -> dict[int, Handler]:
    """Handlers of this family."""
    family = _Offsets(services, relay)
    return {
        2: relay.handler(services, family.list_offsets),
        21: relay.handler(services, family.delete_records),
        23: relay.handler(services, family.offset_for_leader_epoch),
    }


class _Offsets:
    def __init__(self, services: Services, relay: Relay) -> None:
        self._services = services
        self._relay = relay

    async def list_offsets(self, call: Call, request: kafka.ListOffsetsRequest) -> kafka.ListOffsetsResponse:
        """Ends, starts, and offsets of times."""

        def part(topics: dict[str, list[Any]]) -> kafka.ListOffsetsRequest:
            return kafka.ListOffsetsRequest(
                replica_id=CONSUMER,
                isolation_level=request.isolation_level,
                topics=[kafka.ListOffsetsRequestListOffsetsTopic(*topic) for topic in topics.items()],
            )

        requested = [(topic.name, topic.partitions) for topic in request.topics]
        found, throttle_ms = await self._each_leader(
            call,
            requested,
            part,
            lambda entry: entry.partition_index,
            lambda answer: [(topic.name, topic.partitions) for topic in answer.topics],
            lambda entry, code: kafka.ListOffsetsResponseListOffsetsPartitionResponse(
                entry.partition_index, code
            ),
            partial(self._services.may, call, Operation.DESCRIBE, ResourceType.TOPIC),
        )
        topics = [kafka.ListOffsetsResponseListOffsetsTopicResponse(*topic) for topic in found.items()]
        return kafka.ListOffsetsResponse(throttle_ms, topics)

    async def offset_for_leader_epoch(
        self, call: Call, request: kafka.OffsetForLeaderEpochRequest
    ) -> kafka.OffsetForLeaderEpochResponse:
        """The ends of leader epochs."""

        def part(topics: dict[str, list[Any]]) -> kafka.OffsetForLeaderEpochRequest:
            return kafka.OffsetForLeaderEpochRequest(
                replica_id=CONSUMER,
                topics=[
                    kafka.OffsetForLeaderEpochRequestOffsetForLeaderTopic(*topic) for topic in topics.items()
                ],
            )

        requested = [(topic.topic, topic.partitions) for topic in request.topics]
        found, throttle_ms = await self._each_leader(
            call,
            requested,
            part,
            lambda entry: entry.partition,
            lambda answer: [(topic.topic, topic.partitions) for topic in answer.topics],
            lambda entry, code: kafka.OffsetForLeaderEpochResponseEpochEndOffset(
                error_code=code, partition=entry.partition
            ),
            partial(checks.may_ask_epochs, self._services, call),
        )
        result = kafka.OffsetForLeaderEpochResponseOffsetForLeaderTopicResult
        return kafka.OffsetForLeaderEpochResponse(throttle_ms, [result(*topic) for topic in found.items()])

    async def delete_records(
        self, call: Call, request: kafka.DeleteRecordsRequest
    ) -> kafka.DeleteRecordsResponse:
        """No records of the groups' topic are deleted for a client."""

        def part(topics: dict[str, list[Any]]) -> kafka.DeleteRecordsRequest:
            return kafka.DeleteRecordsRequest(
                topics=[kafka.DeleteRecordsRequestDeleteRecordsTopic(*topic) for topic in topics.items()],
                timeout_ms=request.timeout_ms,
            )

        def refused(entry: Any, code: int) -> Any:
            return kafka.DeleteRecordsResponseDeleteRecordsPartitionResult(entry.partition_index, -1, code)

        requested = [(topic.name, topic.partitions) for topic in request.topics]
        found, throttle_ms = await self._each_leader(
            call,
            requested,
            part,
            lambda entry: entry.partition_index,
            lambda answer: [(topic.name, topic.partitions) for topic in answer.topics],
            refused,
            partial(self._services.may, call, Operation.DELETE, ResourceType.TOPIC),
            changing=True,
        )
        for name, partitions in found.items():
            done = [one for one in partitions if not one.error_code]
            if done:
                detail = ", ".join(f"{one.partition_index} before {one.low_watermark}" for one in done)
                self._services.changed(call, "records deleted", name, detail)
        result = kafka.DeleteRecordsResponseDeleteRecordsTopicResult
        return kafka.DeleteRecordsResponse(throttle_ms, [result(*topic) for topic in found.items()])

    async def _each_leader(
        self,
        call: Call,
        requested: Sequence[tuple[str, Sequence[Any]]],
        part: Callable[[dict[str, list[Any]]], Any],
        index: Callable[[Any], int],
        topics_of: Callable[[Any], list[tuple[str, list[Any]]]],
        refused: Callable[[Any, int], Any],
        may: Callable[[str], bool],
        *,
        changing: bool = False,
    ) -> tuple[dict[str, list[Any]], int]:
        """Results by topic, and the longest throttle time."""
        relay = self._relay
        upstreams = relay.upstreams(call)
        timeout_s = relay.cluster.request_timeout_ms / 1000
        found: dict[str, list[Any]] = {topic: [] for topic, _ in requested}
        throttled: list[int] = [0]

        async def ask(broker: Node, topics: dict[str, list[Any]]) -> None:
            try:
                asking = partial(request_for, self._services, call, part(topics))
                answer = await upstreams.ask(broker, asking, timeout_s)
            except ClientError as error:
                relay.topology.suspect(topics)
                code = code_of(error, ErrorCode.NOT_LEADER_OR_FOLLOWER)
                for topic, entries in topics.items():
                    found[topic] += [refused(entry, code) for entry in entries]
                return
            throttled.append(answer.throttle_time_ms)
            for topic, results in topics_of(answer):
                found[topic] += results
                for result in results:
                    relay.look_at(topic, result.error_code)

        parts, missing = await relay.by_leader(requested, index, may, changing=changing)
        for topic, entry, code in missing:
            found[topic].append(refused(entry, code))
        await asyncio.gather(*(ask(broker, topics) for broker, topics in parts.items()))
        return found, max(throttled)
