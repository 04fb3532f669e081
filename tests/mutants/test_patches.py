"""Every mutant still fits the code, breaks it without breaking its syntax, and names tests that exist."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

from tests.mutants.__main__ import ROOT, names, parts
from tests.simulation.mutants.patching import apply

BROKEN = ("clients", "coordinator")


def test_there_are_mutants() -> None:
    assert len(names()) >= 40


@pytest.mark.parametrize("name", names())
def test_mutant_applies(name: str, tmp_path: Path) -> None:
    what, judges, patch = parts(name)
    assert what
    for judge in judges:
        path, _, test = judge.partition("::")
        assert (ROOT / path).exists()
        assert not test or f"def {test}(" in (ROOT / path).read_text()
    for room in BROKEN:
        shutil.copytree(ROOT / room, tmp_path / room, ignore=shutil.ignore_patterns("*.pyc"))
    apply(name, patch, tmp_path)
    changed = [
        path
        for room in BROKEN
        for path in (tmp_path / room).rglob("*.py")
        if path.read_text() != (ROOT / path.relative_to(tmp_path)).read_text()
    ]
    assert len(changed) == 1
    ast.parse(changed[0].read_text())
