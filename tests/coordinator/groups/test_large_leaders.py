"""Targets of large groups that members compute: the task is made in steps, and the answer is looked at in
steps. Either comes to an end, also when the group changes meanwhile. Whole stories:
tests/simulation/consumer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ringleader.coordinator.consumer_groups.topics import Topic, Topics
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.groups.shard import Shard
from ringleader.coordinator.groups.targets import SOON_MS
from ringleader.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestComputedMember,
    ConsumerGroupHeartbeatRequestComputedTarget,
    ConsumerGroupHeartbeatResponse,
)
from tests.coordinator.groups.test_consumer import ORDERS, SETTINGS, Desk, Ticket, partitions
from tests.coordinator.groups.test_cost import calls
from tests.coordinator.groups.test_leaders import (
    BOUND_MS,
    INTERVAL_MS,
    OURS,
    computed,
    fell_back,
    settled,
    task,
)
from tests.coordinator.groups.test_targets import STEPPED, steps


@pytest.fixture
def desk() -> Desk:
    """Members a and b have two partitions each; from here on all takes several steps."""
    desk = Desk()
    settled(desk)
    desk.settings = STEPPED.model_copy(update={"group_consumer_max_size": 4})
    desk.restart()
    return desk


def epochs(desk: Desk) -> tuple[int, int]:
    """Of the group and of its target."""
    group = desk.shard._groups["g"].consumer
    assert group is not None
    return group.epoch, group.assignment_epoch


def led(desk: Desk, member: str, epoch: int) -> ConsumerGroupHeartbeatResponse:
    """The heartbeat at which a member is given the task, which is made by then."""
    assert steps(desk) > 1
    answered = desk.beat(member, epoch)
    task(answered)
    return answered


def test_a_task_is_made_while_members_are_told_to_come_soon(desk: Desk) -> None:
    joined = desk.beat("c", 0, **OURS)
    assert (joined.leader_task, joined.heartbeat_interval_ms) == (None, SOON_MS)
    assert desk.beat("a", 3).leader_task is None
    answered = led(desk, "b", 3)
    assert answered.heartbeat_interval_ms == INTERVAL_MS
    leader_task = task(answered)
    assert (leader_task.group_epoch, leader_task.target_epoch) == (4, 3)
    assert {one.member_id: one.owned for one in leader_task.members} == {
        "a": [0, 2, 0, 1],
        "b": [0, 2, 2, 3],
        "c": [],
    }
    assert steps(desk) == 0
    assert desk.beat("c", 3).leader_task is None
    full = desk.beat("b", 3, [2, 3], rebalance_timeout_ms=30_000, subscribed_topic_names=["orders"])
    assert task(full) == leader_task


def test_an_answer_is_looked_at_while_members_are_told_to_come_soon(desk: Desk) -> None:
    desk.beat("c", 0, **OURS)
    led(desk, "c", 3)
    answered = desk.beat("c", 3, computed_target=computed(4, {"a": [0], "b": [1, 2], "c": [3]}))
    assert (answered.member_epoch, answered.heartbeat_interval_ms) == (3, SOON_MS)
    assert desk.beat("b", 3).leader_task is None
    assert steps(desk) > 1
    assert epochs(desk) == (4, 4)
    answered = desk.beat("a", 3)
    assert (answered.heartbeat_interval_ms, partitions(answered)) == (INTERVAL_MS, [0])
    assert fell_back(desk) == []


@pytest.mark.parametrize(
    "answer",
    [
        computed(4, {"a": [0, 1, 2]}),
        computed(4, {"a": [0, 1, 2, 3], "stranger": []}),
        computed(4, {"a": [0, 1, 2, 3, 4]}),
        computed(4, {"a": [0, 1, 2, 3], "c": [3]}),
    ],
    ids=["not all", "stranger", "too many", "two owners"],
)
def test_nonsense_is_not_taken_and_another_member_gets_the_same_task(
    desk: Desk, answer: ConsumerGroupHeartbeatRequestComputedTarget
) -> None:
    desk.beat("c", 0, **OURS)
    first = task(led(desk, "c", 3))
    desk.beat("c", 3, computed_target=answer)
    assert steps(desk) > 0
    assert desk.beat("c", 3).leader_task is None
    assert task(desk.beat("a", 3)) == first
    assert epochs(desk) == (4, 3)


def test_the_coordinator_computes_when_no_member_is_left_that_could(desk: Desk) -> None:
    desk.topics.put(Topic("orders", ORDERS.topic_id, 5))
    desk.beat("a", 3)
    for member in ("a", "b"):
        steps(desk)
        task(desk.beat(member, 3))
        desk.beat(member, 3, computed_target=computed(4, {"a": [0]}))
    assert epochs(desk) == (4, 3)
    steps(desk)
    assert epochs(desk) == (4, 4)
    [(member, reason)] = fell_back(desk)
    assert (member, reason.split(";")[0]) == ("b", "no member can compute client:mine")


# ---- the group changes meanwhile ----

Change = Callable[[Desk], object]


def grow(desk: Desk) -> None:
    """The topic has another partition, and a member's heartbeat begins an epoch for it."""
    desk.topics.put(Topic("orders", ORDERS.topic_id, 5))
    desk.beat("a", 3)


CHANGES = pytest.mark.parametrize(
    "change",
    [grow, lambda desk: desk.beat("b", -1), lambda desk: desk.beat("c", -1)],
    ids=["the topic grows", "a member leaves", "the one that leads leaves"],
)


@CHANGES
def test_a_task_of_an_earlier_epoch_is_given_to_nobody(desk: Desk, change: Change) -> None:
    desk.beat("c", 0, **OURS)
    desk.wait(0)
    change(desk)
    steps(desk)
    assert desk.beat("a", 3).leader_task is None
    steps(desk)
    leader_task = task(desk.beat("a", 3))
    there = desk.shard._groups["g"].consumer
    assert there is not None
    assert (leader_task.group_epoch, [one.member_id for one in leader_task.members]) == (
        5,
        list(there.members),
    )
    answer = computed(5, {"a": list(range(leader_task.topics[0].partitions))})
    desk.beat("a", 3, computed_target=answer)
    steps(desk)
    assert epochs(desk) == (5, 5)
    assert fell_back(desk) == []


@CHANGES
def test_an_answer_of_an_earlier_epoch_is_looked_at_no_further(desk: Desk, change: Change) -> None:
    desk.beat("c", 0, **OURS)
    led(desk, "c", 3)
    desk.beat("c", 3, computed_target=computed(4, {"c": [0, 1, 2, 3]}))
    desk.wait(0)
    change(desk)
    steps(desk)
    assert epochs(desk) == (5, 3)
    desk.beat("a", 3)
    steps(desk)
    leader_task = task(desk.beat("a", 3))
    answer = computed(5, {"a": list(range(leader_task.topics[0].partitions))})
    desk.beat("a", 3, computed_target=answer)
    steps(desk)
    assert epochs(desk) == (5, 5)
    assert fell_back(desk) == []


def test_an_answer_counts_though_its_leader_is_away_for_a_while(desk: Desk) -> None:
    desk.beat("c", 0, instance_id="i", **OURS)
    steps(desk)
    task(desk.beat("c", 3, instance_id="i"))
    answer = computed(4, {"a": [0, 1], "c": [2, 3]})
    desk.beat("c", 3, instance_id="i", computed_target=answer)
    desk.beat("c", -2, instance_id="i")
    desk.beat("d", 0, instance_id="i", **OURS)
    steps(desk)
    group = desk.shard._groups["g"].consumer
    assert group is not None
    assert epochs(desk) == (4, 4)
    assert group.members["d"].target == {ORDERS.topic_id: frozenset((2, 3))}


def test_a_leader_that_failed_and_is_gone_by_then_is_forgotten(desk: Desk) -> None:
    desk.beat("c", 0, instance_id="i", **OURS)
    steps(desk)
    task(desk.beat("c", 3, instance_id="i"))
    desk.beat("c", 3, instance_id="i", computed_target=computed(4, {"a": [0, 1]}))
    desk.beat("c", -2, instance_id="i")
    desk.beat("d", 0, instance_id="i", **OURS)
    steps(desk)
    delegation = desk.shard._groups["g"].delegation
    assert delegation is not None
    assert delegation.failed == set()


def test_a_task_that_names_a_member_that_came_back_under_another_id_is_made_again(desk: Desk) -> None:
    desk.beat("c", 0, instance_id="i", **OURS)
    desk.beat("c", -2, instance_id="i")
    desk.beat("d", 0, instance_id="i", **OURS)
    steps(desk)
    assert desk.beat("a", 3).leader_task is None
    steps(desk)
    leader_task = task(desk.beat("a", 3))
    assert (leader_task.group_epoch, [one.member_id for one in leader_task.members]) == (4, ["a", "b", "d"])


def test_a_topic_that_is_deleted_while_the_task_is_made_is_not_in_it(desk: Desk) -> None:
    desk.topics.put(Topic("more", b"m" * 16, 3))
    desk.beat("c", 0, **OURS | {"subscribed_topic_names": ["orders", "more"]})
    desk.wait(0)
    desk.topics.remove("more")
    steps(desk)
    assert epochs(desk) == (4, 3)
    assert desk.beat("a", 3).leader_task is None  # another epoch
    steps(desk)
    leader_task = task(desk.beat("a", 3))
    assert (leader_task.group_epoch, [one.name for one in leader_task.topics]) == (5, ["orders"])


def test_a_group_that_is_gone_meanwhile_stays_gone(desk: Desk) -> None:
    desk.beat("c", 0, **OURS)
    led(desk, "c", 3)
    desk.beat("c", 3, computed_target=computed(4, {"c": [0, 1, 2, 3]}))
    for member in "abc":
        desk.beat(member, -1)
    desk.shard.delete_group("g", Ticket(), desk.now_ms)
    desk.wait(0)
    records = len(desk.log)
    steps(desk)
    desk.wait(INTERVAL_MS + BOUND_MS)
    assert (desk.listed(), len(desk.log)) == ([], records)


# ---- bounds ----


def test_a_time_that_ends_while_the_task_is_made_is_over_with_it(desk: Desk) -> None:
    desk.beat("c", 0, **OURS)
    desk.wait(INTERVAL_MS + BOUND_MS)
    assert fell_back(desk) == []
    steps(desk)
    assert epochs(desk) == (4, 4)
    assert fell_back(desk) == [("", "no member has computed the assignment")]


def test_an_answer_that_came_in_time_is_looked_at_to_the_end(desk: Desk) -> None:
    desk.beat("c", 0, **OURS)
    led(desk, "c", 3)
    desk.beat("c", 3, computed_target=computed(4, {"c": [0, 1, 2, 3]}))
    desk.wait(INTERVAL_MS + BOUND_MS)
    steps(desk)
    assert (epochs(desk), fell_back(desk)) == ((4, 4), [])
    assert partitions(desk.beat("a", 3)) == []


def test_a_task_that_is_too_large_is_the_coordinators() -> None:
    settings = {"group_max_record_bytes": 16_384, "assigned_at_once": 1}
    desk = Desk(SETTINGS.model_copy(update=settings))
    joined = desk.beat("a", 0, server_assignor="client:mine", leader_user_data=bytes(16_384))
    assert (joined.error_code, joined.leader_task) == (0, None)
    steps(desk)
    assert partitions(desk.beat("a", 1)) == [0, 1, 2, 3]


def test_no_step_is_a_large_part_of_the_work() -> None:
    topics, now_ms = Topics(), 10_000
    settings = GroupSettings(assigned_at_once=2_000, group_consumer_assignment_interval_ms=0)
    for number in range(120):
        topics.put(Topic(f"t{number}", number.to_bytes(16, "big"), 50))
    shard = Shard(0, settings, lambda prefix: prefix, topics=topics)
    shard.loaded(0, 0)
    costs: list[int] = []
    answers: dict[object, Any] = {}

    def see_to_all() -> None:
        while ((due_ms := shard.next_deadline()) is not None and due_ms <= now_ms) or shard.dirty:
            costs.append(calls(lambda: shard.tick(now_ms)))
            box = shard.drain()
            answers.update({one.ticket: one.response for one in box.answers})
            for append in box.appends:
                shard.durable(append.position, now_ms)

    def beat(request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
        ticket = Ticket()
        costs.append(calls(lambda: answers.update({ticket: shard.handle(request, ticket, now_ms)})))
        found = answers.pop(ticket)
        see_to_all()
        answered: ConsumerGroupHeartbeatResponse = found or answers[ticket]
        return answered

    def answer(epoch: int, first: int) -> ConsumerGroupHeartbeatRequestComputedTarget:
        """Each member gets one partition of 50 topics."""
        shares: dict[str, list[int]] = {}
        for number in range(6_000):
            own = (number // 50, 1, number % 50)
            shares.setdefault(f"m{(number + first) % 120}", []).extend(own)
        members = [ConsumerGroupHeartbeatRequestComputedMember(*one) for one in shares.items()]
        topic_ids = [one.to_bytes(16, "big") for one in range(120)]
        return ConsumerGroupHeartbeatRequestComputedTarget(epoch, None, topic_ids, members)

    for number in range(120):
        request = ConsumerGroupHeartbeatRequest("g", f"m{number}", 0, server_assignor="client:mine")
        request.rebalance_timeout_ms, request.topic_partitions = 30_000, []
        request.subscribed_topic_names = [one.name for one in topics.all()]
        request.leader_user_data = b""
        beat(request)
    group = shard._groups["g"].consumer
    assert group is not None
    for first in (0, 1):
        costs.clear()
        for _ in range(3):
            epoch = group.members["m119"].current.epoch
            request = ConsumerGroupHeartbeatRequest("g", "m119", epoch, rebalance_timeout_ms=30_000)
            request.subscribed_topic_names, request.topic_partitions = [one.name for one in topics.all()], []
            request.leader_user_data = bytes(first)  # what is new in it begins an epoch
            if beat(request).leader_task is not None:
                break
        request = ConsumerGroupHeartbeatRequest("g", "m119", group.members["m119"].current.epoch)
        request.computed_target = answer(group.epoch, first)
        beat(request)
        assert group.assignment_epoch == group.epoch
        assert len(costs) > 10
        assert max(costs) < sum(costs) / 5
