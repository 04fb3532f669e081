"""Users, ACLs and quotas as records of a compacted topic: the last one of each key counts.

Key: `SECTION/KEY`. Value: JSON of a format number and the entry; none: the entry is gone. One more, `secret`,
is what all nodes make up answers with.
"""

from __future__ import annotations

import json
from typing import Any, Final, NamedTuple

from ringleader.coordinator.security.store import SECRET_BYTES, SECTIONS, Section
from ringleader.protocol import json_text

FORMAT = 1
"""Raise it when an older version of this program must not go on without understanding a record."""
SECRET_KEY: Final = b"secret"

Record = tuple[bytes, bytes | None]


class Entry(NamedTuple):
    """An entry of a section, as a record has it. `value`: None: it is deleted."""

    section: Section
    key: str
    value: Any


def record_of(section: Section, key: str, value: Any) -> Record:
    """An entry as a record; None: its end."""
    return f"{section}/{key}".encode(errors="surrogateescape"), _kept(value)


def secret_record(secret: bytes) -> Record:
    """The secret as a record."""
    return SECRET_KEY, _kept(secret.hex())


def entry_of(key: bytes, value: bytes | None) -> Entry | bytes | None:
    """The entry of a record, or the secret. None: the deletion of a secret.

    Raises ValueError with half a sentence, which shows no value: not a record of ours, or a newer one's.
    """
    if key == SECRET_KEY:
        return None if value is None else _secret(_read(key, value))
    section, slash, name = key.decode(errors="surrogateescape").partition("/")
    if not slash or section not in SECTIONS:
        raise ValueError(f"{_record(key)} is nothing that this version knows")
    return Entry(section, name, None if value is None else _read(key, value))


def _kept(value: Any) -> bytes | None:
    return None if value is None else json.dumps({"format": FORMAT, "value": value}).encode()


def _read(key: bytes, data: bytes) -> Any:
    try:
        document = json_text.loads(data)
        version, value = document["format"], document.get("value")
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError(f"{_record(key)} cannot be read") from None
    if version != FORMAT:
        raise ValueError(
            f"{_record(key)} has format {version!r:.20}, and this version knows {FORMAT}: run that version "
            "on all nodes, or a newer one"
        )
    if value is None:
        raise ValueError(f"{_record(key)} has no value")
    return value


def _secret(value: Any) -> bytes:
    try:
        secret = bytes.fromhex(value)
    except (ValueError, TypeError):
        secret = b""
    if len(secret) != SECRET_BYTES:
        raise ValueError("the secret cannot be read")
    return secret


def _record(key: bytes) -> str:
    return f"the record {key[:100].decode(errors='backslashreplace')!r}"
