"""The step of a member of the consumer protocol into another epoch, of which a large group's rebalance has
thousands: what it costs, and that its short ways say what the long ones say."""

from __future__ import annotations

import pytest

from ringleader.coordinator.consumer_groups import records
from ringleader.coordinator.consumer_groups.group import ConsumerGroup
from ringleader.coordinator.consumer_groups.topics import Topic, Topics
from ringleader.coordinator.groups.consumer import ConsumerHandler
from ringleader.coordinator.groups.settings import GroupSettings
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
