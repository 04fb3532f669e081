"""Faults on request: what an application's tests ask of the coordinator, seen by real clients."""

from __future__ import annotations

import time
from typing import Any

import kafka
import pytest

from ringleader.clients.admin import Admin
from ringleader.clients.errors import BrokerError
from ringleader.clients.model import Lost, Revoked
from ringleader.protocol.messages import OffsetCommitRequest
from ringleader.testing import Coordinator, ErrorCode
from tests.support.served import until
from tests.support.sharding import PATIENCE_S, Diary, member


async def test_an_error_for_the_nth_commit(coordinator: Coordinator) -> None:
    async with member(coordinator) as one:
        await one.wait_assigned(PATIENCE_S)
        rule = coordinator.faults.error("OffsetCommit", ErrorCode.OFFSET_METADATA_TOO_LARGE, nth=2)
        await one.commit({("t", 0): 1})
        with pytest.raises(BrokerError, match="OFFSET_METADATA_TOO_LARGE"):
            await one.commit({("t", 0): 2})
        await one.commit({("t", 1): 3})
        assert rule.hits == 1
        offsets = await one.committed()
        assert {place: value.offset for place, value in offsets.items()} == {("t", 0): 1, ("t", 1): 3}
        commits = coordinator.faults.seen("OffsetCommit")
        assert [seen.request.topics[0].partitions[0].committed_offset for seen in commits] == [1, 2, 3]
        assert all(isinstance(seen.request, OffsetCommitRequest) for seen in commits)
        assert commits[0].client_id == "ringleader-member"
        coordinator.faults.forget_seen()
        assert coordinator.faults.seen("OffsetCommit") == []


async def test_a_retriable_error_is_got_over(coordinator: Coordinator) -> None:
    coordinator.faults.error("JoinGroup", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=2)
    coordinator.faults.error("FindCoordinator", ErrorCode.COORDINATOR_NOT_AVAILABLE)
    async with member(coordinator) as one:
        await one.wait_assigned(PATIENCE_S)
    assert len(coordinator.faults.seen("JoinGroup")) >= 4


async def test_an_answer_that_is_lost(coordinator: Coordinator) -> None:
    """The commit took effect; the member repeats it on a new connection."""
    async with member(coordinator) as one:
        await one.wait_assigned(PATIENCE_S)
        coordinator.faults.drop("OffsetCommit", done=True)
        await one.commit({("t", 0): 9})
        assert len(coordinator.faults.seen("OffsetCommit")) == 2
        assert one.assigned is not None


async def test_a_request_that_never_arrives(coordinator: Coordinator) -> None:
    async with member(coordinator) as one:
        await one.wait_assigned(PATIENCE_S)
        coordinator.faults.drop("OffsetCommit")
        await one.commit({("t", 0): 9})
        assert len(coordinator.faults.seen("OffsetCommit")) == 2


async def test_a_delay(coordinator: Coordinator) -> None:
    async with Admin(coordinator.bootstrap) as admin:
        await admin.list_groups()
        coordinator.faults.delay("ListGroups", 0.3, times=1)
        began = time.monotonic()
        await admin.list_groups()
        assert time.monotonic() - began >= 0.3
        coordinator.faults.clear()


async def test_the_coordinator_moves(coordinator: Coordinator) -> None:
    diary = Diary()
    async with member(coordinator, diary) as one:
        share = await one.wait_assigned(PATIENCE_S)
        found = len(coordinator.faults.seen("FindCoordinator"))
        coordinator.faults.move_coordinator()
        await until(lambda: len(coordinator.faults.seen("FindCoordinator")) > found)
        await one.commit({("t", 0): 1})
        assert one.assigned == share
        assert diary.of(Lost) == diary.of(Revoked) == []


async def test_all_connections_break(coordinator: Coordinator) -> None:
    async with member(coordinator) as one:
        share = await one.wait_assigned(PATIENCE_S)
        coordinator.faults.disconnect()
        await one.commit({("t", 0): 1})
        assert one.assigned == share


async def test_a_member_is_expired_now(coordinator: Coordinator) -> None:
    diary = Diary()
    async with member(coordinator, diary) as one:
        share = await one.wait_assigned(PATIENCE_S)
        coordinator.expire_member("jobs", share.member_id)
        lost = await diary.until(Lost)
        assert "removed" in lost.reason
        with pytest.raises(KeyError):
            coordinator.expire_member("jobs", share.member_id)


async def test_the_clock_is_advanced(coordinator: Coordinator) -> None:
    """The session is over before the next heartbeat."""
    diary = Diary()
    async with member(coordinator, diary, heartbeat_interval_ms=500, session_timeout_ms=6_000) as one:
        first = await one.wait_assigned(PATIENCE_S)
        coordinator.advance_clock(7)
        await diary.until(Lost)
        again = await one.wait_assigned(PATIENCE_S)
        assert again.member_id != first.member_id
        async with Admin(coordinator.bootstrap) as admin:
            (found,) = await admin.describe_groups(["jobs"])
        assert [one.member_id for one in found.members] == [again.member_id]


async def test_rules_look_at_group_and_client(coordinator: Coordinator) -> None:
    other = coordinator.faults.error("JoinGroup", ErrorCode.GROUP_MAX_SIZE_REACHED, group="others", times=-1)
    stranger = coordinator.faults.error(
        "JoinGroup", ErrorCode.GROUP_MAX_SIZE_REACHED, client_id="x", times=-1
    )
    async with member(coordinator) as one:
        await one.wait_assigned(PATIENCE_S)
    assert other.hits == stranger.hits == 0


def test_rules_that_cannot_be(coordinator: Coordinator) -> None:
    faults = coordinator.faults
    with pytest.raises(ValueError, match="no API 'JoinGruop'"):
        faults.drop("JoinGruop")
    with pytest.raises(ValueError, match="CreateTopics has no single error code"):
        faults.error("CreateTopics", ErrorCode.UNKNOWN_SERVER_ERROR)
    with pytest.raises(ValueError, match="counts from 1"):
        faults.drop("JoinGroup", nth=0)


def test_an_error_is_put_where_the_version_has_it(coordinator: Coordinator) -> None:
    """A foreign client reads it: kafka-python, which asks for the offsets of several groups at once (v8)."""
    coordinator.faults.error("OffsetFetch", ErrorCode.NOT_COORDINATOR)
    consumer: Any = kafka.KafkaConsumer(bootstrap_servers=coordinator.bootstrap, group_id="g")
    try:
        assert consumer.committed(kafka.TopicPartition("t", 0)) is None
    finally:
        consumer.close()
    assert len(coordinator.faults.seen("OffsetFetch")) >= 2


def test_the_fixtures(
    ringleader_coordinator: Coordinator, ringleader_session_coordinator: Coordinator
) -> None:
    assert ringleader_coordinator.bootstrap != ringleader_session_coordinator.bootstrap
    ringleader_coordinator.create_topic("mine", 2)
    assert ringleader_coordinator.node.topics.describe("mine") is not None
