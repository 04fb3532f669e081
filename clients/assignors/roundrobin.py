"""Round-robin: all partitions of all topics dealt out in turn. Protocol name `roundrobin`, as Kafka's
RoundRobinAssignor.

Guarantees: every partition exactly once; deterministic, whatever the order of the input; with equal
subscriptions the members' counts differ by at most 1 over all topics. Not sticky, racks are not looked at,
and different subscriptions can end badly unbalanced.
"""

from __future__ import annotations

from collections.abc import Sequence

from ringleader.clients.assignors.model import (
    Assignment,
    Assignor,
    AssignorMember,
    PartitionCounts,
    PartitionRacks,
    in_order,
    subscribers,
)


def assign(
    members: Sequence[AssignorMember], partitions: PartitionCounts, racks: PartitionRacks | None = None
) -> Assignment:
    """Give the partitions, by topic and number, to a pointer that goes round the members (in member order)
    and skips those not subscribed to the topic. `racks` is ignored."""
    circle = in_order(members)
    result: Assignment = {member.member_id: {} for member in circle}
    pointer = 0
    for topic, takers in subscribers(members, partitions).items():
        takes = {taker.member_id for taker in takers}
        for partition in range(partitions[topic]):
            while circle[pointer].member_id not in takes:
                pointer = (pointer + 1) % len(circle)
            result[circle[pointer].member_id].setdefault(topic, []).append(partition)
            pointer = (pointer + 1) % len(circle)
    return result


ROUND_ROBIN = Assignor("roundrobin", assign)
