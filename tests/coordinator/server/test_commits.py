"""The short way of plain commits gives the same bytes and the same effects as the general one."""

from __future__ import annotations

from typing import Any

import pytest

from ringleader.coordinator.groups.committed import CommittedOffset
from ringleader.coordinator.groups.records import decode_offset_value
from ringleader.coordinator.server.call import Call
from ringleader.coordinator.server.commits import CommitCache
from ringleader.coordinator.storage.base import Failure
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from tests.support.groupclient import JOIN_VERSION, form, join_request
from tests.support.memory_store import MemoryStorage
from tests.support.served import Client, Served, serving

LONG_MS = 9_000
"""Less than a session, and longer than a request takes."""


async def fetched(client: Client) -> tuple[int, int, str]:
    """Offset, leader epoch and metadata of partition 0 of "orders" of the group "group"."""
    topics = [OffsetFetchRequestTopic(name="orders", partition_indexes=[0])]
    answer = await client.call(OffsetFetchRequest(group_id="group", topics=topics), 6)
    [entry] = answer.topics[0].partitions
    return entry.committed_offset, entry.committed_leader_epoch, entry.metadata or ""


def stored(served: Served) -> CommittedOffset:
    """That offset as the log has it."""
    shard = served.runtime.shards[served.runtime.partition_of("group")]
    return decode_offset_value(shard._groups["group"].offsets["orders"][0])


async def answer_bytes(client: Client, request: OffsetCommitRequest, version: int) -> bytes:
    """The response without its correlation id."""
    client.send(request, version)
    return (await client.frame())[4:]


def counted(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each commit from now on: whether it went the short way."""
    ways: list[bool] = []
    original = CommitCache.take

    def take(self: CommitCache, *arguments: Any) -> Call | None:
        call = original(self, *arguments)
        ways.append(call is not None)
        return call

    monkeypatch.setattr(CommitCache, "take", take)
    return ways


@pytest.mark.parametrize("version", range(2, 10))
async def test_same_bytes_and_effects_in_every_version(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ways = counted(monkeypatch)
    async with serving() as served, served.connect() as client:
        member = await form(client, "group")
        answers = []
        for offset in (1, 2**40, -2, 0):
            request = member.commit(offset)
            if version >= 6:
                request.topics[0].partitions[0].committed_leader_epoch = 5
            answers.append(await answer_bytes(client, request, version))
            assert await fetched(client) == (offset, 5 if version >= 6 else -1, "")
            assert stored(served).topic_id == served.topics.describe("orders").id
        assert len(set(answers)) == 1
        assert ways == [False, True, True, True]


async def test_a_remembered_commit_by_id_is_not_for_the_next_topic_of_that_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ways = counted(monkeypatch)
    async with serving() as served, served.connect() as client:
        member = await form(client, "group")
        answers = []
        for offset in (1, 2, 3):
            request = member.commit(offset)
            request.topics[0].topic_id = served.topics.describe("orders").id
            answers.append(await answer_bytes(client, request, 10))
            assert await fetched(client) == (offset, -1, "")
        assert len(set(answers)) == 1
        assert ways == [False, True, True]
        served.topics.ids["orders"] = b"another".ljust(16)  # deleted and created again
        [topic] = (await client.call(request, 10)).topics
        assert topic.topic_id == request.topics[0].topic_id
        assert [one.error_code for one in topic.partitions] == [ErrorCode.UNKNOWN_TOPIC_ID]


async def test_each_request_waits_from_its_own_beginning(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the figures, whichever way it goes, however long the connection was silent before."""
    ways = counted(monkeypatch)
    async with serving() as served:
        served.server.measure()
        await _waited_for(served)
    assert ways == [False, True, True, True]


async def _waited_for(served: Served) -> None:
    async with served.connect() as client:
        member = await form(client, "group")
        for offset in range(4):
            served.clock.ahead_ms += LONG_MS
            assert (await client.call(member.heartbeat(), 3)).error_code == 0
            served.clock.ahead_ms += LONG_MS
            await answer_bytes(client, member.commit(offset), 8)
            assert await fetched(client) == (offset, -1, "")
        waits = [(key, waited.copy()) for key, waited in (served.server.waits or {}).items()]
        assert any(sum(counts) for _, (counts, _) in waits)
        assert [key for key, (_, sum_ms) in waits if not 0 <= sum_ms < LONG_MS] == []


async def test_null_metadata_is_as_good_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    ways = counted(monkeypatch)
    async with serving() as served, served.connect() as client:
        member = await form(client, "group")
        for offset in (1, 2):
            request = member.commit(offset)
            request.topics[0].partitions[0].committed_metadata = None
            await answer_bytes(client, request, 7)
            assert await fetched(client) == (offset, -1, "")
        assert ways == [False, True]


def _two_partitions(request: OffsetCommitRequest) -> None:
    request.topics[0].partitions *= 2


def _metadata(request: OffsetCommitRequest) -> None:
    request.topics[0].partitions[0].committed_metadata = "note"


def _expiry(request: OffsetCommitRequest) -> None:
    request.retention_time_ms = 3_600_000


def _unknown_partition(request: OffsetCommitRequest) -> None:
    request.topics[0].partitions[0].partition_index = 8


def _unknown_member(request: OffsetCommitRequest) -> None:
    request.member_id = "stranger"


def _old_generation(request: OffsetCommitRequest) -> None:
    request.generation_id_or_member_epoch -= 1


@pytest.mark.parametrize(
    "change", [_two_partitions, _metadata, _expiry, _unknown_partition, _unknown_member, _old_generation]
)
async def test_what_is_not_plain_takes_the_general_way(
    change: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    ways = counted(monkeypatch)
    assert callable(change)
    async with serving() as served, served.connect() as client:
        member = await form(client, "group")
        answers = []
        for offset in (1, 2):
            request = member.commit(offset)
            change(request)
            answers.append(await answer_bytes(client, request, 4))
        assert answers[0] == answers[1]
        assert ways == [False, False]


async def test_what_changed_since_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    ways = counted(monkeypatch)
    async with serving() as served, served.connect() as client, served.connect() as other:
        member = await form(client, "group")

        async def code() -> int:
            answer = await client.call(member.commit(7), 7)
            return int(answer.topics[0].partitions[0].error_code)

        assert [await code() for _ in range(2)] == [0, 0]
        partitions = served.topics.partitions.pop("orders")
        assert await code() == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        served.topics.partitions["orders"] = partitions
        assert await code() == 0
        other.send(join_request("group"), JOIN_VERSION)
        while (await client.call(member.heartbeat(), 3)).error_code == 0:
            pass
        assert await code() == 0, "commits are welcome while the group prepares"
        await client.call(LeaveGroupRequest(group_id="group", member_id=member.member_id), 1)
        await other.frame()
        assert await code() == ErrorCode.UNKNOWN_MEMBER_ID
        assert ways == [False, True, False, True, False, False]


async def test_failed_write_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """The shard's life ends with it, and the next one serves."""
    ways = counted(monkeypatch)
    storage = MemoryStorage()
    async with serving(storage) as served, served.connect() as client:
        member = await form(client, "group")

        async def code(offset: int) -> int:
            answer = await client.call(member.commit(offset), 7)
            return int(answer.topics[0].partitions[0].error_code)

        assert await code(1) == 0
        storage.fail_append(1, Failure.BUSY)
        assert await code(2) == ErrorCode.NOT_COORDINATOR
        assert ways == [False, True]
        while (last := await code(3)) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            pass
        assert last == 0
        assert (await fetched(client))[0] == 3


async def test_requests_behind_a_plain_commit_keep_their_order() -> None:
    async with serving() as served, served.connect() as client:
        member = await form(client, "group")
        await client.call(member.commit(0), 7)
        numbers = []
        for offset in range(1, 50):
            numbers.append(client.send(member.commit(offset), 7))
            numbers.append(client.send(member.heartbeat(), 3))
        answered = [int.from_bytes((await client.frame())[:4], "big") for _ in numbers]
        assert answered == numbers
        assert (await fetched(client))[0] == 49


async def test_peer_that_goes_away_during_a_plain_commit_harms_nobody() -> None:
    storage = MemoryStorage()
    async with serving(storage) as served, served.connect() as other:
        async with served.connect() as client:
            member = await form(client, "group")
            await client.call(member.commit(1), 7)
            storage.hold()
            client.send(member.commit(2), 7)
            await other.call(member.heartbeat(), 3)
        storage.resume()
        while (await fetched(other))[0] != 2:
            pass
        assert served.events("answer not sent") == []
