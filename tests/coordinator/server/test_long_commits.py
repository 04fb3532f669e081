"""A commit too long for one turn is written whole or not at all, whatever comes between its turns."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from ringleader.coordinator.config import Settings
from ringleader.coordinator.node import Node
from ringleader.coordinator.server.call import Answerable, Call
from ringleader.protocol import messages as m
from ringleader.protocol.errors import ErrorCode
from tests.coordinator.server.test_transactions import Producer, Talk
from tests.support.served import Client, until

PARTITIONS = 2_000
GROUP = "g"


class Asker(Answerable):
    """Stands for a connection that asks one thing."""

    principal: Any = "User:ANONYMOUS"
    listener: Any = None

    def __init__(self) -> None:
        self.answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def call_answered(self, call: Call, response: Any) -> None:
        """See `Answerable`."""
        self.answered.set_result(response)

    def call_finished(self, call: Call, *frame: bytes | memoryview) -> None:
        """See `Answerable`."""
        raise AssertionError("a long commit is answered with a message")

    def call_takes(self, call: Call) -> None:
        """See `Answerable`."""

    def call_refused(self, call: Call, reason: str) -> None:
        """See `Answerable`."""
        raise AssertionError(reason)


class Steps:
    """A request whose handler goes on when a test lets it."""

    def __init__(self, node: Node, request: Any, version: int) -> None:
        self._asker = Asker()
        key = request.API_KEY
        call = Call(self._asker, key, version, 1, "client", "/127.0.0.1", request)
        handling = node.server.routes[key].handler(call, request)
        assert isinstance(handling, Generator)
        self._handling = handling

    def step(self) -> bool:
        """One slice; whether there are more."""
        try:
            next(self._handling)
        except StopIteration as stop:
            if stop.value is not None:
                self._asker.answered.set_result(stop.value)
            return False
        return True

    async def codes(self) -> set[int]:
        """The error codes of the answer to all entries, which are there."""
        while self.step():
            pass
        async with asyncio.timeout(20):
            answer = await self._asker.answered
        assert sum(len(topic.partitions) for topic in answer.topics) == PARTITIONS
        return {one.error_code for topic in answer.topics for one in topic.partitions}


def settings(directory: Path) -> Settings:
    return Settings(listen="127.0.0.1:0", data_dir=directory, topic=f"a:{PARTITIONS}")


def transactional(producer: Producer, offset: int) -> m.TxnOffsetCommitRequest:
    """The same offset for all partitions."""
    entries = [m.TxnOffsetCommitRequestPartition(one, offset, -1, "") for one in range(PARTITIONS)]
    topics = [m.TxnOffsetCommitRequestTopic("a", entries)]
    return m.TxnOffsetCommitRequest("t", GROUP, *producer, topics=topics)


def plain(offset: int) -> m.OffsetCommitRequest:
    """Likewise, without a transaction."""
    entries = [
        m.OffsetCommitRequestPartition(one, offset, committed_metadata="") for one in range(PARTITIONS)
    ]
    return m.OffsetCommitRequest(GROUP, topics=[m.OffsetCommitRequestTopic(name="a", partitions=entries)])


async def offsets(talk: Talk) -> set[int]:
    """The committed ones of the group; raises for one that is not stable."""
    found = m.OffsetFetchRequestTopic("a", list(range(PARTITIONS)))
    answer = await talk.client.call(m.OffsetFetchRequest(GROUP, [found], require_stable=True), 7)
    [topic] = answer.topics
    assert {one.error_code for one in topic.partitions} == {0}
    return {one.committed_offset for one in topic.partitions}


async def test_a_transaction_that_ends_between_any_two_turns_of_a_commit_has_all_of_it_or_nothing(
    tmp_path: Path,
) -> None:
    acknowledged = -1
    outcomes = []
    async with Node(settings(tmp_path)) as node:
        client = Client(*await asyncio.open_connection(node.host, node.port))
        talk = Talk(client)
        for turns in itertools.count():
            producer = await talk.began()
            assert await talk.add_group(producer, GROUP) == 0
            steps = Steps(node, transactional(producer, turns), 3)
            more = all(steps.step() for _ in range(turns))
            assert await talk.end(producer) == 0
            codes = await steps.codes()
            assert codes in ({0}, {ErrorCode.INVALID_TXN_STATE}, {ErrorCode.CONCURRENT_TRANSACTIONS})
            acknowledged = turns if codes == {0} else acknowledged
            await talk.began()  # the markers are written
            assert await offsets(talk) == {acknowledged}
            assert node.runtime.open_producers() == []
            outcomes.append(codes == {0})
            if not more:
                break
        await client.close()
    assert outcomes == [False] * (len(outcomes) - 1) + [True]
    assert len(outcomes) > 4
    async with Node(settings(tmp_path)) as node:
        client = Client(*await asyncio.open_connection(node.host, node.port))
        assert await offsets(Talk(client)) == {acknowledged}
        await client.close()


async def test_a_commit_is_one_append(tmp_path: Path) -> None:
    """Another client reads between any two of its turns all old or all new offsets."""
    async with Node(settings(tmp_path)) as node:
        client = Client(*await asyncio.open_connection(node.host, node.port))
        talk = Talk(client)
        assert await Steps(node, plain(1), 8).codes() == {0}
        steps = Steps(node, plain(2), 8)
        while steps.step():
            assert await offsets(talk) == {1}
        assert await offsets(talk) == {2}
        assert await steps.codes() == {0}
        await client.close()


async def test_no_offset_is_written_of_a_topic_whose_deletion_has_begun(tmp_path: Path) -> None:
    async with Node(settings(tmp_path)) as node:
        client = Client(*await asyncio.open_connection(node.host, node.port))
        steps = Steps(node, plain(1), 8)
        assert steps.step()
        deleted = await client.call(m.DeleteTopicsRequest(topic_names=["a"]), 5)
        assert deleted.responses[0].error_code == 0
        await until(lambda: node.topics.describe("a") is None)
        assert await steps.codes() == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        shard = node.runtime.shards[node.runtime.partition_of(GROUP)]
        assert shard.committed_partitions(GROUP) == []
        await client.close()


@pytest.mark.parametrize("began", [False, True])
async def test_no_offset_is_written_for_the_next_topic_of_the_name(tmp_path: Path, began: bool) -> None:
    async with Node(settings(tmp_path)) as node:
        client = Client(*await asyncio.open_connection(node.host, node.port))
        steps = Steps(node, plain(1), 8)
        assert not began or steps.step()
        deleted = await client.call(m.DeleteTopicsRequest(topic_names=["a"]), 5)
        assert deleted.responses[0].error_code == 0
        await node.topics.create("a", PARTITIONS)
        assert await steps.codes() == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        shard = node.runtime.shards[node.runtime.partition_of(GROUP)]
        assert shard.committed_partitions(GROUP) == []
        await client.close()


async def test_a_commit_too_large_for_one_append_is_refused_whole(tmp_path: Path) -> None:
    """Each entry's key has the group's id: 2,000 times 30,000 bytes."""
    async with Node(settings(tmp_path)) as node:
        request = plain(1)
        request.group_id = "g" * 30_000
        assert await Steps(node, request, 8).codes() == {ErrorCode.INVALID_COMMIT_OFFSET_SIZE}
        shard = node.runtime.shards[node.runtime.partition_of(request.group_id)]
        assert shard.committed_partitions(request.group_id) == []
