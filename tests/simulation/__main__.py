"""`python -m tests.simulation --seed N`: one run again. `--count K`: K fresh seeds."""

from __future__ import annotations

import argparse
import secrets

from tests.simulation.world import simulate


def main() -> None:
    """Run and report; a violated invariant ends with its traceback."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="run this seed")
    parser.add_argument("--count", type=int, default=40, help="fresh seeds to run (default 40)")
    given = parser.parse_args()
    seeds = [given.seed] if given.seed is not None else [secrets.randbits(48) for _ in range(given.count)]
    for seed in seeds:
        world = simulate(seed)
        print(f"seed {seed}: {world.steps} steps, trace {world.trace.hexdigest()[:16]}")


if __name__ == "__main__":
    main()
