"""The assignors of the server on drawn groups: complete, fair, sticky, and the same each time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ringleader.coordinator.consumer_groups.assignors import ASSIGNORS, ranges, uniform
from ringleader.coordinator.consumer_groups.assignors.model import Assignor, Candidate, Shares
from ringleader.coordinator.consumer_groups.target import check
from ringleader.coordinator.groups.commit import at_once

A, B, C = b"a" * 16, b"b" * 16, b"c" * 16
TOPICS = (A, B, C)

counts = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 9), min_size=1)
subscriptions = st.lists(st.frozensets(st.sampled_from(TOPICS)), min_size=1, max_size=7)
assignors = st.sampled_from(sorted(ASSIGNORS)).map(ASSIGNORS.__getitem__)


def run(assignor: Assignor, members: list[Candidate], topics: dict[bytes, int]) -> Shares:
    return at_once(assignor(members, topics))


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
    gone = sum(
        len([one for one in some if one >= after.get(topic, 0)])
        for member in members
        for topic, some in member.target.items()
    )
    assert moves(members, again) == needed + gone


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
