"""The groups of one node: routes their requests to the shards of __consumer_offsets."""

from __future__ import annotations

import asyncio
import os
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from typing import Any

from ringleader.coordinator.bounded import BoundedCache
from ringleader.coordinator.consumer_groups.group import Regex
from ringleader.coordinator.consumer_groups.topics import Topic, Topics
from ringleader.coordinator.groups.commit import CommitRequest, PreparedCommit, prepare
from ringleader.coordinator.groups.configs import GroupConfigs
from ringleader.coordinator.groups.memory import MemoryTotal
from ringleader.coordinator.groups.offset_deletion import PreparedDeletion
from ringleader.coordinator.groups.offsets import Wanted
from ringleader.coordinator.groups.patterns import PatternsAsked
from ringleader.coordinator.groups.routing import partition_for
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.groups.shard import Shard
from ringleader.coordinator.groups.states import NOT_YET
from ringleader.coordinator.groups.steady import Last
from ringleader.coordinator.journal.entries import EpochEntry, JournalEntry
from ringleader.coordinator.journal.record import Message
from ringleader.coordinator.logs import Seldom
from ringleader.coordinator.machine import Notice, Phase, Ticket
from ringleader.coordinator.run_queue import Slices
from ringleader.coordinator.runtime import patterns
from ringleader.coordinator.runtime.moving import MovingShards
from ringleader.coordinator.runtime.patterns import Sight
from ringleader.coordinator.runtime.shards import Waiting
from ringleader.coordinator.storage.base import Storage
from ringleader.coordinator.topics.catalog import TopicInfo
from ringleader.coordinator.unix_time import UnixTime
from ringleader.protocol.errors import ErrorCode, KafkaError
from ringleader.protocol.messages import ConsumerGroupHeartbeatRequest, HeartbeatRequest, HeartbeatResponse

REMEMBERED_BYTES = 16 * 1024 * 1024
"""Bytes of memory for group ids whose partition is remembered."""

TOPICS_TIMEOUT_S = 5.0
"""How long a partition that was taken over waits for the current topics before it is served."""

LookAtTopics = Callable[[], Coroutine[Any, Any, None]]
"""Brings `GroupRuntime.topics` up to the state of the cluster at the time of the call, or later. Raises
KafkaError while the cluster cannot be asked."""

RETRY_S = 0.1
"""A write of the node itself that a shard refused is tried again after this time."""


def fresh_id(prefix: str) -> str:
    """A member id that is unique and cannot be guessed: the prefix and a random UUID (RFC 9562 v4)."""
    digits = os.urandom(16).hex()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{prefix}-{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def _not_coordinator(
    group_id: str, generation: int, member_id: str, instance_id: str | None, now_ms: int
) -> int:
    return ErrorCode.NOT_COORDINATOR


def _not_yet(group_id: str, epoch: int, member_id: str, last: Last, now_ms: int) -> int:
    return NOT_YET


class GroupRuntime(MovingShards[Shard]):
    """All partitions of __consumer_offsets on one node, with their store.

    A request's answer is returned, or None: then the ticket gets `answer(...)`, or `refuse(error code)`,
    later.
    """

    def __init__(
        self,
        settings: GroupSettings,
        storage: Storage,
        *,
        partitions: int = 50,
        ids: Callable[[str], str] = fresh_id,
        **more: Any,
    ) -> None:
        """`more`: see `MovingShards`."""
        self._settings = settings
        self._ids = ids
        self._confirmed_reads = storage.confirmed_reads
        self._routes: BoundedCache[str, int] = BoundedCache(REMEMBERED_BYTES)
        self.memory = MemoryTotal()
        """Bytes that all groups hold."""
        self.memory_max_bytes = settings.group_metadata_max_bytes
        self.topics = Topics()
        """The cluster's topics, for groups of the consumer protocol."""
        self.configs = GroupConfigs()
        """Of single groups of the consumer protocol."""
        self.sight: Sight | None = None
        """The rights to see topics; None: everybody sees all."""
        self.look_at_topics: LookAtTopics | None = None
        """None: `topics` is always current."""
        self._lives: dict[int, Shard] = {}
        """By partition: the shard that counts there."""
        # One for all lives of all shards: what a shard is loaded with may be a clock that jumped.
        self._unix_time = UnixTime(settings.offsets_retention_check_interval_ms)
        self.heartbeats: list[Callable[[str, int, str, str | None, int], int]] = [
            _not_coordinator
        ] * partitions
        """By partition: `Shard.heartbeat` of the present life."""
        self.stays: list[Callable[[str, int, str, Last, int], int]] = [_not_yet] * partitions
        """By partition: `Shard.stay`, likewise."""
        self.on_served: Callable[[int], None] | None = None
        """Called when a shard begins to serve, in each of its lives."""
        self.rebalances: Counter[tuple[str, str]] = Counter()
        """By cause and outcome, since the start."""
        self.phases_ms: Counter[str] = Counter()
        """Duration of their phases, summed."""
        self.on_journal: Callable[[Message], None] | None = None
        """Called with everything that belongs into the journal."""
        super().__init__(storage, partitions, **more)
        self._warnings = Seldom(self._log.warning, self._now_ms)

    def _serve(self, partition: int) -> None:
        super()._serve(partition)
        if self.on_served is not None:
            self.on_served(partition)

    def _make(self, partition: int) -> Shard:
        former = self._lives.get(partition)
        if former is not None:
            former.give_back()
        shard = self._lives[partition] = Shard(
            partition,
            self._settings,
            self._ids,
            self._unix_time,
            confirmed_reads=self._confirmed_reads,
            memory=self.memory,
            topics=self.topics,
            configs=self.configs,
        )
        self.rewire(partition, shard)
        return shard

    async def _before_serving(self, shard: Shard) -> None:
        """The former owner may have known of topics of which this node does not know yet: its groups would
        begin another epoch for that."""
        if self.look_at_topics is None or not shard.has_consumer_members:
            return
        try:
            async with asyncio.timeout(TOPICS_TIMEOUT_S):
                await self.look_at_topics()
        except (KafkaError, TimeoutError) as error:
            text = "its groups may begin another epoch when the cluster answers"
            self._log.warning(
                "served with topics as of last", partition=shard.partition, reason=str(error), text=text
            )

    def rewire(self, partition: int, shard: Shard | None = None) -> None:
        """The methods of a shard are other ones from now on: it is a new one, or somebody listens, or does no
        longer."""
        shard = shard or self.shards[partition]
        self.heartbeats[partition], self.stays[partition] = shard.heartbeat, shard.stay

    async def start(self) -> None:
        """Open the store and rebuild the groups from it. Raises `StorageError`, or `MalformedError` for a
        record that cannot be read."""
        began = time.perf_counter()
        records = await self.load_all()
        groups = sum(len(shard.list_groups((), (), Waiting()) or []) for shard in self.shards)
        seconds = time.perf_counter() - began
        self._log.info(
            "replayed",
            text=f"replayed {records:,} records, {groups:,} groups in {seconds:.1f} s",
            records=records,
            groups=groups,
            seconds=round(seconds, 3),
        )

    async def stop(self) -> None:
        """See `ShardRuntime.stop`. Rebalances whose followers are still awaited are reported as they are."""
        for partition, loaded in enumerate(self._loaded):
            if loaded:
                self.call(partition, "finish_journal", "", None, lambda shard, now: shard.finish_journal(now))
        await super().stop()

    # ---- requests ----

    def partition_of(self, group_id: str) -> int:
        """See `ShardRuntime.partition_of`; what is in use is remembered."""
        partition = self._routes.get(group_id)
        if partition is None:
            partition = partition_for(group_id, self.partitions)
            self._routes.remember(group_id, partition)
        return partition

    def handle(self, request: Any, ticket: Ticket) -> Any | None:
        """A request of one group (`request.group_id`); see `Shard.handle`."""
        partition, group_id = self.partition_of(request.group_id), request.group_id
        if partition in self._late and isinstance(request, HeartbeatRequest):
            # Answered from memory, so that members stay members; see `MovingShards`.
            member = request.generation_id, request.member_id, request.group_instance_id
            code = self.call(
                partition,
                "Heartbeat",
                group_id,
                None,
                lambda shard, now: shard.heartbeat(group_id, *member, now),
                reads=True,
            )
            if code is not None and code != NOT_YET:
                return HeartbeatResponse(error_code=code)
        if partition in self._late and isinstance(request, ConsumerGroupHeartbeatRequest):
            still = self.call(
                partition,
                "ConsumerGroupHeartbeat",
                group_id,
                None,
                lambda shard, now: shard.keep_alive(request, now),
                reads=True,
            )
            if still is not None:
                return still
        return self.call(
            partition,
            type(request).__name__,
            group_id,
            ticket,
            lambda shard, now: shard.handle(request, ticket, now),
        )

    def committed_partitions(self, group_id: str) -> list[tuple[str, list[int]]]:
        """See `Shard.committed_partitions`."""
        return self.shards[self.partition_of(group_id)].committed_partitions(group_id)

    def prepare(self, request: CommitRequest) -> Generator[None, None, PreparedCommit]:
        """See `groups.commit.prepare`."""
        return prepare(request, self._settings)

    def commit(self, prepared: PreparedCommit, ticket: Ticket) -> Any | None:
        """See `Shard.commit`."""
        request = prepared.request
        return self.call_for(
            request.group_id,
            type(request).__name__,
            ticket,
            lambda shard, now: shard.commit(prepared, ticket, now),
        )

    def delete_offsets(self, prepared: PreparedDeletion, ticket: Ticket) -> Any | None:
        """See `Shard.delete_offsets`."""
        return self.call_for(
            prepared.group_id,
            "OffsetDelete",
            ticket,
            lambda shard, now: shard.delete_offsets(prepared, ticket, now),
        )

    def heartbeat_failed(self, partition: int, group_id: str) -> int:
        """`Shard.heartbeat` was called past this class, and raised: what to answer. When it answers an error,
        `touch` the partition: while a group rebalances, it may have armed a deadline; in all other cases it
        moves one later at most."""
        shard = self.shards[partition]
        self.failed(partition, shard, self._touched[partition], "Heartbeat", group_id)
        unharmed = self.shards[partition] is shard
        return ErrorCode.UNKNOWN_SERVER_ERROR if unharmed else ErrorCode.NOT_COORDINATOR

    def fetch_offsets(
        self,
        group_id: str,
        wanted: Wanted | None,
        require_stable: bool,
        ticket: Ticket,
        member_id: str | None = None,
        member_epoch: int = -1,
        ids: Mapping[str, bytes] | None = None,
    ) -> Any | None:
        """See `OffsetHandler.fetch`."""
        arguments = group_id, wanted, require_stable, ticket, member_id, member_epoch, ids
        return self.call_for(
            group_id, "OffsetFetch", ticket, lambda shard, _: shard.fetch_offsets(*arguments)
        )

    def topic_changed(self, name: str, info: TopicInfo | None) -> None:
        """A topic is as it was not before; None: it was deleted."""
        if info is None:
            self.topics.remove(name)
        else:
            self.topics.put(Topic(name, info.id, info.partitions))

    def describe_consumer(self, group_id: str, ticket: Ticket) -> Any | None:
        """See `ConsumerHandler.describe`."""
        return self.call_for(
            group_id,
            "ConsumerGroupDescribe",
            ticket,
            lambda shard, _: shard.describe_consumer(group_id, ticket),
        )

    def describe(self, group_id: str, version: int, ticket: Ticket) -> Any | None:
        """See `AdminHandler.describe`."""
        return self.call_for(
            group_id, "DescribeGroups", ticket, lambda shard, _: shard.describe(group_id, version, ticket)
        )

    def list_groups(
        self, partition: int, states: Sequence[str], types: Sequence[str], ticket: Ticket
    ) -> list[Any] | None:
        """The groups of one partition; see `AdminHandler.list_groups`."""
        if self.shards[partition].phase is Phase.LOADING:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return self.call(
            partition, "ListGroups", "", ticket, lambda shard, _: shard.list_groups(states, types, ticket)
        )

    def delete_group(self, group_id: str, ticket: Ticket) -> Any | None:
        """See `AdminHandler.delete`."""
        return self.call_for(
            group_id, "DeleteGroups", ticket, lambda shard, now: shard.delete_group(group_id, ticket, now)
        )

    def refusal(self, group_id: str) -> int:
        """See `Shard.refusal`, of the shard of a group."""
        return self.shards[self.partition_of(group_id)].refusal

    def own_offsets(self, group_id: str) -> int | None:
        """See `Shard.own_offsets`."""
        return self.call_for(
            group_id, "own_offsets", None, lambda shard, _: shard.own_offsets(group_id), reads=True
        )

    def expire_member(self, group_id: str, member_id: str) -> None:
        """For tests of applications: see `Shard.expire_member`."""
        partition = self.partition_of(group_id)
        self.shards[partition].expire_member(group_id, member_id, self._now_ms())
        self.touch(partition)

    def ticket_closed(self, group_id: str, ticket: Ticket) -> None:
        """The peer of a request that waits is gone."""
        self.pending[self.partition_of(group_id)].pop(ticket, None)
        self.call_for(group_id, "ticket_closed", None, lambda shard, _: shard.ticket_closed(ticket))

    # ---- what the node itself asks ----

    async def end_transaction(self, partition: int, producer_id: int, *, committed: bool) -> int:
        """A transaction that has offsets in this partition of __consumer_offsets has ended; an error code,
        when that is durable. After an error ask again. The producer's epoch is the transaction coordinator's
        business: it let nobody in with another one."""
        return await self.ask(
            partition,
            "end of a transaction",
            str(producer_id),
            lambda shard, ticket, now: shard.end_transaction(producer_id, committed, ticket, now),
        )

    def open_producers(self) -> list[tuple[int, int]]:
        """Partition and producer id of the transactions that have offsets here."""
        return [
            (partition, producer_id)
            for partition, shard in enumerate(self.shards)
            for producer_id in shard.open_producers()
        ]

    async def forget_topic(self, topic: str, topic_id: bytes) -> None:
        """Returns when no group of this node has committed offsets of a topic any more, durably, but for
        those of another topic that has the name by now. Goes on when shards are loaded again, and waits while
        the store is full. `topic_id`: zero where the cluster has no ids."""
        for partition in range(self.partitions):
            while self.has(partition):
                error = await self.ask(
                    partition,
                    "topic_deleted",
                    topic,
                    lambda shard, ticket, now: shard.topic_deleted(topic, ticket, now, topic_id),
                )
                if not error:
                    break
                await asyncio.sleep(RETRY_S)

    # ---- what the shards tell ----

    def _event(self, partition: int, event: Any) -> None:
        if isinstance(event, Message) and self.on_journal is not None:
            self.on_journal(event)
        if isinstance(event, JournalEntry):
            self._journal(event)
        elif isinstance(event, EpochEntry):
            self._rebalanced(event, members=len(event.members), left=len(event.gone))
        elif isinstance(event, PatternsAsked):
            self.run_queue.add(self._resolve(partition, event))
        elif isinstance(event, Notice):
            fields = {"event": event.text, "group_id": event.subject, "member_id": event.member_id}
            if event.expected:
                self._log.info(**fields)
            else:  # a client may ask for it over and over
                self._warnings.tell(event.text, **fields)

    def _resolve(self, partition: int, request: PatternsAsked) -> Slices:
        """Find the topics that regular expressions of a group match, and tell its shard."""
        shard, found, group_id = self.shards[partition], dict[str, Regex](), request.group_id
        try:
            found = yield from patterns.answer(request, self.topics, self.sight)
        except Exception:
            self._failures.tell("regular expressions not resolved", group_id=group_id)
        if self.shards[partition] is shard:
            self.call(
                partition,
                "resolved",
                group_id,
                None,
                lambda shard, now: shard.resolved(group_id, request.number, found, now),
            )

    def store_figures(self) -> tuple[int, int, tuple[list[int], float]]:
        """Transactions of the store, their records, and how long they took (see `Histogram.copy`)."""
        logs = list(dict.fromkeys((self._store, *self._logs)))
        found = [log.took.copy() for log in logs]
        counts = [sum(column) for column in zip(*(counts for counts, _ in found), strict=True)]
        spread = counts, sum(sum_ms for _, sum_ms in found)
        return sum(counts), sum(log.records for log in logs), spread

    def _journal(self, entry: JournalEntry) -> None:
        self.phases_ms.update(join=entry.join_ms, leader=entry.leader_ms, sync=entry.sync_ms)
        self._rebalanced(
            entry,
            members=len(entry.members_after),
            left=len(entry.left),
            leader=entry.leader,
            join_ms=entry.join_ms,
        )

    def _rebalanced(self, entry: JournalEntry | EpochEntry, *, members: int, left: int, **more: Any) -> None:
        """Count a rebalance and log it. `more`: fields that only the classic protocol has."""
        self.rebalances[entry.cause.value, entry.outcome.value] += 1
        self._log.info(
            "rebalance",
            text=entry.render(),
            group_id=entry.group_id,
            generation=entry.generation,
            cause=entry.cause.value,
            cause_member=entry.cause_member,
            outcome=entry.outcome.value,
            protocol=entry.protocol,
            members=members,
            joined=len(entry.joined),
            left=left,
            duration_ms=entry.duration_ms,
            leader_ms=entry.leader_ms,
            sync_ms=entry.sync_ms,
            **more,
        )
