"""`range`: neighbouring partitions of each topic, so that equal numbers of different topics meet in a member.

As Kafka's server-side RangeAssignor: static members first, by instance id, then the others by member id; not
sticky.
"""

from __future__ import annotations

from collections.abc import Mapping

from ringleader.coordinator.consumer_groups.assignors.model import NO_FACTS, Candidate, Facts, Shares, Work


def assign(members: list[Candidate], topics: Mapping[bytes, int], _facts: Facts = NO_FACTS) -> Work[Shares]:
    """See `model.Assignor`."""
    ordered = sorted(members, key=_order)
    shares: Shares = {one.member_id: {} for one in members}
    for topic_id, count in topics.items():
        yield len(ordered)
        subscribers = [one.member_id for one in ordered if topic_id in one.topics]
        if not subscribers:
            continue
        least, extras = divmod(count, len(subscribers))
        start = 0
        for place, member_id in enumerate(subscribers):
            end = start + least + (place < extras)
            if end > start:
                shares[member_id][topic_id] = frozenset(range(start, end))
                yield end - start
            start = end
    return shares


def _order(member: Candidate) -> tuple[bool, str, str]:
    return member.instance_id is None, member.instance_id or "", member.member_id
