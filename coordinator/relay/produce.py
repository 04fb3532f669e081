"""Produce (0) v3-9: batches go to the leaders of their partitions as they are.

The records of a request are bytes here, counted against `queued.max.request.bytes` until the answer. As a
client's connection has one request in progress at a time, and its own connection to each broker, the order of
its batches is kept.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from ringleader.clients.errors import ClientError
from ringleader.clients.model import Node
from ringleader.coordinator.relay.authorization import request_for
from ringleader.coordinator.relay.relay import Relay, code_of
from ringleader.coordinator.security.acls import Operation, ResourceType
from ringleader.coordinator.server.call import NO_ANSWER, Call, Message, NoAnswer
from ringleader.coordinator.server.handlers import checks
from ringleader.coordinator.server.services import Handler, Services
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode, error_name

Topics = dict[str, list[kafka.ProduceRequestPartitionProduceData]]
_Answers = dict[str, list[kafka.ProduceResponsePartitionProduceResponse]]


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
        relay = self._relay
        asked = [(topic.name, topic.partition_data) for topic in request.topic_data]
        found: _Answers = {topic: [] for topic, _ in asked}
        if not checks.may_be_transactional(self._services, call, request):
            refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            for topic, entries in asked:
                found[topic] += [_refused(entry, refused) for entry in entries]
            asked = []
        may = partial(self._services.may, call, Operation.WRITE, ResourceType.TOPIC)
        parts, missing = await relay.by_leader(asked, lambda entry: entry.index, may, changing=True)
        for topic, entry, code in missing:
            found[topic].append(_refused(entry, code))
        asks = [self._ask(call, request, broker, topics, found) for broker, topics in parts.items()]
        throttle_ms = max(await asyncio.gather(*asks), default=0)
        if request.acks:
            response = kafka.ProduceResponseTopicProduceResponse
            return kafka.ProduceResponse([response(*topic) for topic in found.items()], throttle_ms)
        for topic, results in found.items():
            for result in results:
                call.close(f"acks 0 and {error_name(result.error_code)} at {topic}-{result.index}")
                return None
        return NO_ANSWER

    async def _ask(
        self, call: Call, request: kafka.ProduceRequest, broker: Node, topics: Topics, found: _Answers
    ) -> int:
        """One leader's part; its throttle time."""
        relay = self._relay
        part = kafka.ProduceRequest(
            transactional_id=request.transactional_id,
            acks=request.acks,
            timeout_ms=request.timeout_ms,
            topic_data=[kafka.ProduceRequestTopicProduceData(*topic) for topic in topics.items()],
        )
        timeout_s = max(0, request.timeout_ms) / 1000 + relay.cluster.request_timeout_ms / 1000
        code = ErrorCode.NOT_LEADER_OR_FOLLOWER
        """While the broker got nothing of it."""
        try:
            connection = await relay.upstreams(call).connection(broker)
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
            relay.topology.suspect(topics)
            for topic, entries in topics.items():
                found[topic] += [_refused(entry, code_of(error, code)) for entry in entries]
            return 0
        for answered in answer.responses:
            found[answered.name] += answered.partition_responses
            for result in answered.partition_responses:
                relay.look_at(answered.name, result.error_code)
        return answer.throttle_time_ms


def _hang_up(client: Any) -> None:
    """The broker refused batches that have no answer: it closed the connection."""
    client.close("a broker closed the connection after acks 0")


def _refused(
    entry: kafka.ProduceRequestPartitionProduceData, code: int
) -> kafka.ProduceResponsePartitionProduceResponse:
    return kafka.ProduceResponsePartitionProduceResponse(entry.index, code, base_offset=-1)
