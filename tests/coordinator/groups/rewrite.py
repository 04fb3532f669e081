"""`python -m tests.coordinator.groups.rewrite [file...]`: write what the machine says now into the scenario
files."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.coordinator.groups.script import rewrite


def main(names: list[str]) -> None:
    """Rewrite the named files, or all."""
    folder = Path(__file__).parent / "scenarios"
    for path in [Path(name) for name in names] or sorted(folder.glob("*.txt")):
        rewrite(path)


if __name__ == "__main__":
    main(sys.argv[1:])
