"""Byte equality with two independent codecs, kio and kafka-python, for every message and version they know.

kio knows every request and response declared here, kafka-python all but ConsumerGroupHeartbeat,
ConsumerGroupDescribe, telemetry and DescribeShareGroupOffsets; the persisted records are not in either.
"""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from ringleader.protocol.messages import (
    ApiVersionsResponse,
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    DescribeShareGroupOffsetsRequest,
    GetTelemetrySubscriptionsRequest,
    PushTelemetryRequest,
)
from ringleader.protocol.schema import Message
from tests.support import peer_kafka_python as kp
from tests.support import peer_kio as kio
from tests.support.wire_values import PAIRS, few, in_every_version, values

API_PAIRS = [(cls, version) for cls, version in PAIRS if cls.KIND in ("request", "response")]
UNKNOWN_TO_KAFKA_PYTHON = {
    one.API_KEY
    for one in (
        *(ConsumerGroupHeartbeatRequest, ConsumerGroupDescribeRequest),
        DescribeShareGroupOffsetsRequest,
        *(GetTelemetrySubscriptionsRequest, PushTelemetryRequest),
    )
}
KAFKA_PYTHON_PAIRS = [pair for pair in API_PAIRS if pair[0].API_KEY not in UNKNOWN_TO_KAFKA_PYTHON]
PAGE = Path(__file__).parents[2] / "docs" / "protocol.md"


@in_every_version(API_PAIRS)
@given(data=st.data())
@few
def test_kio_writes_and_reads_the_same_bytes(cls: type[Message], version: int, data: st.DataObject) -> None:
    theirs = kio.kio_class(cls, version)
    ours = data.draw(values(cls, version, kio.special_values(cls, theirs, version)))
    same = kio.to_kio(ours, theirs, version)
    body = ours.encode(version)
    assert kio.kio_bytes(same) == body
    assert kio.kio_read(theirs, body) == (same, len(body))
    assert cls.decode(kio.kio_bytes(same), version) == ours


@in_every_version(KAFKA_PYTHON_PAIRS)
@given(data=st.data())
@few
def test_kafka_python_writes_and_reads_the_same_bytes(
    cls: type[Message], version: int, data: st.DataObject
) -> None:
    theirs = kp.kafka_python_class(cls, version)
    ours = data.draw(values(cls, version))
    body = ours.encode(version)
    written = bytes(kp.to_kafka_python(ours, theirs, version).encode(version))
    assert written == body
    assert cls.decode(written, version) == ours
    if isinstance(ours, ApiVersionsResponse) and ours.error_code:
        return  # it reads every refusal as version 0, whatever version was set
    assert kp.same_values(theirs.decode(body, version=version), kp.plain(ours, version))


def test_the_page_of_the_protocol_counts_the_pairs() -> None:
    page = PAGE.read_text()
    assert f"all {len(API_PAIRS)} (request or response, version) pairs" in page
    assert f"all {len(PAIRS)} pairs" in page
