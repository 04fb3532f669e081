"""`python -m tests.simulation.small`: all states of a small world of the consumer protocol, level by level.

It begins with no group, then with one that has settled, and stops at the depth or when the time is over.
"""

from __future__ import annotations

import argparse
import sys

from tests.simulation.small.world import Found, SmallWorld, SmallWorldError
from tools import proof


def main() -> int:
    """The exit code: 1 if an invariant is broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.small", description=__doc__)
    parser.add_argument("--depth", type=int, default=30, help="steps (default 30)")
    parser.add_argument("--seconds", type=float, default=600, help="for each beginning (default 600)")
    proof.add_option(parser)
    given = parser.parse_args()
    results: list[Found] = []
    try:
        for formed in (False, True):
            results.append(SmallWorld(settles_every=20, formed=formed).search(given.depth, given.seconds))
            print("from a group:" if formed else "from none:", results[-1], flush=True)
    except SmallWorldError as error:
        print(error)
    good = len(results) == 2
    if given.proof:
        figures = {
            "states": sum(one.states for one in results),
            "steps": sum(one.steps for one in results),
            "states that had to settle": sum(one.settled for one in results),
            "depth from no group, all states": results[0].depth if results else 0,
            "depth from a group of three, all states": results[1].depth if good else 0,
            "invariants broken": int(not good),
        }
        proof.leave("small-worlds", figures, good=good)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
