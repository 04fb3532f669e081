"""`python -m tests.mutants [NAME ...]`: do the tests notice a broken promise outside the group machine?

Each patch beside this file breaks one line of storage, of the node's start, of the runtimes, topics or
transactions. It is applied to a copy of the tree, and the tests that its line `Judge:` names are run there:
one of them must fail. Exit status: 0 all were caught, 1 one survived, 2 a patch no longer applies.

To refresh a patch: make its change again, write `git diff -U2` of the file under the lines that say what it
breaks, and undo the change.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.simulation.mutants.patching import StalePatchError, apply

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
TIMEOUT_S = 600
ROOMS = ("bench", "clients", "coordinator", "protocol", "ringleader", "spark_bridge", "tests")
LEFT_OUT = ("__pycache__", "*.pyc", ".hypothesis", "kfake", "spark_connector", "results")

_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


def names() -> list[str]:
    """All mutants."""
    return sorted(path.stem for path in HERE.glob("*.patch"))


def parts(name: str) -> tuple[str, list[str], str]:
    """What is broken, the tests that should see it, and the whole patch. Raises `StalePatchError`."""
    patch = (HERE / f"{name}.patch").read_text()
    head = patch.partition("--- ")[0].split("Judge:")
    if len(head) != 2 or not head[1].split():
        raise StalePatchError(f"{name}: there is no line `Judge:` with tests in it")
    return head[0].strip().replace("\n", " "), head[1].split(), patch


def build(name: str, tree: Path) -> list[str]:
    """A copy of the whole tree with one line broken; the tests to run in it. Raises `StalePatchError`."""
    _, judges, patch = parts(name)
    for room in ROOMS:
        ignore = shutil.ignore_patterns(*LEFT_OUT)
        shutil.copytree(ROOT / room, tree / room, symlinks=True, ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", tree)
    apply(name, patch, tree)
    return judges


def hunt(name: str) -> tuple[str, float]:
    """The test that caught a mutant (empty: none), and the seconds it took. Raises `StalePatchError`."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutant-") as scratch:
        tree = Path(scratch).resolve()
        judges = build(name, tree)
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *judges]
        environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S
        )
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{name}: {done.stdout[-3000:]}{done.stderr[-1000:]}")
    caught = _FAILED.search(done.stdout)
    return caught[1] if caught else "", time.monotonic() - began


def main() -> int:
    """Hunt all, or those named."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="mutants to hunt (default: all)")
    wanted = parser.parse_args().names or names()
    worst = 0

    def one(name: str) -> tuple[str, float] | StalePatchError:
        try:
            return hunt(name)
        except StalePatchError as error:
            return error

    with ThreadPoolExecutor(min(2, os.cpu_count() or 1)) as pool:
        for number, (name, result) in enumerate(zip(wanted, pool.map(one, wanted), strict=True), 1):
            if isinstance(result, StalePatchError):
                outcome, worst = str(result), 2
            else:
                caught, seconds = result
                worst = max(worst, 0 if caught else 1)
                outcome = f"{seconds:3.0f} s, {f'caught by {caught}' if caught else 'SURVIVED'}"
            print(f"[{number}/{len(wanted)}] {name}: {outcome}", flush=True)
    return worst


if __name__ == "__main__":
    sys.exit(main())
