"""One partition's records on their way: the batch that is being filled, and those that are to be sent."""

from __future__ import annotations

import asyncio
from typing import Self

from ringleader.clients.model import TopicPartition
from ringleader.clients.produce.batch_builder import RecordBuilder
from ringleader.clients.produce.outcome import Fate
from ringleader.clients.produce.partition_queue import SEQUENCES, OutgoingBatch, PartitionQueue
from ringleader.protocol.compression import Compression
from ringleader.protocol.records import stamp_producer

MAX_EPOCH = 2**15 - 1


class Parcel(OutgoingBatch):
    """A batch on its way. `fate`: where the outcomes of its records are reported, which begin there at
    `skipped`. `size_bytes`: what they take of the memory; `era`: how many calls of `flush` were before the
    first."""

    __slots__ = ("era", "fate", "size_bytes", "skipped", "tries")

    def __init__(
        self,
        topic: str,
        partition: int,
        first: int,
        count: int,
        data: bytes | memoryview,
        first_s: float,
        fate: Fate,
        skipped: int,
        size_bytes: int,
        era: int,
    ) -> None:
        super().__init__(topic, partition, first, count, data, first_s)
        self.fate = fate
        self.skipped = skipped
        self.size_bytes = size_bytes
        self.era = era
        self.tries = 0

    def _part(self, skipped: int, count: int, data: bytes) -> Self:
        size = self.size_bytes // 2
        return type(self)(
            self.topic,
            self.partition,
            self.first + skipped,
            count,
            data,
            self.first_s,
            self.fate,
            self.skipped + skipped,
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
        self.fate = self._open_fate()
        """Of the batch that is being filled."""
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
        return not self.batches and not self.builder.count

    def close_open(self, codec: Compression, transactional: bool) -> None:
        """The batch that is being filled goes to the end of the queue."""
        fate = self.fate
        fate.times_ms = times = self.builder.times_ms
        first, count, size = self._rows, self.builder.count, self.builder.size_bytes
        sequence = (first - self._base) % SEQUENCES if self.producer[0] >= 0 else -1
        data = self.builder.build(times[0], codec, *self.producer, sequence, transactional)
        here, whence = (self.topic, self.partition), (data, self.opened_s)
        self.batches.append(Parcel(*here, first, count, *whence, fate, 0, size, self.era))
        self._rows += count
        self.fate = self._open_fate()

    def _open_fate(self) -> Fate:
        fate = Fate(asyncio.get_running_loop(), self.topic, self.partition)
        self.builder.batch = fate.batch
        return fate

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
