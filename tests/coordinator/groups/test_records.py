"""Persisted records are Kafka's, byte for byte; what cannot be read says so."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleader.coordinator.groups import records
from ringleader.coordinator.groups.committed import CommittedOffset, Uncommitted
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.groups.shard import Shard
from ringleader.protocol.errors import MalformedError
from ringleader.protocol.messages import OffsetCommitKey, OffsetCommitValue
from ringleader.protocol.schema import ZERO_UUID

# Texts that fit a record's string.
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
_INT64 = st.integers(-(2**63), 2**63 - 1)
_INT32 = st.integers(-(2**31), 2**31 - 1)


def test_vectors_of_apache_kafka() -> None:
    # Facts about the formats, taken from a broker's log: group grp, topic foo, partition 0, offset 42, epoch
    # 7.
    assert records.offset_key("grp", "foo", 0).hex() == "000100036772700003666f6f00000000"
    value = records.offset_value(42, 7, "", 1000, -1)
    assert value.hex() == "0004000000000000002a000000070100000000000003e800"
    assert records.decode_offset_value(value) == CommittedOffset(42, 7, "", 1000, -1)
    assert records.group_key("grp").hex() == "00020003677270"
    assert (
        records.encode_group_value(records.empty_group_value(1000)).hex()
        == "0003000000000000ffffffff00000000000003e800000000"
    )
    topic_id = bytes(range(16))
    newest = records.offset_value(42, 7, "", 1000, -1, topic_id)
    assert newest.hex() == (
        "0004000000000000002a000000070100000000000003e8010010000102030405060708090a0b0c0d0e0f"
    )
    assert records.decode_offset_value(newest) == CommittedOffset(42, 7, "", 1000, -1, topic_id)
    older = bytes.fromhex("0003000000000000002a00000007000000000000000003e8")
    assert records.decode_offset_value(older) == CommittedOffset(42, 7, "", 1000, -1)


@given(_TEXT, _TEXT, _INT32)
def test_offset_keys_are_what_the_declared_message_says(group: str, topic: str, partition: int) -> None:
    key = records.offset_key(group, topic, partition)
    assert key == b"\0\1" + OffsetCommitKey(group=group, topic=topic, partition=partition).encode(1)
    assert records.decode_key(key) == (records.OFFSET, group, topic, partition, -1)


@given(
    _INT64,
    _INT32,
    st.one_of(_TEXT, st.text("x", min_size=126, max_size=129)),
    st.integers(0, 2**63 - 1),
    st.one_of(st.just(-1), st.integers(0, 2**63 - 1)),
    st.one_of(st.just(ZERO_UUID), st.binary(min_size=16, max_size=16)),
)
def test_offset_values_are_what_the_declared_message_says(
    offset: int, epoch: int, metadata: str, commit_ms: int, expire_ms: int, topic_id: bytes
) -> None:
    value = records.offset_value(offset, epoch, metadata, commit_ms, expire_ms, topic_id)
    version = 1 if expire_ms >= 0 else 4
    message = OffsetCommitValue(
        offset=offset,
        leader_epoch=epoch,
        metadata=metadata,
        commit_timestamp=commit_ms,
        expire_timestamp=expire_ms,
        topic_id=topic_id,
    )
    assert value == version.to_bytes(2, "big") + message.encode(version)
    kept = (epoch, topic_id) if version == 4 else (-1, ZERO_UUID)  # v1 has no room for either
    assert records.decode_offset_value(value) == (offset, kept[0], metadata, commit_ms, expire_ms, kept[1])


@given(st.binary(max_size=48), st.sampled_from([3, 4]), st.sampled_from([24, 42]))
def test_a_value_that_is_plain_can_be_read(noise: bytes, version: int, size: int) -> None:
    value = (version.to_bytes(2, "big") + noise[:12].ljust(12, b"\0") + noise[12:]).ljust(size, b"\0")
    for one in (
        value,
        value[:14] + b"\1" + value[15:],
        value[:14] + b"\1" + value[15:23] + b"\1\0\x10" + value[26:],
    ):
        if records.is_plain_offset(one):
            assert records.decode_offset_value(one).metadata == ""


@given(_TEXT, st.integers(0, 2**31 - 1))
def test_floors_come_back(group: str, floor: int) -> None:
    assert records.decode_key(records.reserved_key(group)) == (records.RESERVED_GENERATION, group, "", -1, -1)
    assert records.decode_reserved_value(records.reserved_value(floor)) == floor


@pytest.mark.parametrize("kind", [3, 8, 0x52FF, -1])
def test_unknown_key_types_are_skipped(kind: int) -> None:
    assert records.decode_key(kind.to_bytes(2, "big", signed=True) + b"whatever") is None


@given(st.binary(max_size=40))
def test_any_bytes_are_read_or_refused(raw: bytes) -> None:
    for read in (records.decode_key, records.decode_offset_value, records.decode_group_value):
        with suppress(MalformedError):
            assert read(raw) is None or len(raw) > 2


@pytest.mark.parametrize("cut", range(2, 16))
def test_a_cut_key_is_refused(cut: int) -> None:
    whole = records.offset_key("grp", "foo", 7)
    with pytest.raises(MalformedError):
        records.decode_key(whole[:cut])


def test_a_floor_of_an_unknown_version_is_refused() -> None:
    with pytest.raises(MalformedError):
        records.decode_reserved_value(b"\0\1\0\0\0\7")


def test_a_version_from_the_future_is_refused() -> None:
    with pytest.raises(MalformedError):
        records.decode_group_value(b"\0\5" + bytes(40))


def test_a_stored_offset_whose_metadata_is_cut_off_is_refused_at_load() -> None:
    """It has the size of one without metadata; a shard that took it would fail when it is asked for it."""
    key, good = records.offset_key("g", "t", 0), records.offset_value(5, 1, "", 7, -1)
    with_id = records.offset_value(5, 1, "", 7, -1, bytes(range(16)))
    damaged = b"\0\3" + good[2:14] + b"\0\4" + good[15:23]
    assert len(damaged) == len(good)
    longer = [one[:14] + b"\x20" + one[15:] for one in (good, with_id)]
    tagged = [good[:-1] + b"\1", with_id[:23] + b"\1\0\x11" + with_id[26:]]
    bad = [damaged, *longer, *tagged]
    for rows in [[(key, one)] for one in bad] + [[(key, good), (key, one)] for one in bad]:
        shard = Shard(0, GroupSettings(), lambda prefix: prefix)
        with pytest.raises(MalformedError):
            shard.replay(rows)


def test_tombstones_cover_everything_of_a_group() -> None:
    group = Group("g")
    group.synced, group.reserved_generation = records.empty_group_value(0), 7
    group.offsets = {"t": {0: b"x", 3: b"y"}}
    open_one = Uncommitted(b"z", 1)
    group.uncommitted, group.open_at = {9: {("t", 4): open_one}}, {("t", 4): {9: open_one}}
    group.later = {(9, "t", 4)}
    keys = records.keys_of(group)
    assert [records.encode_key(key) for key in keys] == [
        records.offset_key("g", "t", 0),
        records.offset_key("g", "t", 3),
        records.pending_key("g", "t", 4, 9),
        records.later_key("g", "t", 4, 9),
        records.group_key("g"),
        records.reserved_key("g"),
    ]
    assert [records.decode_key(records.encode_key(key)) for key in keys] == keys
