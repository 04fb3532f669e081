"""The assignors that Kafka does not have: the first consumer's rule, random, weighted, by lag."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleader.clients.assignors import (
    ORIGINAL,
    RANDOM,
    WEIGHTED,
    Assignment,
    Assignor,
    AssignorMember,
    lag_aware,
    random_assignor,
    sticky_user_data,
    weight_user_data,
)
from ringleader.protocol.embedded import WeightUserData

TOPICS = ("t0", "t1", "t2")
LAGS = {"t0": [900, 0, 5, 70], "t1": [3], "t2": [0, 0, 4000]}
ALL = pytest.mark.parametrize("assignor", [ORIGINAL, RANDOM, WEIGHTED, lag_aware(LAGS)], ids=lambda a: a.name)
OURS = pytest.mark.parametrize("assignor", [WEIGHTED, lag_aware(LAGS)], ids=lambda a: a.name)

counts_of = st.fixed_dictionaries({topic: st.integers(0, 9) for topic in TOPICS})
topic_sets = st.lists(st.sampled_from((*TOPICS, "unknown")), unique=True, max_size=4)


def member(name: str, weight: float | None = None, topics: Sequence[str] = ("t",)) -> AssignorMember:
    data = None if weight is None else weight_user_data(weight)
    return AssignorMember(name, topics=topics, user_data=data)


def counts_in(assignment: Assignment) -> dict[str, int]:
    return {name: sum(map(len, topics.values())) for name, topics in assignment.items()}


def owning(members: Sequence[AssignorMember], got: Assignment, generation: int) -> list[AssignorMember]:
    return [
        AssignorMember(
            m.member_id, topics=m.topics, owned=got[m.member_id], generation=generation, user_data=m.user_data
        )
        for m in members
    ]


def settle(assignor: Assignor, members: Sequence[AssignorMember], counts: Mapping[str, int]) -> Assignment:
    for generation in range(1, 6):
        got = assignor.assign(members, counts)
        rejoining = owning(members, got, generation)
        if all(
            set(ps) <= set(got[m.member_id].get(topic, ())) for m in members for topic, ps in m.owned.items()
        ):
            return got
        members = rejoining
    raise AssertionError("no end of rounds")


@pytest.mark.parametrize(
    ("partitions", "shares"),
    [
        (10, [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9]]),
        (4, [[0], [1], [2], [3]]),
        (3, [[0], [1], [2], []]),
        (5, [[0, 1], [2, 3], [4], []]),
    ],
)
def test_the_rule_of_the_first_consumer(partitions: int, shares: list[list[int]]) -> None:
    got = ORIGINAL.assign([member(f"m{i}") for i in range(4)], {"t": partitions})
    assert got == {f"m{i}": {"t": share} if share else {} for i, share in enumerate(shares)}


def test_random_is_drawn_from_the_seed() -> None:
    members = [member(f"m{i}") for i in range(4)]
    first = random_assignor(1).assign(members, {"t": 40})
    assert first == random_assignor(1).assign(members, {"t": 40})
    assert first != random_assignor(2).assign(members, {"t": 40})
    assert min(counts_in(first).values()) > 0


@pytest.mark.parametrize(
    ("weights", "partitions", "shares"),
    [
        ([1, 1], 6, [3, 3]),
        ([2, 1], 6, [4, 2]),
        ([8, 4, 4], 32, [16, 8, 8]),
        ([3, 1, None], 10, [6, 2, 2]),
        ([100, 1], 3, [3, 0]),
        ([0.5, 0.25], 3, [2, 1]),
    ],
)
def test_shares_follow_the_weights(weights: list[float | None], partitions: int, shares: list[int]) -> None:
    members = [member(f"m{i}", weight) for i, weight in enumerate(weights)]
    got = WEIGHTED.assign(members, {"t": partitions})
    assert list(counts_in(got).values()) == shares


def test_a_weight_that_cannot_be_read_is_one() -> None:
    raw = weight_user_data(7.0)
    for data in (b"", raw[:9], b"\xff" * 12, raw[:2] + b"\x7f\xf0" + bytes(6), raw[:2] + bytes(8)):
        got = WEIGHTED.assign([AssignorMember("a", topics=["t"], user_data=data), member("b")], {"t": 4})
        assert counts_in(got) == {"a": 2, "b": 2}
    for weight in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(ValueError, match="weight"):
            weight_user_data(weight)


def test_weighted_members_keep_what_they_own() -> None:
    members = [member("a", 2), member("b", 1)]
    first = WEIGHTED.assign(members, {"t": 9})
    assert counts_in(first) == {"a": 6, "b": 3}
    joined = [*owning(members, first, 1), member("c", 3)]
    withheld = WEIGHTED.assign(joined, {"t": 9})
    assert withheld["c"] == {}
    second = settle(WEIGHTED, joined, {"t": 9})
    assert counts_in(second)["c"] in (4, 5)
    for name in "ab":
        assert set(second[name]["t"]) < set(first[name]["t"])


def test_members_that_gave_up_everything_get_it_back_at_once() -> None:
    members = [
        AssignorMember("a", topics=["t"], user_data=weight_user_data(1, {"t": [1, 3]}, 4)),
        AssignorMember("b", topics=["t"], user_data=weight_user_data(1, {"t": [0, 2]}, 4)),
    ]
    assert WEIGHTED.assign(members, {"t": 4}) == {"a": {"t": [1, 3]}, "b": {"t": [0, 2]}}
    members = [
        AssignorMember("a", topics=["t"], user_data=sticky_user_data({"t": [1, 3]}, 4)),
        AssignorMember("b", topics=["t"], user_data=sticky_user_data({"t": [0, 2]}, 4)),
    ]
    assert lag_aware({}).assign(members, {"t": 4}) == {"a": {"t": [1, 3]}, "b": {"t": [0, 2]}}


def test_lag_is_shared_not_partitions() -> None:
    got = lag_aware({"t": [1000, 10, 10, 980]}).assign([member("a"), member("b")], {"t": 4})
    assert got == {"a": {"t": [0]}, "b": {"t": [1, 2, 3]}}


def test_nothing_moves_within_the_stated_imbalance() -> None:
    members = owning([member("a"), member("b")], {"a": {"t": [0, 1]}, "b": {"t": [2, 3]}}, 1)
    lags = {"t": [600, 520, 500, 400]}
    assert lag_aware(lags, 0.25).assign(members, {"t": 4}) == {"a": {"t": [0, 1]}, "b": {"t": [2, 3]}}
    assert settle(lag_aware(lags, 0.0), members, {"t": 4}) == {"a": {"t": [0, 1]}, "b": {"t": [2, 3]}}
    lags = {"t": [600, 300, 100, 100]}
    assert settle(lag_aware(lags, 0.1), members, {"t": 4}) == {"a": {"t": [0]}, "b": {"t": [1, 2, 3]}}
    with pytest.raises(ValueError, match="imbalance"):
        lag_aware({}, -0.1)


def test_partitions_without_lag_are_shared_evenly() -> None:
    got = lag_aware({}).assign([member(name) for name in "abc"], {"t": 8})
    assert sorted(counts_in(got).values()) == [2, 3, 3]


# ---- promises ----


@st.composite
def groups(draw: st.DrawFn) -> list[AssignorMember]:
    names = draw(st.lists(st.sampled_from("abcdefgh"), unique=True, min_size=1))
    return [member(name, draw(st.none() | st.integers(1, 9)), draw(topic_sets)) for name in names]


def check_whole(members: Sequence[AssignorMember], counts: Mapping[str, int], got: Assignment) -> None:
    wanted = {topic for m in members for topic in m.topics}
    given_out = Counter((t, p) for topics in got.values() for t, ps in topics.items() for p in ps)
    assert given_out == Counter((t, p) for t, n in counts.items() if t in wanted for p in range(n))
    assert set(got) == {m.member_id for m in members}
    for m in members:
        assert set(got[m.member_id]) <= set(m.topics)
        assert all(ps == sorted(ps) and ps for ps in got[m.member_id].values())


@ALL
@given(data=st.data())
def test_every_partition_once_whatever_the_order(assignor: Assignor, data: st.DataObject) -> None:
    members, counts = data.draw(groups()), data.draw(counts_of)
    got = assignor.assign(members, counts)
    check_whole(members, counts, got)
    assert assignor.assign(data.draw(st.permutations(members)), dict(reversed(counts.items()))) == got
    assert assignor.assign([], counts) == {}


@OURS
@given(data=st.data())
def test_nothing_moves_when_nothing_changed(assignor: Assignor, data: st.DataObject) -> None:
    members, counts = data.draw(groups()), data.draw(counts_of)
    first = assignor.assign(members, counts)
    assert assignor.assign(owning(members, first, 1), counts) == first


@OURS
@given(data=st.data())
def test_the_rest_settles_when_a_member_joins_or_leaves(assignor: Assignor, data: st.DataObject) -> None:
    counts = data.draw(counts_of)
    before = data.draw(groups())
    first = assignor.assign(before, counts)
    staying = [m for m in owning(before, first, 1) if data.draw(st.integers(0, 2))]
    members = [*staying, member("z", 2.0, data.draw(topic_sets))]
    check_whole(members, counts, settle(assignor, members, counts))


@given(data=st.data())
def test_nobody_could_take_a_partition_and_still_be_loaded_less(data: st.DataObject) -> None:
    members, counts = data.draw(groups()), data.draw(counts_of)
    weights = {
        m.member_id: 1.0 if m.user_data is None else WeightUserData.decode(m.user_data).weight
        for m in members
    }
    got = WEIGHTED.assign(members, counts)
    found = counts_in(got)
    for giver, topics in got.items():
        for taker in members:
            if set(topics) & set(taker.topics):
                name = taker.member_id
                assert (found[name] + 1) / weights[name] >= found[giver] / weights[giver] - 1e-9
