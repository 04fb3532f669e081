"""How transactions with offsets in a group end: the cluster writes a marker into the group's partition.

The cluster's transaction coordinator does not tell the group's owner that a transaction has ended. But the
partition of the groups' topic is in the transaction, so its marker (a control batch) comes into it, and the
owner reads its own partition for as long as it has offsets of open transactions.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from typing import Final

from ringleader.clients.connection.backoff import Backoff
from ringleader.clients.connection.requests import Request
from ringleader.clients.errors import ClientError
from ringleader.clients.model import EARLIEST, LATEST, Node
from ringleader.clients.offsets.list_offsets import list_offsets, listed_offsets
from ringleader.coordinator.groups.records import UNCOMMITTED_OFFSET, decode_key
from ringleader.coordinator.groups.shard import Shard
from ringleader.coordinator.logs import Log
from ringleader.coordinator.machine import Phase
from ringleader.coordinator.relay.topology import Topology
from ringleader.coordinator.runtime import GroupRuntime
from ringleader.protocol.columns import Columns, append_columns
from ringleader.protocol.errors import LEADER_MOVED, ErrorCode, KafkaError
from ringleader.protocol.messages import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchResponse,
)
from ringleader.protocol.messages.data import TOPIC_IDS_VERSION
from ringleader.protocol.records import BatchView, iter_batches

FETCH_BYTES = 1024 * 1024
FETCH_WAIT_MS = 1_000
AGAIN_MS, AGAIN_MAX_MS = 20, 500
COMMITTED = 1
"""The type of a marker that commits; 0 aborts."""
_PENDING: Final = UNCOMMITTED_OFFSET.to_bytes(2, "big")


class Markers:
    """Reads one partition in one life of its shard, until no transaction is open in it.

    The offsets of a transaction are committed, or dropped, when its marker is met; whatever else waits for
    `reached` goes on when that is durable.
    """

    def __init__(
        self,
        partition: int,
        topic: str,
        runtime: GroupRuntime,
        topology: Topology,
        log: Log,
        begin: int | None,
    ) -> None:
        """`begin`: no marker before this offset matters. None: the shard was just loaded, and the marker of
        an open transaction may lie anywhere in the partition."""
        self.shard: Shard = runtime.shards[partition]
        self._partition = partition
        self._topic = topic
        self._runtime = runtime
        self._topology = topology
        self._log = log
        self._position = begin
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()
        self.users = 0
        """Commits in transactions that are in progress: it does not end before they do."""

    @property
    def alive(self) -> bool:
        """Whether the shard still lives the same life."""
        shard = self._runtime.shards[self._partition]
        return shard is self.shard and shard.phase is Phase.SERVING

    async def reached(self, offset: int) -> None:
        """Returns when all transactions whose marker lies before that offset have ended here, durably. Raises
        KafkaError when the shard is not this node's any more."""
        if self._position is None or self._position < offset:
            reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((offset, reached))
            await reached
        if not self.alive:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)

    async def run(self) -> None:
        """Until nothing is open and no commit uses it, or the shard's life ends."""
        backoff = Backoff(AGAIN_MS, AGAIN_MAX_MS, random.random)
        try:
            while self.alive and (self.users or self.shard.open_producers()):
                try:
                    if self._position is None:
                        await self._catch_up()
                    else:
                        await self._read_on(self._position)
                    backoff.reset()
                except (ClientError, KafkaError) as error:
                    self._log.debug("markers not read", partition=self._partition, reason=str(error))
                    await asyncio.sleep(backoff.next_ms() / 1000)
        finally:
            for _, reached in self._waiting:
                if not reached.done():
                    reached.set_exception(KafkaError(ErrorCode.NOT_COORDINATOR))
                    reached.exception()

    async def _catch_up(self) -> None:
        """End the transactions that ended before the shard was loaded."""
        end = await offset_of(self._topology, self._topic, self._partition, LATEST)
        position = await offset_of(self._topology, self._topic, self._partition, EARLIEST)
        past = Endings()
        while position < end and self.alive:
            for batch in iter_batches(await self._fetch(position)):
                if batch.header.base_offset >= end:
                    break
                position = batch.header.next_offset
                past.read(batch)
                await asyncio.sleep(0)
        for producer_id in self.shard.open_producers():
            if producer_id in past.committed:
                await self._end(producer_id, past.committed[producer_id])
        self._move(max(position, end))

    async def _read_on(self, position: int) -> None:
        for batch in iter_batches(await self._fetch(position)):
            header = batch.header
            if header.next_offset <= position:
                continue
            if header.is_control and header.producer_id in self.shard.open_producers():
                await self._end(header.producer_id, _commits(batch))
            position = header.next_offset
        self._move(position)

    async def _end(self, producer_id: int, committed: bool) -> None:
        await end_transaction(self._runtime, self._partition, self.shard, producer_id, committed)
        self._log.debug(
            "transaction ended", partition=self._partition, producer_id=producer_id, committed=committed
        )

    def _move(self, position: int) -> None:
        self._position = position
        for offset, reached in self._waiting:
            if offset <= position and not reached.done():
                reached.set_result(None)
        self._waiting = deque(one for one in self._waiting if not one[1].done())

    async def _fetch(self, position: int) -> bytes:
        """Batches from that offset on; nothing when there are none yet. Raises ClientError, KafkaError."""
        leader = await leader_of(self._topology, self._topic, self._partition)
        wanted = FetchRequestFetchPartition(
            self._partition, fetch_offset=position, partition_max_bytes=FETCH_BYTES
        )
        message = FetchRequest(
            max_wait_ms=FETCH_WAIT_MS,
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            topics=[FetchRequestFetchTopic(self._topic, partitions=[wanted])],
        )
        request = Request(FetchRequest, lambda _version: message, TOPIC_IDS_VERSION - 1)
        try:
            answer: FetchResponse = await self._topology.ask(
                leader, request, f"markers-{self._partition}", request_timeout_ms=FETCH_WAIT_MS + 3_000
            )
        except ClientError:
            self._topology.suspect([self._topic])
            raise
        if answer.error_code:
            raise KafkaError(answer.error_code)
        [one] = [one for topic in answer.responses for one in topic.partitions]
        if one.error_code:
            if one.error_code in LEADER_MOVED:
                self._topology.suspect([self._topic])
            raise KafkaError(one.error_code)
        return one.records or b""


class Endings:
    """How the transactions of a partition's past ended, out of its batches, in their order.

    That of an offset is the producer's first marker behind it: a later one is of another transaction, whose
    offsets, if it has any, come only when all of the one before are committed or dropped. A record that
    removes an offset decides nothing: the effects of a marker may have stopped half-way.
    """

    def __init__(self) -> None:
        self.committed: dict[int, bool] = {}
        """By producer: whether the transaction of its last offset was committed. Open ones are not here."""

    def read(self, batch: BatchView) -> None:
        """The next one."""
        if batch.header.is_control:
            if batch.header.record_count:
                self.committed.setdefault(batch.header.producer_id, _commits(batch))
        elif self.committed:
            columns = _columns(batch)
            for key, value in zip(columns.keys, columns.values, strict=True):
                if key is None or value is None or not key.startswith(_PENDING):
                    continue
                if found := decode_key(key):
                    self.committed.pop(found[4], None)


def _columns(batch: BatchView) -> Columns:
    columns = Columns()
    append_columns(batch, columns, with_headers=False)
    return columns


def _commits(batch: BatchView) -> bool:
    """Whether a marker commits: its key is a version and a type."""
    [key] = _columns(batch).keys
    return key is not None and int.from_bytes(key[2:4], "big") == COMMITTED


async def end_transaction(
    runtime: GroupRuntime, partition: int, shard: Shard, producer_id: int, committed: bool
) -> None:
    """Returns when that is durable. Raises KafkaError when the shard's life is over: then the next owner of
    the partition does it. A later life of the shard here may have offsets of the producer's next
    transaction, which are not to be ended."""
    while True:
        if runtime.shards[partition] is not shard:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        error = await runtime.end_transaction(partition, producer_id, committed=committed)
        if not error:
            return
        if error == ErrorCode.NOT_COORDINATOR:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        await asyncio.sleep(AGAIN_MS / 1000)


async def leader_of(topology: Topology, topic: str, partition: int) -> Node:
    """Raises ClientError, KafkaError."""
    await topology.ensure([topic])
    found = topology.leader(topic, partition)
    if isinstance(found, Node):
        return found
    topology.suspect([topic])
    raise KafkaError(found)


async def offset_of(topology: Topology, topic: str, partition: int, time: int) -> int:
    """`time`: EARLIEST or LATEST. Raises ClientError, KafkaError."""
    leader = await leader_of(topology, topic, partition)
    try:
        answer = await topology.ask(leader, list_offsets({(topic, partition): time}), "offsets")
    except ClientError:
        topology.suspect([topic])
        raise
    found = listed_offsets(answer)[topic, partition]
    if found.code:
        topology.suspect([topic])
        raise KafkaError(found.code)
    return found.offset
