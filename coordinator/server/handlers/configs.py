"""Configurations as DescribeConfigs and CreateTopics show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum

from ringleader.coordinator.config import options
from ringleader.coordinator.server.services import LocalServices, Services
from ringleader.coordinator.topics.configs import KEYS, ConfigKey, ConfigType
from ringleader.protocol import messages as kafka

Entry = kafka.DescribeConfigsResponseDescribeConfigsResourceResult
Synonym = kafka.DescribeConfigsResponseDescribeConfigsSynonym


class ConfigSource(IntEnum):
    """Where a value comes from (KIP-226)."""

    TOPIC = 1
    STATIC_BROKER = 4
    DEFAULT = 5
    GROUP = 8


_BROKER_TYPES = {bool: ConfigType.BOOLEAN, int: ConfigType.LONG, str: ConfigType.STRING}


def topic_entries(configs: Mapping[str, str], services: LocalServices) -> list[Entry]:
    """All keys of a topic with these configurations, with synonyms and documentation."""
    return [_topic_entry(key, configs, services) for key in KEYS.values()]


def _topic_entry(key: ConfigKey, configs: Mapping[str, str], services: LocalServices) -> Entry:
    default = key.default(services.topics.settings)
    of_broker = broker_source(key.broker_key, services)
    synonyms = []
    if key.name in configs:
        synonyms.append(Synonym(key.name, configs[key.name], ConfigSource.TOPIC))
    if key.broker_key is not None:
        synonyms.append(Synonym(key.broker_key, default, of_broker))
    return Entry(
        name=key.name,
        value=configs.get(key.name, default),
        config_source=ConfigSource.TOPIC if key.name in configs else of_broker,
        synonyms=synonyms,
        config_type=key.type,
        documentation=key.documentation,
    )


def broker_source(key: str | None, services: Services) -> ConfigSource:
    """Where the value of a setting of the node comes from."""
    if key is not None and key.replace(".", "_") in services.settings.model_fields_set:
        return ConfigSource.STATIC_BROKER
    return ConfigSource.DEFAULT


def broker_entries(services: Services) -> list[Entry]:
    """All settings of the node. None can be changed while it runs."""
    entries = []
    for option in options():
        value = _text(getattr(services.settings, option.field))
        source = broker_source(option.key, services)
        entries.append(
            Entry(
                name=option.key,
                value=value,
                read_only=True,
                config_source=source,
                synonyms=[Synonym(option.key, value, source)],
                config_type=_BROKER_TYPES.get(option.kind, ConfigType.STRING),
                documentation=option.description,
            )
        )
    return entries


def configs_in_words(configs: Mapping[str, str | None]) -> list[str]:
    """NAME=VALUE of each, for people."""
    return [f"{name}={value}" for name, value in sorted(configs.items())]


def once_each(
    resources: Sequence[kafka.DescribeConfigsRequestDescribeConfigsResource],
) -> list[kafka.DescribeConfigsRequestDescribeConfigsResource]:
    """Each resource once, where it is first named, as it is named last: all configurations of one are some
    thousand times longer than its name."""
    return list(
        {(resource.resource_type, resource.resource_name): resource for resource in resources}.values()
    )


def shown(
    entries: Sequence[Entry],
    resource: kafka.DescribeConfigsRequestDescribeConfigsResource,
    request: kafka.DescribeConfigsRequest,
) -> list[Entry]:
    """The entries of these that are asked for. An empty list of keys asks for all, too, as in Kafka."""
    wanted = set(resource.configuration_keys or ())
    found = [entry for entry in entries if not wanted or entry.name in wanted]
    for entry in found:
        if not request.include_synonyms:
            entry.synonyms = []
        if not request.include_documentation:
            entry.documentation = None
    return found


def _text(value: object) -> str | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple) and not hasattr(value, "_fields"):
        return ",".join(map(str, value))
    return str(value)
