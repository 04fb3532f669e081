"""Configurations of single groups (resource type 32) in DescribeConfigs, AlterConfigs and
IncrementalAlterConfigs. They are kept with users, ACLs and quotas: of several nodes all have the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ringleader.coordinator.groups import configs as group_configs
from ringleader.coordinator.server.call import Call
from ringleader.coordinator.server.handlers.configs import (
    ConfigSource,
    Entry,
    Synonym,
    broker_source,
    configs_in_words,
)
from ringleader.coordinator.server.services import Services
from ringleader.coordinator.topics.configs import ConfigType
from ringleader.protocol.errors import ErrorCode, KafkaError

Change = Callable[[dict[str, str], Sequence[Any]], Mapping[str, str | None]]
"""All that is set, after a request's changes to what was. Raises KafkaError."""


def group_entries(services: Services, group_id: str) -> list[Entry]:
    """All keys of a group, whether it exists or not. Raises KafkaError."""
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Group name must not be empty")
    values = services.runtime.configs.of(group_id)
    return [_entry(services, key, name, values) for key, name in group_configs.KEYS.items()]


def _entry(services: Services, key: str, name: str, values: group_configs.Values) -> Entry:
    of_broker = f"group.consumer.{name.replace('_', '.')}"
    default = str(group_configs.broker_value(services.settings, name))
    source = broker_source(of_broker, services)
    synonyms = [Synonym(of_broker, default, source)]
    if key in values:
        source = ConfigSource.GROUP
        synonyms.insert(0, Synonym(key, str(values[key]), source))
    return Entry(
        name=key,
        value=str(values.get(key, default)),
        config_source=source,
        synonyms=synonyms,
        config_type=ConfigType.INT,
        documentation=f"In place of the broker's {of_broker}, for this group.",
    )


async def alter_group(
    services: Services,
    call: Call,
    group_id: str,
    changes: Sequence[Any],
    change: Change,
    *,
    validate_only: bool,
) -> None:
    """Change the configurations of a group, which need not exist. Raises KafkaError."""
    if not group_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Default group resources are not allowed.")
    if services.security is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Configurations of groups are not kept here.")
    before = {key: str(value) for key, value in services.runtime.configs.of(group_id).items()}
    after = group_configs.check(change(before, changes), services.settings)
    if validate_only:
        return
    await services.security.store.change("groups", {group_id: after or None})
    detail = ", ".join(configs_in_words({key: str(value) for key, value in after.items()}))
    services.changed(call, "group configuration changed", group_id, detail or "all as by default")
