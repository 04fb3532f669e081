"""Appends to partitions that this node owns: in order, one batch of each at a time, sent until it is
acknowledged.

The broker knows the last batches of each producer by their sequence numbers. So what was not answered, or
refused for the moment, is sent again as it is: what the log has already is acknowledged with the offset that
it has. It has nothing twice, and nothing out of order.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from ringleader.clients.connection.backoff import Backoff
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.requests import plain
from ringleader.clients.errors import AuthenticationError, ClientError
from ringleader.clients.model import Node
from ringleader.coordinator.storage.base import Failure, Record, StorageError
from ringleader.coordinator.storage.kafka.leaders import Leaders
from ringleader.protocol.errors import LEADER_MOVED, ErrorCode, error_name
from ringleader.protocol.messages import (
    ProduceRequest,
    ProduceRequestPartitionProduceData,
    ProduceRequestTopicProduceData,
    ProduceResponse,
)
from ringleader.protocol.messages.data import TOPIC_IDS_VERSION
from ringleader.protocol.records import Compression, build_pairs

REQUEST_BYTES = 4 * 1024 * 1024
"""A request that has as much takes no further batch."""

BATCH_BYTES = 1024 * 1024
"""Appends that wait go into one batch up to this size, as a request has but one of each partition. A single
append may be larger."""

RECORD_BYTES = 32
"""Bytes of a record besides key and value, at most."""

COMPRESSED_BYTES = 1_024
"""Smaller batches go as they are."""

AGAIN_MS, AGAIN_MAX_MS = 20, 500
"""Back-off before a partition's batches are sent again."""

SEQUENCES = 2**31

NO_LEADER = "it has no leader"

_MOVED = LEADER_MOVED | {ErrorCode.NETWORK_EXCEPTION}
_FOR_NOW = frozenset(
    {
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
    }
)
_FENCED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED})
_TOO_LARGE = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})


def uptime_s() -> float:
    """A clock that goes on while the machine is suspended, where there is one."""
    clock = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
    return time.clock_gettime(clock)


@dataclass(slots=True, eq=False)
class Append:
    """Records that go into one batch. `offset`: of the first, when they are in the log on all replicas in
    sync. `due_s`: when they have to be, by the loop's clock; infinite: they are sent until they are."""

    records: Sequence[Record]
    size_bytes: int
    due_s: float
    offset: asyncio.Future[int]


@dataclass(slots=True, eq=False)
class Batch:
    """Appends with a place in the sequence: sent as they are until they are acknowledged."""

    data: bytes
    appends: list[Append]


class Writer:
    """One ownership of one partition: a producer id, its epoch, and where the sequence stands.

    It `ended` when it is fenced, when something is not acknowledged in time, or when it is closed; what it
    has been given and not acknowledged has failed then, and may be in the log or not.
    """

    def __init__(self, partition: int, name: str, producer_id: int, epoch: int, claimed_s: float) -> None:
        """`name`: of the partition, in sentences. `claimed_s`: `uptime_s` when its epoch was asked for."""
        self.partition = partition
        self.name = name
        self.producer_id = producer_id
        self.epoch = epoch
        self.known_s = claimed_s
        """`uptime_s` of the last time that the cluster was known to know the epoch."""
        self.ended: StorageError | None = None
        self.trouble = ""
        """The last problem."""
        self._acknowledged_to: int | None = None
        """The offset up to which all is acknowledged: what comes is later."""
        self._sequence = 0
        self._waiting: deque[Append] = deque()
        self._batch: Batch | None = None
        """The one that is not acknowledged."""
        self._under_way = False
        self._not_before_s = 0.0
        self._backoff = Backoff(AGAIN_MS, AGAIN_MAX_MS, random.random)

    def add(self, records: Sequence[Record], due_s: float = math.inf) -> asyncio.Future[int]:
        """Something more to append: see `Append.offset`. Raises what the writer ended with."""
        if self.ended is not None:
            raise self.ended
        size = sum([len(key) + len(value or b"") + RECORD_BYTES for key, value in records])
        append = Append(records, size, due_s, asyncio.get_running_loop().create_future())
        self._waiting.append(append)
        return append.offset

    @property
    def idle(self) -> bool:
        """Whether all it has been given is acknowledged."""
        return self._batch is None and not self._waiting

    @property
    def due_s(self) -> float:
        """When the oldest append has to be acknowledged, by the loop's clock."""
        if self._batch is not None:
            return self._batch.appends[0].due_s
        return self._waiting[0].due_s if self._waiting else math.inf

    def next(self, now_s: float) -> Batch | None:
        """The batch to be sent now; it counts as under way."""
        if self._under_way or now_s < self._not_before_s:
            return None
        if self._batch is None:
            if not self._waiting:
                return None
            self._batch = self._sealed()
        self._under_way = True
        return self._batch

    def _sealed(self) -> Batch:
        """All that waits, as far as one batch takes it."""
        append = self._waiting.popleft()
        appends, records, size = [append], list(append.records), append.size_bytes
        while self._waiting and size + self._waiting[0].size_bytes <= BATCH_BYTES:
            append = self._waiting.popleft()
            appends.append(append)
            records += append.records
            size += append.size_bytes
        data = build_pairs(
            records,
            int(time.time() * 1000),
            compression=Compression.LZ4 if size >= COMPRESSED_BYTES else Compression.NONE,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self._sequence,
        )
        self._sequence = (self._sequence + len(records)) % SEQUENCES
        return Batch(data, appends)

    def acknowledged(self, base_offset: int) -> None:
        """The batch under way is in the log, on all replicas in sync."""
        self._under_way = False
        batch = self._batch
        if self.ended is not None or batch is None:
            return
        if self._acknowledged_to is not None and base_offset <= self._acknowledged_to:
            self.end(
                Failure.AWAY,
                f"what was acknowledged is gone: {base_offset} comes after {self._acknowledged_to}",
            )
            return
        self._acknowledged_to = base_offset + sum(len(append.records) for append in batch.appends) - 1
        self._batch = None
        self._not_before_s = 0.0
        self._backoff.reset()
        self.known_s = uptime_s()
        for append in batch.appends:
            if not append.offset.done():
                append.offset.set_result(base_offset)
            base_offset += len(append.records)

    def refused(self, why: str, now_s: float) -> float:
        """It was not, or nobody knows. When to try again, by the loop's clock."""
        self._under_way = False
        self.trouble = why
        self._not_before_s = now_s + self._backoff.next_ms() / 1000
        return self._not_before_s

    def end(self, failure: Failure, why: str) -> None:
        """Nothing more is written, and what is not acknowledged has failed."""
        if self.ended is not None:
            return
        self.ended = StorageError(failure, f"{self.name}: {why}")
        appends = [*(self._batch.appends if self._batch else ()), *self._waiting]
        self._batch = None
        self._waiting.clear()
        for append in appends:
            if not append.offset.done():
                append.offset.set_exception(self.ended)


class Sender:
    """Sends the batches of all writers, to each broker in one request at a time: it works on one at a time
    anyway, and what comes meanwhile gathers for the next one."""

    def __init__(self, cluster: Cluster, topic: str, replicate_ms: int, forgotten_s: float) -> None:
        """`replicate_ms`: what a broker may take for an answer. `forgotten_s`: a writer that has been silent
        for that time might not be fenced any more, so it ends."""
        self._cluster = cluster
        self._topic = topic
        self._replicate_ms = replicate_ms
        self.forgotten_s = forgotten_s
        self.leaders = Leaders(cluster, topic, self.wake)
        self._ready: dict[Writer, None] = {}
        """Those with batches."""
        self._busy: set[Node] = set()
        """Brokers that have not answered."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._woken = False
        self._timer: asyncio.TimerHandle | None = None

    def ready(self, writer: Writer) -> None:
        """It has a batch more."""
        self._ready[writer] = None
        due_s = writer.due_s
        if due_s < math.inf and (self._timer is None or due_s < self._timer.when()):
            self._look_at(due_s)
        self.wake()

    def wake(self) -> None:
        """Send what can be sent, at the end of this turn of the loop."""
        if not self._woken and self._ready:
            self._woken = True
            asyncio.get_running_loop().call_soon(self._send)

    async def close(self) -> None:
        """Forget what is under way. The writers have ended."""
        if self._timer is not None:
            self._timer.cancel()
        self._ready.clear()
        await self.leaders.close()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    # ---- sending ----

    def _send(self) -> None:
        self._woken = False
        for node, batches in self._gathered().items():
            self._busy.add(node)
            task = asyncio.get_running_loop().create_task(self._ask(node, batches))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _gathered(self) -> dict[Node, list[tuple[Writer, Batch]]]:
        """One batch of each writer that may send, by leader."""
        now_s, up_s = asyncio.get_running_loop().time(), uptime_s()
        found: dict[Node, list[tuple[Writer, Batch]]] = {}
        sizes: dict[Node, int] = {}
        for writer in list(self._ready):
            if writer.idle or writer.ended:
                del self._ready[writer]
                continue
            if up_s - writer.known_s > self.forgotten_s:
                writer.end(Failure.AWAY, "this node was away for so long that its epoch may be forgotten")
                continue
            node = self.leaders.of(writer.partition)
            if node is None:
                writer.trouble = NO_LEADER
                self.leaders.moved()
                continue
            if writer.trouble is NO_LEADER:
                writer.trouble = ""
            size = sizes.get(node, 0)
            if node in self._busy or size >= REQUEST_BYTES:
                continue
            batch = writer.next(now_s)
            if batch is None:
                continue
            sizes[node] = size + len(batch.data)
            found.setdefault(node, []).append((writer, batch))
            del self._ready[writer]  # to the end: the others' turn comes first
            self._ready[writer] = None
        return found

    async def _ask(self, node: Node, batches: list[tuple[Writer, Batch]]) -> None:
        data = [ProduceRequestPartitionProduceData(writer.partition, batch.data) for writer, batch in batches]
        topic = ProduceRequestTopicProduceData(self._topic, partition_data=data)
        request = ProduceRequest(acks=-1, timeout_ms=self._replicate_ms, topic_data=[topic])
        try:
            answer: ProduceResponse = await self.leaders.ask(
                node,
                [writer.partition for writer, _ in batches],
                plain(request, TOPIC_IDS_VERSION - 1),
                timeout_ms=self._replicate_ms + 1_000,
                purpose="append",
            )
            self._answered(answer, batches)
        except AuthenticationError as error:  # sent again, it would wait for its time to be over
            for writer, _ in batches:
                writer.end(Failure.AWAY, str(error))
        except ClientError as error:
            self.leaders.moved()
            for writer, _ in batches:
                self._again(writer, str(error))
        finally:
            self._busy.discard(node)
            self.wake()

    def _answered(self, answer: ProduceResponse, batches: list[tuple[Writer, Batch]]) -> None:
        answers = {one.index: one for topic in answer.responses for one in topic.partition_responses}
        moved = False
        for writer, batch in batches:
            one = answers.get(writer.partition)
            code = ErrorCode.UNKNOWN_SERVER_ERROR if one is None else one.error_code
            if one is not None and not code:
                writer.acknowledged(one.base_offset)
                continue
            why = error_name(code) + (f" ({one.error_message})" if one and one.error_message else "")
            moved = moved or code in _MOVED
            if code in _FENCED:
                writer.end(Failure.FENCED, why)
            elif code in _TOO_LARGE:
                writer.end(Failure.TOO_LARGE, f"{len(batch.data)} bytes; raise its max.message.bytes: {why}")
            elif code in _MOVED or code in _FOR_NOW:
                self._again(writer, why)
            else:
                # OUT_OF_ORDER_SEQUENCE_NUMBER, UNKNOWN_PRODUCER_ID: the log has lost what was acknowledged;
                # DUPLICATE_SEQUENCE_NUMBER says neither where it is nor on how many replicas. The next owner
                # replays what there is.
                writer.end(Failure.AWAY, why)
        if moved:
            self.leaders.moved()

    def _again(self, writer: Writer, why: str) -> None:
        loop = asyncio.get_running_loop()
        loop.call_at(writer.refused(why, loop.time()), self.wake)

    # ---- in time ----

    def _look_at(self, due_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(due_s, self._look)

    def _look(self) -> None:
        """A writer whose batch is overdue has ended."""
        self._timer = None
        now_s = asyncio.get_running_loop().time()
        for writer in self._ready:
            if writer.due_s <= now_s:
                writer.end(Failure.AWAY, f"not acknowledged in time, last: {writer.trouble or 'no answer'}")
        due_s = min((writer.due_s for writer in self._ready), default=math.inf)
        if due_s < math.inf:
            self._look_at(due_s)
        self.wake()
