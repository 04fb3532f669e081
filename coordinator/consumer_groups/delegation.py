"""The computation of a target by a member of the group: what its leader is sent, and how its answer is read.

Ours, not Kafka's: KIP-848 planned assignors of the client and left them out of what was built.
"""

from __future__ import annotations

from ringleader.coordinator.consumer_groups.assignors.model import Candidate, Shares
from ringleader.coordinator.consumer_groups.group import ConsumerGroup
from ringleader.coordinator.consumer_groups.names import PREFIX
from ringleader.coordinator.consumer_groups.target import AssignorError
from ringleader.coordinator.consumer_groups.topics import Topics
from ringleader.protocol.messages import (
    ConsumerGroupHeartbeatRequestComputedTarget,
    ConsumerGroupHeartbeatResponseLeaderTask,
    ConsumerGroupHeartbeatResponseTaskMember,
    ConsumerGroupHeartbeatResponseTaskShare,
    ConsumerGroupHeartbeatResponseTaskSubscription,
    ConsumerGroupHeartbeatResponseTaskTopic,
)


def task(
    group: ConsumerGroup, topics: Topics, assignor: str, members: list[Candidate]
) -> ConsumerGroupHeartbeatResponseLeaderTask:
    """All that a leader needs; `assignor` with its prefix. Topics of a subscription that do not exist are not
    in it."""
    made = ConsumerGroupHeartbeatResponseLeaderTask(
        group_epoch=group.epoch, target_epoch=group.assignment_epoch, assignor=assignor.removeprefix(PREFIX)
    )
    places: dict[bytes, int] = {}
    for name in sorted(group.subscribed_topics()):
        topic = topics.named(name)
        if topic is not None:
            places[topic.topic_id] = len(made.topics)
            made.topics.append(
                ConsumerGroupHeartbeatResponseTaskTopic(topic.topic_id, name, topic.partitions)
            )
    subscriptions: dict[frozenset[bytes], int] = {}
    for one in members:
        if one.topics not in subscriptions:
            subscriptions[one.topics] = len(made.subscriptions)
            chosen = sorted(places[topic_id] for topic_id in one.topics)
            made.subscriptions.append(ConsumerGroupHeartbeatResponseTaskSubscription(chosen))
        described = group.members[one.member_id].subscription
        owned = [
            ConsumerGroupHeartbeatResponseTaskShare(places[topic_id], sorted(partitions))
            for topic_id, partitions in one.target.items()
            if topic_id in places
        ]
        made.members.append(
            ConsumerGroupHeartbeatResponseTaskMember(
                one.member_id,
                described.instance_id,
                described.rack_id,
                subscriptions[one.topics],
                owned,
                described.leader_user_data,
            )
        )
    return made


def shares(answer: ConsumerGroupHeartbeatRequestComputedTarget, members: list[Candidate]) -> Shares:
    """A leader's answer; members that it does not name get nothing. Raises `AssignorError` if it says that it
    could not compute, or names anything twice; `target.check` does the rest."""
    if answer.error is not None:
        raise AssignorError(f"it could not compute: {answer.error}")
    found: Shares = {one.member_id: {} for one in members}
    named = set()
    for member in answer.members:
        if member.member_id in named:
            raise AssignorError(f"{member.member_id} is named twice")
        named.add(member.member_id)
        own: dict[bytes, frozenset[int]] = {}
        for topic in member.topics:
            partitions = frozenset(topic.partitions)
            if topic.topic_id in own or len(partitions) != len(topic.partitions):
                text = f"{member.member_id} gets a partition of topic {topic.topic_id.hex()} twice"
                raise AssignorError(text)
            if partitions:
                own[topic.topic_id] = partitions
        found[member.member_id] = own
    return found
