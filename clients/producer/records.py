"""The arguments of `send` become a record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from ringleader.clients.checks import MAX_INT32, MAX_INT64, in_range, wire_text
from ringleader.clients.produce.errors import SerializationError
from ringleader.clients.produce.model import ProducerSettings, Serializer
from ringleader.clients.produce.rows import Row
from ringleader.protocol.records import Headers


def row_of(
    settings: ProducerSettings,
    topic: str,
    value: Any,
    key: Any,
    partition: int | None,
    headers: Headers,
    timestamp_ms: int,
) -> Row:
    """Raises SerializationError, TypeError for what is no bytes and has no serializer, ValueError."""
    wire_text("the name of a topic", topic)
    if partition is not None:
        in_range("a partition", partition, 0, MAX_INT32)
    in_range("timestamp_ms", timestamp_ms, 0, MAX_INT64)
    return Row(
        timestamp_ms=timestamp_ms,
        key=_bytes(topic, "key", settings.key_serializer, key),
        value=_bytes(topic, "value", settings.value_serializer, value),
        headers=_checked(headers) if headers else (),
        partition=partition,
    )


def _bytes(
    topic: str, origin: Literal["key", "value"], serializer: Serializer | None, given: Any
) -> bytes | None:
    if given is None:
        return None
    if serializer is not None:
        try:
            given = serializer(given)
        except Exception as error:
            text = f"{origin}_serializer raised {error!r} for a record of topic {topic}"
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
