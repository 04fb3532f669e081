"""How ``ringleader consume`` prints records: a line to read, the value, or JSON that ``produce`` takes."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from ringleader.clients.fetch.model import Record

Writer = Callable[[Record], bytes]
"""The bytes that are printed for a record."""

_DIM, _BOLD, _PLAIN = "\x1b[2m", "\x1b[1m", "\x1b[0m"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Control characters would move the cursor, or worse; line ends would look like records.
_VISIBLE = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160))}
_VISIBLE |= {9: "\\t", 10: "\\n", 13: "\\r", 0x2028: "\\u2028", 0x2029: "\\u2029"}
SHOWN_BYTES = 64


def raw(record: Record) -> bytes:
    """The value, and a line end."""
    value: bytes = record.value or b""
    return value + b"\n"


def pretty(colour: bool) -> Writer:
    """``orders-0@12  2026-01-31T12:00:00.123Z  key: value  (header=value)``."""
    dim, bold, plain = (_DIM, _BOLD, _PLAIN) if colour else ("", "", "")

    def write(record: Record) -> bytes:
        key = "" if record.key is None else f"{bold}{_shown(record.key)}{plain}: "
        headers = ""
        if record.headers:
            shown = ", ".join(f"{name.translate(_VISIBLE)}={_shown(value)}" for name, value in record.headers)
            headers = f"  {dim}({shown}){plain}"
        place = f"{dim}{record.topic}-{record.partition}@{record.offset}  {_time(record.timestamp_ms)}{plain}"
        return f"{place}  {key}{_shown(record.value)}{headers}\n".encode()

    return write


def as_json(record: Record) -> bytes:
    """One object a line. Bytes that are not text are under ``key_base64``, ``value_base64``,
    ``headers_base64``."""
    document: dict[str, Any] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "timestamp_ms": record.timestamp_ms,
    }
    if record.timestamp_ms < 0:
        del document["timestamp_ms"]
    _put(document, "key", record.key)
    _put(document, "value", record.value)
    if record.headers:
        texts = [(name, _text(value)) for name, value in record.headers]
        if [text is None for _, text in texts] == [value is None for _, value in record.headers]:
            document["headers"] = _headers(texts)
        else:
            document["headers_base64"] = _headers([(name, _base64(value)) for name, value in record.headers])
    return json.dumps(document, ensure_ascii=False).encode() + b"\n"


def _headers(pairs: list[tuple[str, str | None]]) -> Any:
    """An object, unless a name comes more than once."""
    found = dict(pairs)
    return found if len(found) == len(pairs) else pairs


def _put(document: dict[str, Any], name: str, data: bytes | None) -> None:
    text = _text(data)
    if text is None and data is not None:
        document[f"{name}_base64"] = _base64(data)
    else:
        document[name] = text


def _text(data: bytes | None) -> str | None:
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _base64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _shown(data: bytes | None) -> str:
    if data is None:
        return "(null)"
    text = _text(data)
    if text is not None:
        return text.translate(_VISIBLE)
    more = "..." if len(data) > SHOWN_BYTES else ""
    return f"({len(data)} bytes: {data[:SHOWN_BYTES].hex()}{more})"


def _time(timestamp_ms: int) -> str:
    try:
        found = _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return f"{timestamp_ms} ms"
    return "no time" if timestamp_ms < 0 else f"{found:%Y-%m-%dT%H:%M:%S}.{timestamp_ms % 1000:03}Z"
