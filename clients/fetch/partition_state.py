"""One partition of a consumer: where it stands, and what has been fetched of it.

No I/O here. Everything that was fetched belongs to the position that it was asked for, which has an id: so an
answer for an older position cannot be taken for one for the present position.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from ringleader.clients.fetch.buffer import Buffer, Chunk, Part
from ringleader.clients.fetch.errors import CorruptRecordError, PartitionError
from ringleader.clients.fetch.progress import Progress, decode
from ringleader.clients.model import OffsetAndMetadata, TopicPartition
from ringleader.protocol.columns import BatchRows
from ringleader.protocol.errors import MalformedError

COMMITTED, BY_POLICY = 0, 1
"""A partition's first wish: the group's committed offset; and where `auto_offset_reset` says, if there is
none or it is gone."""

_position_ids = itertools.count(1)


class Kept(Protocol):
    """A batch that may be kept by the application."""

    def let_go(self) -> None:
        """Hold no more than is in it."""


class Handed:
    """Records that are handed out together: where they begin, and what a look at them has met. The looks may
    be in another thread than the partition's."""

    __slots__ = (
        "batch",
        "epoch",
        "error",
        "looked",
        "offset",
        "parts",
        "position_id",
        "state",
        "unreadable_at",
    )

    def __init__(self, state: PartitionState, offset: int, epoch: int, parts: Sequence[Part] = ()) -> None:
        self.state = state
        self.parts = parts
        self.position_id = state.position_id
        self.offset = offset
        """Of the first record."""
        self.unreadable_at: int | None = None
        """Of the first one that cannot be read, if a look met one behind it."""
        self.epoch = epoch
        """Leader epoch of the last record before it."""
        self.error: PartitionError | None = None
        self.looked = False
        self.batch: Callable[[], Kept | None] = lambda: None
        """The batch of them, as long as a reference keeps it."""

    @property
    def stands(self) -> bool:
        """Whether the partition has only gone on since."""
        return self.position_id == self.state.position_id


class PartitionState:
    """One assigned partition."""

    def __init__(self, tp: TopicPartition) -> None:
        self.topic_partition = tp
        self.topic, self.partition = tp
        self.paused = False
        """By the application."""
        self.full = False
        """`process` has enough of its records for now."""
        self.running = 0
        """How many of its records are in the hands of a handler of `process`."""
        self.suspended = True
        """Nothing is fetched or delivered: it has just been assigned, or is being given up."""
        self.begun = False
        """Whether the application has let its reading begin: before that nothing of it is committed."""
        self.high_watermark = -1
        self.end_offset = -1
        """Where readers of this isolation level come to the end; -1: not known yet."""
        self.log_start_offset = -1
        self.behind = True
        """Whether there should be more to fetch at once."""
        self.not_before_s = 0.0
        """No request before that time of the loop."""
        self.floor_bytes = 0
        """A batch is known to need so much."""
        self.replica = -1
        """Node that the leader named to fetch from (KIP-392); -1: the leader itself."""
        self.replica_until_s = 0.0
        self.topic_unknown = False
        """The cluster does not have the topic: what is committed now would be found in the next one of that
        name."""
        self.committed: OffsetAndMetadata | None = None
        """The newest committed position, as far as known."""
        self.reset_to = COMMITTED
        """Without a position: where to begin (COMMITTED, BY_POLICY, EARLIEST, LATEST)."""
        self.topic_id: bytes | None = None
        """Of the topic that it has a position in; it may be another one of the same name later."""
        self._new_position()

    def _new_position(self) -> None:
        self.position_id = next(_position_ids)
        self.position: int | None = None
        """Offset of the next record to hand out; None until it is known."""
        self.epoch = -1
        """Leader epoch of the last record handed out."""
        self.consumed: OffsetAndMetadata | None = None
        """The offset up to which the application has processed all that is for it: a commit may not name
        more. Replaced as a whole: any thread may look."""
        self.in_hand = False
        """The application has got records and not come back for more: they do not count as processed."""
        self.progress = Progress()
        """Records that are handed out and are processed in an order of their own."""
        self.fetch_offset = -1
        self.fetch_epoch = -1
        """Leader epoch of the last record fetched; -1: nothing to validate by."""
        self.validate = False
        """The leader epoch has changed: ask whether the log still holds what was read (KIP-320)."""
        self.fetching = False
        """A request is under way."""
        self.undecodable = False
        """The fetched records end in a batch that cannot be read: no use to fetch on."""
        self.error: PartitionError | None = None
        self.behind = True
        self.held = False
        """`process` waits with the record at the position."""
        self.buffer = Buffer()

    # ---- where it stands ----

    def set_position(self, offset: int, epoch: int = -1, metadata: str = "") -> None:
        """A new position: all that was fetched or asked for is of no use any more. `metadata`: that of the
        commit that it is from."""
        self._new_position()
        self.position = self.fetch_offset = offset
        self.epoch = self.fetch_epoch = epoch
        self.progress = Progress(decode(offset, metadata))
        self.reach()

    def reset_position(self, reset_to: int) -> None:
        """The position is to be looked up."""
        self._new_position()
        self.reset_to = reset_to

    def refetch(self) -> None:
        """Drop what was fetched and not handed out; the position stays."""
        position, in_hand = self.position, self.in_hand
        assert position is not None
        self._set_anew(position, self.epoch, in_hand)

    def put_back(self, offset: int, epoch: int, error: PartitionError | None, in_hand: bool) -> None:
        """Records from there on were handed out and not taken: they come again, or the error about them does.
        Processed records stay so; `in_hand`: something before them is in the application's hands."""
        self._set_anew(offset, epoch, in_hand)
        self.error = error

    def _set_anew(self, offset: int, epoch: int, in_hand: bool) -> None:
        consumed, progress = self.consumed, self.progress
        self.set_position(offset, epoch)
        self.consumed, self.progress, self.in_hand = consumed, progress, in_hand

    def rewind(
        self,
        offset: int,
        epoch: int,
        error: PartitionError | None,
        in_hand: bool,
        handed: Iterable[BatchRows],
    ) -> None:
        """As `put_back`, without fetching again what was handed out."""
        self.buffer.give_back(rows for rows in handed if rows.header.next_offset > offset)
        self.position, self.epoch, self.in_hand, self.error = offset, epoch, in_hand, error

    def pass_over(self, offset: int) -> bool:
        """Go on there, within what was fetched, as the application says; whether that can be."""
        if self.undecodable or not self.buffer or self.fetch_offset < offset:
            return False
        self.position, self.in_hand, self.error = offset, False, None
        self.reach()
        return True

    def fail(self, error: PartitionError) -> None:
        """Told to the application when what is buffered has been handed out."""
        self.error = error

    @property
    def buffered_bytes(self) -> int:
        """The bytes of all that was fetched and has not been handed out."""
        return self.buffer.fetched_bytes + self.buffer.inflated_bytes

    @property
    def wants_more(self) -> bool:
        """Whether it may be fetched at all."""
        return (
            self.position is not None
            and not self.fetching
            and not self.paused
            and not self.held
            and not self.suspended
            and not self.undecodable
            and not self.validate
            and self.error is None
        )

    @property
    def ready(self) -> bool:
        """Whether there may be something to hand out, or an error to tell."""
        if self.paused or self.suspended or self.full or self.held:
            return False
        return bool(self.buffer) or self.error is not None

    @property
    def lag(self) -> int | None:
        """Records from the position to the end, as of the last answer."""
        if self.position is None or self.end_offset < 0:
            return None
        return max(0, self.end_offset - self.position)

    @property
    def uncommitted(self) -> OffsetAndMetadata | None:
        """The position that is processed and not known to be committed."""
        consumed = self.consumed
        if consumed is None or not self.begun or self.topic_unknown:
            return None
        known = self.committed
        if known is not None and (consumed.offset, consumed.metadata) == (known.offset, known.metadata):
            return None
        return consumed

    def processed(self) -> None:
        """The application has come back: what it had in hand is processed."""
        self.in_hand = False
        self.reach()

    def reach(self) -> None:
        """All before the position is processed, but for what is in progress."""
        if self.position is not None:
            self.consumed = self.progress.reached(self.position, self.epoch)

    def processed_to(self, value: OffsetAndMetadata) -> None:
        """The application commits this itself: of what it has in hand, so much is processed."""
        if self.in_hand and self.consumed is not None and self.consumed.offset < value.offset:
            self.consumed = value

    # ---- what was fetched ----

    def add(self, chunk: Chunk, next_offset: int | None) -> None:
        """An answer; `next_offset`: what to fetch next, None when its bytes make no sense."""
        self.buffer.add(chunk)
        if next_offset is None:
            self.undecodable = True
        else:
            self.fetch_offset = next_offset

    def advance(self, check_crcs: bool) -> BatchRows | None:
        """The batch that has the next records for the application; None when there is none, or when it cannot
        be read: then `error` is set. Batches without such records move the position."""
        buffer = self.buffer
        while buffer.rows is None and self.error is None:
            if (again := buffer.next_again()) is not None:
                buffer.rows = again if again.header.next_offset > self._at() else None
                continue
            try:
                found = buffer.next_view(check_crcs)
            except MalformedError as error:
                self._corrupt(buffer.end_of_bad(self._at()), error)
                return None
            if found is None:
                return None
            view, skip = found
            header = view.header
            if header.next_offset <= self._at():
                continue
            if skip or not header.record_count:
                self._skip_to(header.next_offset, header.leader_epoch)
            else:
                buffer.rows = BatchRows(view)
        return buffer.rows

    def take(self, rows: BatchRows, limit: int) -> Part | None:
        """Up to that many records of the batch that `advance` gave: now they are in the application's hands.
        None when compaction has left none there. Raises MalformedError."""
        rows.open()
        header, first = rows.header, rows.row_of(self._at())
        count = min(limit, header.record_count - first)
        whole = first + count == header.record_count
        if whole:
            self.buffer.done()
        if not count:
            self._skip_to(header.next_offset, header.leader_epoch)
            return None
        self.epoch, self.in_hand = header.leader_epoch, True
        self.position = header.next_offset if whole else rows.offset_of(first + count)
        return Part(rows, first, count)

    def _skip_to(self, offset: int, epoch: int) -> None:
        self.position, self.epoch = offset, epoch
        if not self.in_hand:
            self.reach()

    def unreadable(self, rows: BatchRows, why: MalformedError) -> None:
        """The batch that `advance` gave cannot be opened."""
        self.buffer.done()
        self._corrupt(max(rows.header.next_offset, self._at() + 1), why)

    def _corrupt(self, next_offset: int, why: MalformedError) -> None:
        self.undecodable = True
        at = self._at()
        if self.end_offset > at:  # more than that the header of a corrupt batch may claim
            next_offset = min(next_offset, self.end_offset)
        self.error = CorruptRecordError(*self.topic_partition, at, next_offset, why.reason)

    def _at(self) -> int:
        assert self.position is not None
        return self.position
