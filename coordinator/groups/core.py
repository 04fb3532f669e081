"""The state that all parts of a shard share: its groups, its deadlines, and the one way in which durable
state changes.

A record takes effect the moment it is emitted, by `apply`, which loading uses as well; every answer carries
the position that it depends on (see `coordinator.machine`). For a group that is `Group.position`, the last
write of its record or its reserved generation, and `Group.offsets_position`, the last write of an offset of
it. A member of the consumer protocol whose step into the next epoch is put off is told of nothing that its
group's target says: its answer depends on `Group.moved_before_target`.

Where ownership has to be confirmed (`Storage.confirmed_reads`), an owner that was stopped for a minute may
not be one any more, and its memory may say what is long past: members that left, offsets from before, or that
everybody's session is over since nobody could reach it. So all answers wait for confirmed ownership (see
`coordinator.machine`): reads, successes, errors, journal rows, and the conclusions of timers. These leave
without it, and only these:

- refusals that no state of a group is behind: a request that is wrong in itself, a shard that is loading or
  unloaded, and a connection that is closed without an answer;
- the plain success of a heartbeat. A zombie's is harmless: its member goes on as it did, and whatever it
  commits is fenced. And it is short: the shard of a group with members confirms its ownership every few
  seconds, and at once when it wakes. A heartbeat's error waits for confirmed ownership as everything else
  does; it would make a client rejoin, or give up, though nothing has happened to its group.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import Any

from ringleader.coordinator.consumer_groups import records as consumer_records
from ringleader.coordinator.consumer_groups.group import ConsumerGroup
from ringleader.coordinator.consumer_groups.member import Subscription
from ringleader.coordinator.consumer_groups.topics import Topics
from ringleader.coordinator.deadlines import DeadlineHeap
from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.committed import Uncommitted
from ringleader.coordinator.groups.configs import HEARTBEAT, SESSION, GroupConfigs, broker_value
from ringleader.coordinator.groups.deadlines import GroupDeadline, Kind
from ringleader.coordinator.groups.epoch_notes import EpochProgress
from ringleader.coordinator.groups.epochs import Epochs
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.member import Member
from ringleader.coordinator.groups.memory import MemoryShare, MemoryTotal
from ringleader.coordinator.groups.reports import Reports
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.long_work import LongWork
from ringleader.coordinator.machine import NOTHING, Append, Drained, Notice, Outbox, Phase, Records, Ticket
from ringleader.coordinator.unix_time import UnixTime
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import GroupMetadataValue

STORE_FULL = int(ErrorCode.COORDINATOR_NOT_AVAILABLE)
"""The answer to a request that would write while the store is full: clients try again."""
MEMORY_FULL = "refused, for the groups of this node take all of group.metadata.max.bytes"
"""The operator's notice of a request of a member."""


class Core:
    """State of a shard and the services that its parts need."""

    def __init__(
        self,
        settings: GroupSettings,
        ids: Callable[[str], str],
        unix_time: UnixTime | None = None,
        confirmed_reads: bool = False,
        memory: MemoryTotal | None = None,
        topics: Topics | None = None,
        configs: GroupConfigs | None = None,
    ) -> None:
        self.settings = settings
        self.configs = configs if configs is not None else GroupConfigs()
        """Of single groups; they change between calls only."""
        self.default_assignor = settings.group_consumer_assignors[0]
        """Of groups whose members ask for none."""
        self._beats = broker_value(settings, SESSION), broker_value(settings, HEARTBEAT)
        self.memory = MemoryShare(memory or MemoryTotal())
        self.ids = ids
        self.topics = topics if topics is not None else Topics()
        """The cluster's; they change between calls only."""
        self.phase = Phase.LOADING
        self.full = False
        """The store is full: nothing that would write may begin."""
        self.out = Outbox([records.READ_BARRIER_RECORD] if confirmed_reads else None)
        self.position = NOTHING
        """Of the last write of any group's record."""
        self._begun = 0
        self._fresh: dict[Group, tuple[Append, set[str]]] = {}
        """Of `replace_member`: appends that have not been handed over, and the member ids that they bring."""
        self._rewritten: dict[int, tuple[Append, GroupMetadataValue]] = {}
        """Those of them whose record is another one by now, by position."""
        self._waits_since_ms: int | None = None
        """Since when something waits for the log, and nothing came back; None: nothing waits."""
        self.groups: dict[str, Group] = {}  # in order of creation
        self.deadlines: DeadlineHeap[GroupDeadline] = DeadlineHeap()
        self.work = LongWork(self.out)
        self.work_deadline = GroupDeadline(None, Kind.WORK)
        self.parked: dict[Ticket, Member] = {}
        self.unix_time = unix_time or UnixTime(settings.offsets_retention_check_interval_ms)
        self.transactional: dict[int, dict[str, None]] = {}
        """Producer id -> groups in which it has offsets of an open transaction."""
        self.reports = Reports(
            self.out, self.groups, self.deadlines, self.unix_time, lambda: self.phase is Phase.SERVING
        )
        self.epochs = Epochs(
            self.reports,
            self.groups,
            self.deadlines,
            self.unix_time,
            self.topics,
            self.session_ms,
            self.default_assignor,
        )
        self._order = 0
        # Start of offset keys -> partitions of that group and topic; not of groups with open transactions.
        self._partitions: dict[bytes, dict[int, bytes]] = {}
        self._on_its_way: deque[tuple[int, Group]] = deque()  # records of groups
        self._deleted: deque[Group] = deque()  # deleted, but not durably yet

    @property
    def refusal(self) -> int:
        """The answer of a shard that does not serve to most requests; 0 when it serves."""
        if self.phase is Phase.SERVING:
            return 0
        loading = self.phase is Phase.LOADING
        return int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if loading else ErrorCode.NOT_COORDINATOR)

    @property
    def changes(self) -> int:
        """See `Machine.changes`."""
        return self._begun + self.out.changes + self.deadlines.changes

    def unload(self) -> None:
        """Forget everything, and serve nothing more."""
        self.phase = Phase.UNLOADED
        self.full = False
        for memory in (self.groups, self.parked, self.transactional, self._partitions):
            memory.clear()
        self._fresh.clear()
        self._rewritten.clear()
        self._on_its_way.clear()
        self._deleted.clear()
        self.deadlines.clear()
        self.work.clear()
        self.epochs.clear()
        self.out.clear()
        self._waits_since_ms = None

    def begin_change(self) -> None:
        """To be called before anything changes that is no deadline and is not handed over."""
        self._begun += 1

    # ---- out ----

    def reply(self, ticket: Ticket, response: Any, position: int) -> Any | None:
        """The response if it is free to go; else it leaves when `position` is durable, and ownership is
        confirmed."""
        if position <= self.out.durable and not (self.out.confirms and self.phase is Phase.SERVING):
            return response
        self.out.answer(ticket, response, position)
        return None

    # ---- groups ----

    def find(self, group_id: str) -> Group | None:
        """The group, if it exists for clients."""
        group = self.groups.get(group_id)
        return None if group is None or group.is_absent else group

    def position_of(self, group_id: str) -> int:
        """The position that an answer about the group depends on, also that there is none."""
        group = self.groups.get(group_id)
        return NOTHING if group is None else group.position

    def find_or_add(self, group_id: str) -> Group | None:
        """The group, made if it is missing; None if the shard is full of groups."""
        found = self.groups.get(group_id)
        if found is not None and not (found.is_absent and not found.reserved_generation):
            return found
        if found is None and len(self.groups) >= self.settings.shard_max_groups:
            return None
        self.begin_change()
        group = self.groups[group_id] = Group(group_id, self.memory)
        if found is not None:  # what comes after a deletion starts clean, and depends on the deletion
            group.position, group.offsets_position = found.position, found.offsets_position
        return group

    def forget_if_absent(self, group: Group) -> None:
        """Drop a group of which nothing is left, once that is durable: answers about it wait for that."""
        if not group.is_absent or group.reserved_generation or self.groups.get(group.group_id) is not group:
            return
        self.begin_change()
        if max(group.position, group.offsets_position) > self.out.durable:
            self._deleted.append(group)
            return
        for deadline in (group.join_deadline, group.sync_deadline, group.delegation):
            if deadline is not None:
                self.deadlines.cancel(deadline)
        del self.groups[group.group_id]

    def take_back(self, group: Group, member_id: str) -> bool:
        """Forget a member id that was given out; whether it was known."""
        if member_id not in group.given_out:
            return False
        self.begin_change()
        taken = group.take_back(member_id)
        assert taken is not None
        self.deadlines.cancel(taken)
        return True

    def has_memory(
        self,
        group: Group,
        member_id: str,
        now_ms: int,
        *,
        members: int = 0,
        record: int = 0,
        consumer: int = 0,
    ) -> bool:
        """Whether the group's members and its record may take that many bytes more, as the member asks for;
        if not, that is reported to the operator. A group that does not grow always may. `consumer`: see
        `Group.growth`."""
        growth = group.growth(members, record, consumer)
        if growth <= 0 or self.memory.total.counted + growth <= self.settings.group_metadata_max_bytes:
            return True
        notice = Notice(group.group_id, member_id, MEMORY_FULL)
        self.out.report(lambda _: notice, group.position, now_ms)
        return False

    def config(self, group_id: str, name: str) -> int:
        """A configuration of a group of the consumer protocol; see `GroupConfigs.value`."""
        return self.configs.value(self.settings, group_id, name)

    def beats(self, group_id: str) -> tuple[int, int]:
        """Session timeout and heartbeat interval of the members of a group of the consumer protocol."""
        if group_id not in self.configs.of_groups:
            return self._beats
        return self.config(group_id, SESSION), self.config(group_id, HEARTBEAT)

    def session_ms(self, group_id: str, described: Subscription) -> int:
        """The session of a member of a group of the consumer protocol. A classic one asked for its length."""
        classic = described.classic
        return self.beats(group_id)[0] if classic is None else classic.session_timeout_ms

    def assignor(self, consumer: ConsumerGroup) -> str:
        """The assignor of the coordinator for a group: that which its members ask for, if it is served."""
        wanted, served = consumer.server_assignor(), self.settings.group_consumer_assignors
        return wanted if wanted in served else served[0]

    # ---- deadlines ----

    def arm_session(self, member: Member, now_ms: int) -> None:
        """Start a member's session afresh."""
        self.deadlines.arm(member, now_ms + member.session_timeout_ms)

    def arm_sessions(self, now_ms: int) -> None:
        """Start all sessions afresh: members could not keep them alive, because of us."""
        for group in self.groups.values():
            for member in group.members.values():
                if not member.is_new:  # no session yet, but a longer time for its first join phase
                    self.arm_session(member, now_ms)
            for one in group.consumer.members.values() if group.consumer is not None else ():
                due_ms = now_ms + self.session_ms(group.group_id, one.subscription)
                self.arm(group.consumer_deadlines[one.member_id].session, due_ms)

    def arm(self, deadline: GroupDeadline, due_ms: int) -> None:
        """Start or move any deadline."""
        self.deadlines.arm(deadline, due_ms)

    def journal_fired(self, deadline: Any, now_ms: int) -> None:
        """A rebalance takes long."""
        if isinstance(deadline, EpochProgress):
            self.epochs.look(deadline, now_ms)
        else:
            self.reports.finish_overdue(deadline, now_ms)

    # ---- long work ----

    def begin_work(self, job: Iterator[None], now_ms: int) -> None:
        """Do a job in steps, the first one as soon as the machine is called for what is due."""
        self.work.add(job)
        self.arm(self.work_deadline, now_ms)

    def work_fired(self, deadline: GroupDeadline, now_ms: int) -> None:
        """The next step of long work is due."""
        due_ms = self.work.step(now_ms)
        if due_ms is not None:
            self.arm(deadline, due_ms)

    def answer_after(self, job: Iterator[None], ticket: Ticket, now_ms: int) -> int | None:
        """The answer to a request for a job, error code NONE, when all of it is durable. The first step is
        done now, as it is all there is to do in most cases."""
        if next(job, job) is job:
            return self.reply(ticket, int(ErrorCode.NONE), self.out.emitted)

        def rest() -> Iterator[None]:
            yield from job
            self.out.answer(ticket, int(ErrorCode.NONE), self.out.emitted)

        self.begin_work(rest(), now_ms)
        self.work.written = self.out.emitted
        return None

    # ---- to the log ----

    def write_group(
        self, group: Group, value: GroupMetadataValue, raw: bytes, more: Iterable[tuple[bytes, bytes]] = ()
    ) -> None:
        """Emit the group's record, `value` as the bytes `raw`, with `more` in the same append."""
        self._emit_group(group, [(records.group_key(group.group_id), raw), *more], value)

    def replace_member(
        self, group: Group, value: GroupMetadataValue, more_bytes: int, old_id: str, fresh: str
    ) -> None:
        """Emit the group's record as `value`, that many bytes longer than it is, with one member id in place
        of another. Many static members come back at once, and a large group's record is not to be made and
        stored for each: if the last one of this kind has not been handed over, it becomes this one, and who
        waits for it waits for all of it. Unless it brings `old_id`, which then would not be stored at all."""
        append, brought = self._fresh.get(group, (None, set[str]()))
        if append is None or old_id in brought:
            self.write_group(group, value, records.encode_group_value(value))
            if self.out.newest is not None:
                self._fresh[group] = self.out.newest, {fresh}
            return
        self.begin_change()
        brought.add(fresh)
        group.set_record(value, group.record_bytes + more_bytes)
        self._rewritten[append.position] = append, value

    def drain(self) -> Drained:
        """See `Machine`."""
        for append, value in self._rewritten.values():
            append.records[0] = append.records[0][0], records.encode_group_value(value)
        self._rewritten.clear()
        self._fresh.clear()
        return self.out.take()

    def reserve(self, group: Group) -> None:
        """Emit the group's next reserved generation: no number up to it is used twice, a crash included."""
        self._emit_group(group, [self._reservation(group)])

    def create(self, group: Group, now_ms: int) -> None:
        """Emit the record of a group without members, and its first reserved generation."""
        value = records.empty_group_value(self.unix_time.stamp_ms(now_ms))
        self.write_group(group, value, records.encode_group_value(value), [self._reservation(group)])

    def _reservation(self, group: Group) -> tuple[bytes, bytes]:
        generation = group.last_generation + self.settings.generation_block
        return records.reserved_key(group.group_id), records.reserved_value(generation)

    def _emit_group(
        self, group: Group, content: list[tuple[bytes, bytes]], value: GroupMetadataValue | None = None
    ) -> None:
        group.position = self.position = self.out.emit([*content])
        group.on_its_way, group.quick = True, False
        self._on_its_way.append((group.position, group))
        self._fresh.pop(group, None)  # what comes later is not to stand before this
        for key, raw in content:
            self._apply(key, raw, value)

    def write_offsets(
        self, group: Group, content: Records, keys: Iterable[records.Key | None] = repeat(None)
    ) -> int:
        """Emit records of the group's offsets; their position. `keys`: theirs, decoded, where known."""
        was_absent = group.is_absent
        group.offsets_position = position = self.out.emit(content)
        for (key, raw), named in zip(content, keys, strict=False):
            self.apply(key, raw, named)
        if group.is_absent is not was_absent:  # of a group without a record its offsets say whether it exists
            group.position = self.position = position
        if not group.offsets:
            self.forget_if_absent(group)
        return position

    def write_consumer(self, group: Group, content: Records) -> None:
        """Emit records of the group as one of the consumer protocol, which took effect already."""
        group.position = self.position = self.out.emit(content)
        group.on_its_way, group.quick = True, False
        self._on_its_way.append((group.position, group))
        self._fresh.pop(group, None)  # what comes later is not to stand before this
        self.forget_if_absent(group)

    def write_tombstones(self, group: Group, dead: list[records.Key]) -> int:
        """Emit what deletes these records of the group; their position."""
        return self.write_offsets(group, [(records.encode_key(key), None) for key in dead], dead)

    def delete(self, group: Group) -> int:
        """Emit what deletes a group for good; its position. It needs not have any record."""
        for member_id in list(group.given_out):
            self.take_back(group, member_id)
        dead = records.keys_of(group)
        modern = [] if group.consumer is None else consumer_records.tombstones(group.consumer)
        if dead or modern:
            content: Records = [*((records.encode_key(key), None) for key in dead), *modern]
            keys = [*dead, *repeat(None, len(modern))]
            group.position = self.position = self.write_offsets(group, content, keys)
        self.forget_if_absent(group)
        return max(group.position, group.offsets_position)

    def look_at_log(self, now_ms: int) -> None:
        """After whatever may have written: notes since when something waits."""
        if self.out.emitted <= self.out.durable:
            self._waits_since_ms = None
        elif self._waits_since_ms is None:
            self._waits_since_ms = now_ms

    def log_is_silent(self, now_ms: int) -> bool:
        """Whether members may be silent because of us: the log has not answered for a long time, and a client
        that waits for it may have heartbeats behind that request on its connection."""
        since_ms = self._waits_since_ms
        return since_ms is not None and now_ms - since_ms >= self.settings.log_silence_ms

    def durable(self, position: int, now_ms: int) -> None:
        """Everything up to `position` is in the log for good."""
        silent = self.log_is_silent(now_ms)
        self.out.advance(position, now_ms)
        self._waits_since_ms = None
        self.look_at_log(now_ms)
        if silent:
            self.arm_sessions(now_ms)
        while self._on_its_way and self._on_its_way[0][0] <= position:
            group = self._on_its_way.popleft()[1]
            if group.position <= position:
                group.on_its_way = False
                group.look()
        while self._deleted and max(self._deleted[0].position, self._deleted[0].offsets_position) <= position:
            self.forget_if_absent(self._deleted.popleft())

    # ---- durable state ----

    def replay(self, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Records of the log. Raises `MalformedError` for one that cannot be read."""
        known, from_bytes, is_plain = self._partitions, int.from_bytes, records.is_plain_offset
        for key, value in rows:
            found = known.get(key[:-4])
            if found and value and is_plain(value):
                found[from_bytes(key[-4:], "big", signed=True)] = value
                continue
            if value is not None:
                records.check(key, value)
            self.apply(key, value)

    def apply(self, key: bytes, value: bytes | None, named: records.Key | None = None) -> None:
        """The only thing that changes durable state: one record takes effect, live and at load alike. Unknown
        key types are skipped, as Kafka's loader does. Raises `MalformedError` for what cannot be read.
        `named`: the key, decoded, where that is known."""
        # Nearly all records are offsets of topics that are known already.
        partitions = self._partitions.get(key[:-4]) if value is not None else None
        if partitions is not None and value is not None:
            partitions[records.key_partition(key)] = value
        else:
            self._apply(key, value, None, named)

    def _apply(
        self,
        key: bytes,
        value: bytes | None,
        content: GroupMetadataValue | None,
        named: records.Key | None = None,
    ) -> None:
        """`content`: the value of a group's record, where it need not be read from the bytes again; `named`:
        likewise the key."""
        decoded = named or records.decode_key(key)
        if decoded is None:
            self._apply_consumer(key, value)
            return
        kind, group_id, topic, partition, producer_id = decoded
        group = self.groups.get(group_id)
        if group is None:
            if value is None:
                return
            group = self.groups[group_id] = Group(group_id, self.memory)
        if kind == records.OFFSET:
            self._apply_offset(group, topic, partition, value)
        elif kind == records.UNCOMMITTED_OFFSET:
            self._apply_pending(group, topic, partition, producer_id, value)
        elif kind == records.UNCOMMITTED_LATER:
            _apply_later(group, topic, partition, producer_id, value)
        elif kind == records.RESERVED_GENERATION:
            group.reserved_generation = 0 if value is None else records.decode_reserved_value(value)
        elif value is None:
            group.set_record(None, 0)
        else:
            group.set_record(content or records.decode_group_value(value), len(value))

    def _apply_consumer(self, key: bytes, value: bytes | None) -> None:
        named = consumer_records.decode_key(key)
        if named is None:
            return
        kind, group_id, second = named
        group = self.groups.get(group_id)
        if group is None or group.consumer is None:
            if value is None:
                return
            if group is None:
                group = self.groups[group_id] = Group(group_id, self.memory)
            if group.consumer is None:
                group.consumer = ConsumerGroup(group_id)
        consumer_records.apply(group.consumer, kind, second, value)
        if value is None and not group.consumer.exists:
            group.consumer = None
        group.count_consumer()

    def _apply_offset(self, group: Group, topic: str, partition: int, value: bytes | None) -> None:
        partitions = group.offsets.get(topic)
        if value is not None:
            if partitions is None:
                partitions = group.offsets[topic] = {}
            partitions[partition] = value
            if not group.uncommitted:  # the short way of `apply` does not look at them
                self._partitions[records.offset_key_prefix(group.group_id, topic)] = partitions
            for open_one in group.open_at.get((topic, partition), {}).values():
                open_one.superseded = True
        elif partitions is not None:
            partitions.pop(partition, None)
            if not partitions:
                del group.offsets[topic]
                self._partitions.pop(records.offset_key_prefix(group.group_id, topic), None)

    def _apply_pending(
        self, group: Group, topic: str, partition: int, producer_id: int, value: bytes | None
    ) -> None:
        table = group.uncommitted.get(producer_id)
        if value is not None:
            if table is None:
                table = group.uncommitted[producer_id] = {}
                self.transactional.setdefault(producer_id, {})[group.group_id] = None
                for one in group.offsets:
                    self._partitions.pop(records.offset_key_prefix(group.group_id, one), None)
            self._order += 1
            place, open_one = (topic, partition), Uncommitted(value, self._order)
            table[place] = open_one
            there = group.open_at.get(place)
            if there is None:
                group.open_at[place] = {producer_id: open_one}
            else:
                there[producer_id] = open_one
        elif table is not None and table.pop((topic, partition), None) is not None:
            there = group.open_at[topic, partition]
            del there[producer_id]
            if not there:
                del group.open_at[topic, partition]
            if not table:
                del group.uncommitted[producer_id]
                groups = self.transactional[producer_id]
                del groups[group.group_id]
                if not groups:
                    del self.transactional[producer_id]


def _apply_later(group: Group, topic: str, partition: int, producer_id: int, value: bytes | None) -> None:
    if value is None:
        group.later.discard((producer_id, topic, partition))
        return
    group.later.add((producer_id, topic, partition))
    open_one = group.uncommitted.get(producer_id, {}).get((topic, partition))
    if open_one is not None:
        open_one.superseded = False


class Part:
    """One of the parts that share a core."""

    def __init__(self, core: Core) -> None:
        self.core = core
