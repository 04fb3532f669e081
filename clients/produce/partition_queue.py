"""One partition's way to its broker: batches in order, whatever is sent again."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import Generic, NamedTuple, Self, TypeVar

from ringleader.clients.produce.batch_builder import Builder
from ringleader.protocol.compression import Compression
from ringleader.protocol.records import Record, build_batch, iter_batches

B = TypeVar("B", bound=Builder)
SEQUENCES = 2**31
"""Sequence numbers start at 0 again after the highest int32."""


class Written(NamedTuple):
    """The records that a partition has stored. ``first_offset`` to ``last_offset`` may hold records of
    others, and are -1 while no broker has reported them."""

    records: int
    first_offset: int
    last_offset: int


class OutgoingBatch:
    """A batch on its way. ``first``: the number of its first row among all of its partition."""

    __slots__ = ("count", "data", "first", "first_s", "partition", "topic")

    def __init__(
        self, topic: str, partition: int, first: int, count: int, data: bytes | memoryview, now_s: float
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.first = first
        self.count = count
        self.data = data
        self.first_s = now_s

    @property
    def name(self) -> str:
        """``topic-0``."""
        return f"{self.topic}-{self.partition}"

    def halves(self) -> tuple[Self, Self]:
        """Two batches of the same rows, for a broker to which one is too large."""
        (view,) = iter_batches(self.data)
        header, records = view.header, list(view.records())
        middle = len(records) // 2

        def part(some: Sequence[Record], skipped: int) -> bytes:
            sequence = -1 if header.producer_id < 0 else (header.base_sequence + skipped) % SEQUENCES
            return build_batch(
                [Record(at, r.timestamp_ms, r.key, r.value, r.headers) for at, r in enumerate(some)],
                compression=header.compression,
                producer_id=header.producer_id,
                producer_epoch=header.producer_epoch,
                base_sequence=sequence,
                transactional=header.is_transactional,
            )

        first = self._part(0, middle, part(records[:middle], 0))
        return first, self._part(middle, len(records) - middle, part(records[middle:], middle))

    def _part(self, skipped: int, count: int, data: bytes) -> Self:
        return type(self)(self.topic, self.partition, self.first + skipped, count, data, self.first_s)


class PartitionQueue(Generic[B]):
    """The batches of one partition. Once one comes back, nothing goes out before all others are answered:
    what a broker refuses for the gap before it would only come back too."""

    def __init__(self, topic: str, partition: int, builder: B, idempotent: bool) -> None:
        self.topic = topic
        self.partition = partition
        self.builder = builder
        self.batches: list[OutgoingBatch] = []
        """To be sent, in order."""
        self.in_flight = 0
        self._idempotent = idempotent
        # Until the leader knows the producer it would take any sequence for the first.
        self._acknowledged = False
        self._node: int | None = None
        self._halted = False
        self._rows = 0
        self.written = Written(0, -1, -1)

    def may_send(self, node: int) -> bool:
        """Whether the first batch of the queue may go to this leader now.

        A second one goes ahead of the first's answer only with sequences, and on the same connection.
        """
        if not self.in_flight:
            return True
        return self._idempotent and self._acknowledged and not self._halted and node == self._node

    def close(
        self, timestamp_ms: int, codec: Compression, producer_id: int, epoch: int, now_s: float
    ) -> OutgoingBatch:
        """The builder's rows as a batch at the end of the queue."""
        count = self.builder.count
        sequence = self._rows % SEQUENCES if producer_id >= 0 else -1
        data = self.builder.build(timestamp_ms, codec, producer_id, epoch, sequence)
        batch = OutgoingBatch(self.topic, self.partition, self._rows, count, data, now_s)
        self.batches.append(batch)
        self._rows += count
        return batch

    def sent(self, batch: OutgoingBatch, node: int) -> None:
        """The first batch of the queue goes out to this node."""
        self._node = node
        self._halted = self._halted and self.in_flight > 0
        self.batches.remove(batch)
        self.in_flight += 1

    def taken(self, batch: OutgoingBatch, base_offset: int) -> None:
        """A leader has the batch, and with sequences every one before it: of those that wait to be sent
        again the answer was lost, or they were refused the second time only."""
        self._acknowledged = True
        first, last = self.written.first_offset, self.written.last_offset
        if base_offset >= 0:
            first = base_offset if first < 0 else first
            last = max(last, base_offset + batch.count - 1)
        self.written = Written(max(self.written.records, batch.first + batch.count), first, last)
        if self._idempotent:
            self.batches = [found for found in self.batches if found.first > batch.first]

    def back(self, *batches: OutgoingBatch) -> None:
        """Batches that were not taken, or whose outcome is unknown."""
        self._halted = True
        for batch in batches:
            bisect.insort(self.batches, batch, key=lambda found: found.first)

    def made_again(self) -> None:
        """The topic may be another one of the same name by now, whose leader does not know the producer."""
        self._acknowledged = False

    def behind(self, batch: OutgoingBatch) -> bool:
        """Whether an earlier batch waits to be sent again."""
        return bool(self.batches) and self.batches[0].first < batch.first
