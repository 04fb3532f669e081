"""The sticky assignors: Kafka's worked cases, and what they promise on generated groups."""

from __future__ import annotations

import tracemalloc
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleader.clients.assignors import (
    COOPERATIVE_STICKY,
    STICKY,
    Assignment,
    Assignor,
    AssignorMember,
    cooperative_user_data,
    sticky_user_data,
)

TOPICS = ("t0", "t1", "t2", "t3")
BOTH = pytest.mark.parametrize("assignor", [STICKY, COOPERATIVE_STICKY], ids=lambda a: a.name)

counts_of = st.fixed_dictionaries({topic: st.integers(0, 9) for topic in TOPICS})
topic_sets = st.lists(st.sampled_from((*TOPICS, "unknown")), unique=True, max_size=5)

Owned = Mapping[str, Sequence[int]]


def claiming(
    assignor: Assignor,
    name: str,
    topics: Sequence[str],
    owned: Owned,
    generation: int,
    rack: str | None = None,
) -> AssignorMember:
    """A member that says what it owns the way that this assignor's members do."""
    if assignor is STICKY:
        data = sticky_user_data(owned, generation)
        return AssignorMember(name, topics=topics, rack=rack, user_data=data)
    return AssignorMember(name, topics=topics, owned=owned, generation=generation, rack=rack)


def settle(
    assignor: Assignor, members: Sequence[AssignorMember], counts: Mapping[str, int], generation: int = 1
) -> tuple[Assignment, int]:
    """The assignment that the group ends with, and after how many rounds: members of a cooperative group
    rejoin when they have lost something, until nobody does."""
    rounds = 0
    while True:
        rounds += 1
        got = assignor.assign(members, counts)
        lost = any(
            set(ps) - set(got[m.member_id].get(topic, ())) for m in members for topic, ps in m.owned.items()
        )
        if not lost:
            return got, rounds
        generation += 1
        members = [
            claiming(assignor, m.member_id, m.topics, got[m.member_id], generation, m.rack) for m in members
        ]


def pairs(assignment: Assignment) -> dict[tuple[str, int], str]:
    return {
        (topic, p): member
        for member, topics in assignment.items()
        for topic, ps in topics.items()
        for p in ps
    }


def loads(assignment: Assignment) -> dict[str, int]:
    return {member: sum(map(len, topics.values())) for member, topics in assignment.items()}


def after(assignor: Assignor, members: Sequence[AssignorMember], before: Assignment) -> list[AssignorMember]:
    """The members as they join next, knowing what they were given."""
    return [
        claiming(assignor, m.member_id, m.topics, before.get(m.member_id, {}), 1, m.rack)
        if m.member_id in before
        else m
        for m in members
    ]


def fresh(*names: str, topics: Sequence[str] = TOPICS) -> list[AssignorMember]:
    return [AssignorMember(name, topics=topics) for name in names]


# ---- Kafka's cases ----


def test_one_member_without_topics() -> None:
    for assignor in (STICKY, COOPERATIVE_STICKY):
        assert assignor.assign(fresh("c0", topics=()), {"t": 3}) == {"c0": {}}
        assert assignor.assign(fresh("c0", topics=("gone",)), {"t": 3}) == {"c0": {}}
        assert assignor.assign([], {"t": 3}) == {}


@BOTH
def test_same_subscriptions_then_one_leaves(assignor: Assignor) -> None:
    counts = dict.fromkeys(TOPICS, 2)
    members = fresh("c0", "c1", "c2")
    first = assignor.assign(members, counts)
    assert first == {
        "c0": {"t0": [0], "t1": [1], "t3": [0]},
        "c1": {"t0": [1], "t2": [0], "t3": [1]},
        "c2": {"t1": [0], "t2": [1]},
    }
    left = after(assignor, [members[0], members[2]], first)
    assert assignor.assign(left, counts) == {
        "c0": {"t0": [0, 1], "t1": [1], "t3": [0]},
        "c2": {"t1": [0], "t2": [0, 1], "t3": [1]},
    }


@BOTH
def test_poor_round_robin_assignment_scenario(assignor: Assignor) -> None:
    counts = {"t0": 1, "t1": 2, "t2": 3}
    members = [AssignorMember(f"c{i}", topics=TOPICS[: i + 1]) for i in range(3)]
    first = assignor.assign(members, counts)
    assert first == {"c0": {"t0": [0]}, "c1": {"t1": [0, 1]}, "c2": {"t2": [0, 1, 2]}}
    assert assignor.assign(after(assignor, members[1:], first), counts)["c1"] == {"t0": [0], "t1": [0, 1]}


@BOTH
def test_consumer_owning_min_quota_expected_max_quota(assignor: Assignor) -> None:
    members = [
        claiming(assignor, "c1", ["t1", "t2"], {"t1": [0], "t2": [1]}, 1),
        claiming(assignor, "c2", ["t1", "t2"], {"t1": [1], "t2": [2]}, 1),
    ]
    got = assignor.assign(members, {"t1": 2, "t2": 3})
    assert got == {"c1": {"t1": [0], "t2": [0, 1]}, "c2": {"t1": [1], "t2": [2]}}


@pytest.mark.parametrize(
    ("counts", "owners", "joins", "first_round", "share"),
    [
        ({"t": 6}, {"a": {"t": [0, 1, 2]}, "b": {"t": [3, 4, 5]}}, "c",
         {"a": {"t": [0, 1]}, "b": {"t": [3, 4]}}, {"t": [2, 5]}),
        ({"t": 5}, {"a": {"t": [0, 2, 4]}, "b": {"t": [1, 3]}}, "c",
         {"a": {"t": [0, 2]}, "b": {"t": [1, 3]}}, {"t": [4]}),
        ({"t1": 2, "t2": 2}, {"a": {"t1": [0, 1], "t2": [0, 1]}}, "b", {"a": {"t1": [0], "t2": [0]}},
         {"t1": [1], "t2": [1]}),
    ],
)  # fmt: skip
def test_partitions_that_change_hands_are_withheld_for_one_round(
    counts: dict[str, int], owners: dict[str, Owned], joins: str, first_round: Assignment, share: Owned
) -> None:
    topics = list(counts)
    members = [claiming(COOPERATIVE_STICKY, name, topics, owned, 1) for name, owned in owners.items()]
    members.append(AssignorMember(joins, topics=topics))
    assert COOPERATIVE_STICKY.assign(members, counts) == {**first_round, joins: {}}
    settled, rounds = settle(COOPERATIVE_STICKY, members, counts)
    assert settled == {**first_round, joins: share}
    assert rounds == 2


def test_cooperative_with_different_subscriptions() -> None:
    members = [
        claiming(COOPERATIVE_STICKY, "a", ["t1"], {"t1": [0, 1, 3]}, 1),
        claiming(COOPERATIVE_STICKY, "b", ["t1", "t2"], {"t1": [2], "t2": [0]}, 1),
        AssignorMember("c", topics=["t1"]),
    ]
    counts = {"t1": 4, "t2": 1}
    first_round = {"a": {"t1": [1, 3]}, "b": {"t1": [2], "t2": [0]}}
    assert COOPERATIVE_STICKY.assign(members, counts) == {**first_round, "c": {}}
    assert settle(COOPERATIVE_STICKY, members, counts)[0] == {**first_round, "c": {"t1": [0]}}


@BOTH
def test_partitions_claimed_twice_in_one_generation_are_kept_by_nobody(assignor: Assignor) -> None:
    members = [
        claiming(assignor, "c1", ["t"], {"t": [0, 1]}, 5),
        claiming(assignor, "c2", ["t"], {"t": [0]}, 5),
        AssignorMember("c3", topics=["t"]),
    ]
    got = assignor.assign(members, {"t": 3})
    assert got["c1"] == {"t": [1]}
    if assignor is STICKY:
        assert sorted(pairs(got)) == [("t", 0), ("t", 1), ("t", 2)]
    else:
        assert ("t", 0) not in pairs(got)


@BOTH
def test_owned_partitions_go_to_the_highest_generation(assignor: Assignor) -> None:
    members = [
        claiming(assignor, "c1", ["t"], {"t": [0, 2]}, 10),
        claiming(assignor, "c2", ["t"], {"t": [0, 1]}, 9),
        claiming(assignor, "c3", ["t"], {"t": [0, 1, 2]}, 8),
    ]
    got, _ = settle(assignor, members, {"t": 3})
    assert got["c2"] == {"t": [1]}
    assert pairs(got)["t", 0] == "c1" or pairs(got)["t", 2] == "c1"


def test_user_data_beats_the_subscription_for_sticky_and_not_for_cooperative() -> None:
    """testMemberDataWillHonorUserData, testMemberDataWithInconsistentData."""
    data = sticky_user_data({"t": [0]}, 3)
    members = [
        AssignorMember("a", topics=["t"], owned={"t": [1]}, generation=3, user_data=data),
        AssignorMember("b", topics=["t"]),
    ]
    assert STICKY.assign(members, {"t": 2})["a"] == {"t": [0]}
    members = [
        AssignorMember("a", topics=["t"], owned={"t": [1]}, generation=4, user_data=cooperative_user_data(3)),
        AssignorMember("b", topics=["t"], owned={"t": [1]}, generation=3, user_data=cooperative_user_data(9)),
    ]
    assert COOPERATIVE_STICKY.assign(members, {"t": 2})["a"] == {"t": [1]}


def test_old_forms_of_user_data() -> None:
    """testSchemaBackwardCompatibility, testAssignorWithOldVersionSubscriptions, testDecodeGeneration."""
    whole = sticky_user_data({"t": [1]}, 2) or b""
    for data in (whole, whole[:-4], b"\x00", b"", b"\xff" * 20):
        got = STICKY.assign(
            [AssignorMember("a", topics=["t"], user_data=data), *fresh("b", topics=["t"])], {"t": 2}
        )
        assert got["a"] == {"t": [1]} if data in (whole, whole[:-4]) else got["a"] == {"t": [0]}
    old = AssignorMember("a", topics=["t"], owned={"t": [1]}, user_data=cooperative_user_data(2))
    garbled = AssignorMember("b", topics=["t"], owned={"t": [1]}, user_data=b"\x00")
    assert COOPERATIVE_STICKY.assign([old, garbled], {"t": 2})["a"] == {"t": [1]}
    assert sticky_user_data({}, -1) is None
    assert cooperative_user_data(-1) is None


@BOTH
def test_racks(assignor: Assignor) -> None:
    where = {"t": [frozenset("a"), frozenset("b"), frozenset("c")]}
    members = [claiming(assignor, f"m{rack}", ["t"], {}, -1, rack) for rack in ("c", "b", "a")]
    got = assignor.assign(members, {"t": 3}, where)
    assert got == {"ma": {"t": [0]}, "mb": {"t": [1]}, "mc": {"t": [2]}}
    far = [claiming(assignor, "ma", ["t"], {"t": [1]}, 1, "a"), *members[:2]]
    settled = assignor.assign(far, {"t": 3}, where)
    assert ("t", 1) not in pairs(settled) or pairs(settled)["t", 1] == "mb"


# ---- promises ----


@st.composite
def histories(
    draw: st.DrawFn, equal: bool
) -> tuple[dict[str, int], list[AssignorMember], list[AssignorMember]]:
    """Partition counts, the members of one generation, and those of the next."""
    counts = draw(counts_of)
    shared = draw(topic_sets)
    names = draw(st.lists(st.sampled_from("abcdefghij"), unique=True, min_size=1))
    before = [AssignorMember(n, topics=shared if equal else draw(topic_sets)) for n in names]
    staying = [m for m in before if draw(st.integers(0, 3))]
    if not equal:
        staying = [
            m if draw(st.integers(0, 3)) else AssignorMember(m.member_id, topics=draw(topic_sets))
            for m in staying
        ]
    joining = draw(st.lists(st.sampled_from("klmno"), unique=True, min_size=0 if staying else 1))
    return (
        counts,
        before,
        staying + [AssignorMember(n, topics=shared if equal else draw(topic_sets)) for n in joining],
    )


def check_whole(members: Sequence[AssignorMember], counts: Mapping[str, int], got: Assignment) -> None:
    assert set(got) == {m.member_id for m in members}
    wanted = {t for m in members for t in m.topics}
    given_out = Counter((t, p) for topics in got.values() for t, ps in topics.items() for p in ps)
    assert given_out == Counter((t, p) for t, n in counts.items() if t in wanted for p in range(n))
    for m in members:
        assert set(got[m.member_id]) <= set(m.topics)
        assert all(ps == sorted(ps) and ps for ps in got[m.member_id].values())


@BOTH
@given(data=st.data())
def test_equal_subscriptions_balance_and_move_only_what_they_must(
    assignor: Assignor, data: st.DataObject
) -> None:
    counts, before, members = data.draw(histories(equal=True))
    first = assignor.assign(before, counts)
    rejoining = after(assignor, members, first)
    got, rounds = settle(assignor, rejoining, counts)
    check_whole(members, counts, got)
    found = loads(got)
    assert max(found.values()) - min(found.values()) <= 1
    assert rounds <= 2
    # Of what a member had it keeps all that its new number allows; that is the least there is to move.
    had, total = loads(first), sum(found.values())
    least, extras = divmod(total, len(members))
    kept = sum(1 for at, member in pairs(got).items() if pairs(first).get(at) == member)
    staying = sorted((had[m.member_id] for m in members if m.member_id in had), reverse=True)
    with_extra = sum(n > least for n in staying)
    possible = sum(min(n, least) for n in staying) + min(with_extra, extras)
    assert kept == possible


@BOTH
@given(data=st.data())
def test_different_subscriptions_balance_as_far_as_they_allow(
    assignor: Assignor, data: st.DataObject
) -> None:
    counts, before, members = data.draw(histories(equal=False))
    got, rounds = settle(assignor, after(assignor, members, assignor.assign(before, counts)), counts)
    check_whole(members, counts, got)
    found = loads(got)
    subscribed = {m.member_id: set(m.topics) for m in members}
    for (topic, _), holder in pairs(got).items():
        for other, topics in subscribed.items():
            assert topic not in topics or found[holder] - found[other] < 2
    assert rounds <= 3


@BOTH
@given(data=st.data())
def test_nothing_moves_when_nothing_changed(assignor: Assignor, data: st.DataObject) -> None:
    counts, members, _ = data.draw(histories(equal=data.draw(st.booleans())))
    first = assignor.assign(members, counts)
    assert assignor.assign(after(assignor, members, first), counts) == first


@BOTH
@given(data=st.data())
def test_the_order_of_the_input_does_not_matter(assignor: Assignor, data: st.DataObject) -> None:
    counts, before, members = data.draw(histories(equal=data.draw(st.booleans())))
    joined = after(assignor, members, assignor.assign(before, counts))
    shuffled = [
        replace(
            m,
            topics=data.draw(st.permutations(m.topics)),
            owned={topic: list(ps)[::-1] for topic, ps in reversed(list(m.owned.items()))},
        )
        for m in data.draw(st.permutations(joined))
    ]
    reordered = dict(data.draw(st.permutations(list(counts.items()))))
    assert assignor.assign(shuffled, reordered) == assignor.assign(joined, counts)


@given(data=st.data())
def test_no_partition_has_two_owners_at_any_time(data: st.DataObject) -> None:
    """For any claims of members, true or not: a partition given to one is claimed by no other in the newest
    generation."""
    counts = data.draw(counts_of)
    claim: Callable[[], Owned] = lambda: data.draw(  # noqa: E731
        st.dictionaries(
            st.sampled_from((*TOPICS, "gone")), st.lists(st.integers(-1, 10), max_size=5), max_size=4
        )
    )
    members = [
        claiming(COOPERATIVE_STICKY, name, data.draw(topic_sets), claim(), data.draw(st.integers(-1, 2)))
        for name in "abcde"[: data.draw(st.integers(1, 5))]
    ]
    got = COOPERATIVE_STICKY.assign(members, counts)
    newest: dict[tuple[str, int], list[tuple[int, str]]] = {}
    for m in members:
        for topic, ps in m.owned.items():
            for p in set(ps):
                newest.setdefault((topic, p), []).append((m.generation, m.member_id))
    for at, member in pairs(got).items():
        claims = newest.get(at, [])
        top = max((generation for generation, _ in claims), default=None)
        owners = [name for generation, name in claims if generation == top]
        assert owners in ([], [member])
    assert len(pairs(got)) == sum(loads(got).values())


# ---- size ----


def test_memory_is_linear_in_partitions() -> None:
    counts = {f"topic-{i:03}": 1_000 for i in range(100)}
    members = fresh(*(f"m{i:04}" for i in range(200)), topics=tuple(counts))
    tracemalloc.start()
    try:
        got = STICKY.assign(members, counts)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert set(loads(got).values()) == {500}
    bytes_per_partition = 200  # where a list of its possible owners would take thousands
    assert peak < bytes_per_partition * 100_000
