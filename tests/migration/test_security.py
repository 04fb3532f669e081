"""A daemon's users, ACLs and quotas go into the topic of nodes, whose cluster a coordinator stands for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ringleader.clients.connection.cluster import Cluster
from ringleader.coordinator.security.acls import AllowAll
from ringleader.coordinator.security.directory import Security
from ringleader.coordinator.security.scram import SHA_512
from ringleader.coordinator.security.store import FILE
from ringleader.coordinator.storage.kafka import TopicStore
from ringleader.coordinator.topics.disk import DamagedError
from ringleader.migration import security as securing
from ringleader.testing import Coordinator
from tests.support.registered import ALICE, credential, registered

TOPIC = "__ringleader_security"


@asynccontextmanager
async def topic(cluster: Coordinator, secret: bytes = b"") -> AsyncIterator[TopicStore]:
    async with Cluster(cluster.bootstrap) as way:
        store = TopicStore(way, TOPIC, 1, secret=secret)
        try:
            await store.start()
            yield store
        finally:
            await store.close()


async def filled(directory: Path, *names: str) -> securing.Kept:
    await registered(directory, *names)
    return await securing.kept(directory)


async def test_all_goes_over_with_the_secret_and_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(securing, "ENTRIES_PER_CHANGE", 2)
    names = [f"user{n}" for n in range(5)]
    ours = await filled(tmp_path, *names)
    assert ours.counts() == {"users": 5, "acls": 0, "quotas": 0, "groups": 0}
    with Coordinator() as cluster:
        async with topic(cluster, ours.secret) as store:
            await store.change("users", {"user3": ours.sections["users"]["user3"]})  # as an earlier run did
            assert securing.others(ours, store) == []
            await securing.write(ours, store)
            end = store._next_offset
            await securing.write(ours, store)
            assert store._next_offset == end
        async with topic(cluster) as again:
            assert again.secret == ours.secret
            assert again.entries("users") == ours.sections["users"]
            security = Security(again, AllowAll())
            security.users.load()
            assert security.users.credential("user1", SHA_512) == credential(SHA_512)


async def test_a_topic_keeps_its_secret_and_what_else_it_has(tmp_path: Path) -> None:
    ours = await filled(tmp_path, ALICE)
    with Coordinator() as cluster:
        async with topic(cluster) as store:
            secret = store.secret
            await store.change("users", {"bob": {}})
        async with topic(cluster, ours.secret) as store:
            assert store.secret == secret != ours.secret
            await securing.write(ours, store)
            assert set(store.entries("users")) == {ALICE, "bob"}


async def test_the_same_name_with_other_contents_is_found(tmp_path: Path) -> None:
    ours = await filled(tmp_path, ALICE, "bob")
    theirs: dict[str, Any] = {ALICE: {"other": 1}, "bob": ours.sections["users"]["bob"]}
    with Coordinator() as cluster:
        async with topic(cluster) as store:
            await store.change("users", theirs)
            assert securing.others(ours, store) == [f"users/{ALICE}"]
            await securing.write(ours, store)
            assert store.entries("users") == theirs


async def test_the_directory_stays_as_it_is(tmp_path: Path) -> None:
    none = await securing.kept(tmp_path)
    assert not any(none.counts().values())
    assert not (tmp_path / FILE).exists()
    ours = await filled(tmp_path)
    before = (tmp_path / FILE).read_bytes()
    assert await securing.kept(tmp_path) == ours
    assert (tmp_path / FILE).read_bytes() == before
    assert ours.secret.hex() not in repr(ours)
    assert "salt" not in repr(ours)
    (tmp_path / FILE).write_text("{")
    with pytest.raises(DamagedError, match="cannot be read"):
        await securing.kept(tmp_path)
