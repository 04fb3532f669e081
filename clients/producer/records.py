"""The arguments of `send` become a record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ringleader.clients.checks import MAX_INT32, MAX_INT64, in_range, wire_text
from ringleader.clients.produce.errors import SerializationError
from ringleader.clients.produce.model import ProducerSettings, Serializer
from ringleader.clients.produce.rows import Row
from ringleader.clients.with_context import SerializationContext, WithContext
from ringleader.protocol.records import Headers


async def row_of(
    settings: ProducerSettings,
    topic: str,
    value: Any,
    key: Any,
    partition: int | None,
    headers: Headers,
    timestamp_ms: int,
) -> Row:
    """Waits only if a serializer does. Raises SerializationError, TypeError for what is no bytes and has no
    serializer, ValueError."""
    wire_text("the name of a topic", topic)
    if partition is not None:
        in_range("a partition", partition, 0, MAX_INT32)
    in_range("timestamp_ms", timestamp_ms, 0, MAX_INT64)
    own = list(_checked(headers)) if headers else []
    return Row(
        timestamp_ms=timestamp_ms,
        key=await _bytes(SerializationContext(topic, "key", own), settings.key_serializer, key),
        value=await _bytes(SerializationContext(topic, "value", own), settings.value_serializer, value),
        headers=_checked(own) if own else (),
        partition=partition,
    )


async def _bytes(context: SerializationContext, serializer: Serializer | None, given: Any) -> bytes | None:
    if given is None:
        return None
    origin = context.field
    if serializer is not None:
        try:
            if isinstance(serializer, WithContext):
                given = await serializer.made(given, context)
            else:
                given = serializer(given)
        except Exception as error:
            text = f"{origin}_serializer raised {error!r} for a record of topic {context.topic}"
            raise SerializationError(text, origin) from error
    if isinstance(given, bytearray | memoryview):
        return bytes(given)
    if not isinstance(given, bytes):
        made = f"{origin}_serializer made" if serializer is not None else f"the {origin} of a record is"
        raise TypeError(
            f"{made} {type(given).__name__}, not bytes: give {origin}_serializer what makes bytes"
        )
    return given


def _checked(headers: Any) -> Headers:
    pairs = isinstance(headers, Sequence) and not isinstance(headers, str | bytes)
    for one in headers if pairs else [headers]:
        right = isinstance(one, tuple | list) and len(one) == 2 and isinstance(one[0], str)
        if not right or not isinstance(one[1], bytes | None):
            raise ValueError(f'headers are [("name", b"value"), ...], not {one!r}')
    return tuple((name, value) for name, value in headers)
