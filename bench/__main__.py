"""``python -m bench [NAME...] [--quick] [--data-dir DIR]``: all benchmarks, or those named."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import (
    assignors,
    commits,
    consume,
    consumer_groups,
    failover,
    handover,
    heartbeats,
    idle_fetches,
    memory,
    mixed,
    node_commits,
    processing,
    produce,
    rebalance,
    relay,
    replay,
    secured,
    server_assignor,
    spark,
    takeover,
    watching,
)
from bench.build import NoCompilerError, compiler
from bench.filesystem import MemoryFileSystemError
from bench.plan import KAFKA, KFAKE, Plan, quick_plan
from bench.report import say
from tests.interop.maven import InteropError

BENCHMARKS: dict[str, Callable[[Plan], dict[str, Any]]] = {
    "heartbeats": heartbeats.run,
    "commits": commits.run,
    "rebalance": rebalance.run,
    "consumer_groups": consumer_groups.run,
    "mixed": mixed.run,
    "memory": memory.run,
    "idle_fetches": idle_fetches.run,
    "replay": replay.run,
    "consume": consume.run,
    "processing": processing.run,
    "produce": produce.run,
    "handover": handover.run,
    "assignors": assignors.run,
    "server_assignor": server_assignor.run,
    "failover": failover.run,
    "node_commits": node_commits.run,
    "relay": relay.run,
    "takeover": takeover.run,
    "secured": secured.run,
    "spark": spark.run,
    "watching": watching.run,
}

ON_REQUEST = {"failover", "node_commits", "relay", "secured", "spark", "takeover", "watching"}
"""Run only when they are named: they need much that the others do not."""


def main(arguments: list[str] | None = None) -> int:
    """Runs the benchmarks; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m bench", description="Ringleader's benchmarks.")
    parser.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help=f"of {', '.join(BENCHMARKS)}; all but {', '.join(ON_REQUEST)} when none",
    )
    parser.add_argument(
        "--quick", action="store_true", help="seconds instead of minutes; numbers mean little"
    )
    parser.add_argument("--data-dir", type=Path, help="where the daemon's data goes (default: bench/out)")
    parser.add_argument("--rounds", type=int, help="rounds of each measurement (default: 5)")
    parser.add_argument(
        "--without", action="append", default=[], choices=[KAFKA, KFAKE], help="leave a peer out (repeatable)"
    )
    chosen = parser.parse_args(arguments)
    unknown = [name for name in chosen.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark is called {', '.join(unknown)}")
    plan = quick_plan(chosen.data_dir) if chosen.quick else Plan(data_dir=chosen.data_dir)
    plan = plan.without(chosen.without)
    if chosen.rounds is not None:
        plan = plan.with_rounds(chosen.rounds)
    try:
        compiler()
        for name in chosen.names or [name for name in BENCHMARKS if name not in ON_REQUEST]:
            say(f"[bold]{name}[/]")
            BENCHMARKS[name](plan)
    except (NoCompilerError, MemoryFileSystemError, InteropError) as problem:
        print(problem, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
