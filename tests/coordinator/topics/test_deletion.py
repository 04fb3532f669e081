"""A topic's deletion: two durable steps, which nothing that happens in between takes apart."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ringleader.coordinator.config import Settings
from ringleader.coordinator.node import Node
from ringleader.coordinator.topics import Topics
from ringleader.protocol.errors import ErrorCode, KafkaError
from ringleader.protocol.messages import (
    CreateTopicsRequest,
    CreateTopicsRequestCreatableTopic,
    DeleteTopicsRequest,
    DeleteTopicsRequestDeleteTopicState,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.support.rawclient import AsyncRawConnection, RawConnection
from tests.support.topiclog import batch, bounds, killed, topic_log

GROUP, OFFSET = "readers", 7


class Held:
    """The part that makes groups forget a topic; it waits until it is let."""

    def __init__(self) -> None:
        self.requested: list[str] = []
        self.reached = asyncio.Event()
        self.let = asyncio.Event()

    async def __call__(self, topic: str, topic_id: bytes) -> None:
        self.requested.append(topic)
        self.reached.set()
        await self.let.wait()


async def refusal(attempt: Coroutine[Any, Any, Any]) -> int:
    with pytest.raises(KafkaError) as error:
        await attempt
    return error.value.code


async def test_a_topic_is_invisible_and_its_name_not_free_until_all_is_done(tmp_path: Path) -> None:
    async with topic_log(tmp_path) as topics:
        info = await topics.create("orders", 1)
        await topics.append("orders", 0, batch(3))
        held = Held()
        deletion = asyncio.ensure_future(topics.delete("orders", held))
        await held.reached.wait()
        assert (topics.all(), topics.describe("orders"), topics.describe_id(info.id)) == ([], None, None)
        assert await refusal(topics.create("orders", 1)) == ErrorCode.TOPIC_ALREADY_EXISTS
        assert await refusal(topics.append("orders", 0, batch())) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await refusal(topics.delete("orders", held)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert await refusal(topics.grow("orders", 2)) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert (tmp_path / "data" / info.id.hex()).exists(), "records go last"
        held.let.set()
        await deletion
        assert list((tmp_path / "data").iterdir()) == []
        await topics.create("orders", 1)
        assert bounds(topics) == (0, 0)


async def stopped(topics: Topics, directory: Path) -> Path:
    await topics.close()
    return topics.directory


@pytest.mark.parametrize("end", [killed, stopped])
async def test_a_deletion_that_was_begun_is_finished_by_the_next_start(
    tmp_path: Path, end: Callable[[Topics, Path], Coroutine[Any, Any, Path]]
) -> None:
    async with topic_log(tmp_path / "first") as topics:
        await topics.create("orders", 1)
        await topics.append("orders", 0, batch(3))
        await topics.create("kept", 1)
        held = Held()
        deletion = asyncio.ensure_future(topics.delete("orders", held))
        await held.reached.wait()
        deletion.cancel()
        left = await end(topics, tmp_path / "copy")
    async with topic_log(left) as topics:
        assert [info.name for info in topics.all()] == ["kept"]
        assert await refusal(topics.create("orders", 1)) == ErrorCode.TOPIC_ALREADY_EXISTS
        again = Held()
        again.let.set()
        await topics.finish_deletions(again)
        assert again.requested == ["orders"]
        await topics.create("orders", 1)
        assert bounds(topics) == (0, 0)
    async with topic_log(left) as topics:
        nothing = Held()
        await topics.finish_deletions(nothing)
        assert nothing.requested == []
        assert [info.name for info in topics.all()] == ["kept", "orders"]


async def test_files_that_cannot_be_removed_now_are_removed_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ringleader.coordinator.topics.log.DELETION_RETRY_S", 0.01)
    async with topic_log(tmp_path) as topics:
        await topics.create("orders", 1)
        await topics.append("orders", 0, batch(3))
        # Where the list of topics is written, something is in the way.
        held = Held()
        deletion = asyncio.ensure_future(topics.delete("orders", held))
        await held.reached.wait()
        (tmp_path / "topics.json.new").mkdir()
        held.let.set()
        while any((tmp_path / "data").iterdir()):
            assert not deletion.done()
            await asyncio.sleep(0)
        with pytest.raises(KafkaError):
            await topics.create("orders", 1)
        (tmp_path / "topics.json.new").rmdir()
        await deletion
        await topics.create("orders", 1)


def delete_request() -> DeleteTopicsRequest:
    return DeleteTopicsRequest(topics=[DeleteTopicsRequestDeleteTopicState("orders")])


async def create(client: AsyncRawConnection) -> int:
    topic = CreateTopicsRequestCreatableTopic("orders", 1, 1)
    return int((await client.call(CreateTopicsRequest([topic]))).topics[0].error_code)


async def commit(client: AsyncRawConnection) -> None:
    topic = OffsetCommitRequestTopic(name="orders", partitions=[OffsetCommitRequestPartition(0, OFFSET)])
    answer = await client.call(OffsetCommitRequest(GROUP, topics=[topic]), 8)
    assert answer.topics[0].partitions[0].error_code == 0


async def committed(client: AsyncRawConnection) -> int:
    group = OffsetFetchRequestGroup(
        group_id=GROUP, topics=[OffsetFetchRequestTopics(name="orders", partition_indexes=[0])]
    )
    answer = await client.call(OffsetFetchRequest(groups=[group]), 8)
    return int(answer.groups[0].topics[0].partitions[0].committed_offset)


async def recreated(client: AsyncRawConnection) -> None:
    """Create the topic as soon as its name is free."""
    async with asyncio.timeout(20):
        while (code := await create(client)) != 0:
            assert code == ErrorCode.TOPIC_ALREADY_EXISTS


def settings(directory: Path) -> Settings:
    return Settings(listen="127.0.0.1:0", data_dir=directory)


async def test_a_client_that_hangs_up_leaves_no_offsets_to_the_next_topic(
    tmp_path: Path,
) -> None:
    async with Node(settings(tmp_path)) as node:
        client = await AsyncRawConnection.connect(node.bootstrap)
        assert await create(client) == 0
        await commit(client)
        assert await committed(client) == OFFSET
        with RawConnection(node.bootstrap) as impatient:
            impatient.send(delete_request())
        await recreated(client)
        assert await committed(client) == -1
        await client.close()


async def test_a_node_that_ended_during_a_deletion_finishes_it(tmp_path: Path) -> None:
    async with Node(settings(tmp_path)) as node:
        client = await AsyncRawConnection.connect(node.bootstrap)
        assert await create(client) == 0
        await commit(client)
        await client.close()
        await node.topics._catalog.change("orders", lambda info: replace(info, deleting=True))
    async with Node(settings(tmp_path)) as node:
        client = await AsyncRawConnection.connect(node.bootstrap)
        assert await create(client) == 0
        assert await committed(client) == -1
        await client.close()
