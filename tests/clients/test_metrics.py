"""What a member counts, and how it looks in Prometheus' text."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace

import ringleader
from ringleader.clients.metrics import Counters, MemberMetrics, member_metrics, prometheus_lines
from ringleader.clients.model import Lost, Revoked
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
    counters = script.machine.counters
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
    assert (figures.last_heartbeat_age_ms, figures.assigned_age_ms) == (60, 3_100)
    script.rejoin()
    script.wait(700)
    script.revoked()
    assert (counters.revocations, counters.revoked_ms_max, counters.assigned_ms) == (1, 700, None)
    script.settle(generation=2)
    assert (counters.rebalances, counters.rebalance_ms_max, counters.last_rebalance_ms) == (2, 1_000, 0)
    script.machine.offsets_refused("OffsetCommit", ErrorCode.UNKNOWN_MEMBER_ID, 2, "m-1", script.now_ms)
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
    assert ringleader.prometheus_lines([]) == "# TYPE ringleader_member_phase gauge\n"
