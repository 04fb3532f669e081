"""`python -m tests.simulation.consumer --seed N`: one run again. `--count K`: K fresh seeds."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable

from tests.simulation.consumer.world import World, simulate
from tests.simulation.seeds import run_seeds

counts: Counter[str] = Counter()
"""Events of all runs, by kind."""


def run(seed: int, quiet: bool, tell: Callable[[str], None] | None) -> World:
    """One seed."""
    world = simulate(seed, tell)
    counts.update(world.counts)
    return world


if __name__ == "__main__":
    status = run_seeds("tests.simulation.consumer", __doc__, 10, None, "", run)
    print(dict(sorted(counts.items())))
    sys.exit(status)
