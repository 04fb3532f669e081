"""Groups of the consumer protocol in a shard: offsets of members, memory, and who owns the shard."""

from __future__ import annotations

import pytest

from ringleader.coordinator.consumer_groups.topics import Topic, Topics
from ringleader.coordinator.groups.shard import Shard
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from tests.coordinator.groups.mixed_desk import with_settings
from tests.coordinator.groups.test_consumer import ORDERS, SETTINGS, Desk, Ticket


class OffsetDesk(Desk):
    """Reads and commits offsets, too."""

    def commit_in_transaction(self, member: str, epoch: int, *partitions: int) -> list[int]:
        rows = [TxnOffsetCommitRequestPartition(one, 5) for one in partitions]
        topics = [TxnOffsetCommitRequestTopic("orders", rows)]
        response = self.ask(TxnOffsetCommitRequest("t", "g", 7, 0, epoch, member, topics=topics), 3)
        return [one.error_code for topic in response.topics for one in topic.partitions]

    def read(self, member: str | None, epoch: int) -> int:
        """The committed offset of partition 0; below -1: an error code, negative."""
        found = self.shard.fetch_offsets("g", [("orders", [0])], False, Ticket(9), member, epoch)
        assert found is not None
        return -found.error_code or found.topics[0].partitions[0].committed_offset


@pytest.fixture
def desk() -> OffsetDesk:
    return OffsetDesk()


def test_commits_in_a_transaction_are_checked_too_and_say_so_in_words_of_producers(desk: OffsetDesk) -> None:
    desk.beat("a", 0)
    assert desk.commit_in_transaction("a", 2, 0) == [0]
    assert desk.commit_in_transaction("", -1, 0) == [0], "a producer that says nothing of a member"
    assert desk.commit_in_transaction("b", 2, 0) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert desk.commit_in_transaction("b", -1, 0) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert desk.commit_in_transaction("a", 3, 0) == [ErrorCode.ILLEGAL_GENERATION]
    desk.topics.put(Topic("orders", ORDERS.topic_id, 5))
    desk.beat("a", 2, [0, 1, 2, 3])
    assert desk.commit_in_transaction("a", 2, 0, 3) == [0, 0]
    before = len(desk.log)
    assert desk.commit_in_transaction("a", 2, 0, 4) == [ErrorCode.ILLEGAL_GENERATION] * 2, "all or nothing"
    assert len(desk.log) == before
    assert desk.commit_in_transaction("a", 3, 0, 4) == [0, 0]


def test_offsets_are_answered_to_a_member_at_its_epoch(desk: OffsetDesk) -> None:
    desk.beat("a", 0)
    desk.commit("a", 2, 0)
    assert desk.read("a", 2) == 5
    assert desk.read(None, -1) == 5, "an operator"
    assert desk.read("a", 3) == -ErrorCode.STALE_MEMBER_EPOCH
    assert desk.read("a", 0) == -ErrorCode.STALE_MEMBER_EPOCH
    assert desk.read("b", 2) == -ErrorCode.UNKNOWN_MEMBER_ID
    assert desk.read("", -1) == -ErrorCode.UNKNOWN_MEMBER_ID
    assert desk.read(None, 2) == -ErrorCode.UNKNOWN_MEMBER_ID
    desk.beat("a", -1)
    assert desk.read("a", 2) == -ErrorCode.UNKNOWN_MEMBER_ID
    assert desk.read(None, -1) == 5


def test_a_group_of_the_classic_protocol_asks_no_reader_for_a_member(desk: OffsetDesk) -> None:
    desk.commit("", -1, 0)
    assert desk.read("a", 2) == 5


def test_what_is_said_of_a_reader_waits_for_the_record_that_says_so(desk: OffsetDesk) -> None:
    desk.beat("a", 0)
    desk.commit("a", 2, 0)
    leave = Ticket()
    assert desk.shard.handle(ConsumerGroupHeartbeatRequest("g", "a", -1), leave, desk.now_ms) is None
    reader = Ticket()
    assert desk.shard.fetch_offsets("g", [("orders", [0])], False, reader, "a", 2) is None
    answers = desk._settle()
    assert answers[reader].error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_anybody_commits_in_a_transaction_into_an_empty_group(desk: OffsetDesk) -> None:
    desk.beat("a", 0)
    desk.beat("a", -1)
    assert desk.commit_in_transaction("a", -1, 0) == [0]


def test_the_owner_asks_the_log_whether_it_still_is_the_owner() -> None:
    topics = Topics()
    topics.put(ORDERS)
    shard = Shard(0, SETTINGS, str, confirmed_reads=True, topics=topics)
    shard.loaded(0, 0)

    def written(now_ms: int) -> int:
        count = 0
        while shard.dirty:
            for append in shard.drain().appends:
                count += len(append.records)
                shard.durable(append.position, now_ms)
        return count

    due_ms = shard.next_deadline()
    assert due_ms is not None
    shard.tick(due_ms)
    assert written(due_ms) == 0, "nobody could be misled"
    request = ConsumerGroupHeartbeatRequest("g", "a", 0, rebalance_timeout_ms=30_000)
    request.subscribed_topic_names, request.topic_partitions = ["orders"], []
    shard.handle(request, Ticket(), due_ms)
    assert written(due_ms)
    due_ms = shard.next_deadline()
    assert due_ms is not None
    shard.tick(due_ms)
    assert written(due_ms) == 1


# ---- memory ----


def test_members_and_what_they_are_to_have_take_memory_of_which_there_is_so_much() -> None:
    small = Desk(SETTINGS.model_copy(update={"group_metadata_max_bytes": 20_000}))
    small.topics.put(Topic("large", b"l" * 16, 100))
    assert small.beat("a", 0).error_code == 0
    refused = small.beat("b", 0, subscribed_topic_names=["orders", "large"])
    assert refused.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED, "for the partitions that it would get"
    assert small.beat("a", 2, subscribed_topic_names=["large"]).error_code == refused.error_code
    assert small.beat("b", 0, subscribed_topic_names=["n" * 20_000]).error_code == refused.error_code
    assert small.beat("a", 2, owned=[0, 1, 2, 3]).error_code == 0, "it keeps what it has"
    assert small.beat("a", 2, rack_id="r" * 1_000).error_code == 0
    counted = small.shard._core.memory.total.counted
    assert 3_000 < counted < 20_000
    small.restart()
    assert small.shard._core.memory.total.counted == counted
    small.beat("a", -1)
    assert small.shard._core.memory.total.counted == 0
    small.wait(1)
    assert small.shard.delete_group("g", Ticket(), small.now_ms) is None
    small._settle()
    assert small.shard._core.memory.total.counted == 0


def test_a_static_member_takes_the_memory_of_its_predecessor() -> None:
    small = Desk(SETTINGS.model_copy(update={"group_metadata_max_bytes": 6_000}))
    assert small.beat("a", 0, instance_id="i").error_code == 0
    assert small.beat("c", 0).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert small.beat("a", -2, instance_id="i").error_code == 0
    assert small.beat("b", 0, instance_id="i").error_code == 0


def test_a_classic_member_in_such_a_group_is_refused_likewise() -> None:
    small = with_settings(group_metadata_max_bytes=6_000)
    small.beat("new", 0)
    offered = small.joins(small.joins("").member_id)
    assert offered.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    described = small.shard.describe_consumer("g", Ticket())
    assert described is not None
    assert [one.member_id for one in described.members] == ["new"]


def test_a_refused_member_makes_no_group() -> None:
    small = Desk(SETTINGS.model_copy(update={"group_metadata_max_bytes": 1_000}))
    assert small.beat("a", 0).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert small.listed() == []
    assert small.log == []
