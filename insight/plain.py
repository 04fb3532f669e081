"""Values of insight as JSON for people and programs: the fields by their names, enumerations as their
words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime
from typing import Any

from ringleader.insight.model import Event, GroupState, Member, Rebalance

Json = dict[str, Any]
_TIMES = frozenset(
    (
        "at_ms",
        "since_ms",
        "until_ms",
        "began_ms",
        "first_commit_ms",
        "last_commit_ms",
        "back_ms",
        "committed_ms",
    )
)
"""Fields that are Unix time; their JSON has it as ISO 8601, too."""


def _as_it_is(made: Json) -> Json:
    return made


def plain(value: Any, finish: Callable[[Json], Json] = _as_it_is) -> Any:
    """`value` of `insight.model` as JSON's own types. A member also has its `name`. `finish` gets the object
    of each value that has fields, and may add to it."""
    if isinstance(value, Mapping):
        return {str(key): plain(item, finish) for key, item in value.items()}
    if is_dataclass(value):
        return finish({each.name: plain(getattr(value, each.name), finish) for each in fields(value)})
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        made = {name: plain(item, finish) for name, item in zip(value._fields, value, strict=True)}
        if isinstance(value, Member):
            made["name"] = value.name
        return finish(made)
    if isinstance(value, (tuple, list)):
        return [plain(item, finish) for item in value]
    return value


def iso(at_ms: int) -> str:
    """ISO 8601 with milliseconds, UTC."""
    found = datetime.fromtimestamp(at_ms / 1000, UTC)
    return found.strftime("%Y-%m-%dT%H:%M:%S.") + f"{at_ms % 1000:03d}Z"


FORMAT = 1
"""Of the JSON of `watch` and `history`: raised where a field is renamed, removed or changes its meaning."""


def entry(one: Rebalance | Event | GroupState) -> Json:
    """An entry of a history as JSON's own types, as `watch --json` and `history --json` both print it."""
    made: Json = plain(one, with_times)
    if isinstance(one, Rebalance):
        names = {member.member_id: member.name for member in (*one.before, *one.members)}
        made = {"type": "rebalance", **made, "duration_ms": one.duration_ms, "names": names}
    elif isinstance(one, Event):
        made = {"type": "event", **made}
    else:
        made = {"type": "group", "at": iso(one.since_ms), **made}
    return {"format": FORMAT, **made}


def with_times(made: Json) -> Json:
    """For `plain`: Unix times come as ISO 8601, too."""
    for name in [*made]:
        if name in _TIMES and isinstance(made[name], int):
            made[name.removesuffix("_ms")] = iso(made[name])
    return made
