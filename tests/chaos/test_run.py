"""The whole program, on one daemon: what needs no Kafka of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.chaos.__main__ import main
from tests.chaos.promises import REBALANCES


@pytest.mark.timeout(400)
def test_a_daemon_that_is_killed_paused_and_stopped_keeps_every_promise(tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = ["--longest-pause", "3", "--no-spark", "--out", str(out)]
    assert main(["--seed", "0", "--target", "single", "--faults", "4", *options]) == 0
    account = json.loads((out / "account.json").read_text())
    assert account["good"]
    assert len(account["faults"]) == 4
    assert {fault["how"] for fault in account["faults"]} == {"kill", "pause", "stop"}
    assert account["not_judged"] == [] or shutil.which("go") is None
    for check in account["checks"]:
        assert check["facts"] > 10 or check["name"] == REBALANCES, check["name"]
    records = account["records"]
    acknowledged = records.pop("acknowledged to producers")
    assert acknowledged > 500
    assert records.keys() == {"ours", "librdkafka", "aiokafka"}
    assert all(count >= acknowledged for count in records.values())
    assert {"ours-1", "ours-2", "librdkafka-1", "aiokafka-2", "committer", "churn", "reader-1"} <= account[
        "calls"
    ].keys()
    assert account["calls"]["committer"]["commit ok"] > 500
