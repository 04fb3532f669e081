"""The group machine on an event loop: what is acknowledged is durable, what fails is told, time wakes it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ringleader.coordinator.storage.base import Failure, StorageError
from ringleader.coordinator.storage.memory import MemoryStorage
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    DescribeGroupsRequest,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)
from tests.support.groupclient import JOIN_VERSION, form, join_request
from tests.support.served import Client, serving

COMMIT_VERSION, FETCH_VERSION = 7, 5


async def committed(client: Client, group_id: str, partition: int = 0) -> int:
    """The committed offset of one partition of "orders"."""
    topic = OffsetFetchRequestTopic(name="orders", partition_indexes=[partition])
    answer = await client.call(OffsetFetchRequest(group_id=group_id, topics=[topic]), FETCH_VERSION)
    assert answer.error_code == 0
    return int(answer.topics[0].partitions[0].committed_offset)


def error_of(answer: Any) -> int:
    """The error of a commit of one partition."""
    return int(answer.topics[0].partitions[0].error_code)


async def settle() -> None:
    """Let everything that is ready to run do so."""
    for _ in range(50):
        await asyncio.sleep(0.001)


# ---- durability ----


async def test_acknowledgement_waits_for_the_sync() -> None:
    storage = MemoryStorage()
    async with serving(storage) as served, served.connect() as client, served.connect() as reader:
        member = await form(client, "group")
        storage.hold()
        client.send(member.commit(42), COMMIT_VERSION)
        waiting = asyncio.ensure_future(client.frame())
        await settle()
        assert not waiting.done()
        assert await committed(reader, "group") == -1, "what is not durable was read"
        storage.release()
        await waiting
        assert await committed(reader, "group") == 42


@pytest.mark.parametrize("synchronous", [True, False], ids=["synced", "not synced"])
async def test_power_loss_takes_no_acknowledged_commit_unless_syncing_is_off(synchronous: bool) -> None:
    """The second case is the proof that the first one proves something."""
    storage = MemoryStorage(synchronous=synchronous)
    async with serving(storage) as served, served.connect() as client:
        member = await form(client, "group")
        for offset in range(1, 6):
            assert error_of(await client.call(member.commit(offset), COMMIT_VERSION)) == 0
        survivor = storage.power_loss()
    async with serving(survivor) as served, served.connect() as client:
        assert await committed(client, "group") == (5 if synchronous else -1)


async def test_commits_that_arrive_together_are_one_transaction() -> None:
    storage = MemoryStorage()
    async with serving(storage) as served:
        clients = [Client(*await asyncio.open_connection(served.host, served.port)) for _ in range(20)]
        members = [await form(client, f"group-{number}") for number, client in enumerate(clients)]
        storage.hold()
        clients[0].send(members[0].commit(1), COMMIT_VERSION)
        await settle()
        before = storage.appends
        for client, member in zip(clients[1:], members[1:], strict=True):
            client.send(member.commit(1), COMMIT_VERSION)
        await settle()
        storage.release()
        for client in clients:
            await client.frame()
        assert storage.appends == before + 1
        for client in clients:
            await client.close()


async def test_restart_keeps_generation_members_and_offsets() -> None:
    storage = MemoryStorage()
    async with serving(storage) as served, served.connect() as client:
        member = await form(client, "group")
        await client.call(member.commit(9), COMMIT_VERSION)
    async with serving(storage.power_loss()) as served, served.connect() as client:
        [line] = served.events("replayed")
        assert line["groups"] == 1
        assert line["records"] >= 2
        assert line["text"].startswith(f"replayed {line['records']} records, 1 groups in ")
        assert (await client.call(member.heartbeat(), 3)).error_code == 0
        assert await committed(client, "group") == 9
        described = await client.call(DescribeGroupsRequest(groups=["group"]), 4)
        assert described.groups[0].group_state == "Stable"


# ---- failures ----


async def test_failed_write_is_told_to_whom_it_concerns_and_the_next_one_works() -> None:
    storage = MemoryStorage()
    async with serving(storage) as served, served.connect() as client:
        member = await form(client, "group")
        storage.fail_append(1, Failure.DISK_FULL)
        code = error_of(await client.call(member.commit(1), COMMIT_VERSION))
        assert ErrorCode(code) in (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        assert await committed(client, "group") == -1
        assert error_of(await client.call(member.commit(2), COMMIT_VERSION)) == 0
        assert await committed(client, "group") == 2
        [line] = served.events("commit failed")
        assert line["reason"] == "the disk is full"
        assert (await client.call(member.heartbeat(), 3)).error_code == 0


class Picky(MemoryStorage):
    """Takes no record above a size, and then nothing of the transaction."""

    async def append_many(self, batches: Any) -> list[int]:
        if any(len(value or b"") > 1_000 for _, _, records in batches for _, value in records):
            raise StorageError(Failure.TOO_LARGE)
        return await super().append_many(batches)


async def test_record_that_is_too_large_fails_alone() -> None:
    storage = Picky()
    async with serving(storage) as served, served.connect() as first, served.connect() as second:
        one, other = await form(first, "one"), await form(second, "other")
        storage.hold()
        first.send(one.commit(1), COMMIT_VERSION)
        await settle()
        large = other.commit(7)
        large.topics[0].partitions[0].committed_metadata = "x" * 2_000
        second.send(large, COMMIT_VERSION)
        async with served.connect() as third:
            third.send(one.commit(2, partition=1), COMMIT_VERSION)
            await settle()
            storage.release()
            assert error_of((await third.receive(OffsetCommitRequest, COMMIT_VERSION))[1]) == 0
        assert error_of((await first.receive(OffsetCommitRequest, COMMIT_VERSION))[1]) == 0
        refused = (await second.receive(OffsetCommitRequest, COMMIT_VERSION))[1]
        assert error_of(refused) == ErrorCode.UNKNOWN_SERVER_ERROR
        assert await committed(first, "one", 1) == 2


async def test_store_that_cannot_be_trusted_ends_the_service_of_groups() -> None:
    storage = MemoryStorage()
    async with serving(storage) as served, served.connect() as client, served.connect() as other:
        member = await form(client, "group")
        other.send(join_request("group"), JOIN_VERSION)
        await settle()
        storage.fail_append(1, Failure.IO_ERROR)
        code = error_of(await client.call(member.commit(1), COMMIT_VERSION))
        assert code == ErrorCode.NOT_COORDINATOR
        parked = await other.receive(type(join_request("group")), JOIN_VERSION)
        assert parked[1].error_code == ErrorCode.NOT_COORDINATOR
        assert (await client.call(member.heartbeat(), 3)).error_code == ErrorCode.NOT_COORDINATOR
        assert error_of(await client.call(member.commit(2), COMMIT_VERSION)) == ErrorCode.NOT_COORDINATOR
        [line] = served.events("storage failed")
        assert line["level"] == "critical"


# ---- time ----


async def test_silent_member_is_removed_when_its_session_ends() -> None:
    async with serving() as served, served.connect() as client:
        member = await form(client, "group")
        served.clock.ahead_ms += 29_000
        assert (await client.call(member.heartbeat(), 3)).error_code == 0
        served.clock.ahead_ms += 29_000
        served.runtime._wake()
        assert (await client.call(member.heartbeat(), 3)).error_code == 0
        served.clock.ahead_ms += 31_000
        served.runtime._wake()
        await settle()
        assert (await client.call(member.heartbeat(), 3)).error_code == ErrorCode.UNKNOWN_MEMBER_ID


async def test_each_rebalance_is_one_log_line() -> None:
    async with serving() as served, served.connect() as client:
        member = await form(client, "group")
        await client.call(join_request("group", member.member_id), JOIN_VERSION)
        [line] = served.events("rebalance")
        assert line["group_id"] == "group"
        assert line["generation"] == member.generation
        assert line["members"] == 1
        assert line["cause"] == "member joined"
        assert "duration_ms" in line
        assert "group" in line["text"]


async def test_initial_delay_is_waited_for() -> None:
    async with serving(group_initial_rebalance_delay_ms=80) as served, served.connect() as client:
        began = served.clock()
        await form(client, "group")
        assert served.clock() - began >= 79


# ---- the end ----


async def test_stop_answers_what_waits_and_keeps_what_was_written() -> None:
    storage = MemoryStorage()
    async with serving(storage) as served, served.connect() as client, served.connect() as other:
        member = await form(client, "group")
        other.send(join_request("group"), JOIN_VERSION)
        await settle()
        storage.hold()
        client.send(member.commit(5), COMMIT_VERSION)
        await settle()
        served.server.stop_accepting()
        stopping = asyncio.ensure_future(served.runtime.stop())
        await settle()
        storage.release()
        await stopping
        assert error_of((await client.receive(OffsetCommitRequest, COMMIT_VERSION))[1]) == 0
        parked = await other.receive(type(join_request("group")), JOIN_VERSION)
        assert ErrorCode(parked[1].error_code).retriable
        assert error_of(await client.call(member.commit(6), COMMIT_VERSION)) == ErrorCode.NOT_COORDINATOR
        await served.server.close_connections(1.0)
        assert await client.rest() == await other.rest() == b""
    async with serving(storage.power_loss()) as served, served.connect() as client:
        assert await committed(client, "group") == 5


async def test_peers_that_go_away_leave_their_membership() -> None:
    async with serving() as served, served.connect() as client:
        member = await form(client, "group")
        async with served.connect() as other:
            other.send(join_request("group"), JOIN_VERSION)
            await settle()
        await settle()
        answer = await client.call(member.heartbeat(), 3)
        assert answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
