"""The account of a run: its histories as the checks take them, and what comes of it. Pure functions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Any

from tests.chaos.checks import (
    Commit,
    given_up,
    not_one_register,
    skipped,
    too_long,
    turned_back,
    two_contents,
    two_owners,
)
from tests.chaos.facts import (
    Check,
    commits_of,
    owned_of,
    processed_of,
    produced_of,
    reads_of,
    seen_of,
    views_of,
)
from tests.chaos.history import OK, Process
from tests.chaos.judges.verdicts import verdicts
from tests.chaos.promises import (
    ALL,
    BOUNDS,
    CONTENT,
    GIVEN_UP,
    OWNERS,
    REBALANCES,
    REGISTER,
    SKIPPED,
    TURNED_BACK,
    sentences,
)
from tests.chaos.rebalances import Rebalance, Struck, rebalances

SHOWN = 20
"""Violations of one check that the account names; it counts all."""


def gaps(commits: Iterable[Commit], groups: Sequence[str], faults: Iterable[Struck]) -> list[float]:
    """For each fault the longest time without an acknowledged commit that one of these groups had in it."""
    acked: dict[str, list[float]] = {group: [] for group in groups}
    for one in commits:
        if one.end == OK and one.place[0] in acked:
            acked[one.place[0]].append(one.ended_s)
    for times in acked.values():
        times.sort()
    return [
        max(
            (
                after - before
                for times in acked.values()
                for before, after in pairwise(times)
                if before <= fault.ended_s and after >= fault.began_s
            ),
            default=0.0,
        )
        for fault in faults
    ]


# ---- the account ----


@dataclass(frozen=True, slots=True)
class Account:
    """The outcome of a run."""

    checks: list[Check]
    faults: list[Struck]
    gaps_s: list[float]
    """Of each fault."""
    rebalances: list[Rebalance]
    calls: dict[str, dict[str, int]]
    """Of each process: how many calls of each kind ended how."""
    records: dict[str, int]
    complaints: list[str]
    open: list[str] = field(default_factory=list)
    """Questions that no judge could decide, and why."""
    about: dict[str, Any] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        """Whether every promise was kept."""
        return not self.complaints and not any(check.violations for check in self.checks)

    @property
    def gaps_by_way(self) -> dict[str, list[float]]:
        """Times without an acknowledged commit by victim and way."""
        found: dict[str, list[float]] = defaultdict(list)
        for fault, gap in zip(self.faults, self.gaps_s, strict=True):
            found[f"{fault.how} of the {fault.victim}"].append(gap)
        return dict(sorted(found.items()))

    def to_dict(self) -> dict[str, Any]:
        """For the JSON file."""
        return {
            **self.about,
            "good": self.good,
            "checks": [
                {
                    "name": check.name,
                    "facts": check.facts,
                    "violations": len(check.violations),
                    "first": check.violations[:SHOWN],
                }
                for check in self.checks
            ],
            "complaints": self.complaints,
            "not_judged": self.open,
            "records": self.records,
            "rebalances": [
                {
                    "group": one.group,
                    "generation": one.generation,
                    "at_s": one.at_s,
                    "cause": one.cause,
                    "why": one.why,
                }
                for one in self.rebalances
            ],
            "without_an_acknowledged_commit_s": {
                way: {"times": len(found), "median": median(found), "longest": max(found)}
                for way, found in self.gaps_by_way.items()
            },
            "faults": [
                {
                    "number": fault.number,
                    "how": fault.how,
                    "victim": fault.victim,
                    "process": fault.process,
                    "began_s": fault.began_s,
                    "ended_s": fault.ended_s,
                    "without_an_acknowledged_commit_s": gap,
                }
                for fault, gap in zip(self.faults, self.gaps_s, strict=True)
            ],
            "calls": self.calls,
        }


def unexcused(found: Iterable[Rebalance], groups: Sequence[str]) -> list[str]:
    """Rebalances of groups whose members stay that came without a fault of a broker or a paused node.

    A member whose coordinator is stopped for longer than its session waits, by its library's own settings,
    for an answer that does not come: no coordinator can help that.
    """
    return [
        f"{one.group} went to generation {one.generation} at {one.at_s:.3f}: {one.cause}; {one.why}"
        for one in found
        if one.group in groups
        and not any(fault.layer == "broker" or fault.how == "pause" for fault in one.faults)
    ]


def take(
    histories: Mapping[str, Process],
    faults: Sequence[Struck],
    settled_s: float,
    complaints: Sequence[str],
    *,
    why: Mapping[tuple[str, int], str],
    stable: Sequence[str],
    consuming: Sequence[str],
    registers: Sequence[str],
    timed: Sequence[str],
    all_excused: bool = False,
    promises: Collection[str] = ALL,
) -> Account:
    """All checks. `why`: of generations, as logs tell it; `stable`: groups whose members stay; `consuming`:
    groups that process every record; `registers`: groups whose commits all have tokens; `timed`: of these,
    groups that commit all the time. `all_excused`: rebalances are counted only. `promises`: the keys of
    those that are to hold."""
    processes = list(histories.values())
    commits, reads = commits_of(processes), reads_of(processes)
    views, owned = views_of(processes), owned_of(processes)
    produced, processed = produced_of(processes), processed_of(processes, consuming)
    moved = rebalances(seen_of(processes), faults, settled_s, why)
    calls = [call for one in processes for call in one.calls]
    exact_commits = [one for one in commits if one.place[0] in registers]
    exact_reads = [one for one in reads if one.place[0] in registers]
    # A member that comes and goes leaves a commit behind now and then.
    lasting = [one for one in commits if one.place[0] in stable]
    exact = not_one_register(exact_commits, exact_reads)
    checks = [
        Check(TURNED_BACK, len(reads), turned_back(commits, reads)),
        Check(REGISTER, len(exact_commits) + len(exact_reads), exact),
        Check(GIVEN_UP, len(lasting), given_up(lasting)),
        Check(OWNERS, len(owned), two_owners(owned)),
        Check(CONTENT, len(views), two_contents(views, owned)),
        Check(
            SKIPPED,
            sum(end - start for spans in produced.values() for start, end in spans) * len(consuming),
            skipped(produced, processed),
        ),
        Check(BOUNDS, len(calls), too_long(processes)),
        Check(
            REBALANCES,
            len(moved),
            [] if all_excused else unexcused(moved, stable),
        ),
    ]
    judged = verdicts(processes)
    selected = sentences(promises)
    counted: dict[str, dict[str, int]] = {}
    for one in processes:
        ends = Counter(f"{call.what} {call.end}" for call in one.calls)
        counted[one.client] = dict(sorted(ends.items()))
    acknowledged = sum(end - start for spans in produced.values() for start, end in spans)
    handled = {
        group: sum(end - start for spans in by.values() for start, end in spans)
        for group, by in processed.items()
    }
    ordered = sorted(faults, key=lambda fault: fault.number)
    return Account(
        [check for check in (*checks, *judged.checks) if check.name in selected],
        ordered,
        gaps(commits, timed, ordered),
        moved,
        counted,
        {"acknowledged to producers": acknowledged, **handled},
        list(complaints),
        judged.open,
    )
