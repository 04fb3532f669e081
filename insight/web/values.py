"""Rebalances and events as the page gets them: with the names of members, and how long it took."""

from __future__ import annotations

from ringleader.insight.model import Event, Rebalance
from ringleader.insight.plain import Json, plain


def names(rebalance: Rebalance) -> dict[str, str]:
    """Member id -> name, of all that were there before it or after."""
    return {member.member_id: member.name for member in (*rebalance.before, *rebalance.members)}


def whole(rebalance: Rebalance) -> Json:
    """All of it, and `names`."""
    return {**plain(rebalance), "duration_ms": rebalance.duration_ms, "names": names(rebalance)}


def line(rebalance: Rebalance) -> Json:
    """The short form for a list of rebalances: numbers in place of lists."""
    known = names(rebalance)
    return {
        "id": rebalance.id,
        "group": rebalance.group,
        "generation": rebalance.generation,
        "at_ms": rebalance.at_ms,
        "began_ms": rebalance.began_ms,
        "duration_ms": rebalance.duration_ms,
        "cause": rebalance.cause,
        "confidence": rebalance.confidence,
        "outcome": rebalance.outcome,
        "cause_names": [known.get(each, each) for each in rebalance.cause_members],
        "joined": len(rebalance.joined),
        "left": len(rebalance.left),
        "members": len(rebalance.members),
        "moved": len(rebalance.moves),
        "unowned_ms": rebalance.unowned_ms,
    }


def event_line(event: Event) -> Json:
    """An event's fields."""
    made: Json = plain(event)
    return made
