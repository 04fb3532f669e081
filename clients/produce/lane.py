"""One partition's records on their way: the batch that is being filled, and those that are to be sent."""

from __future__ import annotations

import asyncio
from typing import Self

from ringleader.clients.model import TopicPartition
from ringleader.clients.produce.batch_builder import RecordBuilder
from ringleader.clients.produce.model import RecordMetadata
from ringleader.clients.produce.partition_queue import SEQUENCES, OutgoingBatch, PartitionQueue
from ringleader.protocol.compression import Compression
from ringleader.protocol.records import stamp_producer

MAX_EPOCH = 2**15 - 1


class Parcel(OutgoingBatch):
    """A batch on its way, with the records that wait for it: where the outcome of each is told, and its time.
    `size_bytes`: what they take of the memory; `era`: how many calls of `flush` were before the first."""

    __slots__ = ("era", "outcomes", "size_bytes", "times_ms", "tries")

    def __init__(
        self,
        topic: str,
        partition: int,
        first: int,
        count: int,
        data: bytes,
        first_s: float,
        outcomes: list[asyncio.Future[RecordMetadata]],
        times_ms: list[int],
        size_bytes: int,
        era: int,
    ) -> None:
        super().__init__(topic, partition, first, count, data, first_s)
        self.outcomes = outcomes
        self.times_ms = times_ms
        self.size_bytes = size_bytes
        self.era = era
        self.tries = 0

    def _part(self, skipped: int, count: int, data: bytes) -> Self:
        stop = skipped + count
        size = self.size_bytes // 2
        return type(self)(
            self.topic,
            self.partition,
            self.first + skipped,
            count,
            data,
            self.first_s,
            self.outcomes[skipped:stop],
            self.times_ms[skipped:stop],
            self.size_bytes - size if skipped else size,
            self.era,
        )


class Lane(PartitionQueue[RecordBuilder]):
    """The way of one partition."""

    batches: list[Parcel]  # type: ignore[assignment]

    def __init__(self, tp: TopicPartition, builder: RecordBuilder, producer: tuple[int, int]) -> None:
        """`producer`: its id and epoch; the id is -1 for one that is not idempotent."""
        super().__init__(*tp, builder, producer[0] >= 0)
        self.topic_partition = tp
        self.producer = producer
        self.outcomes: list[asyncio.Future[RecordMetadata]] = []
        """Of the records in the batch that is being filled."""
        self.opened_s = 0.0
        self.era = 0
        """When that had its first record: the loop's time, and how many calls of `flush` had been."""
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
        return not self.batches and not self.outcomes

    def close_open(self, codec: Compression, transactional: bool) -> None:
        """The batch that is being filled goes to the end of the queue."""
        outcomes, self.outcomes = self.outcomes, []
        times, size = self.builder.times_ms, self.builder.size_bytes
        first, count = self._rows, len(outcomes)
        sequence = (first - self._base) % SEQUENCES if self.producer[0] >= 0 else -1
        data = self.builder.build(times[0], codec, *self.producer, sequence, transactional)
        here, whence = (self.topic, self.partition), (data, self.opened_s)
        self.batches.append(Parcel(*here, first, count, *whence, outcomes, times, size, self.era))
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
