"""The transactions of one node: routes their requests to the shards of __transaction_state, sends markers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from ringleader.coordinator.groups.routing import partition_for
from ringleader.coordinator.logs import Seldom
from ringleader.coordinator.machine import Notice
from ringleader.coordinator.runtime.shards import ShardRuntime, Waiting
from ringleader.coordinator.storage.base import Storage
from ringleader.coordinator.transactions.machine import Finish, Producer, Result, TransactionShard
from ringleader.coordinator.transactions.records import by_topic
from ringleader.coordinator.transactions.settings import TransactionSettings
from ringleader.coordinator.transactions.states import NO_EPOCH, NO_ID, OFFSETS_TOPIC, V1, V2, Partition
from ringleader.coordinator.unix_time import UnixTime
from ringleader.protocol.errors import ErrorCode, KafkaError, error_name

JOIN_MS, JOIN_AGAIN_MS = 100, 20
"""Kafka's add.partitions.to.txn.retry.backoff.max.ms and add.partitions.to.txn.retry.backoff.ms."""
STORE_PARTITIONS = 50
"""Of the store (`transaction.state.log.num.partitions` of Kafka)."""


class PartitionLog(Protocol):
    """The part of the topic log (`Topics`) that is used here."""

    async def end_transaction(
        self, topic: str, partition: int, producer_id: int, producer_epoch: int, *, committed: bool
    ) -> None:
        """Durable on return. Raises KafkaError; UNKNOWN_TOPIC_OR_PARTITION if there is no such partition."""

    def open_transactions(self) -> list[tuple[str, int, int, int]]:
        """Topic, partition, producer id and epoch of what waits for a marker."""

    async def new_producer_id(self) -> int:
        """Never given out before. Raises KafkaError."""


class GroupOffsets(Protocol):
    """The part of the groups (`GroupRuntime`) that is used here."""

    partitions: int

    async def end_transaction(self, partition: int, producer_id: int, *, committed: bool) -> int:
        """An error code, when the marker is durable and took effect."""

    def open_producers(self) -> list[tuple[int, int]]:
        """Partition and producer id of the transactions that have offsets of groups."""


class _Joined(Waiting):
    """Is answered an error code."""

    def answer(self, response: Result | int) -> None:
        """See `Waiting`."""
        super().answer(response.error if isinstance(response, Result) else response)


class TransactionRuntime(ShardRuntime[TransactionShard]):
    """All transactions of one node, with their store. Tickets get `Result`s."""

    def __init__(
        self,
        settings: TransactionSettings,
        storage: Storage,
        log_of_topics: PartitionLog,
        groups: GroupOffsets,
        **more: Any,
    ) -> None:
        """`more`: see `ShardRuntime`."""
        self._settings = settings
        self._topics = log_of_topics
        self._groups = groups
        # One for all lives of all shards, as for groups.
        self._unix_time = UnixTime(settings.transaction_remove_expired_transaction_cleanup_interval_ms)
        self._finishing: dict[str, asyncio.Task[None]] = {}
        """By transactional id."""
        super().__init__(storage, STORE_PARTITIONS, **more)
        self._no_ids = Seldom(self._log.error, self._now_ms)

    def _make(self, partition: int) -> TransactionShard:
        return TransactionShard(self._settings, self._count_ids, self._unix_time)

    def _count_ids(self) -> int:
        return sum(map(len, self.shards))

    # ---- life ----

    async def start(self) -> None:
        """Open the store, and finish what was begun: markers of decided transactions are sent again. Raises
        `StorageError`, `MalformedError` for a record that cannot be read, KafkaError for a marker that cannot
        be written."""
        await self.load_all()
        await self._end_orphans()
        self._log.info("transactions replayed", transactional_ids=self._count_ids())

    async def _end_orphans(self) -> None:
        """Records and offsets that wait for a marker that will not be written would hold back readers
        for ever: a crash of the machine took the marker, the end of a file is gone, or the store of
        transactions is another one. They are committed if all that the store knows of their producer's epoch
        are commits, else aborted. Offsets of groups do not know their epoch: it has to be the first."""
        known = {found for shard in self.shards for found in shard.open()}
        epochs = dict(found for shard in self.shards for found in shard.committed())
        orphans = [
            ((topic, index), producer_id, epoch)
            for topic, index, producer_id, epoch in self._topics.open_transactions()
        ]
        orphans += [
            ((OFFSETS_TOPIC, index), producer_id, NO_EPOCH)
            for index, producer_id in self._groups.open_producers()
        ]
        for partition, producer_id, epoch in orphans:
            if (producer_id, partition) not in known:
                committed = epochs.get(producer_id) == (0 if epoch == NO_EPOCH else epoch)
                self._log.warning(
                    f"a transaction without an end is {'committed' if committed else 'aborted'}",
                    topic=partition[0],
                    partition=partition[1],
                    producer_id=producer_id,
                )
                await self._write_marker(partition, Producer(producer_id, epoch), committed=committed)

    async def stop(self) -> None:
        """See `ShardRuntime.stop`. Markers that are not sent by then are sent after the next start."""
        await super().stop()
        tasks = list(self._finishing.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # ---- requests ----

    async def init_producer_id(
        self, transactional_id: str, timeout_ms: int, expected: Producer | None, ticket: Any
    ) -> None:
        """See `TransactionShard.init_producer_id`. COORDINATOR_NOT_AVAILABLE when no producer id can be
        had."""

        def needs(shard: TransactionShard) -> bool:
            refused = shard.check_init(transactional_id, timeout_ms)
            return not refused and shard.needs_producer_id(transactional_id)

        fresh_id = await self._fresh_id(transactional_id, "InitProducerId", needs, ticket)
        if fresh_id is None:
            return
        self.call_for(
            transactional_id,
            "InitProducerId",
            ticket,
            lambda shard, now_ms: shard.init_producer_id(
                transactional_id, timeout_ms, expected, fresh_id, ticket, now_ms
            ),
        )

    async def _fresh_id(
        self, transactional_id: str, doing: str, needs: Callable[[TransactionShard], bool], ticket: Any
    ) -> int | None:
        """A producer id if the shard needs one, else -1; None: the request is answered."""
        partition, fresh_id = self.partition_of(transactional_id), NO_ID
        while fresh_id < 0:
            shard = self.shards[partition]
            changes = shard.changes
            try:
                if not needs(shard):
                    break
            except Exception:
                self.failed(partition, shard, changes, doing, transactional_id, ticket)
                return None
            try:
                fresh_id = await self._topics.new_producer_id()
            except KafkaError as error:
                self._no_ids.tell("", event="no producer id", reason=str(error))
                ticket.refuse(ErrorCode.COORDINATOR_NOT_AVAILABLE)
                return None
            except Exception:
                self._failures.tell("no producer id")
                ticket.refuse(ErrorCode.UNKNOWN_SERVER_ERROR)
                return None
        return fresh_id

    def add_partitions(
        self,
        transactional_id: str,
        producer: Producer,
        partitions: list[Partition],
        ticket: Any,
        version: int = V1,
    ) -> None:
        """See `TransactionShard.add_partitions`."""
        self.call_for(
            transactional_id,
            "AddPartitionsToTxn",
            ticket,
            lambda shard, now_ms: shard.add_partitions(
                transactional_id, producer, partitions, ticket, now_ms, version
            ),
        )

    async def join(self, transactional_id: str, producer: Producer, partitions: list[Partition]) -> int:
        """Take partitions into a transaction of V2 whose client has not asked for it: an error code.

        CONCURRENT_TRANSACTIONS of a client that begins while its last transaction ends is common: it is
        waited for, as long as Kafka's brokers do."""
        until_s = self._loop.time() + JOIN_MS / 1000
        while True:
            ticket = _Joined()
            self.add_partitions(transactional_id, producer, partitions, ticket, V2)
            error: int = await ticket.answered
            if error != ErrorCode.CONCURRENT_TRANSACTIONS or self._loop.time() >= until_s:
                return error
            await asyncio.sleep(JOIN_AGAIN_MS / 1000)

    async def join_group(self, transactional_id: str, producer: Producer, group_id: str) -> int:
        """`join` with the offsets of a group."""
        return await self.join(transactional_id, producer, [self._of_group(group_id)])

    def add_group(self, transactional_id: str, producer: Producer, group_id: str, ticket: Any) -> None:
        """Take the offsets of a group into the transaction; see `TransactionShard.add_partitions`."""
        self.add_partitions(transactional_id, producer, [self._of_group(group_id)], ticket)

    def end(self, transactional_id: str, producer: Producer, committed: bool, ticket: Any) -> None:
        """See `TransactionShard.end`."""
        self.call_for(
            transactional_id,
            "EndTxn",
            ticket,
            lambda shard, now_ms: shard.end(transactional_id, producer, committed, ticket, now_ms),
        )

    async def end_raising(
        self, transactional_id: str, producer: Producer, committed: bool, ticket: Any
    ) -> None:
        """See `TransactionShard.end_raising`. COORDINATOR_NOT_AVAILABLE when no producer id can be had."""
        fresh_id = await self._fresh_id(
            transactional_id, "EndTxn", lambda shard: shard.runs_out(transactional_id), ticket
        )
        if fresh_id is not None:
            self.call_for(
                transactional_id,
                "EndTxn",
                ticket,
                lambda shard, now_ms: shard.end_raising(
                    transactional_id, producer, committed, fresh_id, ticket, now_ms
                ),
            )

    def verify(self, transactional_id: str, producer: Producer, partition: Partition) -> int:
        """See `TransactionShard.verify`."""
        code = self.call_for(
            transactional_id,
            "verify",
            None,
            lambda shard, _: shard.verify(transactional_id, producer, partition),
            reads=True,
        )
        return ErrorCode.NOT_COORDINATOR if code is None else code

    def verify_group(self, transactional_id: str, producer: Producer, group_id: str) -> int:
        """Whether the offsets of this group are in the transaction; see `TransactionShard.verify`."""
        return self.verify(transactional_id, producer, self._of_group(group_id))

    def _of_group(self, group_id: str) -> Partition:
        return OFFSETS_TOPIC, partition_for(group_id, self._groups.partitions)

    # ---- markers ----

    def _event(self, partition: int, event: Any) -> None:
        if isinstance(event, Notice):
            self._log.info(event.text, transactional_id=event.subject)
        # A shard that is loaded again reports again what is being finished. Then one is enough: two might end
        # the next transaction as well.
        elif isinstance(event, Finish) and event.transactional_id not in self._finishing and self._serving:
            task = self._loop.create_task(self._finish(event))
            self._finishing[event.transactional_id] = task

    async def _finish(self, finish: Finish) -> None:
        left = [(topic, one) for topic, some in by_topic(finish.partitions) for one in some]
        while left:
            done = await self.run_queue.gather(self._mark(finish, found) for found in left)
            left = [found for found, ok in zip(left, done, strict=True) if not ok]
            if left:
                await asyncio.sleep(self._settings.transaction_retry_ms / 1000)
        del self._finishing[finish.transactional_id]
        self.call_for(
            finish.transactional_id,
            "finished",
            None,
            lambda shard, now_ms: shard.finished(
                finish.transactional_id, finish.producer_id, finish.epoch, now_ms
            ),
        )

    async def _mark(self, finish: Finish, partition: Partition) -> bool:
        """Whether the partition has its marker, or needs none."""
        try:
            producer = Producer(finish.producer_id, finish.epoch)
            await self._write_marker(partition, producer, committed=finish.committed)
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
            topic=partition[0],
            partition=partition[1],
            transactional_id=finish.transactional_id,
            reason=reason,
        )
        return False

    async def _write_marker(self, partition: Partition, producer: Producer, *, committed: bool) -> None:
        topic, index = partition
        if topic != OFFSETS_TOPIC:
            await self._topics.end_transaction(topic, index, *producer, committed=committed)
            return
        error = await self._groups.end_transaction(index, producer.producer_id, committed=committed)
        if error:
            raise KafkaError(error, f"group offsets: {error_name(error)}")
