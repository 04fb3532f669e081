"""The arguments of all consumers: settings, and deserializers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Literal

from ringleader.clients.checks import check
from ringleader.clients.fetch.errors import CorruptRecordError, PartitionError
from ringleader.clients.fetch.model import Batch, ConsumerSettings
from ringleader.clients.model import Deserializer, TopicPartition
from ringleader.clients.with_context import SerializationContext, WithContext

Deserializers = tuple[Deserializer | None, Deserializer | None]
"""Of keys, and of values."""
Refused = list[tuple[Batch, PartitionError]]
"""Batches that end early, and the reasons."""


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
    batches: list[Batch], settings: ConsumerSettings, waited: Mapping[Batch, Deserializers] | None = None
) -> tuple[list[Batch], Refused]:
    """The batches as the deserializers made them, and what was refused of them: nothing behind that is handed
    out. `waited`: the deserializers of each batch, if some wait."""
    both = settings.key_deserializer, settings.value_deserializer
    if both == (None, None):
        return batches, []
    refused: dict[TopicPartition, tuple[Batch, PartitionError]] = {}
    read = []
    for batch in batches:
        if batch.topic_partition in refused:
            continue
        if (error := batch.deserialize(*(both if waited is None else waited[batch]))) is not None:
            refused[batch.topic_partition] = batch, error
        if len(batch):
            read.append(batch)
    return read, list(refused.values())


async def waited_for(batches: list[Batch], settings: ConsumerSettings) -> dict[Batch, Deserializers]:
    """For each batch deserializers that do not wait any more, as those that do have been called: for all
    batches at the same time."""

    async def wait(batch: Batch) -> Deserializers:
        try:
            raw = list(batch.raw)
        except CorruptRecordError:
            return settings.key_deserializer, settings.value_deserializer  # nothing for them to read
        key, count = await _waited(settings.key_deserializer, "key", batch, [key for key, _ in raw])
        values = [value for _, value in raw[:count]]
        return key, (await _waited(settings.value_deserializer, "value", batch, values))[0]

    async with asyncio.TaskGroup() as group:
        tasks = [(batch, group.create_task(wait(batch))) for batch in batches]
    return {batch: task.result() for batch, task in tasks}


async def _waited(
    one: Deserializer | None, field: Literal["key", "value"], batch: Batch, column: list[bytes | None]
) -> tuple[Deserializer | None, int]:
    """It, or a function that gives what it has made of the column, call by call, and the number of rows up to
    the first that it refuses."""
    if not isinstance(one, WithContext) or not one.awaits:
        return one, len(column)
    made: list[Any] = []
    refused: list[Exception] = []
    for data, headers in zip(column, batch.headers, strict=False):
        try:
            context = SerializationContext(batch.topic, field, list(headers))
            made.append(None if data is None else await one.made(data, context))
        except Exception as error:
            refused.append(error)
            break
    found = iter([value for value, data in zip(made, column, strict=False) if data is not None])

    def give(_: bytes) -> Any:
        for value in found:
            return value
        raise refused[0]

    return give, len(made)
