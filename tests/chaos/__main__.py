"""``python -m tests.chaos --seed N``: nodes, brokers and what is between them are broken under real clients,
then the clients' own histories are checked. Draws scenarios of tests/chaos/scenarios and mixes them; with
--faults or --rolling, faults are drawn one by one instead. Exit code 0: every promise was kept."""

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
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from subprocess import TimeoutExpired
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from bench.build import NoCompilerError
from tests.chaos import account
from tests.chaos.account import SHOWN, Account
from tests.chaos.clients.common import TOPIC
from tests.chaos.company import CHURN, Company
from tests.chaos.director import Director, RunError, Strikes
from tests.chaos.drawn import Drawn, Rolling
from tests.chaos.mix import Mix, drawn
from tests.chaos.plan import BROKERS, NODES, Plan
from tests.chaos.processes import ROOT, Processes
from tests.chaos.promises import ALL
from tests.chaos.scenario import ScenarioError, load, load_all
from tests.chaos.targets import KAFKA, RINGLEADER, SINGLE, target
from tests.interop.maven import InteropError
from tests.support.daemon import DaemonError
from tests.support.links import Links
from tools import proof
from tools.java_home import NoJavaError, system_java_home

OUT = ROOT / "tests" / "chaos" / "out"
MIXES, SIZE = 6, 2
TARGETS = (RINGLEADER, SINGLE, KAFKA)
LOG_LINES = 10
"""Of the log of a process that is the reason why there was no run."""
_console = Console(width=140)


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seed", type=int, help="which faults; drawn when it is not given")
    parser.add_argument("--target", choices=[RINGLEADER, KAFKA, SINGLE], help=f"default: {RINGLEADER}")
    parser.add_argument("--list", action="store_true", help="say which scenarios there are")
    parser.add_argument("--scenario", action="append", default=[], metavar="NAME", help="repeatable: mixed")
    parser.add_argument("--mixes", type=int, default=MIXES, help="so many runs are drawn")
    parser.add_argument("--size", type=int, default=SIZE, help="of so many scenarios each")
    parser.add_argument("--faults", type=int, help="so many, each drawn by itself, instead of scenarios")
    parser.add_argument("--rolling", choices=[NODES, BROKERS], default="", help="instead of scenarios")
    parser.add_argument("--longest-pause", type=float, default=Plan.longest_pause_s, metavar="SECONDS")
    parser.add_argument("--spark", action=argparse.BooleanOptionalAction, help="default: if it can run here")
    parser.add_argument("--node-option", action="append", default=[], help="for ringleader serve; repeatable")
    parser.add_argument("--out", type=Path, help="for histories, logs and the account; emptied before")
    proof.add_option(parser)
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
    if any(
        gap for gaps in found.gaps_by_way.values() for gap in gaps
    ):  # else nobody commits but in transactions
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
    for why in found.open:
        _say(f"NOT JUDGED: {why}")
    for why in found.complaints:
        _say(f"COMPLAINT: {why}")
    for one in found.rebalances:
        if one.group != CHURN:
            _say(f"rebalance of {one.group}: generation {one.generation}, {one.cause}; {one.why}")
    _say(f"records: {', '.join(f'{count:,} {what}' for what, count in found.records.items())}")


@dataclass(frozen=True)
class Run:
    """One run: what is set up, who takes part, what strikes them. `repeat`: how to have it again."""

    name: str
    repeat: str
    seed: int
    kind: str
    company: Callable[[Sequence[str]], Company]
    strikes: Strikes
    topics: Sequence[str] = (TOPIC,)
    promises: Sequence[str] = ALL
    through_links: bool = False
    failing_disk: bool = False
    about: Mapping[str, Any] = field(default_factory=dict)

    def play(self, directory: Path, node_options: Sequence[str]) -> Account:
        """Raises what says that it could not be made."""
        began_s = time.monotonic()
        with ExitStack() as stack:
            links = stack.enter_context(Links()) if self.through_links else None
            running = stack.enter_context(
                target(
                    self.kind,
                    directory,
                    node_options=node_options,
                    topics=self.topics,
                    links=links,
                    failing_disk=self.failing_disk,
                )
            )
            company = self.company(running.addresses)
            cast = stack.enter_context(Processes(directory))
            result = Director(company, running, cast, _say, self.strikes).run()
        found = account.take(
            result.histories,
            result.struck,
            result.settled_s,
            result.complaints,
            why=result.why,
            stable=company.stable,
            consuming=company.consuming,
            registers=company.exact,
            timed=company.committing or company.consuming,
            # Kafka's own coordinator dies with its broker, and a daemon alone has nobody to take over.
            all_excused=self.kind != RINGLEADER,
            promises=self.promises,
        )
        found.about.update(
            target=self.kind,
            seed=self.seed,
            **self.about,
            seconds=round(time.monotonic() - began_s),
            under_faults_s=round(result.ended_s - result.settled_s),
            repeat=self.repeat,
        )
        return found


def _of_plan(chosen: argparse.Namespace, seed: int, spark: bool) -> Run:
    kind = chosen.target or RINGLEADER
    plan = Plan(
        seed,
        Plan.faults if chosen.faults is None else chosen.faults,
        longest_pause_s=chosen.longest_pause,
        rolling=chosen.rolling,
        spark=spark,
    )
    repeat = f"python -m tests.chaos --seed {seed} --target {kind}"
    repeat += f" --rolling {plan.rolling}" if plan.rolling else f" --faults {plan.faults}"
    if plan.longest_pause_s != Plan.longest_pause_s:
        repeat += f" --longest-pause {plan.longest_pause_s:g}"
    return Run(
        f"{kind}-{f'rolling-{plan.rolling}' if plan.rolling else seed}",
        repeat + ("" if plan.spark else " --no-spark"),
        seed,
        kind,
        plan.company,
        Rolling(plan) if plan.rolling else Drawn(plan),
        about={"rolling": plan.rolling},
    )


def _of_mix(mix: Mix) -> Run:
    names = list(mix.scenarios)
    repeat = f"python -m tests.chaos --seed {mix.seed} --target {mix.target}"
    repeat += "".join(f" --scenario {name}" for name in names)
    return Run(
        f"{mix.target}-{'+'.join(names)}",
        repeat,
        mix.seed,
        mix.target,
        mix.company,
        mix.timeline(),
        mix.topics,
        mix.checks,
        through_links=mix.target != KAFKA,
        failing_disk=mix.failing_disk,
        about={"scenarios": names},
    )


def _runs(chosen: argparse.Namespace, seed: int, spark: bool) -> list[Run]:
    """Raises `ScenarioError`."""
    if chosen.rolling or chosen.faults is not None:
        return [_of_plan(chosen, seed, spark)]
    if chosen.scenario:
        ones = {name: load(name) for name in chosen.scenario}
        common = [kind for kind in TARGETS if all(kind in one.targets for one in ones.values())]
        kind = chosen.target or next(iter(common), "")
        if kind not in common:
            raise ScenarioError(f"{' and '.join(ones)}: not on {chosen.target or 'one target'}.")
        return [_of_mix(Mix(ones, kind, seed))]
    kind = chosen.target or RINGLEADER
    mixes = drawn(load_all(), kind, seed, chosen.mixes, chosen.size, spark=spark)
    return [_of_mix(mix) for mix in mixes]


def list_scenarios() -> None:
    """On the screen."""
    table = Table(title_justify="left")
    for name in ("scenario", "targets", "what happens"):
        table.add_column(name)
    for name, one in load_all().items():
        table.add_row(name, ", ".join(one.targets), one.says)
    _console.print(table)


def _one(run: Run, chosen: argparse.Namespace, directory: Path) -> int:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    repeat = run.repeat + "".join(f" --node-option={option}" for option in chosen.node_option)
    _say(f"{repeat}; in {directory}")
    try:
        found = run.play(directory, chosen.node_option)
    except (RunError, InteropError, DaemonError, NoCompilerError, TimeoutError, TimeoutExpired) as error:
        first, *rest = str(error).splitlines() or [type(error).__name__]
        _say("\n".join([first, *rest[-LOG_LINES:]]))
        return 2
    (directory / "account.json").write_text(json.dumps(found.to_dict(), indent=2) + "\n")
    show(found)
    if chosen.proof:
        figures: dict[str, proof.Figure] = {
            "faults": len(found.faults),
            "facts looked at": sum(check.facts for check in found.checks),
            "calls of clients": sum(sum(calls.values()) for calls in found.calls.values()),
            "target": run.kind,
            "promises broken": sum(bool(check.violations) for check in found.checks),
        }
        proof.leave("chaos", figures, good=found.good)
    _say(f"{'every promise was kept' if found.good else 'BROKEN'} ({len(found.faults)} faults): {repeat}")
    return 0 if found.good else 1


def main(arguments: list[str] | None = None) -> int:
    """The exit code: 0 all promises were kept, 1 one was broken, 2 a run could not be made."""
    chosen = _arguments(arguments)
    seed = random.randrange(1_000_000) if chosen.seed is None else chosen.seed
    spark = _spark_is_there() if chosen.spark is None else chosen.spark
    # As Ctrl-C does: what was started is ended.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if chosen.list:
            list_scenarios()
            return 0
        runs = _runs(chosen, seed, spark)
    except ScenarioError as error:
        _say(str(error))
        return 2
    if not chosen.scenario and chosen.faults is None and not chosen.rolling:
        _say(f"seed {seed}: {len(runs)} runs")
    codes = []
    for run in runs:
        where = chosen.out if chosen.out is not None and len(runs) == 1 else (chosen.out or OUT) / run.name
        codes.append(_one(run, chosen, where.resolve()))
    for run, code in zip(runs, codes, strict=True):
        if code:
            _say(f"{'BROKEN' if code == 1 else 'NOT MADE'}: {run.repeat}")
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
