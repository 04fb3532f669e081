"""The account of a run: its histories as the checks take them, and what comes of it. Pure functions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Any

from tests.chaos.checks import (
    Commit,
    Owned,
    Read,
    Spans,
    View,
    given_up,
    merged,
    not_one_register,
    skipped,
    too_long,
    turned_back,
    two_contents,
    two_owners,
)
from tests.chaos.history import OK, Process
from tests.chaos.rebalances import Rebalance, Seen, Struck, rebalances

SHOWN = 20
"""Violations of one check that the account names; it counts all."""


# ---- histories as the checks take them ----


def commits_of(processes: Iterable[Process]) -> list[Commit]:
    """All tries, one for each partition."""
    return [
        Commit(
            (call.asked["group"], place),
            offset,
            call.asked.get("tokens", {}).get(place, ""),
            one.who,
            call.began_s,
            call.ended_s,
            call.end,
        )
        for one in processes
        for call in one.calls
        if call.what == "commit"
        for place, offset in call.asked["offsets"].items()
    ]


def reads_of(processes: Iterable[Process]) -> list[Read]:
    """All answers, one for each partition."""
    return [
        Read((group, place), offset, token, one.who, call.began_s, call.ended_s)
        for one in processes
        for call in one.calls
        if call.what == "read" and call.end == OK
        for group, places in call.answer["offsets"].items()
        for place, (offset, token) in places.items()
    ]


def views_of(processes: Iterable[Process]) -> list[View]:
    """What JoinGroup answered."""
    return [
        View(
            call.answer["group"],
            call.answer["generation"],
            call.answer["member"],
            call.answer["leader"],
            tuple(call.answer["members"]),
            one.who,
            call.began_s,
            call.ended_s,
        )
        for one in processes
        for call in one.calls
        if call.what == "join" and call.end == OK
    ]


def owned_of(processes: Iterable[Process]) -> list[Owned]:
    """What members had."""
    return [
        Owned(
            line["group"],
            line["generation"],
            line["member"],
            frozenset(line["partitions"]),
            one.who,
            line["t"],
        )
        for one in processes
        for line in one.lines
        if line["did"] == "assigned"
    ]


def seen_of(processes: Iterable[Process]) -> list[Seen]:
    """Generations that members were in."""
    return [
        Seen(line["group"], line["generation"], one.who, line["t"])
        for one in processes
        for line in one.lines
        if line["did"] == "generation"
    ]


def produced_of(processes: Iterable[Process]) -> dict[int, Spans]:
    """Offsets that were acknowledged to producers, by partition."""
    found: dict[int, Spans] = defaultdict(list)
    for one in processes:
        for line in one.lines:
            if line["did"] == "produced":
                found[line["partition"]].append((line["start"], line["end"]))
    return {partition: merged(spans) for partition, spans in found.items()}


def processed_of(processes: Iterable[Process], groups: Iterable[str]) -> dict[str, dict[int, Spans]]:
    """Offsets that were processed in these groups, by group and partition; those that were so twice,
    twice."""
    found: dict[str, dict[int, Spans]] = {group: defaultdict(list) for group in groups}
    for one in processes:
        for line in one.lines:
            if line["did"] == "processed":
                found[line["group"]][line["partition"]].append((line["start"], line["end"]))
    return found


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
class Check:
    """One promise: over how many facts it was looked at, and where it was broken."""

    name: str
    facts: int
    violations: list[str]


@dataclass(frozen=True, slots=True)
class Account:
    """What came of a run."""

    checks: list[Check]
    faults: list[Struck]
    gaps_s: list[float]
    """Of each fault."""
    rebalances: list[Rebalance]
    calls: dict[str, dict[str, int]]
    """Of each process: how many calls of each kind ended how."""
    records: dict[str, int]
    complaints: list[str]
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
) -> Account:
    """All checks. `why`: of generations, as logs tell it; `stable`: groups whose members stay; `consuming`:
    groups that process every record; `registers`: groups whose commits all have tokens; `timed`: of these,
    groups that commit all the time. `all_excused`: rebalances are counted only."""
    processes = list(histories.values())
    commits, reads = commits_of(processes), reads_of(processes)
    views, owned = views_of(processes), owned_of(processes)
    produced, processed = produced_of(processes), processed_of(processes, consuming)
    moved = rebalances(seen_of(processes), faults, settled_s, why)
    calls = [call for one in processes for call in one.calls]
    exact_commits = [one for one in commits if one.place[0] in registers]
    exact_reads = [one for one in reads if one.place[0] in registers]
    # Who comes and goes leaves a commit behind now and then.
    lasting = [one for one in commits if one.place[0] in stable]
    exact = not_one_register(exact_commits, exact_reads)
    checks = [
        Check("no acknowledged commit is lost or turned back", len(reads), turned_back(commits, reads)),
        Check("a committed offset is one register", len(exact_commits) + len(exact_reads), exact),
        Check("every commit is acknowledged in the end", len(lasting), given_up(lasting)),
        Check("no partition has two owners in a generation", len(owned), two_owners(owned)),
        Check("a generation has one content, and none comes back", len(views), two_contents(views, owned)),
        Check(
            "no record is skipped",
            sum(end - start for spans in produced.values() for start, end in spans) * len(consuming),
            skipped(produced, processed),
        ),
        Check("every call ends within its bound", len(calls), too_long(processes)),
        Check(
            "groups that stay do not rebalance because of nodes",
            len(moved),
            [] if all_excused else unexcused(moved, stable),
        ),
    ]
    counted: dict[str, dict[str, int]] = {}
    for one in processes:
        ends = Counter(f"{call.what} {call.end}" for call in one.calls)
        counted[one.who] = dict(sorted(ends.items()))
    acknowledged = sum(end - start for spans in produced.values() for start, end in spans)
    handled = {
        group: sum(end - start for spans in by.values() for start, end in spans)
        for group, by in processed.items()
    }
    ordered = sorted(faults, key=lambda fault: fault.number)
    return Account(
        checks,
        ordered,
        gaps(commits, timed, ordered),
        moved,
        counted,
        {"acknowledged to producers": acknowledged, **handled},
        list(complaints),
    )
