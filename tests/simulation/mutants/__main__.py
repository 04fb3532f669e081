"""`python -m tests.simulation.mutants [NAME ...]`: does the simulation notice a broken machine?

Each patch beside this file breaks one rule of coordinator/groups, or of coordinator/machine.py. It is applied
to a copy of these, seeds are run against the copy until an invariant is violated, and a table says which and
when. Exit status: 0 all were caught, 1 one survived, 2 a patch no longer applies.

To refresh a patch: make its change in coordinator/groups again, write
`git diff -U2 coordinator` to the file under the lines that say what it breaks, and undo the change.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.simulation.mutants.patching import StalePatchError, build, description, names

RUNS_MAX = 300
"""Seeds after which a mutant has survived."""
TIMEOUT_S = 900
_ROOT = Path(__file__).parents[3]


@dataclass
class Hunt:
    """What became of one mutant."""

    name: str
    invariant: str = ""
    seed: int = -1
    runs: int = 0
    seconds: float = 0.0
    text: str = ""


def hunt(name: str, runs: int = RUNS_MAX) -> Hunt:
    """Run seeds against one mutant in a process of its own. Raises `StalePatchError`."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutant-") as scratch:
        place = build(name, Path(scratch).resolve())
        command = [sys.executable, "-m", "tests.simulation.mutants.hunter", str(place), "0", str(runs)]
        path = os.pathsep.join((str(place), str(_ROOT)))
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            command, cwd=place, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S
        )
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr[-2000:]}")
    found = json.loads(done.stdout.splitlines()[-1])
    return Hunt(name, seconds=time.monotonic() - began, **found)


def main() -> int:
    """Hunt all, or those named."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="mutants to hunt (default: all)")
    parser.add_argument("--runs", type=int, default=RUNS_MAX, help=f"seeds for each (default {RUNS_MAX})")
    given = parser.parse_args()
    wanted = given.names or names()
    hunts: list[Hunt] = []
    stale: list[str] = []

    def one(name: str) -> Hunt | StalePatchError:
        try:
            return hunt(name, given.runs)
        except StalePatchError as error:
            return error

    workers = min(2, os.cpu_count() or 1)
    with ThreadPoolExecutor(workers) as pool:
        for number, (name, result) in enumerate(zip(wanted, pool.map(one, wanted), strict=True), 1):
            if isinstance(result, StalePatchError):
                stale.append(str(result))
                outcome = "the patch does not apply"
            else:
                hunts.append(result)
                outcome = f"caught by {result.invariant}" if result.invariant else "SURVIVED"
                outcome += f" after {result.runs} runs, {result.seconds:.0f} s"
            print(f"[{number}/{len(wanted)}] {name}: {outcome}", flush=True)
    _table(hunts)
    for complaint in stale:
        print(f"\n{complaint}\n{_HOW_TO_REFRESH}", file=sys.stderr)
    if stale:
        return 2
    return 0 if all(one.invariant for one in hunts) else 1


_HOW_TO_REFRESH = (__doc__ or "").partition("\n\n")[2].rpartition("\n\n")[2]


def _table(hunts: list[Hunt]) -> None:
    print(f"\n{'mutant':38} {'caught by':9} {'seed':>5} {'runs':>5}  what is broken")
    for one in hunts:
        caught = one.invariant or "NOTHING"
        print(f"{one.name:38} {caught:9} {one.seed:5} {one.runs:5}  {description(one.name)}")
    caught_count = sum(bool(one.invariant) for one in hunts)
    print(f"{caught_count} of {len(hunts)} mutants were caught")


if __name__ == "__main__":
    sys.exit(main())
