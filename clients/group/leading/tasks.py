"""A computation that the coordinator of a group of the consumer protocol hands to its leader
(docs/leader-side-assignors.md), by the assignors of the classic protocol: plain values in and out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ringleader.clients.assignors import (
    STICKY,
    Assignment,
    Assignor,
    AssignorMember,
    PartitionRacks,
    sticky_user_data,
)
from ringleader.protocol.leader_shares import read_share, share_numbers
from ringleader.protocol.messages import (
    ConsumerGroupHeartbeatRequestComputedMember,
    ConsumerGroupHeartbeatRequestComputedTarget,
    ConsumerGroupHeartbeatResponseLeaderTask,
)

ROUNDS = 3
"""A cooperative assignor withholds a partition that changes hands, and gives it out in the next round: the
coordinator sees to the hand-over, so all rounds are computed at once."""


def read(
    task: ConsumerGroupHeartbeatResponseLeaderTask,
) -> tuple[list[AssignorMember], dict[str, int]]:
    """The members and the partition counts, as an assignor takes them. A member owns what it was to have so
    far. Members with the same topics have one list together."""
    names = [topic.name for topic in task.topics]
    chosen = [[names[place] for place in one.topics] for one in task.subscriptions]
    members = []
    for one in task.members:
        owned = {names[place]: partitions for place, partitions in read_share(one.owned)}
        data = one.user_data or None
        generation = task.target_epoch if owned else -1
        if task.assignor == STICKY.name and owned:
            data = sticky_user_data(owned, generation)  # it reads them from there only
        topics = chosen[one.subscription]
        members.append(
            AssignorMember(one.member_id, one.instance_id, topics, owned, generation, one.rack_id, data)
        )
    return members, {topic.name: topic.partitions for topic in task.topics}


def compute(
    task: ConsumerGroupHeartbeatResponseLeaderTask,
    assignor: Assignor,
    members: Sequence[AssignorMember],
    counts: Mapping[str, int],
    racks: PartitionRacks | None,
) -> ConsumerGroupHeartbeatRequestComputedTarget:
    """The leader's answer. Raises what the assignor raises, and KeyError for a topic that the task does not
    have."""
    total = sum(counts[topic] for topic in {topic for one in members for topic in one.topics})
    assignment: Assignment = {}
    for _ in range(ROUNDS):
        assignment = assignor.assign(members, counts, racks)
        given = sum(len(numbers) for topics in assignment.values() for numbers in topics.values())
        if given == total or not assignor.cooperative:
            break
        members = [
            replace(one, owned=assignment.get(one.member_id, {}), generation=task.target_epoch)
            for one in members
        ]
    places = {topic.name: place for place, topic in enumerate(task.topics)}
    computed = ConsumerGroupHeartbeatRequestComputedTarget(task.group_epoch)
    computed.topic_ids = [topic.topic_id for topic in task.topics]
    for member_id, topics in assignment.items():
        share = share_numbers((places[topic], numbers) for topic, numbers in topics.items())
        if share:
            computed.members.append(ConsumerGroupHeartbeatRequestComputedMember(member_id, share))
    return computed
