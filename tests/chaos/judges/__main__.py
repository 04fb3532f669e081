"""``python -m tests.chaos.judges DIRECTORY``: the histories of a run, or of anything else that writes them,
judged from their files alone. The format: docs/architecture.md. Exit code 0: nothing was found, 1: something
was, 2: there is nothing to judge."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.chaos.history import read
from tests.chaos.judges.verdicts import verdicts


def main(arguments: list[str]) -> int:
    """One directory."""
    histories = [read(path) for path in sorted(Path(arguments[0]).glob("*.jsonl"))] if arguments else []
    if not histories:
        print(__doc__)
        return 2
    found = verdicts(histories)
    for check in found.checks:
        print(f"{check.name}: {check.facts} facts, {len(check.violations)} broken")
        for why in check.violations:
            print(f"  {why}")
    for why in found.open:
        print(f"not judged: {why}")
    return 1 if any(check.violations for check in found.checks) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
