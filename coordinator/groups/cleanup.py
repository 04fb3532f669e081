"""Retention: offsets that nobody needs any more go, and so do empty groups without offsets (KIP-211).

When the clock of an offset starts: for a simple group at its commit; for a group that was managed when it
became empty; in a stable consumer group at the commit, for topics that nobody subscribes to any more.
Anything else keeps its offsets: a rebalancing group (KAFKA-13636), other protocol types with members,
unreadable subscriptions.
"""

from __future__ import annotations

from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.committed import CommittedOffset
from ringleader.coordinator.groups.core import Call, Core
from ringleader.coordinator.groups.deadlines import Deadline, Kind
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.offsets import is_subscribed
from ringleader.coordinator.groups.outbox import Records
from ringleader.coordinator.groups.states import State
from ringleader.coordinator.groups.vote import CONSUMER_TYPE

_GROUPS_PER_STEP = 500
"""Groups that one step looks at, so that a large shard is not held up (G20)."""
_STEP_PAUSE_MS = 10
_MS_PER_MINUTE = 60_000


_Entries = frozenset[tuple[int, bytes]]
"""Offsets of a topic in a group, those of open transactions too: partition, and the value of the record,
which is the same once the transaction has committed."""


_NotDeleted = tuple[str, str, _Entries]
"""Group id, topic, and what was there when the topic went."""


class Cleanup:
    """The periodic look for what has expired, and the consequences of a deleted topic."""

    __slots__ = ("_not_deleted", "_retry", "_todo", "core", "deadline")

    def __init__(self, core: Core) -> None:
        self.core = core
        self.deadline = Deadline(Kind.CLEANUP, None)
        self._todo: list[str] = []
        self._retry = Deadline(Kind.CLEANUP, None)
        self._not_deleted: list[_NotDeleted] = []  # deletions that could not be stored

    def begin(self, now_ms: int) -> None:
        """Start to look periodically."""
        self.core.arm(self.deadline, now_ms + self.core.settings.offsets_retention_check_interval_ms)

    def fired(self, deadline: Deadline, now_ms: int) -> None:
        """One of the two deadlines is due."""
        if deadline is self._retry:
            again, self._not_deleted = self._not_deleted, []
            for group_id, topic, entries in again:
                self._forget_topic(group_id, topic, entries, now_ms)
        else:
            self._look(now_ms)

    def _look(self, now_ms: int) -> None:
        """Look at some of the groups; the rest soon, then all again after the interval."""
        if not self._todo:
            self._todo = list(reversed(self.core.groups))
        step, self._todo = self._todo[-_GROUPS_PER_STEP:], self._todo[:-_GROUPS_PER_STEP]
        for group_id in reversed(step):
            group = self.core.groups.get(group_id)
            # A group with writes on their way is in use: the next time will do.
            if group is not None and group.is_idle:
                self._clean(group, now_ms)
        if self._todo:
            self.core.arm(self.deadline, now_ms + _STEP_PAUSE_MS)
        else:
            self.begin(now_ms)

    def _clean(self, group: Group, now_ms: int) -> None:
        gone: Records = [
            (records.offset_key(group.group_id, topic, partition), None)
            for topic, partitions in group.offsets.items()
            for partition, offset in partitions.items()
            if self.is_expired(group, topic, offset, now_ms) and not group.is_unstable(topic, partition)
        ]
        nothing_left = len(gone) == sum(len(partitions) for partitions in group.offsets.values())
        if nothing_left and group.state is State.EMPTY and not (group.pending or group.uncommitted):
            gone = records.group_tombstones(group)
        if gone:
            self._delete(group, gone)
        else:
            self.core.forget_if_void(group)

    def is_expired(self, group: Group, topic: str, offset: CommittedOffset, now_ms: int) -> bool:
        """Whether the offset's time is over, by the rules above; an explicit expiry (v2 to v4 commits) counts
        instead of the retention time, not instead of the rules."""
        starts_ms = self._clock_start(group, topic, offset)
        if starts_ms is None:
            return False
        wall_ms = self.core.wall_ms(now_ms)
        if offset.expire_ms >= 0:
            return wall_ms >= offset.expire_ms
        return wall_ms - starts_ms >= self.core.settings.offsets_retention_minutes * _MS_PER_MINUTE

    def _clock_start(self, group: Group, topic: str, offset: CommittedOffset) -> int | None:
        """Unix time from which the offset ages; None: it does not."""
        if group.state is State.EMPTY:
            if group.protocol_type and group.state_since_wall_ms >= 0:
                return group.state_since_wall_ms
            return offset.commit_ms
        if group.state is State.STABLE and group.protocol_type == CONSUMER_TYPE:
            return None if is_subscribed(group, topic) else offset.commit_ms
        return None

    def topic_deleted(self, topic: str, now_ms: int) -> None:
        """Forget the topic's offsets in all groups, commits that are on their way included."""
        for group in list(self.core.groups.values()):
            if group.is_idle and topic not in group.offsets and not group.uncommitted:
                continue
            self._forget_topic(group.group_id, topic, None, now_ms)

    def _forget_topic(self, group_id: str, topic: str, only: _Entries | None, now_ms: int) -> None:
        """`only`: what was there when the topic went. It may have been made again since, and have commits."""

        def run(now_ms: int) -> None:
            self._delete_topic_of(group_id, topic, only)

        self.core.submit(self.core.groups.get(group_id), Call(True, run, _ignore), now_ms)

    def _delete_topic_of(self, group_id: str, topic: str, only: _Entries | None) -> None:
        group = self.core.groups.get(group_id)
        if group is None:
            return
        entries = _entries(group, topic)
        gone: Records = [(key, None) for key, entry in entries if only is None or entry in only]
        if gone:
            # Tried again and again, it is still about what was there at first.
            first = frozenset(entry for _, entry in entries) if only is None else only
            self._delete(group, gone, (group_id, topic, first))

    def _delete(self, group: Group, gone: Records, again: _NotDeleted | None = None) -> None:
        """`again`: what to try once more if it cannot be stored."""
        group.exclusive = True

        def decided(error: int, now_ms: int) -> None:
            group.exclusive = False
            # What has expired the next look finds again; nobody would look for a topic that is gone.
            if error and again is not None:
                self._not_deleted.append(again)
                self.core.arm(self._retry, now_ms + self.core.settings.group_save_retry_ms)

        self.core.write(group, gone, decided)


def _entries(group: Group, topic: str) -> list[tuple[bytes, tuple[int, bytes]]]:
    """The record key of each of the topic's offsets with its entry."""
    found = [
        (records.offset_key(group.group_id, topic, partition), (partition, records.value_of(offset)))
        for partition, offset in group.offsets.get(topic, {}).items()
    ]
    for producer_id, table in group.uncommitted.items():
        for (named, partition), open_one in table.items():
            if named == topic:
                key = records.pending_key(group.group_id, topic, partition, producer_id)
                found.append((key, (partition, open_one.value)))
    return found


def _ignore(error: int) -> None:
    """Nobody waits for it."""
