"""The owners of a partition over time: by the members' own clocks, from what they wrote down while they had
it.

A member may believe for long that it has what was taken from it: nobody can tell it while it stands still. So
a claim lasts as far as the group's coordinator confirmed it: from the moment that the member knew of its
partition to the beginning of its last commit of it that was acknowledged. Two such claims of one partition
never overlap, whatever was broken: an acknowledged commit is one of the group's present generation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from tests.chaos.history import OK, Process

SLACK_S = 0.05
"""All processes of a run read one clock, and what is written too late or too early makes a claim only
shorter: this is for histories that were put together from several machines' clocks, as close as NTP keeps
them."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A partition of a group that one member had, confirmed for all of this time."""

    group: str
    partition: str
    holder: str
    generation: int
    from_s: float
    to_s: float


@dataclass(slots=True)
class _Held:
    generation: int
    from_s: float
    confirmed_s: float | None = None


def claims(processes: Iterable[Process]) -> list[Claim]:
    """All of them, without those that nothing confirmed.

    Of lines: "assigned" (all that a holder has from then on), "revoked" and "lost" (what it has no more;
    without "partitions": nothing), and commits. A process that is several members names the `holder`.
    """
    found: list[Claim] = []
    for one in processes:
        events = [(line["t"], line["did"], line) for line in one.lines if line["did"] in _TELL]
        events += [
            (call.began_s, "commit", call.request)
            for call in one.calls
            if call.what == "commit" and call.end == OK
        ]
        events.sort(key=lambda event: event[0])
        held: dict[tuple[str, str], dict[str, _Held]] = defaultdict(dict)
        for at_s, did, fields in events:
            group, holder = fields["group"], fields.get("holder", one.client)
            has = held[group, holder]
            if did == "commit":
                for place in fields["offsets"].keys() & has.keys():
                    has[place].confirmed_s = at_s
                continue
            topic, named = fields.get("topic", "records"), set[str]()
            if "partitions" in fields:
                named = {f"{topic}:{partition}" for partition in fields["partitions"]}
            ended = has.keys() - named if did == "assigned" else has.keys() & (named or has.keys())
            found += _ended(group, holder, {place: has.pop(place) for place in sorted(ended)})
            if did == "assigned":
                for place in named - has.keys():
                    has[place] = _Held(fields["generation"], at_s)
        for (group, holder), has in held.items():
            found += _ended(group, holder, has)
    return found


_TELL = ("assigned", "revoked", "lost")


def _ended(group: str, holder: str, held: dict[str, _Held]) -> list[Claim]:
    return [
        Claim(group, place, holder, one.generation, one.from_s, one.confirmed_s)
        for place, one in held.items()
        if one.confirmed_s is not None
    ]


def two_at_once(found: Iterable[Claim], slack_s: float = SLACK_S) -> list[str]:
    """Claims of one partition by different holders that overlap by more than the slack."""
    violations = []
    by_place: dict[tuple[str, str], list[Claim]] = defaultdict(list)
    for one in found:
        by_place[one.group, one.partition].append(one)
    for (group, place), ones in sorted(by_place.items()):
        ones.sort(key=lambda one: one.from_s)
        before: list[Claim] = []
        for one in ones:
            before = [other for other in before if other.to_s - one.from_s > slack_s]
            violations += [
                f"{group} {place}: {other.holder} (generation {other.generation}) had it until "
                f"{other.to_s:.3f}, and {one.holder} (generation {one.generation}) from "
                f"{one.from_s:.3f} to {one.to_s:.3f}"
                for other in before
                if other.holder != one.holder and one.to_s - one.from_s > slack_s
            ]
            before.append(one)
    return violations
