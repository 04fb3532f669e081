"""`python -m tests.spec`: TLC checks docs/spec, whole state graphs; ARGS are names of configurations.

`deep`, commits on two partitions, takes long, and is checked only when it is named."""

from __future__ import annotations

import argparse
import sys

from tests.spec.tlc import check
from tools import proof

CONFIGURATIONS = ("small", "topics", "classic", "migrate", "upgrade", "converges")


def main() -> int:
    """The exit code: 1 if a property does not hold."""
    parser = argparse.ArgumentParser(prog="python -m tests.spec", description=__doc__)
    parser.add_argument("names", nargs="*", default=CONFIGURATIONS)
    proof.add_option(parser)
    given = parser.parse_args()
    figures: dict[str, int] = {}
    broken = 0
    for name in given.names:
        found = check(name, timeout_s=3_600)
        print(name, found, flush=True)
        broken += bool(found.violated)
        figures[f"distinct states, {name}"] = found.distinct
        figures[f"depth, {name}"] = found.depth
    if given.proof:
        proof.leave("spec", {**figures, "properties that do not hold": broken}, good=not broken)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
