"""Reading a partition from its beginning to the claim."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator
from struct import Struct

from ringleader.clients.connection.requests import Request
from ringleader.clients.errors import RetriableError
from ringleader.clients.model import EARLIEST, LATEST, Node
from ringleader.clients.offsets.list_offsets import list_offsets, listed_offsets
from ringleader.coordinator.storage.base import Failure, Row, StorageError
from ringleader.coordinator.storage.kafka.asking import check, until
from ringleader.coordinator.storage.kafka.format import LogRows
from ringleader.coordinator.storage.kafka.leaders import Leaders
from ringleader.protocol.errors import ErrorCode, MalformedError
from ringleader.protocol.messages import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchResponse,
)
from ringleader.protocol.messages.data import TOPIC_IDS_VERSION
from ringleader.protocol.records import HEADER_BYTES, OVERHEAD_BYTES, parse_header

FETCH_BYTES = 1024 * 1024
"""Bytes of one answer; two of a partition are in memory."""

FETCHES = 6
"""Requests under way at once, of all partitions: a broker answers those of one connection one by one, and
what comes has to be decoded here."""

FETCH_WAIT_MS = 500
"""How long a broker waits for records that are not replicated yet."""

ASK_MS = 8_000
"""How long a broker may take for an answer beyond that, before others are asked who leads."""

_LENGTH = Struct(">8xi")
"""How long a batch is, behind its base offset."""


class BeyondEndError(RetriableError):
    """The log ends before that offset: it has lost records, if they were there."""


class Replay:
    """Reads partitions of one topic, while the next bytes are on their way."""

    def __init__(self, leaders: Leaders, topic: str) -> None:
        self._leaders = leaders
        self._topic = topic
        self._turns = asyncio.Semaphore(FETCHES)

    async def read(self, partition: int, log: LogRows, timeout_s: float) -> AsyncIterator[list[Row]]:
        """All that `log` takes, in chunks. Raises `StorageError`: AWAY when nothing came for `timeout_s`."""
        name = f"partition {partition} of {self._topic}"
        loop = asyncio.get_running_loop()

        def ask(offset: int) -> asyncio.Task[tuple[int, bytes]]:
            deadline_s = loop.time() + timeout_s
            fetch = functools.partial(self.fetch, partition, offset)
            return loop.create_task(until(deadline_s, f"reading {name}", fetch))

        asking = ask(0)
        try:
            while not log.ended:
                offset, data = await asking
                log.next_offset = max(log.next_offset, offset)
                asking = ask(_end_of(data, offset))
                for rows in log.read(data):
                    yield rows
                    await asyncio.sleep(0)
        except MalformedError as error:
            raise StorageError(Failure.UNFIT, f"{name} cannot be read: {error}") from error
        finally:
            asking.cancel()
            await asyncio.wait([asking])

    async def fetch(self, partition: int, offset: int) -> tuple[int, bytes]:
        """Whole batches from that offset on, or from where the log begins; none, if none come for
        FETCH_WAIT_MS. Raises ClientError; `BeyondEndError` for an offset that the log has not reached."""
        node = await self._leaders.found(partition)
        wanted = FetchRequestFetchPartition(partition, fetch_offset=offset, partition_max_bytes=FETCH_BYTES)
        message = FetchRequest(
            max_wait_ms=FETCH_WAIT_MS,
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            topics=[FetchRequestFetchTopic(self._topic, partitions=[wanted])],
        )
        request = Request(FetchRequest, lambda _version: message, TOPIC_IDS_VERSION - 1, keep=_keep)
        try:
            async with self._turns:
                timeout_ms = FETCH_WAIT_MS + ASK_MS
                answer: FetchResponse = await self._leaders.ask(
                    node, [partition], request, timeout_ms=timeout_ms, purpose="replay"
                )
            check(answer.error_code)
            [one] = [one for topic in answer.responses for one in topic.partitions]
            if one.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                begin = await self._begin(partition, node)
                if begin > offset:
                    return begin, b""
                raise BeyondEndError(f"offset {offset} is beyond its end")
            check(one.error_code, None, f"Read on topic {self._topic}")
        except RetriableError:
            self._leaders.moved()
            raise
        return offset, one.records or b""

    async def end(self, partition: int) -> int:
        """The offset after the last record that all replicas in sync have. Raises ClientError."""
        return await self._listed(partition, await self._leaders.found(partition), LATEST)

    async def _begin(self, partition: int, node: Node) -> int:
        return await self._listed(partition, node, EARLIEST)

    async def _listed(self, partition: int, node: Node, time: int) -> int:
        place = self._topic, partition
        request = list_offsets({place: time})
        answer = await self._leaders.ask(node, [partition], request, timeout_ms=ASK_MS, purpose="replay")
        found = listed_offsets(answer)[place]
        check(found.code, None, f"Describe on topic {self._topic}")
        return found.offset


def _end_of(data: bytes, offset: int) -> int:
    """The offset after the last whole batch."""
    last, start = -1, 0
    while len(data) - start >= HEADER_BYTES:
        (length,) = _LENGTH.unpack_from(data, start)
        if length + OVERHEAD_BYTES > len(data) - start:
            break
        last = start
        start += max(0, length) + OVERHEAD_BYTES
    return offset if last < 0 else parse_header(data, last).next_offset


def _keep(response: FetchResponse) -> bool:
    for topic in response.responses:
        for part in topic.partitions:
            if part.records is not None:
                part.records = bytes(part.records)
    return False
