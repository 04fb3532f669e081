"""Produce (0) v3-13: batches go to the leaders of their partitions as they are.

The records of a request are bytes here, counted against `queued.max.request.bytes` until the answer. As a
client's connection has one request in progress at a time, and its own connection to each broker, the order of
its batches is kept.

From v13 on clients name topics by their ids, and so do the requests to brokers: nothing is written into a
topic that was made again under the same name by a client that does not know it. A broker that serves no v13
gets the name, if the cluster says at that moment that it is still that of the id.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from ringleader.clients.connection.requests import plain
from ringleader.clients.errors import ClientError
from ringleader.clients.model import Node
from ringleader.coordinator.relay.authorization import request_for
from ringleader.coordinator.relay.relay import Relay, code_of
from ringleader.coordinator.relay.topic_ids import names_of, without_name
from ringleader.coordinator.security.acls import Operation, ResourceType
from ringleader.coordinator.server.call import NO_ANSWER, Call, Message, NoAnswer
from ringleader.coordinator.server.handlers import checks
from ringleader.coordinator.server.services import Handler, Services
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode, error_name
from ringleader.protocol.messages.data import TOPIC_IDS_VERSION
from ringleader.protocol.schema import ZERO_UUID

_Data = kafka.ProduceRequestTopicProduceData
_Answers = dict[tuple[str, bytes], list[kafka.ProduceResponsePartitionProduceResponse]]
"""By name and id of the topic, and partition; a topic without a name has "", one without an id zero."""


def register(services: Services, relay: Relay) -> dict[int, Handler]:
    """Handlers of this family."""
    family = _Produce(services, relay)
    return {0: relay.handler(services, family.produce)}


class _Produce:
    def __init__(self, services: Services, relay: Relay) -> None:
        self._services = services
        self._relay = relay

    async def produce(self, call: Call, request: kafka.ProduceRequest) -> Message | NoAnswer | None:
        """Each leader's part by itself. With acks 0 there is no answer: an error closes the connection, as at
        a broker, and the next request waits until the brokers took this one."""
        relay, topics = self._relay, request.topic_data
        found: _Answers = {}
        if not checks.may_be_transactional(self._services, call, request):
            refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            found |= _refused_once([(topic, refused) for topic in topics])
            topics = []
        elif call.api_version >= TOPIC_IDS_VERSION:
            named, nameless = await names_of(relay.topology, topics)
            for topic, name in named:
                topic.name = name
            found |= _refused_once(nameless)
            topics = [topic for topic, _ in named]
        ids = {topic.name: topic.topic_id for topic in topics}
        found |= {of: [] for of in ids.items()}
        requested = [(topic.name, topic.partition_data) for topic in topics]
        may = partial(self._services.may, call, Operation.WRITE, ResourceType.TOPIC)
        parts, missing = await relay.by_leader(requested, lambda entry: entry.index, may, changing=True)
        for name, entry, code in missing:
            found[name, ids[name]].append(_refused(entry, without_name(relay.topology, ids[name], code)))
        calls = [
            self._ask(call, request, broker, [_Data(name, ids[name], of) for name, of in part.items()], found)
            for broker, part in parts.items()
        ]
        throttle_ms = max(await asyncio.gather(*calls), default=0)
        if request.acks:
            response = kafka.ProduceResponseTopicProduceResponse
            return kafka.ProduceResponse([response(*of, one) for of, one in found.items()], throttle_ms)
        for (name, topic_id), results in found.items():
            for result in results:
                where = f"{name or topic_id.hex()}-{result.index}"
                call.close(f"acks 0 and {error_name(result.error_code)} at {where}")
                return None
        return NO_ANSWER

    async def _ask(
        self, call: Call, request: kafka.ProduceRequest, broker: Node, topics: list[_Data], found: _Answers
    ) -> int:
        """One leader's part; its throttle time."""
        relay = self._relay
        part = kafka.ProduceRequest(
            transactional_id=request.transactional_id,
            acks=request.acks,
            timeout_ms=request.timeout_ms,
            topic_data=topics,
        )
        timeout_s = max(0, request.timeout_ms) / 1000 + relay.cluster.request_timeout_ms / 1000
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        """While the broker got nothing of it."""
        try:
            connection = await relay.upstreams(call).connection(broker)
            if call.api_version >= TOPIC_IDS_VERSION and (
                connection.version_for(plain(part, call.api_version)) < TOPIC_IDS_VERSION
            ):
                part.topic_data = await self._still_named(topics, found)
                if not part.topic_data:
                    return 0
            # From here on it is unknown whether it was written; the client's retry settles it, without
            # doubles if it is idempotent.
            code = ErrorCode.REQUEST_TIMED_OUT
            if not request.acks:
                connection.on_ended = partial(_hang_up, call.connection)
                await connection.send_only(await request_for(self._services, call, part), timeout_s)
                return 0
            answer: kafka.ProduceResponse = await connection.ask(
                await request_for(self._services, call, part), timeout_s, request_timeout_s=timeout_s
            )
        except ClientError as error:
            relay.topology.suspect(topic.name for topic in topics)
            for topic in part.topic_data:
                refused = [_refused(entry, code_of(error, code)) for entry in topic.partition_data]
                found[topic.name, topic.topic_id] += refused
            return 0
        ids = {topic.name: topic.topic_id for topic in topics}
        names = {topic_id: name for name, topic_id in ids.items() if topic_id != ZERO_UUID}
        for answered in answer.responses:
            name = names.get(answered.topic_id, answered.name)
            for result in answered.partition_responses:
                result.current_leader = kafka.ProduceResponseLeaderIdAndEpoch()  # clients know nodes alone
                relay.look_at(name, result.error_code)
            found[name, ids[name]] += answered.partition_responses
        return answer.throttle_time_ms

    async def _still_named(self, topics: list[_Data], found: _Answers) -> list[_Data]:
        """For a broker that serves no ids: topics whose names are still those of their ids, by the cluster;
        the others are answered. Raises ClientError."""
        names = await self._relay.topology.names([topic.topic_id for topic in topics])
        still = []
        for topic in topics:
            if names.get(topic.topic_id) == topic.name:
                still.append(topic)
            else:
                refused = [_refused(entry, ErrorCode.UNKNOWN_TOPIC_ID) for entry in topic.partition_data]
                found[topic.name, topic.topic_id] += refused
        return still


def _hang_up(client: Any) -> None:
    """The broker refused batches that have no answer: it closed the connection."""
    client.close("a broker closed the connection after acks 0")


def _refused_once(topics: Sequence[tuple[_Data, int]]) -> _Answers:
    """The error of each partition, once, as by Kafka."""
    found: dict[tuple[str, bytes], dict[int, kafka.ProduceResponsePartitionProduceResponse]] = {}
    for topic, code in topics:
        answers = found.setdefault((topic.name, topic.topic_id), {})
        answers |= {entry.index: _refused(entry, code) for entry in topic.partition_data}
    return {of: list(answers.values()) for of, answers in found.items()}


def _refused(
    entry: kafka.ProduceRequestPartitionProduceData, code: int
) -> kafka.ProduceResponsePartitionProduceResponse:
    return kafka.ProduceResponsePartitionProduceResponse(entry.index, code, base_offset=-1)
