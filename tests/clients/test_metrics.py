"""The metrics that a member counts, and how they look in Prometheus' text."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import Any, NamedTuple

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

import ringleader
from ringleader.clients.consumer import GroupConsumer, PartitionConsumer
from ringleader.clients.exporting import METRICS, Measured, opentelemetry_instruments, prometheus_lines
from ringleader.clients.group.membership import GroupMember
from ringleader.clients.metrics import Counters, MemberMetrics, member_metrics
from ringleader.clients.model import Lost, Revoked
from ringleader.clients.options import FetchOptions
from ringleader.protocol.errors import ErrorCode
from ringleader.testing.coordinator import Coordinator
from tests.support.member_script import MemberScript
from tests.support.sharding import PATIENCE_S, Diary, member, settled

PRESENT = {
    "group": "g",
    "client_id": "c",
    "member_id": "m",
    "phase": "stable",
    "generation": 3,
    "commits_waiting": 0,
    "offsets_stored": 0,
    "work_in_hand": 0,
    "last_poll_age_ms": None,
}


def test_a_rebalance_by_the_clock() -> None:
    script = MemberScript().start()
    counters = script.machine.state.counters
    script.find()
    script.join(ErrorCode.MEMBER_ID_REQUIRED, member_id="m-1")
    script.wait(300)
    script.fail("JoinGroup")
    script.wait(200)
    script.find()
    script.join(leader="other")
    script.wait(500)
    script.sync()
    assert (counters.joins, counters.syncs, counters.rebalances, counters.failed_rebalances) == (3, 1, 1, 1)
    assert (counters.last_rebalance_ms, counters.rebalance_ms_total) == (1_000, 1_000)
    script.wait(3_000)
    script.wait(40)
    script.beat()
    assert (counters.heartbeats, counters.heartbeat_round_trip_ms) == (1, 40)
    figures = member_metrics(counters, script.now_ms + 60, PRESENT)
    assert (figures.last_heartbeat_age_ms, figures.assigned_age_ms) == (100, 3_100)
    script.rejoin()
    script.wait(700)
    script.revoked()
    assert (counters.revocations, counters.revoked_ms_max, counters.assigned_ms) == (1, 700, None)
    script.settle(generation=2)
    assert (counters.rebalances, counters.rebalance_ms_max, counters.last_rebalance_ms) == (2, 1_000, 0)
    script.machine.offsets_refused("OffsetCommit", ErrorCode.UNKNOWN_MEMBER_ID, (2, "m-1"), script.now_ms)
    assert (counters.times_lost, counters.assigned_ms) == (1, None)


async def test_a_member_in_figures(coordinator: Coordinator) -> None:
    diary = Diary()
    one = member(coordinator, diary, client_id="c1")
    assert (one.metrics().phase, one.metrics().generation, one.metrics().joins) == ("new", -1, 0)
    async with one:
        share = await one.wait_assigned(PATIENCE_S)
        await one.commit({("t", 0): 1})
        one.store({("t", 1): 1})
        async with one.working(), asyncio.timeout(PATIENCE_S):
            while one.metrics().heartbeats < 2:  # noqa: ASYNC110 -- figures tell nobody
                await asyncio.sleep(0.01)
            figures = one.metrics()
        assert (figures.group, figures.client_id, figures.member_id) == ("jobs", "c1", share.member_id)
        assert (figures.phase, figures.generation, figures.rebalances) == ("stable", 1, 1)
        assert (figures.commits, figures.offsets_stored, figures.work_in_hand) == (1, 1, 1)
        assert figures.last_poll_age_ms is not None
        async with member(coordinator) as two:
            await settled(one, two)
        coordinator.expire_member("jobs", one.member_id)
        await diary.until(Lost)
        assert one.metrics().times_lost == 1
        assert one.metrics().revocations == len(diary.of(Revoked))


def test_prometheus_text() -> None:
    counters = Counters(rebalances=2, rebalance_ms_total=1_500, last_rebalance_ms=500, commits=7)
    first = member_metrics(counters, 0, PRESENT)

    class Fixed:
        def __init__(self, figures: MemberMetrics) -> None:
            self._figures = figures

        def metrics(self) -> MemberMetrics:
            return self._figures

    second = replace(first, client_id='d "quoted" \\ \n', last_rebalance_ms=None)
    lines = prometheus_lines([Fixed(first), Fixed(second)]).splitlines()
    labels = 'group="g",client_id="c",member_id="m"'
    assert f"ringleader_member_rebalances_total{{{labels}}} 2" in lines
    assert f"ringleader_member_rebalance_seconds_total{{{labels}}} 1.5" in lines
    assert f"ringleader_member_last_rebalance_seconds{{{labels}}} 0.5" in lines
    assert f"ringleader_member_generation{{{labels}}} 3" in lines
    assert f'ringleader_member_phase{{{labels},phase="stable"}} 1' in lines
    assert sum(line.startswith("ringleader_member_last_rebalance_seconds{") for line in lines) == 1
    assert 'client_id="d \\"quoted\\" \\\\ \\n"' in "\n".join(lines)
    types = [line.split()[2] for line in lines if line.startswith("# TYPE")]
    assert len(types) == len(set(types))
    sample = re.compile(r'^[a-z_]+\{[a-z_]+="(\\.|[^"\\])*"(,[a-z_]+="(\\.|[^"\\])*")*\} -?[0-9.]+$')
    assert all(line.startswith("# TYPE ") or sample.match(line) for line in lines)
    assert ringleader.prometheus_lines([]) == ""


SAMPLE = re.compile(r'^[a-z_]+\{[a-z_]+="(\\.|[^"\\])*"(,[a-z_]+="(\\.|[^"\\])*")*\} -?[0-9.]+$')


async def test_consumers_and_members_in_one_text(coordinator: Coordinator) -> None:
    """Not yet started, at work, and of the same name: no label set comes twice."""
    coordinator.create_topic("orders", 2)
    coordinator.produce("orders", *[b"x"] * 3)
    at, options = coordinator.bootstrap, FetchOptions(auto_offset_reset="earliest")
    alone = [PartitionConsumer(at, ["orders"], client_id="c", **options) for _ in range(2)]
    grouped = GroupConsumer(at, "g", "orders", client_id="c", **options)
    other = member(coordinator, client_id="m")
    everybody: list[Measured] = [*alone, grouped, other]
    before = prometheus_lines(everybody)
    assert 'ringleader_consumer_records_total{client_id="c"} 0' in before
    async with alone[0], alone[1], grouped, other:
        await other.wait_assigned(PATIENCE_S)
        for one in (*alone, grouped):
            seen = 0
            while seen < 3:
                seen += sum(len(batch) for batch in await one.getmany(timeout_s=PATIENCE_S))
        lines = prometheus_lines(everybody).splitlines()
        me = f'group="g",client_id="c",member_id="{grouped.member.member_id}"'
        assert 'ringleader_consumer_records_total{client_id="c"} 6' in lines, (
            "those with the same labels add up"
        )
        assert f"ringleader_consumer_records_total{{{me}}} 3" in lines
        assert f"ringleader_member_rebalances_total{{{me}}} 1" in lines
        assert f'ringleader_consumer_lag{{{me},topic="orders",partition="0"}} 0' in lines
        assert 'ringleader_consumer_lag{client_id="c",topic="orders",partition="0"} 0' in lines
        assert f'ringleader_member_phase{{{me},phase="stable"}} 1' in lines
        keys = [line.rpartition(" ")[0] for line in lines]
        assert len(keys) == len(set(keys))
        assert all(line.startswith("# TYPE ") or SAMPLE.match(line) for line in lines)
        assert len({line for line in lines if line.startswith("# TYPE")}) > 30


async def test_opentelemetry(coordinator: Coordinator) -> None:
    """With the SDK: the same figures under the same names, of consumers that come later, too."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    measured: list[GroupConsumer | GroupMember] = []
    opentelemetry_instruments(provider.get_meter("test"), measured)
    coordinator.produce("t", *[b"x"] * 3)
    consumer = GroupConsumer(coordinator.bootstrap, "g", "t", auto_offset_reset="earliest")
    measured += [consumer, member(coordinator)]
    async with consumer:
        await consumer.getmany(timeout_s=PATIENCE_S)
        found = collected(reader)
    me = {"group": "g", "client_id": "ringleader-consumer", "member_id": consumer.member.member_id}
    ((labels, records),) = found["ringleader.consumer.records"].points
    assert (labels, records) == (me, 3)
    assert found["ringleader.consumer.records"].monotonic
    assert (
        found["ringleader.consumer.fetched_bytes"].unit,
        found["ringleader.member.rebalance_seconds"].unit,
    ) == (
        "By",
        "s",
    )
    assert not found["ringleader.member.generation"].monotonic
    assert sorted(value for _, value in found["ringleader.member.generation"].points) == [-1, 1]
    assert ({**me, "topic": "t", "partition": "0"}, 0) in found["ringleader.consumer.lag"].points
    assert found.keys() <= {"ringleader." + metric.name for metric in METRICS}
    assert len(found) > 30
    provider.shutdown()
    with pytest.raises(ValueError, match="again and again"):
        opentelemetry_instruments(provider.get_meter("test"), iter(measured))


class Collected(NamedTuple):
    unit: str | None
    monotonic: bool
    points: list[tuple[dict[str, Any], float]]


def collected(reader: InMemoryMetricReader) -> dict[str, Collected]:
    data = reader.get_metrics_data()
    assert data is not None
    return {
        metric.name: Collected(
            metric.unit,
            getattr(metric.data, "is_monotonic", False),
            [(dict(point.attributes or {}), point.value) for point in metric.data.data_points],  # type: ignore[union-attr]
        )
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }
