"""`python -m tests.simulation.daemon --seed N`: one run again. `--count K`: K fresh seeds.

A seed that fails is run again and again, each time with less of its plan, until nothing can be left out: the
command that is printed at last replays what remains.
"""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import time
from collections import Counter

from tests.simulation.daemon.plan import Plan, draw, from_json, shrunk
from tests.simulation.daemon.world import simulate
from tests.simulation.facts import ViolationError
from tests.simulation.seeds import SEED_BITS

SHRINK_S = 90.0
"""So much CPU time is spent on making one plan shorter."""
AS_DRAWN = "SIMULATION_AS_DRAWN"
"""Environment variable: none is made shorter."""


def explained(error: ViolationError, plan: Plan | None) -> ViolationError:
    """The same violation by as short a plan as can be found."""
    until_s, shortest = time.process_time() + SHRINK_S, error

    def fails(plan: Plan) -> bool:
        nonlocal shortest
        if time.process_time() > until_s:
            return False
        try:
            simulate(error.seed, plan)
        except ViolationError as found:
            if found.name == error.name:
                shortest = found
                return True
        return False

    shrunk(draw(error.seed) if plan is None else plan, fails)
    return shortest


def main() -> int:
    """Run and report; 1 if an invariant was violated."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.daemon", description=__doc__)
    parser.add_argument("--seed", type=int, help="run this seed")
    parser.add_argument("--plan", help="with this plan (JSON) in place of the one that the seed draws")
    parser.add_argument("--count", type=int, default=10, help="fresh seeds to run (default 10)")
    parser.add_argument("--story", action="store_true", help="print all that happens")
    parser.add_argument("--as-drawn", action="store_true", help="leave the plan of a failing seed as it is")
    given = parser.parse_args()
    plan = None if given.plan is None else from_json(given.plan)
    one = given.seed is not None
    seeds = [given.seed] if one else [secrets.randbits(SEED_BITS) for _ in range(given.count)]
    steps, began_s, counts = 0, time.process_time(), Counter[str]()
    for number, seed in enumerate(seeds, 1):
        try:
            world = simulate(seed, plan, tell=print if given.story else None)
        except ViolationError as error:
            print(error, flush=True)
            if not given.as_drawn and AS_DRAWN not in os.environ:
                print("with a shorter plan:", flush=True)
                print(explained(error, plan))
            print(f"{number} seeds, 1 failed")
            return 1
        steps += world.steps
        for what, count in world.checks.counts.items():
            counts[what] = max(counts[what], count) if what.startswith("most ") else counts[what] + count
        if one:
            print(f"seed {seed}: {world.steps} steps, trace {world.trace.hexdigest()}")
    print(f"{len(seeds)} seeds, {steps} steps, {time.process_time() - began_s:.1f} s, 0 failed")
    print(dict(sorted(counts.items())))
    return 0


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets is a part of the run
        again = [sys.executable, "-m", "tests.simulation.daemon", *sys.argv[1:]]
        os.execve(sys.executable, again, {**os.environ, "PYTHONHASHSEED": "0"})
    sys.exit(main())
