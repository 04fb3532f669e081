"""The records of Ringleader's own journal (topic `__ringleader_journal`): nothing is inferred.

Source: the docstring of `coordinator.journal.record`, which is the contract; insight does not import
the coordinator. Fields and words that are not known here are passed by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar

from ringleader.insight.inference.facts import (
    ClientReport,
    FirstCommit,
    InstanceFenced,
    Journalled,
    LaterReport,
    Source,
    StaticReturned,
)
from ringleader.insight.inference.heard import POLL_EXPIRED
from ringleader.insight.inference.words import count, listed, seconds
from ringleader.insight.model import (
    Cause,
    Confidence,
    Departure,
    DepartureFinding,
    Event,
    EventKind,
    Kind,
    Member,
    Move,
    Outcome,
    Rebalance,
    TopicPartition,
)
from ringleader.protocol import json_text
from ringleader.protocol.errors import MalformedError

FORMAT = 1

_EVENTS = {
    "join refused": EventKind.JOIN_REFUSED,
    "member epoch refused": EventKind.EPOCH_REFUSED,
    "static member away": EventKind.STATIC_AWAY,
    "revocation awaited": EventKind.REVOCATION_AWAITED,
    "assignor fell back": EventKind.ASSIGNOR_FELL_BACK,
    "offsets reset": EventKind.OFFSETS_RESET,
    "offsets deleted": EventKind.OFFSETS_DELETED,
    "offsets expired": EventKind.OFFSETS_DELETED,
    "group deleted": EventKind.GROUP_DELETED,
    "group expired": EventKind.GROUP_DELETED,
    "refused": EventKind.REFUSED,
    "topic created": EventKind.TOPIC_CREATED,
    "topic deleted": EventKind.TOPIC_DELETED,
    "partitions added": EventKind.PARTITIONS_ADDED,
    "topic configuration changed": EventKind.CHANGED,
    "records deleted": EventKind.CHANGED,
    "ACL created": EventKind.CHANGED,
    "ACL deleted": EventKind.CHANGED,
    "user altered": EventKind.CHANGED,
    "user removed": EventKind.CHANGED,
    "quotas altered": EventKind.CHANGED,
    "quotas removed": EventKind.CHANGED,
    "started": EventKind.COORDINATOR_BACK,
    "stopped": EventKind.COORDINATOR_AWAY,
}

_WAITS_MAX = 5
"""Waits of a rebalance that its evidence names, the longest first."""

_TOPIC_EVENTS = ("topic created", "topic deleted", "partitions added")

_NOBODY = (None, "", "User:ANONYMOUS")
"""Principals of callers that are not known, or did not authenticate."""

_Word = TypeVar("_Word", bound=StrEnum)


def decode(
    partition: int, offset: int, at_ms: int, key: bytes | None, value: bytes | None
) -> Journalled | None:
    """The entry of a record; None for a kind that this version does not know. Raises `MalformedError`."""
    if value is None:
        return None
    try:
        entry = json_text.loads(value)
        if entry["format"] != FORMAT:
            return None
        source = Source(partition, offset)
        reader = _READERS.get(entry["kind"])
        found = None if reader is None else reader(source, entry)
        topic = entry["subject"] if entry.get("event") in _TOPIC_EVENTS else ""
        if found is None:
            return None
        at_ms = int(entry["at_ms"])
        if isinstance(found, Rebalance):
            left = entry["left"]
            reports = [_report(one["told"], found.group, one) for one in left.values() if one.get("told")]
            left_ms = {member_id: one["at_ms"] for member_id, one in left.items()}
            return Journalled(source, at_ms, found, topic, tuple(reports), left_ms)
        return Journalled(source, at_ms, found, topic)
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        raise MalformedError("journal record", FORMAT, "value", 0, repr(error)) from error


def _rebalance(source: Source, entry: Mapping[str, Any]) -> Rebalance:
    members = tuple(_member(one) for one in entry["members"])
    before = tuple(_member(one) for one in entry["before"])
    names = {one.member_id: one for one in (*before, *members)}
    left = {one: _departure(departure, names.get(one)) for one, departure in entry["left"].items()}
    cause, kind = _word(Cause, entry["cause"]), Kind(entry.get("group_type", Kind.CLASSIC))
    cause_member, confidence = entry["cause_member"], Confidence.EXACT
    evidence = [f"the journal says: {entry['cause']}"]
    if cause_member in names:
        evidence = [f"the journal says: {entry['cause']}, {names[cause_member].name}"]
    if (
        cause_member in left
        and left[cause_member].why is Departure.LEFT
        and entry["reason"].startswith(POLL_EXPIRED)
    ):
        left[cause_member] = _busy(left[cause_member], names.get(cause_member))
        cause, confidence = Cause.POLL_INTERVAL_EXCEEDED, Confidence.CERTAIN
    for member_id, departure in left.items():
        name = names[member_id].name if member_id in names else member_id
        evidence += [f"{name}: {text}" for text in departure.evidence]
    evidence += [_waited(one, names) for one in entry.get("waits", ())[:_WAITS_MAX]]
    if entry.get("cut"):
        evidence.append("the record was cut: it names the first members and moves only")
    return Rebalance(
        id=f"journal-{source.partition}-{source.offset}",
        group=entry["group"],
        kind=kind,
        generation=entry["generation"],
        at_ms=entry["at_ms"],
        cause=cause,
        confidence=confidence,
        evidence=tuple(evidence),
        cause_members=(cause_member,) if cause_member else (),
        reason=entry["reason"],
        outcome=Outcome(entry["outcome"]),
        protocol_type=entry["protocol_type"],
        protocol=entry["protocol"],
        leader=entry["leader"],
        members=members,
        joined=tuple(entry["joined"]),
        left=left,
        before=before,
        began_ms=entry["began_ms"],
        join_ms=entry["join_ms"] if kind is Kind.CLASSIC else None,
        join_last_member=entry["join_last_member"],
        leader_ms=entry["leader_ms"],
        sync_ms=entry["sync_ms"],
        moves=tuple(Move(*one) for one in entry["moves"]),
        unowned_ms=entry["unowned_ms"],
        first_commit_ms=entry["first_commit_ms"],
        last_commit_ms=entry["last_commit_ms"],
        principals=_principals(entry),
    )


def _waited(row: Sequence[Any], names: Mapping[str, Member]) -> str:
    """A member of the consumer protocol waited for another one."""
    waiter, holder, places, _, waited_ms = row
    waiting, holding = (names[one].name if one in names else one for one in (waiter, holder))
    return f"{waiting} waited {seconds(waited_ms)} for {holding} to give up {_places(places)}"


def _places(places: Iterable[tuple[str, Sequence[int]]]) -> str:
    return listed([f"{topic}:{','.join(map(str, some))}" for topic, some in places])


def _principals(entry: Mapping[str, Any]) -> dict[str, str]:
    rows = [*entry["before"], *entry["members"]]
    known = {one["member_id"]: one.get("principal") for one in rows}
    known |= {member_id: departure.get("principal") for member_id, departure in entry["left"].items()}
    return {member_id: principal for member_id, principal in known.items() if principal not in _NOBODY}


def _first_commit(source: Source, entry: Mapping[str, Any]) -> FirstCommit:
    return FirstCommit(entry["group"], entry["generation"], entry["at_ms"])


def _report(report: Mapping[str, Any], group: str, client: Mapping[str, Any]) -> ClientReport:
    left_ms = report["left_ms"]
    return ClientReport(
        int(report["at_ms"]),
        group,
        str(report["member_id"]),
        {str(name): float(value) for name, value in report["values"].items()},
        str(report["client_instance_id"]),
        client["client_id"],
        client["client_host"],
        bool(report["terminating"]),
        str(report["error"]),
        str(report["left_member_id"]),
        str(report["left_reason"]),
        None if left_ms is None else int(left_ms),
    )


def client_report(entry: Mapping[str, Any]) -> ClientReport:
    """A report of a client, as a node serves it over HTTP, with the fields of the entry "client told". Raises
    ValueError, KeyError, TypeError or AttributeError for what is none."""
    return _report(entry["told"], entry["group"], entry)


def _event(
    source: Source, entry: Mapping[str, Any]
) -> Event | StaticReturned | InstanceFenced | ClientReport | LaterReport | None:
    word = entry["event"]
    if word == "client told":
        report, member_id = client_report(entry), entry["old_member_id"]
        return LaterReport(report.group, member_id, report) if member_id else report
    member = Member(entry["member_id"], entry["client_id"], entry["client_host"], entry["group_instance_id"])
    if word == "static member returned":
        principal = _principal(entry)
        return StaticReturned(
            entry["group"], member, entry["old_member_id"], entry.get("last_heard_ms"), principal
        )
    if word == "instance fenced":
        return InstanceFenced(entry["group"], member, entry["count"])
    kind = _EVENTS.get(word)
    if kind is None:
        return None
    reason = entry["detail"] if kind is EventKind.ASSIGNOR_FELL_BACK else entry["error"]
    event_id, text = f"journal-{source.partition}-{source.offset}", _text(entry, member)
    return Event(event_id, entry["group"], entry["at_ms"], kind, text, member.name, reason)


def _principal(entry: Mapping[str, Any]) -> str:
    found: str | None = entry.get("principal")
    return "" if found in _NOBODY else found or ""


def _text(entry: Mapping[str, Any], member: Member) -> str:
    word, places = entry["event"], entry["partitions"]
    principal = _principal(entry)
    by_text = f" by {principal or member.name}" if principal or member.name else ""
    times = "" if entry["count"] == 1 else f", {count(entry['count'], 'time')}"
    if word == "join refused":
        return f"{_named(member, principal) or 'A client'} was refused to join: {entry['error']}{times}."
    if word == "member epoch refused":
        request = "a commit" if entry["error"] == "STALE_MEMBER_EPOCH" else "a heartbeat"
        return f"{member.name}: {request} of another member epoch was refused: {entry['error']}{times}."
    if word == "static member away":
        return f"{member.name} left for a while, and keeps its partitions until its session ends."
    if word == "revocation awaited":
        waited = seconds(entry["at_ms"] - entry["since_ms"])
        some = _places((topic, [number]) for topic, number, *_ in places)
        waiting = count(len(entry["waiting"]), "member")
        return f"{member.name} has not given up {some} for {waited}: {waiting} cannot go on."
    if word == "assignor fell back":
        leader = f" ({member.name})" if member.name else ""
        return f"The coordinator assigned in place of a member{leader}: {entry['detail']}."
    if word == "refused":
        name = _named(member, entry["principal"])
        return f"{name} was not allowed {entry['detail']} of {entry['subject']}{times}."
    if entry.get("subject"):
        what = f"{entry['subject']} ({entry['detail']})" if entry["detail"] else entry["subject"]
        return f"{word[:1].upper()}{word[1:]}{by_text}: {what}."
    if word in ("started", "stopped"):
        return f"The daemon {word}."
    if word.startswith("group"):
        if word == "group deleted":
            return f"The group was deleted{by_text if principal else ''}."
        return "The group expired with its last offset."
    where = f"{count(len(places), 'partition')} of {listed(sorted({one[0] for one in places}))}"
    if word == "offsets reset":
        back = sum(max(0, before - after) for *_, before, after in places if None not in (before, after))
        ahead = sum(max(0, after - before) for *_, before, after in places if None not in (before, after))
        moved = [f"{by:,} records {way}" for by, way in ((back, "back"), (ahead, "ahead")) if by]
        return f"Committed offsets of {where} were set{by_text}: {' and '.join(moved) or 'none moved'}."
    how = "deleted" if word == "offsets deleted" else "expired"
    deleted = f"were deleted{by_text if principal else ''}"
    return f"The committed offsets of {where} {deleted if how == 'deleted' else 'expired'}."


def _named(member: Member, principal: str) -> str:
    return f"{member.name} ({principal})" if member.name and principal else member.name or principal


def _member(one: Mapping[str, Any]) -> Member:
    assigned: list[TopicPartition] = [
        (topic, partition) for topic, partitions in one["assigned"] or () for partition in partitions
    ]
    return Member(
        one["member_id"],
        one["client_id"],
        one["client_host"],
        one["group_instance_id"],
        tuple(one["topics"] or ()),
        tuple(sorted(assigned)),
        one["session_timeout_ms"],
        one["rebalance_timeout_ms"],
    )


def _departure(entry: Mapping[str, Any], member: Member | None) -> DepartureFinding:
    why = _word(Departure, entry["why"])
    silent_ms = entry["silent_ms"]
    text = f"{entry['why']}, last request {seconds(silent_ms)} before"
    if why is Departure.SESSION_EXPIRED and member is not None and member.session_timeout_ms is not None:
        text += f"; its session timeout is {seconds(member.session_timeout_ms)}"
    return DepartureFinding(why, Confidence.EXACT, silent_ms, (text,))


def _busy(departure: DepartureFinding, member: Member | None) -> DepartureFinding:
    """The finding for a member that left because its application did not call poll(), as it reported."""
    limit_ms = None if member is None else member.rebalance_timeout_ms
    interval = "" if limit_ms is None else f" of {seconds(limit_ms)}"
    text = f"its client said that its poll interval{interval} was over: its application had not called poll()"
    return DepartureFinding(
        Departure.POLL_INTERVAL_EXCEEDED, Confidence.CERTAIN, departure.silent_ms, (*departure.evidence, text)
    )


def _word(words: type[_Word], text: str) -> _Word:
    try:
        return words(text)
    except ValueError:
        return words("unknown")


_Content = Rebalance | Event | FirstCommit | StaticReturned | InstanceFenced | ClientReport | LaterReport
_READERS: dict[str, Callable[[Source, Mapping[str, Any]], _Content | None]] = {
    "rebalance": _rebalance,
    "first-commit": _first_commit,
    "event": _event,
}
