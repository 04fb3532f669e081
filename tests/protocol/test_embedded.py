"""Subscription and Assignment: Kafka's bytes, every truncation, later versions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleader.protocol.embedded import (
    Assignment,
    StickyUserData,
    Subscription,
    decode_generation,
    encode_generation,
)
from ringleader.protocol.errors import EncodeError, MalformedError

TOPIC = "00000001 0003 666f6f"
OWNED = "00000001 0003 666f6f 00000002 00000000 00000001"
VECTORS = [
    (0, Subscription(["foo"]), f"0000 {TOPIC} ffffffff"),
    (1, Subscription(["foo"], None, {"foo": [0, 1]}), f"0001 {TOPIC} ffffffff {OWNED}"),
    (2, Subscription(["foo"], None, {"foo": [0, 1]}, 5), f"0002 {TOPIC} ffffffff {OWNED} 00000005"),
    (
        3,
        Subscription(["foo"], None, {"foo": [0, 1]}, 5, "r1"),
        f"0003 {TOPIC} ffffffff {OWNED} 00000005 0002 7231",
    ),
    (3, Subscription(["foo"], None, {"foo": [0, 1]}, 5), f"0003 {TOPIC} ffffffff {OWNED} 00000005 ffff"),
    (1, Assignment({"foo": [0, 1]}), f"0001 {OWNED} ffffffff"),
    (1, Assignment({}), "0001 00000000 ffffffff"),
    (0, Assignment({}, b"\x01\x02"), "0000 00000000 00000002 0102"),
]

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
int32s = st.integers(-(2**31), 2**31 - 1)
owned = st.dictionaries(names, st.lists(int32s, max_size=5).map(sorted), max_size=4)
subscriptions = st.builds(
    Subscription,
    st.lists(names, max_size=5).map(lambda found: sorted(found, key=lambda text: text.encode("utf-16-be"))),
    st.none() | st.binary(max_size=20),
    owned,
    int32s,
    st.none() | names.filter(bool),
)
assignments = st.builds(Assignment, owned, st.none() | st.binary(max_size=20))


@pytest.mark.parametrize(("version", "value", "text"), VECTORS)
def test_bytes_are_kafkas(version: int, value: Subscription | Assignment, text: str) -> None:
    data = bytes.fromhex(text)
    assert value.encode(version) == data
    assert type(value).decode(data) == value


@given(subscriptions)
def test_a_subscription_comes_back(value: Subscription) -> None:
    assert Subscription.decode(value.encode()) == value


@given(subscriptions, st.integers(0, 2))
def test_an_older_version_leaves_out_what_it_lacks(value: Subscription, version: int) -> None:
    found = Subscription.decode(value.encode(version))
    assert (found.topics, found.user_data, found.rack_id) == (value.topics, value.user_data, None)
    assert found.owned_partitions == (value.owned_partitions if version >= 1 else {})
    assert found.generation == (value.generation if version >= 2 else -1)


@given(assignments)
def test_an_assignment_comes_back(value: Assignment) -> None:
    assert Assignment.decode(value.encode()) == value


@given(subscriptions | assignments, st.integers(0, 3))
def test_every_truncation_is_an_error(value: Subscription | Assignment, version: int) -> None:
    data = value.encode(version)
    for length in range(len(data)):
        with pytest.raises(MalformedError):
            type(value).decode(data[:length])


@given(subscriptions | assignments, st.integers(4, 32767), st.binary(max_size=30))
def test_a_later_version_is_read_as_the_last_known(
    value: Subscription | Assignment, version: int, more: bytes
) -> None:
    data = version.to_bytes(2, "big") + value.encode()[2:] + more
    assert type(value).decode(data) == value


@given(st.binary(max_size=80))
def test_any_bytes_give_a_value_or_the_one_error(data: bytes) -> None:
    for kind in (Subscription, Assignment):
        try:
            found = kind.decode(data)
        except MalformedError:
            continue
        assert isinstance(found, kind)


def test_counts_are_checked_before_memory_is_taken() -> None:
    for data in ("0000 7fffffff", "0000 ffffffff", "0001 00000000 ffffffff 7fffffff 0000"):
        with pytest.raises(MalformedError):
            Subscription.decode(bytes.fromhex(data))
    with pytest.raises(MalformedError):
        Assignment.decode(bytes.fromhex("0001 00000001 0001 61 7fffffff 00000000"))


def test_a_negative_version_is_an_error() -> None:
    with pytest.raises(MalformedError):
        Subscription.decode(b"\xff\xff" + bytes(8))


def test_topics_and_partitions_are_written_in_order() -> None:
    value = Subscription(["b", "a"], None, {"z": [2, 1], "a": [3, 0]})
    found = Subscription.decode(value.encode())
    assert found.topics == ["a", "b"]
    assert list(found.owned_partitions.items()) == [("a", [0, 3]), ("z", [1, 2])]
    assert value.topics == ["b", "a"]


def test_an_empty_rack_is_no_rack() -> None:
    assert Subscription.decode(Subscription(["a"], rack_id="").encode()).rack_id is None


def test_a_topic_that_comes_twice_is_one() -> None:
    data = bytes.fromhex("0001 00000002 0001 61 00000001 00000000 0001 61 00000001 00000002 ffffffff")
    assert Assignment.decode(data).partitions == {"a": [0, 2]}


@pytest.mark.parametrize(
    ("value", "version"),
    [
        (Subscription(["a"]), 4),
        (Subscription(["a"]), -1),
        (Subscription(["a" * 32768]), 3),
        (Subscription(["\ud800"]), 3),
        (Assignment({"a": [2**31]}), 1),
    ],
)
def test_values_that_cannot_be_written_are_refused(value: Subscription | Assignment, version: int) -> None:
    with pytest.raises(EncodeError):
        value.encode(version)


STICKY = "00000001 0003 666f6f 00000002 00000000 00000001"


def test_user_data_of_the_sticky_assignors() -> None:
    data = StickyUserData({"foo": [1, 0]}, 5)
    raw = bytes.fromhex(f"{STICKY} 00000005")
    assert data.encode() == raw
    assert StickyUserData.decode(raw) == StickyUserData({"foo": [0, 1]}, 5)
    assert StickyUserData.decode(bytes.fromhex(STICKY)) == StickyUserData({"foo": [0, 1]}, -1)
    kafka_pythons = bytes.fromhex(f"0001 {STICKY} 00000005")
    assert StickyUserData.decode(kafka_pythons) == StickyUserData({"foo": [0, 1]}, 5)
    assert encode_generation(5) == bytes.fromhex("00000005")
    assert decode_generation(bytes.fromhex("00000005")) == 5
    for cut in range(len(bytes.fromhex(STICKY))):
        with pytest.raises(MalformedError):
            StickyUserData.decode(raw[:cut])
    with pytest.raises(MalformedError):
        decode_generation(b"\0\0\0")
