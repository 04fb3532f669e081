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
    write: Any = producer.send_and_wait

    async def send(failed: FailedRecord) -> None:
        given = {"key": failed.raw_key, "headers": [*own_headers(failed.record.headers), *_reason(failed)]}
        if inspect.iscoroutinefunction(write):
            await write(topic, failed.raw_value, **given)
        else:
            await asyncio.to_thread(write, topic, failed.raw_value, **given)

    return DeadLetter(send)


def own_headers(headers: Headers) -> list[tuple[str, bytes | None]]:
    """A record's headers without those of a dead letter."""
    return [(name, value) for name, value in headers if not name.startswith(PREFIX)]


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


def _reason(failed: FailedRecord) -> list[tuple[str, bytes | None]]:
    record, error = failed.record, failed.error
    said = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp-ms": record.timestamp_ms,
        "error": f"{type(error).__module__}.{type(error).__qualname__}",
        "message": str(error)[:TEXT_MAX_LENGTH],
        "tries": failed.tries,
    }
    return [(PREFIX + name, str(value).encode(errors="replace")) for name, value in said.items()]
