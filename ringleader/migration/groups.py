"""Groups and their offsets: the rows of the store, as they are but for what the new offsets change."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from ringleader.clients.group.assignment import readable_topics
from ringleader.clients.model import TopicPartition
from ringleader.coordinator.groups.records import (
    GROUP,
    OFFSET,
    RESERVED_GENERATION,
    Key,
    decode_group_value,
    decode_offset_value,
    encode_group_value,
    offset_value,
)
from ringleader.coordinator.storage.base import Record
from ringleader.migration.topics import Maps

CONSUMERS = "consumer"
NO_EPOCH = -1


@dataclass(slots=True)
class GroupReport:
    """The outcome of a group. `members_dropped`: they would go on from positions that are others now."""

    group: str
    generation: int = 0
    members: int = 0
    offsets: int = 0
    moved: list[tuple[str, int, int, int]] = field(default_factory=list)
    """Offsets that are others on the cluster: topic, partition, here, there."""
    members_dropped: bool = False
    kept: bool = False
    """It stays as it is on the cluster."""


class Groups:
    """`rows`: of all groups, with their keys decoded; `maps`: which offsets records have on the cluster."""

    def __init__(self, rows: dict[int, list[tuple[Key | None, Record]]], maps: Maps) -> None:
        self._rows = rows
        self._maps = maps
        self._shifted = {place for place, offsets in maps.items() if offsets.shifted}
        self.reports: dict[str, GroupReport] = {}

    def rows(self, leave_out: Collection[str] = ()) -> dict[int, list[Record]]:
        """The records of each partition of the groups' topic, without those groups. Raises MalformedError."""
        affected = self._affected()
        found: dict[int, list[Record]] = {}
        for partition, rows in self._rows.items():
            found[partition] = []
            for key, record in rows:
                if key is None:
                    continue
                report = self.reports.setdefault(key[1], GroupReport(key[1], kept=key[1] in leave_out))
                if report.kept:
                    continue
                if key[0] == OFFSET:
                    record = record[0], self._offset(report, (key[2], key[3]), _value(record))
                elif key[0] == GROUP:
                    record = record[0], self._group(report, _value(record), key[1] in affected)
                found[partition].append(record)
        return found

    def _affected(self) -> set[str]:
        """Groups that have anything to do with partitions whose records have other offsets."""
        found = set()
        topics = {topic for topic, _ in self._shifted}
        for key, record in _all(self._rows.values()):
            if key[0] == OFFSET and (key[2], key[3]) in self._shifted:
                found.add(key[1])
            elif key[0] == GROUP:
                value = decode_group_value(_value(record))
                assigned = [set(readable_topics(member.assignment)) for member in value.members]
                if value.protocol_type == CONSUMERS and any(of & topics for of in assigned):
                    found.add(key[1])
        return found

    def _offset(self, report: GroupReport, place: TopicPartition, value: bytes) -> bytes:
        found = decode_offset_value(value)
        report.offsets += 1
        offset, offsets = found.offset, self._maps.get(place)
        if offsets is not None and offset >= 0:
            offset = offsets.translate(offset)
            if offset != found.offset:
                report.moved.append((*place, found.offset, offset))
        epoch = found.leader_epoch if offsets is None else NO_EPOCH
        # Without the topic's id: the topic has another one on the cluster.
        return offset_value(offset, epoch, found.metadata, found.commit_ms, found.expire_ms)

    def _group(self, report: GroupReport, value: bytes, affected: bool) -> bytes:
        found = decode_group_value(value)
        report.generation, report.members = found.generation, len(found.members)
        if not affected or not found.members:
            return value
        report.members_dropped = True
        found.members, found.protocol, found.leader = [], None, None
        return encode_group_value(found)


def _all(rows: Iterable[list[tuple[Key | None, Record]]]) -> Iterable[tuple[Key, Record]]:
    return ((key, record) for of in rows for key, record in of if key is not None)


def _value(record: Record) -> bytes:
    assert record[1] is not None, "replay has no tombstones"
    return record[1]


def names(rows: Iterable[tuple[Key | None, Record]]) -> set[str]:
    """The groups that rows are about."""
    return {key[1] for key, _ in rows if key is not None and key[0] in (GROUP, OFFSET, RESERVED_GENERATION)}
