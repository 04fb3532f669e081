"""Producer ids and transactions: the cluster's own coordinators answer.

InitProducerId (22) v0-4, AddPartitionsToTxn (24) and EndTxn (26) v0-3. A client asks the node that
FindCoordinator named for its transactional id, and any node forwards it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from typing import Any

from ringleader.clients.connection.requests import plain
from ringleader.clients.errors import ClientError
from ringleader.coordinator.relay.authorization import request_for
from ringleader.coordinator.relay.relay import Relay, code_of
from ringleader.coordinator.security.acls import Operation, ResourceType
from ringleader.coordinator.server.call import Call, Message
from ringleader.coordinator.server.handlers import checks
from ringleader.coordinator.server.services import Handler, Services
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode, KafkaError
from ringleader.protocol.refusals import refusal

MOVED = frozenset(
    {
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    }
)
"""After these the transaction's coordinator is looked up again."""
STATE_TOPIC = "__transaction_state"
"""The leaders of its partitions coordinate transactions."""
OVER = frozenset({"Empty", "CompleteCommit", "CompleteAbort", "Dead"})
DESCRIBE_MS = 3_000
"""Time for a coordinator to describe a transaction."""


def register(services: Services, relay: Relay) -> dict[int, Handler]:
    """Handlers of this family."""
    family = _Transactions(services, relay)
    return {
        22: relay.handler(services, family.init_producer_id),
        24: relay.handler(services, family.add_partitions),
        26: relay.handler(services, family.end),
    }


class Coordinated:
    """Asks the coordinators of transactional ids."""

    def __init__(self, services: Services, relay: Relay) -> None:
        self._services = services
        self._relay = relay

    async def ask(self, call: Call, request: Any, transactional_id: str) -> Message:
        """The coordinator's answer, or an error that is worth another try."""
        relay = self._relay
        timeout_s = relay.cluster.request_timeout_ms / 1000
        asking = partial(request_for, self._services, call, request)
        try:
            broker = await relay.topology.coordinator(transactional_id)
            response = await relay.upstreams(call).ask(broker, asking, timeout_s)
        except (ClientError, KafkaError) as error:
            relay.topology.suspect_coordinator(transactional_id)
            code = code_of(error, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return refusal(request, call.api_version, code)
        if _codes(response) & MOVED:
            relay.topology.suspect_coordinator(transactional_id)
        return response

    async def describe(self, transactional_id: str) -> kafka.DescribeTransactionsResponseTransactionState:
        """The state of its transaction. Raises ClientError, KafkaError."""
        topology = self._relay.topology
        try:
            broker = await topology.coordinator(transactional_id)
            request = plain(kafka.DescribeTransactionsRequest([transactional_id]))
            answer: kafka.DescribeTransactionsResponse = await topology.ask(
                broker, request, "transactions", request_timeout_ms=DESCRIBE_MS
            )
        except ClientError:
            topology.suspect_coordinator(transactional_id)
            raise
        [state] = answer.transaction_states
        if state.error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        if state.error_code:
            topology.suspect_coordinator(transactional_id)
            moved = state.error_code == ErrorCode.NOT_COORDINATOR  # of the transaction, not of the group
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE if moved else state.error_code)
        return state

    async def under_way(self, producer_ids: Sequence[int]) -> list[str]:
        """Transactional ids of these producers whose transaction is not over. Raises ClientError, KafkaError
        unless all coordinators of the cluster have answered."""
        topology = self._relay.topology
        topology.learn(known := await topology.metadata([STATE_TOPIC]))
        [states] = known.topics
        if states.error_code:
            raise KafkaError(states.error_code)
        leaders = {one.leader_id for one in states.partitions}
        if not leaders <= topology.brokers.keys():
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE)
        request = plain(kafka.ListTransactionsRequest(producer_id_filters=list(producer_ids)))
        found: list[str] = []
        for leader in leaders:
            answer: kafka.ListTransactionsResponse = await topology.ask(
                topology.brokers[leader], request, "transactions", request_timeout_ms=DESCRIBE_MS
            )
            if answer.error_code:
                raise KafkaError(answer.error_code)
            listed = answer.transaction_states
            found += [one.transactional_id for one in listed if one.transaction_state not in OVER]
        return found


class _Transactions:
    def __init__(self, services: Services, relay: Relay) -> None:
        self._services = services
        self._relay = relay
        self._ask = Coordinated(services, relay).ask

    async def init_producer_id(self, call: Call, request: kafka.InitProducerIdRequest) -> Message:
        """A fresh id from any broker, or that of a transactional id from its coordinator."""
        refused = checks.producer_refusal(self._services, call, request)
        if refused:
            return kafka.InitProducerIdResponse(error_code=refused, producer_epoch=-1)
        if request.transactional_id is not None:
            return await self._ask(call, request, request.transactional_id)
        relay = self._relay
        try:
            return await relay.topology.ask(None, await request_for(self._services, call, request), "")
        except ClientError as error:
            code = code_of(error, ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return refusal(request, call.api_version, code)

    async def add_partitions(self, call: Call, request: kafka.AddPartitionsToTxnRequest) -> Message:
        """All or none. Only the nodes write to the groups' topic."""
        services = self._services
        code = checks.transaction_refusal(services, call, request.v3_and_below_transactional_id)
        if code:
            return refusal(request, call.api_version, code)
        may = partial(services.may, call, Operation.WRITE, ResourceType.TOPIC)
        names = (topic.name for topic in request.v3_and_below_topics)
        forbidden = {name async for name in self._services.run_queue.each(names) if not may(name)}
        if forbidden:
            return await self._not_added(request, forbidden)
        if any(self._relay.is_own(topic.name) for topic in request.v3_and_below_topics):
            return refusal(request, call.api_version, ErrorCode.INVALID_TOPIC_EXCEPTION)
        return await self._ask(call, request, request.v3_and_below_transactional_id)

    async def _not_added(
        self, request: kafka.AddPartitionsToTxnRequest, forbidden: AbstractSet[str]
    ) -> kafka.AddPartitionsToTxnResponse:
        """The errors for partitions of which none was added, as a broker answers them."""
        topology = self._relay.topology
        requested = {topic.name: topic.partitions for topic in request.v3_and_below_topics}
        with contextlib.suppress(ClientError):
            await topology.ensure(requested.keys() - forbidden)

        def code(topic: str, partition: int) -> int:
            if topic in forbidden:
                return ErrorCode.TOPIC_AUTHORIZATION_FAILED
            if topology.leader(topic, partition) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return ErrorCode.OPERATION_NOT_ATTEMPTED

        one = kafka.AddPartitionsToTxnResponseAddPartitionsToTxnPartitionResult
        result = kafka.AddPartitionsToTxnResponseAddPartitionsToTxnTopicResult
        return kafka.AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=[
                result(topic, [one(partition, code(topic, partition)) for partition in partitions])
                for topic, partitions in requested.items()
            ]
        )

    async def end(self, call: Call, request: kafka.EndTxnRequest) -> Message:
        """Answered when it is decided."""
        code = checks.transaction_refusal(self._services, call, request.transactional_id)
        if code:
            return refusal(request, call.api_version, code)
        return await self._ask(call, request, request.transactional_id)


def _codes(response: Any) -> set[int]:
    if isinstance(response, kafka.AddPartitionsToTxnResponse):
        return {
            one.partition_error_code
            for topic in response.results_by_topic_v3_and_below
            for one in topic.results_by_partition
        }
    return {response.error_code}
