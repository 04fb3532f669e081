"""While the log of a partition does not answer, its members stay members."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ringleader.coordinator.consumer_groups.topics import Topic
from ringleader.coordinator.server.call import HELD_ENTRY_BYTES
from ringleader.coordinator.server.handlers import consumer_groups
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from tests.support.fenced_store import FencedStorage
from tests.support.groupclient import form
from tests.support.served import serving, until

TIMEOUT_MS = 1_000
FETCHED = 8


async def test_members_keep_their_generation_over_a_log_that_is_late() -> None:
    store = FencedStorage()
    async with serving(store, acquired=range(50), storage_timeout_ms=TIMEOUT_MS) as server:
        server.runtime.vouch = lambda _partition: True
        async with server.connect() as client, server.connect() as another:
            member = await form(client, "g")
            partition = server.runtime.partition_of("g")
            store.hold(partition)
            waited = await client.call(member.commit(1), FETCHED)
            assert codes(waited) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
            for _ in range(3):
                server.clock.ahead_ms += 20_000  # twice the session altogether
                assert (await client.call(member.heartbeat(), 4)).error_code == ErrorCode.NONE
                refused = await client.call(member.commit(2), FETCHED)
                assert codes(refused) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
            stranger = await another.call(member.heartbeat(), 4)
            assert stranger.error_code == ErrorCode.NONE
            store.resume(partition)
            await until(lambda: not server.runtime.late)
            assert (await client.call(member.heartbeat(), 4)).error_code == ErrorCode.NONE
            assert codes(await client.call(member.commit(3), FETCHED)) == [ErrorCode.NONE]
        [line] = server.events("append is late")
        assert line["partition"] == partition
        assert server.events("late append is in the log")


async def test_members_of_the_consumer_protocol_keep_their_epoch_over_it() -> None:
    store = FencedStorage()
    async with serving(
        store, consumer_groups.register, acquired=range(50), storage_timeout_ms=TIMEOUT_MS
    ) as server:
        server.runtime.vouch = lambda _partition: True
        server.runtime.topics.put(Topic("orders", b"o" * 16, 4))
        join = ConsumerGroupHeartbeatRequest("g", "m", 0, rebalance_timeout_ms=30_000)
        join.subscribed_topic_names, join.topic_partitions = ["orders"], []
        another = replace(join, member_id="n")
        async with server.connect() as client:
            joined = await client.call(join, 1)
            beat = ConsumerGroupHeartbeatRequest("g", "m", joined.member_epoch)
            partition = server.runtime.partition_of("g")
            store.hold(partition)
            refused = await client.call(another, 1)
            assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
            for _ in range(3):
                server.clock.ahead_ms += 40_000  # more than twice the session altogether
                answer = await client.call(beat, 1)
                assert (answer.error_code, answer.member_epoch) == (ErrorCode.NONE, joined.member_epoch)
                for other in (another, replace(beat, topic_partitions=[]), replace(beat, member_id="?")):
                    refused = await client.call(other, 1)
                    assert refused.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
            store.resume(partition)
            await until(lambda: not server.runtime.late)
            answer = await client.call(beat, 1)
            assert answer.error_code == ErrorCode.NONE
            assert answer.member_epoch >= joined.member_epoch


@pytest.mark.parametrize("named", [False, True])
async def test_what_waits_for_a_late_log_counts_as_an_answer_in_the_making(named: bool) -> None:
    """One group's part of an OffsetFetch is there, the other's waits."""
    store = FencedStorage()
    indexes, metadata = list(range(8)), "m" * 4_000
    async with serving(store, acquired=range(50)) as server, server.connect() as client:
        for group in ("one", "two"):
            entries = [OffsetCommitRequestPartition(index, 7, -1, metadata) for index in indexes]
            request = OffsetCommitRequest(
                group, topics=[OffsetCommitRequestTopic(name="orders", partitions=entries)]
            )
            assert set(codes(await client.call(request, FETCHED))) == {ErrorCode.NONE}
        held = server.runtime.partition_of("two")
        assert held != server.runtime.partition_of("one")
        store.hold(held)
        topics = [OffsetFetchRequestTopics(name="orders", partition_indexes=indexes)] if named else None
        groups = [OffsetFetchRequestGroup(group, topics=topics) for group in ("one", "two")]
        client.send(OffsetFetchRequest(groups=groups), FETCHED)
        least = 2 * len(indexes) * HELD_ENTRY_BYTES + len(indexes) * len(metadata)
        [connection] = server.server.connections
        try:
            await until(lambda: connection.making >= least)
            assert connection.making < least + len(metadata), "each once"
        finally:
            store.resume(held)
        _, answer = await client.receive(OffsetFetchRequest, FETCHED)
        assert [len(group.topics[0].partitions) for group in answer.groups] == [len(indexes)] * 2
        assert not connection.making


def codes(response: object) -> list[int]:
    return [one.error_code for topic in response.topics for one in topic.partitions]  # type: ignore[attr-defined]
