"""One partition's records on their way: the batch that is being filled, and those that are to be sent."""

from __future__ import annotations

import asyncio
import time
from typing import NamedTuple, Self

from ringleader.clients.model import TopicPartition
from ringleader.clients.produce.batch_builder import BatchBuilder, RowSizes
from ringleader.clients.produce.model import RecordMetadata
from ringleader.clients.produce.partition_queue import SEQUENCES, OutgoingBatch, PartitionQueue
from ringleader.clients.produce.rows import Row, RowList
from ringleader.protocol.compression import Compression
from ringleader.protocol.records import stamp_producer

MAX_EPOCH = 2**15 - 1


class Pending(NamedTuple):
    """A record that is not confirmed: where its outcome is told, its time, its bytes in memory, and how many
    calls of `flush` were before it."""

    outcome: asyncio.Future[RecordMetadata]
    timestamp_ms: int
    size_bytes: int
    era: int


class Parcel(OutgoingBatch):
    """A batch on its way, with the records that wait for it."""

    __slots__ = ("pending", "tries")

    def __init__(
        self,
        topic: str,
        partition: int,
        first: int,
        count: int,
        data: bytes,
        first_s: float,
        pending: list[Pending],
    ) -> None:
        super().__init__(topic, partition, first, count, data, first_s)
        self.pending = pending
        self.tries = 0

    def _part(self, skipped: int, count: int, data: bytes) -> Self:
        pending = self.pending[skipped : skipped + count]
        return type(self)(
            self.topic, self.partition, self.first + skipped, count, data, self.first_s, pending
        )


class Lane(PartitionQueue):
    """The way of one partition."""

    batches: list[Parcel]  # type: ignore[assignment]

    def __init__(self, tp: TopicPartition, builder: BatchBuilder, producer: tuple[int, int]) -> None:
        """`producer`: its id and epoch; the id is -1 for one that is not idempotent."""
        super().__init__(*tp, builder, producer[0] >= 0)
        self.topic_partition = tp
        self.producer = producer
        self.pending: list[Pending] = []
        """Of the batch that is being filled."""
        self.opened_s = 0.0
        """When that had its first record."""
        self.not_before_s = 0.0
        """After a failure: when to try again."""
        self.tries = 0
        self.gave_up = False
        """A batch before those in the queue was not stored, or it is not known: their sequence has a gap."""
        self._restarts = False
        self._base = 0

    @property
    def empty(self) -> bool:
        """Whether there is nothing to send."""
        return not self.batches and not self.pending

    def fill(self, row: Row, size_bytes: int, pending: Pending, now_s: float) -> bool:
        """Take a record into the batch; False when it has no room beside those that are in it. Raises
        RowTooLargeError."""
        if not self.builder.fill(RowList([row]), RowSizes([size_bytes], size_bytes), 0):
            return False
        if not self.pending:
            self.opened_s = now_s
        self.pending.append(pending)
        return True

    def close_open(self, codec: Compression, transactional: bool) -> None:
        """The batch that is being filled goes to the end of the queue."""
        pending, self.pending = self.pending, []
        first, count = self._rows, len(pending)
        sequence = (first - self._base) % SEQUENCES if self.producer[0] >= 0 else -1
        data = self.builder.build(int(time.time() * 1000), codec, *self.producer, sequence, transactional)
        self.batches.append(Parcel(self.topic, self.partition, first, count, data, self.opened_s, pending))
        self._rows += count

    def confirmed(self) -> None:
        """The leader has stored a batch: it knows the producer."""
        self._acknowledged = True
        self.tries = 0

    def restart(self) -> None:
        """Begin with a new epoch and the first sequence as soon as nothing is on its way: the leader accepts
        that behind a gap."""
        self._restarts = True

    def restarted(self) -> bool:
        """Whether batches may be sent; makes them those of the new epoch first, if it is time for that."""
        if not self._restarts:
            return True
        if self.in_flight:
            return False
        producer_id, epoch = self.producer
        self.renumber((producer_id, epoch + 1))
        return True

    def renumber(self, producer: tuple[int, int]) -> None:
        """Be a new producer's: its sequence begins with what is in the queue."""
        self.producer = producer
        self._restarts = self.gave_up = self._acknowledged = False
        self._base = self.batches[0].first if self.batches else self._rows
        for parcel in self.batches:
            parcel.data = stamp_producer(parcel.data, *producer, (parcel.first - self._base) % SEQUENCES)
