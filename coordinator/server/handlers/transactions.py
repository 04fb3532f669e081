"""Producer ids and transactions.

InitProducerId (22) v0-5: v3 goes on with an id after an error (KIP-360), v4 tells a fenced producer so.
AddPartitionsToTxn (24) v0-3, AddOffsetsToTxn (25) v0-4, EndTxn (26) v0-5: v2 tells a fenced producer so, v3
flexible, v5 raises the epoch (KIP-890). TxnOffsetCommit (28) v0-5: v2 leader epoch, v3 member and generation
(KIP-447), v4 TRANSACTION_ABORTABLE, v5 takes the group into the transaction (KIP-890).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from ringleader.coordinator.run_queue import Slices
from ringleader.coordinator.security.acls import Operation, ResourceType
from ringleader.coordinator.server.call import Call, Message
from ringleader.coordinator.server.handlers import checks, existing
from ringleader.coordinator.server.services import Handler, LocalServices
from ringleader.coordinator.transactions.machine import Producer, Result
from ringleader.coordinator.transactions.states import Partition
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode, KafkaError
from ringleader.protocol.refusals import refusal

INIT_FENCED_VERSION = 4
FENCED_VERSION = 2
"""The first versions (of InitProducerId; of the others) that know PRODUCER_FENCED."""
ABORTABLE_VERSION = 4
"""The first version of TxnOffsetCommit whose clients know TRANSACTION_ABORTABLE."""
RAISING_VERSION = 5
"""The first version of EndTxn that ends a transaction of V2, and of TxnOffsetCommit that begins one."""
LOADING_VERSION = 2
"""The first version of TxnOffsetCommit whose clients know COORDINATOR_LOAD_IN_PROGRESS."""


def register(services: LocalServices) -> dict[int, Handler]:
    """Handlers of this family."""
    family = _Transactions(services)
    return {
        22: family.init_producer_id,
        24: family.add_partitions,
        25: family.add_offsets,
        26: family.end,
        28: family.commit_offsets,
    }


class _Ticket:
    """Of a request to the transaction coordinator: its `Result` becomes the answer of the call."""

    __slots__ = ("_build", "_call", "_fenced_version")

    def __init__(self, call: Call, fenced_version: int, build: Callable[[Result], Message]) -> None:
        self._call = call
        self._fenced_version = fenced_version
        self._build = build

    def answer(self, result: Result) -> None:
        """The answer, with an error that the client's version knows."""
        error = _fenced(result.error, self._call.api_version >= self._fenced_version)
        self._call.answer(self._build(result._replace(error=error)))

    def refuse(self, error_code: int) -> None:
        """Answer with an error."""
        self.answer(Result(error_code))


class _Transactions:
    def __init__(self, services: LocalServices) -> None:
        self._services = services
        self._topics = services.topics
        self._transactions = services.transactions

    # ---- InitProducerId ----

    def init_producer_id(
        self, call: Call, request: kafka.InitProducerIdRequest
    ) -> kafka.InitProducerIdResponse | None:
        """A fresh id for every request without a transactional id."""
        refused = checks.producer_refusal(self._services, call, request)
        if refused:
            return _producer(Result(refused))
        if (request.producer_id == -1) != (request.producer_epoch == -1):
            return _producer(Result(ErrorCode.INVALID_REQUEST))
        if request.transactional_id is None:
            self._services.spawn(call, self._new_producer_id(call))
            return None
        expected = None
        if request.producer_id != -1:
            expected = Producer(request.producer_id, request.producer_epoch)
        ticket = _Ticket(call, INIT_FENCED_VERSION, _producer)
        # Not ended with the call: the producer that began goes on after an answer that was lost.
        self._services.spawn(
            None,
            self._transactions.init_producer_id(
                request.transactional_id, request.transaction_timeout_ms, expected, ticket
            ),
        )
        return None

    async def _new_producer_id(self, call: Call) -> None:
        try:
            producer_id = await self._topics.new_producer_id()
        except KafkaError as error:
            call.answer(_producer(Result(error.code)))
        else:
            call.answer(_producer(Result(ErrorCode.NONE, producer_id, 0)))

    # ---- AddPartitionsToTxn ----

    def add_partitions(self, call: Call, request: kafka.AddPartitionsToTxnRequest) -> Message | None:
        """All of them or none: if one does not exist, the others were not attempted."""
        code = checks.transaction_refusal(self._services, call, request.v3_and_below_transactional_id)
        if code:
            return refusal(request, call.api_version, code)
        partitions = [
            (topic.name, partition) for topic in request.v3_and_below_topics for partition in topic.partitions
        ]
        refused = {partition: code for partition in partitions if (code := self._refusal(call, partition))}
        if refused:
            return _added({one: refused.get(one, ErrorCode.OPERATION_NOT_ATTEMPTED) for one in partitions})
        producer = Producer(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)

        ticket = _Ticket(call, FENCED_VERSION, lambda result: _added(dict.fromkeys(partitions, result.error)))
        self._transactions.add_partitions(request.v3_and_below_transactional_id, producer, partitions, ticket)
        return None

    def _refusal(self, call: Call, partition: Partition) -> int:
        """The error for a caller that may not produce to it; 0: it may."""
        if not self._services.may(call, Operation.WRITE, ResourceType.TOPIC, partition[0]):
            return ErrorCode.TOPIC_AUTHORIZATION_FAILED
        info = self._topics.describe(partition[0])
        if info is None or not 0 <= partition[1] < info.partitions:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED if info.is_internal else ErrorCode.NONE

    # ---- AddOffsetsToTxn, EndTxn ----

    def add_offsets(self, call: Call, request: kafka.AddOffsetsToTxnRequest) -> Message | None:
        """Take the offsets of a group in."""
        code = checks.transaction_refusal(self._services, call, request.transactional_id, request.group_id)
        if code:
            return refusal(request, call.api_version, code)
        producer = Producer(request.producer_id, request.producer_epoch)
        ticket = _Ticket(
            call, FENCED_VERSION, lambda result: kafka.AddOffsetsToTxnResponse(error_code=result.error)
        )
        self._transactions.add_group(request.transactional_id, producer, request.group_id, ticket)
        return None

    def end(self, call: Call, request: kafka.EndTxnRequest) -> Message | None:
        """Answered when it is decided; readers see it when the markers are written, soon after."""
        code = checks.transaction_refusal(self._services, call, request.transactional_id)
        if code:
            return refusal(request, call.api_version, code)
        producer = Producer(request.producer_id, request.producer_epoch)
        ticket = _Ticket(call, FENCED_VERSION, _ended)
        if call.api_version < RAISING_VERSION:
            self._transactions.end(request.transactional_id, producer, request.committed, ticket)
            return None
        # Not ended with the call, as InitProducerId.
        self._services.spawn(
            None,
            self._transactions.end_raising(request.transactional_id, producer, request.committed, ticket),
        )
        return None

    # ---- TxnOffsetCommit ----

    def commit_offsets(self, call: Call, request: kafka.TxnOffsetCommitRequest) -> Message | Slices | None:
        """Entries of unknown topics and partitions are refused, the others go on: if the group's offsets are
        in the open transaction of this producer."""
        code = checks.transaction_refusal(self._services, call, request.transactional_id, request.group_id)
        if code:
            return refusal(request, call.api_version, code)
        refused_class = kafka.TxnOffsetCommitResponsePartition
        then = partial(self._commit_allowed, call, request)
        return existing.allowed_first(self._services, call, request, refused_class, then)

    def _commit_allowed(
        self, call: Call, request: kafka.TxnOffsetCommitRequest, forbidden: existing.Refused
    ) -> Message | Slices | None:
        accepted, refused = existing.split(self._topics, request, kafka.TxnOffsetCommitResponsePartition)
        refused.update(forbidden)

        def finish(response: kafka.TxnOffsetCommitResponse) -> kafka.TxnOffsetCommitResponse:
            if call.api_version < LOADING_VERSION:
                _hide_loading(response)
            existing.merge(response.topics, refused, kafka.TxnOffsetCommitResponseTopic)
            return response

        if not accepted and refused:
            return finish(kafka.TxnOffsetCommitResponse())
        request.topics = accepted
        if call.api_version < RAISING_VERSION or not request.group_id:
            check = partial(self._check, call, request)
            return existing.commit(self._services, call, request, finish, check)
        self._services.spawn(call, self._commit_joined(call, request, finish))
        return None

    async def _commit_joined(
        self,
        call: Call,
        request: kafka.TxnOffsetCommitRequest,
        finish: Callable[[kafka.TxnOffsetCommitResponse], kafka.TxnOffsetCommitResponse],
    ) -> None:
        """The group becomes a part of the transaction first."""
        producer = Producer(request.producer_id, request.producer_epoch)
        joined = await self._transactions.join_group(request.transactional_id, producer, request.group_id)
        error = _fenced(joined, False)

        def check() -> int:
            return error or self._check(call, request)

        work = existing.commit(self._services, call, request, finish, check)
        response = await self._services.run_queue.run(work)
        if response is not None:
            call.answer(response)

    def _check(self, call: Call, request: kafka.TxnOffsetCommitRequest) -> int:
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        producer = Producer(request.producer_id, request.producer_epoch)
        error = self._transactions.verify_group(request.transactional_id, producer, request.group_id)
        if error == ErrorCode.TRANSACTION_ABORTABLE and call.api_version < ABORTABLE_VERSION:
            return ErrorCode.INVALID_TXN_STATE
        return _fenced(error, False)


def _producer(result: Result) -> kafka.InitProducerIdResponse:
    return kafka.InitProducerIdResponse(
        error_code=result.error, producer_id=result.producer_id, producer_epoch=result.epoch
    )


def _ended(result: Result) -> kafka.EndTxnResponse:
    return kafka.EndTxnResponse(
        error_code=result.error, producer_id=result.producer_id, producer_epoch=result.epoch
    )


def _fenced(error: int, known: bool) -> int:
    """Clients that do not know PRODUCER_FENCED understand INVALID_PRODUCER_EPOCH the same way."""
    if error == ErrorCode.PRODUCER_FENCED and not known:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return error


def _added(errors: Mapping[Partition, int]) -> kafka.AddPartitionsToTxnResponse:
    topics: dict[str, list[kafka.AddPartitionsToTxnResponseAddPartitionsToTxnPartitionResult]] = {}
    for (topic, partition), error in errors.items():
        topics.setdefault(topic, []).append(
            kafka.AddPartitionsToTxnResponseAddPartitionsToTxnPartitionResult(partition, error)
        )
    return kafka.AddPartitionsToTxnResponse(
        results_by_topic_v3_and_below=[
            kafka.AddPartitionsToTxnResponseAddPartitionsToTxnTopicResult(name, results)
            for name, results in topics.items()
        ]
    )


def _hide_loading(response: kafka.TxnOffsetCommitResponse) -> None:
    for topic in response.topics:
        for partition in topic.partitions:
            if partition.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                partition.error_code = ErrorCode.COORDINATOR_NOT_AVAILABLE
