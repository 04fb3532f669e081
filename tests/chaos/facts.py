"""Histories as the checks take them: commits, reads, answers, owned partitions, produced and processed
records. Pure functions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from tests.chaos.checks import Commit, Owned, Read, Spans, View, merged
from tests.chaos.history import OK, Process
from tests.chaos.rebalances import Seen


@dataclass(frozen=True, slots=True)
class Check:
    """One promise: over how many facts it was looked at, and where it was broken."""

    name: str
    facts: int
    violations: list[str]


def commits_of(processes: Iterable[Process]) -> list[Commit]:
    """All tries, one for each partition."""
    return [
        Commit(
            (call.request["group"], place),
            offset,
            call.request.get("tokens", {}).get(place, ""),
            one.client,
            call.began_s,
            call.ended_s,
            call.end,
        )
        for one in processes
        for call in one.calls
        if call.what == "commit"
        for place, offset in call.request["offsets"].items()
    ]


def reads_of(processes: Iterable[Process]) -> list[Read]:
    """All answers, one for each partition."""
    return [
        Read((group, place), offset, token, one.client, call.began_s, call.ended_s)
        for one in processes
        for call in one.calls
        if call.what == "read" and call.end == OK
        for group, places in call.answer["offsets"].items()
        for place, (offset, token) in places.items()
    ]


def views_of(processes: Iterable[Process]) -> list[View]:
    """The answers of JoinGroup."""
    return [
        View(
            call.answer["group"],
            call.answer["generation"],
            call.answer["member"],
            call.answer["leader"],
            tuple(call.answer["members"]),
            one.client,
            call.began_s,
            call.ended_s,
        )
        for one in processes
        for call in one.calls
        if call.what == "join" and call.end == OK
    ]


def owned_of(processes: Iterable[Process]) -> list[Owned]:
    """The partitions that members had."""
    return [
        Owned(
            line["group"],
            line["generation"],
            line["member"],
            frozenset(line["partitions"]),
            one.client,
            line["t"],
        )
        for one in processes
        for line in one.lines
        if line["did"] == "assigned"
    ]


def seen_of(processes: Iterable[Process]) -> list[Seen]:
    """Generations that members were in."""
    return [
        Seen(line["group"], line["generation"], one.client, line["t"])
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
