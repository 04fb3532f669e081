"""Assignors of members (`client:NAME`) in whose place the coordinator computed: how often, and why."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from ringleader.insight.advice.draft import Draft
from ringleader.insight.advice.findings import Change, Finding, Pattern
from ringleader.insight.advice.past import Past
from ringleader.insight.advice.thresholds import Thresholds
from ringleader.insight.advice.words import clock, how_often, some
from ringleader.insight.model import Confidence, EventKind

_CHANGES = (
    (
        "larger than group.max.record.bytes",
        Change("group.max.record.bytes", "larger", None, "What the leader gets to compute from did not fit."),
    ),
    (
        "its answer as the leader is not taken",
        Change("the assignor", "look at its error", None, "The leader answered, but not with shares."),
    ),
    (
        "did not answer in time as the leader",
        Change(
            "group.consumer.leader.timeout.ms",
            "longer than the assignor takes",
            None,
            "Or look for pauses of the leader: garbage collection, CPU throttling, an assignor that waits.",
        ),
    ),
    (
        "no member can compute",
        Change(
            "clients.assignors.ASSIGNORS",
            "the assignor, in the process of every member that asks for it",
            None,
            "No member that was there said that it can lead.",
        ),
    ),
    (
        "no member has computed the assignment",
        Change(
            "group.consumer.leader.timeout.ms",
            "longer",
            None,
            "No heartbeat of a member that can lead came in time: it was busy, or away.",
        ),
    ),
)
"""A part of the reason -> what to change. The first that fits counts."""


@dataclass(frozen=True, slots=True)
class FallBack:
    """The times when the coordinator computed for one reason. Unix ms."""

    reason: str
    times: tuple[int, ...]
    members: tuple[str, ...]
    """Names of those that were asked last."""
    changes: tuple[Change, ...]


def fall_backs(past: Past) -> list[FallBack]:
    """Those of the window, the most frequent reason first."""
    found: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for event in past.events:
        if event.kind is EventKind.ASSIGNOR_FELL_BACK:
            found[event.reason].append((event.at_ms, event.member))
    return sorted(
        (
            FallBack(
                reason,
                tuple(at_ms for at_ms, _ in some_of),
                tuple(sorted({member for _, member in some_of if member})),
                tuple(change for part, change in _CHANGES if part in reason)[:1],
            )
            for reason, some_of in found.items()
        ),
        key=lambda one: (-len(one.times), one.times),
    )


def assignor_fell_back(past: Past, at: Thresholds) -> Iterator[Draft]:
    """A leader that does not compute again and again."""
    found = fall_backs(past)
    moments = sorted(at_ms for one in found for at_ms in one.times)
    if len(moments) < at.fall_backs_min:
        return
    evidence = []
    for one in found:
        members = f" ({some(one.members)})" if one.members else ""
        evidence.append(f"{how_often(len(one.times))}, last {clock(one.times[-1])}: {one.reason}{members}.")
    yield Draft(
        Finding(
            Pattern.ASSIGNOR_FELL_BACK,
            f"The coordinator assigned {how_often(len(moments))} in place of a member, in its own way.",
            Confidence.EXACT,
            tuple(evidence),
            moments[0],
            moments[-1],
            tuple(dict.fromkeys(change for one in found for change in one.changes)),
            tuple(sorted({member for one in found for member in one.members})),
            no_saving="It costs the assignor's own rules, no rebalances.",
        )
    )
