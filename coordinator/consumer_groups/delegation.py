"""The computation of a target by a member of the group: what its leader is sent, and how its answer is read.

Ours, not Kafka's: KIP-848 planned assignors of the client and left them out of what was built.
"""

from __future__ import annotations

from collections.abc import Mapping

from ringleader.coordinator.consumer_groups.assignors.model import Candidate, Shares, Work
from ringleader.coordinator.consumer_groups.group import ConsumerGroup
from ringleader.coordinator.consumer_groups.names import PREFIX
from ringleader.coordinator.consumer_groups.target import AssignorError, question
from ringleader.coordinator.consumer_groups.topics import Topics
from ringleader.protocol.leader_shares import read_share, share_numbers
from ringleader.protocol.messages import (
    ConsumerGroupHeartbeatRequestComputedTarget,
    ConsumerGroupHeartbeatResponseLeaderTask,
    ConsumerGroupHeartbeatResponseTaskMember,
    ConsumerGroupHeartbeatResponseTaskSubscription,
    ConsumerGroupHeartbeatResponseTaskTopic,
)


def task(
    group: ConsumerGroup, topics: Topics, assignor: str, most_bytes: int
) -> Work[ConsumerGroupHeartbeatResponseLeaderTask | None]:
    """All that a leader needs, of the members as they are before the first yield; None: it would take more
    than `most_bytes`. `assignor` with its prefix. Topics of a subscription that do not exist are not in
    it."""
    described = {one.member_id: one.subscription for one in group.members.values()}
    names = sorted(group.subscribed_topics())
    members, _, _ = yield from question(group, topics)
    size = sum(len(name) + 24 for name in names)
    size += sum(5 * len(chosen) for chosen in {one.topics for one in members})
    for one in members:
        size += 64 + len(one.member_id) + 5 * sum(map(len, one.target.values()))
        size += len(described[one.member_id].leader_user_data or b"")
        yield len(one.target) // 8
    if size > most_bytes:
        return None
    made = ConsumerGroupHeartbeatResponseLeaderTask(
        group_epoch=group.epoch, target_epoch=group.assignment_epoch, assignor=assignor.removeprefix(PREFIX)
    )
    places: dict[bytes, int] = {}
    for name in names:
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
            # One that was deleted meanwhile is not there; another epoch will begin.
            chosen = sorted(places[topic_id] for topic_id in one.topics if topic_id in places)
            made.subscriptions.append(ConsumerGroupHeartbeatResponseTaskSubscription(chosen))
            yield len(chosen)
        known = described[one.member_id]
        owned = share_numbers(
            (places[topic_id], sorted(partitions))
            for topic_id, partitions in one.target.items()
            if topic_id in places
        )
        made.members.append(
            ConsumerGroupHeartbeatResponseTaskMember(
                one.member_id,
                known.instance_id,
                known.rack_id,
                subscriptions[one.topics],
                owned,
                known.leader_user_data,
            )
        )
        yield 1 + len(one.target)
    return made


def shares(
    answer: ConsumerGroupHeartbeatRequestComputedTarget, members: list[Candidate], counts: Mapping[bytes, int]
) -> Work[Shares]:
    """A leader's answer; members that it does not name get nothing. `counts`: the partitions of each topic.
    Raises `AssignorError` if it says that it could not compute, names anything twice, or a member that there
    is not, or more partitions than a topic has; `target.check` does the rest."""
    if answer.error is not None:
        raise AssignorError(f"it could not compute: {answer.error}")
    found: Shares = {one.member_id: {} for one in members}
    named = set()
    for member in answer.members:
        if member.member_id in named:
            raise AssignorError(f"{member.member_id} is named twice")
        if member.member_id not in found:
            raise AssignorError(f"{member.member_id} is no member")
        named.add(member.member_id)
        own: dict[bytes, frozenset[int]] = {}
        try:
            for place, numbers in read_share(member.share):
                topic_id = answer.topic_ids[place]
                if len(numbers) > counts.get(topic_id, 0):
                    text = f"{member.member_id} gets more partitions of topic {topic_id.hex()} than it has"
                    raise AssignorError(text)
                partitions = frozenset(numbers)
                if topic_id in own or len(partitions) != len(numbers):
                    text = f"{member.member_id} gets a partition of topic {topic_id.hex()} twice"
                    raise AssignorError(text)
                if partitions:
                    own[topic_id] = partitions
                yield 1 + len(partitions) // 8
        except (ValueError, IndexError) as error:
            raise AssignorError(f"the share of {member.member_id} cannot be read: {error}") from error
        found[member.member_id] = own
    return found
