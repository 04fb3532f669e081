"""The records of the topic `__ringleader_journal`: why each group of this daemon rebalanced, for any Kafka
client to read.

One partition. Key: the group id in UTF-8, empty for what concerns the whole daemon. Value: one JSON object in
UTF-8. The record's timestamp is its `at_ms`. Times (`..._at_ms`, `at_ms`, `began_ms`, `last_..._ms`,
`first_commit_ms`, `joined_ms`, `synced_ms`) are Unix time in milliseconds, all others lengths of time in
milliseconds. A value that is not known is null. New fields may come without a new format: skip what you do
not know.

Every record has

- `format`: 1. `kind`: "rebalance", "first-commit" or "event". `group`: the group id. `at_ms`: when it was.

kind "rebalance": one completed rebalance, written when its last follower has its share, when the next
rebalance begins, or 10 seconds after the assignment was stored, whichever comes first. The names and words of
`coordinator.journal.entries.JournalEntry`, whose texts hold here as well:

- `generation`, `cause` (words of `Cause`), `cause_member`, `reason`, `outcome` ("stable", "empty",
  "superseded"), `protocol_type`, `protocol`, `leader`: "" where there is none;
- `members_before`, `members_after`, `joined`: member ids, in join order;
- `began_ms`, `at_ms`, `duration_ms` = `join_ms` + `leader_ms` + `sync_ms`; `join_last_member`; `synced`: how
  many had asked for their share by `at_ms`;
- `members`: the members of this generation, in join order, each an object: `member_id`, `client_id`,
  `client_host` (Java's form, "/127.0.0.1"), `principal` (who its last JoinGroup came from, as in events;
  null: none came since the daemon started), `group_instance_id` (or null), `session_timeout_ms`,
  `rebalance_timeout_ms`, `topics` (its subscription, sorted), `assigned` ([[topic, [partition, ...]], ...],
  sorted), `joined_ms` (its JoinGroup came; null: it sent none, a static member that is away), `synced_ms`
  (its share was sent to it; null: it had not asked for it by `at_ms`). `topics` and `assigned` are null where
  they cannot be read (another protocol type than "consumer"), `assigned` of a superseded rebalance too;
- `before`: the members as the last stored generation had them, likewise, without `joined_ms` and `synced_ms`;
- `left`: {member_id: {`why` (words of `Departure`), `at_ms`, `last_heard_ms`, `silent_ms` (at `at_ms`),
  `client_id`, `client_host`, `principal`, `group_instance_id`, `told`}}. `told`: what its client told last
  of itself as this member (KIP-714, with `telemetry.enable`), or null: {`at_ms`, `member_id`,
  `client_instance_id` (hexadecimal), `terminating` (it said that it ends), `values` ({name: number}, names of
  `coordinator.telemetry.MEASURES`), `error` (the last one that it met; "": none), `left_member_id`,
  `left_reason`, `left_ms` (the membership that it gave up last by itself: "", "", null: none)};
- `moves`: [[topic, partition, giver, heir, unowned_ms], ...], sorted: every partition that another member has
  than in the last stored generation. Giver and heir are member ids, or null for no member. `unowned_ms`: how
  long no one had it when the heir got its share; null where there is no heir, or its beginning is not known;
- `unowned_ms`: partition-milliseconds: the same summed over all partitions that were without an owner and
  have one again by `at_ms`, those that did not move too (an eager member gives up all it has).
  A partition is without an owner from when its member gives it up until a member's share with it is sent. An
  eager member gives up with its JoinGroup; a cooperative one (what its JoinGroup says it owns, it keeps) when
  it is sent a share without the partition; one that leaves, when it says so; one that did not rejoin or sync
  in time, when it is put out; one whose session ended, or that came back as a static member, with its last
  request;
- `last_commit_ms`: the group's last commit before the assignment was stored; `first_commit_ms`: the first
  one after, if it came before this record was written;
- `group_type`: "classic", or "consumer" for a group of the consumer protocol (KIP-848). Of the latter
  `generation` is the group epoch, `protocol` the assignor, `leader` "", `join_ms` 0, `leader_ms` the time
  until the target was computed, and `sync_ms` from then until every member had what the target gives it;
  epochs before the target are one rebalance, and another one after it is the next ("superseded"). Each member
  has its `epoch` (-2: static, and away), and no `joined_ms` and `synced_ms`. A partition is without an owner
  from when its holder has given it up until another one has it;
- `waits` (of such a group): [[waiter, holder, [[topic, [partition, ...]], ...], since_ms, waited_ms], ...],
  the longest first: a member waited for partitions that another one had to give up;
- `cut`: true when the record would have been too large (1 MB): then `before` is [], and lists of members and
  `moves` have the first ones only.

kind "first-commit": the first commit after a rebalance, when its record was written already: `generation`,
`member_id`, `after_ms` (since the assignment was stored).

kind "event": something else that an operator asks about. `event` is one of the words below; `member_id`,
`client_id`, `client_host`, `group_instance_id`: who asked, "" (or null) where nobody did; `error`: Kafka's
name of the error, "" where there is none; `count`: how often the same happened since the last record of it (a
client that tries for ever makes one record in 10 seconds); `partitions`: [[topic, partition, before, after],
...], offsets, null for none, 1,000 at most; `principal`: who asked, as the daemon knows it (`User:alice`;
`User:ANONYMOUS` came through a listener without authentication), "" where nobody did; `subject` and `detail`:
what it was done to and what became of it, "" where the other fields say it.

- "join refused": with `error`;
- "instance fenced": a request of a static member whose place another process has taken; `member_id` is the
  old one's;
- "static member returned": another process took the place of a static member, and the group just went on;
  `old_member_id`, `last_heard_ms`: the former process, and the time of its last request;
- "member epoch refused" (consumer protocol): a heartbeat (FENCED_MEMBER_EPOCH) or a commit
  (STALE_MEMBER_EPOCH) of another epoch than the member has;
- "static member away" (likewise): it left for a while, and keeps its partitions until its session ends;
- "revocation awaited" (likewise): `member_id` has not given `partitions` up for which `waiting`, member ids,
  wait since `since_ms`; again every 10 seconds while it lasts;
- "assignor fell back" (likewise): no member computed the assignment that members are to compute
  (`client:NAME`), so the coordinator did; `detail`: the reason, `member_id`: the last member that was asked
  and gave no good answer, else the one whose heartbeat it was;
- "client told": a client told of itself as `member_id`, in `told` as in `left`: the first time, when
  something in it is new, and every ten minutes. `old_member_id`, where it is not "": the member that this
  client was, and that is in `left` of an earlier record; then `told` is what the client told after that;
- "offsets reset": a client that is no member committed for a group that had members and has none now;
- "offsets deleted", "group deleted": by a tool; "offsets expired", "group expired": by retention;
- "refused": the ACLs did not let the `principal` do that. `subject`: the resource ("TOPIC orders"), `detail`:
  the operation ("READ"). Of a JoinGroup it is a "join refused", with both. At most 1,000 records an hour, the
  repeated ones included;
- "topic created", "topic deleted", "partitions added", "topic configuration changed", "records deleted"
  (`subject`: the topic), "ACL created", "ACL deleted" (the ACL in words), "user altered", "user removed" (its
  name), "quotas altered", "quotas removed" (who has them): somebody changed that. At most 1,000 records an
  hour; all are in the daemon's log;
- "started", "stopped" (group ""): the daemon. A "started" without a "stopped" before it: it was killed.

A kill -9 loses the rebalances whose record was not written yet, that is those in their third phase, and the
events of the last few milliseconds; the group's own record of the generation, in `__consumer_offsets`, is
never lost once a member was answered. A crash of the machine loses no more: each record is synced."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from ringleader.coordinator.journal.entries import (
    ChangeRecord,
    ClientReport,
    DepartedMember,
    Departure,
    EpochEntry,
    FirstCommit,
    Incident,
    JournalEntry,
    Outcome,
    Present,
    ReportEntry,
    Seated,
)
from ringleader.protocol.embedded import Assignment, Subscription
from ringleader.protocol.errors import MalformedError, error_name

TOPIC = "__ringleader_journal"
CONSUMER_TYPES = ("consumer", "")
"""Protocol types whose subscriptions and assignments can be read; "": of a group without members."""
FORMAT = 1

VALUE_MAX_BYTES = 1_000_000
"""A longer record is `cut`."""

CUT_TO = 1_000
"""Members and moves of a cut record, if that is short enough; else a tenth of them, and so on."""

PIECE_ITEMS = 500
"""Of a list, that become JSON at a stretch: a millisecond or two."""

UNOWNED_MAX = 1_000_000
"""Partitions without an owner that are remembered, over all groups."""

Row = tuple[int, bytes, bytes]
"""Timestamp, key and value of a record."""

Message = JournalEntry | EpochEntry | FirstCommit | Incident | ChangeRecord | ReportEntry

_Partitions = dict[tuple[str, int], str]
"""Partition -> whose it is."""

_HEARD = (Departure.SESSION_EXPIRED, Departure.NEW_MEMBER_TIMEOUT)
"""A member that went so had been away since its last request; one that went otherwise, since then."""


def started(at_ms: int) -> Row:
    """The daemon serves from now on."""
    return _row(at_ms, "", _event("started", at_ms))


def stopped(at_ms: int) -> Row:
    """The daemon stops, and all is written."""
    return _row(at_ms, "", _event("stopped", at_ms))


class JournalRecords:
    """Makes the records of what the groups tell. It remembers which partitions have no owner, and since when:
    give it everything, in order."""

    def __init__(self) -> None:
        self._unowned: dict[str, dict[tuple[str, int], int]] = {}
        """Group -> partition -> since when, in Unix time."""
        self._count = 0

    def row(self, message: Message, count: int = 1) -> Row:
        """One record; `count`: how often that incident happened since the last record of it."""
        if isinstance(message, JournalEntry):
            return self._rebalance(message)
        if isinstance(message, EpochEntry):
            return _epoch(message)
        if isinstance(message, FirstCommit):
            return _row(
                message.at_ms,
                message.group_id,
                {
                    **_head("first-commit", message.group_id, message.at_ms),
                    "generation": message.generation,
                    "member_id": message.member_id,
                    "after_ms": message.after_ms,
                },
            )
        if isinstance(message, ReportEntry):
            value = report_fields(message)
        else:
            value = (
                _change(message, count) if isinstance(message, ChangeRecord) else _incident(message, count)
            )
        return _row(message.at_ms, message.group_id, value)

    def _rebalance(self, entry: JournalEntry) -> Row:
        is_consumer = entry.protocol_type in CONSUMER_TYPES
        before = _before(entry)
        moves, unowned_ms = self._moves(entry, before) if is_consumer else ([], None)
        value: dict[str, Any] = {
            **_head("rebalance", entry.group_id, entry.at_ms),
            "group_type": "classic",
            "generation": entry.generation,
            "cause": entry.cause.value,
            "cause_member": entry.cause_member,
            "reason": entry.reason,
            "outcome": entry.outcome.value,
            "protocol_type": entry.protocol_type,
            "protocol": entry.protocol,
            "leader": entry.leader,
            "members_before": entry.members_before,
            "members_after": entry.members_after,
            "joined": entry.joined,
            "began_ms": entry.at_ms - entry.duration_ms,
            "duration_ms": entry.duration_ms,
            "join_ms": entry.join_ms,
            "join_last_member": entry.join_last_member,
            "leader_ms": entry.leader_ms,
            "sync_ms": entry.sync_ms,
            "synced": entry.synced,
            "members": [_present(one, entry, is_consumer) for one in entry.members],
            "before": [_member(one, is_consumer, True) for one in before],
            "left": _left(entry),
            "moves": moves,
            "unowned_ms": unowned_ms,
            "waits": [],
            "last_commit_ms": _known(entry.last_commit_ms),
            "first_commit_ms": _known(entry.first_commit_ms),
            "cut": False,
        }
        return _short_enough(value)

    # ---- who had what, and has ----

    def _moves(self, entry: JournalEntry, before: Iterable[Present]) -> tuple[list[list[Any]], int | None]:
        """Partitions that another member has than before, and for how long any was without an owner."""
        since = self._unowned.pop(entry.group_id, {})
        self._count -= len(since)
        had = _owners(before)
        here = {one.member_id: one for one in entry.members}
        owned = {one.member_id: _owned(one) for one in entry.members}
        for partition, owner in had.items():
            given_up_ms = _given_up(entry, here.get(owner), owner, partition in owned.get(owner, ()))
            if given_up_ms is not None:
                since.setdefault(partition, given_up_ms)
        moves: list[list[Any]] = []
        unowned_ms = 0
        if entry.outcome is not Outcome.SUPERSEDED:
            has = _owners(entry.members)
            for partition in sorted({*had, *has}):
                giver, heir = had.get(partition), has.get(partition)
                answered_ms = -1 if heir is None else here[heir].synced_ms
                if giver is not None and giver != heir and partition not in since:
                    # A cooperative member gives up when it is sent a share without the partition.
                    member = here.get(giver)
                    given_up_ms = -1 if member is None else member.synced_ms
                    since[partition] = given_up_ms if given_up_ms >= 0 else entry.at_ms
                gap_ms = None
                if answered_ms >= 0 and partition in since:
                    gap_ms = max(answered_ms - since.pop(partition), 0)
                    unowned_ms += gap_ms
                if giver != heir:
                    moves.append([*partition, giver, heir, gap_ms])
        if since and self._count + len(since) <= UNOWNED_MAX:
            self._unowned[entry.group_id] = since
            self._count += len(since)
        return moves, unowned_ms

    def forget(self, group_id: str) -> None:
        """The group is no more."""
        self._count -= len(self._unowned.pop(group_id, {}))


def _short_enough(value: dict[str, Any]) -> Row:
    """The record of a rebalance, cut if it is too large."""
    at_ms, group_id = value["at_ms"], value["group"]
    row = _row(at_ms, group_id, value)
    keep = CUT_TO
    while len(row[2]) > VALUE_MAX_BYTES and keep:
        value.update(cut=True, before=[])
        for name in ("members", "moves", "waits", "members_before", "members_after", "joined"):
            value[name] = value[name][:keep]
        value["left"] = dict(list(value["left"].items())[:keep])
        row = _row(at_ms, group_id, value)
        keep //= 10
    return row


def _epoch(entry: EpochEntry) -> Row:
    names = entry.topics
    moved: dict[bytes, list[int]] = {}
    for topic_id, partition in entry.moves:
        moved.setdefault(topic_id, []).append(partition)
    moves = [
        [names[topic_id], partition, *entry.moves[topic_id, partition]]
        for topic_id in sorted(moved)
        if topic_id in names
        for partition in sorted(moved[topic_id])
    ]
    waits = [
        [one.waiter, one.holder, _named(one.places, names), one.since_ms, one.until_ms - one.since_ms]
        for one in entry.waits
    ]
    waits.sort(key=_waited_ms, reverse=True)
    gaps = [gap_ms for *_, gap_ms in moves if gap_ms is not None]
    return _short_enough(
        {
            **_head("rebalance", entry.group_id, entry.at_ms),
            "group_type": "consumer",
            "generation": entry.generation,
            "cause": entry.cause.value,
            "cause_member": entry.cause_member,
            "reason": "",
            "outcome": entry.outcome.value,
            "protocol_type": "consumer",
            "protocol": entry.protocol,
            "leader": "",
            "members_before": [one.member_id for one in entry.before],
            "members_after": [one.member_id for one in entry.members],
            "joined": entry.joined,
            "began_ms": entry.at_ms - entry.duration_ms,
            "duration_ms": entry.duration_ms,
            "join_ms": 0,
            "join_last_member": "",
            "leader_ms": entry.leader_ms,
            "sync_ms": entry.sync_ms,
            "synced": sum(one.epoch == entry.generation for one in entry.members),
            "members": [_seated(one, names) for one in entry.members],
            "before": [_seated(one, names) for one in entry.before],
            "left": _left(entry),
            "moves": moves,
            "unowned_ms": sum(gaps),
            "waits": waits,
            "last_commit_ms": _known(entry.last_commit_ms),
            "first_commit_ms": None,
            "cut": False,
        }
    )


def _waited_ms(wait: list[Any]) -> int:
    return int(wait[-1])


def _seated(one: Seated, names: Mapping[bytes, str]) -> dict[str, Any]:
    places = ((topic_id, partition) for topic_id, some in one.assigned.items() for partition in some)
    return {
        "member_id": one.member_id,
        "client_id": one.client_id,
        "client_host": one.client_host,
        "principal": one.principal,
        "group_instance_id": one.group_instance_id,
        "session_timeout_ms": one.session_timeout_ms,
        "rebalance_timeout_ms": one.rebalance_timeout_ms,
        "topics": sorted(one.topics),
        "assigned": _named(places, names),
        "epoch": one.epoch,
    }


def _named(places: Iterable[tuple[bytes, int]], names: Mapping[bytes, str]) -> list[tuple[str, list[int]]]:
    """By topic, those of topics that exist."""
    found: dict[str, list[int]] = {}
    for topic_id, partition in places:
        if topic_id in names:
            found.setdefault(names[topic_id], []).append(partition)
    return sorted((topic, sorted(some)) for topic, some in found.items())


def _given_up(entry: JournalEntry, member: Present | None, member_id: str, keeps: bool) -> int | None:
    """When a member of the generation before gave a partition up; None: it did not until it got its share."""
    departed = entry.gone.get(member_id)
    if departed is not None:
        return departed.last_heard_ms if departed.why in _HEARD else departed.at_ms
    if member is None:
        return entry.at_ms - entry.duration_ms
    if member.last_heard_ms >= 0:
        return member.last_heard_ms
    return None if keeps or member.joined_ms < 0 else member.joined_ms


def _before(entry: JournalEntry) -> list[Present]:
    """The members of the last stored generation. Its record does not say who they were."""
    if entry.before is None:
        return []
    known = {one.member_id: one.principal for one in entry.members}
    known |= {member_id: departed.principal for member_id, departed in entry.gone.items()}
    return [
        Present(
            one.member_id,
            one.client_id,
            one.client_host,
            one.group_instance_id,
            one.session_timeout,
            one.rebalance_timeout,
            one.subscription,
            one.assignment,
            -1,
            -1,
            -1,
            known.get(one.member_id),
        )
        for one in entry.before.members
    ]


def _owners(members: Iterable[Present]) -> _Partitions:
    return {
        (topic, partition): one.member_id
        for one in members
        for topic, partitions in (_assigned(one.assignment) or ())
        for partition in partitions
    }


def _owned(member: Present) -> set[tuple[str, int]]:
    """The partitions that a member keeps while it waits: cooperative ones do."""
    try:
        owned = Subscription.decode(member.metadata).owned_partitions
    except MalformedError:
        return set()
    return {(topic, partition) for topic, partitions in owned.items() for partition in partitions}


def _assigned(assignment: bytes) -> list[tuple[str, list[int]]] | None:
    if not assignment:
        return []
    try:
        partitions = Assignment.decode(assignment).partitions
    except MalformedError:
        return None
    return sorted((topic, sorted(some)) for topic, some in partitions.items())


def _topics(metadata: bytes) -> list[str] | None:
    try:
        return sorted(Subscription.decode_topics(metadata))
    except MalformedError:
        return None


# ---- as JSON ----


def _head(kind: str, group_id: str, at_ms: int) -> dict[str, Any]:
    return {"format": FORMAT, "kind": kind, "group": group_id, "at_ms": at_ms}


def _event(event: str, at_ms: int, group_id: str = "") -> dict[str, Any]:
    return {
        **_head("event", group_id, at_ms),
        "event": event,
        "member_id": "",
        "client_id": "",
        "client_host": "",
        "principal": "",
        "group_instance_id": None,
        "error": "",
        "count": 1,
        "partitions": [],
        "subject": "",
        "detail": "",
    }


def _change(change: ChangeRecord, count: int) -> dict[str, Any]:
    return {
        **_event(change.event, change.at_ms, change.group_id),
        "member_id": change.member_id,
        "client_id": change.client_id,
        "client_host": change.client_host,
        "principal": change.principal,
        "group_instance_id": change.group_instance_id,
        "error": error_name(change.error) or "" if change.error else "",
        "count": count,
        "subject": change.subject,
        "detail": change.detail,
    }


def _incident(incident: Incident, count: int) -> dict[str, Any]:
    value: dict[str, Any] = {
        **_event(incident.kind.value, incident.at_ms, incident.group_id),
        "member_id": incident.member_id,
        "client_id": incident.client_id,
        "client_host": incident.client_host,
        "principal": incident.principal,
        "group_instance_id": incident.group_instance_id,
        "error": error_name(incident.error) or "" if incident.error else "",
        "count": count,
        "partitions": incident.partitions,
        "detail": incident.reason,
    }
    if incident.waiting:
        value.update(waiting=incident.waiting, since_ms=incident.since_ms)
    if incident.old_member_id:
        value.update(old_member_id=incident.old_member_id, last_heard_ms=_known(incident.last_heard_ms))
    return value


def _member(one: Present, is_consumer: bool, stored: bool) -> dict[str, Any]:
    return {
        "member_id": one.member_id,
        "client_id": one.client_id,
        "client_host": one.client_host,
        "principal": one.principal,
        "group_instance_id": one.group_instance_id,
        "session_timeout_ms": one.session_timeout_ms,
        "rebalance_timeout_ms": one.rebalance_timeout_ms,
        "topics": _topics(one.metadata) if is_consumer else None,
        "assigned": _assigned(one.assignment) if is_consumer and stored else None,
    }


def _present(one: Present, entry: JournalEntry, is_consumer: bool) -> dict[str, Any]:
    return {
        **_member(one, is_consumer, entry.outcome is not Outcome.SUPERSEDED),
        "joined_ms": _known(one.joined_ms),
        "synced_ms": _known(one.synced_ms),
    }


def report_fields(entry: ReportEntry) -> dict[str, Any]:
    """The fields of its record."""
    report = entry.report
    return {
        **_event("client told", report.at_ms, report.group_id),
        "member_id": report.member_id,
        "client_id": report.client_id,
        "client_host": report.client_host,
        "old_member_id": entry.old_member_id,
        "told": _report(report),
    }


def _report(report: ClientReport | None) -> dict[str, Any] | None:
    return None if report is None else {
        "at_ms": report.at_ms,
        "member_id": report.member_id,
        "client_instance_id": report.instance_id,
        "terminating": report.terminating,
        "values": report.values,
        "error": report.error,
        "left_member_id": report.left_id,
        "left_reason": report.left_reason,
        "left_ms": _known(report.left_ms),
    }  # fmt: skip


def _left(entry: JournalEntry | EpochEntry) -> dict[str, Any]:
    return {
        member_id: {**_departed(departed), "told": _report(entry.told.get(member_id))}
        for member_id, departed in entry.gone.items()
    }


def _departed(member: DepartedMember) -> dict[str, Any]:
    return {
        "why": member.why.value,
        "at_ms": member.at_ms,
        "last_heard_ms": member.last_heard_ms,
        "silent_ms": member.at_ms - member.last_heard_ms,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "principal": member.principal,
        "group_instance_id": member.group_instance_id,
    }


def _known(at_ms: int) -> int | None:
    return at_ms if at_ms >= 0 else None


def _json(value: Any) -> str:
    """A long list in pieces: this runs beside the event loop, and no piece gives way to it."""
    if isinstance(value, list | tuple) and len(value) > PIECE_ITEMS:
        starts = range(0, len(value), PIECE_ITEMS)
        return "[" + ",".join(_json(value[start : start + PIECE_ITEMS])[1:-1] for start in starts) + "]"
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _row(at_ms: int, group_id: str, value: dict[str, Any]) -> Row:
    text = "{" + ",".join(f"{_json(name)}:{_json(one)}" for name, one in value.items()) + "}"
    # Text from clients may hold halves of surrogate pairs.
    return at_ms, group_id.encode("utf-8", "replace"), text.encode("utf-8", "replace")
