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
        said = json_text.loads(value)
        if said["format"] != FORMAT:
            return None
        source = Source(partition, offset)
        entry = _TOLD.get(said["kind"])
        found = None if entry is None else entry(source, said)
        topic = said["subject"] if said.get("event") in _TOPIC_EVENTS else ""
        if found is None:
            return None
        at_ms = int(said["at_ms"])
        if isinstance(found, Rebalance):
            left = said["left"]
            reports = [_report(one["told"], found.group, one) for one in left.values() if one.get("told")]
            left_ms = {member_id: one["at_ms"] for member_id, one in left.items()}
            return Journalled(source, at_ms, found, topic, tuple(reports), left_ms)
        return Journalled(source, at_ms, found, topic)
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise MalformedError("journal record", FORMAT, "value", 0, repr(error)) from error


def _rebalance(source: Source, said: Mapping[str, Any]) -> Rebalance:
    members = tuple(_member(one) for one in said["members"])
    before = tuple(_member(one) for one in said["before"])
    names = {one.member_id: one for one in (*before, *members)}
    left = {one: _gone(gone, names.get(one)) for one, gone in said["left"].items()}
    cause, kind = _word(Cause, said["cause"]), Kind(said.get("group_type", Kind.CLASSIC))
    who, confidence = said["cause_member"], Confidence.EXACT
    evidence = [f"the journal says: {said['cause']}"]
    if who in names:
        evidence = [f"the journal says: {said['cause']}, {names[who].name}"]
    if who in left and left[who].why is Departure.LEFT and said["reason"].startswith(POLL_EXPIRED):
        left[who] = _busy(left[who], names.get(who))
        cause, confidence = Cause.POLL_INTERVAL_EXCEEDED, Confidence.CERTAIN
    for member_id, gone in left.items():
        name = names[member_id].name if member_id in names else member_id
        evidence += [f"{name}: {text}" for text in gone.evidence]
    evidence += [_waited(one, names) for one in said.get("waits", ())[:_WAITS_MAX]]
    if said.get("cut"):
        evidence.append("the record was cut: it names the first members and moves only")
    return Rebalance(
        id=f"journal-{source.partition}-{source.offset}",
        group=said["group"],
        kind=kind,
        generation=said["generation"],
        at_ms=said["at_ms"],
        cause=cause,
        confidence=confidence,
        evidence=tuple(evidence),
        cause_members=(who,) if who else (),
        reason=said["reason"],
        outcome=Outcome(said["outcome"]),
        protocol_type=said["protocol_type"],
        protocol=said["protocol"],
        leader=said["leader"],
        members=members,
        joined=tuple(said["joined"]),
        left=left,
        before=before,
        began_ms=said["began_ms"],
        join_ms=said["join_ms"] if kind is Kind.CLASSIC else None,
        join_last_member=said["join_last_member"],
        leader_ms=said["leader_ms"],
        sync_ms=said["sync_ms"],
        moves=tuple(Move(*one) for one in said["moves"]),
        unowned_ms=said["unowned_ms"],
        first_commit_ms=said["first_commit_ms"],
        last_commit_ms=said["last_commit_ms"],
        principals=_principals(said),
    )


def _waited(row: Sequence[Any], names: Mapping[str, Member]) -> str:
    """A member of the consumer protocol waited for another one."""
    waiter, holder, places, _, waited_ms = row
    who, whom = (names[one].name if one in names else one for one in (waiter, holder))
    return f"{who} waited {seconds(waited_ms)} for {whom} to give up {_places(places)}"


def _places(places: Iterable[tuple[str, Sequence[int]]]) -> str:
    return listed([f"{topic}:{','.join(map(str, some))}" for topic, some in places])


def _principals(said: Mapping[str, Any]) -> dict[str, str]:
    rows = [*said["before"], *said["members"]]
    known = {one["member_id"]: one.get("principal") for one in rows}
    known |= {member_id: gone.get("principal") for member_id, gone in said["left"].items()}
    return {member_id: who for member_id, who in known.items() if who not in _NOBODY}


def _first_commit(source: Source, said: Mapping[str, Any]) -> FirstCommit:
    return FirstCommit(said["group"], said["generation"], said["at_ms"])


def _report(told: Mapping[str, Any], group: str, who: Mapping[str, Any]) -> ClientReport:
    left_ms = told["left_ms"]
    return ClientReport(
        int(told["at_ms"]),
        group,
        str(told["member_id"]),
        {str(name): float(value) for name, value in told["values"].items()},
        str(told["client_instance_id"]),
        who["client_id"],
        who["client_host"],
        bool(told["terminating"]),
        str(told["error"]),
        str(told["left_member_id"]),
        str(told["left_reason"]),
        None if left_ms is None else int(left_ms),
    )


def client_report(said: Mapping[str, Any]) -> ClientReport:
    """A report of a client, as a node serves it over HTTP, with the fields of the entry "client told". Raises
    ValueError, KeyError, TypeError or AttributeError for what is none."""
    return _report(said["told"], said["group"], said)


def _event(
    source: Source, said: Mapping[str, Any]
) -> Event | StaticReturned | InstanceFenced | ClientReport | LaterReport | None:
    word = said["event"]
    if word == "client told":
        report, gone_id = client_report(said), said["old_member_id"]
        return LaterReport(report.group, gone_id, report) if gone_id else report
    who = Member(said["member_id"], said["client_id"], said["client_host"], said["group_instance_id"])
    if word == "static member returned":
        principal = _principal(said)
        return StaticReturned(said["group"], who, said["old_member_id"], said.get("last_heard_ms"), principal)
    if word == "instance fenced":
        return InstanceFenced(said["group"], who, said["count"])
    kind = _EVENTS.get(word)
    if kind is None:
        return None
    reason = said["detail"] if kind is EventKind.ASSIGNOR_FELL_BACK else said["error"]
    event_id, text = f"journal-{source.partition}-{source.offset}", _text(said, who)
    return Event(event_id, said["group"], said["at_ms"], kind, text, who.name, reason)


def _principal(said: Mapping[str, Any]) -> str:
    found: str | None = said.get("principal")
    return "" if found in _NOBODY else found or ""


def _text(said: Mapping[str, Any], who: Member) -> str:
    word, places = said["event"], said["partitions"]
    principal = _principal(said)
    by_whom = f" by {principal or who.name}" if principal or who.name else ""
    times = "" if said["count"] == 1 else f", {count(said['count'], 'time')}"
    if word == "join refused":
        return f"{_named(who, principal) or 'A client'} was refused to join: {said['error']}{times}."
    if word == "member epoch refused":
        asked = "a commit" if said["error"] == "STALE_MEMBER_EPOCH" else "a heartbeat"
        return f"{who.name}: {asked} of another member epoch was refused: {said['error']}{times}."
    if word == "static member away":
        return f"{who.name} left for a while, and keeps its partitions until its session ends."
    if word == "revocation awaited":
        waited = seconds(said["at_ms"] - said["since_ms"])
        some = _places((topic, [number]) for topic, number, *_ in places)
        waiting = count(len(said["waiting"]), "member")
        return f"{who.name} has not given up {some} for {waited}: {waiting} cannot go on."
    if word == "assignor fell back":
        asked = f" ({who.name})" if who.name else ""
        return f"The coordinator assigned in place of a member{asked}: {said['detail']}."
    if word == "refused":
        name = _named(who, said["principal"])
        return f"{name} was not allowed {said['detail']} of {said['subject']}{times}."
    if said.get("subject"):
        what = f"{said['subject']} ({said['detail']})" if said["detail"] else said["subject"]
        return f"{word[:1].upper()}{word[1:]}{by_whom}: {what}."
    if word in ("started", "stopped"):
        return f"The daemon {word}."
    if word.startswith("group"):
        if word == "group deleted":
            return f"The group was deleted{by_whom if principal else ''}."
        return "The group expired with its last offset."
    where = f"{count(len(places), 'partition')} of {listed(sorted({one[0] for one in places}))}"
    if word == "offsets reset":
        back = sum(max(0, before - after) for *_, before, after in places if None not in (before, after))
        ahead = sum(max(0, after - before) for *_, before, after in places if None not in (before, after))
        moved = [f"{by:,} records {way}" for by, way in ((back, "back"), (ahead, "ahead")) if by]
        return f"Committed offsets of {where} were set{by_whom}: {' and '.join(moved) or 'none moved'}."
    how = "deleted" if word == "offsets deleted" else "expired"
    deleted = f"were deleted{by_whom if principal else ''}"
    return f"The committed offsets of {where} {deleted if how == 'deleted' else 'expired'}."


def _named(who: Member, principal: str) -> str:
    return f"{who.name} ({principal})" if who.name and principal else who.name or principal


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


def _gone(said: Mapping[str, Any], member: Member | None) -> DepartureFinding:
    why = _word(Departure, said["why"])
    silent_ms = said["silent_ms"]
    text = f"{said['why']}, last request {seconds(silent_ms)} before"
    if why is Departure.SESSION_EXPIRED and member is not None and member.session_timeout_ms is not None:
        text += f"; its session timeout is {seconds(member.session_timeout_ms)}"
    return DepartureFinding(why, Confidence.EXACT, silent_ms, (text,))


def _busy(gone: DepartureFinding, member: Member | None) -> DepartureFinding:
    """The finding for a member that left because its application did not call poll(), as it reported."""
    limit_ms = None if member is None else member.rebalance_timeout_ms
    interval = "" if limit_ms is None else f" of {seconds(limit_ms)}"
    text = f"its client said that its poll interval{interval} was over: its application had not called poll()"
    return DepartureFinding(
        Departure.POLL_INTERVAL_EXCEEDED, Confidence.CERTAIN, gone.silent_ms, (*gone.evidence, text)
    )


def _word(words: type[_Word], text: str) -> _Word:
    try:
        return words(text)
    except ValueError:
        return words("unknown")


_Said = Rebalance | Event | FirstCommit | StaticReturned | InstanceFenced | ClientReport | LaterReport
_TOLD: dict[str, Callable[[Source, Mapping[str, Any]], _Said | None]] = {
    "rebalance": _rebalance,
    "first-commit": _first_commit,
    "event": _event,
}
