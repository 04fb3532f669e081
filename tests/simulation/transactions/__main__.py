"""`python -m tests.simulation.transactions --seed N`: one run again. `--count K`: K fresh seeds."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable

from tests.simulation.seeds import run_seeds
from tests.simulation.transactions.world import TxnWorld, simulate

counts: Counter[str] = Counter()
"""The events of all runs."""


def run(seed: int, quiet: bool, tell: Callable[[str], None] | None) -> TxnWorld:
    """One seed."""
    world = simulate(seed, quiet=quiet, tell=tell)
    counts.update(world.checks.counts)
    return world


if __name__ == "__main__":
    meaning = "nothing goes wrong"
    status = run_seeds("tests.simulation.transactions", __doc__, 10, "--quiet", meaning, run)
    print(dict(sorted(counts.items())))
    sys.exit(status)
