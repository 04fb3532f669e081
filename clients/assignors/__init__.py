"""Assignors: pure functions from members and partitions to an assignment.

`ASSIGNORS` maps the protocol name that a group votes on to the assignor. An application may put one of its
own there, under its name, in each process that makes a member; members then offer it as `assignors=[name]`.
"""

from ringleader.clients.assignors.lag import lag_aware
from ringleader.clients.assignors.model import (
    Assignment,
    Assignor,
    AssignorMember,
    PartitionCounts,
    PartitionRacks,
)
from ringleader.clients.assignors.original import ORIGINAL
from ringleader.clients.assignors.range import RANGE
from ringleader.clients.assignors.roundrobin import ROUND_ROBIN
from ringleader.clients.assignors.shuffled import RANDOM, random_assignor
from ringleader.clients.assignors.sticky import (
    COOPERATIVE_STICKY,
    STICKY,
    cooperative_user_data,
    sticky_user_data,
)
from ringleader.clients.assignors.weighted import WEIGHTED, weight_user_data

ASSIGNORS: dict[str, Assignor] = {
    assignor.name: assignor
    for assignor in (RANGE, ROUND_ROBIN, STICKY, COOPERATIVE_STICKY, WEIGHTED, ORIGINAL, RANDOM)
}

__all__ = [
    "ASSIGNORS",
    "COOPERATIVE_STICKY",
    "ORIGINAL",
    "RANDOM",
    "RANGE",
    "ROUND_ROBIN",
    "STICKY",
    "WEIGHTED",
    "Assignment",
    "Assignor",
    "AssignorMember",
    "PartitionCounts",
    "PartitionRacks",
    "cooperative_user_data",
    "lag_aware",
    "random_assignor",
    "sticky_user_data",
    "weight_user_data",
]
