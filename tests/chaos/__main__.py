"""``python -m tests.chaos --seed N``: nodes and brokers are killed, paused and stopped under real clients,
then the clients' own histories are checked. Exit code 0: every promise was kept."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tests.chaos import account
from tests.chaos.account import SHOWN, Account
from tests.chaos.director import Director, RunError
from tests.chaos.plan import BROKERS, CHURN, NODES, RAW_GROUPS, Plan
from tests.chaos.processes import ROOT
from tests.chaos.targets import KAFKA, RINGLEADER, SINGLE, target
from tests.interop.maven import InteropError
from tests.support.daemon import DaemonError
from tools.java_home import NoJavaError, system_java_home

OUT = ROOT / "tests" / "chaos" / "out"
LOG_LINES = 10
"""Of the log of a process that is the reason why there was no run."""
_console = Console(width=140)


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, help="which faults; drawn when it is not given")
    parser.add_argument("--target", choices=[RINGLEADER, KAFKA, SINGLE], default=RINGLEADER)
    parser.add_argument("--faults", type=int, default=Plan.faults)
    parser.add_argument("--rolling", choices=[NODES, BROKERS], default="", help="instead of faults")
    parser.add_argument("--longest-pause", type=float, default=Plan.longest_pause_s, metavar="SECONDS")
    parser.add_argument("--spark", action=argparse.BooleanOptionalAction, help="default: if it can run here")
    parser.add_argument("--node-option", action="append", default=[], help="for ringleader serve; repeatable")
    parser.add_argument("--out", type=Path, help="for histories, logs and the account; emptied before")
    return parser.parse_args(arguments)


def _spark_is_there() -> bool:
    try:
        java = system_java_home(os.environ)
    except NoJavaError:
        return False
    return java is not None and importlib.util.find_spec("pyspark") is not None


def _say(text: str) -> None:
    _console.print(f"{time.strftime('%H:%M:%S')} {escape(text)}", highlight=False)


def show(found: Account) -> None:
    """Tables on the screen."""
    faults = Table(title="Longest time without an acknowledged commit, by fault", title_justify="left")
    for name in ("fault", "times", "median, s", "longest, s"):
        faults.add_column(name, justify="left" if name == "fault" else "right")
    for way, gaps in found.gaps_by_way.items():
        faults.add_row(way, str(len(gaps)), f"{median(gaps):.2f}", f"{max(gaps):.2f}")
    _console.print(faults)
    checks = Table(title="Promises", title_justify="left")
    for name in ("promise", "facts looked at", "broken"):
        checks.add_column(name, justify="left" if name == "promise" else "right")
    for check in found.checks:
        color = "red" if check.violations else "green"
        checks.add_row(check.name, f"{check.facts:,}", f"[{color}]{len(check.violations)}[/]")
    _console.print(checks)
    for check in found.checks:
        for why in check.violations[:SHOWN]:
            _say(f"BROKEN, {check.name}: {why}")
    for why in found.complaints:
        _say(f"COMPLAINT: {why}")
    for one in found.rebalances:
        if one.group != CHURN:
            _say(f"rebalance of {one.group}: generation {one.generation}, {one.cause}; {one.why}")
    _say(f"records: {', '.join(f'{count:,} {what}' for what, count in found.records.items())}")


def main(arguments: list[str] | None = None) -> int:
    """One run; the exit code: 0 all promises were kept, 1 one was broken, 2 the run could not be made."""
    chosen = _arguments(arguments)
    seed = random.randrange(1_000_000) if chosen.seed is None else chosen.seed
    spark = _spark_is_there() if chosen.spark is None else chosen.spark
    plan = Plan(
        seed, chosen.faults, longest_pause_s=chosen.longest_pause, rolling=chosen.rolling, spark=spark
    )
    name = f"{chosen.target}-{f'rolling-{plan.rolling}' if plan.rolling else seed}"
    directory = (chosen.out or OUT / name).resolve()
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    repeat = f"python -m tests.chaos --seed {seed} --target {chosen.target}"
    repeat += f" --rolling {plan.rolling}" if plan.rolling else f" --faults {plan.faults}"
    if plan.longest_pause_s != Plan.longest_pause_s:
        repeat += f" --longest-pause {plan.longest_pause_s:g}"
    repeat += "" if plan.spark else " --no-spark"
    repeat += "".join(f" --node-option={option}" for option in chosen.node_option)
    _say(f"{repeat}; in {directory}")
    began_s = time.monotonic()
    # As Ctrl-C does: what was started is ended.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with target(chosen.target, directory, node_options=chosen.node_option) as running:
            result = Director(plan, running, directory, _say).run()
    except (RunError, InteropError, DaemonError, TimeoutError) as error:
        first, *rest = str(error).splitlines() or [type(error).__name__]
        _say("\n".join([first, *rest[-LOG_LINES:]]))
        return 2
    found = account.take(
        result.histories,
        result.struck,
        result.settled_s,
        result.complaints,
        why=result.why,
        stable=plan.stable_groups,
        consuming=plan.consuming_groups,
        registers=(*RAW_GROUPS, CHURN),
        timed=RAW_GROUPS,
        # Kafka's own coordinator dies with its broker, and a daemon alone has nobody to take over.
        all_excused=chosen.target != RINGLEADER,
    )
    found.about.update(
        target=chosen.target,
        seed=seed,
        rolling=plan.rolling,
        seconds=round(time.monotonic() - began_s),
        under_faults_s=round(result.ended_s - result.settled_s),
        repeat=repeat,
    )
    (directory / "account.json").write_text(json.dumps(found.to_dict(), indent=2) + "\n")
    show(found)
    _say(f"{'every promise was kept' if found.good else 'BROKEN'} ({len(found.faults)} faults): {repeat}")
    return 0 if found.good else 1


if __name__ == "__main__":
    sys.exit(main())
