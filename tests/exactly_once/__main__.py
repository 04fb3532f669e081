"""`python -m tests.exactly_once --runs N`: runs in which workers copy records in transactions while workers
and servers are killed and frozen, as a seed decides; each prints a line. Exit code 1: a copy was lost or is
there twice; 2: a run could not be made."""

from __future__ import annotations

import argparse
import queue
import random
import sys
import tempfile
import threading
import time
from pathlib import Path

from tests.exactly_once.run import TARGETS, Outcome, one_run
from tests.exactly_once.workers import WorkerError
from tests.interop.maven import InteropError
from tests.support.daemon import DaemonError
from tools import proof

SEED_BITS = 32


def main(arguments: list[str] | None = None) -> int:
    """Run and report."""
    parser = argparse.ArgumentParser(prog="python -m tests.exactly_once", description=__doc__)
    parser.add_argument("--runs", type=int, default=20, help="how many (default 20)")
    parser.add_argument("--seed", type=int, help="of one run; drawn when it is not given")
    parser.add_argument("--target", choices=[*TARGETS], default="daemon", help="what the workers talk to")
    parser.add_argument(
        "--lanes", type=int, default=3, help="runs side by side, each with a server (default 3)"
    )
    proof.add_option(parser)
    given = parser.parse_args(arguments)
    dice = random.SystemRandom()
    seeds = (
        [given.seed] if given.seed is not None else [dice.getrandbits(SEED_BITS) for _ in range(given.runs)]
    )
    began_s, found, trouble = time.monotonic(), *_run_all(seeds, given.target, given.lanes)
    bad = [one for one in found if not one.good]
    lost, doubled = sum(len(one.lost) for one in bad), sum(len(one.doubled) for one in bad)
    print(
        f"{given.target}: {len(found)} runs in {time.monotonic() - began_s:.0f} s,"
        f" {sum(one.records for one in found):,} records, {lost} lost, {doubled} doubled"
    )
    for one in bad:
        print(f"again: python -m tests.exactly_once --target {given.target} --seed {one.seed}")
    for text in trouble:
        print(text, file=sys.stderr)
    if given.proof and found:
        _leave(given.target, found, lost, doubled)
    return 1 if bad else 2 if trouble else 0


def _run_all(seeds: list[int], target: str, lanes: int) -> tuple[list[Outcome], list[str]]:
    """The outcomes, and why a lane ended before its time."""
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for seed in seeds:
        waiting.put(seed)
    found: list[Outcome] = []
    trouble: list[str] = []

    def lane() -> None:
        try:
            with (
                tempfile.TemporaryDirectory(prefix="exactly-once-") as name,
                TARGETS[target](Path(name)) as servers,
            ):
                while not waiting.empty():
                    try:
                        seed = waiting.get_nowait()
                    except queue.Empty:
                        return
                    outcome = one_run(servers, seed)
                    found.append(outcome)
                    print(outcome, flush=True)
        except (DaemonError, InteropError, WorkerError, OSError) as error:
            trouble.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=lane) for _ in range(min(lanes, len(seeds)))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found, trouble


def _leave(target: str, found: list[Outcome], lost: int, doubled: int) -> None:
    figures = {
        f"runs on {target}": len(found),
        "records": sum(one.records for one in found),
        "kills, freezes and crashes": sum(len(one.deeds) for one in found),
    }
    proof.leave(
        f"exactly-once-{target}",
        {**figures, "records lost": lost, "records doubled": doubled},
        good=not lost and not doubled,
        adds=tuple(figures),
    )


if __name__ == "__main__":
    sys.exit(main())
