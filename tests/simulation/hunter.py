"""Runs seeds against the `ringleader` that is first on the path until an invariant is violated.

    python -m tests.simulation.hunter DIRECTORY FIRST COUNT

Its last line is JSON: {"invariant": "G1", "seed": 3, "runs": 4, "text": ...}, or {"runs": COUNT} if all held.
"""

from __future__ import annotations

import json
import sys

from ringleader.coordinator.groups import shard
from tests.simulation.facts import ViolationError
from tests.simulation.world import check_clocks, simulate

CLOCKS_EVERY = 10
"""This many runs come before one pair of runs that differ in their wall clocks."""


def main(directory: str, first: int, count: int) -> None:
    """Hunt."""
    if not shard.__file__.startswith(directory):
        sys.exit(f"the machine is {shard.__file__}, not the mutant in {directory}")
    for run in range(1, count + 1):
        seed = first + run - 1
        try:
            simulate(seed)
            if run % CLOCKS_EVERY == 0:
                check_clocks(seed)
        except ViolationError as error:
            print(json.dumps({"invariant": error.name, "seed": seed, "runs": run, "text": str(error)}))
            return
    print(json.dumps({"runs": count}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
