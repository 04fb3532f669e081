"""Fixed cases for range and round-robin. A test that stands for one of Kafka's own carries its name."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pytest

from ringleader.clients.assignors import (
    ASSIGNORS,
    RANGE,
    ROUND_ROBIN,
    Assignment,
    Assignor,
    AssignorMember,
)
from ringleader.clients.assignors.model import in_order
from ringleader.clients.assignors.ownership import Nearness, Table

BOTH = pytest.mark.parametrize("assignor", [RANGE, ROUND_ROBIN], ids=lambda a: a.name)


def member(name: str, *topics: str, instance: str | None = None, rack: str | None = None) -> AssignorMember:
    return AssignorMember(name, instance, topics, rack=rack)


def flat(assignment: Assignment) -> dict[str, str]:
    """{"c0": "t1-0 t1-1"}: easy to read and to compare."""
    return {
        name: " ".join(f"{topic}-{p}" for topic in sorted(topics) for p in topics[topic])
        for name, topics in assignment.items()
    }


def test_names() -> None:
    cooperative = {name: assignor.cooperative for name, assignor in ASSIGNORS.items()}
    assert cooperative == {
        "range": False,
        "roundrobin": False,
        "sticky": False,
        "cooperative-sticky": True,
        "weighted": True,
        "original": False,
        "random": False,
    }


@BOTH
def test_one_consumer_no_topic(assignor: Assignor) -> None:
    assert assignor.assign([member("c1")], {"t": 3}) == {"c1": {}}


@BOTH
def test_one_consumer_nonexistent_topic(assignor: Assignor) -> None:
    assert assignor.assign([member("c1", "gone")], {"t": 3}) == {"c1": {}}
    assert assignor.assign([member("c1", "t")], {"t": 0}) == {"c1": {}}


@BOTH
def test_no_members(assignor: Assignor) -> None:
    assert assignor.assign([], {"t": 3}) == {}


@BOTH
def test_one_consumer_one_topic(assignor: Assignor) -> None:
    assert assignor.assign([member("c1", "t")], {"t": 3}) == {"c1": {"t": [0, 1, 2]}}


@BOTH
def test_one_consumer_multiple_topics(assignor: Assignor) -> None:
    assert assignor.assign([member("c1", "t2", "t1")], {"t1": 1, "t2": 2}) == {
        "c1": {"t1": [0], "t2": [0, 1]}
    }


@BOTH
def test_only_assigns_partitions_from_subscribed_topics(assignor: Assignor) -> None:
    assert assignor.assign([member("c1", "t")], {"t": 3, "other": 3}) == {"c1": {"t": [0, 1, 2]}}


@BOTH
def test_two_consumers_one_topic_one_partition(assignor: Assignor) -> None:
    assert assignor.assign([member("c1", "t"), member("c2", "t")], {"t": 1}) == {"c1": {"t": [0]}, "c2": {}}


@BOTH
def test_two_consumers_one_topic_two_partitions(assignor: Assignor) -> None:
    got = assignor.assign([member("c1", "t"), member("c2", "t")], {"t": 2})
    assert got == {"c1": {"t": [0]}, "c2": {"t": [1]}}


@BOTH
def test_multiple_consumers_mixed_topics(assignor: Assignor) -> None:
    members = [member("c1", "t1"), member("c2", "t1", "t2"), member("c3", "t1")]
    got = flat(assignor.assign(members, {"t1": 3, "t2": 2}))
    assert got == {"c1": "t1-0", "c2": "t1-1 t2-0 t2-1", "c3": "t1-2"}


@BOTH
def test_a_topic_named_twice_counts_once(assignor: Assignor) -> None:
    members = [member("c1", "t", "t"), member("c2", "t")]
    assert flat(assignor.assign(members, {"t": 2})) == {"c1": "t-0", "c2": "t-1"}


SIX = {"t1": 3, "t2": 3}


def test_two_consumers_two_topics_six_partitions() -> None:
    members = [member("c0", "t1", "t2"), member("c1", "t1", "t2")]
    assert flat(RANGE.assign(members, SIX)) == {"c0": "t1-0 t1-1 t2-0 t2-1", "c1": "t1-2 t2-2"}


def test_two_dynamic_consumers_two_topics_six_partitions() -> None:
    members = [member("c0", "t1", "t2"), member("c1", "t1", "t2")]
    assert flat(ROUND_ROBIN.assign(members, SIX)) == {"c0": "t1-0 t1-2 t2-1", "c1": "t1-1 t2-0 t2-2"}


def test_two_static_consumers_two_topics_six_partitions() -> None:
    """The instance id decides, not the member id."""
    members = [member("a", "t1", "t2", instance="i2"), member("b", "t1", "t2", instance="i1")]
    assert flat(RANGE.assign(members, SIX)) == {"b": "t1-0 t1-1 t2-0 t2-1", "a": "t1-2 t2-2"}
    assert flat(ROUND_ROBIN.assign(members, SIX)) == {"b": "t1-0 t1-2 t2-1", "a": "t1-1 t2-0 t2-2"}


def test_one_static_consumer_and_one_dynamic_consumer_two_topics_six_partitions() -> None:
    members = [member("a", "t1", "t2"), member("b", "t1", "t2", instance="i1")]
    assert flat(RANGE.assign(members, SIX)) == {"b": "t1-0 t1-1 t2-0 t2-1", "a": "t1-2 t2-2"}
    assert flat(ROUND_ROBIN.assign(members, SIX)) == {"b": "t1-0 t1-2 t2-1", "a": "t1-1 t2-0 t2-2"}


@BOTH
@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (0, 2, 1), (2, 1, 0)])
def test_static_and_dynamic_members_interleaved_all_get_their_share(
    assignor: Assignor, order: tuple[int, ...]
) -> None:
    """kafka-python's range and round-robin give the first static member of s, d, s nothing."""
    members = [member("z-1", "t", instance="i1"), member("a-2", "t"), member("m-3", "t", instance="i0")]
    got = flat(assignor.assign([members[i] for i in order], {"t": 3}))
    assert got == {"m-3": "t-0", "z-1": "t-1", "a-2": "t-2"}


STATIC = [("c1", "i1"), ("c2", "i2"), ("c3", "i3")]


def persistent(assignor: Assignor, expected: Sequence[str]) -> None:
    """A dynamic member that is replaced by another one changes nothing for the static ones."""
    for dynamic in ("c4", "c5", "a0"):
        members = [member(m, "t1", "t2", instance=i) for m, i in STATIC] + [member(dynamic, "t1", "t2")]
        got = flat(assignor.assign(members, {"t1": 5, "t2": 4}))
        assert got == dict(zip(["c1", "c2", "c3", dynamic], expected, strict=True))


def test_static_member_range_assignment_persistent() -> None:
    persistent(RANGE, ["t1-0 t1-1 t2-0", "t1-2 t2-1", "t1-3 t2-2", "t1-4 t2-3"])


def test_static_member_round_robin_assignment_persistent() -> None:
    persistent(ROUND_ROBIN, ["t1-0 t1-4 t2-3", "t1-1 t2-0", "t1-2 t2-1", "t1-3 t2-2"])


def after_member_id_changes(assignor: Assignor) -> dict[str | None, str]:
    """Shares by instance; they are the same whatever the member ids."""

    def by_instance(ids: Sequence[str]) -> dict[str | None, str]:
        members = [member(m, "t1", "t2", instance=i) for m, i in zip(ids, ("i1", "i2", "i3"), strict=True)]
        got = flat(assignor.assign(members, {"t1": 5, "t2": 5}))
        return {m.group_instance_id: got[m.member_id] for m in members}

    first = by_instance(["c1", "c2", "c3"])
    assert first == by_instance(["c1", "c5", "c4"]) == by_instance(["z", "y", "x"])
    return first


def test_static_member_range_assignment_persistent_after_member_id_changes() -> None:
    assert after_member_id_changes(RANGE)["i3"] == "t1-4 t2-4"


def test_static_member_round_robin_assignment_persistent_after_member_id_changes() -> None:
    assert after_member_id_changes(ROUND_ROBIN)["i3"] == "t1-2 t2-0 t2-3"


def test_range_co_partitions_equal_topics() -> None:
    members = [member(m, "t1", "t2") for m in "abc"]
    assert flat(RANGE.assign(members, {"t1": 2, "t2": 2})) == {"a": "t1-0 t2-0", "b": "t1-1 t2-1", "c": ""}


def test_range_extras_go_to_the_first_members() -> None:
    got = RANGE.assign([member(m, "t") for m in ("c0", "c1", "c2")], {"t": 7})
    assert got == {"c0": {"t": [0, 1, 2]}, "c1": {"t": [3, 4]}, "c2": {"t": [5, 6]}}


def test_round_robin_with_nested_subscriptions_is_unbalanced() -> None:
    members = [member("c0", "t0"), member("c1", "t0", "t1"), member("c2", "t0", "t1", "t2")]
    got = flat(ROUND_ROBIN.assign(members, {"t0": 1, "t1": 2, "t2": 3}))
    assert got == {"c0": "t0-0", "c1": "t1-0", "c2": "t1-1 t2-0 t2-1 t2-2"}


def test_the_four_members_of_the_first_experiment() -> None:
    """Three partitions; members come one after another: the fourth is idle until one leaves."""
    for assignor in (RANGE, ROUND_ROBIN):
        counts = []
        for names in ("1", "12", "123", "1234", "234", "34", "4"):
            got = assignor.assign([member(n, "t") for n in names], {"t": 3})
            counts.append("".join(str(sum(map(len, got[n].values()))) for n in names))
        assert counts == ["3", "21", "111", "1110", "111", "21", "3"]


# ---- the order of members, and when racks count ----


def order_of(*members: AssignorMember) -> str:
    return " ".join(one.member_id for one in in_order(members))


def test_member_info_sorting_without_group_instance_id() -> None:
    supplementary, last_of_the_bmp = "\U0001f600", "\uffff"
    members = [member(name) for name in ("b", last_of_the_bmp, "c", supplementary, "a")]
    assert order_of(*members).split() == ["a", "b", "c", supplementary, last_of_the_bmp]  # by UTF-16 units


def test_member_info_sorting_with_all_group_instance_id() -> None:
    assert order_of(*(member(m, instance=i) for m, i in ("ay", "bz", "cx"))) == "c a b"


def test_member_info_sorting_some_group_instance_id() -> None:
    assert order_of(member("a"), member("b", instance="y"), member("c", instance="x")) == "c b a"


def test_merge_sort_many_member_info(seed: int) -> None:
    draw = random.Random(seed)
    members = [member(str(n), instance=draw.choice([str(n), None])) for n in range(100, 200)]
    expected = sorted(members, key=lambda one: one.group_instance_id is None)
    draw.shuffle(members)
    assert in_order(members) == expected


def test_use_rack_aware_assignment() -> None:
    everywhere = [frozenset("abc")] * 10
    somewhere = [frozenset("abc"[n % 3]) for n in range(10)]
    nowhere: list[frozenset[str]] = [frozenset()] * 10
    cases = [("", nowhere, False), ("", everywhere, False), ("abc", nowhere, False), ("d", everywhere, False)]
    cases += [("abc", everywhere, False), ("ab", everywhere, False), ("ad", everywhere, False)]
    cases += [("abc", somewhere, True), ("ab", somewhere, True), ("ad", somewhere, True)]
    for racks, where, counts in cases:
        members = [member(f"c{rack}", "t", rack=rack) for rack in racks] or [member("c", "t")]
        assert Nearness(Table(members, {"t": 10}), {"t": where}).counts is counts
        shares = flat(RANGE.assign(members, {"t": 10}, {"t": where}))
        assert (shares != flat(RANGE.assign(members, {"t": 10}))) is counts


# ---- racks (KIP-881) ----

Racks = Mapping[str, list[frozenset[str]]]


def spread(counts: Mapping[str, int], replicas: int, racks: int) -> Racks:
    """Replicas go round the racks from partition to partition, on through the topics."""
    result, first = {}, 0
    for topic, count in counts.items():
        result[topic] = [
            frozenset("abcd"[(first + p + r) % racks] for r in range(replicas)) if racks else frozenset()
            for p in range(count)
        ]
        first += count
    return result


def misplaced(members: Sequence[AssignorMember], assignment: Assignment, racks: Racks) -> int:
    return sum(
        bool(m.rack) and m.rack not in racks[topic][p]
        for m in members
        for topic, partitions in assignment[m.member_id].items()
        for p in partitions
    )


def check(
    counts: Mapping[str, int],
    subscriptions: Sequence[str],
    replicas: int,
    racks: int,
    member_racks: Sequence[str | None],
    expected: Sequence[str],
    wrong: int | None,
) -> None:
    members = [
        member(f"c{i}", *topics.split(), rack=rack)
        for i, (topics, rack) in enumerate(zip(subscriptions, member_racks, strict=True))
    ]
    where = spread(counts, replicas, racks)
    got = RANGE.assign(members, counts, where)
    assert flat(got) == {f"c{i}": line for i, line in enumerate(expected)}
    if wrong is not None:
        assert misplaced(members, got, where) == wrong


def check_plain(counts: Mapping[str, int], subscriptions: Sequence[str], expected: Sequence[str]) -> None:
    """All the ways in which racks make no difference."""
    check(counts, subscriptions, 3, 0, "abc", expected, None)
    check(counts, subscriptions, 3, 3, [None, None, None], expected, 0)
    check(counts, subscriptions, 3, 3, ["", "", ""], expected, 0)
    check(counts, subscriptions, 3, 3, "abc", expected, 0)
    check(counts, subscriptions, 4, 4, "abc", expected, 0)
    check(counts, subscriptions, 3, 3, "def", expected, None)
    check(counts, subscriptions, 3, 3, [None, "e", "f"], expected, None)


def test_rack_aware_assignment_with_uniform_subscription() -> None:
    counts, subs = {"t1": 6, "t2": 7, "t3": 2}, ["t1 t2 t3"] * 3
    plain = ["t1-0 t1-1 t2-0 t2-1 t2-2 t3-0", "t1-2 t1-3 t2-3 t2-4 t3-1", "t1-4 t1-5 t2-5 t2-6"]
    check_plain(counts, subs, plain)
    near = ["t1-0 t1-3 t2-0 t2-3 t2-6", "t1-1 t1-4 t2-1 t2-4 t3-0", "t1-2 t1-5 t2-2 t2-5 t3-1"]
    check(counts, subs, 1, 3, "abc", near, 0)
    near = ["t1-0 t1-2 t2-0 t2-2 t2-3 t3-1", "t1-1 t1-3 t2-1 t2-4 t3-0", "t1-4 t1-5 t2-5 t2-6"]
    check(counts, subs, 2, 3, "abc", near, 1)
    check(counts, subs, 3, 2, "abc", plain, 4)


def test_rack_aware_assignment_with_non_equal_subscription() -> None:
    counts, subs = {"t1": 6, "t2": 7, "t3": 2}, ["t1 t2 t3", "t1 t2 t3", "t1 t3"]
    plain = ["t1-0 t1-1 t2-0 t2-1 t2-2 t2-3 t3-0", "t1-2 t1-3 t2-4 t2-5 t2-6 t3-1", "t1-4 t1-5"]
    check_plain(counts, subs, plain)
    near = ["t1-0 t1-3 t2-0 t2-2 t2-3 t2-6", "t1-1 t1-4 t2-1 t2-4 t2-5 t3-0", "t1-2 t1-5 t3-1"]
    check(counts, subs, 1, 3, "abc", near, 2)
    near = ["t1-0 t1-2 t2-0 t2-2 t2-3 t2-5 t3-1", "t1-1 t1-3 t2-1 t2-4 t2-6 t3-0", "t1-4 t1-5"]
    check(counts, subs, 2, 3, "abc", near, 0)
    check(counts, subs, 3, 2, "abc", plain, 2)


def test_rack_aware_assignment_with_uniform_partitions() -> None:
    """Co-partitioning goes before racks."""
    counts, subs = {"t1": 5, "t2": 5, "t3": 5}, ["t1 t2 t3"] * 3
    plain = ["t1-0 t1-1 t2-0 t2-1 t3-0 t3-1", "t1-2 t1-3 t2-2 t2-3 t3-2 t3-3", "t1-4 t2-4 t3-4"]
    check_plain(counts, subs, plain)
    check(counts, subs, 1, 3, "abc", plain, 10)
    check(counts, subs, 2, 3, "abc", plain, 5)
    check(counts, subs, 3, 2, "abc", plain, 3)


def test_rack_aware_assignment_with_uniform_partitions_non_equal_subscription() -> None:
    counts, subs = {"t1": 5, "t2": 5, "t3": 5}, ["t1 t2 t3", "t1 t2 t3", "t1 t3"]
    plain = ["t1-0 t1-1 t2-0 t2-1 t2-2 t3-0 t3-1", "t1-2 t1-3 t2-3 t2-4 t3-2 t3-3", "t1-4 t3-4"]
    check_plain(counts, subs, plain)
    near = ["t1-0 t1-1 t2-0 t2-1 t2-4 t3-0 t3-1", "t1-2 t1-3 t2-2 t2-3 t3-2 t3-3", "t1-4 t3-4"]
    check(counts, subs, 1, 3, "abc", near, 9)
    near = ["t1-2 t2-0 t2-1 t2-3 t3-2", "t1-0 t1-3 t2-2 t2-4 t3-0 t3-3", "t1-1 t1-4 t3-1 t3-4"]
    check(counts, subs, 2, 3, "abc", near, 0)
    check(counts, subs, 3, 2, "abc", plain, 2)


def test_rack_aware_assignment_with_co_partitioning() -> None:
    counts, racks = {"t1": 6, "t2": 6, "t3": 2, "t4": 2}, "abba"
    subs = ["t1 t2", "t1 t2", "t3 t4", "t3 t4"]
    plain = ["t1-0 t1-1 t1-2 t2-0 t2-1 t2-2", "t1-3 t1-4 t1-5 t2-3 t2-4 t2-5", "t3-0 t4-0", "t3-1 t4-1"]
    check(counts, subs, 3, 2, racks, plain, None)
    check(counts, subs, 2, 2, racks, plain, 0)
    near = ["t1-0 t1-2 t1-4 t2-0 t2-2 t2-4", "t1-1 t1-3 t1-5 t2-1 t2-3 t2-5", "t3-1 t4-1", "t3-0 t4-0"]
    check(counts, subs, 1, 2, racks, near, 0)

    subs = ["t1 t2 t3 t4"] * 4
    plain = ["t1-0 t1-1 t2-0 t2-1 t3-0 t4-0", "t1-2 t1-3 t2-2 t2-3 t3-1 t4-1", "t1-4 t2-4", "t1-5 t2-5"]
    check(counts, subs, 3, 2, racks, plain, None)
    check(counts, subs, 2, 2, racks, plain, 0)
    near = ["t1-0 t1-2 t2-0 t2-2 t3-0 t4-0", "t1-1 t1-3 t2-1 t2-3 t3-1 t4-1", "t1-5 t2-5", "t1-4 t2-4"]
    check(counts, subs, 1, 2, racks, near, 0)
    near = ["t1-0 t1-3 t2-0 t2-3 t3-0 t4-0", "t1-1 t1-4 t2-1 t2-4 t3-1 t4-1", "t1-2 t2-2", "t1-5 t2-5"]
    check(counts, subs, 1, 3, racks, near, 6)


def test_co_partitioned_assignment_with_same_subscription() -> None:
    counts = {"t1": 6, "t2": 6, "t3": 2, "t4": 2, "t5": 4, "t6": 4}
    subs = ["t1 t2 t3 t4 t5 t6 t7 t8 t9"] * 3
    plain = [
        "t1-0 t1-1 t2-0 t2-1 t3-0 t4-0 t5-0 t5-1 t6-0 t6-1",
        "t1-2 t1-3 t2-2 t2-3 t3-1 t4-1 t5-2 t6-2",
        "t1-4 t1-5 t2-4 t2-5 t5-3 t6-3",
    ]
    check_plain(counts, subs, plain)
    near = [
        "t1-0 t1-2 t2-0 t2-2 t3-0 t4-0 t5-1 t6-1",
        "t1-1 t1-3 t2-1 t2-3 t3-1 t4-1 t5-2 t6-2",
        "t1-4 t1-5 t2-4 t2-5 t5-0 t5-3 t6-0 t6-3",
    ]
    check(counts, subs, 2, 3, "abc", near, 0)


def test_rack_aware_static_member_range_assignment_persistent_after_member_id_changes() -> None:
    racks = {t: spread({t: 5}, 2, 3)[t] for t in ("t1", "t2")}

    def by_instance(ids: Sequence[str]) -> dict[str | None, str]:
        members = [member(m, "t1", "t2", instance=f"i{i}", rack="abc"[i]) for i, m in enumerate(ids)]
        got = flat(RANGE.assign(members, {"t1": 5, "t2": 5}, racks))
        return {m.group_instance_id: got[m.member_id] for m in members}

    first = by_instance(["c1", "c2", "c3"])
    assert first == by_instance(["c1", "c5", "c4"])
    assert first == {"i0": "t1-0 t1-2 t2-0 t2-2", "i1": "t1-1 t1-3 t2-1 t2-3", "i2": "t1-4 t2-4"}


@pytest.mark.parametrize(
    ("racks", "expected"),
    [
        ({"t": ["ab", "bc", "ac"]}, {"c0@c": "t-1", "c1@a": "t-0", "c2@b": "t-2"}),
        (
            {"t1": ["b", "a", "c"], "t2": ["b", "a", "c"]},
            {"c0@a": "t1-1 t2-1", "c1@b": "t1-0 t2-0", "c2@c": "t1-2 t2-2"},
        ),
        (
            {"t1": ["b", "a", "c"], "t2": ["a", "b", "c"]},
            {"c0@a": "t1-0 t2-0", "c1@b": "t1-1 t2-1", "c2@c": "t1-2 t2-2"},
        ),
    ],
    ids=["one topic", "two aligned topics", "alignment beats racks"],
)
def test_racks_by_example(racks: dict[str, list[str]], expected: dict[str, str]) -> None:
    members = [AssignorMember(name, topics=tuple(racks), rack=name.partition("@")[2]) for name in expected]
    where = {topic: [frozenset(letters) for letters in lists] for topic, lists in racks.items()}
    assert flat(RANGE.assign(members, dict.fromkeys(racks, 3), where)) == expected


def test_round_robin_does_not_look_at_racks() -> None:
    members = [member("c0", "t", rack="b"), member("c1", "t", rack="a")]
    where = {"t": [frozenset("a"), frozenset("b")]}
    assert flat(ROUND_ROBIN.assign(members, {"t": 2}, where)) == {"c0": "t-0", "c1": "t-1"}
