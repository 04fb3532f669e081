"""Weighted: shares in proportion to what each member says it can do, for example its number of processor
cores. Protocol name `weighted`; ours.

A member states its weight in the user data of its subscription (`weight_user_data`); one that states none, or
what cannot be read, weighs 1.

Guarantees:

- Every partition exactly once (at most once while it changes hands between members that rejoin with what they
  own); deterministic, whatever the order of the input; nothing moves when nothing changed.
- Nobody could take a partition from another and still be loaded less, for its weight, than that one was.
- Equal subscriptions: of N partitions among M members with the sum of weights W, a member of weight w has
  more than w * N / W - 1 and at most w * (N + M - 1) / W; and no fewer partitions could move for that.

Racks are not looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
from ringleader.protocol.embedded import StickyUserData, WeightUserData
from ringleader.protocol.errors import MalformedError


def weight_user_data(
    weight: float, owned: Mapping[str, Sequence[int]] | None = None, generation: int = -1
) -> bytes:
    """The user data in the subscription of a member of a `weighted` group. `owned` and `generation`:
    its last assignment, from members that give up everything before they join. Raises ValueError for a weight
    that is not above 0 and finite."""
    last = StickyUserData({topic: list(ps) for topic, ps in (owned or {}).items()}, generation)
    return WeightUserData(weight, last).encode()


def assign(
    members: Sequence[AssignorMember], partitions: PartitionCounts, racks: PartitionRacks | None = None
) -> Assignment:
    """See the module. `racks` is ignored."""
    if not members:
        return {}
    table = Table(members, partitions)
    data = [_user_data(member) for member in table.members]
    claims = Claims(table, [claims_of(m, _last(one)) for m, one in zip(table.members, data, strict=True)])
    if not table.size:
        return table.assignment([[] for _ in table.members])
    weights = [1.0 if one is None else one.weight for one in data]
    work = Evened(table, claims, [1.0] * table.size, weights, 0.0)
    work.run()
    return table.assignment(withhold(table, claims, work.shares))


def _user_data(member: AssignorMember) -> WeightUserData | None:
    if member.user_data is None:
        return None
    try:
        return WeightUserData.decode(member.user_data)
    except MalformedError:
        return None


def _last(data: WeightUserData | None) -> Claim:
    return ({}, -1) if data is None else (data.last.partitions, data.last.generation)


WEIGHTED = Assignor("weighted", assign, cooperative=True)
