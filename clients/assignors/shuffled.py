"""Random: every partition to any of its subscribers, by a seeded draw. Protocol name `random`.

Good against systematic unfairness, and the shortest example of an assignor of one's own. Guarantees: every
partition exactly once; the same seed and input give the same result, whatever the order of the input.
Balanced on average only; not sticky, racks are not looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from random import Random

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
    members: Sequence[AssignorMember],
    partitions: PartitionCounts,
    racks: PartitionRacks | None = None,
    *,
    seed: int = 0,
) -> Assignment:
    """See the module. `racks` is ignored."""
    draw = Random(seed)
    result: Assignment = {member.member_id: {} for member in in_order(members)}
    for topic, takers in subscribers(members, partitions).items():
        for partition in range(partitions[topic]):
            result[draw.choice(takers).member_id].setdefault(topic, []).append(partition)
    return result


def random_assignor(seed: int) -> Assignor:
    """An assignor with this seed. All members of a group may have different ones: the leader's counts."""
    return Assignor("random", partial(assign, seed=seed))


RANDOM = random_assignor(0)
