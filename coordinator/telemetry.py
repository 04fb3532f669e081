"""Client telemetry (KIP-714): what clients tell of themselves, kept in memory, the newest values of each.

Source: `ClientMetricsManager` of Apache Kafka 4.3, whose checks these are, in its order. Kafka hands what is
pushed to a plugin, and advertises the two APIs only with one; here this is the plugin, and one subscription
holds for all clients. No clock, no randomness: a caller gives both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from crc32c import crc32c

from ringleader.coordinator.journal.entries import ClientReport, ReportEntry
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
"""An instance that is silent for this number of push intervals, and for `LEAST_KEPT_MS`, is forgotten."""
COMPRESSIONS: Final = (Compression.ZSTD, Compression.LZ4, Compression.GZIP, Compression.SNAPPY)
"""The preferred one first. None is accepted as well, as in Kafka."""
RESERVED: Final = (ZERO_UUID, bytes(15) + b"\1")
JOURNAL_EVERY_MS: Final = 600_000
"""Least interval at which a member that reports nothing new is in the journal."""
NEWS: Final = ("poll_interval_max_seconds", "callback_max_seconds")
NEWS_RATIO: Final = 2.0
NEWS_LEAST_S: Final = 1.0
"""A time counts as new if it is this many times as long as in the journal, and at least this long."""
LATER_REPORTS: Final = 3
"""Number of reports journalled after a client's member has left: a gap between polls is reported only
when it is over."""
DEPARTED_MAX: Final = 8
"""Members of one client whose departure later reports may still explain."""
_OPEN_TO_GET: Final = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
"""After these errors a client may ask for its subscription at once."""


class Measure(NamedTuple):
    """A metric that is kept."""

    name: str
    """Of the metric, as clients report it."""
    per: float
    """Units of the reported number in one of ours: 1,000 where clients report milliseconds and we seconds."""
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
    "heartbeat_latency_max_seconds": Measure(
        f"{_CONSUMER}.coordinator.heartbeat.response.time.max", 1_000, "Longest answer to a heartbeat"
    ),
    "poll_interval_limit_seconds": Measure(
        "ringleader.poll.interval.limit", 1, "Its max_poll_interval_ms (this package's clients)"
    ),
    "callback_max_seconds": Measure(
        "ringleader.callback.time.max", 1, "Longest callback of the application (this package's clients)"
    ),
}
"""By our name, with its unit."""
LEFT_AGO: Final = "ringleader.left.seconds.ago"
"""How long ago this package's client gave up a membership by itself."""
_LEFT_AGO_MAX_S: Final = 86_400
_WANTED: Final = {one.name: key for key, one in MEASURES.items()}
REQUESTED: Final = sorted((*_WANTED, LEFT_AGO))
"""The subscription: these names, and those that begin so."""


ERROR_ATTRIBUTE: Final = "ringleader_error"
LEFT_ID_ATTRIBUTE: Final = "ringleader_left_member_id"
LEFT_REASON_ATTRIBUTE: Final = "ringleader_left_reason"
"""The words that this package's clients tell."""
MEMBER_ATTRIBUTES: Final = ("group_member_id", "member_id")
"""The member id, as KIP-714 and Java's clients call it, and librdkafka. Both say `group_id`."""


@dataclass(slots=True)
class _Instance:
    subscription_id: int
    seen_ms: int
    got_ms: int | None = None
    """Its subscription, the last time."""
    pushed_ms: int | None = None
    terminating: bool = False
    error: int = ErrorCode.NONE
    report: ClientReport | None = None
    number: int = 0
    """Of that report; see `Telemetry.since`."""
    before: ClientReport | None = None
    """Its last report as another member than now."""
    departed: dict[tuple[str, str], int] = field(default_factory=dict)
    """Group and id of its former members -> how many more reports are of interest."""
    written: ClientReport | None = None
    """The report that stands in the journal."""


class Caller(NamedTuple):
    """The client of a request."""

    client_id: str
    client_host: str
    may_read: Callable[[str], bool]
    """Whether it may be a member of this group: what it reports of another one is dropped."""


class Telemetry:
    """All client instances of a node. Times: `now_ms` of a monotonic clock, `at_ms` Unix time."""

    def __init__(self, interval_ms: int, max_bytes: int) -> None:
        self._interval_ms = interval_ms
        self._max_bytes = max_bytes
        self._kept_ms = max(LEAST_KEPT_MS, KEPT_INTERVALS * interval_ms)
        self._instances: dict[bytes, _Instance] = {}
        """By client instance id, the one that was silent for longest first."""
        self._members: dict[tuple[str, str], bytes] = {}
        """Group and member id -> the instance that last reported as it."""
        self._number = 0
        """Of the newest report."""
        self.pushes: Counter[int] = Counter()
        """By error code."""
        self.on_report: Callable[[ReportEntry], None] | None = None
        """Gets what is worth a record of the journal."""

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
        """Keep the metrics of a push."""
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
            found = read_metrics(inflated, REQUESTED)
        except MalformedError as error:
            raise KafkaError(ErrorCode.INVALID_RECORD, str(error)) from None
        report = _report(found, caller, request, at_ms)
        if report is None:
            return
        self._remember(request.client_instance_id, instance, report)
        for (group_id, member_id), left in list(instance.departed.items()):
            if group_id == report.group_id:
                self._say(ReportEntry(report, member_id))
                instance.departed[group_id, member_id] = left - 1
                if left == 1:
                    del instance.departed[group_id, member_id]
        if _is_news(report, instance.written):
            instance.written = report
            self._say(ReportEntry(report))

    def _say(self, entry: ReportEntry) -> None:
        if self.on_report is not None:
            self.on_report(entry)

    def _remember(self, instance_id: bytes, instance: _Instance, report: ClientReport) -> None:
        last = instance.report
        if last is not None and _member(last) != _member(report):
            self._forget_member(instance_id, instance.before)
            instance.before = last
        instance.report = report
        # Numbers of the process before this one were lower: they begin with the time.
        self._number = instance.number = max(self._number + 1, report.at_ms)
        self._members[_member(report)] = instance_id

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
        found = self._instances.pop(instance_id)
        self._forget_member(instance_id, found.report)
        self._forget_member(instance_id, found.before)

    def _forget_member(self, instance_id: bytes, report: ClientReport | None) -> None:
        if report is not None and self._members.get(_member(report)) == instance_id:
            del self._members[_member(report)]

    # ---- what is known ----

    def count(self, now_ms: int) -> int:
        """Client instances that are remembered."""
        self._expire(now_ms)
        return len(self._instances)

    def of_member(self, group_id: str, member_id: str, now_ms: int) -> ClientReport | None:
        """The last report of a client as this member; None: none, or too long ago."""
        self._expire(now_ms)
        instance_id = self._members.get((group_id, member_id))
        return None if instance_id is None else _as(self._instances[instance_id], (group_id, member_id))

    def of_groups(self, group_ids: Collection[str], now_ms: int) -> Iterator[ClientReport]:
        """The last reports of clients as members of these groups."""
        self._expire(now_ms)
        for key, instance_id in self._members.items():
            report = self._instances[instance_id].report
            if key[0] in group_ids and report is not None and _member(report) == key:
                yield report

    def since(self, number: int, most: int, now_ms: int) -> tuple[list[ClientReport], int, bool]:
        """The reports of clients that came after the one with that number (0: all that are known), the oldest
        first, at most `most`; the number of the last of them; and whether there are more."""
        self._expire(now_ms)
        newer = sorted(
            (one for one in self._instances.values() if one.report is not None and one.number > number),
            key=lambda one: one.number,
        )
        some = newer[:most]
        reports = [one.report for one in some if one.report is not None]
        return reports, some[-1].number if some else number, len(newer) > most

    def departed(self, group_id: str, member_ids: Iterable[str]) -> dict[str, ClientReport]:
        """The last reports of the clients of these members, by member id. They have left the group: the next
        reports of their clients are for the journal (`on_report`)."""
        found = {}
        for member_id in member_ids:
            instance_id = self._members.get((group_id, member_id))
            if instance_id is None:
                continue
            instance = self._instances[instance_id]
            if (report := _as(instance, (group_id, member_id))) is not None:
                found[member_id] = report
            if not instance.terminating:
                instance.departed[group_id, member_id] = LATER_REPORTS
                if len(instance.departed) > DEPARTED_MAX:
                    del instance.departed[next(iter(instance.departed))]
        return found


def _as(instance: _Instance, member: tuple[str, str]) -> ClientReport | None:
    """Its last report as this member."""
    both = (instance.report, instance.before)
    return next((one for one in both if one is not None and _member(one) == member), None)


def _member(report: ClientReport) -> tuple[str, str]:
    return report.group_id, report.member_id


def _is_news(report: ClientReport, written: ClientReport | None) -> bool:
    """Whether this is worth a record, after that."""
    if written is None or _member(written) != _member(report) or report.terminating:
        return True
    if (report.error, report.left_id) != (written.error, written.left_id):
        return True
    if report.at_ms - written.at_ms >= JOURNAL_EVERY_MS:
        return True
    return any(
        report.values.get(name, 0.0) >= max(NEWS_LEAST_S, NEWS_RATIO * written.values.get(name, 0.0))
        for name in NEWS
    )


def _report(found: Metrics, caller: Caller, request: PushTelemetryRequest, at_ms: int) -> ClientReport | None:
    """None: of no member, or of a group that is not the caller's business."""
    group_id = found.attributes.get("group_id", "")
    member_id = next(filter(None, map(found.attributes.get, MEMBER_ATTRIBUTES)), "")
    values = {
        _WANTED[name]: value / MEASURES[_WANTED[name]].per
        for name, value in found.values.items()
        if value >= 0 and name in _WANTED
    }
    if not (group_id and member_id and values and caller.may_read(group_id)):
        return None
    of = found.attributes
    left_ago_s = found.values.get(LEFT_AGO, -1.0)
    has_left = 0 <= left_ago_s <= _LEFT_AGO_MAX_S
    return ClientReport(
        group_id,
        member_id,
        caller.client_id,
        caller.client_host,
        at_ms,
        values,
        request.client_instance_id.hex(),
        request.terminating,
        of.get(ERROR_ATTRIBUTE, ""),
        of.get(LEFT_ID_ATTRIBUTE, "") if has_left else "",
        of.get(LEFT_REASON_ATTRIBUTE, "") if has_left else "",
        at_ms - int(left_ago_s * 1000) if has_left else -1,
    )


def subscription_id(instance_id: bytes, interval_ms: int) -> int:
    """As Kafka makes it: a checksum of the subscription, mixed with the instance id, as an int32."""
    checksum = crc32c(f"[{', '.join(REQUESTED)}]{interval_ms}".encode())
    for start in range(0, len(instance_id), 4):
        checksum ^= int.from_bytes(instance_id[start : start + 4], "big")
    return checksum - (1 << 32) if checksum >> 31 else checksum
