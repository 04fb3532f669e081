"""The real brokers next to the daemon: started where their tools are, else left out with a sentence."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from bench import commits, heartbeats, rebalance
from bench.brokers import brokers
from bench.build import NoGoError, kfake_program
from bench.commits import KFAKE_SYNCED
from bench.document import numbers
from bench.peers import goals_against
from bench.plan import KAFKA, KFAKE, RINGLEADER, YARDSTICK, quick_plan
from bench.report import Goal
from tests.interop.kafka import classpath
from tests.interop.maven import InteropError

MACHINE = {
    "cpus": 2,
    "cpu": "any",
    "kernel": "Linux",
    "python": "CPython",
    "compiler": "cc",
    "load_average_after": 1.0,
}
# The first run on a machine fetches Kafka's jars and builds kfake.
pytestmark = pytest.mark.timeout(600)

CPU = min(os.sched_getaffinity(0))

FAKE_GO = """#!{python}
import pathlib, sys
assert sys.argv[1] == "build", sys.argv
assert pathlib.Path("go.sum").exists(), "go runs beside the sources"
with open({calls!r}, "a") as calls:
    calls.write("build\\n")
if {fails}:
    sys.exit("no such module")
pathlib.Path(sys.argv[sys.argv.index("-o") + 1]).write_text("built")
"""


def with_fake_go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, fails: bool = False) -> Path:
    """A `go` that only notes its calls in the file returned, and an empty cache."""
    calls = tmp_path / "calls"
    go = tmp_path / "bin" / "go"
    go.parent.mkdir()
    go.write_text(FAKE_GO.format(python=sys.executable, calls=str(calls), fails=fails))
    go.chmod(0o755)
    monkeypatch.setenv("PATH", str(go.parent))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return calls


def test_kfake_is_built_once_outside_the_tree(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls = with_fake_go(monkeypatch, tmp_path)
    program = kfake_program()
    assert kfake_program() == program
    assert calls.read_text() == "build\n"
    assert program.read_text() == "built"
    assert tmp_path / "cache" in program.parents
    assert [path.name for path in program.parent.iterdir()] == ["kfake"]


def test_a_build_that_fails_says_why(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with_fake_go(monkeypatch, tmp_path, fails=True)
    with pytest.raises(NoGoError, match="no such module"):
        kfake_program()


def test_without_go_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NoGoError, match="install Go"):
        kfake_program()


def test_peers_whose_tools_are_missing_are_left_out_aloud(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_maven() -> str:
        raise InteropError("install Maven [or not]")

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("bench.brokers.classpath", no_maven)
    with brokers([KAFKA, KFAKE], tmp_path, CPU, partitions=1, warmup_s=0) as found:
        assert found.running == {}
    output = capsys.readouterr().out
    assert "left out: Apache Kafka: install Maven [or not]" in output
    assert "left out: kfake: Go is needed" in output
    assert found.to_dict()["left_out"].keys() == {KAFKA, KFAKE}


def can_run(name: str) -> bool:
    try:
        classpath() if name == KAFKA else kfake_program()
    except (InteropError, NoGoError):
        return False
    return True


@pytest.mark.bench
def test_rebalances_are_measured_with_every_peer_that_can_run(tmp_path: Path) -> None:
    saved = rebalance.run(quick_plan(tmp_path / "data", tmp_path / "out"))
    running = {name for name in (KAFKA, KFAKE) if can_run(name)}
    assert saved["brokers"].keys() == running
    assert saved["left_out"].keys() == {KAFKA, KFAKE} - running
    for medians in saved["results"]["20"]["medians"].values():
        assert medians.keys() == {RINGLEADER} | running


@pytest.mark.bench
def test_heartbeats_are_measured_beside_kfake(tmp_path: Path) -> None:
    saved = heartbeats.run(quick_plan(tmp_path / "data", tmp_path / "out").without([KAFKA]))
    ran = saved["results"]["depth 1"]["medians"].keys()
    assert ran == {RINGLEADER, heartbeats.WITH_PAGE, YARDSTICK} | ({KFAKE} if can_run(KFAKE) else set())


@pytest.mark.bench
def test_commits_are_measured_beside_kfake_in_memory_and_synced(tmp_path: Path) -> None:
    saved = commits.run(quick_plan(tmp_path / "data", tmp_path / "out").without([KAFKA]))
    ran = saved["results"]["depth 1"]["medians"].keys()
    assert ran == {RINGLEADER, YARDSTICK} | ({KFAKE, KFAKE_SYNCED} if can_run(KFAKE) else set())


def test_goals_compare_with_the_peers_that_ran() -> None:
    medians = {RINGLEADER: {"per_s": 30.0}, KFAKE: {"per_s": 10.0}}
    [goal] = goals_against("rate", medians, "per_s", {KAFKA: 2.0, KFAKE: 4.0})
    assert (goal.peer, goal.ratio, goal.reached, goal.wanted) == (KFAKE, 3.0, False, "at least 4")


def test_a_time_is_to_be_short() -> None:
    goal = Goal("time", KAFKA, ratio=1.5, bound=2.0, is_time=True)
    assert goal.reached
    assert goal.wanted == "at most 2"
    assert not Goal("time", KAFKA, ratio=2.5, bound=2.0, is_time=True).reached


def test_the_document_names_who_ran_and_who_did_not() -> None:
    participants = {"brokers": {KFAKE: "v0, in memory"}, "left_out": {KAFKA: "install\nMaven"}}
    saved = {"machine": MACHINE, "results": {}, "goals": [], **participants}
    written = numbers({"heartbeats": saved})
    assert "- kfake: v0, in memory." in written
    assert "- Apache Kafka was **left out**: install Maven" in written
