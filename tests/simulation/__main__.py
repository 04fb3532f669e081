"""`python -m tests.simulation --seed N`: one run again. `--count K`: K fresh seeds."""

from __future__ import annotations

import sys
from collections.abc import Callable

from tests.simulation.seeds import run_seeds
from tests.simulation.world import World, check_clocks, simulate


def run(seed: int, clocks: bool, tell: Callable[[str], None] | None) -> World:
    """One seed."""
    return check_clocks(seed) if clocks else simulate(seed, tell=tell)


if __name__ == "__main__":
    meaning = "compare with a run whose wall clock is steady"
    sys.exit(run_seeds("tests.simulation", __doc__, 40, "--clocks", meaning, run))
