"""Messages with records may be read from any buffer, and their records are then a part of it."""

from __future__ import annotations

from typing import cast

from ringleader.protocol.codec import decoder
from ringleader.protocol.messages import (
    FetchResponse,
    FetchResponseFetchableTopicResponse,
    FetchResponsePartitionData,
)


def test_records_of_a_view_are_no_copy() -> None:
    data = FetchResponsePartitionData(partition_index=1, records=b"records")
    topic = FetchResponseFetchableTopicResponse(topic="tøpic", partitions=[data])
    room = bytearray(FetchResponse(responses=[topic]).encode(12))
    message, _ = decoder(FetchResponse, 12)(cast(bytes, memoryview(room)), 0)
    assert message.responses[0].topic == "tøpic"
    found = message.responses[0].partitions[0].records
    assert found == b"records"
    room[room.index(b"records")] = ord("R")
    assert found == b"Records"
