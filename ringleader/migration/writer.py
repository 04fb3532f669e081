"""Writes batches to one partition of the cluster as an idempotent producer: each once, in their order."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

from ringleader.clients.connection.backoff import Backoff
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.requests import Request
from ringleader.clients.errors import BrokerError, ClientError, RetriableError, is_retriable
from ringleader.clients.model import TopicPartition
from ringleader.migration.batches import Kept, of_producer
from ringleader.protocol.errors import ErrorCode, error_name
from ringleader.protocol.messages import (
    ProduceRequest,
    ProduceRequestPartitionProduceData,
    ProduceRequestTopicProduceData,
)

PIPELINE = 5
"""Batches on their way: a broker recognises as many of a producer that are sent again."""
PATIENCE_S = 120.0
"""A batch that is not acknowledged within this time ends the copying."""
REQUEST_TIMEOUT_MS = 30_000
LEADERS_MAX_AGE_MS = 60_000
"""A leader that moved says so, and is looked up at once."""
MAX_VERSION = 11
"""Newer ones name topics by their ids, or belong to transactions of a newer kind."""

_TAKEN = (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER)


@dataclass(slots=True, eq=False)
class _Sent:
    batch: Kept
    data: bytes
    answer: asyncio.Task[None]


class PartitionWriter:
    """Of one partition; `producer`: id and epoch, given out by the cluster; `topics`: all whose leaders are
    looked up together; `purpose`: the connections it uses, which nobody else does meanwhile."""

    def __init__(
        self,
        cluster: Cluster,
        place: TopicPartition,
        producer: tuple[int, int],
        topics: Sequence[str],
        purpose: str,
    ) -> None:
        self._cluster = cluster
        self._topic, self._partition = place
        self._producer = producer
        self._topics = topics
        self._purpose = purpose
        self._sequence = 0
        self._sent: deque[_Sent] = deque()
        self._backoff = Backoff(50, 1_000, random.random)
        self.acknowledged = 0
        """Records."""

    async def add(self, batch: Kept) -> None:
        """Write it, after those before it. Raises ClientError for what no further try cures."""
        # A broker takes any sequence number of a producer that is new to it: the first has to be the first.
        while len(self._sent) >= (PIPELINE if self.acknowledged else 1):
            await self._settle()
        data = of_producer(batch.data, *self._producer, self._sequence)
        self._sequence += batch.records
        self._sent.append(_Sent(batch, data, self._begin(data)))

    async def flush(self) -> None:
        """All that was added is acknowledged. Raises as `add`."""
        while self._sent:
            await self._settle()

    async def close(self) -> None:
        """Wait no more for what is on its way."""
        answers = [one.answer for one in self._sent]
        for answer in answers:
            answer.cancel()
        await asyncio.gather(*answers, return_exceptions=True)

    def _begin(self, data: bytes) -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(self._ask(data))

    async def _settle(self) -> None:
        """The oldest is acknowledged, sending all that is not once more as often as need be."""
        loop, oldest = asyncio.get_running_loop(), self._sent[0]
        until_s = loop.time() + PATIENCE_S
        while True:
            try:
                await oldest.answer
            except RetriableError as error:
                if loop.time() >= until_s:
                    raise self._write_error(error) from None
                await self._again()
            except ClientError as error:
                raise self._write_error(error) from None
            else:
                break
        self._sent.popleft()
        self.acknowledged += oldest.batch.records
        self._backoff.reset()

    async def _again(self) -> None:
        await asyncio.gather(*(one.answer for one in self._sent), return_exceptions=True)
        await asyncio.sleep(self._backoff.next_ms() / 1000)
        for one in self._sent:
            one.answer = self._begin(one.data)

    def _write_error(self, error: ClientError) -> ClientError:
        batch = self._sent[0].batch
        text = f"{self._topic}-{self._partition}: records at offset {batch.offset} cannot be written: {error}"
        return type(error)(text, error.code)

    async def _ask(self, data: bytes) -> None:
        metadata = await self._cluster.metadata(self._topics, max_age_ms=LEADERS_MAX_AGE_MS)
        found = metadata.topics[self._topic]
        leader = next((part.leader for part in found.partitions if part.partition == self._partition), -1)
        node = metadata.brokers.get(leader)
        if node is None:
            await self._cluster.metadata(self._topics)
            raise RetriableError("the partition has no leader now")
        entry = ProduceRequestPartitionProduceData(index=self._partition, records=data)
        message = ProduceRequest(
            acks=-1,
            timeout_ms=REQUEST_TIMEOUT_MS,
            topic_data=[ProduceRequestTopicProduceData(name=self._topic, partition_data=[entry])],
        )
        request = Request(ProduceRequest, lambda _version: message, MAX_VERSION)
        answer = await self._cluster.send(node, request, purpose=self._purpose)
        [[result]] = [topic.partition_responses for topic in answer.responses]
        code = result.error_code
        if code in _TAKEN:
            return
        text = error_name(code) + (f" ({result.error_message})" if result.error_message else "")
        if is_retriable(code) or code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            # Out of order: one before it was not taken, and both are sent again.
            await self._cluster.metadata(self._topics)
            raise RetriableError(text, code)
        raise BrokerError(text, code)
