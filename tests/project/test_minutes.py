"""The price of `make test`, minute by minute: the table is that of the last run that was kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import minutes

ROOT = Path(__file__).parents[2]


def test_the_table_is_written_from_what_was_kept() -> None:
    page, sentences = minutes.PAGE.read_text(), minutes.sentences()
    assert page == minutes.with_table(page, minutes.table(minutes.kept(), sentences)), (
        "run python -m tools.minutes"
    )


def test_every_folder_has_a_sentence_and_every_name_exists() -> None:
    sentences = minutes.sentences()
    folders = {f"tests/{path.parent.name}" for path in (ROOT / "tests").glob("*/__main__.py")}
    folders |= {f"tests/{path.parent.name}" for path in (ROOT / "tests").glob("*/test_*.py")}
    folders -= {"tests/bench"}
    assert folders <= sentences.keys()
    for name in (*sentences, *minutes.kept().long):
        assert (ROOT / name.partition("::")[0]).exists(), name


def test_each_test_counts_once_and_the_longest_come_first(tmp_path: Path) -> None:
    costs = {
        "tests/a/test_b.py::test_one": (9.0, 1.25),
        "tests/a/test_b.py::test_two[x]": (10.0, 2.0),
        "tests/a/test_bc.py::test_three": (0.5, 0.25),
    }
    found = minutes.summed(costs, ["tests/a", "tests/a/test_b.py", "tests/a/test_b.py::test_two"])
    assert found.rows == {
        "tests/a": (1, 0.2, 0.5),
        "tests/a/test_b.py": (1, 1.2, 9.0),
        "tests/a/test_b.py::test_two": (1, 2.0, 10.0),
    }
    assert [*found.long] == ["tests/a/test_b.py::test_two[x]", "tests/a/test_b.py::test_one"]
    minutes.keep(found, tmp_path / "costs.json")
    assert minutes.kept(tmp_path / "costs.json") == found
    rows = minutes.table(found, dict.fromkeys(found.rows, "it")).splitlines()[2:]
    assert [row.split(" | ")[0] for row in rows] == [
        "| `a/test_b.py::test_two`",
        "| `a/test_b.py`",
        "| `a`",
        "| all",
    ]
    with pytest.raises(minutes.UnknownTestError, match=r"tests/c/test_d\.py"):
        minutes.summed({"tests/c/test_d.py::test_four": (1.0, 1.0)}, found.rows)
