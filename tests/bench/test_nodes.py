"""The benchmarks of nodes on three brokers run, in their smallest size. They need a JDK and Maven."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench import failover, relay
from bench.__main__ import BENCHMARKS
from bench.document import numbers
from bench.plan import KAFKA, RINGLEADER, quick_plan
from ringleader.coordinator.groups.routing import partition_for
from tests.interop.kafka import classpath
from tests.interop.maven import InteropError

pytestmark = [pytest.mark.bench, pytest.mark.timeout(900)]


def run(name: str, tmp_path: Path) -> dict[str, Any]:
    try:
        classpath()
    except InteropError as error:
        pytest.skip(str(error))
    BENCHMARKS[name](quick_plan(tmp_path / "data", tmp_path / "out"))
    saved: dict[str, Any] = json.loads((tmp_path / "out" / f"{name}.json").read_text())
    written = numbers({name: saved})
    assert written.count("###") == 1
    assert all(goal["name"] in written for goal in saved["goals"])
    return saved


def test_failover(tmp_path: Path) -> None:
    saved = run("failover", tmp_path)
    assert saved["medians"].keys() == {KAFKA, RINGLEADER}
    for name, results in saved["results"].items():
        left_out = {failover.ROLLING, failover.MOVE} if name == KAFKA else {failover.ROLLING}
        assert results.keys() == set(failover.ROWS) - left_out
        for found in results.values():
            assert all(one[library] > 0 for one in found for library in failover.MEASURED)
        assert saved["reads"][name]["reads"] > 100
    assert saved["reads"][RINGLEADER]["stale_reads"] == 0


def test_commits_of_nodes(tmp_path: Path) -> None:
    saved = run("node_commits", tmp_path)
    for result in saved["results"].values():
        assert result["medians"].keys() == {KAFKA, RINGLEADER}
        assert all(one["per_cpu_s"] > 0 for rounds in result["rounds"].values() for one in rounds)
    assert {goal["wanted"] for goal in saved["goals"]} == {"at least 1"}


def test_takeover(tmp_path: Path) -> None:
    saved = run("takeover", tmp_path)
    found = saved["results"]
    assert 0 < found["first_s"] <= found["served_s"]
    assert [goal["wanted"] for goal in saved["goals"]] == ["at most 1"]


def test_relay(tmp_path: Path) -> None:
    saved = run("relay", tmp_path)
    assert len(saved["results"]) == len(relay.KINDS) * len(relay.SIZES)
    assert all(min(one.values()) > 0 for one in saved["results"].values())
    assert {goal["wanted"] for goal in saved["goals"]} == {"at least 1"}


def test_groups_are_named_into_one_partition() -> None:
    names = {failover.named(name, 7) for name in ("raw", "aiokafka")}
    assert {partition_for(name) for name in names} == {7}
    assert len(names) == 2
