"""`python -m tests.interop`: the differential suite. See scenarios/README.md.

python -m tests.interop                       play all scenarios on Apache Kafka, then on our daemon
python -m tests.interop record [FILE...]      write Apache Kafka's answers into the scenario files
python -m tests.interop ours [FILE...]        write our server's answers where a step says `differs:`
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

from tests.interop.compare import Report, compare, daemons, explore, kafkas, plays_of, record
from tests.interop.language import ScenarioFile, load, render
from tests.interop.maven import InteropError
from tests.interop.simulated import play_simulated
from tests.support.shares import share
from tools import proof

EXPLORED = 120
"""Random scenarios of a whole comparison, half of them of the consumer protocol."""

EXPLORED_ALONE = 200

SECURED_ONE_IN = share(4, whole=1)
"""Through SASL_SSL another part of the plays is drawn each time: what differs there is the way in."""


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit code: 0 if nothing differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.interop", description=__doc__)
    parser.add_argument(
        "what", nargs="?", choices=("compare", "record", "ours", "explore"), default="compare"
    )
    parser.add_argument("files", nargs="*", help="scenario files, all without any; or seeds")
    parser.add_argument("-k", metavar="WORDS", default="", help="scenarios with these words in their title")
    parser.add_argument("--secured", action="store_true", help="only through SASL_SSL, by users with ACLs")
    parser.add_argument("--seed", type=int, help="of the plays through SASL_SSL; drawn if not given")
    parser.add_argument("--only", choices=("kafka", "daemon"), help="compare with one of the two")
    proof.add_option(parser)
    chosen = parser.parse_args(arguments)
    if chosen.what == "explore":
        return _run(_explore([int(seed) for seed in chosen.files] or fresh_seeds(EXPLORED_ALONE)))
    files = load([Path(name) for name in chosen.files] or None)
    for found in files:
        if chosen.k:
            found.scenarios = [one for one in found.scenarios if chosen.k in one.name]
    if chosen.what == "record":
        return _run(_record(files, chosen.k))
    if chosen.what == "ours":
        return _ours(files, chosen.k)
    every = not (chosen.k or chosen.files)
    if every and chosen.secured:
        draw(files, fresh_seeds(1)[0] if chosen.seed is None else chosen.seed)
    whole = every and not chosen.secured
    seeds = fresh_seeds(EXPLORED if whole else 0)
    writes_proof = chosen.proof and whole and chosen.only is None
    return _run(_compare(files, chosen.only, seeds, secured=chosen.secured, leave=writes_proof))


def _run(work: Coroutine[Any, Any, int]) -> int:
    try:
        return asyncio.run(work)
    except InteropError as error:
        print(error, file=sys.stderr)
        return 2


def fresh_seeds(count: int) -> list[int]:
    """Seeds that were not tried before, in all likelihood."""
    first = random.SystemRandom().randrange(1_000_000_000)
    return list(range(first, first + count))


def draw(files: Sequence[ScenarioFile], seed: int) -> None:
    """Leave one play in `SECURED_ONE_IN`."""
    if SECURED_ONE_IN == 1:
        return
    print(f"One play in {SECURED_ONE_IN}; the same again: --secured --seed {seed}", flush=True)
    rng = random.Random(seed)
    for found in files:
        for scenario in found.scenarios:
            scenario.entries = [one for one in scenario.entries if not rng.randrange(SECURED_ONE_IN)]
        found.scenarios = [one for one in found.scenarios if one.entries]


def _brokers(files: Sequence[ScenarioFile]) -> list[str]:
    return sorted({scenario.broker for found in files for scenario in found.scenarios})


async def _compare(
    files: Sequence[ScenarioFile],
    only: str | None,
    seeds: Sequence[int],
    *,
    secured: bool,
    leave: bool = False,
) -> int:
    reports: list[Report] = []
    how = " through SASL_SSL" if secured else ""
    if only != "daemon":
        async with kafkas(_brokers(files), secured=secured) as targets:
            reports.append(await compare(f"Apache Kafka{how}", files, targets, ours=False))
            print(reports[-1].text(), flush=True)
            if seeds:
                title = f"Random scenarios from seed {seeds[0]} on"
                reports.append(await explore(title, seeds, targets["plain"]))
                print(reports[-1].text(), flush=True)
    if only != "kafka":
        async with daemons(_brokers(files), secured=secured) as targets:
            reports.append(await compare(f"Ringleader{how}", files, targets, ours=True))
        print(reports[-1].text(), flush=True)
    differences = sum(len(report.differences) for report in reports)
    if leave:
        figures = {
            "scenarios": sum(len(found.scenarios) for found in files),
            "plays against Apache Kafka": reports[0].plays,
            "random scenarios against Apache Kafka": reports[1].plays,
            "plays against the daemon": reports[2].plays,
            "differences": differences,
        }
        proof.leave("interop", figures, good=not differences)
    return 1 if differences else 0


async def _explore(seeds: Sequence[int]) -> int:
    async with kafkas(["plain"]) as targets:
        report = await explore("Random scenarios", seeds, targets["plain"])
    print(report.text())
    return 1 if report.differences else 0


async def _record(files: Sequence[ScenarioFile], chosen: str) -> int:
    async with kafkas(_brokers(files)) as targets:
        trouble = await record(files, targets)
        _write(files, chosen)
        again = await compare("Apache Kafka, once more", files, targets, ours=False)
    print("\n".join([*trouble, again.text()]))
    return 1 if trouble or again.differences else 0


def _ours(files: Sequence[ScenarioFile], chosen: str) -> int:
    for scenario, entry in plays_of(files):
        if not scenario.anchors:
            continue
        for step, answers in zip(scenario.steps, play_simulated(scenario, entry), strict=True):
            if step.anchor:
                step.ours[entry.label] = answers
    _write(files, chosen)
    return 0


def _write(files: Sequence[ScenarioFile], chosen: str) -> None:
    """Scenarios that were not chosen keep what they had."""
    for found in files:
        text = render(found)
        if chosen:
            whole = load([found.path])[0]
            played = {scenario.title: scenario for scenario in found.scenarios}
            whole.scenarios = [played.get(one.title, one) for one in whole.scenarios]
            text = render(whole)
        found.path.write_text(text)


if __name__ == "__main__":
    sys.exit(main())
