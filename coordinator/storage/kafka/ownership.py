"""Taking a partition over, so that no earlier owner can write to it any more.

1. Fence: the transactional id PREFIX-PARTITION gets a new epoch from the cluster's transaction coordinator.
   No transaction is ever begun under it.
2. Other producers that the partition's leader knew before are ended for good, by a batch of their last
   possible epoch. There are none but after the cluster has forgotten the transactional id (unused for
   `transactional.id.expiration.ms`, and an owner does not use it) or its epochs were used up: then the fence
   is another producer id, and the leader would go on taking what the old one writes.
3. Claim: the first batch of the new epoch. From its acknowledgement on, the leader refuses all older ones.

Every batch that a predecessor managed to write lies before the claim.
"""

from __future__ import annotations

import functools

from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.requests import TRANSACTION, find_coordinator, found_coordinator, plain
from ringleader.clients.errors import RetriableError
from ringleader.clients.model import Node
from ringleader.coordinator.storage.base import Record
from ringleader.coordinator.storage.kafka.asking import check, until
from ringleader.coordinator.storage.kafka.format import CLAIM_KEY, FENCE_EPOCH, Claim
from ringleader.coordinator.storage.kafka.writer import Sender, Writer, uptime_s
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    DescribeProducersRequest,
    DescribeProducersRequestTopicRequest,
    InitProducerIdRequest,
)

TRANSACTION_TIMEOUT_MS = 60_000
"""InitProducerId requires a value; there are no transactions."""

ASK_MS = 8_000
"""How long one broker may take for an answer, before others are asked."""

_ELSEWHERE = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)


class Ownership:
    """Of partitions of one topic, by one node."""

    def __init__(self, cluster: Cluster, sender: Sender, topic: str, prefix: str) -> None:
        self._cluster = cluster
        self._sender = sender
        self._topic = topic
        self._prefix = prefix
        self._coordinators: dict[int, Node] = {}
        """Of the transactional ids, by partition."""

    async def take(self, partition: int, claim: Claim, deadline_s: float) -> tuple[Writer, int]:
        """Own a partition: who writes to it from now on, and the offset of the claim. Raises
        `StorageError`."""
        name = f"partition {partition} of {self._topic}"
        # Asked for before the fence: what is known by then and is not what the fence gives is no producer of
        # the transactional id any more. Later, it could be that of the next owner.
        producers = functools.partial(self._producers, partition)
        known = await until(deadline_s, f"looking for producers of {name}", producers)
        fence = functools.partial(self._fence, partition)
        producer_id, epoch, requested_s = await until(deadline_s, f"fencing {name}", fence)
        for other in known:
            if other == producer_id:
                continue
            writer = Writer(partition, name, other, FENCE_EPOCH, uptime_s())
            await self._write(writer, (CLAIM_KEY, claim.encode()), deadline_s)
        writer = Writer(partition, name, producer_id, epoch, requested_s)
        return writer, await self._write(writer, (CLAIM_KEY, claim.encode()), deadline_s)

    async def _write(self, writer: Writer, record: Record, deadline_s: float) -> int:
        written = writer.add([record], deadline_s)
        self._sender.ready(writer)
        return await written

    async def _fence(self, partition: int) -> tuple[int, int, float]:
        """Producer id, epoch, and `uptime_s` when they were asked for."""
        node = await self._coordinator(partition)
        request = InitProducerIdRequest(f"{self._prefix}-{partition}", TRANSACTION_TIMEOUT_MS)
        requested_s = uptime_s()
        try:
            answer = await self._cluster.send(
                node, plain(request), request_timeout_ms=ASK_MS, purpose="fence"
            )
        except RetriableError:
            self._coordinators.pop(partition, None)
            raise
        if answer.error_code in _ELSEWHERE:
            self._coordinators.pop(partition, None)
        check(answer.error_code, None, f"Write on transactional ids that begin with {self._prefix}-")
        return answer.producer_id, answer.producer_epoch, requested_s

    async def _coordinator(self, partition: int) -> Node:
        """Asking for it makes the cluster's `__transaction_state`, if need be."""
        if partition not in self._coordinators:
            request = find_coordinator(f"{self._prefix}-{partition}", TRANSACTION)
            code, node = found_coordinator(await self._sender.leaders.ask_any(request, "fence"))
            check(code, None, f"Describe on transactional ids that begin with {self._prefix}-")
            assert node is not None
            self._coordinators[partition] = node
        return self._coordinators[partition]

    async def _producers(self, partition: int) -> list[int]:
        """Producer ids that the leader takes batches of."""
        leaders = self._sender.leaders
        node = await leaders.found(partition)
        partitions = DescribeProducersRequestTopicRequest(self._topic, [partition])
        request = plain(DescribeProducersRequest([partitions]))
        try:
            answer = await leaders.ask(node, [partition], request, timeout_ms=ASK_MS, purpose="fence")
            [one] = [one for topic in answer.topics for one in topic.partitions]
            check(one.error_code, one.error_message, f"Read on topic {self._topic}")
        except RetriableError:
            leaders.moved()
            raise
        return [
            known.producer_id
            for known in one.active_producers
            # Without a sequence number are those that only markers of their transactions were written for.
            if known.producer_epoch < FENCE_EPOCH and known.last_sequence >= 0
        ]
