"""Client telemetry (KIP-714): what clients tell of themselves, kept in memory, the newest values of each.

Source: `ClientMetricsManager` of Apache Kafka 4.3, whose checks these are, in its order. Kafka hands what is
pushed to a plugin, and advertises the two APIs only with one; here this is the plugin, and one subscription
holds for all clients. No clock, no randomness: a caller gives both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from crc32c import crc32c

from ringleader.protocol.compression import Compression, decompress
from ringleader.protocol.errors import ErrorCode, KafkaError, MalformedError
from ringleader.protocol.messages import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
    PushTelemetryResponse,
)
from ringleader.protocol.otlp import Metrics, read_metrics
from ringleader.protocol.schema import ZERO_UUID

INSTANCES_MAX: Final = 16_384
"""Client instances that are remembered, as in Kafka: the one that was silent for longest gives way. Each
takes 3 kB at most."""
LEAST_KEPT_MS: Final = 60_000
KEPT_INTERVALS: Final = 3
"""An instance that is silent for so many push intervals, and for `LEAST_KEPT_MS`, is forgotten."""
COMPRESSIONS: Final = (Compression.ZSTD, Compression.LZ4, Compression.GZIP, Compression.SNAPPY)
"""The preferred one first. None is accepted as well, as in Kafka."""
RESERVED: Final = (ZERO_UUID, bytes(15) + b"\1")
_OPEN_TO_GET: Final = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
"""After these errors a client may ask for its subscription at once."""


class Measure(NamedTuple):
    """A metric that is kept."""

    name: str
    """Of the metric, as clients tell it."""
    per: float
    """Units of the told number in one of ours: 1,000 where clients tell milliseconds, and we seconds."""
    text: str


_CONSUMER = "org.apache.kafka.consumer"
MEASURES: Final = {
    "poll_interval_max_seconds": Measure(
        f"{_CONSUMER}.time.between.poll.max", 1_000, "Longest time between two calls of poll()"
    ),
    "last_poll_ago_seconds": Measure(
        f"{_CONSUMER}.last.poll.seconds.ago", 1, "Time since the last call of poll()"
    ),
    "poll_idle_ratio": Measure(
        f"{_CONSUMER}.poll.idle.ratio.avg", 1, "Share of time in poll(); the rest is the application's"
    ),
    "rebalance_latency_max_seconds": Measure(
        f"{_CONSUMER}.coordinator.rebalance.latency.max", 1_000, "Longest rebalance, as the client saw it"
    ),
    "last_heartbeat_ago_seconds": Measure(
        f"{_CONSUMER}.coordinator.last.heartbeat.seconds.ago", 1, "Time since the last heartbeat"
    ),
    "fetch_latency_max_seconds": Measure(
        f"{_CONSUMER}.fetch.manager.fetch.latency.max", 1_000, "Longest request for records"
    ),
}
"""By our name, with its unit."""
_WANTED: Final = {one.name: key for key, one in MEASURES.items()}
REQUESTED: Final = sorted(_WANTED)
"""The subscription: these names, and those that begin so."""


MEMBER_ATTRIBUTES: Final = ("group_member_id", "member_id")
"""The member id, as KIP-714 and Java's clients call it, and librdkafka. Both say `group_id`."""


class Told(NamedTuple):
    """The values that a client told last as a member of a group."""

    group_id: str
    member_id: str
    client_id: str
    client_host: str
    """Java's form, `/127.0.0.1`."""
    at_ms: int
    """Unix time."""
    values: dict[str, float]
    """By the names of `MEASURES`."""


@dataclass(slots=True)
class _Instance:
    subscription_id: int
    seen_ms: int
    got_ms: int | None = None
    """Its subscription, the last time."""
    pushed_ms: int | None = None
    terminating: bool = False
    error: int = ErrorCode.NONE
    told: Told | None = None


class Caller(NamedTuple):
    """The client of a request."""

    client_id: str
    client_host: str
    may_read: Callable[[str], bool]
    """Whether it may be a member of this group: what it tells of another one is dropped."""


class Telemetry:
    """All client instances of a node. Times: `now_ms` of a monotonic clock, `at_ms` Unix time."""

    def __init__(self, interval_ms: int, max_bytes: int) -> None:
        self._interval_ms = interval_ms
        self._max_bytes = max_bytes
        self._kept_ms = max(LEAST_KEPT_MS, KEPT_INTERVALS * interval_ms)
        self._instances: dict[bytes, _Instance] = {}
        """By client instance id, the one that was silent for longest first."""
        self._members: dict[tuple[str, str], bytes] = {}
        """Group and member id -> the instance that told of it last."""
        self.pushes: Counter[int] = Counter()
        """By error code."""

    # ---- requests ----

    def subscription(
        self, request: GetTelemetrySubscriptionsRequest, new_id: Callable[[], bytes], now_ms: int
    ) -> GetTelemetrySubscriptionsResponse:
        """`new_id`: gives 16 random bytes."""
        instance_id = request.client_instance_id
        if instance_id == ZERO_UUID:
            instance_id = next(one for one in iter(new_id, None) if self._is_free(one))
        instance = self._instance(instance_id, now_ms)
        heard = [one for one in (instance.got_ms, instance.pushed_ms) if one is not None]
        if not heard or now_ms - max(heard) >= self._interval_ms:
            instance.got_ms = now_ms
        elif instance.error not in _OPEN_TO_GET:
            return GetTelemetrySubscriptionsResponse(error_code=ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        instance.error = ErrorCode.NONE
        return GetTelemetrySubscriptionsResponse(
            client_instance_id=instance_id,
            subscription_id=instance.subscription_id,
            accepted_compression_types=list(COMPRESSIONS),
            push_interval_ms=self._interval_ms,
            telemetry_max_bytes=self._max_bytes,
            delta_temporality=True,
            requested_metrics=list(REQUESTED),
        )

    def push(
        self, request: PushTelemetryRequest, caller: Caller, now_ms: int, at_ms: int
    ) -> PushTelemetryResponse:
        """Keep what is told."""
        code: int = ErrorCode.INVALID_REQUEST
        if request.client_instance_id not in RESERVED:
            instance = self._instance(request.client_instance_id, now_ms)
            try:
                self._check(request, instance, now_ms)
                if request.metrics:
                    self._keep(request, instance, caller, at_ms)
                code = ErrorCode.NONE
            except KafkaError as error:
                code = error.code
            instance.error = code
            instance.terminating = request.terminating
        self.pushes[code] += 1
        return PushTelemetryResponse(error_code=code)

    def _check(self, request: PushTelemetryRequest, instance: _Instance, now_ms: int) -> None:
        if instance.terminating:
            raise KafkaError(ErrorCode.INVALID_REQUEST)
        got_ms, pushed_ms = instance.got_ms, instance.pushed_ms
        # A client spreads its pushes: the first one after it got its subscription may come at any time.
        fresh = pushed_ms is None or (got_ms is not None and got_ms > pushed_ms)
        if fresh or (pushed_ms is not None and now_ms - pushed_ms >= self._interval_ms):
            instance.pushed_ms = now_ms
        elif not request.terminating:
            raise KafkaError(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
        if request.subscription_id != instance.subscription_id:
            raise KafkaError(ErrorCode.UNKNOWN_SUBSCRIPTION_ID)
        if request.compression_type not in tuple(Compression):
            raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        if len(request.metrics) > self._max_bytes:
            raise KafkaError(ErrorCode.TELEMETRY_TOO_LARGE)

    def _keep(self, request: PushTelemetryRequest, instance: _Instance, caller: Caller, at_ms: int) -> None:
        try:
            inflated = decompress(request.compression_type, request.metrics, self._max_bytes)
            found = read_metrics(inflated, _WANTED)
        except MalformedError as error:
            raise KafkaError(ErrorCode.INVALID_RECORD, str(error)) from None
        told = _told(found, caller, at_ms)
        if told is None:
            return
        self._forget_member(request.client_instance_id, instance)
        instance.told = told
        self._members[told.group_id, told.member_id] = request.client_instance_id

    # ---- instances ----

    def _is_free(self, instance_id: bytes) -> bool:
        return instance_id not in RESERVED and instance_id not in self._instances

    def _instance(self, instance_id: bytes, now_ms: int) -> _Instance:
        """The instance, a new one if it is not known, as the last one that was heard of."""
        self._expire(now_ms)
        found = self._instances.pop(instance_id, None)
        if found is None:
            while len(self._instances) >= INSTANCES_MAX:
                self._forget(next(iter(self._instances)))
            found = _Instance(subscription_id(instance_id, self._interval_ms), now_ms)
        found.seen_ms = now_ms
        self._instances[instance_id] = found
        return found

    def _expire(self, now_ms: int) -> None:
        while self._instances:
            oldest = next(iter(self._instances))
            if now_ms - self._instances[oldest].seen_ms < self._kept_ms:
                return
            self._forget(oldest)

    def _forget(self, instance_id: bytes) -> None:
        self._forget_member(instance_id, self._instances.pop(instance_id))

    def _forget_member(self, instance_id: bytes, instance: _Instance) -> None:
        told = instance.told
        if told is not None and self._members.get((told.group_id, told.member_id)) == instance_id:
            del self._members[told.group_id, told.member_id]

    # ---- what is known ----

    def count(self, now_ms: int) -> int:
        """Client instances that are remembered."""
        self._expire(now_ms)
        return len(self._instances)

    def of_member(self, group_id: str, member_id: str, now_ms: int) -> Told | None:
        """The values that a client told last as this member; None: nothing, or too long ago."""
        self._expire(now_ms)
        instance_id = self._members.get((group_id, member_id))
        return None if instance_id is None else self._instances[instance_id].told

    def of_groups(self, group_ids: Collection[str], now_ms: int) -> Iterator[Told]:
        """The values that clients told last as members of these groups."""
        self._expire(now_ms)
        for (group_id, _), instance_id in self._members.items():
            told = self._instances[instance_id].told
            if group_id in group_ids and told is not None:
                yield told


def _told(found: Metrics, caller: Caller, at_ms: int) -> Told | None:
    """None: of no member, or of a group that is not the caller's business."""
    group_id = found.attributes.get("group_id", "")
    member_id = next(filter(None, map(found.attributes.get, MEMBER_ATTRIBUTES)), "")
    values = {
        _WANTED[name]: value / MEASURES[_WANTED[name]].per
        for name, value in found.values.items()
        if value >= 0
    }
    if not (group_id and member_id and values and caller.may_read(group_id)):
        return None
    return Told(group_id, member_id, caller.client_id, caller.client_host, at_ms, values)


def subscription_id(instance_id: bytes, interval_ms: int) -> int:
    """As Kafka makes it: a checksum of the subscription, mixed with the instance id, as an int32."""
    checksum = crc32c(f"[{', '.join(REQUESTED)}]{interval_ms}".encode())
    for start in range(0, len(instance_id), 4):
        checksum ^= int.from_bytes(instance_id[start : start + 4], "big")
    return checksum - (1 << 32) if checksum >> 31 else checksum
