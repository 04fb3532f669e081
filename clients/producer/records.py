"""The arguments of `send` become a record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from ringleader.clients.checks import MAX_INT32, MAX_INT64, in_range, utf8_size, wire_text
from ringleader.clients.produce.errors import SerializationError
from ringleader.clients.produce.model import ProducerSettings, Serializer
from ringleader.clients.produce.rows import Row
from ringleader.clients.with_context import SerializationContext, WithContext
from ringleader.protocol.records import Headers

Origin = Literal["key", "value"]


def row_of(
    settings: ProducerSettings,
    topic: str,
    value: Any,
    key: Any,
    partition: int | None,
    headers: Headers,
    timestamp_ms: int,
) -> Row:
    """With serializers that are plain functions. Raises SerializationError, TypeError for what is no bytes
    and has no serializer, ValueError."""
    _check(topic, partition, timestamp_ms)
    own = _checked(headers) if headers else ()
    return Row(
        timestamp_ms=timestamp_ms,
        key=_made(topic, "key", settings.key_serializer, key),
        value=_made(topic, "value", settings.value_serializer, value),
        headers=own,
        partition=partition,
    )


async def row_with_context(
    settings: ProducerSettings,
    topic: str,
    value: Any,
    key: Any,
    partition: int | None,
    headers: Headers,
    timestamp_ms: int,
) -> Row:
    """As `row_of`, with serializers of both kinds; waits if one does."""
    _check(topic, partition, timestamp_ms)
    own = list(_checked(headers)) if headers else []
    made_key = await _made_with_context(SerializationContext(topic, "key", own), settings.key_serializer, key)
    made_value = await _made_with_context(
        SerializationContext(topic, "value", own), settings.value_serializer, value
    )
    return Row(
        timestamp_ms=timestamp_ms,
        key=made_key,
        value=made_value,
        headers=_checked(own) if own else (),
        partition=partition,
    )


def _check(topic: str, partition: int | None, timestamp_ms: int) -> None:
    wire_text("the name of a topic", topic)
    if partition is not None:
        in_range("a partition", partition, 0, MAX_INT32)
    in_range("timestamp_ms", timestamp_ms, 0, MAX_INT64)


def _made(topic: str, origin: Origin, serializer: Any, given: Any) -> bytes | None:
    """`serializer`: a plain function, or None."""
    if given is None:
        return None
    if serializer is not None:
        try:
            given = serializer(given)
        except Exception as error:
            raise _refused(topic, origin, error) from error
    return _bytes(origin, given, is_made=serializer is not None)


async def _made_with_context(
    context: SerializationContext, serializer: Serializer | None, given: Any
) -> bytes | None:
    if given is None or not isinstance(serializer, WithContext):
        return _made(context.topic, context.field, serializer, given)
    try:
        given = await serializer.made(given, context)
    except Exception as error:
        raise _refused(context.topic, context.field, error) from error
    return _bytes(context.field, given, is_made=True)


def _refused(topic: str, origin: Origin, error: Exception) -> SerializationError:
    return SerializationError(f"{origin}_serializer raised {error!r} for a record of topic {topic}", origin)


def _bytes(origin: Origin, given: Any, *, is_made: bool) -> bytes:
    if isinstance(given, bytearray | memoryview):
        return bytes(given)
    if not isinstance(given, bytes):
        made = f"{origin}_serializer made" if is_made else f"the {origin} of a record is"
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
        utf8_size("the name of a header", one[0])
    return tuple((name, value) for name, value in headers)
