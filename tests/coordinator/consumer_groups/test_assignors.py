"""The assignors of the server on drawn groups: complete, fair, sticky, and the same each time."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from ringleader.coordinator.consumer_groups.assignors import ASSIGNORS, rack, ranges, uniform, weighted
from ringleader.coordinator.consumer_groups.assignors.model import (
    NO_FACTS,
    Assignor,
    Candidate,
    Facts,
    Shares,
    Work,
)
from ringleader.coordinator.consumer_groups.target import check
from ringleader.coordinator.groups.commit import at_once

A, B, C = b"a" * 16, b"b" * 16, b"c" * 16
TOPICS = (A, B, C)

counts = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 9), min_size=1)
subscribed = st.frozensets(st.sampled_from(TOPICS))
subscriptions = st.lists(subscribed, min_size=1, max_size=7)
assignors = st.sampled_from(sorted(ASSIGNORS)).map(ASSIGNORS.__getitem__)


def run(
    assignor: Assignor, members: list[Candidate], topics: dict[bytes, int], facts: Facts = NO_FACTS
) -> Shares:
    return at_once(assignor(members, topics, facts))


def members_of(some: list[frozenset[bytes]], topics: dict[bytes, int], old: Shares) -> list[Candidate]:
    return [
        Candidate(f"m{number}", topics_of.intersection(topics), old.get(f"m{number}", {}))
        for number, topics_of in enumerate(some)
    ]


def sizes(shares: Shares) -> list[int]:
    return sorted(sum(map(len, own.values())) for own in shares.values())


def moves(members: list[Candidate], shares: Shares) -> int:
    """The partitions that a member had and another one gets."""
    return sum(
        len(partitions - shares[one.member_id].get(topic_id, frozenset()))
        for one in members
        for topic_id, partitions in one.target.items()
    )


@given(counts, subscriptions, counts, subscriptions, assignors)
def test_every_partition_goes_to_one_subscriber(
    before: dict[bytes, int],
    old_members: list[frozenset[bytes]],
    after: dict[bytes, int],
    new_members: list[frozenset[bytes]],
    assignor: Assignor,
) -> None:
    first = members_of(old_members, before, {})
    shares = run(assignor, first, before)
    at_once(check(shares, first, before))
    second = members_of(new_members, after, shares)
    again = run(assignor, second, after)
    at_once(check(again, second, after))
    assert run(assignor, second, after) == again


@given(counts, st.integers(1, 7), st.integers(1, 7), counts)
def test_uniform_is_even_and_moves_as_little_as_that_allows(
    before: dict[bytes, int], members_before: int, members_after: int, after: dict[bytes, int]
) -> None:
    every = frozenset(TOPICS)
    shares = run(uniform.assign, members_of([every] * members_before, before, {}), before)
    members = members_of([every] * members_after, after, shares)
    again = run(uniform.assign, members, after)
    least, extras = divmod(sum(after.values()), members_after)
    assert sizes(again) == [least] * (members_after - extras) + [least + 1] * extras
    # The partitions that a member still has and may keep.
    kept = [
        sum(len({one for one in some if one < after.get(topic, 0)}) for topic, some in member.target.items())
        for member in members
    ]
    surplus = sorted((max(0, count - least) for count in kept), reverse=True)
    needed = sum(surplus) - sum(1 for count in surplus[:extras] if count > 0)
    freed = sum(
        len([one for one in some if one >= after.get(topic, 0)])
        for member in members
        for topic, some in member.target.items()
    )
    assert moves(members, again) == needed + freed


@given(counts, subscriptions)
def test_uniform_leaves_no_move_that_evens_out_two_members(
    topics: dict[bytes, int], some: list[frozenset[bytes]]
) -> None:
    members = members_of(some, topics, {})
    shares = run(uniform.assign, members, topics)
    loads = {one.member_id: sum(map(len, shares[one.member_id].values())) for one in members}
    for giver in members:
        for taker in members:
            common = [topic for topic in shares[giver.member_id] if topic in taker.topics]
            assert not common or loads[giver.member_id] - loads[taker.member_id] <= 1


def test_range_deals_neighbours_static_members_first() -> None:
    every = frozenset((A, B))
    members = [
        Candidate("z", every, instance_id="i2"),
        Candidate("a", every),
        Candidate("y", every, instance_id="i1"),
    ]
    shares = run(ranges.assign, members, {A: 5, B: 3})
    assert shares == {
        "y": {A: frozenset((0, 1)), B: frozenset((0,))},
        "z": {A: frozenset((2, 3)), B: frozenset((1,))},
        "a": {A: frozenset((4,)), B: frozenset((2,))},
    }


# ---- racks: thousands of small groups, of which all assignments can be looked at ----

RACKS = ("r1", "r2", "r3")
Placed = tuple[list[Candidate], dict[bytes, int], Facts]


def placed(draw: random.Random) -> Placed:
    """A group of few members and partitions, with racks, that perhaps had a target before."""
    topics = {topic: draw.randint(0, 2) for topic in draw.sample(TOPICS, draw.randint(1, 3))}
    share = draw.choice((0.3, 0.5))
    where = {
        topic: tuple(frozenset(one for one in RACKS if draw.random() < share) for _ in range(count))
        for topic, count in topics.items()
    }
    size, alike = draw.randint(1, 4), draw.random() < 0.4
    some = [frozenset(one for one in TOPICS if alike or draw.random() < 0.6) for _ in range(size)]
    old: Shares = {}
    if draw.random() < 0.5:
        old = run(uniform.assign, members_of([frozenset(TOPICS)] * draw.randint(1, 4), topics, {}), topics)
    members = [
        replace(one, rack=draw.choice((None, *RACKS, *RACKS))) for one in members_of(some, topics, old)
    ]
    return members, topics, Facts({topic: known for topic, known in where.items() if any(known)})


def loads(shares: Shares) -> dict[str, int]:
    return {member_id: sum(map(len, own.values())) for member_id, own in shares.items()}


def owners(shares: Shares) -> dict[tuple[bytes, int], str]:
    return {
        (topic, partition): member_id
        for member_id, own in shares.items()
        for topic, partitions in own.items()
        for partition in partitions
    }


def near(members: list[Candidate], facts: Facts, owned: dict[tuple[bytes, int], str]) -> int:
    """The partitions that have a replica in their owner's rack."""
    rack_of = {one.member_id: one.rack for one in members}
    return sum(
        rack_of[owner] in facts.racks[topic][partition]
        for (topic, partition), owner in owned.items()
        if topic in facts.racks
    )


def test_rack_has_the_loads_of_uniform_and_no_assignment_with_them_has_more_near(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(1_500):
        members, topics, facts = placed(draw)
        shares = run(rack.assign, members, topics, facts)
        at_once(check(shares, members, topics))
        wanted = loads(run(uniform.assign, members, topics))
        assert loads(shares) == wanted
        everything = sorted(owners(shares))
        subscribers = [[one.member_id for one in members if topic in one.topics] for topic, _ in everything]
        best = max(
            near(members, facts, dict(zip(everything, chosen, strict=True)))
            for chosen in itertools.product(*subscribers)
            if Counter(chosen) == Counter(wanted)
        )
        assert near(members, facts, owners(shares)) == best


def test_rack_is_uniform_where_racks_make_no_difference(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(300):
        members, topics, facts = placed(draw)
        shares = run(uniform.assign, members, topics)
        assert run(rack.assign, members, topics) == shares
        assert run(rack.assign, [replace(one, rack="r1") for one in members], topics, facts) == shares
        assert run(rack.assign, [replace(one, rack=None) for one in members], topics, facts) == shares


def test_rack_moves_few_partitions(seed: int) -> None:
    """None in a group that has not changed; when a member leaves, no more of others than it had; and no
    member has in place of its own another partition with replicas in the same racks."""
    draw = random.Random(seed)
    for _ in range(500):
        size, replicas = draw.randint(2, 9), draw.choice((1, 2))
        where = tuple(frozenset(draw.sample(RACKS, replicas)) for _ in range(draw.randint(1, 40)))
        facts, topics = Facts({A: where}), {A: len(where)}
        members = [Candidate(f"m{one}", frozenset((A,)), rack=RACKS[one % 3]) for one in range(size)]
        without = run(uniform.assign, members, topics)
        members = [replace(one, target=without[one.member_id]) for one in members]
        shares = run(rack.assign, members, topics, facts)
        before, now = owners(without), owners(shares)
        moved = [one for one in now if now[one] != before[one]]
        for _, one in moved:
            in_place = [other for _, other in moved if now[A, other] == before[A, one]]
            assert where[one] not in [where[other] for other in in_place]
        removed, *left = members = [replace(one, target=shares[one.member_id]) for one in members]
        assert run(rack.assign, members, topics, facts) == shares
        assert moves(left, run(rack.assign, left, topics, facts)) <= loads(shares)[removed.member_id]


def counted(work: Work[Shares], done: list[int]) -> Work[Shares]:
    """The same; what it yields is noted."""
    while True:
        try:
            done.append(next(work))
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        yield done[-1]


def test_rack_takes_little_work_for_a_large_group() -> None:
    """A thousand members in three racks; each partition has replicas in two of them."""
    topics = {number.to_bytes(16, "big"): 50 for number in range(100)}
    where = tuple(frozenset(RACKS) - {RACKS[number % 3]} for number in range(50))
    facts, every = Facts(dict.fromkeys(topics, where)), frozenset(topics)
    members = [Candidate(f"m{number}", every, rack=RACKS[number % 3]) for number in range(1_000)]
    done: list[int] = []
    shares = at_once(counted(rack.assign(members, topics, facts), done))
    at_once(check(shares, members, topics))
    assert near(members, facts, owners(shares)) == 5_000
    assert sum(done) < 100_000
    assert max(done) < sum(done) / 20


# ---- weighted ----


def test_weighted_is_even_within_its_tolerance_and_moves_little(seed: int) -> None:
    """With equal subscriptions each member is near the mean, or has no partition that would even it out with
    the one that has least; and nothing moves in a group that has not changed."""
    draw = random.Random(seed)
    for _ in range(400):
        topics = {topic: draw.randint(0, 12) for topic in TOPICS}
        rates = {
            topic: [draw.choice((0.0, 1.0, draw.expovariate(0.1))) for _ in range(one)]
            for topic, one in topics.items()
        }
        facts = Facts(rates=rates)
        idle = weighted.IDLE * sum(map(sum, rates.values())) / max(1, sum(topics.values()))
        members = members_of([frozenset(TOPICS)] * draw.randint(1, 7), topics, {})
        if draw.random() < 0.5:
            before = run(uniform.assign, members, topics)
            members = [replace(one, target=before[one.member_id]) for one in members]
        shares = run(weighted.assign, members, topics, facts)
        at_once(check(shares, members, topics))
        if not idle:
            continue
        near_by(shares, rates, idle)
        again = [replace(one, target=shares[one.member_id]) for one in members]
        assert run(weighted.assign, again, topics, facts) == shares
        left = again[1:]
        if left:
            after = run(weighted.assign, left, topics, facts)
            near_by(after, rates, idle)


def near_by(shares: Shares, rates: dict[bytes, list[float]], idle: float) -> None:
    costs = {
        member_id: [idle + rates[topic][number] for topic, some in own.items() for number in some]
        for member_id, own in shares.items()
    }
    sums = {member_id: sum(some) for member_id, some in costs.items()}
    mean, least = sum(sums.values()) / len(sums), min(sums.values())
    for member_id, load in sums.items():
        is_near = load <= mean * (1 + weighted.TOLERANCE) + 1e-6
        if not is_near or least < mean * (1 - weighted.TOLERANCE) - 1e-6:
            assert min(costs[member_id], default=load) >= (load - least) * (1 - 1e-6)


def test_rates_that_change_a_little_move_nothing_and_large_ones_do() -> None:
    members, topics = members_of([frozenset((A,))] * 2, {A: 8}, {}), {A: 8}
    shares = run(weighted.assign, members, topics, Facts(rates={A: [10.0] * 8}))
    assert sizes(shares) == [4, 4]
    members = [replace(one, target=shares[one.member_id]) for one in members]
    busy = [10.0 + (one in shares["m0"][A]) for one in range(8)]
    assert run(weighted.assign, members, topics, Facts(rates={A: busy})) == shares
    busy = [10.0 + 20 * (one in shares["m0"][A]) for one in range(8)]
    assert sizes(run(weighted.assign, members, topics, Facts(rates={A: busy}))) == [3, 5]
    assert run(weighted.assign, members, topics) == shares


def test_a_member_that_joins_many_gets_its_share() -> None:
    members, topics = members_of([frozenset((A,))] * 20, {A: 200}, {}), {A: 200}
    facts = Facts(rates={A: [10.0] * 200})
    shares = run(weighted.assign, members, topics, facts)
    members = [replace(one, target=shares[one.member_id]) for one in members]
    members.append(Candidate("new", frozenset((A,))))
    again = run(weighted.assign, members, topics, facts)
    assert len(again["new"][A]) == 8
    assert moves(members, again) == 8


def test_weighted_gives_each_partition_to_one_subscriber(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(400):
        topics = {topic: draw.randint(0, 9) for topic in TOPICS}
        facts = Facts(rates={topic: [draw.random() for _ in range(one)] for topic, one in topics.items()})
        some = [frozenset(draw.sample(TOPICS, draw.randint(0, 3))) for _ in range(5)]
        members = members_of(some, topics, {})
        for _ in range(2):
            shares = run(weighted.assign, members, topics, facts)
            at_once(check(shares, members, topics))
            members = [replace(one, target=shares[one.member_id]) for one in members[1:]]
