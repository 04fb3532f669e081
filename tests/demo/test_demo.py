"""The demo itself, short and without Spark, on made-up departures: its exit code can be trusted."""

from __future__ import annotations

import csv
import io
import random
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from demo.director import Options, perform
from demo.plan import PLAYERS, ROOT

ROWS = 6_000
CARRIERS = ["UA", "B6", "EV", "DL", "AA", "MQ", "US", "9E", "WN", "VX"]


def _departures(path: Path, seed: int) -> None:
    source = random.Random(seed)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["year", "month", "day", "dep_delay", "carrier", "origin"])
        for _ in range(ROWS):
            delay = "NA" if source.random() < 0.03 else str(source.randrange(-20, 200))
            writer.writerow(["2013", "1", "1", delay, source.choice(CARRIERS), "JFK"])


def test_what_no_demo_wrote_is_not_removed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    console = Console(file=io.StringIO())
    assert perform(Options(tmp_path, 1.0, with_spark=False), console) == 1
    assert precious.read_text() == "mine"


@pytest.mark.parametrize("protocol", PLAYERS)
def test_the_demo_passes_its_own_checks(tmp_path: Path, seed: int, protocol: str) -> None:
    departures = tmp_path / "departures.csv"
    _departures(departures, seed)
    out = tmp_path / "out"
    # In the consumer protocol the newcomer waits for heartbeats, and there has to be something left to read.
    seconds = {"classic": "5", "consumer": "20"}[protocol]
    command = [sys.executable, "-m", "demo", "--without-spark", "--seconds", seconds, "--protocol", protocol]
    done = subprocess.run(
        [*command, "--csv", str(departures), "--out", str(out)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=150,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6,000 of 6,000 records acknowledged" in done.stdout
    assert f"session expired: {PLAYERS[protocol].victim}" in done.stdout
    assert "the page: http://127.0.0.1:" in done.stdout
    assert "session expired" in (out / "rebalances.txt").read_text()
    assert (out / f"{PLAYERS[protocol].newcomer}.jsonl").stat().st_size > 0
