"""The results of a benchmark: a JSON file in bench/out and a table on the screen."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.build import compiler

_console = Console(width=120)


@dataclass(frozen=True, slots=True)
class Goal:
    """A stated goal and what was measured: Ringleader's figure divided by that of `peer` in the same run.

    A rate has to be `bound` times the peer's at least; a time (`is_time`) at most.
    """

    name: str
    peer: str
    ratio: float
    bound: float
    is_time: bool = False

    @property
    def reached(self) -> bool:
        """Whether the goal holds."""
        return self.ratio <= self.bound if self.is_time else self.ratio >= self.bound

    @property
    def wanted(self) -> str:
        """The goal in words."""
        return f"at {'most' if self.is_time else 'least'} {self.bound:g}"

    def to_dict(self) -> dict[str, Any]:
        """For the JSON file."""
        return {
            "name": self.name,
            "peer": self.peer,
            "ratio": self.ratio,
            "wanted": self.wanted,
            "reached": self.reached,
        }


def median(values: Iterable[float]) -> float:
    """The median of the rounds."""
    return statistics.median(list(values))


def by_phase(
    rounds: Mapping[str, Sequence[Mapping[str, Any]]], phases: Iterable[str], keys: Sequence[str]
) -> dict[str, dict[str, dict[str, float]]]:
    """The medians of the rounds, by phase, then by server."""
    return {
        phase: {
            name: {key: median(one[phase][key] for one in measured) for key in keys}
            for name, measured in rounds.items()
        }
        for phase in phases
    }


def _first_line(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()[0] if done.returncode == 0 and done.stdout else "unknown"


def _cpu_model() -> str:
    info = Path("/proc/cpuinfo")
    for line in info.read_text().splitlines() if info.exists() else []:
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or "unknown"


def machine() -> dict[str, Any]:
    """The machine that the numbers were measured on."""
    return {
        "cpu": _cpu_model(),
        "cpus": os.cpu_count(),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "compiler": _first_line([compiler(), "--version"]),
        "load_average_after": os.getloadavg()[0],
        "commit": _first_line(["git", "rev-parse", "--short", "HEAD"]),
    }


def save(directory: Path, name: str, result: dict[str, Any], goals: Sequence[Goal] = ()) -> Path:
    """Writes NAME.json and returns its path."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}.json"
    whole = {
        "benchmark": name,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        **result,
        "goals": [goal.to_dict() for goal in goals],
    }
    path.write_text(json.dumps(whole, indent=2) + "\n")
    return path


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Prints a table; numbers stand on the right."""
    drawn = Table(title=title, title_justify="left")
    for index, column in enumerate(columns):
        drawn.add_column(column, justify="left" if index == 0 else "right")
    for row in rows:
        drawn.add_row(*(f"{cell:,.0f}" if isinstance(cell, float) else str(cell) for cell in row))
    _console.print(drawn)


def print_goals(goals: Sequence[Goal]) -> None:
    """One line for each goal: ratio, goal, reached or missed."""
    for goal in goals:
        word = "[green]reached[/]" if goal.reached else "[red]missed[/]"
        say(f"  {goal.name}: {goal.ratio:.3f} of {goal.peer}, goal {goal.wanted}: {word}")


def say(text: str) -> None:
    """A line of progress."""
    _console.print(text, highlight=False)
