"""Bytes that are not what they say: one exception, which says where, before any memory is taken."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleader.protocol.codec import decoder
from ringleader.protocol.errors import MalformedError
from ringleader.protocol.messages import (
    ApiVersionsResponse,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    MetadataRequest,
    OffsetFetchRequest,
    SyncGroupResponse,
)
from ringleader.protocol.schema import Message
from tests.support.wire_reference import Mark, Written, full, uvarint, written
from tests.support.wire_values import PAIRS, few, in_every_version, values

FLEXIBLE = [(cls, version) for cls, version in PAIRS if version >= cls.FLEXIBLE_VERSION]
PEAK_BYTES = 256 * 1024
"""The most memory that reading a small hostile body may take: the message itself and the error with its
texts."""


def sample(cls: type[Message], version: int) -> Written:
    return written(full(cls, version), version)


def outcome(cls: type[Message], version: int, body: bytes) -> tuple[Any, int] | MalformedError:
    """The result of the decoder for bytes that may be right or not; any other exception is a failure."""
    try:
        return decoder(cls, version)(body, 0)
    except MalformedError as error:
        return error


def refusal(cls: type[Message], version: int, body: bytes, pos: int = 0) -> MalformedError:
    with pytest.raises(MalformedError) as caught:
        decoder(cls, version)(body, pos)
    error = caught.value
    assert (error.message, error.version) == (cls.__name__, version)
    assert pos <= error.position <= len(body)
    assert error.field != "?"
    assert error.reason
    return error


@in_every_version()
def test_cut_off_at_every_byte(cls: type[Message], version: int) -> None:
    body = sample(cls, version).body
    assert decoder(cls, version)(body, 0)[1] == len(body)
    for size in range(len(body)):
        refusal(cls, version, body[:size])
        refusal(cls, version, b"head" + body[:size], 4)


def wrong_sizes(mark: Mark) -> Iterator[tuple[str, bytes]]:
    """Lengths and counts that cannot be right: huge, just too large, negative, null."""
    if mark.compact:
        yield "huge", uvarint(0x7FFFFFFF)
        yield "huge", uvarint(0xFFFFFFFF)
        yield "huge", uvarint(100_000)
        yield "overlong", b"\xff\xff\xff\xff\x7f"
        yield "overlong", b"\x80\x80\x80\x80\x80\x00"
        if not mark.nullable:
            yield "null", b"\0"
    else:
        top, form = (2**15 - 1, ">h") if mark.short else (2**31 - 1, ">i")
        yield "huge", struct.pack(form, top)
        yield "huge", struct.pack(form, 30_000)
        yield "negative", struct.pack(form, -2)
        yield "negative", struct.pack(form, -top - 1)
        if not mark.nullable:
            yield "null", struct.pack(form, -1)


@in_every_version()
def test_a_wrong_length_or_count_names_its_field_and_takes_no_memory(
    cls: type[Message], version: int
) -> None:
    good = sample(cls, version)
    sizes = [mark for mark in good.marks if mark.kind in ("length", "count")]
    bad = [(mark.path, good.replaced(mark, data)) for mark in sizes for _, data in wrong_sizes(mark)]
    decoder(cls, version)  # loaded before memory is watched
    tracemalloc.start()
    try:
        for path, body in bad:
            tracemalloc.reset_peak()
            before, _ = tracemalloc.get_traced_memory()
            found = outcome(cls, version, body)
            _, peak = tracemalloc.get_traced_memory()
            assert isinstance(found, MalformedError)
            assert found.field == path
            assert peak - before < PEAK_BYTES
    finally:
        tracemalloc.stop()


@in_every_version()
def test_text_that_is_not_utf8(cls: type[Message], version: int) -> None:
    good = sample(cls, version)
    for mark in good.marks:
        if mark.kind == "text":
            broken = good.body[mark.start : mark.stop - 1] + b"\xff"
            error = refusal(cls, version, good.replaced(mark, broken))
            assert (error.field, error.position) == (mark.path, mark.stop - 1)


UNKNOWN = [(77, b""), (1000, b"from a later version"), (0x7FFFFFFF, bytes(200))]


@in_every_version(FLEXIBLE)
def test_unknown_tagged_fields_are_passed_over(cls: type[Message], version: int) -> None:
    message = full(cls, version)
    good = written(message, version)
    extra = b"".join(uvarint(tag) + uvarint(len(data)) + data for tag, data in UNKNOWN)
    for mark in good.marks:
        if mark.kind == "tags" and not mark.tagged:
            tags = good.body[mark.start : mark.stop]
            assert tags[0] < 100
            body = good.replaced(mark, bytes((tags[0] + len(UNKNOWN),)) + tags[1:] + extra)
            assert decoder(cls, version)(body, 0) == (message, len(body))


@in_every_version(FLEXIBLE)
def test_tagged_fields_that_do_not_fit(cls: type[Message], version: int) -> None:
    good = sample(cls, version)
    wrong = [
        uvarint(0x7FFFFFFF),  # more of them than bytes
        b"\x01" + uvarint(77) + uvarint(0x7FFFFFFF),  # larger than what is left
        b"\x01" + uvarint(77) + uvarint(0xFFFFFFFF),
        b"\x01\xff\xff\xff\xff\x7f\x00",  # a tag of more than 32 bits
        b"\xff\xff\xff\xff\xff\xff",
    ]
    for mark in good.marks:
        if mark.kind == "tags":
            for tags in wrong:
                assert refusal(cls, version, good.replaced(mark, tags)).field == mark.path


@pytest.mark.parametrize(
    ("tag", "payload"), [(1, bytes(7)), (1, bytes(9)), (0, b"\x01\x00"), (0, b"\x05"), (3, b"")]
)
def test_a_known_tagged_field_of_the_wrong_size(tag: int, payload: bytes) -> None:
    body = ApiVersionsResponse().encode(3)
    assert body.endswith(b"\0")
    error = refusal(
        ApiVersionsResponse, 3, body[:-1] + b"\x01" + uvarint(tag) + uvarint(len(payload)) + payload
    )
    assert error.field in ("supported_features", "finalized_features_epoch", "zk_migration_ready")


@in_every_version()
@given(data=st.data())
@few
def test_damaged_messages_are_read_or_refused(cls: type[Message], version: int, data: st.DataObject) -> None:
    body = bytearray(data.draw(values(cls, version)).encode(version))
    for _ in range(data.draw(st.integers(1, 4))):
        if body:
            body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    found = outcome(cls, version, bytes(body))
    if isinstance(found, MalformedError):
        assert found.field != "?"
    else:
        message, stop = found
        assert stop <= len(body)
        again = message.encode(version)  # bytes are compared: a damaged float may be no number, equal to none
        assert cls.decode(again, version).encode(version) == again


@in_every_version()
def test_noise_is_read_or_refused(cls: type[Message], version: int) -> None:
    for filler in (b"\0", b"\x01", b"\x7f", b"\x80", b"\xff", b"\0\0\0\x01"):
        body = filler * 64
        found = outcome(cls, version, body)
        if isinstance(found, MalformedError):
            assert found.field != "?"
        else:
            assert found[1] <= len(body)


# The text of an error after the message and version: field, position, reason.
SAYINGS = [
    (HeartbeatRequest, 0, "", "field group_id, byte 0: length needs 2 bytes, 0 are left"),
    (HeartbeatRequest, 0, "ffff", "field group_id, byte 0: null is not allowed here"),
    (HeartbeatRequest, 4, "00", "field group_id, byte 0: null is not allowed here"),
    (HeartbeatRequest, 4, "0a67", "field group_id, byte 1: the value needs 9 bytes, 1 are left"),
    (LeaveGroupRequest, 3, "0000 7fffffff", "field members, byte 6: 2147483647 elements in 0 bytes"),
    (MetadataRequest, 4, "fffffffe 00", "field topics, byte 0: count is -2"),
    (OffsetFetchRequest, 1, "0001 67 00000001 0001 ff", "field topics, byte 7: 1 elements in 3 bytes"),
    (
        SyncGroupResponse,
        0,
        "0000 7fffffff",
        "field assignment, byte 6: the value needs 2147483647 bytes, 0 are left",
    ),
]


@pytest.mark.parametrize(("cls", "version", "text", "says"), SAYINGS)
def test_an_error_names_field_position_and_reason(
    cls: type[Message], version: int, text: str, says: str
) -> None:
    assert str(refusal(cls, version, bytes.fromhex(text))) == f"{cls.__name__} v{version}, {says}"


def test_elements_are_named_by_their_index() -> None:
    request = full(JoinGroupRequest, 9)
    good = written(request, 9)
    (mark,) = [mark for mark in good.marks if mark.path == "protocols[1].name" and mark.kind == "length"]
    assert refusal(JoinGroupRequest, 9, good.replaced(mark, b"\0")).field == "protocols[1].name"
