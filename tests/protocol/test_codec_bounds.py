"""Messages that are right, but long: what decoding one may cost is bounded; long answers come in pieces."""

from __future__ import annotations

import tracemalloc

import pytest

from ringleader.protocol.codec import decoder, pieces_encoder
from ringleader.protocol.errors import MalformedError
from ringleader.protocol.messages import (
    ApiVersionsRequest,
    ConsumerGroupHeartbeatResponse,
    ConsumerGroupHeartbeatResponseLeaderTask,
    ConsumerGroupHeartbeatResponseTaskMember,
    HeartbeatResponse,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
)
from ringleader.protocol.wire import STRING_MAX, write_uvarint

MANY = 100_000


@pytest.mark.parametrize(("version", "element"), [(8, b"\1\1\0"), (6, b"\1\1\0"), (5, bytes(6))])
def test_a_request_that_costs_too_much_is_refused_before_it_is_decoded(version: int, element: bytes) -> None:
    """Topics without name and partitions: a few bytes each on the wire, a hundred times that as objects."""
    request = OffsetFetchRequest(group_id="g", topics=[])
    if version == 8:
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=[])])
    body = request.encode(version)
    at = body.index(b"g") + 1
    count = write_uvarint(MANY + 1) if version >= 6 else MANY.to_bytes(4, "big")
    body = body[:at] + count + element * MANY + body[at + len(count) :] + bytes(4)
    decode = decoder(OffsetFetchRequest, version)
    message, _ = decode(body, 0)
    assert len((message.groups[0] if version == 8 else message).topics) == MANY
    assert decode(body, 0, 24 * (MANY + 2))[0] == message
    tracemalloc.start()
    try:
        with pytest.raises(MalformedError, match="more elements"):
            decode(body, 0, 24 * MANY - 1)
        assert tracemalloc.get_traced_memory()[1] < len(body)
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("version", [6, 7])
def test_no_string_is_longer_than_the_older_versions_can_carry(version: int) -> None:
    """KIP-482 gave compact strings longer lengths; Kafka refuses them all the same."""
    decode = decoder(OffsetFetchRequest, version)
    longest = OffsetFetchRequest(group_id="g" * STRING_MAX, topics=None)
    assert decode(longest.encode(version), 0)[0] == longest
    with pytest.raises(MalformedError, match=r"group_id.*32768, 32767 is the most"):
        decode(OffsetFetchRequest(group_id="g" * (STRING_MAX + 1), topics=None).encode(version), 0)


def test_tags_that_nobody_knows_are_counted_too() -> None:
    body = ApiVersionsRequest("name", "1").encode(3)
    tagged = body[:-1] + b"\x64" + b"\1\0" * 100
    assert decoder(ApiVersionsRequest, 3)(tagged, 0, 24 * 100)[0].client_software_name == "name"
    with pytest.raises(MalformedError):
        decoder(ApiVersionsRequest, 3)(tagged, 0, 24 * 99)
    with pytest.raises(MalformedError):
        decoder(ApiVersionsRequest, 3)(body[:-1] + b"\x80\x01" + b"\1\0" * 128, 0)


def test_a_long_answer_comes_in_pieces_that_make_the_same_bytes() -> None:
    topics = [
        MetadataResponseTopic(name=f"t{number}", partitions=[MetadataResponsePartition()] * 10)
        for number in range(1_500)
    ]
    answer = MetadataResponse(topics=topics)
    for version in range(MetadataResponse.MIN_VERSION, MetadataResponse.MAX_VERSION + 1):
        pieces = list(pieces_encoder(MetadataResponse, version)(answer))
        assert b"".join(pieces) == answer.encode(version)
        assert len(pieces) > 10
    assert len(list(pieces_encoder(HeartbeatResponse, 4)(HeartbeatResponse()))) == 1


def test_a_long_tagged_field_gives_way_although_nothing_of_it_can_leave_yet() -> None:
    members = [ConsumerGroupHeartbeatResponseTaskMember(f"m{number}") for number in range(5_000)]
    answer = ConsumerGroupHeartbeatResponse(
        leader_task=ConsumerGroupHeartbeatResponseLeaderTask(members=members)
    )
    pieces = list(pieces_encoder(ConsumerGroupHeartbeatResponse, 1)(answer))
    assert b"".join(pieces) == answer.encode(1)
    assert len(pieces) > 5
    assert ConsumerGroupHeartbeatResponse.decode(answer.encode(1), 1) == answer
