"""Retention: offsets that no group needs are deleted, and so do empty groups without offsets (KIP-211).

When the clock of an offset starts: for a simple group at its commit; for a group that was managed when it
became empty; in a stable consumer group at the commit, for topics that no member subscribes to any more.
Anything else keeps its offsets: a rebalancing group (KAFKA-13636), other protocol types with members,
unreadable subscriptions.
"""

from __future__ import annotations

from collections.abc import Iterator

from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.committed import CommittedOffset
from ringleader.coordinator.groups.core import STORE_FULL, Core, Part
from ringleader.coordinator.groups.deadlines import GroupDeadline, Kind
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.offsets import INCIDENT_PARTITIONS, is_subscribed
from ringleader.coordinator.groups.states import GroupState
from ringleader.coordinator.groups.vote import CONSUMER_TYPE
from ringleader.coordinator.journal.entries import IncidentKind, OffsetChange
from ringleader.coordinator.machine import Ticket
from ringleader.protocol.schema import ZERO_UUID

_MS_PER_MINUTE = 60_000


class Retention(Part):
    """The periodic look for what has expired, and the consequences of a deleted topic."""

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self.deadline = GroupDeadline(None, Kind.CLEANUP)

    def begin(self, now_ms: int) -> None:
        """Look after the interval."""
        self.core.arm(self.deadline, now_ms + self.core.settings.offsets_retention_check_interval_ms)

    def fired(self, _deadline: GroupDeadline, now_ms: int) -> None:
        """Look at all offsets, in steps."""
        self.core.begin_work(self._steps(), now_ms)

    def _steps(self) -> Iterator[None]:
        """Each group and offset is looked at as it is in that step; the next look comes after the
        interval."""
        groups, looked, most = self.core.groups, 0, self.core.settings.offsets_per_step
        for group_id in list(groups):
            group = groups.get(group_id)
            if group is None:
                continue
            places = [(topic, one) for topic, partitions in group.offsets.items() for one in partitions]
            while places:
                step = places[: most - looked]
                if groups.get(group_id) is group:
                    self._expire(group, step)
                looked += len(step)
                places = places[len(step) :]
                if looked >= most:
                    looked = 0
                    yield
            nothing_left = group.is_empty and not (group.offsets or group.given_out or group.uncommitted)
            if nothing_left and groups.get(group_id) is group:
                self.core.delete(group)
                self.core.reports.incident(group_id, IncidentKind.GROUP_EXPIRED, None, self.core.work.now_ms)
            looked += 1
            if looked >= most:
                looked = 0
                yield
        self.begin(self.core.work.now_ms)

    def _expire(self, group: Group, places: list[tuple[str, int]]) -> None:
        # Of this step: the clock may have been set back since the look began.
        unix_ms = self.core.unix_time.age_to_ms(self.core.work.now_ms)
        keys: list[records.Key] = []
        expired: list[OffsetChange] = []
        for topic, partition in places:
            value = group.offsets.get(topic, {}).get(partition)
            if value is None or group.is_unstable(topic, partition):
                continue
            offset = records.decode_offset_value(value)
            if self.is_expired(group, topic, offset, unix_ms):
                keys.append((records.OFFSET, group.group_id, topic, partition, -1))
                expired.append((topic, partition, offset.offset, None))
        if keys:
            self.core.write_tombstones(group, keys)
            kind, partitions = IncidentKind.OFFSETS_EXPIRED, tuple(expired[:INCIDENT_PARTITIONS])
            self.core.reports.incident(
                group.group_id, kind, None, self.core.work.now_ms, partitions=partitions
            )

    def is_expired(self, group: Group, topic: str, offset: CommittedOffset, unix_ms: int) -> bool:
        """Whether the offset's time is over, by the rules above; an explicit expiry (v2 to v4 commits) counts
        instead of the retention time, not instead of the rules."""
        starts_ms = self._clock_start(group, topic, offset)
        if starts_ms is None:
            return False
        if offset.expire_ms >= 0:
            return unix_ms >= offset.expire_ms
        return unix_ms - starts_ms >= self.core.settings.offsets_retention_minutes * _MS_PER_MINUTE

    def _clock_start(self, group: Group, topic: str, offset: CommittedOffset) -> int | None:
        """Unix time from which the offset ages; None: it does not."""
        if group.consumer is not None and group.consumer.members:
            return None if is_subscribed(group, topic) else offset.commit_ms
        if group.state is GroupState.EMPTY:
            if group.protocol_type and group.state_since_ms >= 0:
                return group.state_since_ms
            return offset.commit_ms
        if group.state is GroupState.STABLE and group.protocol_type == CONSUMER_TYPE:
            return None if is_subscribed(group, topic) else offset.commit_ms
        return None

    def topic_deleted(
        self, topic: str, ticket: Ticket, now_ms: int, topic_id: bytes = ZERO_UUID
    ) -> int | None:
        """A topic is gone: forget its offsets in all groups, those of open transactions too. Those that were
        stored for another id than `topic_id` stay: they are of the topic that has the name now. An error
        code, after which the caller asks again; None: it comes as an `Answer` when the tombstones are
        durable."""
        core = self.core
        error = core.refusal or (core.full and STORE_FULL)
        return error or core.answer_after(self._forget(topic, topic_id), ticket, now_ms)

    def _forget(self, topic: str, topic_id: bytes) -> Iterator[None]:
        core, groups = self.core, list(self.core.groups)
        while groups:
            left = core.settings.offsets_per_step
            while groups and left > 0:
                group = core.groups.get(groups[-1])
                dead: list[records.Key] = []
                for keys in () if group is None else records.offset_keys(group, topic, topic_id):
                    if len(dead) >= left:
                        break  # the next step finds the rest, as it is then
                    dead += keys
                else:
                    groups.pop()
                if group is not None and dead:
                    core.write_tombstones(group, dead)
                left -= 1 + len(dead)
            if groups:
                yield
