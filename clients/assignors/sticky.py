"""Sticky: balanced, and each member keeps what it owns as far as balance allows. Protocol names `sticky` and
`cooperative-sticky`, as Kafka's StickyAssignor and CooperativeStickyAssignor (KIP-54, KIP-429).

Guarantees of both:

- Every partition exactly once, to a subscriber (cooperative: over two rounds, in the first one at most once);
  deterministic, whatever the order of the input; nothing moves when nothing changed.
- Equal subscriptions: the counts differ by at most 1, and no fewer partitions could move. Time and memory
  grow with members plus partitions, at some 2 microseconds a partition.
- Different subscriptions: the counts are as even as the subscriptions allow (the sum of their squares is the
  least), and under that no fewer partitions could move. The search for this ends after `optimum.EFFORT`
  steps; in a group that is large and far from even (thousands of subscriptions, owners at random) it can end
  early, and then only this is sure: no member could take a partition from one that has two or more more.
- Racks (KIP-881): partitions go to members with a replica in their rack, as far as balance allows. The
  partitions of a member far from them move then, and where subscriptions differ only the last promise holds.
- A claim counts by its generation: the latest one owns the partition; of the same generation, nobody does.

They differ in how members report what they own, and in the way of a partition that changes hands:

- `sticky` is eager: members give up everything when they join, and tell in the user data what they had. Every
  partition is given out at once.
- `cooperative-sticky`: members go on with what they own while they join. A partition that changes hands is
  withheld in the first round: its owner sees that it lost it, gives it up and rejoins, and the second round
  gives it out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ringleader.clients.assignors.constrained import Constrained
from ringleader.clients.assignors.model import (
    Assignment,
    Assignor,
    AssignorMember,
    PartitionCounts,
    PartitionRacks,
)
from ringleader.clients.assignors.ownership import Claim, Claims, Nearness, Table
from ringleader.clients.assignors.unequal import Unequal
from ringleader.protocol.embedded import StickyUserData, decode_generation, encode_generation
from ringleader.protocol.errors import MalformedError

_NOTHING: Claim = ({}, -1)


def assign_sticky(
    members: Sequence[AssignorMember], partitions: PartitionCounts, racks: PartitionRacks | None = None
) -> Assignment:
    """See the module. Ownership is read from the members' user data (`sticky_user_data`)."""
    return _assign(members, partitions, racks, eager_claim, withhold=False)


def assign_cooperative_sticky(
    members: Sequence[AssignorMember], partitions: PartitionCounts, racks: PartitionRacks | None = None
) -> Assignment:
    """See the module. Ownership is read from the Subscription (`owned`, `generation`)."""
    return _assign(members, partitions, racks, cooperative_claim, withhold=True)


def sticky_user_data(owned: Mapping[str, Sequence[int]], generation: int) -> bytes | None:
    """The user data in the subscription of a member of a `sticky` group: its last assignment and the
    generation it came in; None before the first one."""
    if generation < 0:
        return None
    return StickyUserData({topic: list(ps) for topic, ps in owned.items()}, generation).encode()


def cooperative_user_data(generation: int) -> bytes | None:
    """The user data of a member of a `cooperative-sticky` group; None before the first generation."""
    return None if generation < 0 else encode_generation(generation)


def _assign(
    members: Sequence[AssignorMember],
    partitions: PartitionCounts,
    racks: PartitionRacks | None,
    claim: Callable[[AssignorMember], Claim],
    *,
    withhold: bool,
) -> Assignment:
    if not members:
        return {}
    table = Table(members, partitions)
    claims = Claims(table, map(claim, table.members))
    nearness = Nearness(table, racks)
    subscriptions = {frozenset(member.topics) for member in members}
    work: Constrained | Unequal
    if len(subscriptions) == 1:
        work = Constrained(table, claims, nearness)
    else:
        work = Unequal(table, claims, nearness)
    work.run()
    shares = work.shares
    if withhold and (withheld := work.handed_over()):
        shares = [[one for one in share if one not in withheld] for share in shares]
    return table.assignment(shares)


def eager_claim(member: AssignorMember) -> Claim:
    """From the user data only; what cannot be read counts as nothing."""
    if member.user_data is None:
        return _NOTHING
    try:
        data = StickyUserData.decode(member.user_data)
    except MalformedError:
        return _NOTHING
    return data.partitions, data.generation


def cooperative_claim(member: AssignorMember) -> Claim:
    """From the Subscription; below version 2 that has no generation, and the user data may have it."""
    if member.generation >= 0:
        return member.owned, member.generation
    if member.user_data is None:
        return member.owned, -1
    try:
        return member.owned, decode_generation(member.user_data)
    except MalformedError:
        return member.owned, -1


STICKY = Assignor("sticky", assign_sticky)
COOPERATIVE_STICKY = Assignor("cooperative-sticky", assign_cooperative_sticky, cooperative=True)
