"""Patterns of refusals, which only Ringleader's own journal contains: static members after a crash."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from ringleader.insight.advice.draft import Draft
from ringleader.insight.advice.findings import Change, Finding, Pattern
from ringleader.insight.advice.past import Going, Past, least_sure
from ringleader.insight.advice.thresholds import Thresholds
from ringleader.insight.advice.words import clock, count, how_often, length, some
from ringleader.insight.model import Confidence, Departure, Event, EventKind

_UNRELEASED = "UNRELEASED_INSTANCE_ID"


def static_refused(past: Past, at: Thresholds) -> Iterator[Draft]:
    """A static member that comes back after its process ended or stood still, and is refused.

    In the consumer protocol a new process gets UNRELEASED_INSTANCE_ID until the session of the one before it
    is over. In the classic one the new process takes the place, and the one before it, if it only stood
    still, gets FENCED_INSTANCE_ID.
    """
    refused: dict[str, list[Event]] = defaultdict(list)
    for one in past.events:
        if one.kind is EventKind.JOIN_REFUSED and one.group == past.group and one.reason == _UNRELEASED:
            refused[one.member].append(one)
    fenced = [
        one
        for one in past.goings
        if one.departure.why is Departure.FENCED
        and one.departure.confidence is Confidence.EXACT
        and one.member.instance_id
        and (one.departure.silent_ms or 0) >= at.refused_silent_ms
    ]
    if not refused and not fenced:
        return
    expired: dict[str, list[Going]] = defaultdict(list)
    for going in past.goings:
        if going.departure.why is Departure.SESSION_EXPIRED and going.member.instance_id:
            expired[going.member.instance_id].append(going)
    names = tuple(dict.fromkeys([*refused, *(one.member.name for one in fenced)]))
    times = [one.at_ms for some_events in refused.values() for one in some_events]
    times += [one.rebalance.at_ms for one in fenced]
    yield Draft(
        Finding(
            Pattern.STATIC_REFUSED,
            f"{count(len(names), 'static member')} ({some(names)}) came back after a crash or a standstill,"
            f" and {'was' if len(names) == 1 else 'were'} refused.",
            least_sure(
                [
                    *(
                        Confidence.CERTAIN if _over(expired, one, refused[one]) else Confidence.LIKELY
                        for one in refused
                    ),
                    *(Confidence.CERTAIN for _ in fenced),
                ]
            ),
            (
                *(
                    _refusal_text(name, events, _over(expired, name, events))
                    for name, events in refused.items()
                ),
                *(
                    f"{one.member.name} was silent for {length(one.departure.silent_ms or 0)}; then another"
                    f" process took its place, at {clock(one.rebalance.at_ms)}, and it came back:"
                    " FENCED_INSTANCE_ID."
                    for one in fenced
                ),
            ),
            min(times),
            max(times),
            tuple(_changes(bool(refused), bool(fenced))),
            names,
            tuple(dict.fromkeys(one.rebalance.id for one in fenced)),
            no_saving="Its cost is not rebalances: partitions have no reader until the member is let in.",
        )
    )


def _over(expired: dict[str, list[Going]], name: str, events: list[Event]) -> Going | None:
    """The end of the session that held the place, if it was seen: then the process before was gone."""
    return next((one for one in expired.get(name, ()) if one.at_ms >= events[0].at_ms), None)


def _refusal_text(name: str, events: list[Event], over: Going | None) -> str:
    text = f"{name}: {_UNRELEASED}, from {clock(events[0].at_ms)}, told {how_often(len(events))}"
    if over is None:
        return f"{text}; no end of the former process's session was seen, so that it may still live."
    return f"{text}; the session of the former process ended at {clock(over.at_ms)}."


def _changes(refused: bool, fenced: bool) -> Iterator[Change]:
    if refused:
        yield Change(
            "consumer.session.timeout.ms",
            "shorter (kafka-configs --entity-type groups): a place is held for that time after a crash",
        )
        yield Change(
            "the process",
            "close() the consumer on SIGTERM, which releases the place; after a crash, start again later:"
            " clients take UNRELEASED_INSTANCE_ID for fatal",
        )
    if fenced:
        yield Change(
            "the process",
            "end it on FENCED_INSTANCE_ID, and look at what stopped it: a long garbage collection, a"
            " suspended container, a machine that was moved",
        )


ALL = (static_refused,)
