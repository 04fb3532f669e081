"""A target that goes on from the last one is the one that `uniform` makes from the beginning: of groups in
the machine, under drawn joins, leaves, silence, returns of static members, subscriptions and topics."""

from __future__ import annotations

import random
import secrets
from dataclasses import dataclass, field

import pytest

from ringleader.coordinator.consumer_groups import target
from ringleader.coordinator.consumer_groups.assignors.model import Assignor, Work
from ringleader.coordinator.consumer_groups.assignors.uniform import assign
from ringleader.coordinator.consumer_groups.group import ConsumerGroup, Dealt
from ringleader.coordinator.consumer_groups.member import Subscription
from ringleader.coordinator.consumer_groups.target import NO_RATES, Made, Rates
from ringleader.coordinator.consumer_groups.topics import Topic, Topics
from ringleader.coordinator.groups import targets
from ringleader.coordinator.groups.commit import at_once
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    ConsumerGroupHeartbeatResponse,
)
from tests.coordinator.groups.test_consumer import Desk, partitions
from tests.coordinator.groups.test_cost import calls

SEEDS, STEPS, MEMBERS, TOPICS = 12, 250, 9, 4


@dataclass
class Both:
    """Computes each target twice, and compares."""

    continued: int = 0
    whole: int = 0

    def compute(
        self, group: ConsumerGroup, topics: Topics, assignor: Assignor, rates: Rates, first: str = ""
    ) -> Work[Made]:
        going_on = target.continued(group, topics, first)
        made = None if going_on is None else at_once(going_on)
        group.dealt, last = None, group.dealt
        whole = at_once(target.compute(group, topics, assignor, rates, first))
        group.dealt = last
        if made is None:
            self.whole += 1
            made = whole
        else:
            self.continued += 1
            assert _comparable(made) == _comparable(whole)
        for _ in range(4):  # the group may change meanwhile
            yield 1
        return made


def _comparable(made: Made) -> tuple[object, ...]:
    shares = [(one.member.member_id, one.member.instance_id, one.wanted, one.record) for one in made.aimed]
    return shares, made.dealt


@dataclass
class Member:
    """A member as its heartbeats need it."""

    member_id: str
    instance_id: str | None
    topics: list[str]
    epoch: int = 0
    owned: list[ConsumerGroupHeartbeatRequestTopicPartitions] = field(default_factory=list)

    def beat(self, desk: Desk, epoch: int | None = None, topics: list[str] | None = None) -> None:
        request = ConsumerGroupHeartbeatRequest("g", self.member_id, self.epoch if epoch is None else epoch)
        request.instance_id, request.topic_partitions = self.instance_id, self.owned
        if not request.member_epoch:
            request.rebalance_timeout_ms, request.topic_partitions = 30_000, []
            request.subscribed_topic_names = self.topics
        if topics is not None:
            self.topics = request.subscribed_topic_names = topics
        answer: ConsumerGroupHeartbeatResponse = desk.ask(request)
        if answer.error_code:  # it is known no more: it joins again, later
            self.epoch, self.owned = 0, []
            return
        self.epoch = answer.member_epoch
        if answer.assignment is not None:
            self.owned = [
                ConsumerGroupHeartbeatRequestTopicPartitions(one.topic_id, one.partitions)
                for one in answer.assignment.topic_partitions
            ]


class Story:
    """A group, and what happens to it."""

    def __init__(self, draw: random.Random) -> None:
        self.draw = draw
        at_once_most = draw.choice((1, 20_000))
        settings = GroupSettings(
            group_consumer_assignment_interval_ms=draw.choice((0, 1_000)), assigned_at_once=at_once_most
        )
        self.desk, self.names = Desk(settings), [f"t{number}" for number in range(TOPICS)]
        self.members: list[Member] = []
        self.ids = 0
        for name in self.names[: draw.randint(1, TOPICS)]:
            self.put(name)

    def put(self, name: str) -> None:
        known = self.desk.topics.named(name)
        topic_id = self.draw.randbytes(16) if known is None else known.topic_id
        count = self.draw.randint(1, 9) if known is None else known.partitions + self.draw.randint(0, 4)
        self.desk.topics.put(Topic(name, topic_id, count))

    def step(self) -> None:
        draw, desk = self.draw, self.desk
        kind = draw.random()
        if kind < 0.12 and len(self.members) < MEMBERS:
            self.ids += 1
            instance_id = f"i{self.ids}" if draw.random() < 0.3 else None
            topics = self.names if draw.random() < 0.9 else draw.sample(self.names, draw.choice((0, 2)))
            self.members.append(Member(f"m{self.ids}", instance_id, topics))
            self.members[-1].beat(desk)
        elif kind < 0.2 and self.members:
            one = draw.choice(self.members)
            if one.instance_id is not None and draw.random() < 0.6:
                one.beat(desk, -2)
                self.ids += 1
                one.member_id, one.epoch, one.owned = f"m{self.ids}", 0, []
            else:
                one.beat(desk, -1)
                self.members.remove(one)
        elif kind < 0.23 and self.members:
            one = draw.choice(self.members)
            one.beat(
                desk,
                topics=self.names
                if one.topics is not self.names
                else draw.sample(self.names, draw.choice((0, 2))),
            )
        elif kind < 0.28:
            self.put(draw.choice(self.names))
        elif kind < 0.29:
            name = draw.choice(self.names)
            desk.topics.remove(name)
            if draw.random() < 0.5:
                self.put(name)
        elif kind < 0.295:
            desk.wait(50_000)  # longer than sessions
        elif kind < 0.3:
            desk.restart()
        elif self.members:
            draw.choice(self.members).beat(desk)
        desk.wait(draw.choice((0, 0, 1, 1_000)))


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> Both:
    made = Both()
    monkeypatch.setattr(targets, "compute", made.compute)
    return made


@pytest.mark.draws
def test_it_is_the_target_that_is_made_from_the_beginning(both: Both) -> None:
    for _ in range(SEEDS):
        seed = secrets.randbits(48)
        print(f"seed {seed}")
        story = Story(random.Random(seed))
        for _ in range(STEPS):
            story.step()
    assert both.continued > SEEDS * 4
    assert both.whole > SEEDS


def _large(members: int) -> Desk:
    """A group with two partitions for each member, at rest."""
    desk = Desk(GroupSettings())
    desk.topics.put(Topic("large", b"l" * 16, 2 * members))
    group = [Member(f"m{number:04}", None, ["large"]) for number in range(members)]
    for _ in range(4):
        for one in group:
            one.beat(desk)
        desk.wait(1_000)
    consumer = desk.shard._groups["g"].consumer
    assert consumer is not None
    assert {one.load for one in consumer.members.values()} == {2}
    assert consumer.dealt is not None
    return desk


def test_only_what_moves_is_looked_at() -> None:
    desk = _large(400)
    consumer = desk.shard._groups["g"].consumer
    assert consumer is not None
    desk.beat("m0007", -1)
    last = consumer.dealt
    cost = {}
    for known in (None, last):
        consumer.dealt = known
        cost[known is None] = calls(
            lambda: at_once(target.compute(consumer, desk.topics, assign, NO_RATES, "m0001"))
        )
    assert cost[False] * 4 < cost[True]


def test_partitions_that_nobody_was_given_do_not_make_up_for_a_topic_that_is_gone() -> None:
    topics, group = Topics(), ConsumerGroup("g")
    a, b = Topic("a", b"a" * 16, 1), Topic("b", b"b" * 16, 2)
    for name, share in ("m1", {a.topic_id: frozenset((0,))}), ("m2", {b.topic_id: frozenset((0,))}):
        group.subscribe(name, Subscription(topic_names=frozenset(("a", "b"))))
        group.aim(name, share)
    group.dealt = Dealt({a.topic_id: 1, b.topic_id: 2})
    topics.put(b)
    assert target.continued(group, topics) is None
    topics.put(a)
    assert target.continued(group, topics) is None


def test_the_member_whose_heartbeat_it_is_has_a_free_partition_at_once() -> None:
    desk = _large(20)
    desk.beat("m0007", -1)
    desk.wait(1_000)
    consumer = desk.shard._groups["g"].consumer
    assert consumer is not None
    before = consumer.members["m0013"].current
    answered = desk.beat("m0013", before.epoch)
    [(_, had)] = before.held()
    assert len(partitions(answered) or ()) == 3
    assert set(had) < set(partitions(answered) or ())
