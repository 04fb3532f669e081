"""`python -m tests.simulation.nodes --seed N`: one run again. `--count K`: K fresh seeds."""

from __future__ import annotations

import argparse
import secrets
import sys
import time
from collections import Counter

from tests.simulation.facts import ViolationError
from tests.simulation.nodes.world import simulate

SEED_BITS = 48


def main() -> int:
    """Run and report; 1 if an invariant was violated."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.nodes", description=__doc__)
    parser.add_argument("--seed", type=int, help="run this seed")
    parser.add_argument("--count", type=int, default=20, help="fresh seeds to run (default 20)")
    parser.add_argument(
        "--calm", action="store_true", help="nothing happens but to nodes: no group may notice"
    )
    parser.add_argument("--story", action="store_true", help="print all that happens")
    parser.add_argument("--keep-going", action="store_true", help="go on after a violation")
    given = parser.parse_args()
    one = given.seed is not None
    seeds = [given.seed] if one else [secrets.randbits(SEED_BITS) for _ in range(given.count)]
    steps, failed, began = 0, 0, time.process_time()
    counts: Counter[str] = Counter()
    for seed in seeds:
        try:
            world = simulate(seed, calm=given.calm, tell=print if given.story else None)
        except ViolationError as error:
            if one:
                raise
            print(error, flush=True)
            failed += 1
            if not given.keep_going:
                break
            continue
        steps += world.steps
        counts += world.checks.counts
        if one:
            print(f"seed {seed}: {world.steps} steps, trace {world.trace.hexdigest()[:16]}")
    seconds = time.process_time() - began
    print(
        f"{len(seeds)} seeds, {steps} steps, {seconds:.1f} s, {failed} failed; {dict(sorted(counts.items()))}"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
