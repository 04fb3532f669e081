"""Kafka's AbstractStickyAssignorTest, for both assignors: the same names, the same groups, the same results.

Where Kafka asks for its list of partitions that change hands, here it is asked what a cooperative group
withholds in the first round.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest

from ringleader.clients.assignors import (
    COOPERATIVE_STICKY,
    STICKY,
    Assignment,
    Assignor,
    AssignorMember,
    cooperative_user_data,
    sticky_user_data,
)
from ringleader.clients.assignors.sticky import cooperative_claim, eager_claim
from tests.support.sticky_groups import StickyGroup, flat, owned, replicas

BOTH = pytest.mark.parametrize("assignor", [STICKY, COOPERATIVE_STICKY], ids=lambda a: a.name)
RACKS = pytest.mark.parametrize("racks", ["none", "brokers", "both"])


@pytest.fixture
def group(assignor: Assignor, racks: str) -> StickyGroup:
    return StickyGroup(assignor, racks)


def withheld(group: StickyGroup, cooperative: str) -> bool:
    """The partitions that the first round withheld: this if the group is cooperative, else nothing."""
    return group.withheld() == (cooperative if group.assignor.cooperative else "")


def test_member_data() -> None:
    has = owned("topic1-0 topic2-1")
    data = sticky_user_data(has, 1)
    for member in (
        AssignorMember("c", topics=["topic"], user_data=data),
        AssignorMember("c", topics=["topic"], owned=has, user_data=data),
        AssignorMember("c", topics=["topic"], owned=has, generation=1, user_data=data),
    ):
        assert eager_claim(member) == (has, 1)
    for member in (
        AssignorMember("c", topics=["topic"], owned=has, user_data=cooperative_user_data(1)),
        AssignorMember("c", topics=["topic"], owned=has, generation=1),
    ):
        assert cooperative_claim(member) == (has, 1)


@BOTH
@RACKS
def test_one_consumer_no_topic(group: StickyGroup) -> None:
    group.member("c", "")
    assert group.settle() == {"c": ""}


@BOTH
@RACKS
def test_one_consumer_nonexistent_topic(group: StickyGroup) -> None:
    group.member("c", "topic")
    assert group.settle() == {"c": ""}
    group.counts = {"topic": 0}
    assert group.settle() == {"c": ""}


@BOTH
@RACKS
def test_one_consumer_one_topic(group: StickyGroup) -> None:
    group.counts = {"topic": 3}
    group.member("c", "topic")
    assert group.settle() == {"c": "topic-0 topic-1 topic-2"}


@BOTH
@RACKS
def test_only_assigns_partitions_from_subscribed_topics(group: StickyGroup) -> None:
    group.counts = {"topic": 2, "other": 2}
    group.member("c", "topic", "topic-0 topic-1 other-0 other-1", 1)
    assert group.settle() == {"c": "topic-0 topic-1"}


@BOTH
@RACKS
def test_one_consumer_multiple_topics(group: StickyGroup) -> None:
    group.counts = {"topic1": 1, "topic2": 2}
    group.member("c", "topic1 topic2")
    assert group.settle() == {"c": "topic1-0 topic2-0 topic2-1"}


@BOTH
@RACKS
def test_two_consumers_one_topic_one_partition(group: StickyGroup) -> None:
    group.counts = {"topic": 1}
    group.member("c1", "topic")
    group.member("c2", "topic")
    assert group.settle() == {"c1": "topic-0", "c2": ""}


@BOTH
@RACKS
def test_two_consumers_one_topic_two_partitions(group: StickyGroup) -> None:
    group.counts = {"topic": 2}
    group.member("c1", "topic")
    group.member("c2", "topic")
    assert group.settle() == {"c1": "topic-0", "c2": "topic-1"}


@BOTH
@RACKS
def test_multiple_consumers_mixed_topic_subscriptions(group: StickyGroup) -> None:
    group.counts = {"topic1": 3, "topic2": 2}
    group.member("c1", "topic1")
    group.member("c2", "topic1 topic2")
    group.member("c3", "topic1")
    assert group.settle() == {"c1": "topic1-0 topic1-2", "c2": "topic2-0 topic2-1", "c3": "topic1-1"}


@BOTH
@RACKS
def test_two_consumers_two_topics_six_partitions(group: StickyGroup) -> None:
    group.counts = {"topic1": 3, "topic2": 3}
    group.member("c1", "topic1 topic2")
    group.member("c2", "topic1 topic2")
    assert group.settle() == {"c1": "topic1-0 topic1-2 topic2-1", "c2": "topic1-1 topic2-0 topic2-2"}


@BOTH
@RACKS
def test_consumer_owning_min_quota_expected_max_quota(group: StickyGroup) -> None:
    group.counts = {"topic1": 2, "topic2": 3}
    group.member("c1", "topic1 topic2", "topic1-0 topic2-1", 1)
    group.member("c2", "topic1 topic2", "topic1-1 topic2-2", 1)
    assert group.settle() == {"c1": "topic1-0 topic2-0 topic2-1", "c2": "topic1-1 topic2-2"}
    assert withheld(group, "")


@BOTH
@RACKS
def test_max_quota_consumer_more_than_num_expected_max_capacity_members(group: StickyGroup) -> None:
    """Kafka lets one of the two give up a partition, in the order of a hash map: the second here."""
    group.counts = {"topic1": 2, "topic2": 2}
    group.member("c1", "topic1 topic2", "topic1-0 topic2-0", 1)
    group.member("c2", "topic1 topic2", "topic1-1 topic2-1", 1)
    group.member("c3", "topic1 topic2")
    assert group.settle() == {"c1": "topic1-0 topic2-0", "c2": "topic1-1", "c3": "topic2-1"}
    assert withheld(group, "topic2-1")


@BOTH
@RACKS
def test_all_consumers_are_under_min_quota(group: StickyGroup) -> None:
    group.counts = {"topic1": 2, "topic2": 3}
    group.member("c1", "topic1 topic2", "topic1-0", 1)
    group.member("c2", "topic1 topic2", "topic1-1", 1)
    group.member("c3", "topic1 topic2", "", 1)
    assert group.settle() == {"c1": "topic1-0 topic2-1", "c2": "topic1-1 topic2-2", "c3": "topic2-0"}
    assert withheld(group, "")


@BOTH
@RACKS
def test_add_remove_consumer_one_topic(group: StickyGroup) -> None:
    group.counts = {"topic": 3}
    group.member("c1", "topic")
    assert group.settle() == {"c1": "topic-0 topic-1 topic-2"}
    group.again()
    group.member("c2", "topic", "", 1)
    assert group.settle() == {"c1": "topic-0 topic-1", "c2": "topic-2"}
    assert withheld(group, "topic-2")
    group.leave("c1")
    group.again(2)
    assert group.settle() == {"c2": "topic-0 topic-1 topic-2"}
    assert withheld(group, "")


@BOTH
@RACKS
def test_add_remove_two_consumers_two_topics(group: StickyGroup) -> None:
    group.counts = {"topic1": 3, "topic2": 4}
    for name in ("c1", "c2"):
        group.member(name, "topic1 topic2")
    assert group.settle() == {
        "c1": "topic1-0 topic1-2 topic2-1 topic2-3",
        "c2": "topic1-1 topic2-0 topic2-2",
    }
    group.again()
    for name in ("c3", "c4"):
        group.member(name, "topic1 topic2", "", 1)
    assert group.settle() == {
        "c1": "topic1-0 topic2-1",
        "c2": "topic1-1 topic2-0",
        "c3": "topic1-2 topic2-3",
        "c4": "topic2-2",
    }
    assert withheld(group, "topic1-2 topic2-2 topic2-3")
    group.leave("c1", "c2")
    group.again(2)
    assert group.settle() == {
        "c3": "topic1-0 topic1-2 topic2-1 topic2-3",
        "c4": "topic1-1 topic2-0 topic2-2",
    }
    assert withheld(group, "")


@BOTH
@RACKS
def test_poor_round_robin_assignment_scenario(group: StickyGroup) -> None:
    group.counts = {f"topic{number}": number % 2 + 1 for number in range(1, 6)}
    for name in ("c1", "c4"):
        group.member(name, "topic1 topic2 topic3 topic4 topic5")
    for name in ("c2", "c3"):
        group.member(name, "topic1 topic3 topic5")
    group.settle()
    assert set(group.sizes().values()) == {2}  # round-robin: 3, 3, 2 and 0


@BOTH
@RACKS
def test_add_remove_topic_two_consumers(group: StickyGroup) -> None:
    group.counts = {"topic": 3}
    group.member("c1", "topic")
    group.member("c2", "topic")
    first = group.settle()
    assert sorted(group.sizes().values()) == [1, 2]
    group.counts["topic2"] = 3
    group.again(topics="topic topic2")
    second = group.settle()
    assert set(group.sizes().values()) == {3}
    assert all(set(first[name].split()) <= set(second[name].split()) for name in first)
    assert withheld(group, "")
    del group.counts["topic"]
    group.again(2, topics="topic2")
    third = group.settle()
    assert sorted(group.sizes().values()) == [1, 2]
    assert all(set(third[name].split()) <= set(second[name].split()) for name in second)
    assert withheld(group, "")


@BOTH
@RACKS
def test_reassignment_after_one_consumer_leaves(group: StickyGroup) -> None:
    group.counts = {f"t{number:02}": number for number in range(1, 20)}
    for number in range(1, 20):
        group.member(f"c{number:02}", " ".join(f"t{one:02}" for one in range(1, number + 1)))
    before = group.settle()
    group.again()
    group.leave("c10")
    after = group.settle()
    assert not goes_round(before, after)


@BOTH
@RACKS
def test_reassignment_after_one_consumer_added(group: StickyGroup) -> None:
    group.counts = {"topic": 20}
    for number in range(1, 10):
        group.member(f"c{number:02}", "topic")
    before = group.settle()
    group.again()
    group.member("c10", "topic")
    after = group.settle()
    assert group.fully_balanced()
    # Nine had 20, ten have 2 each: the newcomer gets one of each of the two that had 3.
    assert all(set(after[name].split()) <= set(before[name].split()) for name in before)


@BOTH
@RACKS
def test_same_subscriptions(group: StickyGroup) -> None:
    group.counts = {f"t{number:02}": number for number in range(1, 15)}
    for number in range(1, 9):
        group.member(f"c{number}", " ".join(group.counts))
    before = group.settle()
    group.again()
    group.leave("c5")
    after = group.settle()
    assert withheld(group, "")
    assert group.fully_balanced()
    assert all(set(before[name].split()) <= set(after[name].split()) for name in after)


@BOTH
@RACKS
def test_topic_balance_after_reassignment(group: StickyGroup) -> None:
    """Twenty members come one by one, and then none has all of a topic while others have none of it."""
    group.counts = {f"topic{number}": 20 for number in range(3)}
    for number in range(20):
        group.member(f"c{number:02}", " ".join(group.counts))
        group.settle()
        group.again(number + 1)
    assert set(group.sizes().values()) == {3}
    assert max(len(ps) for share in group.shares.values() for ps in share.values()) <= 2


def large(assignor: Assignor, racks: bool, topics: int, partitions: int, members: int) -> list[Any]:
    counts = {f"t{number:03}": partitions for number in range(topics)}
    names = [f"c{number:04}" for number in range(members)]
    return [counts, names, replicas(counts, 3, 3) if racks else None]


def claiming(assignor: Assignor, name: str, topics: list[str], got: Assignment, rack: str) -> AssignorMember:
    share = got.get(name, {})
    if not got:
        return AssignorMember(name, topics=topics, rack=rack)
    return AssignorMember(
        name,
        topics=topics,
        owned=share if assignor.cooperative else {},
        generation=1,
        rack=rack,
        user_data=sticky_user_data(share, 1),
    )


def twice(assignor: Assignor, topics_of: dict[str, list[str]], counts: dict[str, int], where: Any) -> int:
    """Assign, and again after the first member has left; how many partitions stayed where they were."""
    got: Assignment = {}
    for names in (list(topics_of), list(topics_of)[1:]):
        before = got
        members = [
            claiming(assignor, name, topics_of[name], got, "abc"[number % 3] if where else "")
            for number, name in enumerate(names)
        ]
        got = assignor.assign(members, counts, where)
        assert got.keys() == set(names)
    assert sum(len(ps) for share in got.values() for ps in share.values()) == sum(counts.values())
    return sum(
        len(set(ps) & set(before[name].get(topic, ())))
        for name, share in got.items()
        for topic, ps in share.items()
    )


@BOTH
@pytest.mark.parametrize("racks", [False, True])
def test_large_assignment_and_group_with_uniform_subscription(assignor: Assignor, racks: bool) -> None:
    """A hundredth of Kafka's million partitions; the whole of it is measured by bench/assignors.py."""
    counts, names, where = large(assignor, racks, 50, 200, 200)
    assert twice(assignor, {name: list(counts) for name in names}, counts, where) == 10_000 - 50


@BOTH
@pytest.mark.parametrize("racks", [False, True])
def test_large_assignment_and_group_with_non_equal_subscription(assignor: Assignor, racks: bool) -> None:
    """A hundredth of Kafka's; one member wants one topic only."""
    counts, names, where = large(assignor, racks, 50, 200, 200)
    topics = {name: list(counts) for name in names} | {names[-1]: list(counts)[:1]}
    assert twice(assignor, topics, counts, where) == 10_000 - 50


@BOTH
@pytest.mark.parametrize("racks", [False, True])
def test_assignment_and_group_with_non_equal_subscription_not_timeout(
    assignor: Assignor, racks: bool
) -> None:
    """A tenth of Kafka's; two groups of members that share no topic."""
    counts, names, where = large(assignor, racks, 50, 200, 20)
    halves = list(counts)[:25], list(counts)[25:]
    topics = {name: halves[number % 4 > 0] for number, name in enumerate(names)}
    assert twice(assignor, topics, counts, where) == 10_000 - 1_000


@BOTH
@RACKS
def test_large_assignment_with_multiple_consumers_leaving_and_random_subscription(
    group: StickyGroup, seed: int
) -> None:
    draw = random.Random(seed)
    group.counts = {f"t{number:02}": draw.randint(1, 10) for number in range(40)}
    for number in range(200):
        group.member(f"c{number:03}", " ".join(draw.sample(list(group.counts), draw.randrange(20))))
    before = group.settle()
    group.again()
    group.leave(*draw.sample(list(group.members), 50))
    after = group.settle()
    assert not goes_round(before, after)


@BOTH
def test_subscription_not_equal_and_assign_same_partition_with3_generation(assignor: Assignor) -> None:
    for first, second, third in ((1, 2, 3), (1, 3, 2), (2, 1, 3), (2, 3, 1), (3, 1, 2), (3, 2, 1)):
        group = StickyGroup(assignor, topic=6, topic1=1)
        group.member("c1", "topic", "topic-0 topic-2", first)
        group.member("c2", "topic", "topic-1 topic-2 topic-3", second)
        group.member("c3", "topic", "topic-2 topic-4 topic-5", third)
        group.member("c4", "topic1", "topic1-0", 2)
        group.settle()
        assert group.sizes() == {"c1": 2, "c2": 2, "c3": 2, "c4": 1}


@BOTH
@RACKS
def test_new_subscription(group: StickyGroup) -> None:
    group.counts = {f"t{number}": 1 for number in range(1, 5)}
    for number, topics in enumerate(("", "t1", "t2 t3 t4")):
        group.member(f"c{number}", topics)
    before = group.settle()
    group.again()
    group.member("c0", "t1")
    after = group.settle()
    assert not goes_round(before, after)


@BOTH
@RACKS
def test_move_existing_assignments(group: StickyGroup) -> None:
    group.counts = {f"topic{number}": 1 for number in range(1, 7)}
    group.member("c1", "topic1 topic2", "topic1-0", 1)
    group.member("c2", "topic1 topic2 topic3 topic4", "topic2-0 topic3-0", 1)
    group.member("c3", "topic2 topic3 topic4 topic5 topic6", "topic4-0 topic5-0 topic6-0", 1)
    group.settle()
    # By single moves nothing could be had; by a chain of two everybody has two.
    assert set(group.sizes().values()) == {2}


@BOTH
@RACKS
def test_stickiness(group: StickyGroup) -> None:
    group.counts = {"topic1": 3}
    for name in ("c1", "c2", "c3", "c4"):
        group.member(name, "topic1")
    before = group.settle()
    assert sorted(group.sizes().values()) == [0, 1, 1, 1]
    group.again()
    group.leave("c1")
    after = group.settle()
    assert withheld(group, "")
    assert set(group.sizes().values()) == {1}
    assert all(before[name] in ("", share) for name, share in after.items())


def goes_round(before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    """Whether partitions of one topic went round in a circle of members (Kafka's isSticky asks this)."""
    had = {one: name for name, share in before.items() for one in share.split()}
    edges: dict[str, set[tuple[str, str]]] = {}
    for name, share in after.items():
        for one in share.split():
            if had.get(one, name) != name and had[one] in after:
                edges.setdefault(one.rpartition("-")[0], set()).add((had[one], name))
    for moved in edges.values():
        left = set(moved)
        while left:  # a member that only gives, or only takes, is in no circle
            givers, takers = {a for a, _ in left}, {b for _, b in left}
            inner = {(a, b) for a, b in left if a in takers and b in givers}
            if inner == left:
                return True
            left = inner
    return False


def test_what_goes_round_is_seen() -> None:
    assert goes_round({"a": "t-0", "b": "t-1"}, {"a": "t-1", "b": "t-0"})
    assert not goes_round({"a": "t-0 u-0", "b": "t-1"}, {"a": "t-0", "b": "t-1 u-0"})
    assert flat(owned("t-1 t-0 u-3")) == "t-0 t-1 u-3"
