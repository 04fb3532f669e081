"""Every scenario of scenarios/*.txt says now what its file says, and a restart in any place changes
nothing."""

from __future__ import annotations

import pytest

from ringleader.insight.inference.engine import Inference
from ringleader.insight.model import Commit
from tests.insight.inference.language import SCENARIOS, Scenario, World, play, scenarios

_SCENARIOS = [
    pytest.param(one, id=f"{file.stem}: {one.title}")
    for file in sorted(SCENARIOS.glob("*.txt"))
    for one in scenarios(file)
]


@pytest.mark.parametrize("scenario", _SCENARIOS)
def test_scenario(scenario: Scenario) -> None:
    # A wanted change of behaviour: python -m tests.insight.inference.rewrite, then read the difference.
    assert play(scenario) == scenario.steps


def test_the_last_commits_before_a_rebalance_are_kept() -> None:
    world = World()
    world.run("member a b; generation 1 a:orders/0; commits orders/0 every=1s; wait 3500ms; stop orders/0")
    assert [one.offset for one in world.outputs if isinstance(one, Commit)] == [10]
    world.run("generation 2 b:orders/0")
    assert [one.offset for one in world.outputs if isinstance(one, Commit)] == [10, 30]


@pytest.mark.parametrize(("later_ms", "explains"), [(10_000, True), (-5_000, False)])
def test_what_was_seen_before_a_rebalance_does_not_explain_it_later(later_ms: int, explains: bool) -> None:
    """The broker's clock may be ahead of the watcher's."""
    world = World()
    world.run("member a b topics=orders+bills; topics orders=2 bills=2")
    world.run("generation 1 a:orders/0,bills/0 b:orders/1,bills/1; wait 60s")
    world.run("member a b topics=orders; generation 2 a:orders/0 b:orders/1")
    world._now_ms += later_ms
    story = " ".join(world.run("topics orders=2"))
    assert ("again: generation 2: topics changed" in story) == explains


def test_files_were_found() -> None:
    assert len(_SCENARIOS) > 40


class _Kept:
    """A history's copy, kept as its owner would: only what `dirty` names."""

    def __init__(self) -> None:
        self._snapshots: dict[str, bytes] = {}
        self._commits: dict[str, bytes] = {}

    def keep(self, inference: Inference) -> None:
        changed, committed = inference.dirty()
        for group in changed:
            self._snapshots[group] = inference.snapshot(group)
        for group in committed:
            self._commits[group] = inference.commits_snapshot(group)

    def restored(self) -> Inference:
        inference = Inference()
        groups = sorted(self._snapshots.keys() | self._commits.keys())
        inference.restore((one, self._snapshots.get(one, b""), self._commits.get(one, b"")) for one in groups)
        return inference


@pytest.mark.parametrize("scenario", _SCENARIOS)
def test_a_restart_in_any_place_changes_nothing(scenario: Scenario) -> None:
    plain = World()
    for command, _ in scenario.steps:
        plain.run(command)
    kept = _Kept()

    def restart(inference: Inference, number: int) -> Inference:
        kept.keep(inference)
        # Every fact between generations, of which there are few; of the many ticks and commits some.
        return kept.restored() if number % 7 in (0, 3) or number < 20 else inference

    cut = World(restart)
    for command, _ in scenario.steps:
        cut.run(command)
    assert cut.outputs == plain.outputs
