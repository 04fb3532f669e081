"""`python -m tests.simulation.nodes --seed N`: one run again. `--count K`: K fresh seeds."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable

from tests.simulation.nodes.world import NodesWorld, simulate
from tests.simulation.seeds import run_seeds

counts: Counter[str] = Counter()
"""The events of all runs."""


def run(seed: int, calm: bool, tell: Callable[[str], None] | None) -> NodesWorld:
    """One seed."""
    world = simulate(seed, calm=calm, tell=tell)
    counts.update(world.checks.counts)
    return world


if __name__ == "__main__":
    meaning = "nothing happens but to nodes: no group may notice"
    status = run_seeds("tests.simulation.nodes", __doc__, 20, "--calm", meaning, run)
    print(dict(sorted(counts.items())))
    sys.exit(status)
