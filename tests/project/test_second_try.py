"""What failed beside others gets a second try, but for what had its draw of a seed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

TESTS = """
import pytest
from hypothesis import given, strategies
from pathlib import Path

seen = Path("seen")

def worse(name):  # fails at the first try only
    seen.mkdir(exist_ok=True)
    first = not (seen / name).exists()
    (seen / name).touch()
    assert not first

def test_clock():
    worse("clock")

def test_seed(seed):
    worse("seed")

@pytest.mark.draws
def test_marked():
    worse("marked")

@given(strategies.none())
def test_given(_):
    worse("given")

def test_good():
    pass
"""


GROUPED = """
import pytest
from test_all import worse

@pytest.mark.xdist_group("one")
def test_grouped():
    worse("grouped")

@pytest.mark.xdist_group("one")
def test_fine():
    pass
"""


def tried(folder: Path, *options: str) -> dict[str, list[str]]:
    """The tests that ran, by how they ended."""
    plugins = ["-p", "tests.support.seeds", "-p", "tests.support.groups"]
    command = [sys.executable, "-m", "pytest", "-n", "1", "--dist", "loadgroup", *plugins, "-v", *options]
    env = {"PYTHONPATH": f"{Path(__file__).parents[2]}:{folder}", "PATH": ""}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=env)
    ended: dict[str, list[str]] = {}
    for how, name in re.findall(r"\] (PASSED|FAILED|ERROR) \w+\.py::test_(\w+)", done.stdout):
        ended.setdefault(how.lower(), []).append(name)
    return {how: sorted(names) for how, names in ended.items()}


def test_who_failed_is_tried_again_but_for_who_drew_a_seed(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\nmarkers = ["draws"]\n')
    (tmp_path / "test_all.py").write_text(TESTS)
    (tmp_path / "test_grouped.py").write_text(GROUPED)
    drew = ["given", "marked", "seed"]
    assert tried(tmp_path) == {
        "failed": ["clock", *drew[:1], "grouped", *drew[1:]],
        "passed": ["fine", "good"],
    }
    assert tried(tmp_path, "--last-failed", "--second-try") == {"error": drew, "passed": ["clock", "grouped"]}
