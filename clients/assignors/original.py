"""The rule of Kafka's first high-level consumer. Protocol name `original`.

Per topic: partitions sorted, N = ceil(partitions / members), the i-th member (by member order) gets the
partitions from i*N up to but not including (i+1)*N.

Guarantees: every partition exactly once; deterministic, whatever the order of the input. Not balanced: with
10 partitions and 4 members the shares are 3, 3, 3 and 1, with 4 partitions and 3 members 2, 2 and 0. Not
sticky, racks are not looked at.
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
    """See the module. `racks` is ignored."""
    result: Assignment = {member.member_id: {} for member in in_order(members)}
    for topic, takers in subscribers(members, partitions).items():
        count = partitions[topic]
        share = -(-count // len(takers))
        for number, taker in enumerate(takers):
            run = list(range(number * share, min((number + 1) * share, count)))
            if run:
                result[taker.member_id][topic] = run
    return result


ORIGINAL = Assignor("original", assign)
