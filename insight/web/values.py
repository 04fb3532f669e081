"""What insight knows, as JSON has it: the fields by their names, enumerations as their words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from ringleader.insight.model import Event, Member, Rebalance

Json = dict[str, Any]


def plain(value: Any) -> Any:
    """`value` of `insight.model` as JSON's own types. A member also has its `name`."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        made = {name: plain(item) for name, item in zip(value._fields, value, strict=True)}
        if isinstance(value, Member):
            made["name"] = value.name
        return made
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    return value


def names(rebalance: Rebalance) -> dict[str, str]:
    """Member id -> name, of all that were there before it or after."""
    return {member.member_id: member.name for member in (*rebalance.before, *rebalance.members)}


def whole(rebalance: Rebalance) -> Json:
    """All of it, and `names`."""
    return {**plain(rebalance), "duration_ms": rebalance.duration_ms, "names": names(rebalance)}


def line(rebalance: Rebalance) -> Json:
    """What a list says of it: numbers in place of lists."""
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
