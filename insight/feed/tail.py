"""Reads partitions of topics as they grow: every record once, in the order of its partition.

Stands on the consumer's reader (leaders, fetching ahead, positions), and takes whole batches out of its
buffers: what a consumer makes of a record for an application would cost more than all that is done with it.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.errors import ClientError, RetriableError
from ringleader.clients.fetch.errors import (
    CorruptRecordError,
    LogTruncatedError,
    NoOffsetError,
    OffsetGoneError,
)
from ringleader.clients.fetch.model import ConsumerSettings
from ringleader.clients.fetch.partition_state import PartitionState
from ringleader.clients.fetch.reader import Reader
from ringleader.clients.model import EARLIEST, LATEST, OffsetAndMetadata, TopicPartition
from ringleader.insight.feed.transactions import Transactions
from ringleader.insight.history import Position
from ringleader.protocol.columns import Columns, append_columns
from ringleader.protocol.errors import MalformedError
from ringleader.protocol.records import BatchView

MAX_WAIT_MS = 500
"""The most time that a broker gathers records for an answer: this late they may be."""
MIN_BYTES = 256 * 1024
"""The answer is sent at once with as many: many small answers would cost more than the records in them."""
PARTITION_BYTES = 256 * 1024
BUFFER_BYTES = 16 * 1024 * 1024
LOOKUP_TIMEOUT_S = 10.0


class Gap(NamedTuple):
    """Records that were gone before they were read. `found`: where it goes on. `why` is a clause."""

    topic: str
    partition: int
    wanted: int
    found: int
    why: str


Data = Sequence[bytes | None]
Tell = Callable[[str, int, Sequence[int], Sequence[int], Data, Data], None]
"""Called with topic and partition, and with offsets, timestamps in ms, keys and values of some records."""


@dataclass(slots=True)
class _Place:
    """A partition."""

    next_offset: int
    transactions: Transactions
    holes: int = 0
    """Offsets without a record: compaction took them."""

    @property
    def position(self) -> Position:
        first = self.transactions.first_offset
        return Position(self.next_offset, self.next_offset if first is None else first)


class Tail:
    """`start`, then `read` again and again; `close` ends it, with the cluster's connections."""

    def __init__(self, cluster: Cluster, tell: Tell, on_gap: Callable[[Gap], None]) -> None:
        self._tell = tell
        self._on_gap = on_gap
        settings = ConsumerSettings(
            auto_offset_reset="none",
            auto_commit=False,
            fetch_min_bytes=MIN_BYTES,
            fetch_max_wait_ms=MAX_WAIT_MS,
            fetch_max_bytes=BUFFER_BYTES // 2,
            max_partition_fetch_bytes=PARTITION_BYTES,
            buffer_max_bytes=BUFFER_BYTES,
        )
        self._reader = Reader(cluster, settings, _nothing_committed)
        self._places: dict[TopicPartition, _Place] = {}
        self.unreadable = 0
        """Batches that could not be read and were passed."""

    def start(self) -> None:
        """Begin."""
        self._reader.start()

    async def close(self) -> None:
        """End."""
        await self._reader.close()

    def add(self, positions: Mapping[TopicPartition, Position]) -> None:
        """Partitions to read from now on, and where from."""
        self._reader.add(positions)
        for tp, position in positions.items():
            self._places[tp] = _Place(position.next_offset, Transactions())
            self._reader.seek(tp, position.again)
        self._reader.release(positions)

    @property
    def positions(self) -> dict[TopicPartition, Position]:
        """The position of each partition: all records before it were delivered."""
        return {tp: place.position for tp, place in self._places.items()}

    @property
    def holes(self) -> int:
        """Offsets that had no record any more, of all that was read."""
        return sum(place.holes for place in self._places.values())

    def is_past(self, ends: Mapping[TopicPartition, int]) -> bool:
        """Whether all records before these offsets were delivered."""
        return all(self._places[tp].next_offset >= end for tp, end in ends.items())

    def left(self, ends: Mapping[TopicPartition, int]) -> int:
        """How many offsets there are before these."""
        return sum(max(0, end - self._places[tp].next_offset) for tp, end in ends.items())

    async def offsets(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """ListOffsets, for partitions that are or will be read. Raises BrokerError and RetriableError."""
        found = await self._reader.offsets(times, LOOKUP_TIMEOUT_S)
        return {tp: offset for tp, (offset, _) in found.items()}

    async def read(self, timeout_s: float) -> int:
        """Tell what has come, as soon as there is something; how many records: 0 when time is over. Raises
        ClientError for what another try does not cure."""
        reader = self._reader
        try:
            async with asyncio.timeout(timeout_s):
                while not any(state.ready for state in reader.states.values()):
                    reader.something.clear()
                    self._check()
                    await reader.something.wait()
        except TimeoutError:
            return 0
        self._check()
        delivered = 0
        for tp, state in list(reader.states.items()):
            if state.ready:
                delivered += self._take(self._places[tp], state)
                if state.error is not None:
                    await self._go_on(tp, state, state.error)
                reader.fetcher.taken(state)
                await asyncio.sleep(0)  # polls and answers have their turn
        return delivered

    # ---- inside ----

    def _check(self) -> None:
        if self._reader.broken is not None:
            raise self._reader.broken

    def _take(self, place: _Place, state: PartitionState) -> int:
        """All that was fetched of one partition."""
        delivered, columns = 0, Columns()
        while state.error is None:
            try:
                found = state.buffer.next_view(True)
                if found is None:
                    break
                view = found[0]
                header = view.header
                if header.next_offset <= (state.position or 0):
                    continue
                if header.is_transactional:
                    delivered += self._say(place, state, columns)
                    delivered += self._transactional(place, state, view)
                else:
                    append_columns(view, columns, with_headers=False)
            except MalformedError as error:
                delivered += self._say(place, state, columns)
                at = state.position or 0
                after = state.buffer.end_of_bad(at) if state.buffer else at + 1
                state.fail(CorruptRecordError(*state.topic_partition, at, after, error.reason))
            else:
                state.position, state.epoch = header.next_offset, header.leader_epoch
        return delivered + self._say(place, state, columns)

    def _say(self, place: _Place, state: PartitionState, columns: Columns) -> int:
        """Tell these records, which reach up to the partition's position, and empty the columns."""
        begin = place.next_offset
        if columns.offsets and columns.offsets[0] < begin:
            columns.cut(bisect_left(columns.offsets, begin), len(columns))
        delivered = len(columns)
        if delivered:
            offsets, times = columns.offsets, columns.timestamps_ms
            self._tell(*state.topic_partition, offsets, times, columns.keys, columns.values)
        self._passed(place, state.position or 0, delivered)
        columns.cut(delivered, delivered)
        return delivered

    def _transactional(self, place: _Place, state: PartitionState, view: BatchView) -> int:
        """A batch of a transaction, or the markers that end some."""
        header, begin, delivered, columns = view.header, place.next_offset, 0, Columns()
        append_columns(view, columns, with_headers=False)
        offsets = columns.offsets
        if not header.is_control:
            for offset, key, value in zip(offsets, columns.keys, columns.values, strict=True):
                place.transactions.add(header.producer_id, offset, key, value)
        else:
            for offset, at_ms, marker in zip(offsets, columns.timestamps_ms, columns.keys, strict=True):
                pairs = place.transactions.end(header.producer_id, marker)
                if pairs and offset >= begin:
                    delivered += len(pairs)
                    keys, values = zip(*pairs, strict=True)
                    times = [at_ms] * len(pairs)
                    self._tell(*state.topic_partition, [offset] * len(pairs), times, keys, values)
        self._passed(place, header.next_offset, len(offsets) - bisect_left(offsets, begin))
        return delivered

    @staticmethod
    def _passed(place: _Place, next_offset: int, there: int) -> None:
        """All records before `next_offset` were delivered; `there`: the number of those that were new."""
        if next_offset > place.next_offset:
            place.holes += next_offset - place.next_offset - there
            place.next_offset = next_offset

    async def _go_on(self, tp: TopicPartition, state: PartitionState, error: ClientError) -> None:
        """The log is not as it was: go on where it has something, and say so."""
        place = self._places[tp]
        wanted, again = place.position
        if isinstance(error, CorruptRecordError):
            self._reader.seek(tp, error.next_offset)
            if error.next_offset > wanted:  # else it was passed before, and is read for what was open
                self.unreadable += 1
                self._on_gap(Gap(*tp, wanted, error.next_offset, "they cannot be read"))
                place.next_offset = error.next_offset
            return
        if isinstance(error, LogTruncatedError) and error.end_offset is not None:
            found, why = error.end_offset, "a leader was elected that did not have them"
        elif isinstance(error, OffsetGoneError | NoOffsetError | LogTruncatedError):
            try:
                start = (await self.offsets({tp: EARLIEST}))[tp]
                end = (await self.offsets({tp: LATEST}))[tp]
            except RetriableError:
                state.not_before_s = 0.0
                return  # asked again when it is looked at next
            again = max(again, start)
            if isinstance(error, OffsetGoneError) and error.created_again:
                found, why = start, "the topic was deleted and made again"
            elif wanted < start:
                found, why = start, "retention or compaction had removed them"
            else:
                found, why = min(wanted, end), "the log was truncated"
        else:
            raise error
        self._on_gap(Gap(*tp, wanted, found, why))
        # Transactions that were open before the gap are read again: they are open still.
        self._places[tp] = _Place(found, Transactions())
        self._reader.seek(tp, min(again, found))


async def _nothing_committed(_partitions: object) -> Mapping[TopicPartition, OffsetAndMetadata]:
    return {}
