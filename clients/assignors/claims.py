"""How our own assignors read what members own: one assignor for members that keep what they own while they
rejoin, and for those that give up everything first."""

from __future__ import annotations

from collections.abc import Sequence

from ringleader.clients.assignors.model import AssignorMember
from ringleader.clients.assignors.ownership import Claim, Claims, Table


def claims_of(member: AssignorMember, last: Claim) -> Claim:
    """The partitions that it still owns, by its Subscription; if there are none, those that it had before it
    gave them up (`last`, from its user data)."""
    if any(member.owned.values()):
        return member.owned, member.generation
    return last


def withhold(table: Table, claims: Claims, shares: Sequence[list[int]]) -> list[list[int]]:
    """Take out what another member is still at work on: it sees that it lost it, gives it up and rejoins, and
    the next round gives it out (KIP-429)."""
    at_work = {
        table.first[table.number[topic]] + partition
        for member in table.members
        for topic, partitions in member.owned.items()
        if topic in table.number
        for partition in partitions
    }
    owner = claims.owner
    return [
        [one for one in share if one not in at_work or owner[one] == number]
        for number, share in enumerate(shares)
    ]
