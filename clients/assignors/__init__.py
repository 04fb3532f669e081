"""Assignors: pure functions from members and partitions to an assignment.

`ASSIGNORS` maps the protocol name that a group votes on to the assignor.
"""

from ringleader.clients.assignors.model import (
    Assignment,
    Assignor,
    AssignorMember,
    PartitionCounts,
    PartitionRacks,
)
from ringleader.clients.assignors.range import RANGE
from ringleader.clients.assignors.roundrobin import ROUND_ROBIN
from ringleader.clients.assignors.sticky import (
    COOPERATIVE_STICKY,
    STICKY,
    cooperative_user_data,
    sticky_user_data,
)

ASSIGNORS: dict[str, Assignor] = {assignor.name: assignor for assignor in (RANGE, ROUND_ROBIN)}

__all__ = [
    "ASSIGNORS",
    "COOPERATIVE_STICKY",
    "RANGE",
    "ROUND_ROBIN",
    "STICKY",
    "Assignment",
    "Assignor",
    "AssignorMember",
    "PartitionCounts",
    "PartitionRacks",
    "cooperative_user_data",
    "sticky_user_data",
]
