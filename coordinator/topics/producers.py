"""Idempotent producers of one partition: which batch is a duplicate, which comes out of order.

Sans-I/O. Source: KIP-98, KIP-360; Kafka's ProducerStateManager. As at a broker of today, a producer that is
not known (its records are gone, or it was forgotten) may begin with any sequence number.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ringleader.protocol.errors import ErrorCode, KafkaError
from ringleader.protocol.records import BatchHeader

KEPT_BATCHES = 5
"""The most batches that an idempotent producer may have on their way."""
MAX_PRODUCERS = 20_000
"""Producers remembered per partition; above it the one that produced longest ago is forgotten."""
MAX_ALL_PRODUCERS = 200_000
"""Producers remembered over all partitions, about 256 MiB of memory; above it a partition whose next producer
comes forgets its own that produced longest ago, if it has another."""
NO_LIMIT = 2**63
_SEQUENCES = 2**31


class ProducedBatch(NamedTuple):
    """Sequence numbers of a batch, first and last, and where it is."""

    first_sequence: int
    last_sequence: int
    base_offset: int
    timestamp_ms: int
    """The batch's largest timestamp."""


class ProducerEntry(NamedTuple):
    """The remembered state of one producer."""

    epoch: int
    batches: tuple[ProducedBatch, ...]
    """The last ones, oldest first; empty when a marker has raised the epoch since."""
    seen_ms: int
    """When it last produced, wall clock."""


class ProducerCount:
    """How many producers all partitions remember together, and which may be remembered."""

    def __init__(self) -> None:
        self.value = 0
        self.unused = NO_LIMIT
        """No producer id from this one on was given out: a client that writes one made it up."""


class Producers:
    """All producers of a partition, in the order in which they last produced."""

    __slots__ = ("_all", "_entries")

    def __init__(self, entries: dict[int, ProducerEntry] | None = None) -> None:
        self._entries = entries or {}
        self._all = ProducerCount()

    def join(self, all_producers: ProducerCount) -> None:
        """From here on these are counted there. Those that may not be remembered are forgotten."""
        for producer_id in [one for one in self._entries if one >= all_producers.unused]:
            del self._entries[producer_id]
        self._all = all_producers
        self._all.value += len(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[int]:
        return iter(self._entries)

    def check(self, header: BatchHeader) -> ProducedBatch | None:
        """Whether this batch may be appended: None, or the earlier batch that it repeats.

        Raises KafkaError: INVALID_PRODUCER_EPOCH for an epoch before the current one,
        OUT_OF_ORDER_SEQUENCE_NUMBER for a gap, for what is older than the kept batches, or for a new epoch
        that does not begin with 0.
        """
        entry = self._entries.get(header.producer_id)
        if entry is None:
            return None
        first = header.base_sequence
        if header.producer_epoch < entry.epoch:
            text = f"epoch {header.producer_epoch} of producer {header.producer_id}, {entry.epoch} is current"
            raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH, text)
        # A new epoch begins with 0.
        batches = entry.batches if header.producer_epoch == entry.epoch else ()
        last = last_sequence(header)
        for batch in batches:
            if batch.first_sequence == first and batch.last_sequence == last:
                return batch
        due = (batches[-1].last_sequence + 1) % _SEQUENCES if batches else 0
        if first != due:
            text = f"sequence {first} of producer {header.producer_id}, {due} is due"
            raise KafkaError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, text)
        return None

    def add(self, header: BatchHeader, base_offset: int, now_ms: int) -> ProducerEntry | None:
        """A batch that passed `check` is appended at `base_offset`. Returns what `take_back` wants.

        An id that was not given out is not remembered: the producer who gets it later would find itself out
        of order, or fenced.
        """
        producer_id = header.producer_id
        if producer_id >= self._all.unused:
            return None
        entry = self._entries.pop(producer_id, None)
        batch = ProducedBatch(header.base_sequence, last_sequence(header), base_offset, header.max_timestamp)
        kept = () if entry is None or entry.epoch != header.producer_epoch else entry.batches
        self._entries[producer_id] = ProducerEntry(
            header.producer_epoch, (*kept[1 - KEPT_BATCHES :], batch), now_ms
        )
        self._all.value += entry is None
        if len(self._entries) > (MAX_PRODUCERS if self._all.value <= MAX_ALL_PRODUCERS else 1):
            self._forget(next(iter(self._entries)))
        return entry

    def fence(self, producer_id: int, epoch: int, now_ms: int) -> ProducerEntry | None:
        """A marker ends the producer's transaction: batches of earlier epochs are refused from here on.
        Returns what `take_back` wants."""
        entry = self._entries.get(producer_id)
        # Of an unknown producer nothing is remembered: its batches are held against its transaction anyway.
        if entry is not None and entry.epoch <= epoch:
            del self._entries[producer_id]
            kept = entry.batches if entry.epoch == epoch else ()
            self._entries[producer_id] = ProducerEntry(epoch, kept, now_ms)
        return entry

    def epoch(self, producer_id: int) -> int:
        """The epoch it last produced with, -1 if it is not known."""
        entry = self._entries.get(producer_id)
        return -1 if entry is None else entry.epoch

    def take_back(self, producer_id: int, before: ProducerEntry | None) -> None:
        """The producer's last batch that was not taken back was not appended after all."""
        if producer_id in self._entries:
            self._forget(producer_id)
        if before is not None:
            self._entries[producer_id] = before
            self._all.value += 1

    def expire(self, before_ms: int) -> None:
        """Forget producers that last produced before this time."""
        # In the order of their last batch, but for what was taken back and for a clock that jumped.
        for producer_id, entry in list(self._entries.items()):
            if entry.seen_ms >= before_ms:
                break
            self._forget(producer_id)

    def _forget(self, producer_id: int) -> None:
        del self._entries[producer_id]
        self._all.value -= 1

    def dump(self) -> list[list[object]]:
        """As plain lists, for a snapshot."""
        return [[pid, entry.epoch, entry.seen_ms, *entry.batches] for pid, entry in self._entries.items()]

    @classmethod
    def load(cls, rows: list[list[object]]) -> Producers:
        """Load the output of `dump`. Raises ValueError or TypeError for anything else."""
        entries: dict[int, ProducerEntry] = {}
        for pid, epoch, seen_ms, *batches in rows:
            kept = tuple(ProducedBatch(*batch) for batch in batches)  # type: ignore[misc]
            if not isinstance(pid, int) or not isinstance(epoch, int) or not isinstance(seen_ms, int):
                raise ValueError("no snapshot of producers")
            entries[pid] = ProducerEntry(epoch, kept, seen_ms)
        return cls(entries)


def last_sequence(header: BatchHeader) -> int:
    """Sequence number of a batch's last record; after 2147483647 comes 0."""
    return (header.base_sequence + header.last_offset_delta) % _SEQUENCES
