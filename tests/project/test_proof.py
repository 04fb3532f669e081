"""docs/proof.md says what the files in proof/ say, and names tests that there are."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pytest

from tools import proof

ROOT = Path(__file__).parents[2]


def test_the_page_is_written_from_the_results() -> None:
    written = proof.PAGE.read_text()
    assert written == proof.render(proof.results(), proof.promises()), "run python -m tools.proof"


@pytest.mark.parametrize("promise", proof.promises(), ids=lambda one: str(one.number))
def test_each_judge_of_a_promise_exists(promise: proof.Promise) -> None:
    assert promise.judges
    for judge in promise.judges:
        path, _, name = judge.partition("::")
        assert name in proof.tests_in(ROOT / path), judge


def test_a_promise_without_a_judge_is_reported(tmp_path: Path) -> None:
    readme, judges = tmp_path / "README.md", tmp_path / "promises.toml"
    readme.write_text(
        "## What it promises\n\n1. All is well.\n2. All stays well.\n\n## Read on\n\n3. No promise.\n"
    )
    judges.write_text('[judges]\n1 = ["tests/a.py::test_a"]\n')
    with pytest.raises(proof.ResultError, match=r"promises \[1, 2\]"):
        proof.promises(readme, judges)
    judges.write_text('[judges]\n1 = ["tests/a.py::test_a"]\n2 = ["tests/a.py::test_b"]\n')
    assert [one.text for one in proof.promises(readme, judges)] == ["All is well.", "All stays well."]


def test_results_of_judges_are_on_the_page_and_the_rest_is_not_run(tmp_path: Path) -> None:
    proof.leave("simulation", {"seeds": 12_345, "hours of CPU": 1.25}, good=False, results=tmp_path)
    left = proof.results(tmp_path)
    assert left["simulation"]["commit"] == proof._git("rev-parse", "--short", "HEAD")
    page = proof.render(left, proof.promises())
    assert "12,345 seeds, 1.2 hours of CPU | **broken** |" in page
    assert page.count("| not run yet |") == len(proof.JUDGES) - 1
    assert f"To run it: `{proof.JUDGES['chaos'][2]}`" in page


def test_figures_are_added_up_over_runs(tmp_path: Path) -> None:
    for seeds, good in ((40, True), (2, False)):
        file = proof.leave(
            "simulation", {"seeds": seeds, "steps": 7}, good=good, adds=["seeds"], results=tmp_path
        )
    left = json.loads(file.read_text())
    assert left["in all"] == {"seeds": 42}
    assert left["figures"] == {"seeds": 2, "steps": 7}
    page = proof.render(proof.results(tmp_path), proof.promises())
    assert "2 seeds, 7 steps; in all runs 42 seeds | **broken** |" in page
    assert f"| seeds in all runs since {left['since']} | 42 |" in page


@pytest.mark.parametrize(
    ("name", "text"),
    [("simulation", "no JSON"), ("weather", '{"judge": "weather"}'), ("simulation", '{"judge": "chaos"}')],
)
def test_a_result_without_a_judge_is_reported(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / f"{name}.json").write_text(text)
    with pytest.raises(proof.ResultError, match=name):
        proof.results(tmp_path)


def test_figures_are_left_when_the_option_or_the_environment_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_chosen(*arguments: str) -> bool:
        parser = argparse.ArgumentParser()
        proof.add_option(parser)
        return bool(parser.parse_args(arguments).proof)

    monkeypatch.delenv(proof.WISH, raising=False)
    assert not is_chosen()
    assert is_chosen("--proof")
    monkeypatch.setenv(proof.WISH, "1")
    assert is_chosen()
    monkeypatch.setenv(proof.WISH, "0")
    assert not is_chosen()


def test_faults_are_those_that_the_history_says_were_found() -> None:
    found = proof.find_faults()
    if found["commits"] < 2:
        pytest.skip("there is no history here")
    assert found["commits"] > len(found["faults"])
    assert all(json.dumps(one) and one["found_by"] for one in found["faults"])
