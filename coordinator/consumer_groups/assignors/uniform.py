"""`uniform`: loads that differ by one partition at most, and as few moves as that allows.

As Kafka's server-side UniformAssignor. Where all members subscribe alike, the loads are as even as they can
be, and no assignment with these loads moves fewer partitions (Kafka's sometimes moves more: it deals the
surplus in the order of the members, not first to those that have it already). Of members that have as much,
`Facts.first` and then the first ones get one more. Else partitions move to the least loaded subscriber of
their topic in at most 16 passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from heapq import heapify, heappop, heapreplace

from ringleader.coordinator.consumer_groups.assignors.model import NO_FACTS, Candidate, Facts, Shares, Work

PASSES = 16
"""Of the balancing of members that subscribe differently, as in Kafka."""

CHUNK = 256
"""Partitions of one topic that are dealt between two yields."""


def assign(members: list[Candidate], topics: Mapping[bytes, int], facts: Facts = NO_FACTS) -> Work[Shares]:
    """See `model.Assignor`."""
    if not members:
        return {}
    if alike(members):
        return (yield from _alike(members, topics, facts.first))
    return (yield from _different(members, topics))


def alike(members: list[Candidate]) -> bool:
    """Whether all subscribe to the same topics."""
    first = members[0].topics if members else frozenset[bytes]()
    return all(one.topics is first or one.topics == first for one in members)


def kept(
    members: Iterable[Candidate], topics: Mapping[bytes, int]
) -> Work[tuple[Shares, dict[bytes, set[int]], dict[str, int]]]:
    """The partitions that each member had and may keep, those of each topic that nobody had, and how many
    each member keeps. A set that stays as it was is not copied: in a large group nearly all do."""
    free = {}
    for topic_id, count in topics.items():
        free[topic_id] = set(range(count))
        yield count // 8
    kept: Shares = {}
    loads: dict[str, int] = {}
    for member in members:
        own: dict[bytes, frozenset[int]] = {}
        load, subscribed = 0, member.topics
        for topic_id, partitions in member.target.items():
            left = free.get(topic_id)
            if left is None or topic_id not in subscribed:
                continue
            had = partitions if partitions <= left else partitions & left
            if had:
                own[topic_id] = had
                left -= had
                load += len(had)
        kept[member.member_id], loads[member.member_id] = own, load
        yield len(member.target) + load // 8
    return kept, free, loads


def _give(own: dict[bytes, frozenset[int]], topic_id: bytes, given: Iterable[int]) -> None:
    had = own.get(topic_id)
    own[topic_id] = frozenset(given) if had is None else had.union(given)


def _take(own: dict[bytes, frozenset[int]], topic_id: bytes, taken: Iterable[int]) -> None:
    left = own[topic_id].difference(taken)
    if left:
        own[topic_id] = left
    else:
        del own[topic_id]


def _alike(members: list[Candidate], topics: Mapping[bytes, int], first: str) -> Work[Shares]:
    subscribed = {topic_id: topics[topic_id] for topic_id in sorted(members[0].topics) if topic_id in topics}
    had, free, loads = yield from kept(members, subscribed)
    yield from deal(loads, free, had.__getitem__, first)
    return had


def deal(
    loads: dict[str, int],
    free: dict[bytes, set[int]],
    share_of: Callable[[str], dict[bytes, frozenset[int]]],
    first: str,
) -> Work[None]:
    """Even out the loads of members that subscribe alike, in their order. `free`: partitions that none of
    them has, by topic. `share_of(member_id)`: of one whose share changes, to be changed. `first`: see
    `Facts`."""
    total = sum(loads.values()) + sum(map(len, free.values()))
    least, extras = divmod(total, len(loads))
    # The extra partition goes to those that have it already, then to those that have most.
    order = [first, *(one for one in loads if one != first)] if first in loads else list(loads)
    bearers = [member_id for member_id in order if loads[member_id] > least]
    if len(bearers) < extras:
        others = [member_id for member_id in order if loads[member_id] <= least]
        bearers += sorted(others, key=loads.__getitem__, reverse=True)
    quotas = dict.fromkeys(loads, least) | dict.fromkeys(bearers[:extras], least + 1)
    for member_id in [one for one, load in loads.items() if load > quotas[one]]:
        own, surplus = share_of(member_id), loads[member_id] - quotas[member_id]
        for topic_id in sorted(own, key=lambda one: -len(own[one])):
            yield len(own[topic_id])
            taken = sorted(own[topic_id])[-surplus:]
            _take(own, topic_id, taken)
            free.setdefault(topic_id, set()).update(taken)
            loads[member_id] -= len(taken)
            surplus -= len(taken)
            if not surplus:
                break
    hungry = [member_id for member_id, load in loads.items() if load < quotas[member_id]]
    place = 0
    for topic_id in sorted(free):
        given: dict[str, list[int]] = {}
        for partition in sorted(free[topic_id]):
            place %= len(hungry)
            member_id = hungry[place]
            given.setdefault(member_id, []).append(partition)
            loads[member_id] += 1
            if loads[member_id] == quotas[member_id]:
                del hungry[place]
            else:
                place += 1
            if not partition % CHUNK:
                yield CHUNK
        for member_id, some in given.items():
            _give(share_of(member_id), topic_id, some)
        yield len(given)


def _different(members: list[Candidate], topics: Mapping[bytes, int]) -> Work[Shares]:
    had, free, loads = yield from kept(members, topics)
    subscribers = yield from _subscribers(members)
    ordered = sorted(
        (topic_id for topic_id in subscribers if topic_id in topics),
        key=lambda one: (-topics[one] / len(subscribers[one]), len(subscribers[one]), one),
    )
    # One number for a member's load and its place by id: numbers are cheaper to order than pairs.
    names = sorted(had)
    step = len(names)
    keys = {member_id: loads[member_id] * step + place for place, member_id in enumerate(names)}
    for topic_id in ordered:
        if not free[topic_id]:
            continue
        heap = [keys[member_id] for member_id in subscribers[topic_id]]
        heapify(heap)
        given: dict[str, list[int]] = {}
        for partition in sorted(free[topic_id]):
            key = heap[0]
            member_id = names[key % step]
            keys[member_id] = key + step
            heapreplace(heap, key + step)
            given.setdefault(member_id, []).append(partition)
            if not partition % CHUNK:
                yield CHUNK
        for member_id, some in given.items():
            _give(had[member_id], topic_id, some)
        yield len(heap) // 8 + len(given)
    loads = {member_id: key // step for member_id, key in keys.items()}
    owners: dict[bytes, set[str]] = {topic_id: set() for topic_id in ordered}
    for member_id, own in had.items():
        for topic_id in own:
            owners[topic_id].add(member_id)
        yield len(own)
    for _ in range(PASSES):
        least = min(loads.values())  # moves go to those that have less: it never falls
        moved = False
        for topic_id in ordered:
            seen = subscribers[topic_id], owners[topic_id]
            moved |= yield from _balance(topic_id, *seen, had, loads, least)
        if not moved:
            break
    return had


def _subscribers(members: Iterable[Candidate]) -> Work[dict[bytes, list[str]]]:
    """The members of each topic. Members that subscribe alike are seen to together."""
    alike: dict[frozenset[bytes], list[str]] = {}
    for member in members:
        alike.setdefault(member.topics, []).append(member.member_id)
    found: dict[bytes, list[str]] = {}
    for topics, some in alike.items():
        for topic_id in topics:
            found.setdefault(topic_id, []).extend(some)
        yield len(topics) * (1 + len(some) // 64)
    return found


def _balance(
    topic_id: bytes,
    subscribers: list[str],
    owners: set[str],
    kept: Shares,
    loads: dict[str, int],
    least: int,
) -> Work[bool]:
    """Move partitions of a topic from its most to its least loaded subscriber, while that evens them out.
    `owners`: those that have any of it; `least`: no member has fewer in all."""
    yield len(owners) // 8
    most = max(map(loads.__getitem__, owners), default=least)
    if most - least <= 1:
        return False
    yield len(subscribers) // 8
    if most - min(map(loads.__getitem__, subscribers)) <= 1:
        return False
    givers = [(-loads[one], one) for one in owners]
    takers = [(loads[one], one) for one in subscribers]
    heapify(givers)
    heapify(takers)
    # None that gives takes as well: it would have to be the most and the least loaded one.
    left: dict[str, list[int]] = {}
    given: dict[str, list[int]] = {}
    while givers:
        giver, taker = givers[0][1], takers[0][1]
        if giver not in left:
            left[giver] = sorted(kept[giver][topic_id])
            yield len(left[giver])
        if not left[giver]:
            heappop(givers)
            continue
        if loads[giver] != -givers[0][0]:
            heapreplace(givers, (-loads[giver], giver))
            continue
        if loads[taker] != takers[0][0]:
            heapreplace(takers, (loads[taker], taker))
            continue
        if loads[giver] - loads[taker] <= 1:
            break
        given.setdefault(taker, []).append(left[giver].pop())
        loads[giver] -= 1
        loads[taker] += 1
        yield 1
    for member_id, some in left.items():
        _take(kept[member_id], topic_id, kept[member_id][topic_id].difference(some))
        if not some:
            owners.remove(member_id)
    for member_id, some in given.items():
        _give(kept[member_id], topic_id, some)
        owners.add(member_id)
    return True
