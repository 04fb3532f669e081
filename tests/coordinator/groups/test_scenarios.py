"""Every scenario of scenarios/*.txt says now what its file says."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.coordinator.groups.script import Step, parse, play

_FILES = sorted((Path(__file__).parent / "scenarios").glob("*.txt"))
_SCENARIOS = [
    pytest.param(title, steps, id=f"{path.stem}: {title}")
    for path in _FILES
    for title, steps in parse(path.read_text())[1]
]


@pytest.mark.parametrize(("title", "steps"), _SCENARIOS)
def test_scenario(title: str, steps: list[Step]) -> None:
    expected = [
        f"{prefix}{line}" for _, command, answers in steps for prefix, line in _lines(command, answers)
    ]
    actual = [
        f"{prefix}{line}" for _, command, answers in play(steps) for prefix, line in _lines(command, answers)
    ]
    # A wanted change of behaviour: python -m tests.coordinator.groups.rewrite, then read the difference.
    assert actual == expected, title


def _lines(command: str, answers: list[str]) -> list[tuple[str, str]]:
    return [("> ", command), *(("    ", line) for line in answers)]


def test_files_were_found() -> None:
    assert len(_SCENARIOS) > 50
