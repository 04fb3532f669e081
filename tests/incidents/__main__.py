"""``python -m tests.incidents``: incidents are made in groups of real clients, then what the history says of
them is compared with what was done. Exit code 0: everything that can be known is reported right, and nothing
wrong is called certain."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Collection, Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ringleader.insight.history import History
from ringleader.insight.model import Confidence
from tests.incidents import ledger
from tests.incidents.advised import advised
from tests.incidents.commands import disagreements
from tests.incidents.conclusions import BROKER_LOG, HISTORY, Conclusions, concluded, from_history
from tests.incidents.director import KAFKA, TARGETS, direct
from tests.incidents.drawn import ENDED, drawn, longest_s
from tests.incidents.judge import CALIBRATED, ENOUGH, Judged, Score, Verdict, calibrated, calibration, judge
from tests.incidents.steps import QUICK, SPECS
from tests.incidents.team import Spec
from tests.incidents.truth import corrected, logged
from tests.interop.maven import InteropError
from tests.support.daemon import DaemonError

OUT = Path(__file__).resolve().parent / "out"
LONGEST_S = 15 * 60.0
"""Of the fixed groups; of drawn ones at least."""
COMMAND = "command"
"""The file in which the command stands that drew the groups."""
EXACT = 1.0
"""Of what the coordinator itself knows, everything has to be right."""
_console = Console(width=160)


def _arguments(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.incidents", description=__doc__)
    parser.add_argument("--seed", type=int, help="the order of the incidents; drawn when it is not given")
    parser.add_argument("--target", choices=TARGETS, default=KAFKA)
    parser.add_argument(
        "--drawn", type=int, default=0, metavar="N", help="N groups drawn by the seed, not the fixed ones"
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="groups or steps with this in their name")
    parser.add_argument("--quick", action="store_true", help="a handful, in about a minute")
    parser.add_argument("--parallel", type=int, default=10, help="how many groups at once")
    parser.add_argument("--out", type=Path, help="for ledger, history and logs; emptied before")
    parser.add_argument("--again", type=Path, metavar="OUT", help="make nothing: judge that run once more")
    parser.add_argument(
        "--tape", action="store_true", help="with --again: conclude anew from what the watcher was told"
    )
    return parser.parse_args(arguments)


def _say(text: str) -> None:
    _console.print(f"{time.strftime('%H:%M:%S')} {escape(text)}", highlight=False)


def chosen_specs(only: str, *, quick: bool) -> list[Spec]:
    """Groups with the steps that are wanted."""
    specs: Sequence[Spec] = SPECS
    if quick:
        specs = [replace(spec, steps=QUICK[spec.name]) for spec in SPECS if spec.name in QUICK]
    found = []
    for spec in specs:
        steps = spec.steps if only in spec.name else tuple(step for step in spec.steps if only in step)
        if steps:
            found.append(replace(spec, steps=steps))
    return found


def show(
    found: Sequence[Judged], unsettled: Sequence[ledger.Incident], enough: float, drawn_by: str = ""
) -> bool:
    """Tables on the screen; whether it is as it has to be. `drawn_by`: the command that drew the groups."""
    for one in found:
        if not one.good:
            _disagreement(one)
    _table("By kind of incident", found, lambda one: one.incident.kind)
    _table("By client", found, lambda one: f"{one.incident.client}, {one.incident.protocol}")
    _table("By how often members commit", found, lambda one: one.incident.commits)
    _calibration(found)
    for incident in unsettled:
        _say(f"the group did not come to rest, nothing is expected: {incident.group}: {incident.what}")
    score = Score(found)
    _say(
        f"{len(found)} incidents; of {score.knowable} that something shows,"
        f" {score.count(Verdict.RIGHT, shown=True)} told right ({score.right:.1%});"
        f" {score.count(Verdict.WRONG)} confidently wrong"
    )
    if drawn_by:
        for group in dict.fromkeys(one.incident.group for one in found if not one.good):
            _say(f"once more: {drawn_by} --only {group.split('-')[0]}-")
    return score.good(enough) and calibrated(found)


def _calibration(found: Sequence[Judged]) -> None:
    table = Table(title="By confidence: causes and departures", title_justify="left")
    for name in ("", "said", "right", "share", "has to be"):
        table.add_column(name, justify="right" if name else "left")
    counts = calibration(found)
    for confidence in (one for one in Confidence if one in counts):
        total, right = counts[confidence]
        least = CALIBRATED.get(confidence)
        table.add_row(
            confidence,
            str(total),
            str(right),
            f"{right / total:.0%}",
            "-" if least is None else f"{least:.0%}",
        )
    _console.print(table)


def _disagreement(one: Judged) -> None:
    incident = one.incident
    _say(
        f"{one.verdict.upper()}: {incident.group} ({incident.client}, {incident.protocol}, commits"
        f" {incident.commits}): {incident.what}; from {incident.began_ms} to {incident.ended_ms}"
    )
    for why in one.why:
        _say(f"    {why}")
    for rebalance in one.concluded:
        members = ", ".join(member.client_id for member in rebalance.members)
        _say(
            f"    said: {rebalance.id} generation {rebalance.generation} at {rebalance.at_ms}"
            f" (+{rebalance.at_ms - incident.began_ms} ms): {rebalance.cause}, {rebalance.confidence},"
            f" by {', '.join(rebalance.cause_members) or 'nobody'}; join {rebalance.join_ms},"
            f" leader {rebalance.leader_ms};"
            f" members: {members or 'none'}"
        )
        for line in rebalance.evidence:
            _say(f"        {line}")
        for member, how in rebalance.left.items():
            _say(f"        {member} gone: {how.why}, {how.confidence}, silent {how.silent_ms}")
            for line in how.evidence:
                _say(f"            {line}")


def _table(title: str, found: Sequence[Judged], key: object) -> None:
    by_key: dict[str, list[Judged]] = defaultdict(list)
    for one in found:
        by_key[key(one)].append(one)  # type: ignore[operator]
    table = Table(title=title, title_justify="left")
    for name in ("", "incidents", "something shows", "right", "hedged", "missed", "confidently wrong"):
        table.add_column(name, justify="right" if name else "left")
    for name, some in sorted(by_key.items()):
        score = Score(some)
        wrong = score.count(Verdict.WRONG)
        table.add_row(
            name,
            str(len(some)),
            str(score.knowable),
            *(str(score.count(verdict)) for verdict in (Verdict.RIGHT, Verdict.HEDGED, Verdict.MISSED)),
            f"[red]{wrong}[/]" if wrong else "0",
        )
    _console.print(table)


def _advice(directory: Path, incidents: Sequence[ledger.Incident], enough: float) -> bool:
    with contextlib.closing(History.open(directory / HISTORY, read_only=True)) as history:
        found = advised(history, incidents)
    table = Table(title="By finding of advice", title_justify="left")
    for name in ("", "groups it was done in", "found", "found where it was not done"):
        table.add_column(name, justify="right" if name else "left")
    for pattern, one in sorted(found.items()):
        wrong = f"[red]{', '.join(one.wrong)}[/]" if one.wrong else "0"
        table.add_row(pattern, str(len(one.found) + len(one.missed)), str(len(one.found)), wrong)
        if one.missed:
            _say(f"ADVICE MISSED: {pattern}, of {', '.join(one.missed)}")
    _console.print(table)
    hits, misses = (sum(len(getattr(one, name)) for one in found.values()) for name in ("found", "missed"))
    return hits >= enough * (hits + misses) and not any(one.wrong for one in found.values())


def _judged(
    conclusions: Conclusions, directory: Path, *, exact: bool, of: Collection[str] | None = None
) -> int:
    """`of`: these groups alone."""
    incidents = [one for one in ledger.read(directory / "ledger.jsonl") if of is None or one.group in of]
    if exact:
        incidents = [ledger.heard(one) for one in incidents]
    if (directory / BROKER_LOG).exists() and any(one.kind == ENDED for one in incidents):
        members = [member for one in conclusions.rebalances for member in (*one.before, *one.members)]
        clients = {member.member_id: member.client_id for member in members}
        incidents = corrected(incidents, logged(directory / BROKER_LOG), clients)
    found = judge(incidents, conclusions.rebalances, conclusions.events, exact=exact)
    unsettled = [one for one in incidents if not one.settled and one.kind != ENDED]
    command = directory / COMMAND
    drawn_by = command.read_text() if command.exists() else ""
    good = show(found, unsettled, EXACT if exact else ENOUGH, drawn_by)
    for why in (others := disagreements(directory / HISTORY, sorted({one.group for one in incidents}))):
        _say(why)
    good = good and not others
    if drawn_by:  # its acts are not those that advice is asked about
        return 0 if good else 1
    return 0 if _advice(directory, incidents, ENOUGH) and good else 1


class CutOffError(Exception):
    """The run was not over in time."""


async def _within(limit_s: float, work: Coroutine[Any, Any, None]) -> None:
    """Raises CutOffError, and what the work raises: a TimeoutError, too."""
    try:
        async with asyncio.timeout(limit_s) as limit:
            await work
    except TimeoutError:
        if limit.expired():
            raise CutOffError from None
        raise


def main(arguments: list[str] | None = None) -> int:
    """One run; the exit code: 0 all as it has to be, 1 it is not, 2 the run could not be made."""
    chosen = _arguments(arguments)
    if chosen.again is not None:
        exact = chosen.target != KAFKA
        conclusions = from_history(chosen.again) if not chosen.tape else concluded(chosen.again, exact=exact)
        return _judged(conclusions, chosen.again, exact=exact)
    seed = random.randrange(1_000_000) if chosen.seed is None else chosen.seed
    if chosen.drawn:
        specs = [spec for number in range(chosen.drawn) if chosen.only in (spec := drawn(seed, number)).name]
    else:
        specs = chosen_specs(chosen.only, quick=chosen.quick)
    if not specs:
        _say(f"there is neither a group nor a step with {chosen.only!r} in its name")
        return 2
    directory = (chosen.out or OUT / f"{chosen.target}-{seed}").resolve()
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    all_of_it = f"python -m tests.incidents --seed {seed} --target {chosen.target}"
    all_of_it += f" --drawn {chosen.drawn}" if chosen.drawn else ""
    repeat = all_of_it + (f" --only {chosen.only}" if chosen.only else "")
    repeat += " --quick" if chosen.quick else ""
    _say(f"{repeat}; in {directory}")
    if chosen.drawn:
        (directory / COMMAND).write_text(all_of_it)
    limit_s = max(LONGEST_S, longest_s(specs, chosen.parallel)) if chosen.drawn else LONGEST_S
    exact = chosen.target != KAFKA
    try:
        asyncio.run(_within(limit_s, direct(chosen.target, specs, seed, directory, chosen.parallel, _say)))
    except CutOffError:
        over = {one.group for one in ledger.read(directory / "ledger.jsonl") if one.kind == ENDED}
        left = [spec.name for spec in specs if spec.name not in over]
        _say(f"cut off after {limit_s / 60:.0f} minutes; not judged: {len(left)} of {len(specs)} groups:")
        _say(", ".join(left))
        if over:
            _judged(from_history(directory), directory, exact=exact, of=over)
        return 2
    except (InteropError, DaemonError, TimeoutError) as error:
        _say(str(error) or repr(error))
        return 2
    code = _judged(from_history(directory), directory, exact=exact)
    _say(f"{'as it has to be' if code == 0 else 'NOT AS IT HAS TO BE'}: {repeat}")
    return code


if __name__ == "__main__":
    sys.exit(main())
