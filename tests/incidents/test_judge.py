"""The judge's verdicts on made-up histories."""

from __future__ import annotations

from typing import Any

from ringleader.insight.model import (
    Cause,
    Confidence,
    Departure,
    DepartureFinding,
    Event,
    EventKind,
    Kind,
    Member,
    Rebalance,
)
from tests.incidents.judge import Score, Verdict, calibrated, calibration, judge
from tests.incidents.ledger import Incident, heard

A, B = (Member(f"{name}-id", name, "/127.0.0.1") for name in "ab")


def incident(**what: Any) -> Incident:
    given: dict[str, Any] = {
        "causes": [Cause.SESSION_EXPIRED],
        "departures": {"b": [Departure.SESSION_EXPIRED]},
    }
    given |= {"began_ms": 1_000, "ended_ms": 9_000, "client_ids": ["b"], **what}
    return Incident(
        group="g", kind="SIGKILL", what="b is killed", client="java", protocol="range", commits="1 s", **given
    )


def rebalance(cause: Cause, confidence: Confidence, **what: Any) -> Rebalance:
    given: dict[str, Any] = {"at_ms": 7_000, "before": (A, B), "members": (A,), "cause_members": ("b-id",)}
    return Rebalance("offsets-1-1", "g", Kind.CLASSIC, 2, cause=cause, confidence=confidence, **given | what)


def departed(why: Departure, confidence: Confidence) -> dict[str, DepartureFinding]:
    return {"b-id": DepartureFinding(why, confidence)}


EXPIRED = departed(Departure.SESSION_EXPIRED, Confidence.LIKELY)


def verdict(done: Incident, *concluded: Rebalance, events: tuple[Event, ...] = ()) -> Verdict:
    [judged] = judge([done], concluded, events)
    return judged.verdict


def test_what_was_done_and_said_is_right() -> None:
    concluded = rebalance(Cause.SESSION_EXPIRED, Confidence.LIKELY, left=EXPIRED)
    assert verdict(incident(), concluded) is Verdict.RIGHT


def test_another_cause_is_wrong_when_it_is_said_for_sure_and_hedged_when_not() -> None:
    for confidence, expected in (
        (Confidence.EXACT, Verdict.WRONG),
        (Confidence.CERTAIN, Verdict.WRONG),
        (Confidence.LIKELY, Verdict.WRONG),
        (Confidence.POSSIBLE, Verdict.HEDGED),
        (Confidence.UNKNOWN, Verdict.HEDGED),
    ):
        assert verdict(incident(), rebalance(Cause.MEMBER_LEFT, confidence, left=EXPIRED)) is expected


def test_another_departure_or_another_member_is_wrong() -> None:
    left = departed(Departure.LEFT, Confidence.LIKELY)
    concluded = rebalance(Cause.SESSION_EXPIRED, Confidence.LIKELY, left=left)
    assert verdict(incident(), concluded) is Verdict.WRONG
    concluded = rebalance(Cause.SESSION_EXPIRED, Confidence.LIKELY, left=EXPIRED, cause_members=("a-id",))
    assert verdict(incident(), concluded) is Verdict.WRONG


def test_a_further_rebalance_with_a_wrong_cause_spoils_the_right_one() -> None:
    right = rebalance(Cause.SESSION_EXPIRED, Confidence.LIKELY, left=EXPIRED)
    followed = rebalance(Cause.LEADER_REJOINED, Confidence.LIKELY, at_ms=8_000)
    assert verdict(incident(), right, followed) is Verdict.WRONG
    assert verdict(incident(also=[Cause.LEADER_REJOINED]), right, followed) is Verdict.RIGHT


def test_nothing_said_is_missed_unless_nothing_is_expected() -> None:
    assert verdict(incident()) is Verdict.MISSED
    assert verdict(incident(departures={}, quiet=True)) is Verdict.RIGHT
    before = rebalance(Cause.SESSION_EXPIRED, Confidence.LIKELY, left=EXPIRED, at_ms=500)
    assert verdict(incident(), before) is Verdict.MISSED


def test_a_restarted_coordinator_is_an_event() -> None:
    done = incident(causes=[Cause.COORDINATOR_CHANGED], departures={}, client_ids=[], quiet=True)
    away = Event("e", "", 2_000, EventKind.COORDINATOR_AWAY, "It is away.")
    assert verdict(done) is Verdict.MISSED
    assert verdict(done, events=(away,)) is Verdict.RIGHT


def test_a_phase_has_to_be_as_long_as_it_was() -> None:
    done = incident(phases={"leader_ms": 3_000})
    for leader_ms, expected in ((5_000, Verdict.RIGHT), (20, Verdict.HEDGED), (None, Verdict.HEDGED)):
        concluded = rebalance(Cause.SESSION_EXPIRED, Confidence.LIKELY, left=EXPIRED, leader_ms=leader_ms)
        assert verdict(done, concluded) is expected


def test_unknown_is_good_where_nothing_shows_it_and_a_group_without_rest_is_not_judged() -> None:
    concluded = rebalance(
        Cause.UNKNOWN, Confidence.UNKNOWN, left=departed(Departure.UNKNOWN, Confidence.UNKNOWN)
    )
    [hidden] = judge([incident(shown=False)], [concluded], [])
    [shown] = judge([incident()], [concluded], [])
    assert hidden.verdict is Verdict.HEDGED is shown.verdict
    assert hidden.good
    assert not shown.good
    assert judge([incident(settled=False)], [concluded], []) == []
    assert Score([hidden]).good()
    assert not Score([hidden, shown]).good()
    assert not Score([]).good()


def test_a_coordinator_knows_what_its_clients_tell_it() -> None:
    done = incident(
        causes=[Cause.POLL_INTERVAL_EXCEEDED],
        departures={"b": [Departure.POLL_INTERVAL_EXCEEDED]},
        shown=False,
    )
    concluded = rebalance(
        Cause.MEMBER_LEFT, Confidence.EXACT, left=departed(Departure.LEFT, Confidence.EXACT)
    )
    again = rebalance(Cause.MEMBER_CHANGED, Confidence.EXACT, cause_members=("a-id",), at_ms=8_000)
    assert verdict(done, concluded) is Verdict.WRONG
    assert verdict(heard(done), concluded, again) is Verdict.RIGHT
    assert heard(done).shown
    assert verdict(heard(done), rebalance(Cause.SESSION_EXPIRED, Confidence.EXACT)) is Verdict.WRONG


def test_each_confidence_has_to_be_right_as_often_as_it_says() -> None:
    right = rebalance(Cause.SESSION_EXPIRED, Confidence.LIKELY, left=EXPIRED)
    found = judge([incident()], [right], ())
    assert calibration(found) == {Confidence.LIKELY: (2, 2)}
    assert calibrated(found)
    for confidence, fits in ((Confidence.LIKELY, False), (Confidence.POSSIBLE, True)):
        wrong = judge([incident()], [rebalance(Cause.MEMBER_LEFT, confidence)], ())
        assert calibration(wrong) == {confidence: (1, 0)}
        assert calibrated(wrong) is fits
