"""docs/performance.md has the last numbers of each benchmark, whenever that ran."""

from __future__ import annotations

import re
from typing import Any

import pytest

from bench.document import BEGIN, DOCUMENT, END, numbers


def replayed(seconds: float, cpu: str = "some CPU", wanted: tuple[str, ...] = ("a start",)) -> dict[str, Any]:
    machine = {
        "cpus": 2,
        "cpu": cpu,
        "kernel": "Linux",
        "python": "CPython",
        "compiler": "cc",
        "load_average_after": seconds,
    }
    return {
        "machine": machine,
        "brokers": {cpu: "a peer"},
        "goals": [
            {"name": name, "peer": "nobody", "ratio": seconds, "wanted": "at least 1", "reached": True}
            for name in wanted
        ],
        "results": {
            "empty_s": seconds,
            "full_s": seconds,
            "offsets": 7,
            "resident_mib": seconds,
            "data_mib": 1,
        },
    }


def remembered(mib: float) -> dict[str, Any]:
    results = {
        "start_mib": mib,
        "members_mib_per_1000": 1.0,
        "group_members": 5,
        "connections_mib_per_1000": 1.0,
    }
    return replayed(1.0, wanted=("little memory", "less memory")) | {"results": results}


def test_a_section_without_a_new_run_stays_with_its_goals() -> None:
    both = numbers({"memory": remembered(33.0), "replay": replayed(1.5)})
    assert numbers({}, both) == both
    after = numbers({"replay": replayed(2.5, "another CPU", ("a start", "a restart"))}, both)
    assert "| daemon, idle | 33 |" in after
    assert "| no offsets | 2.50 |" in after
    assert "1.50" not in after
    goals = re.findall(r"^\| (.*) \| nobody \| (.*) \| at least 1 ", after, re.MULTILINE)
    assert goals == [
        ("little memory", "1.000"),
        ("less memory", "1.000"),
        ("a start", "2.500"),
        ("a restart", "2.500"),
    ]
    assert "2 CPUs (some CPU), Linux, CPython, cc (memory)." in after
    assert "2 CPUs (another CPU), Linux, CPython, cc (replay)." in after
    assert "- some CPU: a peer." in after
    assert "- another CPU: a peer." in after
    again = numbers({"replay": replayed(1.5)}, numbers({"memory": remembered(33.0)}, after))
    assert [line for line in again.splitlines() if line.startswith(("|", "#"))] == [
        line for line in both.splitlines() if line.startswith(("|", "#"))
    ]


def test_goals_of_no_section_are_not_thrown_away() -> None:
    both = numbers({"memory": remembered(33.0), "replay": replayed(1.5)})
    with pytest.raises(ValueError, match="1 goals are of no section"):
        numbers({}, both.replace('"goals": 1', '"goals": 0'))


def test_the_page_comes_back_as_it_is() -> None:
    page = DOCUMENT.read_text().partition(BEGIN)[2].partition(END)[0]
    assert "\n" + numbers({}, page) == page
