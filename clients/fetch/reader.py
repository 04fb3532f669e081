"""Reads assigned partitions: fetched bytes become batches, one partition after the other.

Knows nothing of groups: partitions are added and dropped by the owner of the reader.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any
from weakref import ref

from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.errors import AuthenticationError, BrokerError, RetriableError
from ringleader.clients.fetch.baseline import Baseline
from ringleader.clients.fetch.buffer import Buffer, Part, heavy
from ringleader.clients.fetch.errors import (
    CorruptRecordError,
    NotAssignedError,
    PartitionError,
    UnreadRecordError,
)
from ringleader.clients.fetch.fetcher import Fetcher
from ringleader.clients.fetch.leaders import MOVED, Leaders
from ringleader.clients.fetch.model import Batch, ConsumerSettings, Record
from ringleader.clients.fetch.partition_state import Handed, PartitionState
from ringleader.clients.fetch.positions import Committed, PositionLookup
from ringleader.clients.model import OffsetAndMetadata, TopicPartition
from ringleader.protocol.columns import BatchRows
from ringleader.protocol.errors import ErrorCode, KafkaError, MalformedError, error_name

logger = logging.getLogger("ringleader.clients.consumer")


class Reader:
    """Belongs to the event loop it is made in. `start` it, `close` it."""

    def __init__(
        self,
        cluster: Cluster,
        settings: ConsumerSettings,
        committed: Committed,
        baseline: Baseline | None = None,
    ) -> None:
        """`baseline`: what was there when the consumer began."""
        self._cluster = cluster
        self._settings = settings
        self.in_hand: dict[TopicPartition, PartitionState] = {}
        """The partitions of the records that the application has and has not come back from."""
        self._handed: list[Handed] = []
        """All that was handed out since the application has come back."""
        self._transaction: list[Handed] | None = None
        """Handed out in the application's transaction, but for the newest; None: none is open."""
        self._put_down_before: list[Handed] = []
        """All that was before that: of what is kept of it still, only the records are needed."""
        self._put_down = asyncio.Event()
        self._left_alone = False
        self.something = asyncio.Event()
        """Set when there may be something to hand out, or to tell."""
        self.broken: BaseException | None = None
        self.records = self.batches = 0
        self._leaders = Leaders(cluster, self._changed, self._refused, settings.metadata_max_age_ms)
        self.fetcher = Fetcher(
            cluster, self._leaders, settings.fetching(), self._on_ready, self._on_out_of_range
        )
        self.states = self.fetcher.states
        self._positions = PositionLookup(
            self.states,
            self._leaders,
            committed,
            settings.auto_offset_reset,
            settings.committed_only,
            baseline or Baseline(),
            self._positioned,
        )
        self._moved = asyncio.Event()
        self._ready: dict[TopicPartition, PartitionState] = {}
        """Partitions with something to hand out, in the order of their turns."""
        self._open: PartitionState | None = None
        """The one with an inflated batch of which there is more."""
        self._tasks: list[asyncio.Task[None]] = []
        self._closing: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin."""
        works = [self._leaders.run(), self.fetcher.run(), *self._positions.runs()]
        self._tasks = [asyncio.create_task(self._guard(work), name="consumer") for work in works]

    async def close(self) -> None:
        """End, with all connections; also if the caller is cancelled. May be called more than once."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name="consumer's end")
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._cluster.close()

    async def _guard(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:
            trace = None if isinstance(error, AuthenticationError) else error
            logger.error("the consumer cannot go on: %s", error, exc_info=trace)
            self.broken = error
            self.something.set()
            self._tell_moved()

    # ---- partitions come and go ----

    def add(self, tps: Iterable[TopicPartition]) -> None:
        """Partitions from now on; nothing is fetched before `release`."""
        for tp in tps:
            self.states[tp] = PartitionState(tp)
        self._leaders.watch({topic for topic, _ in self.states})
        self._positions.wake()

    def release(self, tps: Iterable[TopicPartition]) -> None:
        """Fetch and hand out."""
        for tp in tps:
            if (state := self.states.get(tp)) is not None:
                state.suspended, state.begun = False, True
                self._positioned(state)
        self._positions.wake()

    def suspend(self, tps: Iterable[TopicPartition]) -> None:
        """Neither fetch nor hand out any more."""
        for tp in tps:
            if (state := self.states.get(tp)) is not None:
                state.suspended = True
                self._ready.pop(tp, None)

    def drop(self, tps: Iterable[TopicPartition]) -> dict[TopicPartition, PartitionState]:
        """Stop reading these, and forget what was fetched. Returns their states."""
        dropped = {}
        for tp in tps:
            self._ready.pop(tp, None)
            if (state := self.states.pop(tp, None)) is not None:
                dropped[tp] = state
                state.buffer = Buffer()  # batches that the application keeps know their partition
                if state.running:
                    self.in_hand.pop(tp, None)  # nothing of it is waited for any more
                self._positions.left(state)
        self._leaders.watch({topic for topic, _ in self.states})
        self.fetcher.wake()
        self._tell_moved()
        return dropped

    def state(self, tp: TopicPartition) -> PartitionState:
        """Raises NotAssignedError."""
        state = self.states.get(tp)
        if state is None:
            raise NotAssignedError(f"{tp[0]}-{tp[1]} is not assigned to this consumer now")
        return state

    # ---- what the application has in hand ----

    def processed(self) -> None:
        """The application has come back: what it had in hand is processed, as far as it could be read. If
        some of it could not, what the application has not looked at was not reached either: it comes
        again."""
        if self._handed:
            read = self._put_back_unread()
            if self._transaction is not None:
                self._transaction += read
                self._handed = []
                return
            for state in self.in_hand.values():
                state.processed()
            self._empty_hands()

    def _put_back_unread(self) -> list[Handed]:
        """The part of it that was read."""
        if all(one.error is None for one in self._handed):
            return self._handed
        self._put_back([one for one in self._handed if one.error is not None or not one.looked])
        return [one for one in self._handed if one.error is None and one.looked]

    def begin_transaction(self) -> None:
        """Until its end everything that is handed out stays in hand, and can be put back."""
        self._transaction = []

    def transaction_offsets(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """The positions behind all that was handed out, as far as it could be read. Raises
        NotAssignedError if a partition of it was not kept, PartitionError if its position is not known."""
        self._handed = self._put_back_unread()
        offsets = {}
        for one in [*(self._transaction or ()), *self._handed]:
            state, tp = one.state, one.state.topic_partition
            if self.states.get(tp) is not one.state:
                raise NotAssignedError(f"{tp[0]}-{tp[1]} was not kept since it was read")
            if state.position is None:
                why = "the position is not known: it was sought in a transaction"
                raise PartitionError(tp[0], tp[1], None, why)
            offsets[tp] = OffsetAndMetadata(state.position, "", state.epoch)
        return offsets

    def end_transaction(self, *, committed: bool) -> None:
        """All that was handed out since its beginning is processed, or it comes again."""
        kept, self._transaction = self._transaction or [], None
        self._handed = kept + self._handed
        if committed:
            self.processed()
        else:
            self.take_back()

    def take_back(self) -> None:
        """Nothing that was handed out since the application came back has reached it: it comes again."""
        for one in self._handed:
            one.error = None
        self._put_back(self._handed)
        self._empty_hands()

    def refuse(self, batch: Batch, error: PartitionError) -> None:
        """The batch was not handed out from there on: the application gets that error, until `seek`."""
        assert error.offset is not None
        self._cut(batch, error.offset, error)

    def put_off(self, batch: Batch, offset: int) -> None:
        """The batch was not handed out from there on: it comes again."""
        self._cut(batch, offset, None)

    def _cut(self, batch: Batch, offset: int, error: PartitionError | None) -> None:
        handed = [
            one for one in self._handed if one.state.topic_partition == batch.topic_partition and one.stands
        ]
        state = handed[0].state if handed else None
        if state is None or self.states.get(state.topic_partition) is not state:
            return  # it has moved on meanwhile
        in_hand = offset > handed[0].offset
        epoch = state.epoch if in_hand else handed[0].epoch
        self._set_back(state, offset, epoch, error, in_hand=in_hand)
        for one in handed:  # it can still be taken back as a whole
            one.position_id, one.error = state.position_id, None
        if not in_hand:
            self.in_hand.pop(state.topic_partition, None)
            self._tell_put_down()

    def reported(self, error: PartitionError) -> None:
        """The application has got this error. A deserializer is asked again, as it may have failed for the
        moment, or have been interrupted by another caller's exception."""
        state = self.states.get((error.topic, error.partition))
        if isinstance(error, UnreadRecordError) and state is not None and state.error is error:
            state.error = None
            self.fetcher.want(state)

    def _put_back(self, handed: Iterable[Handed]) -> None:
        first: dict[TopicPartition, Handed] = {}
        for one in handed:
            if one.stands and self.states.get(one.state.topic_partition) is one.state:
                first.setdefault(one.state.topic_partition, one)
        for one in first.values():
            at = one.offset if one.error is None or one.unreadable_at is None else one.unreadable_at
            self._set_back(one.state, at, one.epoch, one.error, in_hand=False)

    def _set_back(
        self, state: PartitionState, offset: int, epoch: int, error: PartitionError | None, in_hand: bool
    ) -> None:
        if state.error is None:
            parts = [part for one in self._handed if one.state is state and one.stands for part in one.parts]
            state.rewind(offset, epoch, error, in_hand, [part.rows for part in parts])
        else:
            state.put_back(offset, epoch, error, in_hand)
        self._ready.pop(state.topic_partition, None)
        self._positioned(state)

    def leave_alone(self) -> None:
        """The application is leaving: nothing in its hands counts as processed, and nothing is waited for."""
        self._left_alone = True
        self._empty_hands()
        self.something.set()
        self._tell_moved()

    def _empty_hands(self) -> None:
        self.in_hand = {tp: state for tp, state in self.in_hand.items() if state.running}
        for one in self._transaction or ():
            self.in_hand[one.state.topic_partition] = one.state
        for one in self._put_down_before:
            if (kept := one.batch()) is not None:
                kept.let_go()
        for one in self._handed:
            one.parts = ()
        self._put_down_before, self._handed = self._handed, []
        self._tell_put_down()

    def _tell_put_down(self) -> None:
        put_down, self._put_down = self._put_down, asyncio.Event()
        put_down.set()

    async def until_processed(self, tps: Iterable[TopicPartition]) -> None:
        """Wait until nothing of these is in hand."""
        wanted = set(tps)
        while not self._left_alone and not wanted.isdisjoint(self.in_hand):
            await self._put_down.wait()

    # ---- records that are processed in an order of their own ----

    def begin(self, batch: Batch) -> tuple[PartitionState, list[Record]]:
        """The records of a batch just handed out that are not done yet: from now on they are in progress.
        Raises CorruptRecordError as a look at the batch does."""
        handed = next(one for one in self._handed if one.batch() is batch)
        parts, progress = handed.parts, handed.state.progress
        records = batch.records
        epochs = [
            handed.epoch,
            *(part.rows.header.leader_epoch for part in parts for _ in range(part.length)),
        ]
        pairs = zip(records, epochs, strict=False)
        return handed.state, [record for record, epoch in pairs if progress.begin(record.offset, epoch)]

    def take_up(self, state: PartitionState) -> None:
        """A handler begins with one of its records."""
        state.running += 1
        if self.states.get(state.topic_partition) is state:
            self.in_hand[state.topic_partition] = state

    def put_down(self, state: PartitionState) -> None:
        """A handler has ended."""
        state.running -= 1
        if not state.running and self.in_hand.get(state.topic_partition) is state:
            del self.in_hand[state.topic_partition]
            self._tell_put_down()

    def fill(self, state: PartitionState, full: bool) -> None:
        """Hand out nothing of it for now, as there is enough; or go on."""
        if state.full != full:
            state.full = full
            self._ready.pop(state.topic_partition, None) if full else self._positioned(state)
            self.fetcher.wake()

    def hold(self, state: PartitionState, held: bool) -> None:
        """Neither fetch nor hand out any of it for now, as the next record has to wait; or go on."""
        state.held = held
        if self.states.get(state.topic_partition) is state:
            self._ready.pop(state.topic_partition, None) if held else self._positioned(state)
            self.fetcher.wake()

    def go_back(self, state: PartitionState) -> None:
        """Nothing in progress will be done: it comes again, and what is done beyond it does not."""
        state.reach()
        if state.consumed is not None and self.states.get(state.topic_partition) is state:
            at = state.consumed
            state.set_position(at.offset, at.leader_epoch, at.metadata)
            self._ready.pop(state.topic_partition, None)
            self._positioned(state)

    # ---- where to read ----

    def position_of(self, tp: TopicPartition) -> int | None:
        """Offset of the next record to be handed out; None: not known yet. Raises NotAssignedError,
        PartitionError."""
        state = self.state(tp)
        if state.position is None and state.error is not None:
            raise state.error
        return state.position

    async def moved(self) -> None:
        """Wait until a position may have become known."""
        await self._moved.wait()

    def _tell_moved(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    def seek(self, tp: TopicPartition, offset: int) -> None:
        """Go on there; what was fetched is dropped, and an answer under way is not taken."""
        self.state(tp).set_position(offset)
        self._ready.pop(tp, None)
        self._positioned(self.states[tp])

    def skip(self, error: CorruptRecordError | UnreadRecordError) -> None:
        """Go on behind what it is about, if the partition stands there."""
        tp = error.topic, error.partition
        state = self.state(tp)
        if state.position != error.offset:
            return
        if not isinstance(error, UnreadRecordError) or not state.pass_over(error.next_offset):
            self.seek(tp, error.next_offset)
            return
        for one in self._handed:
            if one.state is state:
                one.position_id = 0  # as after `seek`, it does not come again
        self._ready.pop(tp, None)
        self._positioned(state)

    def seek_by_time(self, tp: TopicPartition, time: int) -> None:
        """Go on at the beginning or the end of the log (EARLIEST, LATEST), as of when it is looked up."""
        self.state(tp).reset_position(time)
        self._ready.pop(tp, None)
        self._positions.wake()

    def pause(self, tp: TopicPartition) -> None:
        """Hand nothing out; what was fetched is kept."""
        self.state(tp).paused = True
        self._ready.pop(tp, None)
        # If all that fills the buffer is paused now, the other partitions have to be fetched.
        self.fetcher.wake()

    def resume(self, tp: TopicPartition) -> None:
        """The end of `pause`."""
        self.state(tp).paused = False
        self._positioned(self.states[tp])

    async def offsets(
        self, times: Mapping[TopicPartition, int], timeout_s: float
    ) -> dict[TopicPartition, tuple[int, int]]:
        """(offset, timestamp in ms) of the first record at or after each time; (-1, -1) for none.

        Raises BrokerError, and RetriableError when time is over.
        """
        self._leaders.watch_also({topic for topic, _ in times})
        found: dict[TopicPartition, tuple[int, int]] = {}
        left = dict(times)
        why = "no leader"
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    answers, errors = await self._leaders.list_offsets(left, self._settings.committed_only)
                    found |= {tp: answer[:2] for tp, answer in answers.items()}
                    left = {tp: time for tp, time in left.items() if tp not in found}
                    if not left:
                        return found
                    for (topic, partition), code in errors.items():
                        why = error_name(code)
                        if code not in MOVED and not KafkaError(code).retriable:
                            raise BrokerError(f"cannot look up offsets of {topic}-{partition}: {why}", code)
                    await self._leaders.looked()
        except TimeoutError:
            names = ", ".join(f"{topic}-{partition}" for topic, partition in left)
            raise RetriableError(f"offsets of {names} not known within {timeout_s:g} s: {why}") from None

    # ---- what the parts tell ----

    def _changed(self, tp: TopicPartition, epoch_changed: bool, another_topic: bool) -> None:
        state = self.states.get(tp)
        if state is None:
            return
        state.topic_unknown = False
        if another_topic and state.position is not None:
            self._ready.pop(tp, None)
            self._positions.made_anew(state)
        elif state.topic_id is None and state.position is not None:
            state.topic_id = self._leaders.topic_id(tp)
        if epoch_changed and not another_topic and state.position is not None and state.fetch_epoch >= 0:
            state.validate = True
        if state.position is None or state.validate:
            self._positions.wake()
        self.fetcher.want(state)
        self.fetcher.wake()

    def _refused(self, topic: str, code: int) -> None:
        if code != ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            for state in self.states.values():
                state.topic_unknown = state.topic_unknown or state.topic == topic
            return
        for state in self.states.values():
            if state.topic == topic and state.error is None:
                why = f"the cluster does not show this topic: {error_name(code)}"
                state.fail(PartitionError(*state.topic_partition, state.position, why, code))
                self._on_ready(state)

    def _positioned(self, state: PartitionState) -> None:
        self._tell_moved()
        if state.position is None or state.validate:
            self._positions.wake()
        self.fetcher.want(state)
        if state.ready:
            self._on_ready(state)

    def _on_ready(self, state: PartitionState) -> None:
        if state.ready and self.states.get(state.topic_partition) is state:
            self._ready.setdefault(state.topic_partition, state)
            self.something.set()

    def _on_out_of_range(self, state: PartitionState) -> None:
        self._positions.out_of_range(state)
        self.fetcher.want(state)

    # ---- handing out ----

    async def pick(self, limit: int) -> Batch | None:
        """The next partition's batch, now in the application's hands; None when there is nothing. Raises
        PartitionError. Nothing is awaited after records were taken: a cancelled call loses none."""
        while self._ready:
            state = self._turn()
            rows = state.advance(self._settings.check_crcs)
            if rows is not None and heavy(rows):
                await self._open_aside(state, rows)
                continue
            batch = self._take(state, limit)
            if batch is not None:
                return batch
            if (error := state.error) is not None and not state.suspended and not state.paused:
                self.reported(error)
                raise error.with_traceback(None)
        return None

    def pick_now(self, limit: int) -> Batch | None:
        """As `pick`, of what takes no thread to open; errors wait for their next turn."""
        while (
            state := next((state for state in self._ready.values() if self._at_once(state)), None)
        ) is not None:
            batch = self._take(state, limit)
            if batch is not None:
                return batch
        return None

    def _at_once(self, state: PartitionState) -> bool:
        rows = state.advance(self._settings.check_crcs)
        return rows is not None and not heavy(rows)

    def _turn(self) -> PartitionState:
        """The partition with an inflated batch keeps its turn until all of it is handed out: there are no two
        in memory."""
        state, now = self._open, next(iter(self._ready.values()))
        if state is None or state is now:
            return now
        if self._ready.get(state.topic_partition) is state and state.buffer.inflated_bytes:
            return state
        state.buffer.close()  # it was paused, or is not ours any more
        self._open = None
        return now

    def _take(self, state: PartitionState, limit: int) -> Batch | None:
        """Records out of the buffer, from one or more of its batches; then it is another partition's turn."""
        parts: list[Part] = []
        left, at, epoch = limit, state.position, state.epoch
        while left and (rows := state.advance(self._settings.check_crcs)) is not None and not heavy(rows):
            try:
                part = state.take(rows, left)
            except MalformedError as error:
                state.unreadable(rows, error)
                break
            if part is not None:
                parts.append(part)
                left -= part.length
        self._open = state if state.buffer.inflated_bytes else None
        self._ready.pop(state.topic_partition, None)
        self._on_ready(state)
        self.fetcher.taken(state)
        if not parts:
            return None
        assert at is not None
        handed = Handed(state, at, epoch, parts)
        self._handed.append(handed)
        self.in_hand[state.topic_partition] = state
        self.batches += 1
        self.records += limit - left
        batch = Batch(
            *state.topic_partition,
            parts,
            state.position or 0,
            state.high_watermark,
            state.lag or 0,
            handed,
        )
        handed.batch = ref(batch)
        return batch

    async def _open_aside(self, state: PartitionState, rows: BatchRows) -> None:
        """Inflate in a thread: the loop goes on. Of no use if the partition has moved on meanwhile."""
        try:
            await asyncio.to_thread(rows.open)
        except MalformedError as error:
            if state.buffer.rows is rows:
                state.unreadable(rows, error)
            return
        if state.buffer.rows is rows:
            self._open = state
