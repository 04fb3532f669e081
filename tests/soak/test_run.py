"""A short soak of one daemon, as `make soak` runs it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.soak.__main__ import main
from tests.support.shares import WHOLE


@pytest.mark.share
@pytest.mark.skipif(not WHOLE, reason="its two minutes are for `make nightly`")
@pytest.mark.timeout(400)
def test_a_short_soak_of_a_daemon_keeps_everything_and_shows_it(tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["--minutes", "0.35", "--out", str(out)]) == 0
    found = json.loads((out / "soak.json").read_text())
    assert found["good"]
    samples = found["samples"]["node 1"]
    assert len(samples) > 20
    assert samples[-1]["cpu_s"] > samples[0]["cpu_s"]
    for sample in samples:
        assert sample["memory_bytes"] > 20_000_000
        assert sample["descriptors"] > 10
        assert sample["threads"] > 1
        assert sample["metrics"]["tasks"] >= 1
        assert sample["metrics"]["members"] > 5
    for kind in ("heartbeats", "commits"):
        assert sum(one["calls"] for one in found[kind]) > 100
        assert all(0 < one["half_ms"] <= one["most_ms"] <= one["longest_ms"] for one in found[kind])
    assert len(found["faults"]) >= 4
    assert {"stands still", "is killed", "leaves", "connections"} <= {
        words
        for words in ("stands still", "is killed", "leaves", "connections")
        for _, what in found["faults"]
        if words in what
    }
    page = (out / "soak.html").read_text()
    for title in ("Resident memory", "Descriptors", "Threads", "CPU", "Heartbeats", "Commits"):
        assert f"<h2>{title}" in page
