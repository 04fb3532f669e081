"""The step of a member of the consumer protocol into another epoch, of which a large group's rebalance has
thousands: what it costs, and that its short ways say what the long ones say."""

from __future__ import annotations

from typing import Any

import pytest

from ringleader.coordinator.consumer_groups import records
from ringleader.coordinator.consumer_groups.group import ConsumerGroup
from ringleader.coordinator.consumer_groups.topics import Topic, Topics
from ringleader.coordinator.groups.consumer import ConsumerHandler
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.groups.states import NOT_YET
from ringleader.coordinator.groups.steady import Last
from ringleader.coordinator.machine import Append
from ringleader.protocol.messages import ConsumerGroupHeartbeatRequest
from tests.coordinator.groups.test_consumer import Desk, Ticket
from tests.coordinator.groups.test_continued import Member
from tests.coordinator.groups.test_cost import calls

IDS = ("a", "b", "c", "d")
THERE = ("t0", "t1")
MANY, FEW = (12, 12), (2, 1)
"""Partitions of these: those of a member that leaves go to all others; or one of the four has none."""


def _at_rest(desk: Desk, names: list[str], sizes: tuple[int, int] = MANY) -> int:
    """A group of four that subscribe alike has what it is to have; its epoch."""
    for name, count in zip(THERE, sizes, strict=True):
        desk.topics.put(Topic(name, name.encode().rjust(16, b"-"), count))
    members = [Member(one, None, names) for one in IDS]
    for _ in range(4):
        for one in members:
            one.beat(desk)
        desk.wait(1_000)
    group = _group(desk)
    assert {one.current.epoch for one in group.members.values()} == {group.assignment_epoch}
    return group.epoch


def _group(desk: Desk) -> ConsumerGroup:
    group = desk.shard._groups["g"].consumer
    assert group is not None
    return group


def test_neither_a_departure_nor_a_step_costs_more_where_members_name_more_topics() -> None:
    cost: dict[int, list[int]] = {}
    for count in (2, 1_000):
        desk = Desk(GroupSettings())
        epoch = _at_rest(desk, [f"t{number}" for number in range(count)])
        heartbeats = (("d", -1), ("a", epoch), ("b", epoch))
        for member, sent in heartbeats:
            request, ticket = ConsumerGroupHeartbeatRequest("g", member, sent), Ticket()
            found = calls(lambda: desk.shard.handle(request, ticket, desk.now_ms))  # noqa: B023
            cost.setdefault(count, []).append(found)
            desk.wait(1)
        assert _group(desk).members["b"].current.epoch == epoch + 1
    leaves, _, steps = zip(*cost.values(), strict=True)
    assert max(leaves) - min(leaves) < 50
    assert max(steps) - min(steps) < 50


@pytest.mark.parametrize("sizes", [MANY, FEW])
def test_the_record_of_a_step_says_where_the_member_is(sizes: tuple[int, int]) -> None:
    desk = Desk(GroupSettings())
    for is_read in (False, True):  # the record before
        epoch = _at_rest(desk, [*THERE], sizes)
        if is_read:
            desk.restart()
        others = [one for one, member in _group(desk).members.items() if member.target or sizes is MANY][:3]
        [leaver] = set(IDS) - set(others)
        desk.beat(leaver, -1)
        for member in others:
            before = _group(desk).members[member].current
            desk.beat(member, epoch)
            current = _group(desk).members[member].current
            assert (current.epoch, current.holds_as(before)) == (epoch + 1, sizes is FEW)
            assert desk.log[-1] == records.current("g", member, current)
        desk.restart()
        assert {one.current.epoch for one in _group(desk).members.values()} == {epoch + 1}


def test_a_heartbeat_that_brings_nothing_is_answered_alike_on_both_ways(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    both = []
    for is_short in (True, False):
        if not is_short:
            monkeypatch.setattr(ConsumerHandler, "_step", lambda *_: None)
        desk = Desk(GroupSettings())
        epoch = _at_rest(desk, [*THERE])
        desk.log.clear()
        beats = [("d", -1), *((one, epoch) for one in "abc"), *((one, epoch + 1) for one in "cba"), ("b", 3)]
        answers = [desk.beat(*one) for one in beats]
        sessions = desk.shard._groups["g"].consumer_deadlines
        both.append((answers, desk.log, [(one, timers.session.due_ms) for one, timers in sessions.items()]))
    assert both[0] == both[1]


def test_what_a_member_reports_counts_alike_on_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    ways, short, taken = [], ConsumerHandler._step, list[bool]()
    for is_short in (True, False):

        def step(self: ConsumerHandler, request: ConsumerGroupHeartbeatRequest, *more: Any) -> Any:
            found = short(self, request, *more) if is_short else None  # noqa: B023
            taken.append(found is not None and request.topic_partitions is not None)
            return found

        monkeypatch.setattr(ConsumerHandler, "_step", step)
        desk = Desk(GroupSettings())
        _at_rest(desk, [*THERE])  # the first one gives partitions up to the others
        sessions = desk.shard._groups["g"].consumer_deadlines
        ways.append((desk.log, [(one, timers.session.due_ms) for one, timers in sessions.items()]))
    assert ways[0] == ways[1]
    assert any(taken)


class SlowDesk(Desk):
    """A shard whose log has what was appended when it is told to."""

    def __init__(self, settings: GroupSettings) -> None:
        super().__init__(settings)
        self.is_slow = False
        self.on_their_way: list[Append] = []
        self.answers: dict[str, Any] = {}
        """By member: what came later than the call."""

    def send(self, member: str, epoch: int, **more: Any) -> Any:
        """A heartbeat; its answer if it comes at once."""
        ticket, request = Ticket(), ConsumerGroupHeartbeatRequest("g", member, epoch, **more)
        response = self.shard.handle(request, ticket, self.now_ms)
        box = self.shard.drain()
        self.on_their_way += box.appends
        found = {id(one.ticket): one.response for one in box.answers}
        return found.get(id(ticket), response)

    def land(self) -> list[str]:
        """All that was appended is in the log; the members that are answered thereby, in order."""
        for append in self.on_their_way:
            self.log += append.records
            self.shard.durable(append.position, self.now_ms)
        self.on_their_way.clear()
        answers = [one.response for one in self.shard.drain().answers]
        self.answers = {one.member_id: one for one in answers}
        return [*self.answers]

    def stays(self, member: str, epoch: int) -> bool:
        """Whether the hot path answers that heartbeat."""
        last = Last(None, "client", "/127.0.0.1", self.settings.group_consumer_heartbeat_interval_ms)
        return self.shard.stay("g", epoch, member, last, self.now_ms) != NOT_YET


def test_steps_that_move_no_partition_come_when_the_target_is_in_the_log() -> None:
    desk = SlowDesk(GroupSettings())
    epoch = _at_rest(desk, [*THERE], (2, 2))
    desk.send("d", -1)
    desk.land()
    assert desk.send("b", epoch) is None  # the target is made, and gives it what `d` had
    for member in ("a", "c"):
        assert desk.stays(member, epoch)
        assert desk.send(member, epoch).member_epoch == epoch
    assert len(desk.on_their_way) == 1
    assert desk.land() == ["b"]
    assert desk.answers["b"].member_epoch == epoch + 1
    assert desk.answers["b"].assignment is not None
    assert not desk.stays("a", epoch)
    assert desk.send("a", epoch) is None
    assert desk.land() == ["a"]
    assert desk.answers["a"].member_epoch == epoch + 1


def test_a_step_that_moves_a_partition_does_not_wait_for_the_target() -> None:
    desk = SlowDesk(GroupSettings())
    epoch = _at_rest(desk, ["t0"], (8, 0))
    desk.send("d", -1)
    assert desk.send("a", epoch) is None  # it gets one of two that are free
    keeps, gets = sorted(("b", "c"), key=lambda one: _group(desk).members[one].load)
    assert desk.stays(keeps, epoch)
    assert not desk.stays(gets, epoch)
    assert desk.send(gets, epoch) is None
    assert desk.land()[-2:] == ["a", gets]
    assert desk.answers[gets].assignment is not None


def test_a_member_whose_partitions_are_not_free_comes_when_the_target_is_in_the_log() -> None:
    desk = SlowDesk(GroupSettings())
    for member in ("a", "b"):
        desk.beat(member, 0)
    desk.wait(1_000)
    assert desk.send("a", 2) is None  # the target is made, and it has to give partitions up
    assert desk.stays("b", 2)  # it would only wait
    assert desk.send("b", 2).member_epoch == 2
    assert desk.land() == ["a"]
    assert desk.answers["a"].assignment is not None
    assert desk.send("b", 2) is None
    assert desk.land() == ["b"]
    assert (desk.answers["b"].member_epoch, desk.answers["b"].assignment) == (3, None)


def test_a_member_that_gives_partitions_up_does_not_wait_for_the_target() -> None:
    desk = SlowDesk(GroupSettings())
    for member in ("a", "b"):
        desk.beat(member, 0)
    desk.wait(1_000)
    assert desk.send("b", 2) is None  # the target is made, and it waits for what the other has
    assert not desk.stays("a", 2)
    assert desk.send("a", 2) is None
    assert desk.land() == ["b", "a"]
    assert desk.answers["a"].assignment is not None


def test_nobody_goes_on_in_an_epoch_that_the_log_may_lose() -> None:
    desk = SlowDesk(GroupSettings(group_consumer_assignment_interval_ms=0))
    epoch = _at_rest(desk, ["t0"], (2, 0))
    one, other, *without = sorted(IDS, key=lambda one: -_group(desk).members[one].load)
    desk.send(without[0], -1)
    desk.send(one, epoch)
    desk.land()
    assert desk.send(other, epoch) is None  # it comes into the next epoch
    desk.send(without[1], -1)
    desk.send(one, epoch + 1)
    assert _group(desk).members[other].has_target
    assert not desk.stays(other, epoch + 1)
    assert desk.send(other, epoch + 1) is None


def test_the_ids_and_the_hash_of_names_follow_the_topics() -> None:
    topics, names, hashes = Topics(), frozenset(("a", "b")), set[int]()
    changes = [
        Topic("a", b"a" * 16, 1),
        Topic("a", b"a" * 16, 2),
        Topic("b", b"b" * 16, 2),
        Topic("b", b"c" * 16, 2),
        Topic("other", b"o" * 16, 2),
    ]
    for one in changes:
        topics.put(one)
        there = frozenset(topic.topic_id for topic in topics.all() if topic.name in names)
        assert topics.ids(names) == there == topics.ids(frozenset(sorted(names)))
        hashes.add(topics.metadata_hash(names))
    assert len(hashes) == len(changes) - 1
    for name in names:
        topics.remove(name)
    assert (topics.ids(names), topics.metadata_hash(names)) == (frozenset(), 0)
