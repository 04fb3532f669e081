"""The group machine on an event loop: acknowledged records are durable, failures are answered, time wakes
it."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from ringleader.coordinator.groups.routing import partition_for
from ringleader.coordinator.journal.entries import JournalEntry
from ringleader.coordinator.machine import Phase
from ringleader.coordinator.runtime import shards
from ringleader.coordinator.storage.base import Failure
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    HeartbeatRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    SyncGroupRequest,
)
from ringleader.protocol.schema import ZERO_UUID
from tests.support.fenced_store import FencedLog, FencedStorage
from tests.support.groupclient import JOIN_VERSION, form, join_request
from tests.support.memory_store import MemoryStorage
from tests.support.served import Client, Served, serving, until

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
    async with contextlib.AsyncExitStack() as stack:
        served = await stack.enter_async_context(serving(storage))
        client, reader, other = [await stack.enter_async_context(served.connect()) for _ in range(3)]
        member = await form(client, "group")
        storage.hold()
        client.send(member.commit(42), COMMIT_VERSION)
        waiting = asyncio.ensure_future(client.frame())
        await settle()
        reading = asyncio.ensure_future(committed(reader, "group"))
        await settle()
        assert not waiting.done()
        assert not reading.done(), "what is not durable was read"
        assert (await other.call(member.heartbeat(), 3)).error_code == 0, "it depends on the group only"
        storage.resume()
        await waiting
        assert await reading == 42


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
        storage.resume()
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
    async with serving(storage) as served, served.connect() as client, served.connect() as other:
        member = await form(client, "group")
        other.send(join_request("group"), JOIN_VERSION)
        await settle()
        storage.fail_append(1, Failure.BUSY)
        client.send(member.commit(1), COMMIT_VERSION)
        client.send(member.heartbeat(), 3)
        answer = (await client.receive(OffsetCommitRequest, COMMIT_VERSION))[1]
        assert error_of(answer) == ErrorCode.NOT_COORDINATOR
        parked = (await other.receive(type(join_request("group")), JOIN_VERSION))[1]
        assert parked.error_code == ErrorCode.NOT_COORDINATOR
        assert (await client.receive(type(member.heartbeat()), 3))[1].error_code == 0
        await loaded(served)
        assert await committed(client, "group") == -1
        assert error_of(await client.call(member.commit(2), COMMIT_VERSION)) == 0
        assert await committed(client, "group") == 2
        [line] = served.events("append failed")
        assert line["reason"] == "the database is locked by another program"
        assert (await client.call(member.heartbeat(), 3)).error_code == 0


async def test_while_the_disk_is_full_members_stay_and_commits_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shards, "PROBE_INTERVAL_S", 0.001)
    storage = MemoryStorage()
    async with serving(storage) as served, served.connect() as client:
        member = await form(client, "group")
        assert error_of(await client.call(member.commit(1), COMMIT_VERSION)) == 0
        storage.full = True
        assert error_of(await client.call(member.commit(2), COMMIT_VERSION)) == ErrorCode.NOT_COORDINATOR
        await loaded(served)
        for _ in range(3):
            refused = error_of(await client.call(member.commit(3), COMMIT_VERSION))
            assert refused == ErrorCode.COORDINATOR_NOT_AVAILABLE
            assert (await client.call(member.heartbeat(), 3)).error_code == 0
            assert await committed(client, "group") == 1
        storage.full = False
        await until(lambda: bool(served.events("store has room")))
        assert error_of(await client.call(member.commit(4), COMMIT_VERSION)) == 0
        assert await committed(client, "group") == 4


async def loaded(served: Served) -> None:
    """All shards serve."""
    await until(lambda: all(shard.phase is Phase.SERVING for shard in served.runtime.shards))


async def test_a_topic_is_forgotten_through_failed_writes_and_a_full_disk(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(shards, "PROBE_INTERVAL_S", 0.001)
    storage = MemoryStorage()
    async with serving(storage) as served, served.connect() as client:
        members = [await form(client, f"group-{number}") for number in range(9)]
        for member in members:
            assert error_of(await client.call(member.commit(1), COMMIT_VERSION)) == 0
        storage.fail_append(2, Failure.BUSY)
        storage.fail_append(4, Failure.DISK_FULL)
        async with asyncio.timeout(20):
            await served.runtime.forget_topic("orders", ZERO_UUID)
        assert served.runtime.counters.reloads >= 2
        survivor = storage.power_loss()
    async with serving(survivor) as served, served.connect() as client:
        assert [await committed(client, f"group-{number}") for number in range(9)] == [-1] * 9


@pytest.mark.leaves("a bug")
async def test_a_request_that_raises_before_it_changes_anything_is_refused_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with serving() as served, served.connect() as client:
        member = await form(client, "group")
        assert error_of(await client.call(member.commit(1), COMMIT_VERSION)) == 0

        def fail(*arguments: Any) -> Any:
            raise RuntimeError("a bug")

        for method, ask, version in (
            ("fetch_offsets", OffsetFetchRequest(group_id="group", topics=None), 7),
            ("describe", DescribeGroupsRequest(groups=["group"]), 4),
            ("handle", member.commit(2, partition=1), COMMIT_VERSION),
            ("commit_one", member.commit(2), COMMIT_VERSION),
        ):
            with monkeypatch.context() as patched:
                patched.setattr(served.runtime.shards[served.runtime.partition_of("group")], method, fail)
                answer = await client.call(ask, version)
            assert f"error_code={ErrorCode.UNKNOWN_SERVER_ERROR.value}" in str(answer)
            assert (await client.call(member.heartbeat(), 3)).error_code == 0
            assert await committed(client, "group") == 1
            served.clock.ahead_ms += 60_000 - 30_000
            assert (await client.call(member.heartbeat(), 3)).error_code == 0
            served.clock.ahead_ms += 60_000 - 30_000
            assert (await client.call(member.heartbeat(), 3)).error_code == 0
        assert served.runtime.counters.reloads == 0
        assert [line["doing"] for line in served.events("request failed")] == [
            "OffsetFetch",
            "DescribeGroups",
            "OffsetCommitRequest",
            "OffsetCommit",
        ]


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


# ---- shards that come and go ----


async def test_a_shard_that_was_released_answers_not_coordinator_on_every_path() -> None:
    async with serving() as served, served.connect() as client, served.connect() as other:
        member = await form(client, "group")
        partition = served.runtime.partition_of("group")
        for offset in range(1, 4):  # from now on heartbeats and commits take their short ways
            assert error_of(await client.call(member.commit(offset), COMMIT_VERSION)) == 0
            assert (await client.call(member.heartbeat(), 3)).error_code == 0
        other.send(join_request("group"), JOIN_VERSION)
        await settle()
        await served.runtime.release(partition)
        parked = await other.receive(type(join_request("group")), JOIN_VERSION)
        assert parked[1].error_code == ErrorCode.NOT_COORDINATOR
        away = ErrorCode.NOT_COORDINATOR
        assert error_of(await client.call(member.commit(4), COMMIT_VERSION)) == away
        assert error_of(await client.call(member.commit(4, topic="own"), COMMIT_VERSION)) == away
        assert (await client.call(member.heartbeat(), 3)).error_code == away
        client.send(member.heartbeat(), 3)
        client.send(member.heartbeat(), 3)
        for _ in range(2):
            assert (await client.receive(HeartbeatRequest, 3))[1].error_code == away
        for request, version in (
            (join_request("group"), JOIN_VERSION),
            (OffsetFetchRequest(group_id="group", topics=None), FETCH_VERSION),
            (SyncGroupRequest(group_id="group", generation_id=1, member_id=member.member_id), 3),
            (LeaveGroupRequest(group_id="group", member_id=member.member_id), 2),
            (OffsetDeleteRequest(group_id="group"), 0),
        ):
            assert (await client.call(request, version)).error_code == away, request
        described = await client.call(DescribeGroupsRequest(groups=["group"]), 4)
        assert described.groups[0].error_code == away
        deleted = await client.call(DeleteGroupsRequest(groups_names=["group"]), 1)
        assert deleted.results[0].error_code == away
        listed = await client.call(ListGroupsRequest(), 3)
        assert (listed.error_code, listed.groups) == (0, []), "those that are here"
        assert await served.runtime.acquire(partition) > 0
        assert (await client.call(member.heartbeat(), 3)).error_code == 0
        assert await committed(client, "group") == 3
        assert error_of(await client.call(member.commit(5), COMMIT_VERSION)) == 0
        assert await committed(client, "group") == 5


async def test_a_node_forgets_a_topic_in_the_shards_that_it_has() -> None:
    store = FencedStorage(FencedLog())
    async with serving(store, acquired=[partition_for("group", 50)]) as served, served.connect() as client:
        member = await form(client, "group")
        assert error_of(await client.call(member.commit(1), COMMIT_VERSION)) == 0
        async with asyncio.timeout(20):
            await served.runtime.forget_topic("orders", ZERO_UUID)
        assert await committed(client, "group") == -1


async def test_a_node_that_another_one_took_a_shard_from_shows_nothing_of_it() -> None:
    log = FencedLog()
    partition = partition_for("group", 50)
    async with contextlib.AsyncExitStack() as stack:
        former = await stack.enter_async_context(serving(FencedStorage(log), acquired=[partition]))
        client, reader = [await stack.enter_async_context(former.connect()) for _ in range(2)]
        member = await form(client, "group")
        assert error_of(await client.call(member.commit(1), COMMIT_VERSION)) == 0
        assert await committed(reader, "group") == 1
        assert (await client.call(member.heartbeat(), 3)).error_code == 0
        newcomer = HeartbeatRequest(group_id="group", generation_id=member.generation, member_id="newcomer")
        assert (await client.call(newcomer, 3)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        heir = await stack.enter_async_context(serving(FencedStorage(log), acquired=[partition]))
        newer = await stack.enter_async_context(heir.connect())
        assert (await newer.call(member.heartbeat(), 3)).error_code == 0
        assert error_of(await newer.call(member.commit(2), COMMIT_VERSION)) == 0
        assert (await client.call(member.heartbeat(), 3)).error_code == 0, "it goes on, and is harmless"
        client.send(newcomer, 3)
        reader.send(OffsetFetchRequest(group_id="group", topics=None), FETCH_VERSION)
        answer = (await client.receive(HeartbeatRequest, 3))[1]
        assert answer.error_code == ErrorCode.NOT_COORDINATOR, "who knows who came to the other node"
        refused = (await reader.receive(OffsetFetchRequest, FETCH_VERSION))[1]
        assert refused.error_code == ErrorCode.NOT_COORDINATOR
        assert former.runtime.serving == frozenset()
        assert (await client.call(member.heartbeat(), 3)).error_code == ErrorCode.NOT_COORDINATOR
        assert await committed(newer, "group") == 2
        assert (await newer.call(member.heartbeat(), 3)).error_code == 0, "it was in the group all the time"


# ---- time ----


async def test_silent_member_is_removed_when_its_session_ends() -> None:
    async with serving() as served, served.connect() as client:
        member = await form(client, "group")
        served.clock.ahead_ms += 29_000
        assert (await client.call(member.heartbeat(), 3)).error_code == 0
        served.clock.ahead_ms += 29_000
        served.runtime.wake()
        assert (await client.call(member.heartbeat(), 3)).error_code == 0
        served.clock.ahead_ms += 31_000
        served.runtime.wake()
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
        storage.resume()
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


async def test_a_stop_tells_of_a_rebalance_whose_followers_are_awaited() -> None:
    reported: list[Any] = []
    async with serving() as served, served.connect() as leader, served.connect() as follower:
        served.runtime.on_journal = reported.append
        member = await form(leader, "group")
        follower.send(join_request("group"), JOIN_VERSION)
        while (await leader.call(member.heartbeat(), 3)).error_code == 0:
            pass
        joined = await leader.call(join_request("group", member.member_id), JOIN_VERSION)
        await follower.frame()
        synced = SyncGroupRequest("group", joined.generation_id, joined.member_id)
        assert (await leader.call(synced, 3)).error_code == 0
        entries = [one.generation for one in reported if isinstance(one, JournalEntry)]
        assert entries == [member.generation], "the follower has not synced"
        await served.runtime.stop()
        entries = [one.generation for one in reported if isinstance(one, JournalEntry)]
        assert entries == [member.generation, joined.generation_id]


async def test_the_figures_of_the_store_count_each_transaction_once() -> None:
    storage = MemoryStorage()
    async with serving(storage) as served, served.connect() as client:
        member = await form(client, "group")
        for offset in range(3):
            await client.call(member.commit(offset), COMMIT_VERSION)
        transactions, records, (counts, _) = served.runtime.store_figures()
        assert transactions == sum(counts) == storage.appends
        assert records == len(storage.rows)
