"""A topic of dead letters: records that could not be processed, with the reason in headers, and the way
back."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any, NamedTuple

from ringleader.clients.fetch.model import Record
from ringleader.clients.process.policies import DeadLetter, FailedRecord
from ringleader.clients.producer import Producer, SyncProducer
from ringleader.protocol.records import Headers

PREFIX = "dead-letter."
"""Begins the names of the headers that a dead letter has beside its own."""
TEXT_MAX_LENGTH = 1_000
"""Characters of an exception's text that a header keeps."""


def dead_letters(producer: Producer | SyncProducer, topic: str) -> DeadLetter:
    """A policy that writes the record to that topic: key, value and headers as they came, and headers
    `dead-letter.topic`, `.partition`, `.offset`, `.timestamp-ms`, `.error` (the exception's type),
    `.message` and `.tries`. `ringleader groups redrive` writes them back. The producer has no
    serializers."""

    async def send(failed: FailedRecord) -> None:
        given = [*own_headers(failed.record.headers), *reason(failed, PREFIX)]
        await write(producer, topic, failed, given)

    return DeadLetter(send)


async def write(
    producer: Producer | SyncProducer,
    topic: str,
    failed: FailedRecord,
    headers: list[tuple[str, bytes | None]],
) -> None:
    """Write the record as it came, with these headers. Raises ProduceError."""
    send: Any = producer.send_and_wait
    given = {"key": failed.raw_key, "headers": headers}
    if inspect.iscoroutinefunction(send):
        await send(topic, failed.raw_value, **given)
    else:
        await asyncio.to_thread(send, topic, failed.raw_value, **given)


def own_headers(headers: Headers, prefix: str = PREFIX) -> list[tuple[str, bytes | None]]:
    """A record's headers without those of a dead letter, or of another prefix."""
    return [(name, value) for name, value in headers if not name.startswith(prefix)]


class Origin(NamedTuple):
    """Where a dead letter came from."""

    topic: str
    partition: int
    offset: int


def origin_of(record: Record) -> Origin | None:
    """None if the record is no dead letter."""
    found = {name.removeprefix(PREFIX): value for name, value in record.headers if name.startswith(PREFIX)}
    try:
        values = [(found[name] or b"").decode() for name in Origin._fields]
        return Origin(values[0], int(values[1]), int(values[2])) if values[0] else None
    except (KeyError, ValueError):
        return None


def reason(failed: FailedRecord, prefix: str, **more: int) -> list[tuple[str, bytes | None]]:
    """Headers that say where it came from, and why."""
    record, error = failed.record, failed.error
    fields = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp-ms": record.timestamp_ms,
        "error": f"{type(error).__module__}.{type(error).__qualname__}",
        "message": str(error)[:TEXT_MAX_LENGTH],
        "tries": failed.tries,
        **more,
    }
    return [(prefix + name, str(value).encode(errors="replace")) for name, value in fields.items()]
