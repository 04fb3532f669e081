"""What all parts of a shard share: its groups, its deadlines, and the way of records to the log and back.

The rules of that way:

- `apply` is the only thing that changes durable state, with the bytes of the log, live and while loading
  alike; live it runs when the log has the records, never when they are emitted.
- An answer that belongs to records is attached to their write and leaves when that is durable.
- One write of a group's record is in flight at a time; the next ones wait in `Group.saves`.
- A deletion goes alone: it waits until no write of the group is in flight, and until it is durable everything
  that would change the group waits in `Group.blocked`, in the order of arrival.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.committed import CommittedOffset, Uncommitted
from ringleader.coordinator.groups.deadlines import Deadline, DeadlineHeap
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.journal import Cause, Outcome
from ringleader.coordinator.groups.member import Member
from ringleader.coordinator.groups.outbox import Answer, Append, Notice, Outbox, Records, Ticket
from ringleader.coordinator.groups.progress import Progress
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.protocol.errors import ErrorCode

Done = Callable[[int, int], None]
"""Called once with (error code, now_ms): 0 when the records are durable, else the error as clients get it."""

_APPEND_ERRORS = {
    int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION): int(ErrorCode.COORDINATOR_NOT_AVAILABLE),
    int(ErrorCode.NOT_ENOUGH_REPLICAS): int(ErrorCode.COORDINATOR_NOT_AVAILABLE),
    int(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND): int(ErrorCode.COORDINATOR_NOT_AVAILABLE),
    int(ErrorCode.REQUEST_TIMED_OUT): int(ErrorCode.COORDINATOR_NOT_AVAILABLE),
    int(ErrorCode.NOT_LEADER_OR_FOLLOWER): int(ErrorCode.NOT_COORDINATOR),
    int(ErrorCode.KAFKA_STORAGE_ERROR): int(ErrorCode.NOT_COORDINATOR),
    int(ErrorCode.MESSAGE_TOO_LARGE): int(ErrorCode.UNKNOWN_SERVER_ERROR),
    int(ErrorCode.RECORD_LIST_TOO_LARGE): int(ErrorCode.UNKNOWN_SERVER_ERROR),
    int(ErrorCode.INVALID_FETCH_SIZE): int(ErrorCode.UNKNOWN_SERVER_ERROR),
}
"""What the log says -> what clients are told (Kafka GroupMetadataManager behaviour): codes they know how to
act on."""


def client_error(error: int) -> int:
    """The code that clients get when an append failed with `error`; never 0."""
    return _APPEND_ERRORS.get(error, error) or int(ErrorCode.UNKNOWN_SERVER_ERROR)


class Phase(Enum):
    """Where a shard is in its life."""

    LOADING = "loading"
    SERVING = "serving"
    UNLOADED = "unloaded"


class Write:
    """Records on their way to the log. `after` runs when it is decided, whichever way, once its effects are
    there."""

    __slots__ = ("after", "done", "group", "position", "records")

    def __init__(self, position: int, group: Group, content: Records, done: Done | None) -> None:
        self.position = position
        self.group = group
        self.records = content
        self.done = done
        self.after: list[Done] = []


class Save:
    """A write of a group's record; queued behind the one in flight. `waiting` are told when it is decided."""

    __slots__ = ("records", "waiting")

    def __init__(self, content: Records, done: Done) -> None:
        self.records = content
        self.waiting: list[Done] = [done]


class Call:
    """A request that waits for a deletion, or a deletion that waits for its turn."""

    __slots__ = ("exclusive", "refuse", "run")

    def __init__(self, exclusive: bool, run: Callable[[int], None], refuse: Callable[[int], None]) -> None:
        self.exclusive = exclusive
        self.run = run  # (now_ms)
        self.refuse = refuse  # (error code)


class Core:
    """State of a shard and the services that its parts need."""

    __slots__ = (
        "_in_flight",
        "_order",
        "_places",
        "_position",
        "deadlines",
        "dirty",
        "groups",
        "ids",
        "loading",
        "outbox",
        "parked",
        "phase",
        "settings",
        "transactional",
        "wall_difference_ms",
    )

    def __init__(self, settings: GroupSettings, ids: Callable[[str], str]) -> None:
        self.settings = settings
        self.ids = ids
        self.phase = Phase.LOADING
        self.groups: dict[str, Group] = {}  # in order of creation; empty while loading
        self.loading: dict[str, Group] = {}  # what has been replayed so far
        self.deadlines = DeadlineHeap()
        self.parked: dict[Ticket, Member] = {}
        self.outbox = Outbox()
        self.dirty = False
        self.wall_difference_ms = 0
        self.transactional: dict[int, dict[str, None]] = {}  # producer id -> groups that it committed in
        self._position = 0
        self._order = 0
        self._places: dict[bytes, dict[int, CommittedOffset]] = {}  # start of offset keys -> where they go
        self._in_flight: dict[int, Write] = {}

    # ---- out ----

    def wall_ms(self, now_ms: int) -> int:
        """Unix time, for stamps in records and journal; never for timers."""
        return now_ms + self.wall_difference_ms

    def answer(self, ticket: Ticket | None, response: Any) -> None:
        """An answer that is free to go. A ticket that is gone needs none."""
        if ticket is not None:
            self.outbox.answers.append(Answer(ticket, response))
            self.dirty = True

    def notice(self, group_id: str, member_id: str, text: str, *, expected: bool = False) -> None:
        """A line for the operator's log."""
        self.outbox.notices.append(Notice(group_id, member_id, text, expected))
        self.dirty = True

    def take_outbox(self) -> Outbox:
        """Everything since the last time."""
        outbox, self.outbox = self.outbox, Outbox()
        self.dirty = False
        return outbox

    # ---- journal ----

    def begin_rebalance(self, group: Group, cause: Cause, member_id: str, reason: str, now_ms: int) -> None:
        """Start the notes about a rebalance."""
        group.progress = Progress(group, cause, member_id, reason, now_ms)

    def end_rebalance(self, group: Group, outcome: Outcome, now_ms: int) -> None:
        """Hand over the journal entry, if a generation came of the rebalance."""
        progress, group.progress = group.progress, None
        if progress is None or progress.joined_ms < 0:
            return
        group.late_entry = progress.entry(group, outcome, now_ms, self.wall_ms(now_ms))
        if group.generation <= group.floor:
            self.journal_late(group)

    def journal_late(self, group: Group) -> None:
        """Hand over an entry whose generation number is now certain never to be used again. Only the number
        of a group that became empty may not be: until its record is durable, a crash may give it to another
        one."""
        entry, group.late_entry = group.late_entry, None
        if entry is not None:
            self.outbox.journal.append(entry)
            self.dirty = True

    # ---- groups ----

    def find(self, group_id: str) -> Group | None:
        """The group, if it exists for clients."""
        group = self.groups.get(group_id)
        return None if group is None or group.is_void else group

    def find_or_add(self, group_id: str) -> Group | None:
        """The group, made if it is missing; None if the shard is full."""
        group = self.groups.get(group_id)
        if group is None:
            if len(self.groups) >= self.settings.shard_max_groups:
                return None
            group = self.groups[group_id] = Group(group_id)
        return group

    def forget_if_void(self, group: Group) -> None:
        """Drop a group of which nothing is left."""
        if group.is_void and group.is_idle and not group.floor and self.groups.get(group.group_id) is group:
            for deadline in (group.join_deadline, group.sync_deadline, group.save_deadline):
                self.deadlines.cancel(deadline)
            del self.groups[group.group_id]

    def drop_pending(self, group: Group, member_id: str) -> bool:
        """Forget a member id that was given out; whether it was known."""
        pending = group.pending.pop(member_id, None)
        if pending is None:
            return False
        self.deadlines.cancel(pending)
        return True

    # ---- deadlines ----

    def arm_session(self, member: Member, now_ms: int) -> None:
        """Start a member's session afresh."""
        self.deadlines.arm(member, now_ms + member.session_timeout_ms)

    def arm(self, deadline: Deadline, due_ms: int) -> None:
        """Start or move any deadline."""
        self.deadlines.arm(deadline, due_ms)

    # ---- to the log and back ----

    def write(self, group: Group, content: Records, done: Done | None) -> Write:
        """Emit records. `done` is told when they took effect or failed."""
        self._position += 1
        write = Write(self._position, group, content, done)
        self._in_flight[write.position] = group.last_write = write
        group.writes += 1
        self.outbox.appends.append(Append(write.position, content))
        self.dirty = True
        return write

    def save(self, group: Group, content: Records, done: Done) -> Save:
        """Emit records that hold the group's record, after those already on their way."""
        save = Save(content, done)
        group.saves.append(save)
        if len(group.saves) == 1:
            self._emit_save(group)
        return save

    def _emit_save(self, group: Group) -> None:
        def decided(error: int, now_ms: int) -> None:
            save = group.saves.pop(0)
            for done in save.waiting:
                done(error, now_ms)
            if group.saves:
                self._emit_save(group)

        self.write(group, group.saves[0].records, decided)

    def fail_queued_saves(self, group: Group, error: int, now_ms: int) -> None:
        """The group is gone: what waited behind its record can no longer be written."""
        while group.saves:
            for done in group.saves.pop(0).waiting:
                done(error, now_ms)

    def appended(self, position: int, now_ms: int) -> None:
        """Everything in flight up to `position` is durable: it takes effect."""
        in_flight = self._in_flight
        while in_flight:
            first = next(iter(in_flight))
            if first > position:
                return
            write = in_flight.pop(first)
            for key, value in write.records:
                self.apply(key, value)
            self._decided(write, 0, now_ms)

    def append_failed(self, position: int, error: int, now_ms: int) -> None:
        """The write at `position` came to nothing."""
        write = self._in_flight.pop(position, None)
        if write is not None:
            self._decided(write, client_error(error), now_ms)

    def _decided(self, write: Write, error: int, now_ms: int) -> None:
        group = write.group
        group.writes -= 1
        if group.last_write is write:
            group.last_write = None
        if write.done is not None:
            write.done(error, now_ms)
        for done in write.after:
            done(error, now_ms)
        if group.blocked:
            waiting, group.blocked = group.blocked, []
            self.forget_if_void(group)  # what comes after a deletion starts clean
            for call in waiting:
                self.submit(self.groups.get(group.group_id), call, now_ms)
        elif not group.offsets and not group.record:
            self.forget_if_void(group)

    def forget_everything(self) -> None:
        """The shard is unloaded: no group, no timer, no memory of it."""
        self.groups.clear()
        self.loading.clear()
        self.parked.clear()
        self._places.clear()
        self.transactional.clear()
        self.deadlines = DeadlineHeap()

    def abandon_writes(self, error: int, now_ms: int) -> None:
        """Unloading: whoever waits for records is told `error`; whether they reach the log stays open."""
        while self._in_flight:
            self._decided(self._in_flight.pop(next(iter(self._in_flight))), error, now_ms)

    # ---- deletions go alone ----

    def submit(self, group: Group | None, call: Call, now_ms: int) -> bool:
        """Run `call` now if nothing is in its way, else queue it. Whether it ran."""
        if group is not None and (group.is_gated or (call.exclusive and not group.is_idle)):
            group.blocked.append(call)
            return False
        call.run(now_ms)
        return True

    # ---- durable state ----

    def apply(self, key: bytes, value: bytes | None) -> None:
        """The only mutator of durable state. Unknown key types are skipped, as Kafka's loader does.

        Raises `MalformedError` for a record that cannot be read.
        """
        if value is not None:
            # Nearly all records are offsets of topics that are known already.
            partitions = self._places.get(key[:-4])
            if partitions is not None:
                partitions[records.key_partition(key)] = records.decode_offset_value(value)
                return
        decoded = records.decode_key(key)
        if decoded is None:
            return
        kind, group_id, topic, partition, producer_id = decoded
        table = self.loading if self.phase is Phase.LOADING else self.groups
        group = table.get(group_id)
        if group is None:
            if value is None:
                return
            group = table[group_id] = Group(group_id)
        if kind == records.OFFSET:
            self._apply_offset(group, topic, partition, value)
        elif kind == records.PENDING_OFFSET:
            self._apply_pending(group, topic, partition, producer_id, value)
        elif kind == records.GROUP:
            group.record = value
        else:
            group.floor = 0 if value is None else records.decode_floor_value(value)

    def _apply_offset(self, group: Group, topic: str, partition: int, value: bytes | None) -> None:
        partitions = group.offsets.get(topic)
        if value is not None:
            if partitions is None:
                partitions = group.offsets[topic] = {}
            partitions[partition] = records.decode_offset_value(value)
            if not group.uncommitted:  # the short way of `apply` does not look at them
                self._places[records.offset_key_prefix(group.group_id, topic)] = partitions
            for table in group.uncommitted.values():
                open_one = table.get((topic, partition))
                if open_one is not None:
                    open_one.superseded = True
        elif partitions is not None:
            partitions.pop(partition, None)
            if not partitions:
                del group.offsets[topic]
                self._places.pop(records.offset_key_prefix(group.group_id, topic), None)

    def _apply_pending(
        self, group: Group, topic: str, partition: int, producer_id: int, value: bytes | None
    ) -> None:
        table = group.uncommitted.get(producer_id)
        if value is not None:
            records.decode_offset_value(value)  # a record that cannot be read must not wait for its commit
            if table is None:
                table = group.uncommitted[producer_id] = {}
                for one in group.offsets:
                    self._places.pop(records.offset_key_prefix(group.group_id, one), None)
            self._order += 1
            table[topic, partition] = Uncommitted(value, self._order)
            self.in_transaction(producer_id, group.group_id)
        elif table is not None:
            table.pop((topic, partition), None)
            if not table:
                del group.uncommitted[producer_id]

    # ---- open transactions ----

    def in_transaction(self, producer_id: int, group_id: str) -> None:
        """The producer has offsets in the group, or has them on their way to the log."""
        self.transactional.setdefault(producer_id, {})[group_id] = None

    def transaction_over(self, producer_id: int, group_id: str) -> None:
        """It has none any more."""
        groups = self.transactional.get(producer_id)
        if groups is not None:
            groups.pop(group_id, None)
            if not groups:
                del self.transactional[producer_id]
