"""The arguments of all consumers: settings, and deserializers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ringleader.clients.checks import check
from ringleader.clients.fetch.errors import PartitionError
from ringleader.clients.fetch.model import Batch, ConsumerSettings
from ringleader.clients.model import TopicPartition


def consumer_settings(
    call: str, settings: ConsumerSettings | None, options: Mapping[str, Any]
) -> tuple[ConsumerSettings, dict[str, Any]]:
    """The settings, and those of the options that are no fields of them. `call` is what the user wrote."""
    check("settings", settings, ConsumerSettings | None, call)
    own = {name: value for name, value in options.items() if name in ConsumerSettings.__slots__}
    if settings is not None and own:
        raise ValueError(f"{call}: either settings or {', '.join(own)}")
    rest = {name: value for name, value in options.items() if name not in own}
    return ConsumerSettings(**own) if settings is None else settings, rest


def deserialized(
    batches: list[Batch], settings: ConsumerSettings
) -> tuple[list[Batch], list[tuple[Batch, PartitionError]]]:
    """The batches as the deserializers made them, and what was refused of them: nothing behind that is handed
    out."""
    key, value = settings.key_deserializer, settings.value_deserializer
    if key is None and value is None:
        return batches, []
    refused: dict[TopicPartition, tuple[Batch, PartitionError]] = {}
    read = []
    for batch in batches:
        if batch.topic_partition in refused:
            continue
        if (error := batch.deserialize(key, value)) is not None:
            refused[batch.topic_partition] = batch, error
        if len(batch):
            read.append(batch)
    return read, list(refused.values())
