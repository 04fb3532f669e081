"""The records of a group, written and read again in any order that a compacted log can have."""

from __future__ import annotations

import itertools

import pytest

from ringleader.coordinator.consumer_groups import records
from ringleader.coordinator.consumer_groups.group import FIRST_EPOCH, ConsumerGroup, Regex, TwoHoldersError
from ringleader.coordinator.consumer_groups.member import (
    ClassicMember,
    Current,
    MemberState,
    Subscription,
)
from ringleader.coordinator.consumer_groups.records import Record
from ringleader.protocol.errors import MalformedError
from ringleader.protocol.messages import (
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupCurrentMemberAssignmentValueTopicPartitions,
)

A = b"a" * 16


def read(rows: list[Record], group: ConsumerGroup | None = None) -> ConsumerGroup:
    group = group or ConsumerGroup("g")
    for key, value in rows:
        named = records.decode_key(key)
        assert named is not None
        kind, group_id, second = named
        assert group_id == "g"
        records.apply(group, kind, second, value)
    return group


def whole() -> ConsumerGroup:
    group = ConsumerGroup("g", epoch=7, metadata_hash=-5, assignment_epoch=6, assigned_ms=1_700_000_000_000)
    classic = ClassicMember(10_000, (("range", b"\0\1"), ("sticky", b"")))
    group.subscribe(
        "m1",
        Subscription(
            "i", "rack", "client", "/host", 30_000, frozenset(("t", "u")), "x.*", "uniform", classic
        ),
    )
    group.subscribe("m2", Subscription(topic_names=frozenset("t")))
    group.aim("m1", {A: frozenset((0, 2))})
    group.move("m1", Current(6, 5, MemberState.UNREVOKED_PARTITIONS, {A: {0: 4}}, {A: {1: 3}}))
    group.move("m2", Current(6, 6, MemberState.STABLE, {A: {2: 6}}, {}))
    group.resolve("x.*", Regex(frozenset(("xa", "xb")), 9, 1_700_000_000_001))
    return group


def test_a_group_is_read_back_whole() -> None:
    group = whole()
    again = read(records.all_records(group))
    assert records.all_records(again) == records.all_records(group)
    assert again.static_members == {"i": "m1"}
    assert again.subscribers == {"t": 2, "u": 1}
    assert again.preferred_assignor() == "uniform"
    assert again.classic_members == 1
    assert [again.holder(A, one) for one in range(4)] == ["m1", "m1", "m2", None]


def test_the_order_of_a_members_records_does_not_matter() -> None:
    rows = records.all_records(whole())
    wanted = sorted(rows, key=repr)
    for order in itertools.islice(itertools.permutations(rows), 0, 40_320, 997):
        assert sorted(records.all_records(read(list(order))), key=repr) == wanted


def test_tombstones_delete_a_member_and_a_group() -> None:
    group = whole()
    read(records.tombstones_of_member("g", "m1"), group)
    assert list(group.members) == ["m2"]
    assert group.static_members == {}
    assert group.holder(A, 0) is None
    read(records.tombstones(group), group)
    assert not group.exists


def test_a_member_that_is_gone_counts_nothing_whichever_tombstones_are_left() -> None:
    group = whole()
    assert group.held_bytes > 0
    for member_id in list(group.members):
        read([(records.key(records.SUBSCRIPTION, "g", member_id), None)], group)
    for pattern in list(group.regexes):
        read([(records.key(records.REGEX, "g", pattern), None)], group)
    assert group.held_bytes == 0


def test_tombstones_of_what_is_not_there_change_nothing() -> None:
    group = read(records.tombstones(whole()))
    assert not group.exists
    assert not group.members


def test_a_holder_that_gave_a_partition_up_does_not_take_it_from_the_next_one() -> None:
    """The record by which m1 gives it up may be compacted away, or come late."""
    group = ConsumerGroup("g")
    group.move("m1", Current(1, 0, MemberState.STABLE, {A: {0: 1}}, {}))
    group.move("m2", Current(3, 0, MemberState.STABLE, {A: {0: 3}}, {}))
    group.move("m1", Current(3, 1, MemberState.STABLE, {}, {}))
    group.index()
    assert group.holder(A, 0) == "m2"


def test_two_holders_are_found_at_the_end_of_a_load() -> None:
    group = ConsumerGroup("g")
    group.move("m1", Current(1, 0, MemberState.STABLE, {A: {0: 1}}, {}))
    group.move("m2", Current(3, 0, MemberState.STABLE, {}, {A: {0: 3}}))
    with pytest.raises(TwoHoldersError, match="two holders, m1 and m2"):
        group.index()


def test_records_of_others_are_skipped() -> None:
    assert records.decode_key(b"\0\1\0\1g\0\1t\0\0\0\0") is None
    assert records.decode_key(b"\0\4\0\1g") is None


@pytest.mark.parametrize(
    "key", [b"\0\3", b"\0\3\0\5g", b"\0\5\0\1g", b"\0\5\0\1g\xff\xff", b"\0\7\0\1\xff\0\0"]
)
def test_a_key_that_cannot_be_read(key: bytes) -> None:
    with pytest.raises(MalformedError):
        records.decode_key(key)


@pytest.mark.parametrize("kind", sorted(records.KINDS))
@pytest.mark.parametrize("value", [b"", b"\0\1", b"\0\0", b"\0\0\xff"])
def test_a_value_that_cannot_be_read(kind: int, value: bytes) -> None:
    with pytest.raises(MalformedError):
        records.apply(ConsumerGroup("g"), kind, "m", value)


def test_a_state_that_there_is_not() -> None:
    row = records.current("g", "m", Current(1, 0, MemberState.STABLE, {}, {}))
    assert row[1] is not None
    broken = row[1][:10] + b"\7" + row[1][11:]
    with pytest.raises(MalformedError, match="state"):
        records.apply(ConsumerGroup("g"), records.CURRENT, "m", broken)


def test_without_an_epoch_of_each_partition_the_members_own_stands_for_them() -> None:
    topic = ConsumerGroupCurrentMemberAssignmentValueTopicPartitions(A, [0, 1], [4])
    value = ConsumerGroupCurrentMemberAssignmentValue(6, 5, int(MemberState.STABLE), [topic], [])
    group = read([(records.key(records.CURRENT, "g", "m"), b"\0\0" + value.encode(0))])
    assert group.members["m"].current.assigned == {A: {0: 6, 1: 6}}


def test_without_a_record_of_its_epoch_a_group_is_in_its_first() -> None:
    group = read([(records.key(records.GROUP_EPOCH, "g"), None)], whole())
    assert (group.epoch, group.metadata_hash) == (FIRST_EPOCH, 0)


def test_members_that_subscribe_alike_share_their_topics_while_they_are_there() -> None:
    group = ConsumerGroup("g")
    for member_id in ("m1", "m2", "m3"):
        group.subscribe(member_id, Subscription(topic_names=frozenset(["t", "u"])))
    first, second, _ = (one.subscription for one in group.members.values())
    assert first.topic_names is second.topic_names
    group.subscribe("m2", Subscription(topic_names=frozenset("v")))
    assert [sorted(one.subscription.topic_names) for one in group.members.values()] == [
        ["t", "u"],
        ["v"],
        ["t", "u"],
    ]
    for member_id in ("m1", "m2", "m3"):
        group.unsubscribe(member_id)
    assert not group._names
