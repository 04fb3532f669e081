"""Client telemetry (KIP-714): the metrics that clients are to tell, and those that they tell."""

from __future__ import annotations

from ringleader.protocol.fields import array, field
from ringleader.protocol.schema import ZERO_UUID, Message, message


@message(key=71, versions=(0, 0), flexible=0, kind="request")
class GetTelemetrySubscriptionsRequest(Message):
    """Ask which metrics are wanted. A client that has no instance id yet sends `ZERO_UUID`.

    GetTelemetrySubscriptions, API 71: v0, flexible (KIP-714).
    """

    client_instance_id: bytes = field("uuid", default=ZERO_UUID)


@message(key=71, versions=(0, 0), flexible=0, kind="response")
class GetTelemetrySubscriptionsResponse(Message):
    """The metrics that are wanted, by prefixes of their names: none: no metrics; "*": all.

    The instance id, with which the client pushes, is `ZERO_UUID` with an error. `accepted_compression_types`:
    codec numbers of record batches, the preferred one first. `delta_temporality`: counters are told as what
    was added since the push before (API 71: v0, flexible; KIP-714).
    """

    throttle_time_ms: int = field("int32", default=0)
    error_code: int = field("int16", default=0)
    client_instance_id: bytes = field("uuid", default=ZERO_UUID)
    subscription_id: int = field("int32", default=0)
    accepted_compression_types: list[int] = array("int8", factory=list)
    push_interval_ms: int = field("int32", default=0)
    telemetry_max_bytes: int = field("int32", default=0)
    delta_temporality: bool = field("bool", default=False)
    requested_metrics: list[str] = array("string", factory=list)


@message(key=72, versions=(0, 0), flexible=0, kind="request")
class PushTelemetryRequest(Message):
    """Tell metrics: `metrics` is a MetricsData of OpenTelemetry (see `otlp`), compressed.

    `terminating`: the client ends, and this is its last push (PushTelemetry, API 72: v0, flexible; KIP-714).
    """

    client_instance_id: bytes = field("uuid", default=ZERO_UUID)
    subscription_id: int = field("int32", default=0)
    terminating: bool = field("bool", default=False)
    compression_type: int = field("int8", default=0)
    metrics: bytes = field("bytes", default=b"")


@message(key=72, versions=(0, 0), flexible=0, kind="response")
class PushTelemetryResponse(Message):
    """Whether a push was accepted (PushTelemetry, API 72: v0, flexible; KIP-714)."""

    throttle_time_ms: int = field("int32", default=0)
    error_code: int = field("int16", default=0)
