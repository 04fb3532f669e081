"""The promises of range and round-robin, on generated groups."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleader.clients.assignors import RANGE, ROUND_ROBIN, Assignment, Assignor, AssignorMember

TOPICS = ("t0", "t1", "t2", "t3", "unknown")
BOTH = pytest.mark.parametrize("assignor", [RANGE, ROUND_ROBIN], ids=lambda a: a.name)

racks = st.none() | st.sampled_from(["a", "b", "c", ""])
topic_lists = st.lists(st.sampled_from(TOPICS), unique=True, max_size=5)
partition_counts = st.fixed_dictionaries({t: st.integers(0, 12) for t in TOPICS[:4]})


@st.composite
def groups(draw: st.DrawFn, same_topics: bool = False) -> list[AssignorMember]:
    count = draw(st.integers(1, 8))
    ids = draw(st.permutations([f"m{i}" for i in range(count)]))
    instances = draw(st.permutations([f"i{i}" for i in range(count)]))
    shared = draw(topic_lists)
    return [
        AssignorMember(
            ids[i],
            instances[i] if draw(st.booleans()) else None,
            shared if same_topics else draw(topic_lists),
            rack=draw(racks),
        )
        for i in range(count)
    ]


@st.composite
def replicas(draw: st.DrawFn, counts: dict[str, int]) -> dict[str, list[frozenset[str]]] | None:
    if draw(st.booleans()):
        return None
    one = st.frozensets(st.sampled_from("abc"), max_size=3)
    return {t: draw(st.lists(one, min_size=n, max_size=n)) for t, n in counts.items()}


def total(topics: dict[str, list[int]]) -> int:
    return sum(map(len, topics.values()))


def check_every_partition_once(
    members: list[AssignorMember], counts: dict[str, int], got: Assignment
) -> None:
    assert set(got) == {m.member_id for m in members}
    given_out = Counter((t, p) for topics in got.values() for t, ps in topics.items() for p in ps)
    wanted = {t for m in members for t in m.topics}
    assert given_out == Counter((t, p) for t, n in counts.items() if t in wanted for p in range(n))
    for m in members:
        assert set(got[m.member_id]) <= set(m.topics)
        assert all(ps == sorted(ps) and ps for ps in got[m.member_id].values())


@BOTH
@given(data=st.data())
def test_every_partition_exactly_once_to_a_subscriber(assignor: Assignor, data: st.DataObject) -> None:
    members, counts = data.draw(groups()), data.draw(partition_counts)
    got = assignor.assign(members, counts, data.draw(replicas(counts)))
    check_every_partition_once(members, counts, got)


@BOTH
@given(data=st.data())
def test_the_order_of_the_input_does_not_matter(assignor: Assignor, data: st.DataObject) -> None:
    members, counts = data.draw(groups()), data.draw(partition_counts)
    where = data.draw(replicas(counts))
    shuffled = data.draw(st.permutations(members))
    reordered = dict(data.draw(st.permutations(list(counts.items()))))
    assert assignor.assign(shuffled, reordered, where) == assignor.assign(members, counts, where)


@given(data=st.data())
def test_range_is_balanced_within_each_topic(data: st.DataObject) -> None:
    members, counts = data.draw(groups()), data.draw(partition_counts)
    got = RANGE.assign(members, counts, data.draw(replicas(counts)))
    for topic in counts:
        shares = [len(got[m.member_id].get(topic, [])) for m in members if topic in m.topics]
        assert not shares or max(shares) - min(shares) <= 1


@given(data=st.data())
def test_range_keeps_equal_topics_aligned(data: st.DataObject) -> None:
    members = data.draw(groups(same_topics=True))
    count = data.draw(st.integers(0, 12))
    counts = dict.fromkeys(TOPICS[:4], count)
    got = RANGE.assign(members, counts, data.draw(replicas(counts)))
    for topics in got.values():
        assert len({tuple(ps) for ps in topics.values()}) <= 1


@given(data=st.data())
def test_range_gives_runs_when_racks_play_no_part(data: st.DataObject) -> None:
    members, counts = data.draw(groups()), data.draw(partition_counts)
    for topics in RANGE.assign(members, counts).values():
        assert all(ps == list(range(ps[0], ps[0] + len(ps))) for ps in topics.values())


@given(data=st.data())
def test_round_robin_is_balanced_over_all_topics_with_equal_subscriptions(data: st.DataObject) -> None:
    members, counts = data.draw(groups(same_topics=True)), data.draw(partition_counts)
    shares = [total(topics) for topics in ROUND_ROBIN.assign(members, counts).values()]
    assert max(shares) - min(shares) <= 1


@BOTH
def test_a_large_group(assignor: Assignor, seed: int) -> None:
    members = [AssignorMember(f"m{i:04}", topics=("a", "b")) for i in range(1000)]
    random.Random(seed).shuffle(members)
    counts = {"a": 5000, "b": 5000}
    got = assignor.assign(members, counts)
    check_every_partition_once(members, counts, got)
    assert {total(topics) for topics in got.values()} == {10}
