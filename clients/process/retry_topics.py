"""Topics in which failed records wait to be tried again: those behind them go on meanwhile."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from threading import TIMEOUT_MAX

from ringleader.clients.checks import check, wire_text
from ringleader.clients.fetch.model import Record
from ringleader.clients.process.dead_letters import own_headers, reason, write
from ringleader.clients.process.policies import DeadLetter, FailedRecord, RetryTopics, Skip, Stop
from ringleader.clients.producer import Producer, SyncProducer
from ringleader.protocol.records import Headers

PREFIX = "retry."
"""Begins the names of the headers that a record in a retry topic has beside its own."""


def retry_topics(
    producer: Producer | SyncProducer,
    topic: str,
    *,
    delays_s: Sequence[float] = (10, 60, 600),
    then: Stop | Skip | DeadLetter | None = None,
) -> RetryTopics:
    """A policy that writes the record to a topic of its next delay, named `topic`, a dot, the delay and "s"
    (`orders.retry.10s`): key, value and headers as they came, and headers `retry.topic`, `.partition`,
    `.offset`, `.timestamp-ms` of the record as it first was, `.error`, `.message`, `.tries`, `.attempt` (from
    1) and `.due-ms` (Unix time). After the last delay `then` holds, without it `Stop()`. The producer has no
    serializers.

    The consumer reads the `topics` of the policy, too, with `auto_offset_reset="earliest"`: `process` leaves
    each of their records where it is until it is due, and gives it to the same handler. Raises ValueError.
    """
    wire_text("topic", topic)
    check("delays_s", delays_s, Sequence[float], "retry_topics()")
    if not delays_s:
        raise ValueError("retry_topics(): delays_s has at least one delay")
    names = [f"{topic}.{_shown(delay_s)}s" for delay_s in delays_s]

    async def put_off(failed: FailedRecord) -> bool:
        before = attempt_of(failed.record) if failed.record.topic in names else 0
        if before >= len(names):
            return False
        due_ms = int((time.time() + delays_s[before]) * 1000)
        was = as_it_was(failed) if before else failed
        more = {"attempt": before + 1, "due-ms": due_ms}
        headers = [*own_headers(was.record.headers, PREFIX), *reason(was, PREFIX, **more)]
        await write(producer, names[before], was, headers)
        return True

    return RetryTopics(tuple(dict.fromkeys(names)), put_off, then or Stop())


def wait_s(headers: Headers) -> float:
    """Seconds until a record with these headers is due; 0 or less: it is."""
    return _number(headers, "due-ms") / 1000 - time.time()


def attempt_of(record: Record) -> int:
    """The number of its attempt; 0 without one."""
    return _number(record.headers, "attempt")


def first_record(record: Record) -> Record:
    """A record of a retry topic with the place and time of the first one. The headers stay."""
    topic = _header(record.headers, "topic")
    if topic is None:
        return record
    place = topic, _number(record.headers, "partition"), _number(record.headers, "offset")
    at_ms = _number(record.headers, "timestamp-ms")
    return Record(*place, at_ms, record.timestamp_type, record.key, record.value, record.headers)


def as_it_was(failed: FailedRecord) -> FailedRecord:
    """A failed record of a retry topic, with the place, time and headers of the first one, and the tries
    together."""
    record = first_record(failed.record)
    tries = failed.tries + _number(record.headers, "tries")
    return replace(failed, record=record._replace(headers=own_headers(record.headers, PREFIX)), tries=tries)


def _header(headers: Headers, name: str) -> str | None:
    found = next((value for key, value in headers if key == PREFIX + name), None)
    return None if found is None else found.decode(errors="replace")


def _number(headers: Headers, name: str) -> int:
    try:
        return int(_header(headers, name) or 0)
    except ValueError:
        return 0


def _shown(delay_s: float) -> str:
    if not 0 < delay_s <= TIMEOUT_MAX:
        raise ValueError(f"retry_topics(): a delay is above 0 seconds, not {delay_s!r}")
    return str(int(delay_s)) if delay_s == int(delay_s) else repr(delay_s)
