"""The scenarios' coverage: every difference from Kafka is explained and shown."""

from __future__ import annotations

import re
from pathlib import Path

from ringleader.protocol.frames import REQUESTS
from tests.interop.asks import APIS, KEYS, USUAL_VERSIONS
from tests.interop.language import Scenario, load

HERE = Path(__file__).parent
DIFFERENCES = Path(__file__).parents[2] / "docs" / "kafka-differences.md"

SCENARIOS = [scenario for found in load() for scenario in found.scenarios]


def rows() -> dict[str, str]:
    """The checklist: row -> why no scenario covers it, or ""."""
    found = {}
    for line in (HERE / "rows.txt").read_text().splitlines():
        match = re.fullmatch(r"([A-Z]\d+) +(\S.*)", line)
        if match is not None:
            found[match[1]] = match[2].partition(" -- ")[2]
    return found


def covered() -> dict[str, list[Scenario]]:
    """Rows with the scenarios that cover them."""
    found: dict[str, list[Scenario]] = {}
    for scenario in SCENARIOS:
        for row in scenario.covers:
            found.setdefault(row, []).append(scenario)
    return found


def named_differences() -> set[str]:
    """The first column of the tables in docs/kafka-differences.md."""
    return set(re.findall(r"^\| `([a-z-]+)` \|", DIFFERENCES.read_text(), re.MULTILINE))


def test_every_row_is_covered_or_says_why_not() -> None:
    known = rows()
    missing = [row for row, reason in known.items() if not reason and row not in covered()]
    assert not missing, f"neither covered nor explained: {' '.join(missing)}"


def test_only_rows_of_the_checklist_are_covered() -> None:
    known = rows()
    assert set(covered()) <= set(known)
    assert not [row for row in covered() if known[row]], "covered, though rows.txt says that it cannot be"


def test_every_difference_is_explained() -> None:
    named = named_differences()
    unknown = {anchor for scenario in SCENARIOS for anchor in scenario.anchors} - named
    assert not unknown, f"not in docs/kafka-differences.md: {' '.join(sorted(unknown))}"


def test_every_explained_difference_is_shown() -> None:
    shown = {anchor for scenario in SCENARIOS for anchor in scenario.anchors}
    lines = (HERE / "without_scenario.txt").read_text().splitlines()[2:]
    excused = {line.split()[0] for line in lines}
    missing = named_differences() - shown - excused
    assert not missing, f"neither in a scenario nor in without_scenario.txt: {' '.join(sorted(missing))}"
    assert not excused & shown, f"there is a scenario now: {' '.join(sorted(excused & shown))}"
    assert excused <= named_differences()


def test_a_difference_is_one() -> None:
    same = [
        f"{scenario.name}: {step.command}"
        for scenario in SCENARIOS
        for step in scenario.steps
        if step.anchor and step.ours == step.answers
    ]
    assert not same, f"`differs:` where nothing differs: {same}"


def test_there_are_many_scenarios_and_titles_are_told_apart() -> None:
    names = [scenario.name for scenario in SCENARIOS]
    assert len(names) >= 300
    assert len(names) == len(set(names))


def played_versions() -> set[tuple[str, int]]:
    """API and version of every request that a step names."""
    found = set()
    for scenario in SCENARIOS:
        for entry in scenario.entries:
            for step in scenario.steps:
                for api, version in _sent(step.command):
                    chosen = entry.version(api) if version is None else version
                    found.add((api, USUAL_VERSIONS[api] if chosen is None else chosen))
    return found


def _sent(command: str) -> list[tuple[str, int | None]]:
    words = command.split()
    if len(words) > 1 and words[1] in APIS:
        given = re.fullmatch(r"v(\d+)", words[2]) if len(words) > 2 else None
        return [(words[1], int(given[1]) if given else None)]
    return [("JoinGroup", None)] if " joins" in command else []


BY_ID = {("OffsetCommit", 10), ("OffsetFetch", 10)}
"""Ids of topics differ from broker to broker: `clients/test_acls_on_kafka.py` sends these to both."""


def test_every_version_is_played() -> None:
    served = {
        (api, version)
        for api in APIS
        for version in range(REQUESTS[KEYS[api]].MIN_VERSION, REQUESTS[KEYS[api]].MAX_VERSION + 1)
    }
    missing = sorted(served - played_versions() - BY_ID)
    assert not missing, f"no scenario sends {missing}"
