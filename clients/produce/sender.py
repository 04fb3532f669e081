"""Sends the batches of a producer to the partitions' leaders, several ahead of their answers, and again until
they are confirmed or their time is over.

A batch that was not confirmed is sent again with its sequence, so a broker that has it drops it. One that
is given up leaves a gap: what follows goes on under a new epoch, but only after the leader has said, by
refusing the old sequence, that it does not have it. So nothing is written twice.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.failures import Failures
from ringleader.clients.connection.requests import plain
from ringleader.clients.errors import ClientError, RetriableError, is_retriable
from ringleader.clients.model import Node, TopicPartition
from ringleader.clients.produce.batch_builder import RecordBuilder, RowTooLargeError
from ringleader.clients.produce.entrance import entrance
from ringleader.clients.produce.errors import (
    DeliveryTimeoutError,
    FatalProducerError,
    ProduceError,
    RecordTooLargeError,
    TransactionAbortedError,
)
from ringleader.clients.produce.lane import MAX_EPOCH, Lane, Parcel
from ringleader.clients.produce.memory import Memory
from ringleader.clients.produce.model import ProducerSettings
from ringleader.clients.produce.outcome import Outcome
from ringleader.clients.produce.partitioner import partition_of_key
from ringleader.clients.produce.requests import answers, newest, topic_data
from ringleader.clients.produce.rows import PLAIN_BYTES
from ringleader.clients.produce.topics import Topics
from ringleader.clients.produce.transactions import FENCED, Transactions
from ringleader.protocol.compression import Compression
from ringleader.protocol.errors import ErrorCode, error_name
from ringleader.protocol.messages import ProduceRequest
from ringleader.protocol.records import Headers

logger = logging.getLogger("ringleader.clients.produce")

PRODUCE = "produce"
"""The purpose of the connections: a broker may hold an answer back until replicas have the records."""
_TAKEN = (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)
_TOO_LARGE = (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE)
_FATAL = (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
_FORGOTTEN = (ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.INVALID_PRODUCER_EPOCH)


class BatchSender:
    """Belongs to one event loop. `run` it."""

    def __init__(self, cluster: Cluster, settings: ProducerSettings) -> None:
        self._loop = asyncio.get_running_loop()
        self._cluster = cluster
        self._settings = settings
        self._codec = Compression[settings.compression_type.upper()]
        self._by_murmur2 = settings.partitioner == "murmur2"
        self.topics = Topics(cluster, settings, self._looked, self._filled)
        self.transactions = Transactions(cluster, settings, self.wake, self._renumber)
        self.entrance = entrance(self._by_murmur2)
        self.entrance.closed = int(settings.transactional_id is not None)
        self.memory = Memory(settings.buffer_memory, self.entrance)
        self._lanes: dict[TopicPartition, Lane] = {}
        self._active: dict[TopicPartition, Lane] = {}
        """Those with something to send."""
        self._requests: dict[asyncio.Task[None], int] = {}
        """Under way, and the node of each."""
        self._proven: set[int] = set()
        """Nodes that have answered: requests on a connection that is just being opened may come in any
        order."""
        self._wake = asyncio.Event()
        self._hurry = 0
        """Callers that wait for everything to be sent."""
        self._era = 0
        self._open: dict[int, int] = {}
        """Of each era: the batches that began in it and are not confirmed."""
        self._changed = asyncio.Event()
        self._failures = Failures()
        self.records = self.failed_records = self.bytes = self.requests = self.retries = 0

    # ---- records ----

    def add_now(self, topic: str, key: bytes | None, value: bytes, timestamp_ms: int) -> Outcome | None:
        """As `add`, of a record without headers that names no partition; None, and nothing done, when it has
        to wait, or its partition is not known without more ado. Raises what keeps it from being sent."""
        self.transactions.check_accepts()
        way = self.entrance.ways.get(topic) or self._way(topic)
        size = PLAIN_BYTES + len(value) + (0 if key is None else len(key))
        if way is None or not self.memory.has_room(size):
            return None
        if key is None:
            if (sticky := self.topics.sticky(topic)) is None:
                return None
            target, way[0] = sticky.take(size), sticky.turns
        elif self._by_murmur2:
            target = partition_of_key(key, len(way) - 1)
        else:
            return None
        outcome = self.add((topic, target), key, value, (), timestamp_ms, size)
        self.memory.take_now(size)
        way[1 + target] = self._lane((topic, target)).builder
        return outcome

    def _way(self, topic: str) -> list[Any] | None:
        count = self.topics.count(topic)
        if count is None or self.topics.is_awaited(topic):
            return None
        found = self.entrance.ways[topic] = [None] * (1 + count)
        return found

    def _lane(self, tp: TopicPartition) -> Lane:
        lane = self._lanes.get(tp)
        if lane is None:
            limit = min(self._settings.batch_size, self._settings.max_request_size)
            builder = RecordBuilder(limit, self._settings.max_request_size)
            lane = self._lanes[tp] = Lane(tp, builder, self.transactions.producer)
        return lane

    def add(
        self,
        tp: TopicPartition,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        timestamp_ms: int,
        size_bytes: int,
    ) -> Outcome:
        """Take a record, which has its room in memory. Raises RecordTooLargeError."""
        lane = self._lane(tp)
        builder = lane.builder
        try:
            if not builder.add(key, value, headers, timestamp_ms, size_bytes):
                lane.close_open(self._codec, self.transactions.id is not None)
                builder.add(key, value, headers, timestamp_ms, size_bytes)
        except RowTooLargeError as error:
            raise too_large(
                lane.topic, error.size_bytes, "max_request_size", self._settings.max_request_size
            ) from None
        if builder.count == 1:
            lane.opened_s, lane.era = self._loop.time(), self._era
            self._open[self._era] = self._open.get(self._era, 0) + 1
            self._active[lane.topic_partition] = lane
            self._wake.set()
        elif builder.full:
            self._wake.set()
        return Outcome(lane.fate.batch, builder.count - 1)

    def _filled(self, tp: TopicPartition) -> None:
        """The partition's batch waits for no more records."""
        lane = self._lanes.get(tp)
        if lane is not None and lane.builder.count:
            lane.builder.full = True
            self._wake.set()

    async def flush(self) -> None:
        """Send all that was taken so far without waiting for more, and wait for its outcome, which is that of
        all batches that had begun."""
        era, self._era = self._era, self._era + 1
        self._hurry += 1
        self._wake.set()
        try:
            while any(number <= era for number in self._open):
                await self._changed.wait()
        finally:
            self._hurry -= 1

    def _looked(self) -> None:
        self.entrance.ways.clear()
        self._wake.set()

    def wake(self) -> None:
        """Something may be sent that could not before, or nothing may be sent any more."""
        self._wake.set()
        if self.transactions.fatal is not None:
            self.entrance.closed = 1

    async def drop_all(self, error: Callable[[], ClientError]) -> None:
        """Everything fails with that; what is under way when its request is over, if it was not confirmed."""
        self.drop(error)
        while self._requests:
            await asyncio.wait(self._requests)
            self.drop(error)

    def drop(self, error: Callable[[], ClientError]) -> None:
        """Everything that is not under way fails with that."""
        for lane in list(self._active.values()):
            if lane.builder.count:
                lane.close_open(self._codec, self.transactions.id is not None)
            parcels, lane.batches = lane.batches, []
            for parcel in parcels:
                lane.gave_up = self.transactions.renumbers = True
                self._end(parcel, error())
            self._rest(lane)

    def _renumber(self) -> None:
        """The producer has a new epoch: all partitions begin with it."""
        for lane in self._lanes.values():
            lane.renumber(self.transactions.producer)

    # ---- the loop ----

    async def run(self) -> None:
        """Until cancelled."""
        try:
            while True:
                self._wake.clear()
                next_s = self._send_ready()
                timer = None if next_s == math.inf else self._loop.call_at(next_s, self._wake.set)
                try:
                    await self._wake.wait()
                finally:
                    if timer is not None:
                        timer.cancel()
        finally:
            for task in self._requests:
                task.cancel()
            await asyncio.gather(*self._requests, return_exceptions=True)

    def _send_ready(self) -> float:
        """Send what may go; when to look again."""
        if self.transactions.broken is not None:
            self.drop(self._broken)
        now_s = asyncio.get_running_loop().time()
        next_s = math.inf
        more = True
        while more:
            more = False
            going: dict[Node, list[tuple[Lane, Parcel]]] = {}
            sizes: dict[Node, int] = {}
            for lane in list(self._active.values()):
                next_s = min(next_s, self._expire(lane, now_s), self._due(lane, now_s))
                node = self._target(lane, now_s)
                if node is None:
                    continue
                if not lane.batches:
                    lane.close_open(self._codec, self.transactions.id is not None)
                parcel = lane.batches[0]
                size = sizes.get(node, 0) + len(parcel.data)
                if node in going and size > self._settings.max_request_size:
                    more = True
                    continue
                going.setdefault(node, []).append((lane, parcel))
                sizes[node] = size
            for node, entries in going.items():
                self._send(node, entries, now_s)
                more = True
        return next_s

    def _broken(self) -> ClientError:
        why = self.transactions.broken
        if isinstance(why, FatalProducerError):
            return why
        return TransactionAbortedError(f"the record's transaction has to be aborted: {why}")

    def _due(self, lane: Lane, now_s: float) -> float:
        """When the lane has something to send by itself; infinity: it has, or waits for something else."""
        if lane.batches:
            return lane.not_before_s if lane.not_before_s > now_s else math.inf
        if not lane.builder.count or lane.builder.full or self._hurry or self.memory.waiting:
            return math.inf
        due_s = max(lane.opened_s + self._settings.linger_ms / 1000, lane.not_before_s)
        return due_s if due_s > now_s else math.inf

    def _target(self, lane: Lane, now_s: float) -> Node | None:
        """Where the lane's next batch may go now."""
        if lane.empty or lane.not_before_s > now_s or self._due(lane, now_s) != math.inf:
            return None
        if not lane.restarted():
            return None
        node = self.topics.leader(lane.topic_partition)
        if node is None or not self.transactions.may_send(lane.topic_partition):
            return None
        most = self._settings.max_in_flight_requests_per_connection if node.node_id in self._proven else 1
        busy = sum(1 for other in self._requests.values() if other == node.node_id)
        return node if busy < most and lane.may_send(node.node_id) else None

    def _expire(self, lane: Lane, now_s: float) -> float:
        """Give up what has waited too long; when the next one will have."""
        limit_s = self._settings.delivery_timeout_ms / 1000
        while lane.batches and lane.batches[0].first_s + limit_s <= now_s:
            self._give_up(lane, lane.batches.pop(0), None)
        if not lane.batches and lane.builder.count and lane.opened_s + limit_s <= now_s:
            lane.close_open(self._codec, self.transactions.id is not None)
            self._give_up(lane, lane.batches.pop(0), None)
        if lane.empty:
            self._rest(lane)
            return math.inf
        return (lane.batches[0].first_s if lane.batches else lane.opened_s) + limit_s

    def _send(self, node: Node, entries: list[tuple[Lane, Parcel]], now_s: float) -> None:
        for lane, parcel in entries:
            lane.sent(parcel, node.node_id)
            self.retries += parcel.tries > 0
            parcel.tries += 1
            if lane.empty:
                self._active.pop(lane.topic_partition, None)
        self.requests += 1
        task = asyncio.create_task(self._request(node, entries, now_s), name="producer's request")
        self._requests[task] = node.node_id
        task.add_done_callback(partial(self._over, entries))

    def _over(self, entries: list[tuple[Lane, Parcel]], task: asyncio.Task[None]) -> None:
        del self._requests[task]
        self._wake.set()
        if task.cancelled():  # by the end of the producer: what it carried fails with the rest
            for lane, parcel in entries:
                lane.in_flight -= 1
                self._again(lane, parcel)
        elif (error := task.exception()) is not None:
            raise error

    async def _request(self, node: Node, entries: list[tuple[Lane, Parcel]], now_s: float) -> None:
        settings = self._settings
        ends_s = min(parcel.first_s for _, parcel in entries) + settings.delivery_timeout_ms / 1000
        deadline_s = min(now_s + settings.request_timeout_ms / 1000, ends_s)
        message = self._message([parcel for _, parcel in entries])
        request = plain(message, newest(message.topic_data, self.transactions.newest(ProduceRequest)))
        try:
            answer = await self._cluster.send(node, request, deadline_s=deadline_s, purpose=PRODUCE)
        except RetriableError as error:
            self._proven.discard(node.node_id)
            self._tell(RetriableError(f"{node} did not take batches, they are sent again: {error}"))
            for lane, parcel in entries:
                lane.in_flight -= 1
                self._again(lane, parcel)
            self.topics.stale()
            return
        except ClientError as error:
            for lane, parcel in entries:
                lane.in_flight -= 1
                self._give_up(lane, parcel, error)
            return
        self._proven.add(node.node_id)
        found = answers(message.topic_data, answer)
        for lane, parcel in entries:
            lane.in_flight -= 1
            self._answered(lane, parcel, found.get(lane.topic_partition))

    def _message(self, parcels: list[Parcel]) -> ProduceRequest:
        return ProduceRequest(
            transactional_id=self.transactions.id,
            acks=-1 if self._settings.acks == "all" else 1,
            timeout_ms=self._settings.request_timeout_ms,
            topic_data=topic_data(parcels, self.topics.topic_id),
        )

    # ---- answers ----

    def _answered(self, lane: Lane, parcel: Parcel, answer: Any) -> None:
        if answer is None:
            self._give_up(lane, parcel, ProduceError(f"the broker did not answer for {parcel.name}"))
            return
        code = answer.error_code
        if code in _TAKEN:
            lane.confirmed()
            self._confirmed(parcel, answer.base_offset, answer.log_append_time_ms)
            return
        why = error_name(code) + (f" ({answer.error_message})" if answer.error_message else "")
        transactional = self.transactions.id is not None
        if code in _TOO_LARGE and parcel.count > 1:
            self._open[parcel.era] += 1
            self._again(lane, *parcel.halves())
        elif code in _TOO_LARGE:
            self._give_up(
                lane, parcel, too_large(parcel.topic, len(parcel.data), "the topic's max.message.bytes")
            )
        elif code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and lane.behind(parcel):
            self._again(lane, parcel)
        elif not transactional and self._restarts(lane, code):
            lane.restart()
            self._again(lane, parcel)
        elif code == ErrorCode.PRODUCER_FENCED or code in _FATAL:
            fatal = FatalProducerError(f"the producer cannot go on: {why} for {parcel.name}", code)
            self.transactions.failed(self.transactions.fenced(code) if code in FENCED else fatal)
            self._give_up(lane, parcel, self.transactions.fatal or fatal)
        elif is_retriable(code):
            self._tell(RetriableError(f"{parcel.name} did not take a batch, it is sent again: {why}"))
            self.topics.stale()
            if code == ErrorCode.UNKNOWN_TOPIC_ID:
                lane.made_again()
            self._again(lane, parcel)
        else:
            text = f"records cannot be written to {parcel.name}: {why}"
            self._give_up(lane, parcel, ProduceError(text, code))

    @staticmethod
    def _restarts(lane: Lane, code: int) -> bool:
        """Whether the leader only does not know the sequence: behind a batch that was given up, or of a
        producer that it has forgotten."""
        if lane.producer[1] >= MAX_EPOCH or lane.producer[0] < 0:
            return False
        return code in _FORGOTTEN or (code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and lane.gave_up)

    def _confirmed(self, parcel: Parcel, base_offset: int, append_ms: int) -> None:
        self.records += parcel.count
        self.bytes += len(parcel.data)
        parcel.fate.end(parcel.skipped, parcel.count, base_offset, append_ms, None)
        self._ended(parcel)
        self._failures.works()

    def _again(self, lane: Lane, *parcels: Parcel) -> None:
        settings = self._settings
        lane.tries += 1
        backoff_ms = min(settings.retry_backoff_max_ms, settings.retry_backoff_ms << min(lane.tries - 1, 16))
        wait_s = backoff_ms / 1000 * (0.8 + 0.4 * random.random())
        lane.not_before_s = asyncio.get_running_loop().time() + wait_s
        lane.back(*parcels)
        self._active[lane.topic_partition] = lane

    def _give_up(self, lane: Lane, parcel: Parcel, error: ClientError | None) -> None:
        lane.gave_up = True
        if error is None:
            error = DeliveryTimeoutError(
                f"records for {parcel.name} were not confirmed within "
                f"{self._settings.delivery_timeout_ms} ms (delivery_timeout_ms)"
                + (f": {self._failures.last}" if self._failures.last is not None else "")
            )
        if self.transactions.id is not None:
            self.transactions.renumbers = True
            self.transactions.failed(error)
        logger.warning("%d records were not written: %s", parcel.count, error)
        self._end(parcel, error)

    def _end(self, parcel: Parcel, error: ClientError) -> None:
        self.failed_records += parcel.count
        parcel.fate.end(parcel.skipped, parcel.count, -1, -1, error)
        self._ended(parcel)

    def _ended(self, parcel: Parcel) -> None:
        self._open[parcel.era] -= 1
        if not self._open[parcel.era]:
            del self._open[parcel.era]
        self.memory.give(parcel.size_bytes)
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    def _rest(self, lane: Lane) -> None:
        self._active.pop(lane.topic_partition, None)

    def _tell(self, error: ClientError) -> None:
        if (line := self._failures.failed(error, time.monotonic())) is not None:
            logger.warning("%s", line)


def too_large(topic: str, size_bytes: int, limit: str, most: int | None = None) -> RecordTooLargeError:
    """The error about a record that is larger than that limit."""
    bound = f"{limit} ({most})" if most is not None else limit
    return RecordTooLargeError(f"a record for topic {topic} takes {size_bytes} bytes, more than {bound}")
