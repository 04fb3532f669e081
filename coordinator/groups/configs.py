"""Configurations of single groups of the consumer protocol (resource type 32), in place of the broker's
settings: session timeout, heartbeat interval and assignment interval."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.protocol.errors import ErrorCode, KafkaError

SESSION, HEARTBEAT, ASSIGNMENT = "session_timeout_ms", "heartbeat_interval_ms", "assignment_interval_ms"
KEYS = {f"consumer.{name.replace('_', '.')}": name for name in (SESSION, HEARTBEAT, ASSIGNMENT)}
"""Name of a configuration -> the end of the name of the broker's setting."""

Values = Mapping[str, int]
"""Name of a configuration -> its value; those that are set."""


_NONE: Values = {}


class GroupConfigs:
    """The configurations of groups. One for all shards of a process; it changes between their calls only."""

    def __init__(self) -> None:
        self.version = 0
        """Grows with every change."""
        self.of_groups: dict[str, dict[str, int]] = {}
        """By group, those that are set."""

    def of(self, group_id: str) -> Values:
        """Those that are set for a group."""
        return self.of_groups.get(group_id, _NONE)

    def all(self) -> Mapping[str, Values]:
        """Of all groups for which anything is set."""
        return dict(self.of_groups)

    def apply(self, changed: Mapping[str, Any]) -> None:
        """Group id -> all that is set for it now; None: nothing. Raises ValueError, TypeError, AttributeError
        for what no store has."""
        for group_id, values in changed.items():
            fresh = {name: int(value) for name, value in (values or {}).items() if name in KEYS}
            if fresh:
                self.of_groups[group_id] = fresh
            else:
                self.of_groups.pop(group_id, None)
        self.version += 1

    def value(self, settings: GroupSettings, group_id: str, name: str) -> int:
        """The value for a group, the broker's if it has none of its own. `name`: of `KEYS`' values."""
        found = self.of_groups.get(group_id)
        own = None if found is None else found.get(_OF_SETTINGS[name])
        return broker_value(settings, name) if own is None else own


_OF_SETTINGS = {name: key for key, name in KEYS.items()}
_OF_BROKER = {name: f"group_consumer_{name}" for name in _OF_SETTINGS}


def broker_value(settings: GroupSettings, name: str) -> int:
    """The broker's own. `name`: of `KEYS`' values."""
    value: int = getattr(settings, _OF_BROKER[name])
    return value


def check(values: Mapping[str, str | None], settings: GroupSettings) -> dict[str, int]:
    """The values of the configurations of one group. Raises `KafkaError` (INVALID_CONFIG) in Kafka's words
    (GroupConfig.validate, 4.3)."""
    for key in values:
        if key not in KEYS:
            raise _invalid(f"Unknown group config name: {key}")
    found = {key: _number(key, value) for key, value in values.items()}
    for key, name in KEYS.items():
        value = found.get(key, broker_value(settings, name))
        least, most = (getattr(settings, f"group_consumer_{bound}_{name}") for bound in ("min", "max"))
        broker = f"{name.replace('_', '.')}"
        if key in found and value < least:
            raise _invalid(f"{key} must be greater than or equal to group.consumer.min.{broker}")
        if key in found and value > most:
            raise _invalid(f"{key} must be less than or equal to group.consumer.max.{broker}")
    session, heartbeat = (
        found.get(_OF_SETTINGS[name], broker_value(settings, name)) for name in (SESSION, HEARTBEAT)
    )
    if session <= heartbeat:
        raise _invalid(f"{_OF_SETTINGS[SESSION]} must be greater than {_OF_SETTINGS[HEARTBEAT]}")
    return found


def _number(key: str, value: str | None) -> int:
    try:
        return int((value or "").strip())
    except ValueError:
        raise _invalid(f"Invalid value {value} for configuration {key}: Not a number of type INT") from None


def _invalid(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_CONFIG, text)
