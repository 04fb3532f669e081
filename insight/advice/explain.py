"""Departures of members explained, and errors of clients in a group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ringleader.insight.advice.errors import Known
from ringleader.insight.advice.findings import Change
from ringleader.insight.advice.past import Going, Past
from ringleader.insight.advice.words import length, rounded_up_ms
from ringleader.insight.model import (
    Confidence,
    Departure,
    Event,
    Member,
    MemberSpan,
    Rebalance,
    TopicPartition,
)


@dataclass(frozen=True, slots=True)
class Incident:
    """A member that went."""

    at_ms: int
    member: Member
    why: Departure
    confidence: Confidence
    silent_ms: int | None
    """How long it had been silent."""
    partitions: tuple[TopicPartition, ...]
    """Its partitions."""
    heirs: tuple[str, ...]
    """Names of those that got them."""
    back_ms: int | None
    """When one from the same place came; None: not so far."""
    evidence: tuple[str, ...]
    changes: tuple[Change, ...]
    rebalance_id: str
    generation: int


@dataclass(frozen=True, slots=True)
class Seen:
    """The part of a group's history that leads to an error."""

    error: Known
    incidents: tuple[Incident, ...]
    rebalances: tuple[Rebalance, ...]
    events: tuple[Event, ...]

    @property
    def nothing(self) -> bool:
        """The history has nothing that would bring it."""
        return not (self.incidents or self.rebalances or self.events)


def incidents(past: Past, goings: Iterable[Going] | None = None) -> list[Incident]:
    """Members that went, in order of time."""
    return [_incident(past, one) for one in (past.goings if goings is None else goings)]


def members_named(past: Past, text: str) -> list[MemberSpan]:
    """Lives of members that a person may mean: by name, member id, client id, instance id or host; else by
    the beginning of one of these."""
    exact = [one for one in past.spans if text in _words(one.member)]
    if exact:
        return exact
    return [one for one in past.spans if any(word.startswith(text) for word in _words(one.member) if word)]


def names(past: Past) -> list[str]:
    """Of all members that were seen."""
    return sorted({one.member.name for one in past.spans} | {one.name for one in past.known.values()})


def of_members(past: Past, spans: Sequence[MemberSpan]) -> list[Incident]:
    """How these members went."""
    ids = {one.member.member_id for one in spans}
    return incidents(past, [one for one in past.goings if one.member.member_id in ids])


def of_error(past: Past, error: Known) -> Seen:
    """Everything in the history that would bring the error to a member."""
    goings = [one for one in past.goings if one.departure.why in error.departures]
    rebalances = [one for one in past.counted if error.every_rebalance or one.cause in error.causes]
    events = [one for one in past.events if one.kind in error.events]
    return Seen(error, tuple(incidents(past, goings)), tuple(rebalances), tuple(events))


def _words(member: Member) -> tuple[str, ...]:
    host = member.host.lstrip("/")
    return (member.name, member.member_id, member.client_id, member.instance_id or "", host)


def _incident(past: Past, going: Going) -> Incident:
    rebalance = going.rebalance
    heirs = [
        one.heir for one in rebalance.moves if one.giver == going.member.member_id and one.heir is not None
    ]
    silent_ms = going.departure.silent_ms
    if silent_ms is None and going.departure.why is Departure.SESSION_EXPIRED:
        silent_ms = going.member.session_timeout_ms
    return Incident(
        going.at_ms,
        going.member,
        going.departure.why,
        going.departure.confidence,
        silent_ms,
        going.member.assigned,
        past.names(heirs),
        None if going.back is None else going.back.at_ms,
        going.departure.evidence or rebalance.evidence,
        tuple(remedies(going)),
        rebalance.id,
        rebalance.generation,
    )


def remedies(going: Going) -> list[Change]:
    """The changes after which it does not go so again."""
    member, why = going.member, going.departure.why
    session_ms, poll_ms = member.session_timeout_ms, member.rebalance_timeout_ms
    if why is Departure.SESSION_EXPIRED:
        away_ms = going.away_ms
        if away_ms is None:
            return [
                Change(
                    "consumer.close() on SIGTERM", "so that it leaves at once, if it was ended on purpose"
                ),
                Change("the process", "look for why it ended, if it was not: exit code, memory, the host"),
            ]
        wanted_ms = max(rounded_up_ms(away_ms * 1.2), session_ms or 0)
        return [
            Change(
                "session.timeout.ms",
                str(wanted_ms),
                str(session_ms) if session_ms else None,
                f"It was back {length(away_ms)} after its last request.",
            ),
            Change("the process", "look for pauses: garbage collection, CPU throttling, the network"),
        ]
    if why in (Departure.POLL_INTERVAL_EXCEEDED, Departure.NOT_REJOINED, Departure.NOT_REVOKED):
        now = str(poll_ms) if poll_ms else None
        busy_ms = None if going.back is None else going.back.at_ms - going.at_ms + (poll_ms or 0)
        return [
            Change("max.poll.records", "fewer, so that one round of poll() is shorter"),
            Change(
                "max.poll.interval.ms",
                str(rounded_up_ms((busy_ms or 2 * (poll_ms or 300_000)) * 1.2)),
                now,
                f"One round took {length(busy_ms)}." if busy_ms else "",
            ),
        ]
    if why is Departure.NOT_SYNCED:
        return [Change("the leader", "look at what it computes: the assignment did not come in time")]
    if why is Departure.NEW_MEMBER_TIMEOUT:
        return [Change("max.poll.interval.ms", "shorter: the group waited this long for other members")]
    if why is Departure.GROUP_FULL:
        return [Change("group.max.size", "larger (on the brokers), or fewer members")]
    if why is Departure.FENCED:
        return [Change("group.instance.id", "one of its own for each process", member.instance_id)]
    if why in (Departure.RESTARTED, Departure.LEFT) and member.instance_id is None:
        return [
            Change(
                "group.instance.id",
                "a name that outlives restarts",
                "not set",
                "Then a restart within the session timeout costs no rebalance.",
            )
        ]
    return []
