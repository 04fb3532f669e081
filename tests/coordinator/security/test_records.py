"""Users, ACLs and quotas as records of a topic."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ringleader.coordinator.security.records import Entry, entry_of, record_of, secret_record
from ringleader.coordinator.security.store import SECRET_BYTES

SECRET = bytes(range(SECRET_BYTES))


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("users", "alice", {"SCRAM-SHA-512": {"iterations": 4096}}),
        ("acls", '["TOPIC", "LITERAL", "a/b", "User:ä", "*", "READ", "ALLOW"]', {}),
        ("quotas", "/", {"rate": 0.5}),
        ("users", "not\udcffutf-8", 0),
        ("users", "", False),
    ],
)
def test_what_is_kept_is_what_is_read(section: Any, key: str, value: Any) -> None:
    assert entry_of(*record_of(section, key, value)) == Entry(section, key, value)
    removed_key, removed = record_of(section, key, None)
    assert removed is None
    assert entry_of(removed_key, None) == Entry(section, key, None)


def test_the_secret_is_no_entry_and_its_end_says_nothing() -> None:
    key, value = secret_record(SECRET)
    assert entry_of(key, value) == SECRET
    assert entry_of(key, None) is None


WRONG: list[tuple[bytes, bytes | None]] = [
    (b"", b"{}"),
    (b"users", b'{"format": 1, "value": 1}'),
    (b"tokens/alice", b'{"format": 1, "value": 1}'),
    (b"tokens/alice", None),
    (b"\xff\xfe", None),
    (b"users/alice", b""),
    (b"users/alice", b"hunter2"),
    (b"users/alice", b"\xff{"),
    (b"users/alice", b"[1, 2]"),
    (b"users/alice", b'"hunter2"'),
    (b"users/alice", b"null"),
    (b"users/alice", b'{"value": "hunter2"}'),
    (b"users/alice", b'{"format": 1}'),
    (b"users/alice", b'{"format": 1, "value": null}'),
    (b"users/alice", b'{"format": "1", "value": "hunter2"}'),
    (b"users/alice", b'{"format": 2, "what": "hunter2"}'),
    (b"users/alice", b'{"format": {"format": "%s"}, "value": 1}' % (b"x" * 1_000)),
    (b"users/alice", b"[" * 100_000),
    (b"users/" + b"a" * 100_000, b"{}"),
    (b"secret", b'{"format": 1, "value": "00"}'),
    (b"secret", b'{"format": 1, "value": "hunter2"}'),
    (b"secret", b'{"format": 1, "value": 7}'),
    (b"secret", json.dumps({"format": 2, "value": SECRET.hex()}).encode()),
]


@pytest.mark.parametrize(("key", "value"), WRONG)
def test_what_cannot_be_read_is_said_in_a_few_words_that_show_no_value(
    key: bytes, value: bytes | None
) -> None:
    with pytest.raises(ValueError, match=r"cannot be read|knows|has no value") as wrong:
        entry_of(key, value)
    text = str(wrong.value)
    assert len(text) < 300
    assert "hunter2" not in text
    assert SECRET.hex() not in text
    assert "\n" not in text


def test_a_newer_format_is_named() -> None:
    with pytest.raises(ValueError, match="has format 2, and this version knows 1: run that version"):
        entry_of(b"users/alice", b'{"format": 2}')
