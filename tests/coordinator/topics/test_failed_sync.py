"""After a failed sync nothing is believed: it is reported once, never tried again, and everything is
refused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from ringleader.coordinator.config import Settings
from ringleader.coordinator.node import Node
from ringleader.coordinator.topics import DamagedError, Topics
from ringleader.coordinator.topics.log import PRODUCER_IDS_FILE
from ringleader.protocol.errors import ErrorCode, KafkaError
from tests.support.durable import SyncWatch
from tests.support.topiclog import WallClock, batch, forget, produced, settled, topic_log, topic_settings


async def end_transaction(topics: Topics) -> None:
    await topics.append("orders", 0, produced(7, 0, transactional=True), lambda producer_id, epoch: None)
    await topics.end_transaction("orders", 0, 7, 0, committed=True)


async def fill_files(topics: Topics) -> None:
    for _ in range(10):
        await topics.append("orders", 0, batch(10))
    await settled(topics)
    await topics.append("orders", 0, batch())


async def retain(topics: Topics) -> None:
    await topics.configure("orders", lambda present: {"retention.bytes": "0"})
    await topics.enforce_retention()
    topics.partition("orders", 0)


async def truncate(topics: Topics) -> None:
    await topics.truncate("orders", 0, 3)


async def create(topics: Topics) -> None:
    await topics.create("more", 1)


async def delete(topics: Topics) -> None:
    await topics.delete("orders", forget)


async def take_id(topics: Topics) -> None:
    await topics.new_producer_id()


WAYS: list[tuple[Callable[[Topics], Awaitable[None]], str]] = [
    (end_transaction, "*.log"),
    (end_transaction, "0"),
    (end_transaction, "data"),
    (fill_files, "*.log"),
    (retain, "*.index"),
    (truncate, "log-start.new"),
    (truncate, "0"),
    (create, "topics.json.new"),
    (create, "topics"),
    (delete, "topics.json.new"),
    (take_id, "producer-ids.new"),
]


@pytest.mark.parametrize(("act", "broken"), WAYS, ids=[f"{act.__name__}-{name}" for act, name in WAYS])
async def test_a_failed_sync_ends_the_topic_log(
    tmp_path: Path, watch: SyncWatch, act: Callable[[Topics], Awaitable[None]], broken: str
) -> None:
    errors: list[Exception] = []
    settings = topic_settings(log_segment_bytes=600)
    topics = Topics(tmp_path / "live" / "topics", settings, WallClock(), errors.append)
    await topics.open()
    try:
        await topics.create("orders", 1)
        await topics.append("orders", 0, batch(5))
        if act is retain:
            await fill_files(topics)
        watch.fails = lambda path: path.match(broken)
        await refused(act(topics))
        assert len(errors) == 1
        # The disk would now say that all is well.
        watch.fails = lambda path: False
        watch.synced.clear()
        for attempt in (act, end_transaction, truncate, create, delete, take_id, read):
            await refused(attempt(topics))
        assert len(errors) == 1
    finally:
        await topics.close()
    assert watch.synced == []


async def test_what_is_on_its_way_meanwhile_is_refused_too(tmp_path: Path, watch: SyncWatch) -> None:
    errors: list[Exception] = []
    topics = Topics(tmp_path / "live" / "topics", topic_settings(), WallClock(), errors.append)
    await topics.open()
    try:
        await topics.create("orders", 1)
        await topics.append("orders", 0, batch(5))
        # The first two fail, the third would succeed.
        watch.fails = lambda path: path.match("topics.json.new") or path.match("producer-ids.new")
        await asyncio.gather(*(refused(act(topics)) for act in (create, take_id, truncate)))
        assert len(errors) == 1
    finally:
        await topics.close()


async def read(topics: Topics) -> None:
    await topics.read(topics.partition("orders", 0), 0, 1_000)


async def refused(attempt: Awaitable[None]) -> None:
    with pytest.raises(KafkaError) as error:
        await attempt
    assert error.value.code == ErrorCode.KAFKA_STORAGE_ERROR


async def test_an_error_that_should_not_be_fails_what_it_hit_and_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*arguments: Any) -> None:
        raise ZeroDivisionError

    errors: list[Exception] = []
    topics = Topics(tmp_path, topic_settings(), WallClock(), errors.append)
    await topics.open()
    try:
        await topics.create("orders", 1)
        with monkeypatch.context() as patched:
            patched.setattr("ringleader.coordinator.topics.appender.pwrite_all", broken)
            await refused(append(topics))
        assert [type(error) for error in errors] == [ZeroDivisionError]
        await refused(append(topics))
    finally:
        await topics.close()


async def append(topics: Topics) -> None:
    await topics.append("orders", 0, batch())


@pytest.mark.leaves("a node can serve no more")
async def test_a_node_whose_topic_log_failed_says_so(tmp_path: Path, watch: SyncWatch) -> None:
    settings = Settings(listen="127.0.0.1:0", data_dir=tmp_path / "live")
    async with Node(settings) as node:
        watch.fails = lambda path: path.match("topics.json.new")
        await refused(create(node.topics))
        await node.wait_failed()


@pytest.mark.parametrize("name", ["producer-ids", "log-start"])
@pytest.mark.parametrize("content", [b"", b"12", b"12\n\n", b"x\n", b"-1\n"])
async def test_a_number_that_is_not_whole_is_refused_and_kept(
    tmp_path: Path, name: str, content: bytes
) -> None:
    async with topic_log(tmp_path) as topics:
        await topics.create("orders", 1)
        await topics.append("orders", 0, batch(5))
        await truncate(topics)
        await take_id(topics)
        directory = tmp_path if name == "producer-ids" else topics.partition("orders", 0).directory
    (directory / name).write_bytes(content)
    with pytest.raises(DamagedError, match=name):
        async with topic_log(tmp_path):
            pass
    assert (directory / name).read_bytes() == content


async def test_producer_ids_go_on_when_their_file_is_missing(tmp_path: Path) -> None:
    async with topic_log(tmp_path, given_ids=10_000) as topics:
        await topics.create("orders", 1)
        await topics.append("orders", 0, produced(5_000, 0))
    (tmp_path / PRODUCER_IDS_FILE).unlink()
    async with topic_log(tmp_path) as topics:
        assert await topics.new_producer_id() > 5_000
