"""Headers and sizes around the bodies: which version of the header goes with which message."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.request_header.v1.header import RequestHeader as KioHeader1
from kio.schema.request_header.v2.header import RequestHeader as KioHeader2
from kio.serial import entity_writer

from ringleader.protocol.errors import EncodeError, MalformedError
from ringleader.protocol.frames import (
    REQUESTS,
    RESPONSES,
    RequestHeader,
    decode_request_header,
    decode_response,
    encode_request,
    encode_response,
    is_flexible,
    request_class,
    response_class,
)
from ringleader.protocol.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    OffsetCommitKey,
    SaslHandshakeRequest,
)
from ringleader.protocol.schema import Message
from tests.support.wire_values import MESSAGES, PAIRS, in_every_version

# client id and body position by header version
HEADERS = [
    ("000c 0003 00000007 0001 63", RequestHeader(12, 3, 7, "c"), 11),
    ("000c 0003 00000007 0000", RequestHeader(12, 3, 7, ""), 10),
    ("000c 0003 00000007 ffff", RequestHeader(12, 3, 7, None), 10),
    # v2 from the flexible versions on: tagged fields follow, the client id keeps its two bytes
    ("000c 0004 00000007 0001 63 00", RequestHeader(12, 4, 7, "c"), 12),
    ("000c 0004 ffffffff ffff 00", RequestHeader(12, 4, -1, None), 11),
    ("000c 0004 00000007 ffff 02 05 01 aa 06 00", RequestHeader(12, 4, 7, None), 16),
    # SaslHandshake is never flexible; ApiVersions above what we know is read as flexible
    ("0011 0001 00000000 ffff", RequestHeader(17, 1, 0, None), 10),
    ("0012 0063 00000001 0001 63 00", RequestHeader(18, 99, 1, "c"), 12),
    ("0012 ffff 00000001 0001 63", RequestHeader(18, -1, 1, "c"), 11),
    # an API that we do not know
    ("03e7 0063 00000001 0001 63 ffff", RequestHeader(999, 99, 1, "c"), 11),
    ("03e7 7fff 00000001 0001 63", RequestHeader(999, 32767, 1, "c"), 11),
    # Kafka reads these too
    ("000c 0003 00000007 fffe", RequestHeader(12, 3, 7, None), 10),
    ("000c 0003 00000007 0002 63ff", RequestHeader(12, 3, 7, "c\N{REPLACEMENT CHARACTER}"), 12),
]


@pytest.mark.parametrize(("text", "header", "position"), HEADERS)
def test_request_headers(text: str, header: RequestHeader, position: int) -> None:
    assert decode_request_header(bytes.fromhex(text)) == (header, position)


@pytest.mark.parametrize("text", [text for text, _, _ in HEADERS])
def test_a_header_cut_off_at_every_byte(text: str) -> None:
    frame = bytes.fromhex(text)
    _, position = decode_request_header(frame)
    for size in range(position):
        with pytest.raises(MalformedError) as caught:
            decode_request_header(frame[:size])
        assert caught.value.message == "RequestHeader"


@pytest.mark.parametrize(
    "text",
    [
        "000c 0003 00000007 7fff 63",  # a client id beyond the frame
        "000c 0004 00000007 ffff ffffffff0f",  # more tagged fields than bytes
        "000c 0004 00000007 ffff 01 05 ffffffff0f",  # a tagged field beyond the frame
        "000c 0004 00000007 ffff 8080808080 00",  # an overlong count of tagged fields
    ],
)
def test_a_header_that_does_not_fit(text: str) -> None:
    with pytest.raises(MalformedError):
        decode_request_header(bytes.fromhex(text))


@given(st.binary(max_size=40))
def test_any_bytes_are_a_header_or_refused(frame: bytes) -> None:
    try:
        _, position = decode_request_header(frame)
    except MalformedError:
        position = 10
    assert 10 <= position <= max(10, len(frame))


@in_every_version([pair for pair in PAIRS if pair[0].KIND == "request"])
def test_whole_request_frames(cls: type[Message], version: int) -> None:
    for client_id in (None, "", "c", "clïent"):
        whole_request(cls, version, client_id)


def whole_request(cls: type[Message], version: int, client_id: str | None) -> None:
    frame = encode_request(cls(), version, 7, client_id)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    header, position = decode_request_header(frame[4:])
    assert header == RequestHeader(cls.API_KEY, version, 7, client_id)
    assert frame[4 + position :] == cls().encode(version)
    flexible = version >= cls.FLEXIBLE_VERSION
    assert is_flexible(cls.API_KEY, version) == flexible
    out = io.BytesIO()
    kio = KioHeader2 if flexible else KioHeader1
    fields: dict[str, Any] = {
        "request_api_key": cls.API_KEY,
        "request_api_version": version,
        "correlation_id": 7,
    }
    entity_writer(kio)(out, kio(**fields, client_id=client_id))
    assert frame[4 : 4 + position] == out.getvalue()


@in_every_version([pair for pair in PAIRS if pair[0].KIND == "response"])
def test_whole_response_frames(cls: type[Message], version: int) -> None:
    frame = encode_response(cls(), version, -3)
    assert int.from_bytes(frame[:4], "big") == len(frame) - 4
    assert frame[4:8] == b"\xff\xff\xff\xfd"
    # ApiVersions keeps header v0, so that it can be read before anything is known of the node.
    tags = b"\0" if version >= cls.FLEXIBLE_VERSION and cls is not ApiVersionsResponse else b""
    assert frame[8:] == tags + cls().encode(version)
    assert decode_response(cls, frame[4:], version) == (-3, cls())


def test_known_frames() -> None:
    heartbeat = HeartbeatRequest("g", 5, "m")
    assert encode_request(heartbeat, 4, 7, "c") == bytes.fromhex(
        "00000016 000c 0004 00000007 0001 63 00 02 67 00000005 02 6d 00 00"
    )
    assert encode_response(HeartbeatResponse(error_code=27), 4, 7) == bytes.fromhex(
        "0000000c 00000007 00 00000000 001b 00"
    )
    assert encode_response(HeartbeatResponse(error_code=27), 0, 7) == bytes.fromhex("00000006 00000007 001b")
    assert encode_response(ApiVersionsResponse(), 3, 1) == bytes.fromhex(
        "0000000c 00000001 0000 01 00000000 00"
    )


def test_responses_with_tags_in_the_header() -> None:
    frame = bytes.fromhex("00000007 01 05 02 aabb 00000000 001b 00")
    assert decode_response(HeartbeatResponse, frame, 4) == (7, HeartbeatResponse(error_code=27))


@pytest.mark.parametrize(
    "text", ["", "000000", "00000007", "00000007 01", "00000007 01 05 7f", "00000007 00"]
)
def test_responses_cut_off(text: str) -> None:
    with pytest.raises(MalformedError, match="HeartbeatResponse v4"):
        decode_response(HeartbeatResponse, bytes.fromhex(text), 4)


def test_a_client_id_that_no_header_can_carry() -> None:
    with pytest.raises(EncodeError, match="client id of 32768 bytes"):
        encode_request(ApiVersionsRequest(), 0, 1, "c" * 32768)
    with pytest.raises(EncodeError, match=r"client id: .*surrogates not allowed"):
        encode_request(ApiVersionsRequest(), 0, 1, "\ud800")


def test_classes_by_api_key() -> None:
    assert request_class(12) is HeartbeatRequest
    assert response_class(12) is HeartbeatResponse
    assert request_class(17) is SaslHandshakeRequest
    assert request_class(999) is None
    assert response_class(-1) is None
    assert (
        REQUESTS.keys() == RESPONSES.keys() == {cls.API_KEY for cls in MESSAGES} - {OffsetCommitKey.API_KEY}
    )
    for key, cls in REQUESTS.items():
        answer = RESPONSES[key]
        assert (cls.MIN_VERSION, cls.MAX_VERSION) == (answer.MIN_VERSION, answer.MAX_VERSION)
        assert cls.FLEXIBLE_VERSION == answer.FLEXIBLE_VERSION
        assert answer.__name__ == cls.__name__.replace("Request", "Response")


# The versions that a node may advertise, and the first flexible one: API key -> (min, max, flexible).
VERSIONS = {
    0: (3, 13, 9), 1: (4, 18, 12), 2: (1, 7, 6), 3: (0, 12, 9), 8: (2, 10, 8), 9: (1, 10, 6), 10: (0, 4, 3),
    11: (0, 9, 6), 12: (0, 4, 4), 13: (0, 5, 4), 14: (0, 5, 4), 15: (0, 6, 5), 16: (0, 5, 3),
    17: (0, 1, None), 18: (0, 3, 3), 19: (2, 7, 5), 20: (1, 6, 4), 21: (0, 2, 2), 22: (0, 5, 2),
    23: (2, 4, 4), 24: (0, 3, 3),
    25: (0, 4, 3), 26: (0, 5, 3), 28: (0, 5, 3), 29: (1, 3, 2), 30: (1, 3, 2), 31: (1, 3, 2),
    32: (1, 4, 4), 33: (0, 2, 2), 36: (0, 2, 2), 37: (0, 3, 2),
    42: (0, 2, 2), 44: (0, 1, 1), 47: (0, 0, None), 48: (0, 1, 1), 49: (0, 1, 1),
    50: (0, 0, 0), 51: (0, 0, 0),
    60: (0, 1, 0), 61: (0, 0, 0), 65: (0, 0, 0),
    66: (0, 0, 0), 68: (0, 1, 0), 69: (0, 1, 0), 71: (0, 0, 0), 72: (0, 0, 0),
    90: (0, 1, 0),  # asked of other brokers alone
}  # fmt: skip


def test_versions_are_the_ones_decided_on() -> None:
    declared = {}
    for key, cls in REQUESTS.items():
        flexible = cls.FLEXIBLE_VERSION if cls.FLEXIBLE_VERSION <= cls.MAX_VERSION else None
        declared[key] = (cls.MIN_VERSION, cls.MAX_VERSION, flexible)
    assert declared == VERSIONS
