"""Runs the transaction coordinator: stores what it decides, sends markers, wakes it when time comes.

All on the event loop's thread. What the requests of one loop turn write is one transaction of the store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from ringleader.coordinator.clock import Clock, WallClock, monotonic_ms, wall_ms
from ringleader.coordinator.groups.routing import partition_for
from ringleader.coordinator.logs import Log, get_log
from ringleader.coordinator.storage.base import Batch, Failure, Storage, StorageError
from ringleader.coordinator.transactions.machine import Finish, Machine, Producer, Reply, Result, Write
from ringleader.coordinator.transactions.records import encode_key, encode_value
from ringleader.coordinator.transactions.settings import TransactionSettings
from ringleader.coordinator.transactions.states import OFFSETS_TOPIC, Partition
from ringleader.protocol.errors import ErrorCode, KafkaError, error_name

STORE_PARTITIONS = 50
"""Of the store (`transaction.state.log.num.partitions` of Kafka)."""

EPOCH = 0
"""One node owns everything for ever."""


class PartitionLog(Protocol):
    """What is asked of the topic log (`Topics`)."""

    async def end_transaction(
        self, topic: str, partition: int, producer_id: int, producer_epoch: int, *, committed: bool
    ) -> None:
        """Durable on return. Raises KafkaError; UNKNOWN_TOPIC_OR_PARTITION if there is no such partition."""

    def open_transactions(self) -> list[tuple[str, int, int, int]]:
        """Topic, partition, producer id and epoch of what waits for a marker."""

    async def new_producer_id(self) -> int:
        """Never given out before. Raises KafkaError."""


class GroupOffsets(Protocol):
    """What is asked of the groups (`GroupRuntime`)."""

    partitions: int

    def end_transaction(
        self,
        partition: int,
        producer_id: int,
        producer_epoch: int,
        committed: bool,
        done: Callable[[int], None],
    ) -> None:
        """`done(error code)` when the marker is durable and took effect."""


class TransactionRuntime:
    """All transactions of one node, with their store.

    `on_failed(error)` is called once if the store can no longer be trusted; from then on every request is
    answered NOT_COORDINATOR.
    """

    def __init__(
        self,
        settings: TransactionSettings,
        storage: Storage,
        log_of_topics: PartitionLog,
        groups: GroupOffsets,
        *,
        now_ms: Clock = monotonic_ms,
        wall_ms: WallClock = wall_ms,
        log: Log | None = None,
        on_failed: Callable[[StorageError], None] | None = None,
    ) -> None:
        self.machine = Machine(settings)
        self._storage = storage
        self._topics = log_of_topics
        self._groups = groups
        self._now_ms = now_ms
        self._wall_ms = wall_ms
        self._log = log or get_log()
        self._on_failed = on_failed
        self._gathered: list[Write] = []
        self._writing: asyncio.Task[None] | None = None
        self._finishing: set[asyncio.Task[None]] = set()
        self._drain_scheduled = False
        self._timer: asyncio.TimerHandle | None = None
        self._timer_due_ms = 0
        self._serving = False
        self._loop: asyncio.AbstractEventLoop

    # ---- life ----

    async def start(self) -> None:
        """Open the store, and finish what was begun: markers of decided transactions are sent again. Raises
        `StorageError`, or `MalformedError` for a record that cannot be read."""
        self._loop = asyncio.get_running_loop()
        await self._storage.open()
        for partition in range(STORE_PARTITIONS):
            async for _, _, key, value in self._storage.replay(partition):
                assert value is not None
                self.machine.replay(key, value)
        self.machine.loaded(self._now_ms(), self._wall_ms())
        self._serving = True
        await self._abort_orphans()
        self._log.info("transactions replayed", transactional_ids=len(self.machine))
        self._drain()

    async def _abort_orphans(self) -> None:
        """Records whose transaction nobody knows would hold back readers for ever: a crash of the machine
        took the marker, or the store of transactions is another one."""
        known = set(self.machine.open())
        for topic, partition, producer_id, epoch in self._topics.open_transactions():
            if (producer_id, (topic, partition)) in known:
                continue
            self._log.warning(
                "a transaction without an end is aborted",
                topic=topic,
                partition=partition,
                producer_id=producer_id,
            )
            await self._topics.end_transaction(topic, partition, producer_id, epoch, committed=False)

    async def stop(self) -> None:
        """Finish what is on its way to the disk, and close the store; markers that are not sent by then are
        sent after the next start. May be called twice, and without `start`."""
        self._end()
        tasks = list(self._finishing)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._writing is not None:
            await asyncio.wait([self._writing])
        await self._storage.close()

    def _end(self) -> None:
        if not self._serving:
            return
        self._serving = False
        if self._timer is not None:
            self._timer.cancel()
        gathered, self._gathered = [*self._gathered, *self.machine.take().writes], []
        for write in gathered:
            self.machine.failed(write.transactional_id, ErrorCode.NOT_COORDINATOR, self._now_ms())

    # ---- requests ----

    async def init_producer_id(
        self, transactional_id: str, timeout_ms: int, expected: Producer | None, reply: Reply
    ) -> None:
        """See `Machine.init_producer_id`. COORDINATOR_NOT_AVAILABLE when no producer id can be had."""
        machine, fresh_id = self.machine, -1
        while (
            fresh_id < 0
            and not machine.check_init(transactional_id, timeout_ms)
            and machine.needs_producer_id(transactional_id)
        ):
            try:
                fresh_id = await self._topics.new_producer_id()
            except KafkaError as error:
                self._log.error("no producer id", reason=str(error))
                reply(Result(ErrorCode.COORDINATOR_NOT_AVAILABLE))
                return
        if not self._serving:
            reply(Result(ErrorCode.NOT_COORDINATOR))
            return
        machine.init_producer_id(transactional_id, timeout_ms, expected, fresh_id, reply, self._wall_ms())
        self._touch()

    def add_partitions(
        self, transactional_id: str, producer: Producer, partitions: list[Partition], reply: Reply
    ) -> None:
        """See `Machine.add_partitions`."""
        if not self._serving:
            reply(Result(ErrorCode.NOT_COORDINATOR))
            return
        self.machine.add_partitions(transactional_id, producer, partitions, reply, self._wall_ms())
        self._touch()

    def add_group(self, transactional_id: str, producer: Producer, group_id: str, reply: Reply) -> None:
        """Take the offsets of a group into the transaction; see `Machine.add_partitions`."""
        self.add_partitions(transactional_id, producer, [self._of_group(group_id)], reply)

    def end(self, transactional_id: str, producer: Producer, committed: bool, reply: Reply) -> None:
        """See `Machine.end`."""
        if not self._serving:
            reply(Result(ErrorCode.NOT_COORDINATOR))
            return
        self.machine.end(transactional_id, producer, committed, reply, self._wall_ms())
        self._touch()

    def verify(self, transactional_id: str, producer: Producer, partition: Partition) -> int:
        """See `Machine.verify`."""
        return self.machine.verify(transactional_id, producer, partition)

    def verify_group(self, transactional_id: str, producer: Producer, group_id: str) -> int:
        """Whether the offsets of this group are in the transaction; see `Machine.verify`."""
        return self.machine.verify(transactional_id, producer, self._of_group(group_id))

    def _of_group(self, group_id: str) -> Partition:
        return OFFSETS_TOPIC, partition_for(group_id, self._groups.partitions)

    # ---- what the machine wants done ----

    def _touch(self) -> None:
        if not self._drain_scheduled:
            self._drain_scheduled = True
            self._loop.call_soon(self._drain)

    def _drain(self) -> None:
        self._drain_scheduled = False
        if not self._serving:
            return
        box = self.machine.take()
        self._gathered += box.writes
        for finish in box.finishes:
            task = self._loop.create_task(self._finish(finish))
            self._finishing.add(task)
            task.add_done_callback(self._finishing.discard)
        if self._writing is None and self._gathered:
            self._writing = self._loop.create_task(self._append())
        due = self.machine.next_deadline()
        if due is not None and (self._timer is None or due < self._timer_due_ms):
            self._arm(due)

    async def _append(self) -> None:
        while self._gathered:
            writes, self._gathered = self._gathered, []
            try:
                await self._storage.append_many([_batch(write) for write in writes])
            except StorageError as error:
                self._store_failed(writes, error)
                if error.fatal:
                    break
            else:
                now = self._now_ms()
                for write in writes:
                    self.machine.stored(write.transactional_id, now)
            self._touch()
        self._writing = None

    def _store_failed(self, writes: list[Write], error: StorageError) -> None:
        self._log.error("transactions not stored", reason=str(error), records=len(writes))
        code = ErrorCode.NOT_COORDINATOR if error.fatal else ErrorCode.COORDINATOR_NOT_AVAILABLE
        if error.failure is Failure.TOO_LARGE:
            code = ErrorCode.UNKNOWN_SERVER_ERROR
        for write in writes:
            self.machine.failed(write.transactional_id, code, self._now_ms())
        if error.fatal:
            # Nobody knows what is on the disk: decide nothing more.
            self._end()
            if self._on_failed is not None:
                self._on_failed(error)

    # ---- markers ----

    async def _finish(self, finish: Finish) -> None:
        left = sorted(finish.partitions)
        while left:
            done = await asyncio.gather(*(self._mark(finish, partition) for partition in left))
            left = [partition for partition, ok in zip(left, done, strict=True) if not ok]
            if left:
                await asyncio.sleep(self.machine.settings.transaction_retry_ms / 1000)
        self.machine.finished(finish.transactional_id, self._wall_ms())
        self._touch()

    async def _mark(self, finish: Finish, partition: Partition) -> bool:
        """Whether the partition has its marker, or needs none."""
        topic, index = partition
        try:
            if topic == OFFSETS_TOPIC:
                await self._mark_offsets(finish, index)
            else:
                await self._topics.end_transaction(
                    topic, index, finish.producer_id, finish.epoch, committed=finish.committed
                )
        except KafkaError as error:
            # A deleted topic needs no marker.
            if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                return True
            reason = str(error)
        except Exception as error:
            self._log.exception("marker failed")
            reason = repr(error)
        else:
            return True
        self._log.warning(
            "marker not written, tried again later",
            topic=topic,
            partition=index,
            transactional_id=finish.transactional_id,
            reason=reason,
        )
        return False

    async def _mark_offsets(self, finish: Finish, partition: int) -> None:
        future: asyncio.Future[int] = self._loop.create_future()

        def done(error: int) -> None:
            if not future.done():
                future.set_result(error)

        self._groups.end_transaction(partition, finish.producer_id, finish.epoch, finish.committed, done)
        error = await future
        if error:
            raise KafkaError(error, f"group offsets: {error_name(error)}")

    # ---- time ----

    def _arm(self, due_ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer_due_ms = due_ms
        self._timer = self._loop.call_later(max(0, due_ms - self._now_ms()) / 1000, self._wake)

    def _wake(self) -> None:
        self._timer = None
        now = self._now_ms()
        for transactional_id in self.machine.tick(now, self._wall_ms()):
            self._log.info("transaction timed out, aborted", transactional_id=transactional_id)
        self._drain()


def _batch(write: Write) -> Batch:
    key = encode_key(write.transactional_id)
    value = None if write.transaction is None else encode_value(write.transaction)
    return partition_for(write.transactional_id, STORE_PARTITIONS), EPOCH, [(key, value)]
