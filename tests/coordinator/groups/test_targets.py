"""Targets of large groups, which the coordinator computes in steps: what members are answered meanwhile, and
what becomes of a target whose group changes; and what assignors know of partitions. Whole stories:
tests/simulation/consumer."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import pytest

from ringleader.coordinator.consumer_groups.assignors import model
from ringleader.coordinator.consumer_groups.topics import Topic, Topics
from ringleader.coordinator.groups import targets
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.groups.shard import Shard
from ringleader.coordinator.groups.targets import SOON_MS
from ringleader.coordinator.machine import Notice
from ringleader.protocol.messages import ConsumerGroupHeartbeatRequest
from tests.coordinator.groups.test_consumer import ORDERS, SETTINGS, Desk, Ticket, partitions
from tests.coordinator.groups.test_cost import calls

STEPPED = SETTINGS.model_copy(update={"assigned_at_once": 1})


@pytest.fixture
def desk() -> Desk:
    """Every target takes several steps."""
    return Desk(STEPPED)


def steps(desk: Desk) -> int:
    """All steps of the computation that is under way; how many there were."""
    for count in itertools.count():
        due_ms = desk.shard.next_deadline()
        if due_ms is None or due_ms > desk.now_ms:
            return count
        desk.wait(0)
    raise AssertionError


def test_members_are_answered_meanwhile_and_asked_to_come_soon(desk: Desk) -> None:
    joined = desk.beat("a", 0)
    assert (joined.member_epoch, partitions(joined)) == (1, [])
    assert joined.heartbeat_interval_ms == SOON_MS
    desk.wait(0)
    assert desk.beat("a", 1).member_epoch == 1
    assert steps(desk) > 1
    answered = desk.beat("a", 1)
    assert (answered.member_epoch, partitions(answered)) == (2, [0, 1, 2, 3])
    assert answered.heartbeat_interval_ms == SETTINGS.group_consumer_heartbeat_interval_ms
    desk.restart()
    assert desk.beat("a", 2, [0, 1, 2, 3]).member_epoch == 2


def test_a_group_that_changed_meanwhile_is_computed_again(desk: Desk) -> None:
    desk.beat("a", 0)
    desk.beat("b", 0)
    steps(desk)
    for member in ("a", "b"):
        answered = desk.beat(member, 1)
        assert (answered.member_epoch, len(partitions(answered) or ())) == (3, 2)


def test_the_second_target_is_taken_even_if_the_group_has_changed_again(desk: Desk) -> None:
    desk.beat("a", 0)
    desk.beat("b", 0)
    group = desk.shard._groups["g"].consumer
    assert group is not None
    computing, more = [], 0
    while not group.assignment_epoch > 1:
        desk.wait(0)
        computing.append(desk.shard._groups["g"].computing)
        more += 1
        desk.topics.put(Topic("orders", ORDERS.topic_id, 4 + more))
        assert desk.beat("a", 1).error_code == 0
    assert more > 5
    assert group.epoch > group.assignment_epoch + 2
    assert {len(partitions(desk.beat(member, 1)) or ()) for member in ("a", "b")} != {0}
    steps(desk)
    assert group.epoch == group.assignment_epoch


def test_a_member_that_leaves_at_last_gets_nothing() -> None:
    def begun() -> Desk:
        """The second computation will be taken, as the first one is of an earlier epoch."""
        desk = Desk(STEPPED)
        desk.beat("a", 0)
        desk.beat("b", 0)
        return desk

    desk = begun()
    for _ in range(steps(begun()) - 1):
        desk.wait(0)
    desk.beat("b", -1)
    desk.wait(0)
    group = desk.shard._groups["g"].consumer
    assert group is not None
    assert (group.epoch, group.assignment_epoch, list(group.members)) == (4, 3, ["a"])
    assert partitions(desk.beat("a", 1, [])) == [0, 2]
    steps(desk)
    assert partitions(desk.beat("a", 3, [0, 2])) == [0, 1, 2, 3]


def test_a_static_member_that_comes_back_meanwhile_gets_the_share_of_its_former_self(desk: Desk) -> None:
    desk.beat("a", 0)
    steps(desk)
    desk.beat("s", 0, instance_id="i")
    desk.wait(0)
    desk.beat("s", -2, instance_id="i")
    desk.beat("t", 0, instance_id="i")
    steps(desk)
    group = desk.shard._groups["g"].consumer
    assert group is not None
    assert (group.epoch, group.assignment_epoch) == (3, 3)
    assert partitions(desk.beat("t", 2, [], instance_id="i")) == [2, 3]
    assert group.members["a"].target == {ORDERS.topic_id: frozenset((0, 1))}


def test_a_group_that_is_gone_meanwhile_stays_gone(desk: Desk) -> None:
    desk.beat("a", 0)
    desk.wait(0)
    desk.beat("a", -1)
    desk.shard.delete_group("g", Ticket(), desk.now_ms)
    desk.wait(0)
    records = len(desk.log)
    steps(desk)
    assert (desk.listed(), len(desk.log)) == ([], records)


def test_an_assignor_that_fails_meanwhile_is_reported_and_asked_again(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(
        members: list[model.Candidate], topics: Mapping[bytes, int], facts: model.Facts
    ) -> model.Work[model.Shares]:
        yield 1
        raise ValueError("no idea")

    monkeypatch.setattr(targets, "ASSIGNORS", {"uniform": fails})
    assert desk.beat("a", 0).error_code == 0
    steps(desk)
    assert [one.text for one in desk.events if isinstance(one, Notice)] == [
        "the assignor raised ValueError('no idea')"
    ]
    monkeypatch.undo()
    desk.beat("a", 1)
    steps(desk)
    assert partitions(desk.beat("a", 1, [])) == [0, 1, 2, 3]


def test_no_step_of_a_large_group_is_a_large_part_of_the_work() -> None:
    topics, settings, now_ms = Topics(), GroupSettings(assigned_at_once=2_000), 10_000
    for number in range(120):
        topics.put(Topic(f"t{number}", number.to_bytes(16, "big"), 50))
    shard = Shard(0, settings, lambda prefix: prefix, topics=topics)
    shard.loaded(0, 0)
    costs: list[int] = []

    def tick() -> None:
        shard.tick(now_ms)

    def see_to_all() -> None:
        while ((due_ms := shard.next_deadline()) is not None and due_ms <= now_ms) or shard.dirty:
            costs.append(calls(tick))
            for append in shard.drain().appends:
                shard.durable(append.position, now_ms)

    for number in range(120):
        request = ConsumerGroupHeartbeatRequest("g", f"m{number}", 0)
        request.rebalance_timeout_ms, request.topic_partitions = 30_000, []
        request.subscribed_topic_names = [one.name for one in topics.all()]
        shard.handle(request, Ticket(), now_ms)
    costs.clear()
    see_to_all()
    group = shard._groups["g"].consumer
    assert group is not None
    assert sum(len(one) for member in group.members.values() for one in member.target.values()) == 6_000
    assert len(costs) > 20
    assert max(costs) < sum(costs) / 8


# ---- what assignors are told ----


def test_partitions_go_to_members_in_the_racks_of_their_replicas() -> None:
    desk = Desk(SETTINGS.model_copy(update={"group_consumer_assignors": ("rack",)}))
    racks = tuple(frozenset((one,)) for one in ("west", "east", "east", "west"))
    desk.topics.put(Topic("orders", ORDERS.topic_id, 4, racks))
    desk.beat("w", 0, rack_id="west")
    desk.beat("e", 0, rack_id="east")
    assert partitions(desk.beat("w", 2)) == [0, 3]
    desk.beat("w", 2, [0, 3])
    assert partitions(desk.beat("e", 3)) == [1, 2]


def test_partitions_weigh_the_rate_at_which_the_group_has_committed_in_them() -> None:
    desk = Desk(SETTINGS.model_copy(update={"group_consumer_assignors": ("weighted", "uniform")}))
    desk.beat("a", 0)
    desk.beat("a", 2, [0, 1, 2, 3])
    assert desk.commit("a", 2, 0, 1, 2, 3) == [0] * 4
    group = desk.shard._groups["g"]
    looked_ms = group.looked_ms
    desk.wait(30_000)
    desk.beat("a", 2)
    assert group.looked_ms == looked_ms == 1_000_000
    assert desk.commit("a", 2, 0, offset=3_005) + desk.commit("a", 2, 1, 2, 3, offset=605) == [0] * 4
    desk.wait(30_000)
    assert group.rates["orders"] == dict.fromkeys(range(4), (5, -1.0))
    desk.beat("a", 2)
    desk.wait(0)
    assert group.rates["orders"] == {0: (3_005, 50.0), **dict.fromkeys((1, 2, 3), (605, 10.0))}
    desk.beat("b", 0)
    consumer = group.consumer
    assert consumer is not None
    assert consumer.members["a"].target == {ORDERS.topic_id: frozenset((1, 2, 3))}
    assert consumer.members["b"].target == {ORDERS.topic_id: frozenset((0,))}


def test_no_rates_are_looked_at_where_no_assignor_wants_them() -> None:
    desk = Desk()
    desk.beat("a", 0)
    desk.beat("a", 2, [0, 1, 2, 3])
    assert desk.shard._groups["g"].looked_ms == -1
