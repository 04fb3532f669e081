"""Kafka's ConsumerProtocolTest by its names: Subscription and Assignment as Java reads and writes them."""

from __future__ import annotations

import pytest

from ringleader.clients.model import MemberInfo
from ringleader.protocol.embedded import MAX_VERSION, Assignment, Subscription
from ringleader.protocol.errors import MalformedError

VERSIONS = range(MAX_VERSION + 1)
TOPICS = ["bar", "foo"]
OWNED = {"bar": [0], "foo": [0]}
SHARE = {"bar": [2], "foo": [1]}


def test_serialize_deserialize_subscription_all_versions() -> None:
    subscription = Subscription(["foo", "bar"], b"hello", OWNED, 7, "rack")
    for version in VERSIONS:
        found = Subscription.decode(subscription.encode(version))
        assert (found.topics, found.user_data) == (TOPICS, b"hello")
        assert found.owned_partitions == (OWNED if version >= 1 else {})
        assert found.generation == (7 if version >= 2 else -1)
        assert found.rack_id == ("rack" if version >= 3 else None)


def test_every_version_byte_for_byte() -> None:
    subscription = Subscription(["foo", "bar"], b"hello", {"foo": [1, 0], "bar": [0]}, 7, "r1")
    topics = "00000002 0003 626172 0003 666f6f 00000005 68656c6c6f"
    has = "00000002 0003 626172 00000001 00000000 0003 666f6f 00000002 00000000 00000001"
    for version, text in enumerate(
        [
            f"0000 {topics}",
            f"0001 {topics} {has}",
            f"0002 {topics} {has} 00000007",
            f"0003 {topics} {has} 00000007 0002 7231",
        ]
    ):
        assert subscription.encode(version) == bytes.fromhex(text)
    share = "00000002 0003 626172 00000001 00000002 0003 666f6f 00000001 00000001 00000005 68656c6c6f"
    for version in VERSIONS:
        assert Assignment(SHARE, b"hello").encode(version) == bytes.fromhex(f"{version:04x} {share}")


def test_serialize_deserialize_metadata() -> None:
    found = Subscription.decode(Subscription(["foo", "bar"], b"").encode())
    assert found == Subscription(TOPICS, b"")


def test_serialize_deserialize_metadata_and_group_instance_id() -> None:
    """The instance id is none of the bytes' business: JoinGroup carries it."""
    info = MemberInfo("m", "instance.id", Subscription(["foo", "bar"], b"").encode())
    assert Subscription.decode(info.metadata) == Subscription(TOPICS, b"")
    assert info.group_instance_id == "instance.id"


def test_serialize_deserialize_null_subscription_user_data() -> None:
    assert Subscription.decode(Subscription(["foo", "bar"]).encode()) == Subscription(TOPICS)


def test_serialize_subscription_should_order_topics() -> None:
    assert Subscription(["foo", "bar"]).encode() == Subscription(["bar", "foo"]).encode()


def test_serialize_subscription_should_order_owned_partitions() -> None:
    one = Subscription(TOPICS, None, {"foo": [1, 0], "bar": [1, 0]})
    other = Subscription(TOPICS, None, {"bar": [0, 1], "foo": [0, 1]})
    assert one.encode() == other.encode()


def test_deserialize_old_subscription_version() -> None:
    assert Subscription.decode(Subscription(["foo", "bar"]).encode(0)) == Subscription(TOPICS)


def test_deserialize_new_subscription_with_old_version() -> None:
    newer = Subscription(["foo", "bar"], None, {"bar": [2]}).encode(1)
    assert Subscription.decode(b"\0\0" + newer[2:]) == Subscription(TOPICS)


def test_deserialize_future_subscription_version() -> None:
    now = Subscription(["topic"], b"", {"bar": [2]}, 3, "r")
    later = (100).to_bytes(2, "big") + now.encode()[2:] + b"\0\3bar"
    assert Subscription.decode(later) == now


def test_serialize_deserialize_assignment_all_versions() -> None:
    for version in VERSIONS:
        assert Assignment.decode(Assignment(SHARE, b"hello").encode(version)) == Assignment(SHARE, b"hello")


def test_serialize_deserialize_assignment() -> None:
    assert Assignment.decode(Assignment(SHARE, b"").encode()) == Assignment(SHARE, b"")


def test_deserialize_null_assignment_user_data() -> None:
    assert Assignment.decode(Assignment(SHARE).encode()) == Assignment(SHARE)


def test_deserialize_future_assignment_version() -> None:
    later = (100).to_bytes(2, "big") + Assignment({"foo": [1]}, b"").encode()[2:] + b"\0\3bar"
    assert Assignment.decode(later) == Assignment({"foo": [1]}, b"")


def test_deserialize_subscription_throws_schema_exception_for_every_truncation() -> None:
    whole = Subscription(["foo", "bar"], b"\1\2", {"foo": [0], "bar": [1]}, -1, "rack").encode()
    for length in range(len(whole)):
        with pytest.raises(MalformedError):
            Subscription.decode(whole[:length])


def test_deserialize_assignment_throws_schema_exception_for_every_truncation() -> None:
    whole = Assignment({"foo": [0], "bar": [1]}, b"\1\2").encode()
    for length in range(len(whole)):
        with pytest.raises(MalformedError):
            Assignment.decode(whole[:length])
