"""Kafka's StickyAssignorTest and CooperativeStickyAssignorTest: how members say what they own, and whom the
leader believes. The user data is theirs, byte for byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleader.clients.assignors import (
    COOPERATIVE_STICKY,
    STICKY,
    AssignorMember,
    cooperative_user_data,
    sticky_user_data,
)
from ringleader.clients.assignors.constrained import Constrained
from ringleader.clients.assignors.ownership import NOBODY, Claims, Nearness, Table
from ringleader.clients.assignors.sticky import cooperative_claim, eager_claim
from ringleader.protocol.embedded import StickyUserData
from tests.support.sticky_groups import StickyGroup, owned

EQUAL = pytest.mark.parametrize("equal", [True, False])
CLAIMED_TWICE = [("c1", "t-0 t-1"), ("c2", "t-0 t-2"), ("c3", "")]

FOO = "00000001 0003 666f6f 00000002 00000000 00000001"
TWO = "00000002 0003 626172 00000001 00000002 0003 666f6f 00000002 00000000 00000001"


# ---- the bytes ----


@pytest.mark.parametrize(
    ("has", "generation", "text"),
    [
        ("foo-0 foo-1", 5, f"{FOO} 00000005"),
        ("foo-1 foo-0", 5, f"{FOO} 00000005"),
        ("foo-0 foo-1 bar-2", 2**31 - 1, f"{TWO} 7fffffff"),
        ("", 0, "00000000 00000000"),
    ],
)
def test_user_data_of_sticky(has: str, generation: int, text: str) -> None:
    data = sticky_user_data(owned(has), generation)
    assert data == bytes.fromhex(text)
    found, since = eager_claim(AssignorMember("a", user_data=data))
    assert ({topic: sorted(ps) for topic, ps in found.items()}, since) == (
        {topic: sorted(ps) for topic, ps in owned(has).items()},
        generation,
    )


@pytest.mark.parametrize(("generation", "text"), [(5, "00000005"), (0, "00000000"), (2**31 - 1, "7fffffff")])
def test_user_data_of_cooperative_sticky(generation: int, text: str) -> None:
    data = cooperative_user_data(generation)
    assert data == bytes.fromhex(text)
    assert cooperative_claim(AssignorMember("a", user_data=data)) == ({}, generation)


def test_before_the_first_assignment_there_is_none() -> None:
    assert sticky_user_data({}, -1) is None
    assert cooperative_user_data(-1) is None
    # Java's cooperative members write -1 then.
    assert cooperative_claim(AssignorMember("a", user_data=bytes.fromhex("ffffffff"))) == ({}, -1)


# ---- CooperativeStickyAssignorTest ----


def test_encode_and_decode_generation() -> None:
    assert cooperative_claim(AssignorMember("a", user_data=cooperative_user_data(10))) == ({}, 10)


def test_decode_generation() -> None:
    assert cooperative_claim(AssignorMember("a")) == ({}, -1)


def test_member_data_with_inconsistent_data() -> None:
    """Kafka has it in both: sticky believes the user data, cooperative-sticky the Subscription, and of the
    user data only the generation, when the Subscription has none."""
    data = sticky_user_data({"t": [1]}, 1)
    assert eager_claim(AssignorMember("c1", owned={"t": [0]}, user_data=data)) == ({"t": [1]}, 1)
    data = cooperative_user_data(1)
    assert cooperative_claim(AssignorMember("c1", owned={"t": [0]}, user_data=data)) == ({"t": [0]}, 1)


def test_member_data_with_empty_partitions_and_equal_generation() -> None:
    member = AssignorMember("c1", generation=1, user_data=cooperative_user_data(1))
    assert cooperative_claim(member) == ({}, 1)


def test_member_data_with_empty_partitions_and_higher_generation() -> None:
    member = AssignorMember("c1", generation=1, user_data=cooperative_user_data(0))
    assert cooperative_claim(member) == ({}, 1)


@given(data=st.data())
def test_uniform_subscription_transfer_ownership_list_is_right(data: st.DataObject) -> None:
    counts = data.draw(st.fixed_dictionaries({topic: st.integers(0, 6) for topic in "tuv"}))
    claim = st.dictionaries(st.sampled_from("tuv"), st.lists(st.integers(0, 6), unique=True), max_size=3)
    members = [
        AssignorMember(name, topics="tuv", owned=data.draw(claim), generation=data.draw(st.integers(-1, 2)))
        for name in "abcde"[: data.draw(st.integers(1, 5))]
    ]
    table = Table(members, counts)
    claims = Claims(table, [(member.owned, member.generation) for member in table.members])
    work = Constrained(table, claims, Nearness(table, None))
    work.run()
    from_scratch = {
        partition
        for number, share in enumerate(work.shares)
        for partition in share
        if claims.owner[partition] not in (NOBODY, number) or partition in claims.contested
    }
    assert work.handed_over() == from_scratch


def test_all_consumers_have_owned_partition_invalidated_when_claimed_by_multiple_consumers_in_same_generation_with_equal_partitions_per_consumer() -> (  # noqa: E501
    None
):
    for assignor, withheld in ((STICKY, {}), (COOPERATIVE_STICKY, {"c3": ""})):
        group = StickyGroup(assignor, t=3)
        for name, has in CLAIMED_TWICE:
            group.member(name, "t", has, 1)
        group.shares = assignor.assign(list(group.members.values()), group.counts)
        assert group.text() == {"c1": "t-1", "c2": "t-2", "c3": "t-0"} | withheld
        assert group.settle() == {"c1": "t-1", "c2": "t-2", "c3": "t-0"}


def test_all_consumers_have_owned_partition_invalidated_when_claimed_by_multiple_consumers_in_same_generation_with_unequal_partitions_per_consumer() -> (  # noqa: E501
    None
):
    for assignor, withheld in ((STICKY, {}), (COOPERATIVE_STICKY, {"c3": ""})):
        group = StickyGroup(assignor, t=4)
        for name, has in CLAIMED_TWICE:
            group.member(name, "t", has, 1)
        group.shares = assignor.assign(list(group.members.values()), group.counts)
        assert group.text() == {"c1": "t-1 t-3", "c2": "t-2", "c3": "t-0"} | withheld
        assert group.settle() == {"c1": "t-1 t-3", "c2": "t-2", "c3": "t-0"}


def test_assignor_with_old_version_subscriptions() -> None:
    """Kafka has it in both: of versions 0 and 1 the generation is in the user data, or nowhere."""
    newest = AssignorMember("c3", topics=["t"], generation=1)
    for members in (
        [
            AssignorMember("c1", topics=["t"], user_data=sticky_user_data({"t": [0]}, 1)),
            AssignorMember("c2", topics=["t"], owned={"t": [1]}, user_data=sticky_user_data({"t": [1]}, 1)),
        ],
        [
            AssignorMember("c1", topics=["t"], owned={"t": [0]}, user_data=cooperative_user_data(1)),
            AssignorMember("c2", topics=["t"], owned={"t": [1]}, user_data=cooperative_user_data(1)),
        ],
    ):
        assignor = COOPERATIVE_STICKY if members[0].owned else STICKY
        got = assignor.assign([*members, newest], {"t": 3})
        assert got == {"c1": {"t": [0]}, "c2": {"t": [1]}, "c3": {"t": [2]}}


# ---- StickyAssignorTest ----


@EQUAL
def test_assignment_with_multiple_generations1(equal: bool) -> None:
    group = StickyGroup(STICKY, t=6, u=6)
    topics = {"c1": "t u", "c2": "t u" if equal else "t", "c3": "t u"}
    for name, wanted in topics.items():
        group.member(name, wanted)
    first = {name: set(share.split()) for name, share in group.settle().items()}
    assert set(group.sizes().values()) == {4}
    group.again(1)
    group.leave("c3")
    second = {name: set(share.split()) for name, share in group.settle().items()}
    assert set(group.sizes().values()) == {6}
    assert first["c2"] < second["c2"]
    assert second["c2"] & first["c3"]
    if equal:
        assert first["c1"] < second["c1"]
    group.again(2)
    group.leave("c1")
    group.member("c3", topics["c3"], " ".join(sorted(first["c3"])), 1)
    group.settle()
    assert set(group.sizes().values()) == {6}


@EQUAL
def test_assignment_with_multiple_generations2(equal: bool) -> None:
    group = StickyGroup(STICKY, t=4, u=4, v=4)
    topics = {"c1": "t u v" if equal else "t", "c2": "t u v", "c3": "t u v" if equal else "t u"}
    for name, wanted in topics.items():
        group.member(name, wanted)
    first = group.settle()
    assert set(group.sizes().values()) == {4}
    group.again(1)
    group.leave("c1", "c3")
    second = group.settle()
    assert group.sizes() == {"c2": 12}
    group.again(2)
    for name in ("c1", "c3"):
        group.member(name, topics[name], first[name], 1)
    third = group.settle()
    assert set(group.sizes().values()) == {4}
    assert set(third["c2"].split()) < set(second["c2"].split())


@EQUAL
def test_assignment_with_conflicting_previous_generations(equal: bool) -> None:
    group = StickyGroup(STICKY, t=4, u=4, v=4)
    has = {
        "c1": "t-0 t-1 t-2 u-2 u-3 v-0" if equal else "t-0 t-1 t-2 t-3",
        "c2": "t-0 t-1 u-0 u-1 u-2 u-3",
        "c3": "t-2 t-3 v-0 v-1 v-2 v-3",
    }
    group.member("c1", "t u v" if equal else "t", has["c1"], 1)
    group.member("c2", "t u v" if equal else "t u", has["c2"], 2)
    group.member("c3", "t u v", has["c3"], 2)
    got = group.settle()
    assert set(group.sizes().values()) == {4}
    for name in ("c2", "c3"):
        assert set(got[name].split()) < set(has[name].split())


def test_schema_backward_compatibility() -> None:
    members = [
        AssignorMember("c1", topics=["t"], user_data=sticky_user_data({"t": [0, 2]}, 1)),
        AssignorMember("c2", topics=["t"], user_data=StickyUserData({"t": [1]}).encode()[:-4]),
        AssignorMember("c3", topics=["t"]),
    ]
    got = STICKY.assign(members, {"t": 3})
    assert got["c2"] == {"t": [1]}
    assert got["c1"]["t"] in ([0], [2])
    assert got["c3"]["t"] in ([0], [2])


def test_member_data_will_honor_user_data() -> None:
    data = sticky_user_data(owned("topic1-0 topic2-1"), 0)
    member = AssignorMember("c1", topics=["topic"], generation=1, user_data=data)
    assert eager_claim(member) == (owned("topic1-0 topic2-1"), 0)
