"""The input of ``ringleader produce``: lines, or JSON objects one a line, as records."""

from __future__ import annotations

import base64
import binascii
import json
import os
import select
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from ringleader.clients.produce.rows import Row
from ringleader.protocol.wire import INT32_MAX, INT64_MAX

READ_BYTES = 1024 * 1024
PASSED_OVER = ("topic", "offset")
"""Fields of ``ringleader consume --format json`` that a record which is written again cannot keep."""
NAMES = ("key", "value", "headers", "partition", "timestamp_ms")
BASE64 = "_base64"

Headers = tuple[tuple[str, bytes | None], ...]
Reader = Callable[[bytes], Row | None]
"""The record of a line; None for a line that is none. Raises ValueError with what is wrong."""


def lines(file: int, pause_s: float, limit_bytes: int) -> Iterator[list[bytes]]:
    """Lines of a file descriptor as they come, without their ends; [] each time that none has come for
    ``pause_s`` after some had. Raises ValueError for a line of more than ``limit_bytes``, OSError."""
    rest, waited = b"", True
    while True:
        if not select.select([file], [], [], None if waited else pause_s)[0]:
            waited = True
            yield []
            continue
        part = os.read(file, READ_BYTES)
        if not part:
            if rest:
                yield [rest.removesuffix(b"\r")]
            return
        *whole, rest = (rest + part).split(b"\n")
        if whole:
            waited = False
            yield [line.removesuffix(b"\r") for line in whole]
        if len(rest) > limit_bytes:
            raise ValueError(f"it is longer than {limit_bytes} bytes (max.request.size)")


def line_reader(
    key: bytes | None, separator: bytes | None, headers: Headers, partition: int | None
) -> Reader:
    """Each line is a value, or key and value with a separator between them."""

    def read(line: bytes) -> Row:
        own, value = key, line
        if separator is not None:
            own, found, value = line.partition(separator)
            if not found:
                raise ValueError(
                    f"there is no {separator.decode(errors='replace')!r} (--key-separator) in it"
                )
        return Row(key=own, value=value, headers=headers, partition=partition)

    return read


def json_reader(headers: Headers, partition: int | None) -> Reader:
    """Each line is a JSON object; the options' headers come after its own, its partition before theirs."""

    def read(line: bytes) -> Row | None:
        if not line.strip():
            return None
        try:
            document = json.loads(line, parse_constant=_no_constant)
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise ValueError(f"it is not JSON ({error})") from None
        except RecursionError:
            raise ValueError("it is JSON too deep to be read") from None
        if not isinstance(document, dict):
            raise ValueError('it is not a JSON object, as in {"key": "k", "value": "v"}')
        row = _row(document)
        row.headers = (*row.headers, *headers)
        if row.partition is None:
            row.partition = partition
        return row

    return read


def _row(document: dict[str, Any]) -> Row:
    known = {*NAMES, *PASSED_OVER, *(f"{name}{BASE64}" for name in ("key", "value", "headers"))}
    if strange := sorted(set(document) - known):
        raise ValueError(f"{strange[0]!r} has no meaning; there are {', '.join(NAMES)}")
    if "value" not in document and "value" + BASE64 not in document:
        raise ValueError("it has no value (a record that deletes its key has the value null)")
    return Row(
        timestamp_ms=_number(document, "timestamp_ms", INT64_MAX, -1),
        key=_either(document, "key"),
        value=_either(document, "value"),
        headers=_headers(document),
        partition=None if document.get("partition") is None else _number(document, "partition", INT32_MAX, 0),
    )


def _number(document: dict[str, Any], name: str, most: int, default: int) -> int:
    value = document.get(name)
    if value is None:
        return default
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f"{name} is a whole number from 0 on, not {value!r}")
    return value


def _either(document: dict[str, Any], name: str) -> bytes | None:
    """``name`` as text or JSON, or ``name_base64``."""
    if name + BASE64 not in document:
        return as_bytes(document.get(name), name)
    if name in document:
        raise ValueError(f"it has {name} and {name}{BASE64}; a record has one")
    return _binary(document[name + BASE64], name + BASE64)


def _headers(document: dict[str, Any]) -> Headers:
    """An object, or a list of [name, value] where a name comes more than once."""
    name = "headers" + BASE64 if "headers" + BASE64 in document else "headers"
    decode = _binary if name.endswith(BASE64) else as_bytes
    given = document.get(name) or {}
    pairs = list(given.items()) if isinstance(given, dict) else given
    if not isinstance(pairs, list) or not all(_is_pair(pair) for pair in pairs):
        raise ValueError(f"{name} is an object, or a list of [name, value]")
    for header, _ in pairs:
        as_bytes(header, f"the name {header!r}")
    return tuple((header, decode(value, f"header {header!r}")) for header, value in pairs)


def _is_pair(pair: object) -> bool:
    return isinstance(pair, list | tuple) and len(pair) == 2 and isinstance(pair[0], str)


def as_bytes(value: Any, name: str) -> bytes | None:
    """Text as it is, null as none, anything else as compact JSON."""
    if value is None:
        return None
    if not isinstance(value, str):
        value = json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    try:
        return bytes(value.encode())
    except UnicodeEncodeError:
        raise ValueError(f"{name} has half of a surrogate pair, which is no text") from None


def _binary(value: Any, name: str) -> bytes | None:
    if value is None:
        return None
    try:
        return base64.b64decode(value, validate=True)
    except (TypeError, ValueError, binascii.Error):
        raise ValueError(f"{name} is not base64") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
