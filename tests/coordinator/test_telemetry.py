"""Client telemetry: the checks of Apache Kafka 4.3's ClientMetricsManager, in its order, and what is kept."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace
from typing import Any

import pytest

from ringleader.coordinator import telemetry
from ringleader.coordinator.journal.entries import ReportEntry
from ringleader.coordinator.telemetry import REQUESTED, Caller, Telemetry, subscription_id
from ringleader.protocol.compression import Compression, compress
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import GetTelemetrySubscriptionsRequest, PushTelemetryRequest
from ringleader.protocol.schema import ZERO_UUID
from tests.support.metrics_data import metrics_data, nested

INTERVAL_MS = 1_000
MAX_BYTES = 10_000
AN_ID = b"an-instance-id-1"
POLLED = "org.apache.kafka.consumer.time.between.poll.max"
IDLE = "org.apache.kafka.consumer.poll.idle.ratio.avg"
MEMBER = {"group_id": "billing", "group_member_id": "m-1"}
CALLER = Caller("client", "/127.0.0.1", lambda group_id: True)
AT_MS = 1_700_000_000_000


class Client:
    """One that does what a test says, at its time."""

    def __init__(self, of: Telemetry | None = None, instance_id: bytes = AN_ID) -> None:
        self.telemetry = of or Telemetry(INTERVAL_MS, MAX_BYTES)
        self.now_ms = 0
        self.numbers = itertools.count(1)
        self.request = PushTelemetryRequest(instance_id, subscription_id(instance_id, INTERVAL_MS))

    def subscribe(self, instance_id: bytes = AN_ID) -> int:
        """For its subscription: the error code."""
        request = GetTelemetrySubscriptionsRequest(instance_id)
        return self.telemetry.subscription(request, self.new_id, self.now_ms).error_code

    def new_id(self) -> bytes:
        return next(self.numbers).to_bytes(16, "big")

    def pushes(self, caller: Caller = CALLER, /, **changed: Any) -> int:
        """The error code."""
        request = replace(self.request, **changed)
        return self.telemetry.push(request, caller, self.now_ms, AT_MS + self.now_ms).error_code

    def tells(self, values: dict[str, float], member: dict[str, str] | None = None) -> int:
        """The error code."""
        return self.pushes(metrics=metrics_data(MEMBER if member is None else member, values))


def test_a_client_gets_an_id_that_is_nobodys_and_its_subscription() -> None:
    client = Client()
    assert client.subscribe((2).to_bytes(16, "big")) == 0
    answer = client.telemetry.subscription(GetTelemetrySubscriptionsRequest(), client.new_id, 0)
    assert answer.client_instance_id == (3).to_bytes(16, "big"), "1 is reserved, 2 somebody's"
    assert answer.subscription_id == subscription_id(answer.client_instance_id, INTERVAL_MS)
    assert (answer.push_interval_ms, answer.telemetry_max_bytes) == (INTERVAL_MS, MAX_BYTES)
    assert answer.accepted_compression_types == [4, 3, 1, 2]
    assert answer.requested_metrics == REQUESTED
    assert answer.delta_temporality


def test_the_subscription_id_is_of_the_subscription_and_the_client() -> None:
    ids = {subscription_id(one, interval) for one in (AN_ID, bytes(16)) for interval in (1, 2)}
    assert len(ids) == 4
    rng = random.Random(1)
    assert all(-(2**31) <= subscription_id(rng.randbytes(16), 1) < 2**31 for _ in range(100))


@pytest.mark.parametrize("instance_id", [ZERO_UUID, bytes(15) + b"\1"])
def test_a_push_of_nobody_is_invalid_before_all_else(instance_id: bytes) -> None:
    client = Client()
    assert client.pushes(client_instance_id=instance_id, compression_type=9) == ErrorCode.INVALID_REQUEST
    assert client.telemetry.count(0) == 0


def test_checks_come_in_kafkas_order() -> None:
    """Each push has everything wrong that comes after what it is refused for."""
    client = Client()
    wrong: dict[str, Any] = {"subscription_id": 1, "compression_type": 9, "metrics": bytes(MAX_BYTES + 1)}
    assert client.pushes(terminating=True, **wrong) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert client.pushes(**wrong) == ErrorCode.INVALID_REQUEST, "it had ended"
    assert client.pushes(**wrong) == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    client.now_ms += INTERVAL_MS
    assert client.pushes(**wrong) == ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    del wrong["subscription_id"]
    client.now_ms += INTERVAL_MS
    assert client.pushes(**wrong) == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    del wrong["compression_type"]
    client.now_ms += INTERVAL_MS
    assert client.pushes(**wrong) == ErrorCode.TELEMETRY_TOO_LARGE
    client.now_ms += INTERVAL_MS
    assert client.pushes(metrics=bytes(MAX_BYTES)) == ErrorCode.INVALID_RECORD
    client.now_ms += INTERVAL_MS
    assert client.pushes() == ErrorCode.NONE
    assert client.telemetry.pushes == {
        ErrorCode.UNKNOWN_SUBSCRIPTION_ID: 2,
        ErrorCode.INVALID_REQUEST: 1,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED: 1,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE: 1,
        ErrorCode.TELEMETRY_TOO_LARGE: 1,
        ErrorCode.INVALID_RECORD: 1,
        ErrorCode.NONE: 1,
    }


def test_pushes_come_an_interval_apart_but_for_the_first_and_the_last() -> None:
    client = Client()
    assert client.subscribe() == 0
    client.now_ms = 1
    assert client.pushes() == 0, "clients spread their first pushes"
    client.now_ms = INTERVAL_MS
    assert client.pushes() == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    client.now_ms = INTERVAL_MS + 1
    assert client.pushes() == 0
    assert client.pushes(terminating=True) == 0
    assert client.pushes(terminating=True) == ErrorCode.INVALID_REQUEST


def test_a_push_in_the_millisecond_of_the_subscription_is_the_first_one() -> None:
    """As of Kafka's ClientMetricsInstance, whose times are in milliseconds, too."""
    client = Client()
    assert client.subscribe() == 0
    assert client.pushes() == 0
    assert client.pushes() == ErrorCode.THROTTLING_QUOTA_EXCEEDED


def test_a_subscription_is_asked_for_an_interval_after_the_last_request() -> None:
    client = Client()
    assert client.subscribe() == 0
    assert client.subscribe() == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    client.now_ms = 900
    assert client.pushes() == 0
    client.now_ms = 1_800
    assert client.subscribe() == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    client.now_ms = 1_900
    assert client.subscribe() == 0


@pytest.mark.parametrize("wrong", [{"subscription_id": 1}, {"compression_type": 9}])
def test_a_client_that_does_not_know_its_subscription_may_ask_at_once(wrong: dict[str, int]) -> None:
    client = Client()
    assert client.subscribe() == 0
    assert client.pushes(**wrong) != 0
    assert client.subscribe() == 0
    assert client.subscribe() == ErrorCode.THROTTLING_QUOTA_EXCEEDED


@pytest.mark.parametrize("codec", list(Compression))
def test_what_a_member_tells_is_kept(codec: Compression) -> None:
    client = Client()
    data = metrics_data(MEMBER, {POLLED: 301_000.0, IDLE: 0.0, "org.apache.kafka.other": 1.0})
    assert client.pushes(compression_type=codec, metrics=compress(codec, data)) == 0
    report = client.telemetry.of_member("billing", "m-1", 0)
    assert report is not None
    assert report.values == {"poll_interval_max_seconds": 301.0, "poll_idle_ratio": 0.0}
    assert (report.client_id, report.client_host, report.at_ms) == ("client", "/127.0.0.1", AT_MS)
    assert list(client.telemetry.of_groups({"billing"}, 0)) == [report]
    assert list(client.telemetry.of_groups({"other"}, 0)) == []


def test_librdkafka_names_its_member_otherwise() -> None:
    client = Client()
    assert client.tells({IDLE: 1.0}, {"group_id": "billing", "member_id": "m-2"}) == 0
    assert client.telemetry.of_member("billing", "m-2", 0) is not None


@pytest.mark.parametrize(
    ("values", "member"),
    [
        ({"org.apache.kafka.other": 1.0}, MEMBER),
        ({IDLE: -1.0}, MEMBER),
        ({IDLE: 1.0}, {"group_id": "billing"}),
        ({IDLE: 1.0}, {"group_member_id": "m-1"}),
    ],
)
def test_what_tells_nothing_of_a_member_is_accepted_and_not_kept(
    values: dict[str, float], member: dict[str, str]
) -> None:
    client = Client()
    assert client.tells(values, member) == 0
    assert list(client.telemetry.of_groups({"billing"}, 0)) == []


def test_what_is_told_of_a_group_that_is_not_the_callers_business_is_dropped() -> None:
    client = Client()
    stranger = Caller("stranger", "/127.0.0.1", lambda group_id: group_id != "billing")
    assert client.pushes(stranger, metrics=metrics_data(MEMBER, {IDLE: 1.0})) == 0
    assert client.telemetry.of_member("billing", "m-1", 0) is None


def test_a_payload_that_cannot_be_read_is_an_invalid_record() -> None:
    client = Client()
    long = nested(900, bytes(MAX_BYTES))  # a field that is passed over
    for codec, data in (
        (Compression.ZSTD, b"nothing"),
        (Compression.ZSTD, compress(Compression.ZSTD, long)),
        (Compression.GZIP, compress(Compression.GZIP, long)),
        (Compression.NONE, b"\x0a\x7f"),
    ):
        client.now_ms += INTERVAL_MS
        assert client.pushes(compression_type=codec, metrics=data) == ErrorCode.INVALID_RECORD


def test_a_client_that_joins_again_tells_of_its_new_member_alone() -> None:
    client = Client()
    assert client.tells({IDLE: 1.0}) == 0
    client.now_ms = INTERVAL_MS
    assert client.tells({IDLE: 1.0}, {**MEMBER, "group_member_id": "m-2"}) == 0
    assert [one.member_id for one in client.telemetry.of_groups({"billing"}, client.now_ms)] == ["m-2"]


def test_of_two_clients_that_tell_of_one_member_the_last_counts() -> None:
    first = Client()
    second = Client(first.telemetry, bytes(range(1, 17)))
    assert first.tells({IDLE: 0.25}) == 0
    assert second.tells({IDLE: 0.75}) == 0
    first.now_ms = INTERVAL_MS
    assert first.tells({IDLE: 0.5}, {**MEMBER, "group_member_id": "m-2"}) == 0
    values = {one.member_id: one.values for one in first.telemetry.of_groups({"billing"}, INTERVAL_MS)}
    assert values == {"m-1": {"poll_idle_ratio": 0.75}, "m-2": {"poll_idle_ratio": 0.5}}


def test_reports_are_read_in_order_from_where_a_reader_was() -> None:
    first = Client()
    second = Client(first.telemetry, bytes(range(1, 17)))
    for client, member in ((first, "m-1"), (second, "m-2")):
        assert client.tells({IDLE: 0.25}, {**MEMBER, "group_member_id": member}) == 0
    telemetry = first.telemetry
    [report], last, more = telemetry.since(0, 1, 0)
    assert (report.member_id, last, more) == ("m-1", AT_MS, True)
    [report], last, more = telemetry.since(last, 1, 0)
    assert (report.member_id, last, more) == ("m-2", AT_MS + 1, False)  # both came in one millisecond
    assert telemetry.since(last, 1, 0) == ([], last, False)
    first.now_ms = INTERVAL_MS
    assert first.tells({IDLE: 0.5}) == 0
    [report], last, more = telemetry.since(last, 1, INTERVAL_MS)
    assert (report.values, last, more) == ({"poll_idle_ratio": 0.5}, AT_MS + INTERVAL_MS, False)
    # A node that starts again goes on with higher numbers.
    again = Client()
    again.now_ms = 2 * INTERVAL_MS
    assert again.tells({IDLE: 1.0}) == 0
    assert len(again.telemetry.since(last, 1, again.now_ms)[0]) == 1


def test_who_is_silent_is_forgotten() -> None:
    client = Client()
    assert client.tells({IDLE: 1.0}) == 0
    kept_ms = telemetry.LEAST_KEPT_MS
    assert client.telemetry.count(kept_ms - 1) == 1
    assert client.telemetry.of_member("billing", "m-1", kept_ms - 1) is not None
    assert client.telemetry.of_member("billing", "m-1", kept_ms) is None
    assert client.telemetry.count(kept_ms) == 0
    slow = Telemetry(1_000_000, MAX_BYTES)
    slow.subscription(GetTelemetrySubscriptionsRequest(AN_ID), client.new_id, 0)
    assert (slow.count(2_999_999), slow.count(3_000_000)) == (1, 0)


def test_the_one_that_was_silent_for_longest_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "INSTANCES_MAX", 3)
    client = Client()
    others = [Client(client.telemetry, bytes([number] * 16)) for number in range(1, 5)]
    for number, one in enumerate(others[:3]):
        assert one.tells({IDLE: 1.0}, {**MEMBER, "group_member_id": f"m-{number}"}) == 0
    others[0].now_ms = INTERVAL_MS
    assert others[0].pushes() == 0
    assert others[3].tells({IDLE: 1.0}, {**MEMBER, "group_member_id": "m-3"}) == 0
    assert client.telemetry.count(0) == 3
    assert sorted(one.member_id for one in client.telemetry.of_groups({"billing"}, 0)) == [
        "m-0",
        "m-2",
        "m-3",
    ]


def journal_of(client: Client) -> list[ReportEntry]:
    """All that is for the journal, as it comes."""
    entries: list[ReportEntry] = []
    client.telemetry.on_report = entries.append
    return entries


def test_the_journal_has_what_is_new_in_reports() -> None:
    client = Client()
    entries = journal_of(client)
    for value in (100.0, 150.0, 900.0, 2_500.0, 2_600.0, 5_300.0):
        assert client.tells({POLLED: value}) == 0
        client.now_ms += INTERVAL_MS
    assert [one.report.values["poll_interval_max_seconds"] for one in entries] == [0.1, 2.5, 5.3]
    client.now_ms += telemetry.JOURNAL_EVERY_MS
    assert client.tells({POLLED: 100.0}) == 0
    assert len(entries) == 4
    assert {one.old_member_id for one in entries} == {""}


def test_a_departure_has_the_last_report_as_that_member_and_some_that_come_later() -> None:
    client = Client()
    entries = journal_of(client)
    assert client.tells({POLLED: 100.0}) == 0
    client.now_ms = INTERVAL_MS
    assert client.tells({POLLED: 200.0}, {**MEMBER, "group_member_id": "m-2"}) == 0
    reports = client.telemetry.departed("billing", ["m-1", "m-9"])
    assert {one: it.values for one, it in reports.items()} == {"m-1": {"poll_interval_max_seconds": 0.1}}
    assert reports["m-1"].instance_id == AN_ID.hex()
    entries.clear()
    for _ in range(telemetry.LATER_REPORTS + 2):
        client.now_ms += INTERVAL_MS
        assert client.tells({POLLED: 200.0}, {**MEMBER, "group_member_id": "m-2"}) == 0
    assert [(one.old_member_id, one.report.member_id) for one in entries] == [
        ("m-1", "m-2")
    ] * telemetry.LATER_REPORTS


def test_of_a_client_that_is_forgotten_no_former_member_stays() -> None:
    client = Client()
    for number in range(4):
        assert client.tells({POLLED: 100.0}, {**MEMBER, "group_member_id": f"m-{number}"}) == 0
        client.now_ms += INTERVAL_MS
    later_ms = client.now_ms + max(telemetry.LEAST_KEPT_MS, telemetry.KEPT_INTERVALS * INTERVAL_MS)
    assert client.telemetry.count(later_ms) == 0
    known = [client.telemetry.of_member("billing", f"m-{number}", later_ms) for number in range(4)]
    assert known == [None] * 4


def test_later_reports_are_of_the_last_departures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "DEPARTED_MAX", 1)
    client = Client()
    entries = journal_of(client)
    for member in ("m-1", "m-2"):
        assert client.tells({POLLED: 100.0}, {**MEMBER, "group_member_id": member}) == 0
        client.now_ms += INTERVAL_MS
    client.telemetry.departed("billing", ["m-1", "m-2"])
    entries.clear()
    assert client.tells({POLLED: 100.0}, {**MEMBER, "group_member_id": "m-3"}) == 0
    assert [one.old_member_id for one in entries] == ["m-2", ""]


def test_the_departure_of_a_client_that_ended_has_no_later_reports() -> None:
    client = Client()
    entries = journal_of(client)
    values = metrics_data(MEMBER, {POLLED: 100.0})
    assert client.pushes(terminating=True, metrics=values) == 0
    assert [*client.telemetry.departed("billing", ["m-1"])] == ["m-1"]
    assert client.tells({POLLED: 100.0}) == ErrorCode.INVALID_REQUEST
    client.now_ms += INTERVAL_MS
    entries.clear()
    assert client.tells({POLLED: 100.0}, {**MEMBER, "group_member_id": "m-2"}) == 0
    assert [one.old_member_id for one in entries] == [""]


def test_a_member_of_another_group_is_not_explained() -> None:
    client = Client()
    assert client.tells({POLLED: 100.0}) == 0
    client.telemetry.departed("billing", ["m-1"])
    entries = journal_of(client)
    client.now_ms = INTERVAL_MS
    assert client.tells({POLLED: 100.0}, {"group_id": "other", "group_member_id": "m-1"}) == 0
    assert [one.old_member_id for one in entries] == [""]


@pytest.mark.parametrize(("ago_s", "left"), [(2.0, ("m-0", "busy", -2_000)), (1e308, ("", "", None))])
def test_the_words_of_this_packages_clients(ago_s: float, left: tuple[str, str, int | None]) -> None:
    client = Client()
    words = {
        "ringleader_error": "TIMEOUT",
        "ringleader_left_member_id": "m-0",
        "ringleader_left_reason": "busy",
    }
    values = {telemetry.LEFT_AGO: ago_s, "ringleader.callback.time.max": 3.0}
    assert client.tells(values, {**MEMBER, **words}) == 0
    [report] = client.telemetry.of_groups({"billing"}, 0)
    assert (report.error, report.values) == ("TIMEOUT", {"callback_max_seconds": 3.0})
    member_id, reason, ago_ms = left
    at_ms = -1 if ago_ms is None else AT_MS + ago_ms
    assert (report.left_id, report.left_reason, report.left_ms) == (member_id, reason, at_ms)
