"""Lanes of the timeline: blocks, gaps with their cause, nothing finer than a picture can show."""

from __future__ import annotations

from ringleader.insight.model import (
    Cause,
    Confidence,
    Kind,
    Member,
    MemberSpan,
    Ownership,
    Rebalance,
)
from ringleader.insight.web.lanes import member_lanes, partition_lanes


def _rebalance(number: int, began_ms: int, at_ms: int, cause: Cause) -> Rebalance:
    return Rebalance(
        f"offsets-0-{number}",
        "orders",
        Kind.CLASSIC,
        number,
        at_ms,
        cause,
        Confidence.LIKELY,
        began_ms=began_ms,
    )


def _owned(partition: int, member: str, since: int, until: int | None, number: int) -> Ownership:
    return Ownership("orders", "orders", partition, member, since, until, f"offsets-0-{number}")


def _span(member: str, since: int, until: int | None, client: str = "app") -> MemberSpan:
    return MemberSpan("orders", Member(member, client, "/10.0.0.1"), since, until, None, None)


FIRST = _rebalance(1, 0, 1_000, Cause.MEMBER_JOINED)
SECOND = _rebalance(2, 5_000, 6_000, Cause.SESSION_EXPIRED)


def test_a_gap_between_owners_has_the_cause_of_the_rebalance_that_ended_it() -> None:
    owned = [_owned(0, "a", 1_000, 5_000, 1), _owned(0, "b", 6_000, None, 2)]
    [lane] = partition_lanes(owned, [FIRST, SECOND], 0, 10_000, 1_000)
    assert lane["blocks"] == [(1_000, 5_000, "a"), (6_000, None, "b")]
    assert lane["gaps"] == [
        {"since_ms": 5_000, "until_ms": 6_000, "cause": "session expired", "rebalance": "offsets-0-2"}
    ]


def test_a_partition_that_nobody_took_has_an_open_gap() -> None:
    [lane] = partition_lanes([_owned(0, "a", 1_000, 5_000, 1)], [FIRST, SECOND], 0, 10_000, 1_000)
    assert lane["gaps"] == [
        {"since_ms": 5_000, "until_ms": None, "cause": "session expired", "rebalance": "offsets-0-2"}
    ]


def test_what_is_too_short_to_be_seen_becomes_one() -> None:
    owned = [_owned(0, "ab"[at % 2], at * 10, at * 10 + 9, 1) for at in range(1_000)]
    [lane] = partition_lanes(owned, [FIRST], 0, 10_000, 10)
    assert len(lane["blocks"]) <= 20
    assert len(lane["gaps"]) <= 20
    assert None in {what for _, _, what in lane["blocks"]}


def test_a_member_has_a_number_of_partitions_and_a_gap_only_in_rebalances() -> None:
    owned = [
        _owned(0, "a", 1_000, 5_000, 1),
        _owned(1, "a", 1_000, 5_000, 1),
        _owned(0, "a", 6_000, 8_000, 2),
    ]
    [lane] = member_lanes([_span("a", 1_000, None)], owned, [FIRST, SECOND], 0, 10_000, 1_000)
    assert lane["blocks"] == [(1_000, 5_000, 2), (6_000, 8_000, 1)]
    assert [(gap["since_ms"], gap["until_ms"], gap["cause"]) for gap in lane["gaps"]] == [
        (5_000, 6_000, "session expired")
    ]


def test_a_member_that_came_again_goes_on_in_its_lane_and_two_at_once_have_two() -> None:
    spans = [_span("a", 0, 1_000), _span("b", 1_500, None), _span("c", 2_000, None)]
    lanes = member_lanes(spans, [], [], 0, 10_000, 1_000)
    assert [lane["name"] for lane in lanes] == ["app@10.0.0.1", "app@10.0.0.1 #2"]
    assert [span["member_id"] for span in lanes[0]["spans"]] == ["a", "b"]


def test_those_that_are_gone_come_last() -> None:
    lanes = member_lanes([_span("a", 0, 10, "a"), _span("z", 0, None, "z")], [], [], 0, 10_000, 1_000)
    assert [(lane["name"], lane["here"]) for lane in lanes] == [("z@10.0.0.1", True), ("a@10.0.0.1", False)]
