"""A group of the consumer protocol at its bounds: what it counts, and what it accepts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ringleader.coordinator.consumer_groups import classic, memory
from ringleader.coordinator.consumer_groups.delegation import shares, task
from ringleader.coordinator.consumer_groups.group import ConsumerGroup
from ringleader.coordinator.consumer_groups.member import ClassicMember, Subscription
from ringleader.coordinator.consumer_groups.names import NAME_MAX_CHARACTERS, PREFIX, is_delegated
from ringleader.coordinator.consumer_groups.target import AssignorError, question
from ringleader.coordinator.consumer_groups.topics import Topic, Topics
from ringleader.coordinator.groups.commit import at_once
from ringleader.protocol import embedded
from ringleader.protocol.messages import (
    ConsumerGroupHeartbeatRequestComputedMember,
    ConsumerGroupHeartbeatRequestComputedTarget,
)

A, B = b"a" * 16, b"b" * 16


@pytest.mark.parametrize(
    "given",
    [
        {"instance_id": "x" * 1_000},
        {"rack_id": "x" * 1_000},
        {"client_id": "x" * 1_000},
        {"client_host": "x" * 1_000},
        {"topic_names": frozenset(("x" * 1_000,))},
        {"topic_regex": "x" * 1_000},
        {"server_assignor": "x" * 1_000},
        {"leader_user_data": bytes(1_000)},
        {"classic": ClassicMember(1, (("range", bytes(1_000)),))},
        {"client_id": "\N{GRINNING FACE}" * 250},
    ],
)
def test_all_that_a_member_says_counts(given: dict[str, Any]) -> None:
    subscription = Subscription(**given)
    assert memory.subscription_bytes(subscription) >= 1_000
    group, topics = ConsumerGroup("g"), Topics()
    more = group.growth(None, "m", subscription, topics)
    group.subscribe("m", Subscription())
    assert 1_000 <= group.growth(group.members["m"], "m", subscription, topics) < more
    group.subscribe("m", subscription)
    assert group.held_bytes == more
    assert group.growth(group.members["m"], "m", replace(subscription, rebalance_timeout_ms=7), topics) == 0


@pytest.mark.parametrize(
    ("characters", "accepted"), [(0, False), (1, True), (NAME_MAX_CHARACTERS, True), (250, False)]
)
def test_the_name_of_a_members_assignor_has_a_length(characters: int, accepted: bool) -> None:
    assert is_delegated(PREFIX + "n" * characters) is accepted


def test_a_classic_member_that_leaves_something_out_keeps_it() -> None:
    offered = ClassicMember(10_000, (("range", b""),))
    before = Subscription(rack_id="r", rebalance_timeout_ms=5_000, instance_id="i", topic_regex="x.*")
    subscription = embedded.Subscription(["t"], rack_id=None)
    after = classic.described(before, subscription, None, ("c", "h"), -1, offered)
    assert (after.rack_id, after.rebalance_timeout_ms, after.instance_id) == ("r", 5_000, "i")
    assert (after.topic_names, after.topic_regex) == (frozenset("t"), "")
    assert classic.described(before, subscription, None, ("c", "h"), 7, offered).rebalance_timeout_ms == 7


def test_an_instance_id_is_its_last_owners() -> None:
    """The records of two members with one instance id come in any order."""
    group = ConsumerGroup("g")
    group.subscribe("old", Subscription(instance_id="i"))
    group.subscribe("new", Subscription(instance_id="i"))
    group.unsubscribe("old")
    assert group.static_members == {"i": "new"}
    group.unsubscribe("new")
    assert group.static_members == {}


def delegated() -> tuple[ConsumerGroup, Topics]:
    """Three members; the first and the last subscribe to the same."""
    topics, group = Topics(), ConsumerGroup("g")
    topics.put(Topic("ta", A, 2))
    topics.put(Topic("tb", B, 2))
    for name, of in (("m1", {"ta"}), ("m2", {"ta", "tb"}), ("m3", {"ta"})):
        group.subscribe(name, Subscription(topic_names=frozenset(of), server_assignor="client:x"))
    return group, topics


def test_a_leader_is_told_who_subscribes_to_what() -> None:
    group, topics = delegated()
    made = at_once(task(group, topics, "client:x", 10_000))
    assert made is not None
    named = [topic.name for topic in made.topics]
    subscribers = {
        one.member_id: {named[place] for place in made.subscriptions[one.subscription].topics}
        for one in made.members
    }
    assert subscribers == {"m1": {"ta"}, "m2": {"ta", "tb"}, "m3": {"ta"}}
    assert len(made.subscriptions) == 2


def test_a_leader_names_a_topic_of_a_member_once() -> None:
    group, topics = delegated()
    twice = ConsumerGroupHeartbeatRequestComputedMember("m1", [0, 1, 0, 0, 1, 1])
    answer = ConsumerGroupHeartbeatRequestComputedTarget(2, topic_ids=[A], members=[twice])
    members, counts, _ = at_once(question(group, topics))
    with pytest.raises(AssignorError, match="twice"):
        at_once(shares(answer, members, counts))
