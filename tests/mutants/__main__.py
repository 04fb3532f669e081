"""`python -m tests.mutants [NAME ...]`: do the tests notice a broken promise outside the group machine?

Each patch beside this file breaks one line of storage, of the node's start, of the runtimes, topics,
transactions, or of the client library. It is applied to a copy of the tree, and the tests that its line
`Judge:` names are run there: one of them must fail. Exit status: 0 all were caught, 1 one survived, 2 a patch
no longer applies, or a test fails without any.

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
ROOMS = (
    "bench",
    "clients",
    "coordinator",
    "insight",
    "protocol",
    "report",
    "ringleader",
    "spark_bridge",
    "tests",
)
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


def build(patches: dict[str, str], tree: Path) -> None:
    """A copy of the whole tree, changed by patches, by their names. Raises `StalePatchError`."""
    for room in ROOMS:
        ignore = shutil.ignore_patterns(*LEFT_OUT)
        shutil.copytree(ROOT / room, tree / room, symlinks=True, ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", tree)
    for name, patch in patches.items():
        apply(name, patch, tree)


def judge(judges: list[str], patches: dict[str, str]) -> tuple[str, float]:
    """The first test that fails in a changed tree (empty: none), and the seconds it took. Raises
    `StalePatchError`."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutant-") as scratch:
        tree = Path(scratch).resolve()
        build(patches, tree)
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *judges]
        environment = {**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            command, cwd=tree, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S
        )
    if done.returncode not in (0, 1):
        raise RuntimeError(f"{list(patches)}: {done.stdout[-3000:]}{done.stderr[-1000:]}")
    failed = _FAILED.search(done.stdout)
    return failed[1] if failed else "", time.monotonic() - began


def hunt(name: str) -> tuple[str, float]:
    """The test that caught a mutant (empty: none), and the seconds it took. Raises `StalePatchError`."""
    _, judges, patch = parts(name)
    return judge(judges, {name: patch})


def main() -> int:
    """Hunt all, or those named."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", help="mutants to hunt (default: all)")
    wanted = parser.parse_args().names or names()
    worst = 0
    # A test that fails anyway would catch every mutant.
    guilty, seconds = judge(sorted({test for name in wanted for test in parts(name)[1]}), {})
    if guilty:
        print(f"{guilty} fails without any mutant", file=sys.stderr)
        return 2
    print(f"all judges pass without mutants, {seconds:.0f} s", flush=True)

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
