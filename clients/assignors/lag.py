"""Lag-aware: the sum of lag is shared evenly. Protocol name `lag-aware`; ours.

The leader hands in the lag of each partition when it makes the assignor (`lag_aware`); members tell what they
own as members of a `sticky` or a `cooperative-sticky` group do.

Guarantees (the load of a partition is its lag and one, so that those without lag are shared evenly too):

- Every partition exactly once (at most once while it changes hands between members that rejoin with what they
  own); deterministic, whatever the order of the input.
- As long as no member has more than the mean and `imbalance`, nobody gives anything up. A member that has
  more gives up what lowers the larger of the two loads, as long as there is such a partition.
- Equal subscriptions: a member is above the mean by `imbalance` at most, or by no more than the smallest of
  its own partitions.

Racks are not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from ringleader.clients.assignors.claims import claims_of, withhold
from ringleader.clients.assignors.evened import Evened
from ringleader.clients.assignors.model import (
    Assignment,
    Assignor,
    AssignorMember,
    PartitionCounts,
    PartitionRacks,
)
from ringleader.clients.assignors.ownership import Claim, Claims, Table
from ringleader.protocol.embedded import StickyUserData
from ringleader.protocol.errors import MalformedError

DEFAULT_IMBALANCE = 0.1

_PER_PARTITION = 1.0
"""The cost of a partition besides its lag, in records: partitions without lag are shared evenly too."""

Lags = Mapping[str, Sequence[int]]
"""Topic -> records behind the end, for each partition. A missing lag counts as 0."""


def behind(lags: Lags, topics: Mapping[str, Sequence[int]]) -> int:
    """The lag of these partitions together."""
    return sum(
        known[partition]
        for topic, partitions in topics.items()
        if (known := lags.get(topic))
        for partition in partitions
        if partition < len(known)
    )


def assign(
    members: Sequence[AssignorMember],
    partitions: PartitionCounts,
    racks: PartitionRacks | None = None,
    *,
    lags: Lags,
    imbalance: float = DEFAULT_IMBALANCE,
) -> Assignment:
    """See the module. `racks` is ignored."""
    if not members:
        return {}
    table = Table(members, partitions)
    claims = Claims(table, [claims_of(member, _last(member)) for member in table.members])
    if not table.size:
        return table.assignment([[] for _ in table.members])
    costs = []
    for number, topic in enumerate(table.topics):
        count = table.first[number + 1] - table.first[number]
        known = list(lags.get(topic, ()))[:count]
        costs += [_PER_PARTITION + max(lag, 0) for lag in known + [0] * (count - len(known))]
    work = Evened(table, claims, costs, [1.0] * len(table.members), imbalance)
    work.run()
    return table.assignment(withhold(table, claims, work.shares))


def lag_aware(lags: Lags, imbalance: float = DEFAULT_IMBALANCE) -> Assignor:
    """The assignor for the lags as they are now. `imbalance`: how far above the mean a member's lag may be
    before anything moves for it; 0.1 is a tenth. Raises ValueError if that is negative."""
    if imbalance < 0:
        raise ValueError(f"imbalance needs to be 0 or more, not {imbalance}")
    return Assignor("lag-aware", partial(assign, lags=lags, imbalance=imbalance), cooperative=True)


def _last(member: AssignorMember) -> Claim:
    if member.user_data is None:
        return {}, -1
    try:
        data = StickyUserData.decode(member.user_data)
    except MalformedError:
        return {}, -1
    return data.partitions, data.generation
