"""Faults on request: what an application's tests ask of the coordinator, seen by real clients."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import kafka
import pytest

from ringleader import DeliveryTimeoutError, ProduceError, Producer, ProducerFencedError
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


# ---- of producers ----

SOON: dict[str, Any] = {"linger_ms": 0, "retry_backoff_ms": 1, "retry_backoff_max_ms": 1}


async def test_a_record_whose_answer_is_lost_is_there_once(coordinator: Coordinator) -> None:
    async with Producer(coordinator.bootstrap, **SOON) as producer:
        rule = coordinator.faults.drop("Produce", done=True)
        found = await producer.send_and_wait("t", b"a", partition=0)
        assert rule.hits == 1
    assert [(one.offset, one.value) for one in coordinator.records("t")] == [(found.offset, b"a")]


@pytest.mark.parametrize("done", [False, True])
async def test_a_record_that_nobody_ever_confirms_is_written_or_not(
    coordinator: Coordinator, done: bool
) -> None:
    async with Producer(
        coordinator.bootstrap, **SOON, delivery_timeout_ms=1_500, request_timeout_ms=1_500
    ) as producer:
        coordinator.faults.drop("Produce", done=done)
        coordinator.faults.error("Produce", ErrorCode.NOT_ENOUGH_REPLICAS, times=-1)
        with pytest.raises(DeliveryTimeoutError):
            await producer.send_and_wait("t", b"a")
    assert [one.value for one in coordinator.records("t")] == [b"a"] * done


def test_an_answer_that_a_foreign_producer_does_not_get(coordinator: Coordinator) -> None:
    producer: Any = kafka.KafkaProducer(bootstrap_servers=coordinator.bootstrap, enable_idempotence=True)
    try:
        rule = coordinator.faults.drop("Produce", done=True)
        producer.send("t", b"a", partition=0).get(PATIENCE_S)
        assert rule.hits == 1
    finally:
        producer.close()
    assert [one.value for one in coordinator.records("t")] == [b"a"]


async def test_a_write_that_goes_wrong_once_and_one_that_is_refused(coordinator: Coordinator) -> None:
    async with Producer(coordinator.bootstrap, **SOON) as producer:
        coordinator.faults.error("Produce", ErrorCode.NOT_ENOUGH_REPLICAS)
        await producer.send_and_wait("t", b"a")
        coordinator.faults.error("Produce", ErrorCode.INVALID_RECORD)
        with pytest.raises(ProduceError, match="INVALID_RECORD") as raised:
            await producer.send_and_wait("t", b"b")
        assert raised.value.code == ErrorCode.INVALID_RECORD
        await producer.send_and_wait("t", b"c")
    assert sorted(one.value or b"" for one in coordinator.records("t")) == [b"a", b"c"]


async def test_a_write_that_takes_longer_than_it_may(coordinator: Coordinator) -> None:
    async with Producer(
        coordinator.bootstrap, **SOON, delivery_timeout_ms=300, request_timeout_ms=300
    ) as producer:
        coordinator.faults.delay("Produce", 3_600)
        with pytest.raises(DeliveryTimeoutError):
            await producer.send_and_wait("t", b"a")
        coordinator.faults.clear()
        coordinator.faults.disconnect()
    assert coordinator.records("t") == []


async def test_a_commit_whose_answer_is_lost(coordinator: Coordinator) -> None:
    async with Producer(coordinator.bootstrap, transactional_id="a", **SOON) as producer:
        rule = coordinator.faults.drop("EndTxn", done=True)
        async with producer.transaction():
            await producer.send("t", b"a")
        assert rule.hits == 1
        async with producer.transaction():
            await producer.send("t", b"b")
    assert sorted(one.value or b"" for one in await asyncio.to_thread(coordinator.records, "t")) == [
        b"a",
        b"b",
    ]


async def test_a_producer_is_shut_out(coordinator: Coordinator) -> None:
    with pytest.raises(KeyError):
        coordinator.fence_producer("a")
    async with Producer(coordinator.bootstrap, transactional_id="a", **SOON) as producer:
        async with producer.transaction():
            await producer.send("t", b"before")
        producer.begin_transaction()
        await producer.send_and_wait("t", b"open")
        await asyncio.to_thread(coordinator.fence_producer, "a")
        with pytest.raises(ProducerFencedError, match="another producer has begun with it"):
            await producer.commit_transaction()
    assert [one.value for one in await asyncio.to_thread(coordinator.records, "t")] == [b"before"]
