"""Records of `__consumer_offsets` that the recorded ones do not have, and what cannot be read."""

from __future__ import annotations

import struct

import pytest

from ringleader.coordinator.storage.kafka.format import CLAIM_KEY, Claim
from ringleader.insight.inference.engine import Inference
from ringleader.insight.inference.facts import (
    ClassicGroup,
    CoordinatorSeen,
    GroupEpoch,
    ModernMember,
    OffsetCommitted,
    OffsetDeleted,
    RegexResolved,
    Source,
    TopicsSeen,
)
from ringleader.insight.inference.records import decode
from ringleader.insight.model import Commit, Event, EventKind, Kind
from ringleader.protocol.embedded import Subscription
from ringleader.protocol.errors import MalformedError
from ringleader.protocol.messages import (
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMemberMetadataValueClassicMemberMetadata,
    ConsumerGroupMemberMetadataValueClassicProtocol,
    ConsumerGroupRegularExpressionValue,
    GroupMetadataValue,
    OffsetCommitValue,
)

V0 = b"\0\0"


def key(kind: int, *texts: str) -> bytes:
    raw = [text.encode() for text in texts]
    return struct.pack(">h", kind) + b"".join(struct.pack(">h", len(one)) + one for one in raw)


def offset_key(kind: int, group: str, topic: str, partition: int) -> bytes:
    return key(kind, group, topic) + struct.pack(">i", partition)


@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("version", range(5))
def test_an_offset_of_any_version(kind: int, version: int) -> None:
    value = struct.pack(">h", version) + OffsetCommitValue(42, 7, "meta", 1000).encode(version)
    committed = decode(3, 9, 1234, offset_key(kind, "g", "orders", 5), value)
    assert committed == OffsetCommitted(Source(3, 9), 1234, "g", "orders", 5, 42)
    deleted = decode(3, 10, 1235, offset_key(kind, "g", "orders", 5), None)
    assert deleted == OffsetDeleted(Source(3, 10), 1235, "g", "orders", 5)


def test_the_claim_of_a_node() -> None:
    claim = Claim(2, "node-2", 9092, "0.1.0", 1).encode()
    seen = CoordinatorSeen(1234, 3, 2, 0, reachable=True, is_node=True)
    assert decode(3, 9, 1234, CLAIM_KEY, claim) == seen
    assert decode(3, 9, 1234, CLAIM_KEY, None) is None
    for wrong in (b"", b"{}", b"[]", b'{"node_id": "x"}', b'{"node_id": 1e999}'):
        with pytest.raises(MalformedError, match="Claim"):
            decode(3, 9, 1234, CLAIM_KEY, wrong)


def test_a_node_that_claims_what_it_has_is_no_event_and_another_one_is() -> None:
    inference = Inference()
    for at_s, node_id, partition in ((0, 1, 3), (0, 1, 4), (3_600, 1, 3), (3_700, 2, 3), (3_701, 2, 4)):
        claim = Claim(node_id, "h", 9092, "0.1.0").encode()
        inference.record(partition, at_s, at_s * 1000, CLAIM_KEY, claim)
    events = [one for one in inference.drain() if isinstance(one, Event)]
    assert [(one.kind, one.at_ms, one.text) for one in events] == [
        (
            EventKind.COORDINATOR_BACK,
            3_700_000,
            f"Node 2 coordinates now: the groups of {many} of the groups' topic.",
        )
        for many in ("1 partition", "2 partitions")
    ]
    assert inference.unreadable == 0


@pytest.mark.parametrize("version", range(5))
def test_a_classic_group_of_any_version(version: int) -> None:
    value = struct.pack(">h", version) + GroupMetadataValue("consumer", 7, "range", "a").encode(version)
    entry = decode(0, 0, 0, key(2, "g"), value)
    assert isinstance(entry, ClassicGroup)
    assert entry.value is not None
    assert (entry.group, entry.value.generation, entry.value.leader) == ("g", 7, "a")


def test_a_classic_member_in_a_group_of_the_consumer_protocol() -> None:
    offered = ConsumerGroupMemberMetadataValueClassicProtocol("range", Subscription(["b", "a"]).encode(1))
    classic = ConsumerGroupMemberMetadataValueClassicMemberMetadata(10_000, [offered])
    value = ConsumerGroupMemberMetadataValue("i", None, "client", "/10.0.0.1", [], "", -1, None, classic)
    entry = decode(0, 0, 0, key(5, "g", "m"), V0 + value.encode(0))
    assert isinstance(entry, ModernMember)
    assert (entry.topics, entry.session_timeout_ms, entry.rebalance_timeout_ms) == (("a", "b"), 10_000, None)
    assert (entry.instance_id, entry.regex) == ("i", None)


def test_a_pattern() -> None:
    value = V0 + ConsumerGroupRegularExpressionValue(["orders2", "orders"], 3, 1000).encode(0)
    entry = decode(0, 0, 0, key(16, "g", "orders.*"), value)
    assert entry == RegexResolved(Source(0, 0), 0, "g", "orders.*", ("orders", "orders2"))
    deleted = decode(0, 0, 0, key(16, "g", "orders.*"), None)
    assert isinstance(deleted, RegexResolved)
    assert deleted.topics is None


@pytest.mark.parametrize("kind", [4, 9, 15, 17, 99, 0x5200])
def test_key_types_that_say_nothing_here(kind: int) -> None:
    assert decode(0, 0, 0, key(kind, "g"), b"\0\0whatever") is None


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"\0",
        b"\0\1",
        b"\0\1\0\5ab",
        b"\0\1\xff\xff",
        b"\0\2",
        b"\0\2\0\1\xff",
        offset_key(1, "g", "t", 0)[:-1],
    ],
)
def test_keys_that_cannot_be_read(raw: bytes) -> None:
    with pytest.raises(MalformedError):
        decode(0, 0, 0, raw, None)
    inference = Inference()
    inference.record(7, 8, 0, raw, b"\0\3" + bytes(22))
    assert inference.unreadable == 1
    assert inference.last_unreadable.startswith("partition 7, offset 8: ")


def test_a_version_that_is_not_known() -> None:
    for one, value in (
        (key(2, "g"), b"\0\5"),
        (key(3, "g"), b"\0\1"),
        (offset_key(1, "g", "t", 0), b"\0\5" + bytes(8)),
    ):
        with pytest.raises(MalformedError, match="version"):
            decode(0, 0, 0, one, value)


def test_the_quick_way_says_the_same_as_the_long_one() -> None:
    quick, long = Inference(), Inference()
    for number in range(200):
        value = b"\0\3" + OffsetCommitValue(number * 5, 7, "", 0).encode(3)
        where = offset_key(1, "g", "orders", number % 3)
        quick.record(0, number, number * 700, where, value)
        fact = decode(0, number, number * 700, where, value)
        assert fact is not None
        long.tell(fact)
    assert quick.drain() == long.drain()
    assert quick.commits_snapshot("g") == long.commits_snapshot("g")


def test_commits_come_out_thinned_and_the_newest_when_it_is_old() -> None:
    inference = Inference()
    for second in range(26):
        inference.tell(OffsetCommitted(Source(0, second), second * 1000, "g", "t", 0, second))
        inference.tick(second * 1000)
    assert [one.at_ms for one in inference.drain() if isinstance(one, Commit)] == [0, 10_000, 20_000]
    inference.tick(34_000)
    assert inference.drain() == []
    inference.tick(35_000)
    assert inference.drain() == [Commit("g", "t", 0, 25_000, 25)]


def test_the_empty_group_id_and_keys_without_anything_are_not_followed() -> None:
    inference = Inference()
    inference.record(0, 0, 0, offset_key(1, "", "t", 0), b"\0\3" + bytes(22))
    inference.record(0, 1, 0, None, None)
    inference.tell(GroupEpoch(Source(0, 2), 0, "", Kind.CONSUMER, 1))
    assert (inference.drain(), inference.unreadable, inference.dirty()) == ([], 0, (set(), set()))


@pytest.mark.parametrize("snapshot", [b'{"format":1}', b'{"format":3}', b"[]", b"{", b"nothing"])
def test_a_snapshot_of_another_format_is_refused(snapshot: bytes) -> None:
    for group in ("g", ""):
        with pytest.raises(ValueError, match=r"format|Expecting"):
            Inference().restore([(group, snapshot, b"")])


def test_the_cluster_itself_has_a_snapshot() -> None:
    inference = Inference()
    inference.tell(TopicsSeen(0, {}))
    assert inference.dirty() == ({""}, set())
    assert inference.snapshot("").startswith(b'{"format":2')
