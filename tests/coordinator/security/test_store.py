"""Where users, ACLs and quotas are kept."""

from __future__ import annotations

import asyncio
import json
import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from ringleader.coordinator.config import Settings
from ringleader.coordinator.node import Node
from ringleader.coordinator.security import store as store_module
from ringleader.coordinator.security.scram import SHA_512
from ringleader.coordinator.security.store import FILE, FileStore
from ringleader.coordinator.serving import StartError
from ringleader.coordinator.topics.disk import DamagedError, SyncError, write_whole
from ringleader.protocol.errors import ErrorCode, KafkaError
from tests.support.registered import ALICE, credential


def opened(path: Path) -> FileStore:
    """A store on this file."""
    store = FileStore(path)
    store.open()
    return store


async def test_what_was_changed_is_there_after_a_start(tmp_path: Path) -> None:
    store = opened(tmp_path / FILE)
    await store.change("users", {"alice": {"salt": "c2FsdA=="}, "bob": 1})
    await store.change("acls", {"alice": [1, 2]})
    await store.change("users", {"bob": None, "nobody": None})
    again = opened(tmp_path / FILE)
    assert again.entries("users") == store.entries("users") == {"alice": {"salt": "c2FsdA=="}}
    assert again.entries("acls") == {"alice": [1, 2]}
    assert again.entries("quotas") == {}
    assert again.secret == store.secret
    assert len(again.secret) == store_module.SECRET_BYTES
    assert opened(tmp_path / "other").secret != store.secret


def test_only_its_owner_reads_the_file(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        opened(tmp_path / FILE)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600


def test_its_secret_is_not_shown(tmp_path: Path) -> None:
    store = opened(tmp_path / FILE)
    assert store.secret.hex() not in repr(store)
    assert repr(store.secret) not in repr(store)


async def test_a_change_is_seen_when_it_is_durable(tmp_path: Path) -> None:
    store = opened(tmp_path / FILE)
    seen: list[tuple[Mapping[str, Any], Any]] = []
    store.observe("users", lambda changed: seen.append((changed, json.loads((tmp_path / FILE).read_text()))))
    changing = asyncio.create_task(store.change("users", {"alice": 1}))
    await asyncio.sleep(0)
    assert store.entries("users") == {}
    changing.cancel()
    await store.close()
    assert store.entries("users") == {"alice": 1}
    [(changed, document)] = seen
    assert changed == {"alice": 1}
    assert document["users"] == {"alice": 1}


async def test_changes_that_come_together_are_one_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = opened(tmp_path / FILE)
    writes: list[Path] = []

    def counted(path: Path, data: bytes) -> None:
        writes.append(path)
        write_whole(path, data)

    monkeypatch.setattr(store_module, "write_whole", counted)
    await asyncio.gather(*(store.change("users", {f"u{number}": number}) for number in range(50)))
    assert len(store.entries("users")) == 50
    assert len(writes) <= 2
    assert opened(tmp_path / FILE).entries("users") == store.entries("users")


async def test_what_is_too_much_is_refused_and_the_rest_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "MAX_BYTES", 1_000)
    store = opened(tmp_path / FILE)
    large, small = await asyncio.gather(
        store.change("users", {"large": "x" * 2_000, "with it": 1}),
        store.change("users", {"small": "x" * 500}),
        return_exceptions=True,
    )
    assert isinstance(large, KafkaError)
    assert large.code == ErrorCode.POLICY_VIOLATION
    assert small is None
    assert set(store.entries("users")) == {"small"}
    again = opened(tmp_path / FILE)
    with pytest.raises(KafkaError, match="1,000 bytes at most"):
        await again.change("acls", {"more": "x" * 500})
    await again.change("users", {"small": "x" * 10})
    await again.change("acls", {"more": "x" * 500})


async def test_of_changes_of_one_entry_at_once_the_last_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "MAX_BYTES", 1_000)
    store = opened(tmp_path / FILE)
    await asyncio.gather(*(store.change("users", {"same": letter * 400}) for letter in "abcd"))
    await asyncio.gather(*(store.change("users", {"same": size * "x"}) for size in (900, 10, 900, 10)))
    assert store.entries("users") == {"same": "x" * 10}
    await store.change("acls", {"more": "x" * 900})
    with pytest.raises(KafkaError, match="1,000 bytes at most"):
        await store.change("acls", {"too much": "x" * 100})


async def test_after_a_failed_sync_nothing_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    failures: list[Exception] = []
    store = FileStore(tmp_path / FILE, failures.append)
    store.open()

    def failed(*_: object, **_more: object) -> None:
        raise SyncError(5, "sync failed: Input/output error")

    with monkeypatch.context() as broken:
        broken.setattr(store_module, "write_whole", failed)
        with pytest.raises(KafkaError, match="sync failed"):
            await store.change("users", {"alice": 1})
    with pytest.raises(KafkaError, match="sync failed"):
        await store.change("users", {"alice": 1})
    assert len(failures) == 1
    assert store.entries("users") == {}


async def test_a_full_disk_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened(tmp_path / FILE)

    def full(*_: object, **_more: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr(store_module, "write_whole", full)
        with pytest.raises(KafkaError, match="No space") as raised:
            await store.change("users", {"alice": 1})
    assert raised.value.code == ErrorCode.KAFKA_STORAGE_ERROR
    assert store.entries("users") == {}
    await store.change("users", {"alice": 1})
    assert store.entries("users") == {"alice": 1}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "7",
        "{}",
        '{"format": 1}',
        '{"format": 1, "secret": "00", "users": {}, "acls": {}, "quotas": {}}',
        '{"format": 1, "secret": "%s", "users": [], "acls": {}, "quotas": {}}' % ("00" * 32),
        '{"format": 1, "secret": "%s", "users": {}, "acls": {}}' % ("00" * 32),
        '{"format": 1, "secret": 7, "users": {}, "acls": {}, "quotas": {}}',
        "[" * 100_000,
    ],
)
def test_a_damaged_file_is_refused_and_left_alone(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(DamagedError, match="put the last copy of it back"):
        opened(tmp_path / FILE)
    assert (tmp_path / FILE).read_text() == text


def test_a_newer_format_is_refused(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"format": 2, "what": "ever"}')
    with pytest.raises(DamagedError, match="has format 2, this ringleader knows 1"):
        opened(tmp_path / FILE)


async def test_a_node_does_not_start_without_its_file(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path, listen="127.0.0.1:0")
    async with Node(settings) as node:
        await node.security.users.change({ALICE: {SHA_512.name: credential(SHA_512)}})
    async with Node(settings) as node:
        assert set(node.security.users.known()) == {ALICE}
    (tmp_path / FILE).rename(tmp_path / "away")
    with pytest.raises(StartError, match=r"security\.json is gone"):
        await Node(settings).start()
    (tmp_path / FILE).write_text("no JSON")
    with pytest.raises(StartError, match=r"security\.json cannot be read"):
        await Node(settings).start()


def test_a_store_that_is_too_large_becomes_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = {"a": "x" * 500, "b": "y" * 500}
    size = sum(store_module.size_of(key, value) for key, value in entries.items())
    monkeypatch.setattr(store_module, "MAX_BYTES", 400)
    less = store_module.larger(size, entries, {"a": None})
    assert less == store_module.size_of("b", entries["b"])
    with pytest.raises(KafkaError):
        store_module.larger(less, entries, {"c": "z" * 500})
