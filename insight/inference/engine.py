"""Inference over all groups of a cluster: facts in, history out.

The caller gives it each record of `__consumer_offsets` (`record`) and every other fact (`tell`), calls `tick`
about once a second, and takes the conclusions from `drain`. It goes on after a restart from `restore`d
snapshots as if nothing had happened: kept in one transaction with what was drained and with the positions
that were read.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from struct import Struct
from struct import error as struct_error
from typing import Any

from ringleader.insight.inference.classic import Classic
from ringleader.insight.inference.commits import Commits, Slot
from ringleader.insight.inference.exact import Exact
from ringleader.insight.inference.facts import (
    ClassicGroup,
    ClientReport,
    CoordinatorSeen,
    Described,
    Fact,
    FirstCommit,
    GroupEpoch,
    Journalled,
    LaterReport,
    OffsetCommitted,
    OffsetDeleted,
    Output,
    SessionTimeouts,
    StaticReturned,
    TopicsSeen,
)
from ringleader.insight.inference.modern import MODERN, Modern
from ringleader.insight.inference.records import OFFSET_KEYS, decode, offset_key
from ringleader.insight.inference.world import World
from ringleader.insight.model import Commit, Event, EventKind, Kind, Rebalance
from ringleader.protocol.errors import MalformedError

FORMAT = 2
"""Of snapshots."""

_OFFSET_HEAD = Struct(">hq")
_VERSIONS = 4
_LOOK_MS = 10_000
"""The interval of looking for members whose commits have stopped."""

_CONVERTED_MS = 2_000
"""A group whose record ends and that is there under another protocol within this was converted, not
deleted."""


class Inference:
    """The history of the groups of one cluster.

    `exact`: the cluster has Ringleader's journal, so that groups are known by `Journalled`; of the records in
    `__consumer_offsets` only the offsets count.

    The empty group id, which Kafka lets commit, is not followed: "" stands for the cluster as a whole.
    """

    def __init__(self, *, exact: bool = False) -> None:
        self.unreadable = 0
        """Records that could not be read."""
        self.last_unreadable = ""
        """The error of the last of these."""
        self._exact = exact
        self._out: list[Output] = []
        self._world = World(self._out)
        self._commits: dict[str, Commits] = {}
        self._groups: dict[str, Classic | Modern | Exact] = {}
        self._ending: dict[str, tuple[int, str]] = {}
        """Groups whose record was deleted just now: when, and the event's id."""
        self._slots: dict[bytes, Slot] = {}
        self._changed: set[str] = set()
        self._committed: set[str] = set()

    def record(self, partition: int, offset: int, at_ms: int, key: bytes | None, value: bytes | None) -> None:
        """A record of `__consumer_offsets` as it was read. The same as `tell` of its fact, but quicker. A
        record that cannot be read is counted in `unreadable`, and nothing is raised: it stops no history."""
        if key is None:
            return
        slot = self._slots.get(key)
        try:
            if value is not None and (slot is not None or key[:2] in OFFSET_KEYS):
                version, committed = _OFFSET_HEAD.unpack_from(value)
                if not 0 <= version <= _VERSIONS:
                    raise MalformedError("OffsetCommitValue", version, "version", 0)
                if slot is None:
                    group, topic, number = offset_key(key)
                    if not group:
                        return
                    slot = self._slots[key] = self._commits_of(group).slot(topic, number)
                    slot.key = key
                slot.commits.commit(slot, partition, offset, at_ms, committed)
                return
            fact = decode(partition, offset, at_ms, key, value)
        except (MalformedError, struct_error) as error:
            self.unreadable += 1
            self.last_unreadable = f"partition {partition}, offset {offset}: {error}"
            return
        if fact is not None:
            self.tell(fact)

    def tell(self, fact: Fact) -> None:
        """Something that was seen; see `facts` for the order."""
        if isinstance(fact, TopicsSeen):
            if self._world.topics_seen(fact):
                self._look_back(fact.at_ms)
        elif isinstance(fact, CoordinatorSeen):
            self._world.coordinator_seen(fact)
        elif isinstance(fact, SessionTimeouts):
            self._world.session_timeouts(fact)
        elif isinstance(fact, Journalled):
            self._journalled(fact)
        elif not fact.group:
            return
        elif isinstance(fact, ClientReport):
            if (teller := self._groups.get(fact.group)) is not None:
                teller.client_reported(fact)
                self._changed.add(fact.group)
        elif isinstance(fact, OffsetCommitted):
            commits = self._commits_of(fact.group)
            commits.commit(commits.slot(fact.topic, fact.partition), *fact.source, fact.at_ms, fact.offset)
        elif isinstance(fact, OffsetDeleted):
            self._commits_of(fact.group).delete(fact.source, fact.at_ms, fact.topic, fact.partition)
        elif self._exact:
            return
        elif isinstance(fact, Described):
            group = self._groups.get(fact.group)
            if isinstance(group, Classic):
                group.described(fact)
                self._changed.add(fact.group)
        elif isinstance(fact, ClassicGroup):
            self._classic(fact)
        else:
            self._modern(fact)

    def tick(self, now_ms: int) -> None:
        """Conclude from the time that passed: about once a second, when all facts until now are known."""
        for commits in self._commits.values():
            commits.tick(now_ms)
        for group in [one for one, (at_ms, _) in self._ending.items() if now_ms - at_ms > _CONVERTED_MS]:
            self._end(group)
        if now_ms - self._world.looked_ms >= _LOOK_MS:
            self._world.looked_ms, self._world.changed = now_ms, True
            for name, found in self._groups.items():
                if isinstance(found, Classic) and found.tick(now_ms):
                    self._changed.add(name)

    def drain(self) -> list[Output]:
        """The conclusions since the last call, in order. One with the id of an earlier one replaces it."""
        out = self._out[:]
        self._out.clear()
        return out

    def moving(self) -> list[str]:
        """Groups that change just now: those that polls should describe about once a second. Which others
        begin to move, ListGroups says at once, by their states."""
        return [name for name, group in self._groups.items() if isinstance(group, Classic) and group.moving()]

    def share_groups(self) -> list[str]:
        """Share groups (KIP-932), which commit nothing here: their brokers know how far they are."""
        return [
            name
            for name, group in self._groups.items()
            if isinstance(group, Modern) and group.kind is Kind.SHARE
        ]

    def committed(self) -> dict[str, list[Commit]]:
        """The newest commit of each partition, by group."""
        return {
            group: [
                Commit(group, one.topic, one.partition, one.at_ms, one.offset)
                for one in commits.slots.values()
                if one.offset >= 0
            ]
            for group, commits in self._commits.items()
        }

    def dirty(self) -> tuple[set[str], set[str]]:
        """Groups whose `snapshot`, and groups whose `commits_snapshot` changed since the last call. "" is the
        cluster as a whole. A group that is deleted stands here once, and its snapshot is empty: forget it."""
        changed, committed = set(self._changed), set(self._committed)
        self._changed.clear()
        self._committed.clear()
        if self._world.changed:
            self._world.changed = False
            changed.add("")
        return changed, committed

    def snapshot(self, group: str) -> bytes:
        """All that is known of the group but its commits: JSON with a format number. b"": nothing."""
        if not group:
            return _packed(self._world.dump())
        found = self._groups.get(group)
        if found is None:
            return b""
        saved: dict[str, Any] = {"kind": found.kind, "group": found.dump()}
        if isinstance(found, Exact):
            saved["exact"] = True
        if group in self._ending:
            saved["ending"] = self._ending[group]
        return _packed(saved)

    def commits_snapshot(self, group: str) -> bytes:
        """The group's newest commits, one small row: JSON with a format number. b"": nothing."""
        commits = self._commits.get(group)
        saved = None if commits is None else commits.dump()
        return b"" if saved is None else _packed(saved)

    def restore(self, snapshots: Iterable[tuple[str, bytes, bytes]]) -> None:
        """Begin where another ended: (group, snapshot, commits) of each group. Before the first fact. Raises
        `ValueError` for a format that this version does not know."""
        for group, snapshot, commits in snapshots:
            if not group:
                self._world.load(_unpacked(snapshot))
                continue
            if commits:
                self._commits_of(group).load(_unpacked(commits))
            if snapshot:
                saved = _unpacked(snapshot)
                made = self._make(group, saved["kind"], exact=saved.get("exact", False))
                made.load(saved["group"])
                if "ending" in saved:
                    self._ending[group] = tuple(saved["ending"])

    # ---- inside ----

    def _look_back(self, at_ms: int) -> None:
        """Topics were seen to change: that may explain rebalances that were reported before."""
        for name, group in self._groups.items():
            if isinstance(group, Classic) and group.topics_changed(at_ms):
                self._changed.add(name)
        for commits in self._commits.values():
            commits.topics_deleted(at_ms)

    def _commits_of(self, group: str) -> Commits:
        found = self._commits.get(group)
        if found is None:
            found = self._commits[group] = Commits(
                group, self._out, self._committed, self._changed, self._world.deleted, events=not self._exact
            )
        return found

    def _make(self, group: str, kind: str, *, exact: bool = False) -> Classic | Modern | Exact:
        made: Classic | Modern | Exact
        if exact:
            made = Exact(group, self._commits_of(group), self._out)
        elif kind == "classic":
            made = Classic(group, self._commits_of(group), self._world, self._out)
        else:
            made = Modern(group, MODERN[kind], self._commits_of(group), self._world, self._out)
        self._groups[group] = made
        return made

    def _classic(self, fact: ClassicGroup) -> None:
        found = self._groups.get(fact.group)
        self._changed.add(fact.group)
        if fact.value is None:
            if isinstance(found, Classic):
                name = f"offsets-{fact.source.partition}-{fact.source.offset}"
                self._ending[fact.group] = (fact.at_ms, name)
            return
        if fact.group in self._ending:
            self._end(fact.group)
            found = None
        if not isinstance(found, Classic):
            if found is not None:
                found.ended(fact.at_ms)
            found = self._make(fact.group, "classic")
            assert isinstance(found, Classic)
        found.record(fact)

    def _modern(self, fact: Any) -> None:
        found = self._groups.get(fact.group)
        kind = getattr(fact, "kind", "consumer")
        if not isinstance(found, Modern) or found.kind is not kind:
            if not isinstance(fact, GroupEpoch) and _tombstone(fact) and not isinstance(found, Modern):
                return
            if isinstance(found, Modern) and kind == "consumer" and not hasattr(fact, "kind"):
                kind = found.kind  # a pattern
            elif found is not None:
                if fact.group in self._ending:
                    del self._ending[fact.group]  # converted, not deleted
                if isinstance(found, Classic):
                    found.ended(fact.at_ms)
                found = None
            if found is None:
                found = self._make(fact.group, kind)
        assert isinstance(found, Modern)
        self._changed.add(fact.group)
        if isinstance(fact, GroupEpoch) and fact.epoch is None:
            self._ending[fact.group] = (fact.at_ms, f"offsets-{fact.source.partition}-{fact.source.offset}")
            return
        if fact.group in self._ending and isinstance(fact, GroupEpoch):
            self._end(fact.group)
            made = self._make(fact.group, kind)
            assert isinstance(made, Modern)
            found = made
        found.record(fact)

    def _journalled(self, fact: Journalled) -> None:
        entry = fact.entry
        found = self._groups.get(entry.group)
        if isinstance(entry, Event):
            self._world.journalled(entry, fact.topic)
            if entry.kind is EventKind.GROUP_DELETED and found is not None:
                found.ended(fact.at_ms)
                self._forget(entry.group, fact.at_ms)
            return
        if not isinstance(found, Exact):
            if found is not None:
                found.ended(fact.at_ms)
            found = Exact(entry.group, self._commits_of(entry.group), self._out)
            self._groups[entry.group] = found
        self._changed.add(entry.group)
        if isinstance(entry, Rebalance):
            found.rebalance(entry, fact.reports, fact.left_ms)
        elif isinstance(entry, ClientReport | LaterReport):
            found.client_reported(entry)
        elif isinstance(entry, FirstCommit):
            found.committed(entry)
        elif isinstance(entry, StaticReturned):
            found.returned(fact.source, fact.at_ms, entry)
        else:
            found.fenced(entry)

    def _end(self, group: str) -> None:
        at_ms, name = self._ending.pop(group)
        found = self._groups.get(group)
        if found is not None:
            found.ended(at_ms)
        text = "The group was deleted: by an operator, or as its last offset expired."
        self._out.append(Event(f"{name}-deleted", group, at_ms, EventKind.GROUP_DELETED, text))
        self._forget(group, at_ms)

    def _forget(self, group: str, at_ms: int) -> None:
        self._groups.pop(group, None)
        self._changed.add(group)
        commits = self._commits.get(group)
        if commits is None:
            return
        if any(slot.at_ms > at_ms for slot in commits.slots.values()):
            commits.on_first, commits.nobody = None, False  # it lives again, as offsets alone
            self._committed.add(group)
            return
        del self._commits[group]
        for slot in commits.slots.values():
            if slot.key is not None:
                self._slots.pop(slot.key, None)
        self._committed.add(group)


def _packed(saved: dict[str, Any]) -> bytes:
    return json.dumps({"format": FORMAT, **saved}, separators=(",", ":")).encode()


def _unpacked(data: bytes) -> Any:
    """A snapshot's JSON. Raises `ValueError` for a format that is not known here."""
    saved = json.loads(data)
    found = saved.get("format") if isinstance(saved, dict) else None
    if found != FORMAT:
        raise ValueError(f"its snapshots have format {found!r}, and this version reads format {FORMAT}")
    return saved


def _tombstone(fact: Any) -> bool:
    return getattr(fact, "gone", False) or any(
        getattr(fact, name, ()) is None for name in ("epoch", "partitions", "topics")
    )
