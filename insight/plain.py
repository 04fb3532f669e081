"""Values of insight as JSON for people and programs: the fields by their names, enumerations as their
words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from ringleader.insight.model import Member

Json = dict[str, Any]


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
