"""`uniform`: loads that differ by one partition at most, and as few moves as that allows.

As Kafka's server-side UniformAssignor. Where all members subscribe alike, the loads are as even as they can
be, and no assignment with these loads moves fewer partitions (Kafka's sometimes moves more: it deals the
surplus in the order of the members, not first to those that have it already). Else partitions move to the
least loaded subscriber of their topic in at most 16 passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from heapq import heapify, heappop, heappush, heapreplace

from ringleader.coordinator.consumer_groups.assignors.model import Candidate, Shares, finished

PASSES = 16
"""Of the balancing of members that subscribe differently, as in Kafka."""


def assign(members: list[Candidate], topics: Mapping[bytes, int]) -> Shares:
    """See `model.Assignor`."""
    if not members:
        return {}
    alike = all(one.topics == members[0].topics for one in members)
    return _alike(members, topics) if alike else _different(members, topics)


def _kept(
    members: Iterable[Candidate], topics: Mapping[bytes, int]
) -> tuple[dict[str, dict[bytes, set[int]]], dict[bytes, set[int]]]:
    """The partitions that each member had and may keep, and those of each topic that nobody had."""
    free = {topic_id: set(range(count)) for topic_id, count in topics.items()}
    kept: dict[str, dict[bytes, set[int]]] = {}
    for member in members:
        own = kept[member.member_id] = {}
        for topic_id, partitions in member.target.items():
            left = free.get(topic_id)
            if left is None or topic_id not in member.topics:
                continue
            had = left & partitions
            if had:
                own[topic_id] = had
                left -= had
    return kept, free


def _alike(members: list[Candidate], topics: Mapping[bytes, int]) -> Shares:
    subscribed = {topic_id: topics[topic_id] for topic_id in sorted(members[0].topics) if topic_id in topics}
    kept, free = _kept(members, subscribed)
    least, extras = divmod(sum(subscribed.values()), len(members))
    loads = {member_id: sum(map(len, own.values())) for member_id, own in kept.items()}
    # The extra partition goes to those that have it already, then to those that have most.
    bearers = sorted(kept, key=lambda member_id: -min(loads[member_id], least + 1))[:extras]
    quotas = dict.fromkeys(kept, least) | dict.fromkeys(bearers, least + 1)
    for member_id, own in kept.items():
        surplus = loads[member_id] - quotas[member_id]
        for topic_id in sorted(own, key=lambda one: -len(own[one])) if surplus > 0 else ():
            taken = sorted(own[topic_id])[-surplus:]
            own[topic_id].difference_update(taken)
            free[topic_id].update(taken)
            loads[member_id] -= len(taken)
            surplus -= len(taken)
            if not surplus:
                break
    hungry = [member_id for member_id in kept if loads[member_id] < quotas[member_id]]
    place = 0
    for topic_id, left in free.items():
        for partition in sorted(left):
            place %= len(hungry)
            member_id = hungry[place]
            kept[member_id].setdefault(topic_id, set()).add(partition)
            loads[member_id] += 1
            if loads[member_id] == quotas[member_id]:
                del hungry[place]
            else:
                place += 1
    return finished(kept)


def _different(members: list[Candidate], topics: Mapping[bytes, int]) -> Shares:
    kept, free = _kept(members, topics)
    subscribers: dict[bytes, list[str]] = {}
    for member in members:
        for topic_id in member.topics:
            subscribers.setdefault(topic_id, []).append(member.member_id)
    ordered = sorted(
        (topic_id for topic_id in subscribers if topic_id in topics),
        key=lambda one: (-topics[one] / len(subscribers[one]), len(subscribers[one]), one),
    )
    loads = {member_id: sum(map(len, own.values())) for member_id, own in kept.items()}
    for topic_id in ordered:
        heap = [(loads[member_id], member_id) for member_id in subscribers[topic_id]]
        heapify(heap)
        for partition in sorted(free[topic_id]):
            load, member_id = heap[0]
            heapreplace(heap, (load + 1, member_id))
            kept[member_id].setdefault(topic_id, set()).add(partition)
            loads[member_id] = load + 1
    for _ in range(PASSES):
        moved = [_balance(topic_id, subscribers[topic_id], kept, loads) for topic_id in ordered]
        if not any(moved):
            break
    return finished(kept)


def _balance(
    topic_id: bytes,
    subscribers: list[str],
    kept: dict[str, dict[bytes, set[int]]],
    loads: dict[str, int],
) -> bool:
    """Move partitions of a topic from its most to its least loaded subscriber, while that evens them out."""
    givers = [(-loads[one], one) for one in subscribers if kept[one].get(topic_id)]
    takers = [(loads[one], one) for one in subscribers]
    if not givers or -min(givers)[0] - min(takers)[0] <= 1:
        return False
    heapify(givers)
    heapify(takers)
    while givers:
        giver, taker = givers[0][1], takers[0][1]
        if loads[giver] != -givers[0][0] or not kept[giver][topic_id]:
            heappop(givers)
            if kept[giver][topic_id]:
                heappush(givers, (-loads[giver], giver))
            continue
        if loads[taker] != takers[0][0]:
            heapreplace(takers, (loads[taker], taker))
            continue
        if loads[giver] - loads[taker] <= 1:
            break
        partition = max(kept[giver][topic_id])
        kept[giver][topic_id].remove(partition)
        kept[taker].setdefault(topic_id, set()).add(partition)
        loads[giver] -= 1
        loads[taker] += 1
    return True
