"""Groups of the consumer protocol in a shard: which requests are refused with which error, and what the rest
do. Whole stories under random schedules: tests/simulation/consumer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from ringleader.coordinator.consumer_groups.topics import Topic, Topics
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.groups.shard import Shard
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    ConsumerGroupDescribeResponseDescribedGroup,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)

ORDERS = Topic("orders", b"o" * 16, 4)
SETTINGS = GroupSettings(group_consumer_assignment_interval_ms=0, group_consumer_max_size=3)
SESSION_MS = SETTINGS.group_consumer_session_timeout_ms


@dataclass(eq=False)
class Ticket:
    api_version: int = 1
    client_id: str = "client"
    client_host: str = "/127.0.0.1"
    principal: str = ""
    connection: object = None


class Desk:
    """A shard whose log has everything at once."""

    def __init__(self, settings: GroupSettings = SETTINGS) -> None:
        self.topics = Topics()
        self.topics.put(ORDERS)
        self.settings = settings
        self.log: list[tuple[bytes, bytes | None]] = []
        self.events: list[Any] = []
        self.now_ms = 1_000_000
        self.shard = self._load()

    def _load(self) -> Shard:
        shard = Shard(0, self.settings, lambda prefix: f"{prefix}-fresh", topics=self.topics)
        shard.replay(self.log)
        shard.loaded(self.now_ms, self.now_ms)
        return shard

    def restart(self) -> None:
        self.shard = self._load()

    def wait(self, ms: int) -> None:
        self.now_ms += ms
        self.shard.tick(self.now_ms)
        self._settle()

    def _settle(self) -> dict[Any, Any]:
        answers: dict[Any, Any] = {}
        while self.shard.dirty:
            box = self.shard.drain()
            self.events += box.events
            for append in box.appends:
                self.log += append.records
                self.shard.durable(append.position, self.now_ms)
            answers |= {answer.ticket: answer.response for answer in box.answers}
        return answers

    def ask(self, request: Any, version: int = 1) -> Any:
        ticket = Ticket(version)
        response = self.shard.handle(request, ticket, self.now_ms)
        answers = self._settle()
        return answers[ticket] if response is None else response

    def beat(
        self, member: str, epoch: int, owned: list[int] | None = None, version: int = 1, **more: Any
    ) -> ConsumerGroupHeartbeatResponse:
        request = ConsumerGroupHeartbeatRequest("g", member, epoch)
        if epoch == 0:
            request.rebalance_timeout_ms, request.topic_partitions = 30_000, []
            request.subscribed_topic_names = ["orders"]
        if owned is not None:
            topic = ConsumerGroupHeartbeatRequestTopicPartitions(ORDERS.topic_id, owned)
            request.topic_partitions = [topic] if owned else []
        for name, value in more.items():
            setattr(request, name, value)
        response: ConsumerGroupHeartbeatResponse = self.ask(request, version)
        return response

    def commit(
        self, member: str, epoch: int, *partitions: int, version: int = 9, offset: int = 5
    ) -> list[int]:
        rows = [OffsetCommitRequestPartition(one, offset) for one in partitions]
        request = OffsetCommitRequest(
            "g", epoch, member, topics=[OffsetCommitRequestTopic(name="orders", partitions=rows)]
        )
        response = self.ask(request, version)
        return [one.error_code for topic in response.topics for one in topic.partitions]

    def join(self, member: str = "") -> int:
        request = JoinGroupRequest("g", 10_000, 30_000, member, protocol_type="consumer")
        request.protocols = [JoinGroupRequestProtocol("range", b"")]
        ticket = Ticket(5)
        response = self.shard.handle(request, ticket, self.now_ms) or self._settle().get(ticket)
        return -1 if response is None else int(response.error_code)

    def described(self) -> ConsumerGroupDescribeResponseDescribedGroup:
        found = self.shard.describe_consumer("g", Ticket())
        assert found is not None
        return found

    def listed(self) -> list[tuple[str, str, str]]:
        found = self.shard.list_groups((), (), Ticket())
        assert found is not None
        return [(one.group_id, one.group_state, one.group_type) for one in found]


def partitions(response: ConsumerGroupHeartbeatResponse) -> list[int] | None:
    if response.assignment is None:
        return None
    return [one for topic in response.assignment.topic_partitions for one in topic.partitions]


@pytest.fixture
def desk() -> Desk:
    return Desk()


# ---- requests that are wrong in themselves ----


@pytest.mark.parametrize(
    ("epoch", "more", "text"),
    [
        (0, {"member_id": ""}, "MemberId can't be empty."),
        (3, {"member_id": "", "version": 0}, "MemberId can't be empty."),
        (-1, {"member_id": "", "version": 0}, "MemberId can't be empty."),
        (0, {"group_id": ""}, "GroupId can't be empty."),
        (0, {"instance_id": ""}, "InstanceId can't be empty."),
        (0, {"rack_id": ""}, "RackId can't be empty."),
        (0, {"rebalance_timeout_ms": -1}, "RebalanceTimeoutMs must be provided in first request."),
        (0, {"topic_partitions": None}, "TopicPartitions must be empty when (re-)joining."),
        (0, {"owned": [0]}, "TopicPartitions must be empty when (re-)joining."),
        (0, {"subscribed_topic_names": None}, "Either SubscribedTopicNames or SubscribedTopicRegex"),
        (-2, {}, "InstanceId can't be null."),
        (-3, {}, "MemberEpoch is invalid."),
        (-(2**31), {}, "MemberEpoch is invalid."),
    ],
)
def test_an_invalid_request(desk: Desk, epoch: int, more: dict[str, Any], text: str) -> None:
    response = desk.beat("m", epoch, **more)
    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert text in (response.error_message or "")
    assert desk.log == []
    assert desk.listed() == []


def test_an_assignor_that_there_is_not(desk: Desk) -> None:
    response = desk.beat("m", 0, server_assignor="best")
    assert response.error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert (
        response.error_message == "ServerAssignor best is not supported. Supported assignors: uniform, range."
    )
    assert desk.beat("m", 0, server_assignor="range").error_code == 0


def test_members_ask_for_assignors_that_the_setting_names_and_the_first_is_the_default() -> None:
    settings = SETTINGS.model_copy(update={"group_consumer_assignors": ("range", "rack")})
    desk = Desk(settings)
    assert desk.beat("m", 0, server_assignor="uniform").error_code == ErrorCode.UNSUPPORTED_ASSIGNOR
    assert desk.beat("m", 0).error_code == 0
    assert desk.beat("n", 0).error_code == 0
    assert desk.described().assignor_name == "range"
    assert partitions(desk.beat("m", 2)) == [0, 1]
    assert desk.beat("m", 2, [0, 1], server_assignor="rack").error_code == 0
    assert desk.described().assignor_name == "rack"
    # The setting has changed since: the assignor that members asked for is served no more.
    desk.settings = SETTINGS
    desk.restart()
    desk.topics.put(Topic("orders", ORDERS.topic_id, 5))
    assert desk.beat("m", 3, [0, 1]).error_code == 0


def test_only_a_join_makes_a_group(desk: Desk) -> None:
    for epoch in (1, 2**31 - 1, -1):
        assert desk.beat("m", epoch).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert desk.beat("m", -2, instance_id="i").error_code == ErrorCode.GROUP_ID_NOT_FOUND


# ---- joining, and moving partitions ----


def test_a_member_gets_all_then_shares_and_its_partitions_move_when_it_gave_them_up(desk: Desk) -> None:
    first = desk.beat("a", 0)
    assert (first.member_epoch, partitions(first)) == (2, [0, 1, 2, 3])
    assert partitions(desk.beat("a", 2, [0, 1, 2, 3])) is None
    second = desk.beat("b", 0)
    assert (second.member_epoch, partitions(second)) == (3, [])
    answer = desk.beat("a", 2)
    assert (answer.member_epoch, partitions(answer)) == (2, [0, 1])
    assert partitions(desk.beat("b", 3)) is None
    done = desk.beat("a", 2, [0, 1])
    assert (done.member_epoch, partitions(done)) == (3, None)
    assert partitions(desk.beat("b", 3)) == [2, 3]
    assert desk.listed() == [("g", "Stable", "consumer")]


def test_a_heartbeat_without_news_writes_nothing(desk: Desk) -> None:
    desk.beat("a", 0)
    desk.beat("a", 2, [0, 1, 2, 3])
    before = len(desk.log)
    for _ in range(5):
        assert desk.beat("a", 2).assignment is None
    assert len(desk.log) == before


def test_the_answer_to_a_full_request_has_the_whole_assignment(desk: Desk) -> None:
    desk.beat("a", 0)
    again = desk.beat("a", 2, [0, 1], rebalance_timeout_ms=30_000, subscribed_topic_names=["orders"])
    assert partitions(again) == [0, 1, 2, 3]


def test_a_request_that_does_not_say_what_its_member_has_is_no_full_one(desk: Desk) -> None:
    desk.beat("a", 0)
    answer = desk.beat("a", 2, rebalance_timeout_ms=30_000, subscribed_topic_names=["orders"])
    assert (answer.error_code, partitions(answer)) == (0, None)


def test_the_first_version_gives_ids(desk: Desk) -> None:
    response = desk.beat("", 0, version=0)
    assert (response.error_code, response.member_id) == (0, "consumer-fresh")


def test_a_full_group(desk: Desk) -> None:
    for name in ("a", "b", "c"):
        assert desk.beat(name, 0).error_code == 0
    assert desk.beat("d", 0).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert desk.beat("a", 0).error_code == 0


def test_a_group_whose_first_member_is_refused_takes_no_place_of_others() -> None:
    desk = Desk(GroupSettings(shard_max_groups=2))
    for number in range(5):
        refused = desk.beat("a", 0, group_id=f"g{number}", subscribed_topic_regex="(")
        assert refused.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert desk.listed() == []
    assert [desk.beat("a", 0, group_id=name).error_code for name in ("one", "two", "three")] == [
        *(ErrorCode.NONE, ErrorCode.NONE),
        ErrorCode.POLICY_VIOLATION,
    ]


def test_a_topic_that_grows_begins_an_epoch_with_the_next_heartbeat(desk: Desk) -> None:
    desk.beat("a", 0)
    desk.topics.put(Topic("other", b"x" * 16, 4))
    assert desk.beat("a", 2).member_epoch == 2
    desk.topics.put(Topic("orders", ORDERS.topic_id, 5))
    grown = desk.beat("a", 2)
    assert (grown.member_epoch, partitions(grown)) == (3, [0, 1, 2, 3, 4])


def test_changes_within_the_interval_are_computed_together() -> None:
    desk = Desk(GroupSettings(group_consumer_assignment_interval_ms=1_000))
    desk.beat("a", 0)
    desk.beat("b", 0)
    assert desk.beat("a", 2).member_epoch == 2
    assert desk.listed() == [("g", "Assigning", "consumer")]
    desk.wait(1_000)
    assert partitions(desk.beat("a", 2)) == [0, 1]


# ---- epochs ----


def test_an_epoch_of_the_future_is_fenced(desk: Desk) -> None:
    desk.beat("a", 0)
    assert desk.beat("a", 3).error_code == ErrorCode.FENCED_MEMBER_EPOCH


def test_a_lost_answer_is_sent_again(desk: Desk) -> None:
    desk.beat("a", 0)
    desk.topics.put(Topic("orders", ORDERS.topic_id, 5))
    assert desk.beat("a", 2, [0, 1, 2, 3]).member_epoch == 3
    assert desk.beat("a", 2).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    assert desk.beat("a", 2, [7]).error_code == ErrorCode.FENCED_MEMBER_EPOCH
    again = desk.beat("a", 2, [0, 1, 2, 3], rebalance_timeout_ms=30_000, subscribed_topic_names=["orders"])
    assert (again.member_epoch, partitions(again)) == (3, [0, 1, 2, 3, 4])


def test_a_member_that_nobody_knows(desk: Desk) -> None:
    desk.beat("a", 0)
    assert desk.beat("b", 2).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert desk.beat("b", -1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert desk.beat("b", 2, instance_id="i").error_code == ErrorCode.UNKNOWN_MEMBER_ID


# ---- static members ----


def test_a_static_member_comes_back_to_its_partitions(desk: Desk) -> None:
    desk.beat("a", 0, instance_id="i")
    desk.beat("b", 0)
    desk.beat("a", 2, [0, 1], instance_id="i")
    assert desk.beat("c", 0, instance_id="i").error_code == ErrorCode.UNRELEASED_INSTANCE_ID
    assert desk.beat("c", 3, instance_id="i").error_code == ErrorCode.FENCED_INSTANCE_ID
    away = desk.beat("a", -2, instance_id="i")
    assert (away.error_code, away.member_epoch) == (0, -2)
    back = desk.beat("c", 0, instance_id="i")
    assert (back.member_epoch, partitions(back)) == (3, [0, 1])
    assert desk.beat("a", -1, instance_id="i").error_code == ErrorCode.FENCED_INSTANCE_ID


def test_a_static_member_that_does_not_come_back_is_missed_after_its_session(desk: Desk) -> None:
    desk.beat("a", 0, instance_id="i")
    desk.beat("a", -2, instance_id="i")
    desk.wait(SESSION_MS - 1)
    assert desk.listed() != [("g", "Empty", "consumer")]
    desk.wait(1)
    assert desk.listed() == [("g", "Empty", "consumer")]


# ---- time ----


def test_a_silent_member_is_removed_and_the_others_get_its_partitions(desk: Desk) -> None:
    desk.beat("a", 0)
    desk.wait(SESSION_MS - 1)
    desk.beat("b", 0)
    desk.wait(1)
    answer = desk.beat("b", 3)
    assert partitions(answer) == [0, 1, 2, 3]
    assert desk.beat("a", 2).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_does_not_give_up_is_removed_after_its_rebalance_timeout(desk: Desk) -> None:
    desk.beat("a", 0)
    desk.beat("b", 0)
    desk.beat("a", 2, [0, 1, 2, 3])
    desk.wait(29_999)
    assert desk.beat("a", 2, [0, 1, 2, 3]).error_code == 0
    desk.wait(1)
    assert desk.beat("a", 2, [0, 1, 2, 3]).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert partitions(desk.beat("b", 3)) == [0, 1, 2, 3]


def test_a_restart_gives_every_member_a_full_session_and_keeps_its_epoch(desk: Desk) -> None:
    desk.beat("a", 0)
    desk.wait(SESSION_MS - 1)
    desk.restart()
    desk.wait(SESSION_MS - 1)
    assert desk.beat("a", 2, [0, 1, 2, 3]).member_epoch == 2


def test_a_restart_gives_the_whole_time_for_what_is_still_to_be_given_up(desk: Desk) -> None:
    desk.beat("a", 0)
    desk.beat("b", 0)
    desk.beat("a", 2, [0, 1, 2, 3])
    desk.wait(20_000)
    desk.restart()
    desk.wait(29_999)
    assert desk.beat("a", 2, [0, 1, 2, 3]).error_code == 0
    desk.wait(1)
    assert desk.beat("a", 2, [0, 1, 2, 3]).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_clock_that_was_set_back_holds_no_target_up() -> None:
    desk = Desk(GroupSettings(group_consumer_assignment_interval_ms=1_000))
    desk.beat("a", 0)
    desk.now_ms -= 500_000
    desk.restart()
    assert desk.beat("b", 0).member_epoch == 3


# ---- commits ----


def test_whose_commit_counts(desk: Desk) -> None:
    desk.beat("a", 0)
    assert desk.commit("a", 2, 0) == [0]
    assert desk.commit("a", 2, 0, version=8) == [ErrorCode.UNSUPPORTED_VERSION]
    assert desk.commit("a", 3, 0) == [ErrorCode.STALE_MEMBER_EPOCH]
    assert desk.commit("b", 2, 0) == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert desk.commit("", -1, 0) == [ErrorCode.UNKNOWN_MEMBER_ID]


def test_a_commit_of_an_older_epoch_counts_for_what_the_member_has_had_since(desk: Desk) -> None:
    desk.beat("a", 0)
    desk.topics.put(Topic("orders", ORDERS.topic_id, 5))
    desk.beat("a", 2, [0, 1, 2, 3])
    stale = int(ErrorCode.STALE_MEMBER_EPOCH)
    assert desk.commit("a", 2, 0, 3) == [0, 0]
    assert desk.commit("a", 2, 0, 4) == [stale, stale]
    assert desk.commit("a", 2, 0, 9) == [stale, stale]


def test_anybody_commits_into_an_empty_group(desk: Desk) -> None:
    desk.beat("a", 0)
    desk.beat("a", -1)
    assert desk.commit("", -1, 0) == [0]


# ---- beside the classic protocol ----


def test_an_empty_group_changes_its_protocol_freely(desk: Desk) -> None:
    """Members of both protocols in one group: see test_mixed.py."""
    desk.beat("a", 0)
    desk.commit("a", 2, 0)
    desk.beat("a", -1)
    assert desk.join() == ErrorCode.MEMBER_ID_REQUIRED
    assert desk.listed() == [("g", "Empty", "classic")]
    assert desk.beat("b", 0).error_code == 0
    desk.restart()
    assert desk.listed() == [("g", "Stable", "consumer")]
    found = desk.shard.fetch_offsets("g", [("orders", [0])], False, Ticket())
    assert found is not None
    assert found.topics[0].partitions[0].committed_offset == 5


def test_describing_and_deleting(desk: Desk) -> None:
    desk.beat("a", 0, instance_id="i", server_assignor="range")
    described = desk.shard.describe_consumer("g", Ticket())
    assert described is not None
    assert (described.group_state, described.group_epoch, described.assignment_epoch) == ("Stable", 2, 2)
    assert described.assignor_name == "range"
    [member] = described.members
    assert (member.member_id, member.instance_id, member.member_epoch, member.member_type) == ("a", "i", 2, 1)
    [topic] = member.assignment.topic_partitions
    assert (topic.topic_name, topic.partitions) == ("orders", [0, 1, 2, 3])
    assert member.target_assignment == member.assignment
    classic = desk.shard.describe("g", 6, Ticket())
    assert classic is not None
    assert classic.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    refused = desk.shard.delete_group("g", Ticket(), desk.now_ms)
    assert refused is not None
    assert refused.error_code == ErrorCode.NON_EMPTY_GROUP
    desk.beat("a", -1, instance_id="i")
    ticket = Ticket()
    desk.shard.delete_group("g", ticket, desk.now_ms)
    assert desk._settle()[ticket].error_code == 0
    desk.restart()
    assert desk.listed() == []


def test_what_a_member_has_still_to_give_up_is_described_with_what_it_keeps(desk: Desk) -> None:
    desk.beat("a", 0)
    desk.beat("b", 0)
    assert partitions(desk.beat("a", 2, [0, 1, 2, 3])) == [0, 1]
    described = desk.shard.describe_consumer("g", Ticket())
    assert described is not None
    [topic] = described.members[0].assignment.topic_partitions
    assert topic.partitions == [0, 1, 2, 3]


def test_a_full_store_refuses_before_anything_changes(desk: Desk) -> None:
    desk.beat("a", 0)
    desk.shard.set_full(True, desk.now_ms)
    before = len(desk.log)
    requests: list[dict[str, Any]] = [
        {"owned": []},
        {"rebalance_timeout_ms": 1},
        {"subscribed_topic_names": ["orders"]},
        {"rack_id": "r"},
        {"server_assignor": "range"},
    ]
    refused = [desk.beat("a", 2, **more) for more in requests]
    for response in (*refused, desk.beat("b", 0), desk.beat("a", -1), desk.beat("a", 2, instance_id="i")):
        assert response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    desk.wait(2 * SESSION_MS)
    assert desk.beat("a", 2).error_code == 0, "it has no news"
    assert len(desk.log) == before
    desk.shard.set_full(False, desk.now_ms)
    assert desk.beat("a", 2, [0, 1, 2, 3]).error_code == 0
