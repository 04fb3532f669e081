"""Targets that members of a consumer group compute (`client:NAME`): who is asked, what is taken, and what
happens otherwise. Whole stories under random schedules: tests/simulation/consumer."""

from __future__ import annotations

from typing import Any

import pytest

from ringleader.coordinator.consumer_groups.topics import Topic
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.journal.entries import Incident, IncidentKind
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.leader_shares import share_numbers
from ringleader.protocol.messages import (
    ConsumerGroupHeartbeatRequestComputedMember,
    ConsumerGroupHeartbeatRequestComputedTarget,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseLeaderTask,
)
from tests.coordinator.groups.test_consumer import ORDERS, SETTINGS, Desk, partitions

OURS: dict[str, Any] = {"server_assignor": "client:mine", "leader_user_data": b"\x01"}
BOUND_MS = SETTINGS.group_consumer_leader_timeout_ms
INTERVAL_MS = SETTINGS.group_consumer_heartbeat_interval_ms


def task(response: ConsumerGroupHeartbeatResponse) -> ConsumerGroupHeartbeatResponseLeaderTask:
    assert response.error_code == 0
    assert response.leader_task is not None
    return response.leader_task


def computed(
    epoch: int, shares: dict[str, list[int]], topic: Topic = ORDERS, error: str | None = None
) -> ConsumerGroupHeartbeatRequestComputedTarget:
    numbers = [(name, share_numbers([(0, own)])) for name, own in shares.items()]
    return answer_of(topic, *numbers, epoch=epoch, error=error)


def answer_of(
    topic: Topic, *shares: tuple[str, list[int]], epoch: int = 4, error: str | None = None
) -> ConsumerGroupHeartbeatRequestComputedTarget:
    """A leader's answer for one topic, with shares as they are sent."""
    members = [ConsumerGroupHeartbeatRequestComputedMember(*one) for one in shares]
    return ConsumerGroupHeartbeatRequestComputedTarget(epoch, error, [topic.topic_id], members)


@pytest.fixture
def desk() -> Desk:
    return Desk()


def settled(desk: Desk) -> None:
    """Members a and b have two partitions each, computed by b in group epoch 3."""
    first = task(desk.beat("a", 0, **OURS))
    assert partitions(desk.beat("a", 1, computed_target=computed(first.group_epoch, {"a": [0, 1, 2, 3]})))
    desk.beat("a", 2, [0, 1, 2, 3])
    second = task(desk.beat("b", 0, **OURS))
    halves = computed(second.group_epoch, {"a": [0, 1], "b": [2, 3]})
    assert desk.beat("b", 2, computed_target=halves).member_epoch == 3
    assert partitions(desk.beat("a", 2)) == [0, 1]
    desk.beat("a", 2, [0, 1])
    assert partitions(desk.beat("b", 3)) == [2, 3]
    desk.beat("b", 3, [2, 3])


def test_the_member_that_joins_computes_what_all_get(desk: Desk) -> None:
    joined = desk.beat("a", 0, rack_id="r1", **OURS)
    assert (joined.member_epoch, partitions(joined)) == (1, [])
    leader_task = task(joined)
    assert (leader_task.group_epoch, leader_task.target_epoch, leader_task.assignor) == (2, 1, "mine")
    assert [(one.topic_id, one.name, one.partitions) for one in leader_task.topics] == [
        (ORDERS.topic_id, "orders", 4)
    ]
    assert [one.topics for one in leader_task.subscriptions] == [[0]]
    (member,) = leader_task.members
    assert (member.member_id, member.rack_id, member.subscription) == ("a", "r1", 0)
    assert (member.owned, member.user_data) == ([], b"\x01")
    answered = desk.beat("a", 1, computed_target=computed(2, {"a": [0, 1, 2, 3]}))
    assert (answered.member_epoch, partitions(answered), answered.leader_task) == (2, [0, 1, 2, 3], None)


def test_a_task_tells_what_each_member_was_to_have_and_members_may_get_nothing(desk: Desk) -> None:
    settled(desk)
    leader_task = task(desk.beat("c", 0, subscribed_topic_names=["orders", "nowhere"], **OURS))
    assert {one.member_id: one.owned for one in leader_task.members} == {
        "a": [0, 2, 0, 1],
        "b": [0, 2, 2, 3],
        "c": [],
    }
    assert leader_task.target_epoch == 3
    assert len(leader_task.subscriptions) == 1
    answer = computed(leader_task.group_epoch, {"a": [0, 1, 2, 3]})
    assert desk.beat("c", 3, computed_target=answer).member_epoch == 4


def test_a_member_that_cannot_lead_waits_for_one_that_can(desk: Desk) -> None:
    settled(desk)
    joined = desk.beat("c", 0, server_assignor="client:mine")
    assert joined.leader_task is None
    leader_task = task(desk.beat("a", 3))
    assert desk.beat("b", 3).leader_task is None
    assert {one.member_id: one.user_data for one in leader_task.members} == {
        "a": b"\x01",
        "b": b"\x01",
        "c": None,
    }


def test_without_a_member_that_can_lead_the_coordinator_computes_at_once(desk: Desk) -> None:
    joined = desk.beat("a", 0, server_assignor="client:mine")
    assert (joined.leader_task, partitions(joined)) == (None, [0, 1, 2, 3])


@pytest.mark.parametrize(
    "answer",
    [
        computed(4, {"a": [0, 1, 2]}),
        computed(4, {"a": [0, 1, 2, 3], "c": [3]}),
        computed(4, {"a": [0, 1, 2, 3, 4]}),
        computed(4, {"a": [0, 1, 2, 3, -1]}),
        computed(4, {"a": [0, 1, 2, 3, 3]}),
        computed(4, {"a": [0, 1, 2, 3], "stranger": []}),
        computed(4, {"a": [0, 1, 2, 3]}, Topic("other", b"x" * 16, 4)),
        computed(4, {}, error="it raised"),
        answer_of(ORDERS, ("a", [0, 4, 0, 1, 2, 3]), ("a", [0, 4, 0, 1, 2, 3])),
        answer_of(ORDERS, ("a", [0, 4, 0, 1, 2, 3, 0])),
        answer_of(ORDERS, ("a", [0, 5, 0, 1, 2, 3])),
        answer_of(ORDERS, ("a", [0, -1, 0, 1, 2, 3])),
        answer_of(ORDERS, ("a", [-1, 4, 0, 1, 2, 3])),
        answer_of(ORDERS, ("a", [1, 4, 0, 1, 2, 3])),
    ],
    ids=[
        *("not all", "two owners", "too many", "negative", "twice", "stranger", "unknown", "failed", "again"),
        *("cut off", "long", "negative count", "negative place", "no such place"),
    ],
)
def test_nonsense_is_not_taken_and_another_member_is_asked(desk: Desk, answer: Any) -> None:
    settled(desk)
    assert task(desk.beat("c", 0, **OURS)).group_epoch == 4
    rejected = desk.beat("c", 3, computed_target=answer)
    assert (rejected.error_code, rejected.leader_task) == (0, None)
    leader_task = task(desk.beat("b", 3))
    assert leader_task.group_epoch == 4
    # The one that failed is asked again only when it has joined again.
    good = computed(4, {"a": [0, 1], "b": [2], "c": [3]})
    assert desk.beat("b", 3, [2, 3], computed_target=good).leader_task is None
    assert desk.beat("b", 3, [2]).member_epoch == 4
    desk.topics.put(Topic("orders", ORDERS.topic_id, 5))
    assert desk.beat("c", 3).leader_task is None
    assert task(desk.beat("c", 0, **OURS)).group_epoch == 5


def test_a_leader_that_never_answers_is_given_up_and_the_coordinator_computes(desk: Desk) -> None:
    settled(desk)
    task(desk.beat("c", 0, **OURS))
    desk.wait(BOUND_MS - 1)
    desk.beat("a", 3)
    assert desk.beat("c", 3).member_epoch == 3
    desk.wait(1)
    assert desk.beat("c", 3).member_epoch == 4
    assert desk.beat("a", 3).leader_task is None
    desk.topics.put(Topic("orders", ORDERS.topic_id, 5))
    assert desk.beat("c", 4).leader_task is None
    assert task(desk.beat("a", 4)).group_epoch == 5


def fell_back(desk: Desk) -> list[tuple[str, str]]:
    """Members and reasons."""
    kind = IncidentKind.ASSIGNOR_FELL_BACK
    return [
        (one.member_id, one.reason) for one in desk.events if isinstance(one, Incident) and one.kind is kind
    ]


def test_the_journal_says_who_did_not_compute_and_why(desk: Desk) -> None:
    settled(desk)
    assert fell_back(desk) == []
    task(desk.beat("c", 0, **OURS))
    desk.wait(BOUND_MS)
    silent = "no member has computed the assignment; it did not answer in time as the leader"
    assert fell_back(desk) == [("c", silent)]
    desk.topics.put(Topic("orders", ORDERS.topic_id, 5))
    for leader in ("a", "b"):
        response = desk.beat(leader, 3)
        answer = computed(task(response).group_epoch, {}, error="no idea")
        desk.beat(leader, response.member_epoch, computed_target=answer)
    failure = "its answer as the leader is not taken: it could not compute: no idea"
    can = f"no member can compute client:mine; {failure}"
    assert fell_back(desk)[1:] == [("b", can)]


def test_a_late_answer_shows_that_a_leader_is_alive(desk: Desk) -> None:
    settled(desk)
    task(desk.beat("c", 0, **OURS))
    desk.wait(BOUND_MS)
    before = desk.beat("c", 3).member_epoch
    desk.beat("c", before, computed_target=computed(4, {"c": [0, 1, 2, 3]}))
    desk.topics.put(Topic("orders", ORDERS.topic_id, 5))
    assert task(desk.beat("c", before)).group_epoch == 5


def test_members_that_could_lead_and_are_silent_are_not_awaited_for_ever(desk: Desk) -> None:
    settled(desk)
    desk.beat("c", 0, server_assignor="client:mine")
    desk.wait(INTERVAL_MS + BOUND_MS - 1)
    assert desk.beat("c", 3).member_epoch == 3
    desk.wait(1)
    assert desk.beat("c", 3).member_epoch == 4


@pytest.mark.parametrize("epoch", [-1, -2])
def test_a_leader_that_leaves_has_a_successor(desk: Desk, epoch: int) -> None:
    settled(desk)
    leader_task = task(desk.beat("c", 0, instance_id="i", **OURS))
    desk.beat("c", epoch, instance_id="i")
    again = task(desk.beat("a", 3))
    assert again.group_epoch == leader_task.group_epoch + (epoch == -1)
    late = desk.beat("b", 3, computed_target=computed(again.group_epoch, {"b": [0, 1, 2, 3]}))
    assert late.member_epoch == 3  # it is not the leader
    own = computed(again.group_epoch, {"a": [0, 1, 2, 3]})
    assert desk.beat("a", 3, [0, 1], computed_target=own).member_epoch == again.group_epoch


def test_a_group_keeps_nothing_of_leaders_that_failed_and_left(desk: Desk) -> None:
    settled(desk)
    for number in range(3):
        name = f"failing-{number}"
        joined = desk.beat(name, 0, **OURS)
        answer = computed(task(joined).group_epoch, {"nobody": [0]})
        desk.beat(name, joined.member_epoch, computed_target=answer)
        delegation = desk.shard._core.groups["g"].delegation
        assert delegation is not None
        assert delegation.failed == {name}
        desk.beat(name, -1)
        assert not delegation.failed


def test_an_answer_for_an_earlier_epoch_is_passed_over(desk: Desk) -> None:
    settled(desk)
    first = task(desk.beat("c", 0, **OURS))
    desk.topics.put(Topic("orders", ORDERS.topic_id, 5))
    second = task(desk.beat("c", 3, computed_target=computed(first.group_epoch, {"a": [0, 1, 2, 3]})))
    assert second.group_epoch == first.group_epoch + 1
    everything = {"a": [0, 1, 2, 3, 4]}
    assert desk.beat("c", 3, computed_target=computed(first.group_epoch, everything)).member_epoch == 3
    assert desk.beat("c", 3, computed_target=computed(second.group_epoch, everything)).member_epoch == 5


def test_a_leader_whose_answer_may_be_lost_gets_its_task_again(desk: Desk) -> None:
    settled(desk)
    first = task(desk.beat("c", 0, **OURS))
    assert desk.beat("c", 3).leader_task is None
    full = desk.beat("c", 3, [], rebalance_timeout_ms=30_000, subscribed_topic_names=["orders"])
    assert task(full) == first


def test_the_assignor_of_most_members_is_asked_and_the_first_by_name_of_several(desk: Desk) -> None:
    settled(desk)
    assert desk.beat("c", 0, server_assignor="uniform").leader_task is None
    assert desk.beat("a", 3, server_assignor="range").member_epoch == 3
    assert desk.beat("b", 3, server_assignor="range").leader_task is None
    assert desk.beat("c", 3).member_epoch == 4


def test_other_user_data_begins_an_epoch(desk: Desk) -> None:
    settled(desk)
    assert desk.beat("a", 3, leader_user_data=b"\x01").leader_task is None
    leader_task = task(desk.beat("a", 3, leader_user_data=b"\x02"))
    assert {one.member_id: one.user_data for one in leader_task.members} == {"a": b"\x02", "b": b"\x01"}


def test_what_a_leader_has_to_know_survives_a_restart(desk: Desk) -> None:
    settled(desk)
    desk.beat("c", 0, **OURS)
    desk.restart()
    leader_task = task(desk.beat("b", 3))
    assert {one.member_id: one.user_data for one in leader_task.members} == dict.fromkeys("abc", b"\x01")


def test_a_task_that_is_too_large_is_the_coordinators(desk: Desk) -> None:
    desk = Desk(GroupSettings(group_consumer_assignment_interval_ms=0, group_max_record_bytes=16_384))
    joined = desk.beat("a", 0, server_assignor="client:mine", leader_user_data=bytes(16_384))
    assert (joined.leader_task, partitions(joined)) == (None, [0, 1, 2, 3])


def test_a_member_says_no_more_than_it_may(desk: Desk) -> None:
    most = SETTINGS.member_max_metadata_bytes
    refused = desk.beat("a", 0, server_assignor="client:mine", leader_user_data=bytes(most))
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    for name in ("client:", "client:" + "n" * 250, "clients:mine"):
        assert desk.beat("a", 0, server_assignor=name).error_code == ErrorCode.UNSUPPORTED_ASSIGNOR


def test_a_member_that_is_away_is_not_awaited_as_the_leader(desk: Desk) -> None:
    first = task(desk.beat("a", 0, instance_id="i", **OURS))
    everything = computed(first.group_epoch, {"a": [0, 1, 2, 3]})
    desk.beat("a", 1, instance_id="i", computed_target=everything)
    desk.beat("a", -2, instance_id="i")
    assert desk.beat("b", 0, server_assignor="client:mine").member_epoch == 3


def test_the_first_target_of_a_leader_waits_for_no_interval() -> None:
    desk = Desk(GroupSettings(group_consumer_assignment_interval_ms=1_000))
    first = task(desk.beat("a", 0, **OURS))
    answered = desk.beat("a", 1, computed_target=computed(first.group_epoch, {"a": [0, 1, 2, 3]}))
    assert (answered.member_epoch, partitions(answered)) == (2, [0, 1, 2, 3])
