"""``python -m tests.soak --minutes 60``: a daemon, or nodes, under clients of several libraries that come, go
and are killed. The memory, descriptors, threads and CPU that it takes over time, and the latencies of
heartbeats and commits, become a page (soak.html) and figures (soak.json). Exit code 1: something grew without
bound, or a promise was broken; 2: there was no run."""

from __future__ import annotations

import argparse
import json
import random
import shutil
import signal
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.chaos import account
from tests.chaos.account import Account
from tests.chaos.director import Director, RunError
from tests.chaos.plan import Plan
from tests.chaos.processes import ROOT, Processes
from tests.chaos.targets import RINGLEADER, SINGLE, target
from tests.interop.maven import InteropError
from tests.soak.judging import MIB, Growth, growths
from tests.soak.page import Chart, Line, render
from tests.soak.samples import Sample, Spread, spread
from tests.soak.soak import Seen, Soak
from tests.support.daemon import DaemonError
from tools import proof

OUT = ROOT / "tests" / "soak" / "out"
NODES = "nodes"
OPTIONS = ("--http-listen", "127.0.0.1:0", "--tail-cache-bytes", "1048576")
"""The cache of the newest records is full in the first third of a run, and not after hours."""
LOG_LINES = 10


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    parser.add_argument("what", nargs="?", choices=("daemon", NODES), default="daemon")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, help="which faults; drawn when it is not given")
    parser.add_argument("--node-option", action="append", default=[], help="for ringleader serve; repeatable")
    parser.add_argument("--out", type=Path, help="for the page, histories and logs; emptied before")
    proof.add_option(parser)
    return parser.parse_args(arguments)


def _say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def verdict(found: Account, grown: dict[str, list[Growth]]) -> list[tuple[bool, str]]:
    """Sentences, and whether they are good ones."""
    verdicts = [(one.good, f"{process}: {one}.") for process, some in grown.items() for one in some]
    for check in found.checks:
        broken = check.violations
        verdicts.append((not broken, f"{check.name}: {check.facts:,} facts looked at, {len(broken)} broken."))
        verdicts += [(False, why) for why in broken[: account.SHOWN]]
    return verdicts + [(False, why) for why in found.complaints]


def charts(seen: Seen) -> list[Chart]:
    """Everything over time."""
    per_process: list[tuple[str, str, Any]] = [
        ("Resident memory", "MiB", lambda one: one.memory_bytes / MIB),
        ("Descriptors", "", lambda one: one.descriptors),
        ("Threads", "", lambda one: one.threads),
        ("Tasks of the event loop", "", lambda one: one.metrics.get("tasks", 0)),
        ("Connections", "", lambda one: one.metrics.get("connections", 0)),
    ]
    made = [
        Chart(title, unit, [_line(name, some, of) for name, some in seen.samples.items()])
        for title, unit, of in per_process
    ]
    made.append(Chart("CPU", "%", [Line(name, _cpu(some)) for name, some in seen.samples.items()]))
    for title, spreads in (("Heartbeats", seen.heartbeats), ("Commits", seen.commits)):
        lines = [
            Line("median", [(one.at_s, one.half_ms) for one in spreads]),
            Line("99 of 100", [(one.at_s, one.most_ms) for one in spreads]),
        ]
        made.append(Chart(f"{title}, as a client sees them", "ms", lines))
    return made


def _line(name: str, samples: list[Sample], of: Any) -> Line:
    return Line(name, [(one.at_s, float(of(one))) for one in samples])


def _cpu(samples: list[Sample]) -> list[tuple[float, float]]:
    return [
        (after.at_s, 100 * (after.cpu_s - before.cpu_s) / (after.at_s - before.at_s))
        for before, after in pairwise(samples)
        if after.at_s > before.at_s
    ]


def _latencies(seen: Seen) -> list[Spread | None]:
    return [spread(0.0, seen.took_ms.get(kind, [])) for kind in ("heartbeat", "commit")]


def _latency_rows(seen: Seen) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = [("", "calls", "median, ms", "99 of 100, ms", "longest, ms")]
    for name, one in zip(("heartbeats", "commits"), _latencies(seen), strict=True):
        if one is not None:
            rows.append((name, one.calls, one.half_ms, one.most_ms, one.longest_ms))
    return rows


def _growth_rows(grown: dict[str, list[Growth]]) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = [("process", "what", "typical", "grew", "may grow", "an hour")]
    for process, some in grown.items():
        for one in some:
            what = f"{one.name},{one.unit}" if one.unit else one.name
            values = (one.typical, one.grew, one.may_grow, one.per_hour)
            rows.append((process, what, *(round(value, 1) for value in values)))
    return rows


def write(directory: Path, about: str, seen: Seen, found: Account, grown: dict[str, list[Growth]]) -> None:
    """soak.html and soak.json."""
    judged = verdict(found, grown)
    records = [("records", "how many"), *found.records.items()]
    tables = [
        ("What may not grow, after the first third", _growth_rows(grown)),
        ("Latencies", _latency_rows(seen)),
        ("Records", records),
    ]
    page = render("A soak of Ringleader", about, judged, tables, charts(seen), seen.faults)
    (directory / "soak.html").write_text(page)
    figures = {
        "about": about,
        "good": all(good for good, _ in judged),
        "verdict": [text for _, text in judged],
        "samples": {name: [one.to_dict() for one in some] for name, some in seen.samples.items()},
        "heartbeats": [one.to_dict() for one in seen.heartbeats],
        "commits": [one.to_dict() for one in seen.commits],
        "failed calls of the probe": seen.failed,
        "faults": seen.faults,
        "account": found.to_dict(),
    }
    (directory / "soak.json").write_text(json.dumps(figures, indent=1) + "\n")


def _leave(minutes: float, what: str, seen: Seen, grown: dict[str, list[Growth]], good: bool) -> None:
    figures: dict[str, proof.Figure] = {"minutes": minutes, "faults": len(seen.faults)}
    for process, some in grown.items():
        for one in some[:2]:
            figures[f"{one.name} of {process}, typical{one.unit}"] = round(one.typical, 1)
            figures[f"{one.name} of {process}, grew by{one.unit}"] = round(one.grew, 1)
    for name, one_kind in zip(("heartbeats", "commits"), _latencies(seen), strict=True):
        if one_kind is not None:
            figures[f"{name}"] = one_kind.calls
            figures[f"{name}, 99 of 100 within ms"] = one_kind.most_ms
    proof.leave(f"soak-{what}", figures, good=good)


def main(arguments: list[str] | None = None) -> int:
    """One soak."""
    chosen = _arguments(arguments)
    seed = random.randrange(1_000_000) if chosen.seed is None else chosen.seed
    plan = Plan(seed, spark=False)
    kind = RINGLEADER if chosen.what == NODES else SINGLE
    directory = (chosen.out or OUT / chosen.what).resolve()
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    repeat = f"python -m tests.soak {chosen.what} --minutes {chosen.minutes:g} --seed {seed}"
    _say(f"{repeat}; in {directory}")
    # As Ctrl-C does: what was started is ended.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with (
            target(kind, directory, node_options=[*OPTIONS, *chosen.node_option]) as running,
            Processes(directory) as cast,
        ):
            company, soak = plan.company(running.addresses), Soak(60 * chosen.minutes)
            result = Director(company, running, cast, _say, soak).run()
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
        stable=company.stable,
        consuming=company.consuming,
        registers=company.exact,
        timed=company.committing,
        all_excused=True,  # members are killed here
    )
    grown = {name: growths(some) for name, some in soak.seen.samples.items()}
    about = f"{repeat}; {time.strftime('%Y-%m-%d %H:%M')}; {len(soak.seen.faults)} quiet faults"
    write(directory, about, soak.seen, found, grown)
    judged = verdict(found, grown)
    for good, text in judged:
        _say(text if good else f"BROKEN: {text}")
    good = all(one for one, _ in judged)
    if chosen.proof:
        _leave(chosen.minutes, chosen.what, soak.seen, grown, good)
    _say(f"{'all was kept' if good else 'BROKEN'}: {directory / 'soak.html'}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
