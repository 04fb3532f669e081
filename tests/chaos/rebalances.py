"""Rebalances of groups whose members stay: how many, and what was broken when they came. Pure functions."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

AFTER_S = 15.0
"""A fault may show so long after its end: a member may have to give up a request before it looks for another
coordinator."""

SESSION_S = 40.0
"""A client that waits this long for a coordinator that stands still gives its membership up: librdkafka and
Java have sessions of 45 s. It joins again, which lasts until nothing more goes wrong for as long."""

_REASON = re.compile(
    r"rebalance: group '(?P<group>[^']*)' generation (?P<generation>\d+) [^\n]*?because (?P<why>[^;\n]*);"
)


@dataclass(frozen=True, slots=True)
class Seen:
    """A member of a group was in a generation for the first time."""

    group: str
    generation: int
    client: str
    at_s: float


@dataclass(frozen=True, slots=True)
class Struck:
    """A fault as it was done. `layer`: "node" or "broker"; `how`: "kill", "pause" or "stop"."""

    number: int
    layer: str
    victim: str
    how: str
    process: str
    began_s: float
    ended_s: float
    """When the process was back and served."""


@dataclass(frozen=True, slots=True)
class Rebalance:
    """A group went to a new generation. `faults`: those that may be why, the latest first. `why`: what the
    coordinator wrote into its log, "" where that is not known."""

    group: str
    generation: int
    at_s: float
    faults: tuple[Struck, ...]
    why: str = ""

    @property
    def cause(self) -> str:
        """In a few words: of the faults of each layer the latest, or that there was none."""
        latest: dict[str, Struck] = {}
        for fault in self.faults:
            latest.setdefault(fault.layer, fault)
        return " and ".join(f"{one.how} of a {layer}" for layer, one in sorted(latest.items())) or "no fault"


def reasons(log: str) -> dict[tuple[str, int], str]:
    """The reasons that a coordinator's log gives for each generation, by group and generation."""
    return {(found["group"], int(found["generation"])): found["why"] for found in _REASON.finditer(log)}


def rebalances(
    seen: Iterable[Seen],
    faults: Sequence[Struck],
    settled_s: float,
    why: Mapping[tuple[str, int], str],
) -> list[Rebalance]:
    """All rebalances after `settled_s`, in the order of time."""
    first: dict[tuple[str, int], float] = {}
    before: dict[str, int] = defaultdict(lambda: -1)
    for one in sorted(seen, key=lambda one: one.at_s):
        if one.at_s <= settled_s:
            before[one.group] = max(before[one.group], one.generation)
        first.setdefault((one.group, one.generation), one.at_s)
    found: list[Rebalance] = []
    last: dict[str, float] = defaultdict(lambda: settled_s)
    for (group, generation), at_s in sorted(first.items(), key=lambda item: item[1]):
        if generation > before[group]:
            struck = [fault for fault in faults if _may_cause(fault, last[group], at_s)]
            struck.sort(key=lambda fault: -fault.began_s)
            found.append(Rebalance(group, generation, at_s, tuple(struck), why.get((group, generation), "")))
            last[group] = at_s
    return found


def _may_cause(fault: Struck, last_s: float, at_s: float) -> bool:
    """A rebalance then, of a group whose last one was at `last_s`."""
    if fault.how == "pause" and fault.ended_s - fault.began_s >= SESSION_S and fault.ended_s > last_s:
        return fault.began_s <= at_s
    return fault.began_s <= at_s <= fault.ended_s + AFTER_S
