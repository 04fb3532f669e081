"""Records: producing them, and asking where they are. Fetch is in its own module.

Produce (0) v3-13: v5 log start offset, v8 error message, v9 flexible, v11 TRANSACTION_ABORTABLE, v12 takes
partitions into the transaction (KIP-890), v13 topic ids (KIP-516). ListOffsets (2) v1-7: v2 isolation,
v4 leader epoch, v6 flexible, v7 largest timestamp. OffsetForLeaderEpoch (23) v2-4. The one leader epoch is 0.

A transactional batch is accepted if its partition was added to the open transaction of that producer.
"""

from __future__ import annotations

from functools import partial
from struct import Struct

from ringleader.coordinator.run_queue import SLICE_ELEMENTS, Slices
from ringleader.coordinator.security.acls import Operation, ResourceType
from ringleader.coordinator.server.call import HELD_ENTRY_BYTES, NO_ANSWER, Call
from ringleader.coordinator.server.handlers import checks
from ringleader.coordinator.server.handlers.fetch import READ_COMMITTED, fetch
from ringleader.coordinator.server.handlers.fetch_sessions import FetchSessions
from ringleader.coordinator.server.services import Handler, LocalServices, once, set_error
from ringleader.coordinator.topics import MAX_TIMESTAMP
from ringleader.coordinator.topics.catalog import TopicInfo, refuse_internal
from ringleader.coordinator.topics.partition import LEADER_EPOCH, AppendResult, Verify
from ringleader.coordinator.topics.transactional import refuse_unverified
from ringleader.coordinator.transactions.machine import Producer
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode, KafkaError, error_name
from ringleader.protocol.messages.data import TOPIC_IDS_VERSION
from ringleader.protocol.records import Compression

ACKS = (-1, 0, 1)
ABORTABLE_VERSION = 11
"""The first version of Produce whose clients know TRANSACTION_ABORTABLE."""
JOINING_VERSION = 12
"""The first version of Produce that takes partitions into the transaction (V2)."""
ZSTD_VERSION = 7
"""The first version of Produce whose batches may be compressed with zstd."""
MAX_TIMESTAMP_VERSION = 7
"""The first version of ListOffsets that may ask for the largest timestamp."""
EPOCH_VERSION = 4
"""The first version of ListOffsets that answers a leader epoch."""

_ATTRIBUTES_LOW = 22
_CODEC_MASK = 7
_TRANSACTIONAL = 0x10
_PRODUCER = Struct(">43xqh")  # producer id and epoch of a batch


def register(services: LocalServices) -> dict[int, Handler]:
    """Handlers of this family."""
    family = _Data(services)
    return {
        0: family.produce,
        1: partial(fetch, services, FetchSessions(services.now_ms)),
        2: family.list_offsets,
        23: family.offset_for_leader_epoch,
    }


class _Data:
    def __init__(self, services: LocalServices) -> None:
        self._services = services
        self._topics = services.topics

    # ---- Produce ----

    def produce(self, call: Call, request: kafka.ProduceRequest) -> Slices | None:
        """The answer waits until all batches are written. With acks 0 there is none: an error closes the
        connection, and the next request waits for the writing, so that memory has a bound."""
        work = _Produce(self._services, call, request)
        if call.api_version < JOINING_VERSION or request.transactional_id is None:
            return work.begin()
        self._services.spawn(call, work.begin_joined(request.transactional_id))
        return None

    # ---- ListOffsets ----

    def list_offsets(self, call: Call, request: kafka.ListOffsetsRequest) -> Slices:
        """Ends and starts are answered at once; times are looked up in the files."""
        committed = request.isolation_level == READ_COMMITTED
        requested = [partition for topic in request.topics for partition in topic.partitions]
        if any(partition.timestamp >= 0 or partition.timestamp == MAX_TIMESTAMP for partition in requested):
            self._services.spawn(call, self._look_up_offsets(call, request))
            return None
        topics = []
        count = 0
        for topic in request.topics:
            partitions = []
            may = self._may_describe(call, topic.name)
            for found in _once(topic.partitions):
                partitions.append(self._offset_now(topic.name, found, call.api_version, committed, may))
                count += 1
                if not count % SLICE_ELEMENTS:
                    call.takes(HELD_ENTRY_BYTES * SLICE_ELEMENTS)
                    yield
            topics.append(kafka.ListOffsetsResponseListOffsetsTopicResponse(topic.name, partitions))
        return kafka.ListOffsetsResponse(topics=topics)

    async def _look_up_offsets(self, call: Call, request: kafka.ListOffsetsRequest) -> None:
        topics = []
        committed = request.isolation_level == READ_COMMITTED
        for topic in request.topics:
            may = self._may_describe(call, topic.name)
            partitions = await self._services.run_queue.gather(
                self._offset(topic.name, found, call.api_version, committed, may)
                for found in _once(topic.partitions)
            )
            call.takes(HELD_ENTRY_BYTES * len(partitions))
            topics.append(kafka.ListOffsetsResponseListOffsetsTopicResponse(topic.name, partitions))
        call.answer(kafka.ListOffsetsResponse(topics=topics))

    def _may_describe(self, call: Call, topic: str) -> bool:
        return self._services.may(call, Operation.DESCRIBE, ResourceType.TOPIC, topic)

    def _offset_now(
        self, topic: str, requested: _RequestedOffset, version: int, committed: bool, may: bool
    ) -> kafka.ListOffsetsResponseListOffsetsPartitionResponse:
        request, duplicate = requested
        response = kafka.ListOffsetsResponseListOffsetsPartitionResponse(request.partition_index)
        try:
            if not may:
                raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            if duplicate:
                raise KafkaError(ErrorCode.INVALID_REQUEST)
            partition = self._topics.readable(topic, request.partition_index)
            check_epoch(request.current_leader_epoch)
            if request.timestamp not in (-1, -2):
                raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
        except KafkaError as error:
            response.error_code = error.code
            return response
        if request.timestamp != -1:
            response.offset = partition.start_offset
        elif committed:
            response.offset = partition.last_stable_offset
        else:
            response.offset = partition.high_watermark
        if version >= EPOCH_VERSION:
            response.leader_epoch = LEADER_EPOCH
        return response

    async def _offset(
        self, topic: str, requested: _RequestedOffset, version: int, committed: bool, may: bool
    ) -> kafka.ListOffsetsResponseListOffsetsPartitionResponse:
        request, duplicate = requested
        largest = request.timestamp == MAX_TIMESTAMP and version >= MAX_TIMESTAMP_VERSION
        if not may or duplicate or not (request.timestamp >= 0 or largest):
            return self._offset_now(topic, requested, version, committed, may)
        response = kafka.ListOffsetsResponseListOffsetsPartitionResponse(request.partition_index)
        try:
            check_epoch(request.current_leader_epoch)
            response.offset, response.timestamp = await self._topics.offset_for_time(
                topic, request.partition_index, request.timestamp
            )
            partition = self._topics.readable(topic, request.partition_index)
            if committed and response.offset >= partition.last_stable_offset:
                response.offset = response.timestamp = -1
        except KafkaError as error:
            response.error_code = error.code
        else:
            if response.offset >= 0 and version >= EPOCH_VERSION:
                response.leader_epoch = LEADER_EPOCH
        return response

    # ---- OffsetForLeaderEpoch ----

    def offset_for_leader_epoch(self, call: Call, request: kafka.OffsetForLeaderEpochRequest) -> Slices:
        """The one epoch ends where the partition ends; no other is known."""
        topics = []
        count = 0
        for topic in request.topics:
            partitions = []
            may = checks.may_ask_epochs(self._services, call, topic.topic)
            for requested in topic.partitions:
                partitions.append(self._epoch_end(topic.topic, requested, may))
                count += 1
                if not count % SLICE_ELEMENTS:
                    call.takes(HELD_ENTRY_BYTES * SLICE_ELEMENTS)
                    yield
            topics.append(
                kafka.OffsetForLeaderEpochResponseOffsetForLeaderTopicResult(topic.topic, partitions)
            )
        return kafka.OffsetForLeaderEpochResponse(topics=topics)

    def _epoch_end(
        self, topic: str, requested: kafka.OffsetForLeaderEpochRequestOffsetForLeaderPartition, may: bool
    ) -> kafka.OffsetForLeaderEpochResponseEpochEndOffset:
        response = kafka.OffsetForLeaderEpochResponseEpochEndOffset(partition=requested.partition)
        try:
            if not may:
                raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            partition = self._topics.readable(topic, requested.partition)
            check_epoch(requested.current_leader_epoch)
        except KafkaError as error:
            response.error_code = error.code
            return response
        if requested.leader_epoch == LEADER_EPOCH:
            response.leader_epoch = LEADER_EPOCH
            response.end_offset = partition.high_watermark
        return response


_RequestedOffset = tuple[kafka.ListOffsetsRequestListOffsetsPartition, bool]


def _once(requested: list[kafka.ListOffsetsRequestListOffsetsPartition]) -> list[_RequestedOffset]:
    return once(requested, lambda partition: partition.partition_index)


_ASK_AGAIN = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
)
"""Of the transaction coordinator: another answer comes soon."""


def check_epoch(current_leader_epoch: int) -> None:
    """Raises KafkaError for a client that knows a later leader epoch than there is; -1: it does not say."""
    if current_leader_epoch > LEADER_EPOCH:
        raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)


BATCHES = 100
"""How many batches of a request are handed over in one go."""


class _Produce:
    """One Produce request in progress."""

    __slots__ = (
        "_by_id",
        "_call",
        "_joined",
        "_left",
        "_request",
        "_response",
        "_services",
        "_topics",
        "_transactions",
    )

    def __init__(self, services: LocalServices, call: Call, request: kafka.ProduceRequest) -> None:
        self._services = services
        self._topics = services.topics
        self._transactions = services.transactions
        self._call = call
        self._by_id = call.api_version >= TOPIC_IDS_VERSION
        self._request = request
        self._left = 1
        self._joined = 0
        """The error of transactional batches whose partitions are not in the transaction; 0: they are."""
        self._response = kafka.ProduceResponse()

    async def begin_joined(self, transactional_id: str) -> None:
        """`begin`, after the partitions of transactional batches are in their transaction: those that exist
        and that the caller may write to."""
        producers: set[Producer] = set()
        partitions: list[tuple[str, int]] = []
        if checks.may_be_transactional(self._services, self._call, self._request):
            for topic in self._request.topic_data:
                info = self._described(topic)
                if info is None or info.is_internal or not self._may_write(topic.name):
                    continue
                for data in topic.partition_data:
                    found = _transactional(data.records or b"")
                    if found is not None and 0 <= data.index < info.partitions:
                        producers.add(found)
                        partitions.append((topic.name, data.index))
        if len(producers) > 1:
            self._joined = ErrorCode.INVALID_PRODUCER_ID_MAPPING
        elif producers:
            self._joined = await self._transactions.join(transactional_id, producers.pop(), partitions)
        await self._services.run_queue.run(self.begin())

    def begin(self) -> Slices:
        """Hand all batches over; the last result answers."""
        begun = 0
        refused = 0
        if not checks.may_be_transactional(self._services, self._call, self._request):
            refused = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
        answered: set[tuple[str, bytes, int]] = set()
        """Of what is refused each is answered once, as by Kafka."""
        for topic in self._request.topic_data:
            error = refused
            if not error and self._by_id and self._described(topic) is None:
                error = ErrorCode.UNKNOWN_TOPIC_ID
            elif not error and not self._may_write(topic.name):
                error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            answers = kafka.ProduceResponseTopicProduceResponse(topic.name, topic.topic_id)
            for data in topic.partition_data:
                begun += 1
                if not begun % BATCHES:
                    yield
                if error:
                    if (topic.name, topic.topic_id, data.index) in answered:
                        continue
                    answered.add((topic.name, topic.topic_id, data.index))
                answer = kafka.ProduceResponsePartitionProduceResponse(data.index, base_offset=-1)
                answers.partition_responses.append(answer)
                self._left += 1
                self._append(topic, data, answer, error)
            if answers.partition_responses:
                self._response.responses.append(answers)
        self._finished()

    def _described(self, topic: kafka.ProduceRequestTopicProduceData) -> TopicInfo | None:
        """The topic as it is now; one that has an id in the request gets its name, too."""
        if not self._by_id:
            return self._topics.describe(topic.name)
        info = self._topics.describe_id(topic.topic_id)
        if info is not None:
            topic.name = info.name
        return info

    def _may_write(self, topic: str) -> bool:
        return self._services.may(self._call, Operation.WRITE, ResourceType.TOPIC, topic)

    def _append(
        self,
        topic: kafka.ProduceRequestTopicProduceData,
        data: kafka.ProduceRequestPartitionProduceData,
        answer: kafka.ProduceResponsePartitionProduceResponse,
        refused: int,
    ) -> None:
        def done(result: AppendResult | KafkaError) -> None:
            if isinstance(result, KafkaError):
                set_error(answer, result)
            else:
                answer.base_offset, answer.log_append_time_ms, answer.log_start_offset = result
            self._finished()

        batch = data.records or b""
        try:
            if refused:
                raise KafkaError(refused)
            info = self._described(topic)
            if info is None and self._by_id:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_ID)  # deleted since the request came
            if info is None or not 0 <= data.index < info.partitions:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            if not batch:
                raise KafkaError(ErrorCode.INVALID_RECORD, "no batch")
            codec = batch[_ATTRIBUTES_LOW] & _CODEC_MASK if len(batch) > _ATTRIBUTES_LOW else 0
            if codec == Compression.ZSTD and self._call.api_version < ZSTD_VERSION:
                raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
            if self._request.acks not in ACKS:
                raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
            refuse_internal(topic.name, "append to")
            partition = self._topics.partition(topic.name, data.index)
        except KafkaError as error:
            done(error)
        else:
            verify: Verify = refuse_unverified
            if self._request.transactional_id is not None:
                verify = partial(self._verify, self._request.transactional_id, (topic.name, data.index))
            self._topics.append_nowait(partition, batch, done, verify, self._call.connection)

    def _verify(
        self, transactional_id: str, partition: tuple[str, int], producer_id: int, producer_epoch: int
    ) -> None:
        """Raises KafkaError, with the codes that producers know (KIP-890)."""
        error = self._joined or self._transactions.verify(
            transactional_id, Producer(producer_id, producer_epoch), partition
        )
        version = self._call.api_version
        if error == ErrorCode.PRODUCER_FENCED:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, "a newer producer has this transactional id")
        if error == ErrorCode.CONCURRENT_TRANSACTIONS and version >= JOINING_VERSION:
            raise KafkaError(error, "the last transaction is being finished")
        if error == ErrorCode.TRANSACTION_ABORTABLE and version < ABORTABLE_VERSION:
            error = ErrorCode.INVALID_TXN_STATE
        if error in _ASK_AGAIN:
            # The one retriable error that producers of all ages handle.
            raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS, "the transaction is being finished, or loaded")
        if error:
            raise KafkaError(error, "the partition is not in an open transaction of this producer")

    def _finished(self) -> None:
        self._left -= 1
        if self._left:
            return
        if self._request.acks != 0:
            self._call.answer(self._response)
            return
        for topic in self._response.responses:
            for answer in topic.partition_responses:
                if answer.error_code:
                    where = f"{topic.name or topic.topic_id.hex()}-{answer.index}"
                    self._call.close(f"acks 0 and {error_name(answer.error_code)} at {where}")
                    return
        self._call.answer(NO_ANSWER)


def _transactional(batch: bytes | memoryview) -> Producer | None:
    """The producer of a transactional batch; its other fields are checked later."""
    if len(batch) < _PRODUCER.size or not batch[_ATTRIBUTES_LOW] & _TRANSACTIONAL:
        return None
    return Producer(*_PRODUCER.unpack_from(batch))
