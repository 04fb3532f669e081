"""Writes records, at least once and in order within each partition: for the Spark sink and the command line.

Batches go out as they fill, several ahead of their answers. Batches that a broker did not store are sent
again in the same order; with a producer id the broker drops what it has already. One thread per instance, no
other.
"""

from __future__ import annotations

import logging
import random
import time
from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from ringleader.clients.blocking.cluster import BlockingCluster
from ringleader.clients.connection.failures import Failures
from ringleader.clients.connection.requests import plain
from ringleader.clients.errors import ClientError, ConnectionLostError, RetriableError, is_retriable
from ringleader.clients.model import TopicPartition
from ringleader.clients.produce.batch_builder import BatchBuilder, Rows, RowSizes, RowTooLargeError
from ringleader.clients.produce.errors import ProduceError
from ringleader.clients.produce.partition_queue import OutgoingBatch, PartitionQueue, Written
from ringleader.clients.produce.partitioner import StickyPartitions
from ringleader.clients.produce.requests import answers, newest, topic_data
from ringleader.protocol.compression import Compression
from ringleader.protocol.errors import ErrorCode, error_name
from ringleader.protocol.messages import (
    InitProducerIdRequest,
    InitProducerIdResponse,
    ProduceRequest,
    ProduceResponse,
    ProduceResponsePartitionProduceResponse,
)

logger = logging.getLogger("ringleader.clients.produce")

_TAKEN = (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
# A topic with one of these will not be there, however long one waits.
_HOPELESS = (
    ErrorCode.INVALID_TOPIC_EXCEPTION,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
    ErrorCode.POLICY_VIOLATION,
)


@dataclass(frozen=True, kw_only=True)
class ProduceSettings:
    """How records are written; plain values, so that pickling is cheap."""

    acks: int = -1
    idempotent: bool = True
    codec: Compression = Compression.NONE
    batch_bytes: int = 1_000_000
    max_request_bytes: int = 1_048_576
    buffer_bytes: int = 32 * 1024 * 1024
    max_in_flight: int = 5
    request_timeout_ms: int = 30_000
    delivery_timeout_s: float = 120.0
    max_block_s: float = 15.0
    retry_backoff_s: float = 0.1
    prefix: str = ""
    """The prefix that the user writes before the names of Kafka's properties; sentences name them."""


class _Target:
    """How many partitions a topic has, and which one rows without a key fill now."""

    def __init__(self, count: int, available: list[int]) -> None:
        self.count = count
        # Neither tests nor users want a fixed choice: tasks should begin at different partitions.
        self.sticky = StickyPartitions(available or list(range(count)), random.Random())


class _Sent(NamedTuple):
    """A request without an answer yet."""

    batches: list[OutgoingBatch]
    request: ProduceRequest


class Producer:
    """Writes rows until ``flush``, which returns when brokers have acknowledged them all.

    Raises ProduceError, and then nothing is promised of any row.
    """

    def __init__(self, cluster: BlockingCluster, settings: ProduceSettings) -> None:
        self._settings = settings
        self._cluster = cluster
        self._topics: dict[str, _Target] = {}
        self._queues: dict[TopicPartition, PartitionQueue[BatchBuilder]] = {}
        # Queues with batches to send, and what each node has been sent and not answered.
        self._waiting: dict[TopicPartition, PartitionQueue[BatchBuilder]] = {}
        self._in_flight: dict[int, deque[_Sent]] = {}
        self._identity: tuple[int, int] | None = None
        self._failures = Failures()
        self.rows = 0
        self.bytes = 0

    def write(self, topic: str, rows: Rows) -> None:
        """Take records; full batches go out, the rest waits for ``flush`` or more records."""
        if not len(rows):
            return
        self.rows += len(rows)
        known = self._topics.get(topic) or self._find_topic(topic)
        for target, some in rows.by_partition(known.count):
            if target is None:
                self._spread(topic, known, some)
            elif 0 <= target < known.count:
                self._fill(self._queue((topic, target)), some)
            else:
                raise ProduceError(
                    f"a record names partition {target} of topic {topic}, which has partitions 0 to "
                    f"{known.count - 1}"
                )
        if sum(queue.builder.size_bytes for queue in self._queues.values()) > self._settings.buffer_bytes:
            self._close_all()
        self._pump()

    def flush(self) -> None:
        """Send everything, and wait until all of it is acknowledged."""
        self._close_all()
        self._pump()
        while self._in_flight or self._waiting:
            self._step()

    def written(self) -> dict[TopicPartition, Written]:
        """The records that each partition has stored so far: all that was given to it once ``flush`` has
        returned."""
        return {tp: queue.written for tp, queue in self._queues.items() if queue.written.records}

    def close(self) -> None:
        """Forget what is on its way. Connections that owe no answer stay for the next task."""
        self._cluster.drop_waiting()

    # -- rows to batches

    def _spread(self, topic: str, known: _Target, rows: Rows) -> None:
        """Rows without a key: one partition until its batch is full, then the next."""
        sizes, at = rows.sizes(), 0
        while at < len(rows):
            queue = self._queue((topic, known.sticky.current))
            at = self._take(queue, rows, sizes, at)
            if queue.builder.full:
                self._close(queue)
                known.sticky.move_on()

    def _fill(self, queue: PartitionQueue[BatchBuilder], rows: Rows) -> None:
        sizes, at = rows.sizes(), 0
        while at < len(rows):
            at = self._take(queue, rows, sizes, at)
            if queue.builder.full:
                self._close(queue)

    def _take(self, queue: PartitionQueue[BatchBuilder], rows: Rows, sizes: RowSizes, at: int) -> int:
        try:
            return queue.builder.fill(rows, sizes, at)
        except RowTooLargeError as error:
            raise ProduceError(
                f"a record for topic {queue.topic} takes {error.size_bytes} bytes; "
                f"{self._settings.prefix}max.request.size is "
                f"{self._settings.max_request_bytes}. Raise it, and the topic's max.message.bytes with it."
            ) from None

    def _queue(self, tp: TopicPartition) -> PartitionQueue[BatchBuilder]:
        found = self._queues.get(tp)
        if found is None:
            settings = self._settings
            limit = min(settings.batch_bytes, settings.max_request_bytes)
            builder = BatchBuilder(limit, settings.max_request_bytes)
            found = self._queues[tp] = PartitionQueue(*tp, builder, settings.idempotent)
        return found

    def _close(self, queue: PartitionQueue[BatchBuilder]) -> None:
        """A batch is full: it may go."""
        identity = self._identify() if self._settings.idempotent else (-1, -1)
        batch = queue.close(int(time.time() * 1000), self._settings.codec, *identity, time.monotonic())
        self.bytes += len(batch.data)
        self._waiting[queue.topic, queue.partition] = queue
        self._pump()

    def _close_all(self) -> None:
        for queue in self._queues.values():
            if queue.builder.count:
                self._close(queue)

    # -- batches to brokers

    def _pump(self) -> None:
        self._send_ready()
        while self._waiting:
            self._step()

    def _step(self) -> None:
        """One answer, or a moment's patience where none is to come."""
        if self._in_flight:
            node = min(self._in_flight, key=lambda found: self._in_flight[found][0].batches[0].first_s)
            self._receive(node)
        else:
            self._wait_for_leaders()
        self._send_ready()

    def _send_ready(self) -> None:
        """Requests to all leaders that may have more, one batch of a partition in each."""
        more = True
        while more:
            more = False
            for node, batches in self._ready().items():
                more = self._send(node, batches) or more

    def _ready(self) -> dict[int, list[OutgoingBatch]]:
        found: dict[int, list[OutgoingBatch]] = {}
        sizes: dict[int, int] = {}
        for tp, queue in self._waiting.items():
            node = self._cluster.leader(tp)
            if (
                node is None
                or not queue.may_send(node)
                or len(self._in_flight.get(node, ())) >= self._settings.max_in_flight
            ):
                continue
            batch = queue.batches[0]
            size = sizes.get(node, 0) + len(batch.data)
            if node not in found or size <= self._settings.max_request_bytes:
                found.setdefault(node, []).append(batch)
                sizes[node] = size
        return found

    def _send(self, node: int, batches: list[OutgoingBatch]) -> bool:
        """Whether it went out; otherwise the batches wait on."""
        for batch in batches:
            queue = self._queues[batch.topic, batch.partition]
            queue.sent(batch, node)
            if not queue.batches:
                del self._waiting[batch.topic, batch.partition]
        request = ProduceRequest(
            acks=self._settings.acks,
            timeout_ms=self._settings.request_timeout_ms,
            topic_data=topic_data(batches, self._cluster.topic_id),
        )
        self._in_flight.setdefault(node, deque()).append(_Sent(batches, request))
        try:
            connection = self._cluster.connection(node)
            connection.send(request, newest(request.topic_data, connection.version(ProduceRequest)))
        except ConnectionLostError as error:
            self._node_failed(node, str(error))
            return False
        return True

    # -- answers

    def _receive(self, node: int) -> None:
        try:
            response = self._cluster.connection(node).receive(ProduceResponse)
        except ConnectionLostError as error:
            self._node_failed(node, str(error))
            return
        batches, request = self._in_flight[node].popleft()
        if not self._in_flight[node]:
            del self._in_flight[node]
        found = answers(request.topic_data, response)
        refused: set[str] = set()
        for batch in batches:
            queue = self._queues[batch.topic, batch.partition]
            queue.in_flight -= 1
            answer = found.get((batch.topic, batch.partition))
            if answer is None:
                raise ProduceError(f"the broker did not answer for {batch.name}")
            if answer.error_code in _TAKEN:
                queue.taken(batch, answer.base_offset)
                if not queue.batches:
                    self._waiting.pop((queue.topic, queue.partition), None)
            elif self._refused(queue, batch, answer):
                refused.add(batch.topic)
        if refused:
            self._refresh(refused)

    def _refused(
        self,
        queue: PartitionQueue[BatchBuilder],
        batch: OutgoingBatch,
        answer: ProduceResponsePartitionProduceResponse,
    ) -> bool:
        """Decide about a batch that was not stored; whether to look for leaders again. Raises
        ProduceError."""
        code = answer.error_code
        if code in _TOO_LARGE and batch.count > 1:
            self._again(queue, *batch.halves())
            return False
        if code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and queue.behind(batch):
            self._again(queue, batch)
            return False
        why = error_name(code) + (f" ({answer.error_message})" if answer.error_message else "")
        if code in _TOO_LARGE:
            raise ProduceError(
                f"a record for topic {batch.topic} takes {len(batch.data)} bytes, more than the topic's "
                f"max.message.bytes: {why}"
            )
        if not is_retriable(code) or code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            raise ProduceError(f"records cannot be written to {batch.name}: {why}")
        self._check_late(batch, why)
        self._tell(RetriableError(f"{batch.name} did not take a batch, it is sent again: {why}"))
        self._cluster.forget((batch.topic, batch.partition))
        if code == ErrorCode.UNKNOWN_TOPIC_ID:
            queue.made_again()
        self._again(queue, batch)
        return True

    def _again(self, queue: PartitionQueue[BatchBuilder], *batches: OutgoingBatch) -> None:
        queue.back(*batches)
        self._waiting[queue.topic, queue.partition] = queue

    def _node_failed(self, node: int, why: str) -> None:
        """Nobody knows what became of the requests under way: send them again."""
        self._cluster.drop(node)
        topics: set[str] = set()
        for sent in self._in_flight.pop(node, ()):
            for batch in sent.batches:
                self._check_late(batch, why)
                queue = self._queues[batch.topic, batch.partition]
                queue.in_flight -= 1
                self._again(queue, batch)
                topics.add(batch.topic)
        self._tell(ConnectionLostError(f"node {node} did not take batches, they are sent again: {why}"))
        self._refresh(topics)

    def _tell(self, error: ClientError) -> None:
        """A try has failed, and another one follows."""
        if (line := self._failures.failed(error, time.monotonic())) is not None:
            logger.warning("%s", line)

    def _check_late(self, batch: OutgoingBatch, why: str) -> None:
        waited_s = time.monotonic() - batch.first_s
        if waited_s > self._settings.delivery_timeout_s:
            raise ProduceError(
                f"records for {batch.name} were not taken within {waited_s:.0f} s "
                f"({self._settings.prefix}delivery.timeout.ms): "
                f"{why}"
            )

    # -- metadata and identity

    def _wait_for_leaders(self) -> None:
        for queue in self._waiting.values():
            self._check_late(queue.batches[0], "the partition has no leader, or no broker answers")
        self._refresh({topic for topic, _ in self._waiting})
        if lost := [f"{topic}-{n}" for topic, n in self._waiting if self._cluster.leader((topic, n)) is None]:
            self._tell(RetriableError(f"{lost[0]} has no leader now: its batches wait"))

    def _refresh(self, topics: set[str]) -> None:
        time.sleep(self._settings.retry_backoff_s)
        try:
            self._cluster.refresh(topics)
        except ConnectionLostError as error:
            self._tell(ConnectionLostError(f"no broker answers: {error}"))

    def _find_topic(self, topic: str) -> _Target:
        """Partitions of a topic; asks for it to be made where brokers do that. Raises ProduceError."""
        deadline = time.monotonic() + self._settings.max_block_s
        while True:
            why = f"topic {topic} does not exist, and the brokers do not make it"
            try:
                code = self._cluster.refresh([topic], create=True).get(topic, 0)
                if code in _HOPELESS:
                    raise ProduceError(f"topic {topic} cannot be written to: {error_name(code)}")
            except ConnectionLostError as error:
                why = f"topic {topic} cannot be looked up: {error}"
                self._tell(ConnectionLostError(why))
            known = [partition for _, partition in self._cluster.partitions([topic])]
            if known:
                available = [number for number in known if self._cluster.leader((topic, number)) is not None]
                found = self._topics[topic] = _Target(max(known) + 1, available)
                return found
            if time.monotonic() >= deadline:
                raise ProduceError(
                    f"{why} (waited {self._settings.max_block_s:.0f} s, {self._settings.prefix}max.block.ms)"
                )
            time.sleep(self._settings.retry_backoff_s)

    def _identify(self) -> tuple[int, int]:
        """The producer id and epoch of this task, asked for once."""
        if self._identity is not None:
            return self._identity
        deadline = time.monotonic() + self._settings.max_block_s
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=2**31 - 1)
        while True:
            try:
                answer = self._cluster.ask_any(plain(request), InitProducerIdResponse)
                if not answer.error_code:
                    self._identity = answer.producer_id, answer.producer_epoch
                    return self._identity
                why = error_name(answer.error_code)
                if not is_retriable(answer.error_code):
                    raise ProduceError(
                        f"the brokers give no producer id: {why}; records can be written without one "
                        f"({self._settings.prefix}enable.idempotence=false)"
                    )
            except ConnectionLostError as error:
                why = str(error)
            self._tell(RetriableError(f"no producer id yet: {why}"))
            if time.monotonic() >= deadline:
                raise ProduceError(f"no producer id could be had: {why}")
            time.sleep(self._settings.retry_backoff_s)
