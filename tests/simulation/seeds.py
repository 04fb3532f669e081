"""The command line of a simulation: one seed again, or fresh ones."""

from __future__ import annotations

import argparse
import secrets
import time
from collections.abc import Callable
from typing import Any

from tests.simulation.facts import ViolationError
from tools import proof

SEED_BITS = 48

Run = Callable[[int, bool, Callable[[str], None] | None], Any]
"""The world that a seed makes, whether the option is given, and the listener to the story."""


def run_seeds(program: str, about: str | None, count: int, option: str | None, meaning: str, run: Run) -> int:
    """Run and report; 1 if an invariant was violated. `option`: of this simulation alone, if it has one."""
    parser = argparse.ArgumentParser(prog=f"python -m {program}", description=about)
    parser.add_argument("--seed", type=int, help="run this seed")
    parser.add_argument("--count", type=int, default=count, help=f"fresh seeds to run (default {count})")
    parser.set_defaults(option=False)
    if option is not None:
        parser.add_argument(option, dest="option", action="store_true", help=meaning)
    parser.add_argument("--story", action="store_true", help="print all that happens")
    parser.add_argument("--keep-going", action="store_true", help="go on after a violation")
    proof.add_option(parser)
    given = parser.parse_args()
    one = given.seed is not None
    seeds = [given.seed] if one else [secrets.randbits(SEED_BITS) for _ in range(given.count)]
    steps, failed, began_s = 0, 0, time.process_time()
    for seed in seeds:
        try:
            world = run(seed, given.option, print if given.story else None)
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
    if given.proof:
        figures = {
            "seeds": len(seeds),
            "steps": steps,
            "seconds of CPU": round(time.process_time() - began_s),
        }
        judge = program.removeprefix("tests.").replace(".", "-")
        adds = ("seeds", "steps", "seconds of CPU")
        proof.leave(judge, {**figures, "seeds that failed": failed}, good=not failed, adds=adds)
    print(f"{len(seeds)} seeds, {steps} steps, {time.process_time() - began_s:.1f} s, {failed} failed")
    return 1 if failed else 0
