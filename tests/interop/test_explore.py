"""Random scenarios can be played again by their seed, and the comparison says what it needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop import __main__, compare, kafka
from tests.interop.explore import STEPS, play_random_here, random_scenario
from tests.interop.maven import InteropError


@pytest.mark.parametrize("seed", range(3), indirect=True)
def test_a_seed_is_one_scenario(seed: int) -> None:
    first, second = random_scenario(seed), random_scenario(seed)
    assert [step.command for step in first.steps] == [step.command for step in second.steps]
    assert len(first.steps) >= STEPS
    assert play_random_here(first) == play_random_here(second)


def test_without_java_the_comparison_fails_with_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def no_java() -> str:
        raise InteropError("a JDK is needed: install one")

    monkeypatch.setattr(kafka, "java", no_java)
    assert __main__.main(["compare"]) == 2
    assert capsys.readouterr().err == "a JDK is needed: install one\n"


def test_what_differs_is_shown(seed: int) -> None:
    scenario = random_scenario(seed)
    entry = scenario.entries[0]
    answers = play_random_here(scenario)
    for step, one in zip(scenario.steps, answers, strict=True):
        step.answers[""] = one
    assert not compare.difference((scenario, entry), answers, ours=False)
    changed = [[*answers[0], ("b Heartbeat ok",)], *answers[1:]]
    assert "+     b Heartbeat ok" in compare.difference((scenario, entry), changed, ours=False)
    assert "cut off" in compare.difference((scenario, entry), "cut off", ours=False)
