"""Beside all assignments that there are, in groups small enough to try them all: the sticky assignors find
the most even one with the fewest moves, and the own assignors keep to the bounds that they state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ringleader.clients.assignors import (
    COOPERATIVE_STICKY,
    ORIGINAL,
    RANDOM,
    STICKY,
    WEIGHTED,
    Assignment,
    Assignor,
    AssignorMember,
    lag_aware,
    optimum,
    sticky_user_data,
    weight_user_data,
)
from ringleader.protocol.embedded import WeightUserData
from tests.support import shares

BOTH = pytest.mark.parametrize("assignor", [STICKY, COOPERATIVE_STICKY], ids=lambda a: a.name)
MOST_TRIALS = 2_000
NAMES = "abcd"
TOPICS = "tuv"

Place = tuple[str, int]


def owned_by(places: Mapping[Place, str], name: str) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in sorted(place for place, owner in places.items() if owner == name):
        found.setdefault(topic, []).append(partition)
    return found


@st.composite
def small_groups(
    draw: st.DrawFn, equal: bool
) -> tuple[dict[str, int], dict[str, Sequence[str]], dict[Place, str]]:
    """Partition counts, the topics of each member, and who owns what; some belongs to members that left."""
    names = NAMES[: draw(st.integers(1, 4))]
    some = st.lists(st.sampled_from(TOPICS), unique=True, min_size=1)
    shared = draw(some)
    topics: dict[str, Sequence[str]] = {name: shared if equal else draw(some) for name in names}
    most = 0
    while len(names) > 1 and len(names) ** (most + 1) <= MOST_TRIALS:
        most += 1
    counts, left = dict.fromkeys(TOPICS, 0), draw(st.integers(0, most or 6))
    for topic in draw(st.permutations(TOPICS)):
        counts[topic] = draw(st.integers(0, left))
        left -= counts[topic]
    places = {
        (topic, p): draw(st.sampled_from(f"{names}x")) for topic in TOPICS for p in range(counts[topic])
    }
    return counts, topics, {place: owner for place, owner in places.items() if owner != "x"}


def every_way(counts: Mapping[str, int], topics: Mapping[str, Sequence[str]]) -> Iterator[dict[Place, str]]:
    places = [(topic, p) for topic, n in counts.items() for p in range(n)]
    takers = {topic: [name for name, wanted in topics.items() if topic in wanted] for topic in counts}
    places = [place for place in places if takers[place[0]]]
    for chosen in product(*(takers[topic] for topic, _ in places)):
        yield dict(zip(places, chosen, strict=True))


def moves(
    holder: Mapping[Place, str], owner: Mapping[Place, str], topics: Mapping[str, Sequence[str]]
) -> int:
    """Partitions that leave an owner who could have kept them."""
    return sum(
        owner.get(place, name) != name and place[0] in topics[owner[place]] for place, name in holder.items()
    )


def unevenness(holder: Mapping[Place, str]) -> int:
    names = list(holder.values())
    return sum(names.count(name) ** 2 for name in set(names))


def holders(got: Assignment) -> dict[Place, str]:
    return {(t, p): name for name, share in got.items() for t, ps in share.items() for p in ps}


def joined(
    assignor: Assignor,
    topics: Mapping[str, Sequence[str]],
    places: Mapping[Place, str],
    weights: Mapping[str, float] | None = None,
) -> list[AssignorMember]:
    members = []
    for name, wanted in topics.items():
        has = owned_by(places, name)
        data = sticky_user_data(has, 1) if weights is None else weight_user_data(weights[name], has, 1)
        members.append(
            AssignorMember(
                name,
                topics=wanted,
                owned={} if assignor is STICKY else has,
                generation=1,
                user_data=data,
            )
        )
    return members


def settle(
    assignor: Assignor,
    topics: Mapping[str, Sequence[str]],
    places: Mapping[Place, str],
    counts: Mapping[str, int],
    weights: Mapping[str, float] | None = None,
) -> tuple[dict[Place, str], int]:
    """The owners once nobody loses anything, and after how many rounds."""
    for rounds in range(1, 6):
        got = holders(assignor.assign(joined(assignor, topics, places, weights), counts))
        # A partition that is withheld from its owner is in nobody's share: the owner gives it up and rejoins.
        if assignor is STICKY or all(place in got for place in places if counts[place[0]]):
            return got, rounds
        places = got
    raise AssertionError("no end of rounds")


@BOTH
@pytest.mark.parametrize("equal", [True, False])
@settings(max_examples=shares.share(40, whole=150))
@given(data=st.data())
def test_the_most_even_one_with_the_fewest_moves(
    assignor: Assignor, equal: bool, data: st.DataObject
) -> None:
    counts, topics, places = data.draw(small_groups(equal))
    wanted = {place: owner for place, owner in places.items() if any(place[0] in t for t in topics.values())}
    got, rounds = settle(assignor, topics, wanted, counts)
    best = min((unevenness(way), moves(way, places, topics)) for way in every_way(counts, topics))
    assert (unevenness(got), moves(got, places, topics)) == best
    assert rounds <= 2


def reachable(start: str, got: Assignment, topics: Mapping[str, Sequence[str]]) -> set[str]:
    """The members that a partition of `start` could end up with, each on the way handing on one of its own
    for it."""
    found, row = {start}, [start]
    for giver in row:
        for taker, wanted in topics.items():
            if taker not in found and set(got[giver]) & set(wanted):
                found.add(taker)
                row.append(taker)
    return found


def drawn_group(data: st.DataObject) -> tuple[dict[str, int], dict[str, Sequence[str]], dict[Place, str]]:
    counts = {topic: data.draw(st.integers(0, 15)) for topic in "pqrstu"}
    some = st.lists(st.sampled_from("pqrstu"), unique=True, min_size=1, max_size=3)
    names = "abcdefghijkl"[: data.draw(st.integers(2, 12))]
    topics: dict[str, Sequence[str]] = {name: data.draw(some) for name in names}
    places = {
        (t, p): data.draw(st.sampled_from([*topics, "gone"])) for t, n in counts.items() for p in range(n)
    }
    return counts, topics, {place: owner for place, owner in places.items() if owner in topics}


@given(data=st.data())
def test_no_chain_of_moves_would_make_it_more_even(data: st.DataObject) -> None:
    counts, topics, places = drawn_group(data)
    got = STICKY.assign(joined(STICKY, topics, places), counts)
    loads = {name: sum(map(len, share.values())) for name, share in got.items()}
    for name in topics:
        assert all(loads[name] - loads[other] < 2 for other in reachable(name, got, topics))


@given(data=st.data())
def test_a_search_that_ends_early_leaves_no_single_move(data: st.DataObject) -> None:
    counts, topics, places = drawn_group(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optimum, "EFFORT", data.draw(st.integers(0, 60)))
        got = STICKY.assign(joined(STICKY, topics, places), counts)
    assert len(holders(got)) == sum(n for t, n in counts.items() if any(t in own for own in topics.values()))
    loads = {name: sum(map(len, share.values())) for name, share in got.items()}
    for name, share in got.items():
        assert set(share) <= set(topics[name])
        for other, wanted in topics.items():
            assert not set(share) & set(wanted) or loads[name] - loads[other] < 2


def loads_of(got: Mapping[Place, str], names: Sequence[str]) -> dict[str, int]:
    return {name: list(got.values()).count(name) for name in names}


@given(data=st.data())
def test_weighted_keeps_to_the_proportion_that_it_states(data: st.DataObject) -> None:
    names = NAMES[: data.draw(st.integers(1, 4))]
    weights = {name: data.draw(st.floats(0.1, 20)) for name in names}
    count = data.draw(st.integers(0, 60))
    topics = dict.fromkeys(names, "t")
    places = {("t", p): data.draw(st.sampled_from(names)) for p in range(count)}
    got, rounds = settle(WEIGHTED, topics, places, {"t": count}, weights)
    assert rounds <= 2
    total = sum(weights.values())
    for name, load in loads_of(got, names).items():
        quota = weights[name] * count / total
        assert quota - 1 < load + 1e-9
        assert load <= weights[name] * (count + len(names) - 1) / total + 1e-9


@given(data=st.data())
def test_weighted_moves_no_more_than_its_bound_asks_for(data: st.DataObject) -> None:
    """Of all assignments in which nobody could take a partition and be loaded less for it."""
    counts, topics, places = data.draw(small_groups(equal=True))
    weights = {name: float(data.draw(st.integers(1, 4))) for name in topics}
    kept = {place: owner for place, owner in places.items() if place[0] in topics[owner]}
    got, _ = settle(WEIGHTED, topics, kept, counts, weights)

    def stable(way: Mapping[Place, str]) -> bool:
        load = loads_of(way, list(topics))
        return all(
            (load[taker] + 1) / weights[taker] >= load[giver] / weights[giver] - 1e-9
            for giver in topics
            for taker in topics
            if load[giver] and taker != giver
        )

    assert stable(got)
    fewest = min(moves(way, places, topics) for way in every_way(counts, topics) if stable(way))
    assert moves(got, places, topics) == fewest


@given(data=st.data())
def test_lag_aware_keeps_to_the_bound_that_it_states(data: st.DataObject) -> None:
    names = NAMES[: data.draw(st.integers(1, 4))]
    lags = data.draw(st.lists(st.integers(0, 1_000), min_size=1, max_size=30))
    imbalance = data.draw(st.sampled_from([0.0, 0.1, 0.5]))
    places = {("t", p): data.draw(st.sampled_from(names)) for p in range(len(lags))}
    assignor = lag_aware({"t": lags}, imbalance)
    costs = [lag + 1 for lag in lags]
    mean = sum(costs) / len(names)
    held = {name: [costs[p] for _, p in places if places["t", p] == name] for name in names}
    within = all(sum(costs) <= mean * (1 + imbalance) for costs in held.values())
    got, _ = settle(assignor, dict.fromkeys(names, "t"), places, {"t": len(lags)})
    assert len(got) == len(lags)
    if within:
        assert got == places
    for name in names:
        mine = [costs[p] for (_, p), holder in got.items() if holder == name]
        assert sum(mine) <= max(mean * (1 + imbalance), mean + min(mine, default=0)) + 1e-6


@given(st.integers(1, 9), st.integers(0, 40))
def test_original_is_the_first_consumers_rule(members: int, partitions: int) -> None:
    names = [f"m{number}" for number in range(members)]
    got = ORIGINAL.assign([AssignorMember(name, topics=["t"]) for name in names], {"t": partitions})
    each = -(-partitions // members)
    for number, name in enumerate(names):
        expected = [p for p in range(partitions) if number * each <= p < (number + 1) * each]
        assert got[name].get("t", []) == expected


def test_random_gives_everybody_about_as_much() -> None:
    got = RANDOM.assign([AssignorMember(name, topics=["t"]) for name in NAMES], {"t": 4_000})
    assert all(900 < len(share["t"]) < 1_100 for share in got.values())


def test_weights_that_are_read() -> None:
    assert WeightUserData.decode(weight_user_data(2.5, {"t": [1]}, 3)).weight == 2.5
