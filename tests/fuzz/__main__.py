"""`make fuzz MINUTES=n`: all targets on all cores for so long; names of targets choose some, `native` is the
compiled code under the sanitizers of the C compiler. `--replay TARGET FILE`: one input again.
`--keep TARGET FILE --remark "..."`: a find goes to the corpus; without a file, what the encoders make."""

from __future__ import annotations

import argparse
import importlib.util
import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tests.fuzz import corpus
from tests.fuzz.child import OUT, folders
from tests.fuzz.native import NATIVE, run_native
from tests.fuzz.target import NAMES, judge, load
from tests.support import library
from tests.support.library import BUILT
from tools import proof
from tools.build_native import SOURCE, NotBuiltError, compile_native

ROOT = Path(__file__).resolve().parents[2]
_EXECUTED = re.compile(r"stat::number_of_executed_units:\s*(\d+)")
_PROGRESS = re.compile(r"#(\d+)\t.*?cov: (\d+) ft: (\d+)")
_COUNTED = re.compile(r"^#(\d+)", re.MULTILINE)


class Outcome(NamedTuple):
    """The result of one target's run."""

    name: str
    seconds: float
    executions: int
    covered: int
    features: int
    finds: list[Path]
    text: str


def run(name: str, seconds: int, environment: dict[str, str]) -> Outcome:
    """One target in a process of its own."""
    began_s, (_, found) = time.monotonic(), folders(name)
    before = set(found.glob("*"))
    command = [sys.executable, "-m", "tests.fuzz.child", name, str(seconds)]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    progress = [*_PROGRESS.finditer(done.stdout)]
    counted = _EXECUTED.search(done.stdout)
    numbers = [int(count) for count in _COUNTED.findall(done.stdout)]
    executions = int(counted[1]) if counted else max(numbers, default=0)
    covered, features = (int(progress[-1][2]), int(progress[-1][3])) if progress else (0, 0)
    fresh = sorted(set(found.glob("*")) - before)
    if done.returncode and not fresh:
        fresh = [found / "none"]  # it did not even come to an input
    return Outcome(name, time.monotonic() - began_s, executions, covered, features, fresh, done.stdout)


def compiled() -> dict[str, str]:
    """The environment of processes that read batches in both ways, whatever is installed."""
    made = OUT / "compiled.abi3.so"
    made.parent.mkdir(parents=True, exist_ok=True)
    try:
        compile_native(ROOT / SOURCE, made)
    except NotBuiltError as error:
        print(f"batches are read by Python alone: {error}")
        return {**os.environ}
    return {**os.environ, BUILT: str(made)}


def fuzz(names: list[str], minutes: float, *, leaves: bool = False) -> int:
    """All of them, side by side as there are cores; the exit code. `leaves`: figures for docs/proof.md."""
    cores = os.cpu_count() or 1
    seconds = max(5, int(60 * minutes * cores / len(names)))
    watched = importlib.util.find_spec("atheris") is not None
    print(f"{len(names)} targets on {cores} cores, {seconds} s each")
    if not watched:
        print("atheris is not installed here: inputs are drawn without a look at what they reach")
    environment = compiled()
    with tempfile.TemporaryDirectory(dir=_fast()) as directory, ThreadPoolExecutor(cores) as pool:
        environment["TMPDIR"] = directory
        outcomes = [
            pool.submit(run, name, seconds, environment) if name != NATIVE else pool.submit(_native, seconds)
            for name in names
        ]
        print(f"{'target':14} {'seconds':>8} {'executions':>11} {'coverage':>9} {'features':>9}  finds")
        found, executions, began_s = 0, 0, _processor_s()
        for one in outcomes:
            done = one.result()
            found += len(done.finds)
            executions += done.executions
            print(
                f"{done.name:14} {done.seconds:8.0f} {done.executions:11,} {done.covered or '-':>9} "
                f"{done.features or '-':>9}  {len(done.finds)}",
                flush=True,
            )
            for path in done.finds:
                print(_finding(done.text))
                print(f"The same again: {_again(done.name, path)}")
    if leaves:
        spent_s = _processor_s() - began_s
        figures = {"inputs": executions, "minutes on one core": round(spent_s / 60, 1), "targets": len(names)}
        adds = ("minutes on one core", "inputs")
        proof.leave("fuzz", {**figures, "finds": found}, good=not found, adds=adds)
    return 1 if found else 0


def _processor_s() -> float:
    """CPU time of all processes that have ended: beside other work a minute of clock is less of a core."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _fast() -> str | None:
    """Where files are in memory, for what is written and synced for each input."""
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _native(seconds: int) -> Outcome:
    began_s = time.monotonic()
    done = run_native(seconds)
    counted = _EXECUTED.search(done.text)
    finds = [] if done.passed else [OUT / NATIVE]
    return Outcome(
        NATIVE, time.monotonic() - began_s, int(counted[1]) if counted else 0, 0, 0, finds, done.text
    )


def _finding(text: str) -> str:
    """The report of a run about its find, without its own figures."""
    own = ("INFO", "WARNING", "#", "0x", "stat::", "MS: ")
    return "\n".join([line[:300] for line in text.splitlines() if not line.startswith(own)][-40:])


def _again(name: str, path: Path) -> str:
    if name == NATIVE:
        return f"{sys.executable} -m tests.fuzz native --minutes 1"
    return f"{sys.executable} -m tests.fuzz --replay {name} {path}"


def replay(name: str, path: Path) -> int:
    """Raises what the input finds."""
    built = compiled().get(BUILT)
    if built is not None:
        sys.modules["ringleader._native"] = library.load(Path(built))
    judge(load(name), path.read_bytes())
    print(f"{path} finds nothing any more")
    return 0


def keep(name: str, path: Path | None, remark: str) -> int:
    """Add to the corpus."""
    corpus.add(name, load(name).seeds() if path is None else [path.read_bytes()], remark)
    return 0


def main() -> int:
    """See the module."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="TARGET", help=f"of {', '.join((*NAMES, NATIVE))}")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--replay", nargs=2, metavar=("TARGET", "FILE"))
    parser.add_argument("--keep", nargs="+", metavar="TARGET [FILE]")
    parser.add_argument("--remark", default="")
    proof.add_option(parser)
    given = parser.parse_args()
    if strange := set(given.names) - {*NAMES, NATIVE}:
        parser.error(f"there is no target {', '.join(sorted(strange))}")
    if given.replay:
        return replay(given.replay[0], Path(given.replay[1]))
    if given.keep:
        return keep(given.keep[0], Path(given.keep[1]) if len(given.keep) > 1 else None, given.remark)
    return fuzz(given.names or [*NAMES, NATIVE], given.minutes, leaves=given.proof)


if __name__ == "__main__":
    sys.exit(main())
