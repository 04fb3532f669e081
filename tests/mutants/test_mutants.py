"""Every rule still fits the code, breaks it without breaking its syntax, and names tests that exist. `make
mutants` hunts all; here a few are hunted."""

from __future__ import annotations

import ast
import shutil
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests.mutants.__main__ import LATER, SURVIVED, WHOLE, Hunt, Kept, judge, leave, simulate
from tests.mutants.drawn import changes, explained
from tests.mutants.rules import ROOT, Rule, StaleRuleError, read
from tools import proof

RULES = read()

one_process = pytest.mark.xdist_group("rules")
"""Where rules look for their places, all code is read first: once, and not on each process."""


@one_process
@pytest.mark.parametrize("name", RULES)
def test_rule_fits(name: str) -> None:
    rule = RULES[name]
    assert rule.breaks
    for test in rule.judges:
        path, _, function = test.partition("::")
        assert (ROOT / path).exists()
        assert not function or f"def {function.partition('[')[0]}(" in (ROOT / path).read_text()
    before, changed = rule.change()
    assert changed != before
    if rule.file().suffix == ".py":
        ast.parse(textwrap.dedent(changed))  # a function alone: its whole file takes ten times as long


@pytest.mark.parametrize(
    ("name", "invariants"),
    [
        ("two_leaders", {"G1"}),
        ("commit_answered_before_durable", {"A1"}),
        ("replacement_not_durable", {"G9", "O3"}),
    ],
)
def test_broken_machine_is_caught(name: str, invariants: set[str]) -> None:
    found = simulate(RULES[name], runs=60)
    assert found.caught_by.partition(" ")[0] in invariants, found.text
    seed = found.caught_by.rpartition(" ")[2]
    assert f"python -m tests.simulation --seed {seed}" in found.text


def test_broken_promise_is_caught() -> None:
    found = judge(["tests/coordinator/test_identity.py"], RULES["empty_store_counts"])
    assert found.caught_by.startswith("tests/coordinator/test_identity.py::")


@one_process
@pytest.mark.parametrize(
    ("place", "old", "complaint"),
    [
        ("Rule.vanish", "pass", r"Rule\.vanish is found nowhere any more"),
        ("coordinator/no_such.c", "pass", r"there is no coordinator/no_such\.c any more"),
        ("make_directory", "no such line", r"make_directory has these lines no more"),
    ],
)
def test_rule_that_does_not_fit_says_so(place: str, old: str, complaint: str, tmp_path: Path) -> None:
    shutil.copytree(ROOT / "coordinator", tmp_path / "coordinator", ignore=shutil.ignore_patterns("*.pyc"))
    with pytest.raises(StaleRuleError, match=complaint):
        Rule("stale", "Nothing.", place, old, "pass").apply(tmp_path)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("a < b", {"(a <= b)"}),
        ("a and not b", {"(a or not b)", "(b)"}),
        ("x = max(a, 5)", {"min(a, 5)", "6"}),
        ("x += step", {"pass"}),
        ("tell(x)", {"pass"}),
        ("x = a if b else c", {"(a)", "(c)"}),
        ("def f(x: int = 1) -> int | None: return x", {"2"}),
    ],
)
def test_changes_are_drawn(code: str, expected: set[str], tmp_path: Path) -> None:
    file = tmp_path / "code.py"
    file.write_text(code)
    assert {change.new for change in changes(file)} == expected


def test_change_replaces_what_it_names(tmp_path: Path) -> None:
    file = tmp_path / "code.py"
    file.write_text("text = 'ä' + (\n    'b' if a < b else 'c'\n)\n")
    (compared,) = (change for change in changes(file) if change.new == "(a <= b)")
    compared.apply(tmp_path)
    assert file.read_text() == "text = 'ä' + (\n    'b' if (a <= b) else 'c'\n)\n"


def test_what_is_explained_still_can_be_drawn() -> None:
    by_file: dict[str, set[tuple[str, str, str]]] = {}
    for named, why in explained().items():
        assert why
        by_file.setdefault(named[0].partition(":")[0], set()).add(named)
    for module, wanted in by_file.items():
        file = Path(*module.split(".")).with_suffix(".py")
        assert wanted <= {change.key for change in changes(file)}


def test_a_run_goes_on_where_one_over_the_same_tree_was_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, found = tmp_path / "kept", Hunt("tests/test_it.py::test_it", 2.5, "its output")
    monkeypatch.setattr(proof, "tree", lambda: "this")
    first = Kept(file)
    first.pass_(["tests/test_it.py"])
    first.hunt("late", found)
    again = Kept(file)
    assert again.passed == {"tests/test_it.py"}
    assert again.hunts == {"late": Hunt(found.caught_by, found.seconds)}
    monkeypatch.setattr(proof, "tree", lambda: "another")
    other = Kept(file)
    assert (other.passed, other.hunts) == (set(), {})
    assert (Kept(None).passed, Kept(tmp_path / "none").hunts) == (set(), {})


def test_survivors_of_a_whole_run_are_named_until_they_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[tuple[dict[str, Any], bool]] = []
    monkeypatch.setattr(proof, "leave", lambda _, figures, *, good: left.append((dict(figures), good)))
    monkeypatch.setattr(proof, "results", lambda: {"mutants": {"figures": left[-1][0], "commit": "c0"}})
    leave({"rules": 4}, ["a", "b", "c", "d"], ["a"], whole=True)
    leave({"rules": 2}, ["b", "c"], ["b"], whole=False)
    leave({"rules": 2}, ["c", "d"], ["c", "d"], whole=False)
    leave({"rules": 4}, ["a", "b", "c", "d"], ["a", "b", "c", "d"], whole=True)
    assert left == [
        ({"rules": 4, SURVIVED: "b, c, d"}, False),
        ({"rules": 4, WHOLE: "c0", SURVIVED: "c, d", LATER: "b"}, False),
        ({"rules": 4, WHOLE: "c0", LATER: "b, c, d"}, True),
        ({"rules": 4}, True),
    ]
