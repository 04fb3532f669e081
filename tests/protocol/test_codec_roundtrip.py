"""A message that is written comes back, and is as declared, byte for byte; vectors known from Kafka."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleader.protocol.codec import decoder, encoder
from ringleader.protocol.layout import covers
from ringleader.protocol.messages import (
    ConsumerGroupMemberMetadataValue,
    GroupMetadataKey,
    GroupMetadataValue,
    HeartbeatRequest,
    HeartbeatResponse,
    OffsetCommitKey,
    OffsetCommitValue,
)
from ringleader.protocol.schema import Message
from tests.support.wire_reference import full, uvarint, written
from tests.support.wire_values import few, in_every_version, present_fields, values


@in_every_version()
@given(data=st.data())
@few
def test_a_message_comes_back(cls: type[Message], version: int, data: st.DataObject) -> None:
    message = data.draw(values(cls, version))
    body = message.encode(version)
    assert body == written(message, version).body
    assert decoder(cls, version)(b"before" + body + b"after", 6) == (message, 6 + len(body))


@in_every_version()
def test_every_field_is_carried(cls: type[Message], version: int) -> None:
    message = full(cls, version)
    body = encoder(cls, version)(message)
    assert body == written(message, version).body
    assert cls.decode(body, version) == message


def nulled(value: Any, version: int) -> Any:
    """The same with null in every field that can be null."""
    for name, spec in present_fields(type(value), version):
        inner = getattr(value, name)
        if covers(spec.nullable, version):
            setattr(value, name, None)
        elif not isinstance(spec.type, str):
            for item in inner if spec.array else [inner]:
                nulled(item, version)
    return value


@in_every_version()
def test_null_wherever_it_may_be(cls: type[Message], version: int) -> None:
    message = nulled(full(cls, version), version)
    body = message.encode(version)
    assert body == written(message, version).body
    assert cls.decode(body, version) == message


@in_every_version()
def test_defaults_can_be_sent_in_every_version(cls: type[Message], version: int) -> None:
    assert cls.decode(cls().encode(version), version) == cls()


VECTORS: list[tuple[Message, int, str]] = [
    (HeartbeatRequest("g", 5, "m"), 0, "0001 67 00000005 0001 6d"),
    (HeartbeatRequest("g", 5, "m"), 3, "0001 67 00000005 0001 6d ffff"),
    (HeartbeatRequest("g", 5, "m", "i"), 4, "02 67 00000005 02 6d 02 69 00"),
    (HeartbeatRequest("g", 5, "m"), 4, "02 67 00000005 02 6d 00 00"),
    (HeartbeatResponse(error_code=27), 0, "001b"),
    (HeartbeatResponse(error_code=27), 1, "00000000 001b"),
    (HeartbeatResponse(error_code=27), 4, "00000000 001b 00"),
    # Kafka's record formats, less the two bytes of the version in front.
    (OffsetCommitKey("grp", "foo", 0), 1, "0003677270 0003666f6f 00000000"),
    (
        OffsetCommitValue(42, 7, "", 1000),
        3,
        "000000000000002a 00000007 0000 00000000000003e8",
    ),
    (OffsetCommitValue(42, 7, "", 1000), 4, "000000000000002a 00000007 01 00000000000003e8 00"),
    (
        OffsetCommitValue(42, 7, "", 1000, topic_id=bytes(range(16))),
        4,
        "000000000000002a 00000007 01 00000000000003e8 01 00 10 000102030405060708090a0b0c0d0e0f",
    ),
    (GroupMetadataKey("grp"), 2, "0003677270"),
    (
        GroupMetadataValue(protocol=None, leader=None, current_state_timestamp=1000),
        3,
        "0000 00000000 ffff ffff 00000000000003e8 00000000",
    ),
]


def test_null_for_a_struct_in_a_tagged_field_as_kafka_writes_it() -> None:
    # Of a real broker (4.3.0), less the two bytes of the version in front.
    raw = b"\0\0\x02a\x0b/127.0.0.1\x02\x07orders\x01\0\0\x1bX\0\x01\0\x01\0"
    assert ConsumerGroupMemberMetadataValue.decode(raw, 0) == ConsumerGroupMemberMetadataValue(
        None, None, "a", "/127.0.0.1", ["orders"], "", 7000, None, None
    )


@pytest.mark.parametrize(("message", "version", "text"), VECTORS)
def test_known_bytes(message: Message, version: int, text: str) -> None:
    assert message.encode(version) == bytes.fromhex(text)
    assert type(message).decode(bytes.fromhex(text), version) == message


@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 4094, 4095, 4096, 16382, 16383, 16384, 32767])
def test_lengths_where_a_varint_grows(size: int) -> None:
    name = "n" * size
    body = HeartbeatRequest(name).encode(4)
    assert body.startswith(uvarint(size + 1))
    assert HeartbeatRequest.decode(body, 4) == HeartbeatRequest(name)


def test_a_version_that_is_not_declared_is_refused() -> None:
    with pytest.raises(ValueError, match=r"HeartbeatRequest is declared for versions 0 to 4, not 5"):
        HeartbeatRequest.decode(b"", 5)
    with pytest.raises(ValueError, match=r"not -1"):
        HeartbeatRequest().encode(-1)
