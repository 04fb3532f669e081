"""Our server, in simulated time, gives the answers that the scenario files have from Apache Kafka."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interop.compare import difference, plays_of
from tests.interop.language import SCENARIOS, Entry, Scenario, load, parse, render
from tests.interop.simulated import play_simulated

_PLAYS = [
    pytest.param(scenario, entry, id=" ".join(filter(None, (scenario.name, entry.label))))
    for scenario, entry in plays_of(load())
]


@pytest.mark.parametrize(("scenario", "entry"), _PLAYS)
def test_scenario(scenario: Scenario, entry: Entry) -> None:
    # Unlike: see whether the difference is wanted, and scenarios/README.md for how to say so.
    differs = difference((scenario, entry), play_simulated(scenario, entry), ours=True)
    assert not differs, differs


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.txt")), ids=lambda path: path.stem)
def test_files_are_written_as_they_are_read(path: Path) -> None:
    assert render(parse(path.read_text(), path)) == path.read_text()
