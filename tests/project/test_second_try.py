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


def tried(folder: Path, *options: str) -> list[str]:
    command = [sys.executable, "-m", "pytest", "-n", "1", "-p", "tests.support.seeds", "-q", *options]
    env = {"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": ""}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=env)
    return sorted(re.findall(r"^(?:FAILED|ERROR) test_all.py::test_(\w+)", done.stdout, re.MULTILINE))


def test_who_drew_a_seed_gets_no_second_draw(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\nmarkers = ["draws"]\n')
    (tmp_path / "test_all.py").write_text(TESTS)
    assert tried(tmp_path) == ["clock", "given", "marked", "seed"]
    assert tried(tmp_path, "--last-failed", "--second-try") == ["given", "marked", "seed"]
