"""The price of `make test`, minute by minute: the table in docs/architecture.md, and which tests begin first.

`make test` leaves what each test cost in .venv/costs.json; `python -m tools.minutes` keeps of it, in
tests/costs.json, what the table shows and the tests that take long. tests/minutes.toml says what the tests
of a folder, a file or one test are for; a test counts under the longest name that it begins with.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
SENTENCES = ROOT / "tests" / "minutes.toml"
KEPT = ROOT / "tests" / "costs.json"
LEFT = ROOT / ".venv" / "costs.json"
BEGIN, END = "<!-- minutes: begin -->", "<!-- minutes: end -->"
LONG_S = 4.0
"""Seconds of a test that begins before those that take less."""


class Row(NamedTuple):
    """The cost of the tests under one name: their count, CPU seconds, and seconds on the clock."""

    tests: int
    cpu_s: float
    clock_s: float


class Costs(NamedTuple):
    """The part of a run that is kept."""

    rows: Mapping[str, Row]
    long: Mapping[str, float]
    """Seconds on the clock of each test that takes long, the longest first."""


class UnknownTestError(Exception):
    """No sentence says what a test is for."""


def sentences(file: Path = SENTENCES) -> dict[str, str]:
    """The reasons for the tests under each name."""
    found: dict[str, str] = tomllib.loads(file.read_text())
    return found


def name_of(test: str, names: Iterable[str]) -> str:
    """The longest of `names` that a test begins with. Raises UnknownTestError."""
    found = [one for one in names if test == one or test.startswith((f"{one}/", f"{one}::", f"{one}["))]
    if not found:
        raise UnknownTestError(f"{SENTENCES.name} does not say what {test} is for.")
    return max(found, key=len)


def summed(costs: Mapping[str, Sequence[float]], names: Iterable[str]) -> Costs:
    """`costs`: seconds on the clock and CPU seconds of each test. Raises UnknownTestError."""
    rows, none = dict[str, Row](), Row(0, 0.0, 0.0)
    names = list(names)
    for test, (clock_s, cpu_s) in costs.items():
        name = name_of(test, names)
        row = rows.get(name, none)
        rows[name] = Row(row.tests + 1, row.cpu_s + cpu_s, row.clock_s + clock_s)
    long = sorted((-clock_s, test) for test, (clock_s, _) in costs.items() if clock_s >= LONG_S)
    return Costs(
        {name: Row(row.tests, round(row.cpu_s, 1), round(row.clock_s, 1)) for name, row in rows.items()},
        {test: round(-negative_s, 1) for negative_s, test in long},
    )


def kept(file: Path = KEPT) -> Costs:
    """The costs that were kept of the last run."""
    found = json.loads(file.read_text())
    return Costs({name: Row(*row) for name, row in found["rows"].items()}, found["long"])


def keep(costs: Costs, file: Path = KEPT) -> None:
    """One line for each name and for each long test."""
    parts = []
    for part, found in costs._asdict().items():
        lines = ",\n".join(f"    {json.dumps(name)}: {json.dumps(value)}" for name, value in found.items())
        parts.append(f'  "{part}": {{\n{lines}\n  }}')
    file.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def table(costs: Costs, texts: Mapping[str, str]) -> str:
    """The dearest first."""
    lines = ["| tests | count | CPU seconds | what they buy |", "|---|---|---|---|"]
    rows = sorted(costs.rows.items(), key=lambda one: -one[1].cpu_s)
    for name, row in rows:
        path = name.removeprefix("tests/")
        lines.append(f"| `{path}` | {row.tests:,} | {row.cpu_s:,.0f} | {texts[name]} |")
    tests, cpu_s = sum(row.tests for _, row in rows), sum(row.cpu_s for _, row in rows)
    lines.append(f"| all | {tests:,} | {cpu_s:,.0f} | |")
    return "\n".join(lines)


def with_table(page: str, written: str) -> str:
    """The page with this table between its two marks."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{written}\n{END}{after}"


def main() -> int:
    """Keep what the last run left, and write the table; 1 if a test has no sentence."""
    parser = argparse.ArgumentParser(prog="python -m tools.minutes", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, default=[LEFT], help="from `pytest --costs FILE`")
    given = parser.parse_args()
    texts = sentences()
    costs: dict[str, Sequence[float]] = {}
    for file in given.files:
        costs |= json.loads(file.read_text())
    try:
        found = summed(costs, texts)
    except UnknownTestError as error:
        print(error, file=sys.stderr)
        return 1
    keep(found)
    PAGE.write_text(with_table(PAGE.read_text(), table(found, texts)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
