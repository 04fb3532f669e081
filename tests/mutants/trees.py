"""Copies of the project that are broken, judged, and mended again.

A copy keeps the byte code of what is run there: without it each judge would compile all that it imports,
which takes longer than most of them run.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from tests.mutants.rules import ROOMS, ROOT

TIMEOUT_S = 900
LEFT_OUT = ("__pycache__", "*.pyc", ".hypothesis", "kfake", "spark_connector", "results", "out")

_idle: list[tempfile.TemporaryDirectory[str]] = []
_changes = itertools.count(1)


class Change(Protocol):
    """A way to break a copy."""

    def apply(self, tree: Path) -> Path:
        """Change one file of the copy. Returns it."""


@contextmanager
def broken(change: Change | None) -> Iterator[Path]:
    """A copy of the whole tree, broken by a change; for several threads. Raises what `change.apply` does."""
    try:
        scratch = _idle.pop()
    except IndexError:
        scratch = tempfile.TemporaryDirectory(prefix="mutant-")
        _copy(Path(scratch.name).resolve())
    tree = Path(scratch.name).resolve()
    if change is not None:
        changed = change.apply(tree)
        original = (ROOT / changed.relative_to(tree)).stat()
        # Python takes byte code for that of a file by its size and the second of its time.
        seconds = int(original.st_mtime) + next(_changes)
        os.utime(changed, (seconds, seconds))
    # Not in a `finally`: a copy in which a judge did not end is used no more.
    yield tree
    shutil.rmtree(tree / "tmp", ignore_errors=True)
    if change is not None:
        shutil.copy2(ROOT / changed.relative_to(tree), changed)
    _idle.append(scratch)


def run_tests(tree: Path, tests: list[str], timeout_s: float = TIMEOUT_S) -> subprocess.CompletedProcess[str]:
    """Run tests in a copy of the tree until one fails. Raises `subprocess.TimeoutExpired`."""
    return run(
        tree, ["pytest", "-x", "-q", "-p", "no:cacheprovider", f"--basetemp={tree}/tmp", *tests], timeout_s
    )


def run(tree: Path, module: list[str], timeout_s: float = TIMEOUT_S) -> subprocess.CompletedProcess[str]:
    """Run a module of a copy, with arguments. Raises `subprocess.TimeoutExpired`."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONPYCACHEPREFIX": str(tree / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment["RINGLEADER_TESTS_WHOLE"] = "1"  # a share of them would catch it by luck
    environment["SIMULATION_AS_DRAWN"] = "1"  # nobody reads by how short a plan a mutant was caught
    command = [sys.executable, "-m", *module]
    return subprocess.run(
        command, cwd=tree, env=environment, capture_output=True, text=True, timeout=timeout_s
    )


def _copy(tree: Path) -> None:
    for room in (*ROOMS, "bench", "docs/spec", "tests"):
        ignore = shutil.ignore_patterns(*LEFT_OUT)
        shutil.copytree(ROOT / room, tree / room, symlinks=True, ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", tree)
