"""The owners of the next map: even, sticky, with no more moves than needed; and the way there, a few at a
time."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ringleader.coordinator.cluster.map import NOBODY
from ringleader.coordinator.cluster.placement import (
    IMBALANCE,
    LOAD_SWAPS,
    MOVES_AT_A_TIME,
    Unfit,
    place,
    step,
)

able_nodes = st.sets(st.integers(1, 6), min_size=1)
owners_before = st.lists(st.sampled_from([NOBODY, 1, 2, 3, 4, 5, 6, 7]), min_size=1, max_size=60)
places = st.sets(st.tuples(st.integers(0, 59), st.integers(1, 7)), max_size=60)
some_loads = st.dictionaries(st.integers(0, 59), st.floats(0, 1e6), max_size=60)


def moved(before: Sequence[int], after: Sequence[int]) -> int:
    return sum(one != other for one, other in zip(before, after, strict=True))


def fewest_moves(owners: Sequence[int], able: set[int]) -> int:
    """The shards that belong to no able node, and those that nodes own above an even share."""
    counts = sorted(
        (Counter(owner for owner in owners if owner in able)[node] for node in able), reverse=True
    )
    share, more = divmod(len(owners), len(able))
    above = sum(max(0, count - share - (rank < more)) for rank, count in enumerate(counts))
    return sum(owner not in able for owner in owners) + above


@given(owners_before, able_nodes)
def test_without_load_nodes_own_equally_many_with_the_fewest_moves(owners: list[int], able: set[int]) -> None:
    goal = place(owners, able)
    counts = [goal.count(node) for node in able]
    assert sum(counts) == len(goal), "every partition has an able owner"
    assert max(counts) - min(counts) <= 1
    assert moved(owners, goal) == fewest_moves(owners, able)
    assert place(goal, able) == goal, "what is even stays"


@given(owners_before, able_nodes, some_loads)
def test_load_moves_a_few_at_most_and_comes_to_rest(
    owners: list[int], able: set[int], loads: dict[int, float]
) -> None:
    loads = {partition: load for partition, load in loads.items() if partition < len(owners)}
    goal = place(owners, able, loads)
    counts = [goal.count(node) for node in able]
    assert max(counts) - min(counts) <= 1
    assert moved(owners, goal) <= fewest_moves(owners, able) + 2 * LOAD_SWAPS
    for _ in range(200):
        again = place(goal, able, loads)
        if again == goal:
            return
        goal = again
    raise AssertionError("with the same loads it goes on moving")


def test_loads_that_hardly_differ_come_to_rest_beside_large_ones() -> None:
    """By rounding alone partitions went round for ever."""
    owners: Sequence[int] = [0, 3, -1, 5, 3, 5, 6, 5, 0, 7, 6, 7, 5, 4, 3]
    loads = {1: 587383.3408304001, 3: 4.254497689831457e-11, 6: 999999.9999, 8: 3.9084291376192946e-08}
    loads |= {9: 0.0, 10: 100.0, 13: 0.00010898674266802429, 14: 0.11293317098986373}
    for _ in range(10):
        before, owners = owners, place(owners, {2, 3, 4, 5, 6, 7}, loads)
    assert owners == before


@pytest.mark.parametrize("owners", [[1, 2], [2, 1], [1, 2, 1, 2]])
def test_a_partition_with_all_the_load_stays_where_it_is(owners: list[int]) -> None:
    """Another place evens nothing: the nodes would only change places."""
    assert list(place(owners, {1, 2}, {0: 1e6})) == owners


logs_led_by = st.lists(st.integers(1, 4), min_size=60, max_size=60).map(lambda led: dict(enumerate(led)))


@given(owners_before, able_nodes, some_loads, places, logs_led_by)
def test_leaders_of_the_logs_cause_no_more_moves(
    owners: list[int],
    able: set[int],
    loads: dict[int, float],
    unable: set[tuple[int, int]],
    leaders: dict[int, int],
) -> None:
    unfit = Unfit(unable, {node for _, node in unable})
    without, goal = place(owners, able, unfit=unfit), place(owners, able, unfit=unfit, leaders=leaders)
    assert Counter(goal) == Counter(without), "nodes own as many"
    assert moved(owners, goal) <= moved(owners, without)
    if place(goal, able) == goal:
        assert place(goal, able, leaders=leaders) == goal, "nothing moves for that alone"
    loaded = place(owners, able, loads, leaders=leaders)
    assert moved(owners, loaded) <= fewest_moves(owners, able) + 2 * LOAD_SWAPS


def brokers_written_to(owners: Sequence[int], leaders: dict[int, int]) -> dict[int, list[int]]:
    """Of each node: how many of its logs each broker leads, the most first."""
    found = {node: Counter[int]() for node in owners}
    for partition, node in enumerate(owners):
        found[node][leaders[partition]] += 1
    return {node: sorted(count.values(), reverse=True) for node, count in sorted(found.items())}


def test_each_node_writes_to_few_brokers() -> None:
    led = [1 + partition % 3 for partition in range(48)]
    random.shuffle(led)
    leaders = dict(enumerate(led))
    owners: Sequence[int] = [NOBODY] * len(led)
    for able in ({1}, {1, 2}):
        owners = place(owners, able, leaders=leaders)
    all_three = place(owners, {1, 2, 3}, leaders=leaders)
    assert brokers_written_to(all_three, leaders) == {node: [16] for node in (1, 2, 3)}
    without = place(all_three, {1, 3}, leaders=leaders)
    assert brokers_written_to(without, leaders) == {node: [16, 8] for node in (1, 3)}
    back = place(without, {1, 2, 3}, leaders=leaders)
    assert brokers_written_to(back, leaders) == {node: [16] for node in (1, 2, 3)}


def test_two_hot_partitions_of_one_node_are_parted() -> None:
    owners = [1] * 10 + [2] * 10
    goal = place(owners, {1, 2}, {0: 500.0, 1: 500.0})
    assert goal[0] != goal[1]
    assert moved(owners, goal) == 2, "one goes, and a light one comes back for it"


def test_a_little_load_is_no_reason_to_move() -> None:
    owners = [1] * 10 + [2] * 10
    assert place(owners, {1, 2}, {0: 4.0, 1: 3.0}) == tuple(owners)


def test_what_differs_little_stays() -> None:
    owners = [1] * 10 + [2] * 10
    loads = {partition: 100.0 if partition < 10 else 80.0 for partition in range(20)}
    assert IMBALANCE > 0.2
    assert place(owners, {1, 2}, loads) == tuple(owners)


@given(owners_before, able_nodes, st.dictionaries(st.integers(0, 59), st.integers(1, 7), max_size=60))
@example([1, 1, 1, 1], {1, 2}, {0: 1, 1: 1})
def test_pinned_partitions_are_where_they_were_pinned(
    owners: list[int], able: set[int], pinned: dict[int, int]
) -> None:
    goal = place(owners, able, pinned=pinned)
    for partition, node in pinned.items():
        if node in able and partition < len(goal):
            assert goal[partition] == node
    assert set(goal) <= able


@given(owners_before, able_nodes, some_loads, places, st.sets(st.integers(1, 7)))
def test_what_a_node_cannot_serve_is_with_one_that_can_if_there_is_one(
    owners: list[int],
    able: set[int],
    loads: dict[int, float],
    unable: set[tuple[int, int]],
    wary: set[int],
) -> None:
    wary |= {node for _, node in unable}
    goal = place(owners, able, loads, unfit=Unfit(unable, wary))
    for partition, (before, after) in enumerate(zip(owners, goal, strict=True)):
        fit = {node for node in able if (partition, node) not in unable}
        assert after in (fit or able)
        if before != after and after in wary:
            assert not fit - wary, "somebody who is well could have had it"
        if before in able and not fit:
            assert after == before, "nobody is better"
    assert place(goal, able, {}, unfit=Unfit(unable, wary | able)) == goal, "who is wary gets nothing"
    at_once, _ = step(owners, goal, able, serving(owners), unable)
    for partition, owner in enumerate(owners):
        if (partition, owner) in unable:
            assert at_once[partition] == goal[partition]


def test_nobody_able_means_no_owner() -> None:
    assert place([1, 2, NOBODY], set()) == (NOBODY,) * 3


def serving(owners: Sequence[int]) -> set[tuple[int, int]]:
    return set(enumerate(owners))


@given(owners_before, able_nodes, st.sets(st.integers(1, 7)))
def test_the_goal_is_reached_a_few_moves_at_a_time(
    owners: list[int], able: set[int], there: set[int]
) -> None:
    there |= able
    now, goal = tuple(owners), place(owners, able)
    after, moving = step(now, goal, there, serving(now))
    for partition, owner in enumerate(owners):
        if owner not in there:
            assert after[partition] == goal[partition], "what nobody serves moves at once"
    rounds = 0
    while True:
        after, moving = step(now, goal, there, serving(now))
        planned = Counter(
            heir
            for one, (owner, heir) in enumerate(zip(now, after, strict=True))
            if owner != heir and owner in there
        )
        assert all(count <= MOVES_AT_A_TIME for count in planned.values())
        assert moving == {one: goal[one] for one in range(len(goal)) if after[one] != goal[one]}
        if after == now:
            break
        now = after
        rounds += 1
    assert now == goal
    assert rounds <= 1 + len(owners)


def test_a_node_that_has_not_taken_over_yet_gets_no_more() -> None:
    now, goal = [1, 1, 1, 2], [2, 2, 2, 2]
    after, moving = step(now, goal, {1, 2}, {(0, 1), (1, 1), (2, 1), (3, 2)})
    assert (after, moving) == ((2, 2, 1, 2), {2: 2})
    assert step(after, goal, {1, 2}, {(2, 1), (3, 2), (0, 1)}) == (after, moving)
    assert step(after, goal, {1, 2}, {(2, 1), (3, 2), (0, 2)}) == ((2, 2, 2, 2), {})


def test_what_its_owner_cannot_serve_moves_at_once_however_much_it_is() -> None:
    owners, goal = [1] * 8, [2] * 8
    unable = {(partition, 1) for partition in range(5)}
    assert step(owners, goal, {1, 2}, serving(owners), unable) == ((2,) * 7 + (1,), {7: 2})


def test_a_node_that_wakes_and_still_believes_to_have_partitions_keeps_none_from_their_owner() -> None:
    owners, goal = [2, 2, 1], [2, 2, 2]
    woken = {(0, 3), (1, 3)}
    assert step(owners, goal, {1, 2, 3}, {(0, 2), (1, 2), (2, 1)} | woken) == ((2, 2, 2), {})


def test_load_moves_nothing_to_a_node_that_is_wary() -> None:
    owners, loads = (1, 1, 2, 2), {0: 1_000.0, 1: 1_000.0}
    assert place(owners, {1, 2}, loads) != owners
    assert place(owners, {1, 2}, loads, unfit=Unfit((), {2})) == owners
