"""Every benchmark runs, in its smallest size, and leaves its numbers in a file. Needs a C compiler."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench import consume
from bench.__main__ import BENCHMARKS, main
from bench.document import numbers
from bench.filesystem import MemoryFileSystemError
from bench.plan import KAFKA, KFAKE, RINGLEADER, quick_plan
from bench.produce import CASES, PRODUCERS

pytestmark = pytest.mark.bench


def run(name: str, tmp_path: Path) -> dict[str, Any]:
    """Without the brokers: tests/bench/test_brokers.py has them."""
    (tmp_path / "data").mkdir()
    BENCHMARKS[name](quick_plan(tmp_path / "data", tmp_path / "out").without([KAFKA, KFAKE]))
    saved: dict[str, Any] = json.loads((tmp_path / "out" / f"{name}.json").read_text())
    assert saved["benchmark"] == name
    assert {"cpu", "cpus", "kernel", "python"} <= saved["machine"].keys()
    written = numbers({name: saved})
    assert written.count("###") == 1
    assert all(goal["name"] in written for goal in saved["goals"])
    assert list((tmp_path / "data").iterdir()) == []
    return saved


def test_heartbeats(tmp_path: Path) -> None:
    saved = run("heartbeats", tmp_path)
    assert saved["results"].keys() == {"depth 1", "depth 16"}
    for result in saved["results"].values():
        assert result["medians"].keys() == {"ringleader", "ringleader --ui", "C server"}
        assert all(one["answers"] > 0 for rounds in result["rounds"].values() for one in rounds)
    wanted = [goal["wanted"] for goal in saved["goals"]]
    assert wanted == ["at least 0.45", "at most 1.05", "at least 0.08", "at most 1.05"]


def test_heartbeats_with_acls_and_over_tls(tmp_path: Path) -> None:
    saved = run("secured", tmp_path)
    assert saved["results"].keys() == {"depth 1", "depth 16"}
    for result in saved["results"].values():
        assert len(result["medians"]) == 6
        assert all(one["answers"] > 0 for rounds in result["rounds"].values() for one in rounds)
    wanted = [goal["wanted"] for goal in saved["goals"]]
    assert wanted == 2 * ["at least 0.9", "at least 0.9", "at least 0.5", "at least 0.9"]


def test_commits_are_covered_by_syncs_seen_from_outside(tmp_path: Path) -> None:
    saved = run("commits", tmp_path)
    assert saved["file_system"]
    for result in saved["results"].values():
        assert result["sync_calls"] > 0
        assert result["commits_per_sync"] > 0
    assert [(goal["peer"], goal["wanted"]) for goal in saved["goals"]] == [("C server", "at least 0.15")]


def test_commits_refuse_a_file_system_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def in_memory(path: Path) -> str:
        raise MemoryFileSystemError(f"{path} lies on tmpfs")

    monkeypatch.setattr("bench.commits.refuse_memory", in_memory)
    arguments = ["--data-dir", str(tmp_path), "--without", KAFKA, "--without", KFAKE]
    assert main(["commits", "--quick", *arguments]) == 1


def test_rebalance(tmp_path: Path) -> None:
    [(count, result)] = run("rebalance", tmp_path)["results"].items()
    assert count == "20"
    assert result["medians"].keys() == {"form", "join", "leave"}
    assert all(medians["ringleader"]["seconds"] > 0 for medians in result["medians"].values())
    [one] = result["rounds"]["ringleader"]
    assert [one[phase]["generations"] for phase in ("join", "leave")] == [1, 1]
    assert one["heartbeats"] > 0


def test_consumer_groups(tmp_path: Path) -> None:
    saved = run("consumer_groups", tmp_path)
    results = saved["results"]
    assert results["heartbeats"].keys() == {"depth 1", "depth 16"}
    for result in results["heartbeats"].values():
        assert all(one["answers"] > 0 for one in result["rounds"]["ringleader"])
    for result in results["rebalances"].values():
        assert result["medians"].keys() == {"form", "leave"}
        [one] = result["rounds"]["ringleader"]
        assert one["members"] == one["partitions"] == 20
        assert one["leave"]["seconds"] > 0
        assert one["form"]["heartbeats"] >= 40  # each joins, and says what it owns
    assert results["records"]["ringleader"].keys() == {"10", "20"}
    assert [(goal["peer"], goal["wanted"]) for goal in saved["goals"]] == [("ringleader", "at most 1.1")]


def test_assignors(tmp_path: Path) -> None:
    saved = run("assignors", tmp_path)
    by_what = {(one["group"], one["what"], one["assignor"], one["library"]): one for one in saved["results"]}
    for library in ("ringleader", "kafka-python", "aiokafka"):
        assert by_what["10 x 100", "one leaves", "sticky", library]["moves"] == 0
        assert by_what["10 x 100", "one joins", "sticky", library]["moves"] == 9
    assert by_what["50 x 1,000", "fresh", "sticky", "ringleader"]["spread"] == 0
    assert by_what["20 x 200", "one joins", "cooperative-sticky", "ringleader"]["rounds"] == 2
    assert {goal["wanted"] for goal in saved["goals"]} == {"at least 300", "at most 1", "at most 1.25"}
    assert [one["partitions"] for one in saved["memory"]] == [250, 500, 1_000]


def test_memory(tmp_path: Path) -> None:
    results = run("memory", tmp_path)["results"]
    assert results["members"] == 100
    assert results["start_mib"] > 0
    assert results["consumer_mib_per_1000"] > 0


def test_replay(tmp_path: Path) -> None:
    results = run("replay", tmp_path)["results"]
    assert results["offsets"] == 2_000
    assert results["full_s"] > 0


def test_handover(tmp_path: Path) -> None:
    medians = run("handover", tmp_path)["medians"]["ringleader"]
    assert medians.keys() == {"GroupConsumer", "confluent-kafka"}
    assert all(0 < one["without owner"] < one["whole"] for one in medians.values())


@pytest.mark.timeout(1200)
def test_consume(tmp_path: Path) -> None:
    saved = run("consume", tmp_path)
    cases = [
        (one["broker"], one["value_bytes"], one["codec"], one["values"] == "halved")
        for one in saved["results"]
    ]
    assert cases == [(RINGLEADER, case.value_bytes, case.codec, case.halved) for case in consume.CASES]
    assert len({case.topic for case in consume.CASES}) == len(consume.CASES)
    for result in saved["results"]:
        assert result["medians"].keys() == set(consume.READERS)
        assert all(one["per_cpu_s"] > 0 for rounds in result["rounds"].values() for one in rounds)
    assert {goal["wanted"] for goal in saved["goals"]} == {"at least 2", "at least 1.2", "at least 1.5"}
    assert saved["memory_mib"].keys() == {consume.RECORDS, "aiokafka", "confluent-kafka"}


def test_processing(tmp_path: Path) -> None:
    saved = run("processing", tmp_path)
    assert saved["records"] == 200
    assert saved["medians"].keys() == {"plain tasks", "consumer.process"}
    assert all(rate > 0 for rate in saved["medians"].values())


def test_produce(tmp_path: Path) -> None:
    saved = run("produce", tmp_path)
    assert [one["case"] for one in saved["results"]] == [case.name for case in CASES]
    for result in saved["results"]:
        assert result["medians"].keys() == set(PRODUCERS)
        assert all(one["per_cpu_s"] > 0 for rounds in result["rounds"].values() for one in rounds)
    assert {goal["wanted"] for goal in saved["goals"]} == {"at least 3", "at least 1"}


def test_mixed(tmp_path: Path) -> None:
    results = run("mixed", tmp_path)["results"]
    assert results["quiet"][0]["answers"] > 0
    assert results["busy"][0]["answers"] > 0
    assert results["streams"][0]["produced_batches"] > 0
    assert results["streams"][0]["fetches"] > 0


def test_unknown_names_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["hartbeats"])
    assert "hartbeats" in capsys.readouterr().err


def test_without_a_compiler_it_says_what_is_needed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    assert main(["heartbeats"]) == 1
    assert "C compiler" in capsys.readouterr().err


def test_a_watcher_beside_many_groups(tmp_path: Path) -> None:
    saved = run("watching", tmp_path)
    assert saved["results"].keys() == {"5", "10"}
    for measured in saved["results"].values():
        [one] = measured.values()
        assert one["mib"] > 10
        assert one["commits_per_s"] > 100
    assert [goal["wanted"] for goal in saved["goals"]] == ["at most 1", "at most 1"]
