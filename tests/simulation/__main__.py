"""`python -m tests.simulation --seed N`: one run again. `--count K`: K fresh seeds."""

from __future__ import annotations

import argparse
import secrets
import sys
import time

from tests.simulation.facts import ViolationError
from tests.simulation.world import check_clocks, simulate

SEED_BITS = 48


def main() -> int:
    """Run and report; 1 if an invariant was violated."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="run this seed")
    parser.add_argument("--count", type=int, default=40, help="fresh seeds to run (default 40)")
    parser.add_argument("--clocks", action="store_true", help="compare with a run whose wall clock is steady")
    parser.add_argument("--story", action="store_true", help="print all that happens")
    parser.add_argument("--keep-going", action="store_true", help="go on after a violation")
    given = parser.parse_args()
    one = given.seed is not None
    seeds = [given.seed] if one else [secrets.randbits(SEED_BITS) for _ in range(given.count)]
    steps, failed, began = 0, 0, time.process_time()
    for seed in seeds:
        try:
            if given.clocks:
                check_clocks(seed)
                continue
            world = simulate(seed, tell=print if given.story else None)
        except ViolationError as error:
            if one:
                raise
            print(error, flush=True)
            failed += 1
            if not given.keep_going:
                break
            continue
        steps += world.steps
        if one:
            print(f"seed {seed}: {world.steps} steps, trace {world.trace.hexdigest()[:16]}")
    seconds = time.process_time() - began
    if not one:
        print(f"{len(seeds)} seeds, {steps} steps, {seconds:.1f} s, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
