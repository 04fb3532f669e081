"""Client telemetry over the wire: what librdkafka tells unasked, and how it is shown."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import confluent_kafka
import pytest

from ringleader.coordinator import http_telemetry
from ringleader.coordinator.config import Settings
from ringleader.coordinator.journal.entries import ClientReport
from ringleader.coordinator.node import Node
from ringleader.coordinator.telemetry import REQUESTED, subscription_id
from ringleader.protocol import messages as kafka
from ringleader.protocol.errors import ErrorCode
from tests.coordinator.test_http import _get, _metrics
from tests.support.metrics_data import metrics_data
from tests.support.principals import ADMINISTRATOR, connected_as, guarded, prepare
from tests.support.requests_of_all import ALICE, MALLORY
from tests.support.served import connected, until

AN_ID = b"an-instance-id-1"
OF_LIBRDKAFKA = {"poll_idle_ratio", "rebalance_latency_max_seconds", "fetch_latency_max_seconds"}


def reports_of(node: Node, group_id: str) -> list[ClientReport]:
    assert node.telemetry is not None
    return list(node.telemetry.of_groups({group_id}, 0))


async def until_reported(node: Node, group_id: str) -> ClientReport:
    """The values of the one member of the group, of polls and fetches."""

    def found() -> ClientReport | None:
        return next((one for one in reports_of(node, group_id) if one.values.get("poll_idle_ratio")), None)

    async with asyncio.timeout(60):
        await until(lambda: found() is not None)
    one = found()
    assert one is not None
    return one


class Consuming:
    """librdkafka's consumer, polling on a thread until the end."""

    def __init__(self, bootstrap: str) -> None:
        self._ended = threading.Event()
        self._consumer = confluent_kafka.Consumer(
            {"bootstrap.servers": bootstrap, "group.id": "billing", "client.id": "teller"}
        )
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        self._consumer.subscribe(["orders"])
        while not self._ended.is_set():
            self._consumer.poll(0.05)
        self._consumer.close()

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(
        listen="127.0.0.1:0",
        http_listen="127.0.0.1:0",
        data_dir=tmp_path,
        topic="orders:2",
        telemetry_enable=True,
        telemetry_interval_ms=100,
        group_initial_rebalance_delay_ms=0,
    )


async def test_librdkafka_tells_of_its_member_and_metrics_show_it(settings: Settings) -> None:
    async with Node(settings) as node:
        consuming = Consuming(node.bootstrap)
        await asyncio.to_thread(consuming.__enter__)
        try:
            found = await until_reported(node, "billing")
            shown = await _metrics(node, "?group=billing")
        finally:
            await asyncio.to_thread(consuming.__exit__)
    assert found.client_id == "teller"
    assert found.member_id.startswith("teller-")
    assert found.values.keys() == OF_LIBRDKAFKA
    assert 0 < found.values["poll_idle_ratio"] <= 1
    assert shown["ringleader_telemetry_clients",] == 1
    assert shown["ringleader_telemetry_pushes_total", "NONE"] >= 1
    labels = ("teller", "billing", found.member_id)
    assert 0 <= shown["ringleader_client_told_ago_seconds", *labels] < 60
    for name in OF_LIBRDKAFKA:
        assert (f"ringleader_client_{name}", *labels) in shown
    assert shown["ringleader_clients_left_out",] == 0


async def pushed(node: Node, principal: str, group_id: str) -> int:
    """The error code of a first push, about a member of that group."""
    instance_id = principal.encode().rjust(16)
    values = dict.fromkeys(REQUESTED, 1.0)
    metrics = metrics_data({"group_id": group_id, "group_member_id": principal}, values)
    request = kafka.PushTelemetryRequest(
        instance_id, subscription_id(instance_id, 60_000), terminating=True, metrics=metrics
    )
    async with connected_as(node, principal) as client:
        return int((await client.call(request, 0)).error_code)


async def test_nobody_tells_of_a_group_that_it_may_not_read(tmp_path: Path) -> None:
    async with Node(guarded(tmp_path)) as node:
        async with connected_as(node, ADMINISTRATOR) as root:
            await prepare(root)
        assert [await pushed(node, principal, "g-mine") for principal in (ALICE, MALLORY)] == [0, 0]
        assert [one.member_id for one in reports_of(node, "g-mine")] == [ALICE]


async def test_members_of_groups_that_are_not_named_are_not_shown(settings: Settings) -> None:
    async with Node(settings) as node, connected(node.host, node.port) as client:
        request = kafka.PushTelemetryRequest(
            AN_ID,
            subscription_id(AN_ID, 100),
            metrics=metrics_data({"group_id": "billing", "group_member_id": "m"}, {REQUESTED[0]: 1.0}),
        )
        assert (await client.call(request, 0)).error_code == 0
        assert (await client.call(request, 0)).error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
        for query in ("", "?group=other"):
            _, text = await _get(node, f"/metrics{query}")
            assert "ringleader_telemetry_clients 1.0" in text
            assert 'ringleader_telemetry_pushes_total{error="THROTTLING_QUOTA_EXCEEDED"} 1.0' in text
            assert 'member_id="m"' not in text


async def test_no_more_members_are_shown_than_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_telemetry, "MEMBERS_MAX", 2)
    telling = [ClientReport("billing", f"m-{one}", "", "", 0, {"poll_idle_ratio": 1.0}) for one in range(5)]

    telemetry: Any = SimpleNamespace(
        pushes={}, of_groups=lambda *_: iter(telling), count=lambda _: len(telling)
    )
    found = http_telemetry.TelemetryFigures.of(telemetry, {"billing"}, 0, 1_000)
    assert (len(found.reports or ()), found.left_out) == (2, 3)
    samples = [sample for family in http_telemetry.families(found) for sample in family.samples]
    assert sum(sample.labels.get("group") == "billing" for sample in samples) == 4


async def test_without_telemetry_no_client_is_asked_and_nothing_is_shown(settings: Settings) -> None:
    async with Node(settings.model_copy(update={"telemetry_enable": False})) as node:
        _, text = await _get(node, "/metrics?groups=all")
        assert "telemetry" not in text
