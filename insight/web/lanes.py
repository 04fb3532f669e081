"""The timeline of a group: a lane for each partition, or for each member, with what is in it. Nothing finer
than a picture can show: neighbours that are too short for it become one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import pairwise

from ringleader.insight.model import MemberSpan, Ownership, Rebalance
from ringleader.insight.plain import Json

LANES_MAX = 200
"""In one answer; which of them is asked by number."""

Block = tuple[int, int | None, object]
"""Since, until (None: still), and a member id or how many partitions."""


class Causes:
    """Which rebalance a moment without owner belongs to."""

    def __init__(self, rebalances: Iterable[Rebalance]) -> None:
        self._ordered = sorted(rebalances, key=lambda one: one.at_ms)
        self._by_id = {one.id: one for one in self._ordered}

    def of(self, since_ms: int, until_ms: int | None, rebalance_id: str = "") -> Json:
        """The gap as JSON: between what, and why. `rebalance_id`: that ended it, where that is known."""
        found = self._by_id.get(rebalance_id) or self._around(since_ms, until_ms)
        return {
            "since_ms": since_ms,
            "until_ms": until_ms,
            "cause": None if found is None else found.cause,
            "rebalance": None if found is None else found.id,
        }

    def _around(self, since_ms: int, until_ms: int | None) -> Rebalance | None:
        """That took place then; else the first that ended after the gap began."""
        for one in self._ordered:
            if one.at_ms >= since_ms:
                began_ms = one.at_ms if one.began_ms is None else one.began_ms
                return one if until_ms is None or began_ms <= until_ms else None
        return None


def partition_lanes(
    ownership: Sequence[Ownership],
    rebalances: Iterable[Rebalance],
    since_ms: int,
    until_ms: int,
    columns: int,
) -> list[Json]:
    """A lane for each partition, by topic and number: blocks (since, until, member id) and gaps."""
    causes = Causes(rebalances)
    fine_ms = max((until_ms - since_ms) // columns, 1)
    rows: dict[tuple[str, int], list[Ownership]] = defaultdict(list)
    for one in ownership:
        rows[one.topic, one.partition].append(one)
    lanes = []
    for (topic, partition), owned in sorted(rows.items()):
        owned.sort(key=lambda one: one.since_ms)
        gaps = []
        for before, after in pairwise(owned):
            if before.until_ms is not None and before.until_ms < after.since_ms:
                gaps.append(causes.of(before.until_ms, after.since_ms, after.rebalance_id))
        last_ms = owned[-1].until_ms
        if last_ms is not None and last_ms < until_ms:
            gaps.append(causes.of(last_ms, None))
        lanes.append(
            {
                "topic": topic,
                "partition": partition,
                "blocks": _merged([(one.since_ms, one.until_ms, one.member_id) for one in owned], fine_ms),
                "gaps": _thinned(gaps, fine_ms),
            }
        )
    return lanes


def member_lanes(
    spans: Sequence[MemberSpan],
    ownership: Iterable[Ownership],
    rebalances: Sequence[Rebalance],
    since_ms: int,
    until_ms: int,
    columns: int,
) -> list[Json]:
    """A lane for each place that members ran at: a member that was restarted goes on in its lane. Those that
    are there come first. Blocks (since, until, how many partitions), gaps within rebalances, and `spans`:
    when the member was in the group."""
    causes = Causes(rebalances)
    fine_ms = max((until_ms - since_ms) // columns, 1)
    owned: dict[str, list[Ownership]] = defaultdict(list)
    for one in ownership:
        owned[one.member_id].append(one)
    lanes = []
    for name, lane_spans in _lanes_of(spans):
        blocks, gaps = [], []
        for span in lane_spans:
            for since, until, count in _counted(owned[span.member.member_id], span):
                if count:
                    blocks.append((since, until, count))
                elif until is not None:
                    gap = causes.of(since, until)
                    if gap["rebalance"] is not None:
                        gaps.append(gap)
        lanes.append(
            {
                "name": name,
                "client_id": lane_spans[-1].member.client_id,
                "host": lane_spans[-1].member.host,
                "here": lane_spans[-1].until_ms is None,
                "spans": [
                    {
                        "member_id": span.member.member_id,
                        "since_ms": span.since_ms,
                        "until_ms": span.until_ms,
                        "gone": None if span.gone is None else span.gone.why,
                    }
                    for span in lane_spans[-columns:]
                ],
                "blocks": _merged(blocks, fine_ms),
                "gaps": _thinned(gaps, fine_ms),
            }
        )
    return sorted(lanes, key=lambda lane: (not lane["here"], lane["name"]))


def _lanes_of(spans: Iterable[MemberSpan]) -> list[tuple[str, list[MemberSpan]]]:
    """Members of one name that follow each other; those that were there together have lanes of their own."""
    lanes: dict[str, list[list[MemberSpan]]] = defaultdict(list)
    for span in sorted(spans, key=lambda one: one.since_ms):
        of_name = lanes[span.member.name]
        for lane in of_name:
            ended_ms = lane[-1].until_ms
            if ended_ms is not None and ended_ms <= span.since_ms:
                lane.append(span)
                break
        else:
            of_name.append([span])
    return [
        (name if index == 0 else f"{name} #{index + 1}", lane)
        for name, of_name in lanes.items()
        for index, lane in enumerate(of_name)
    ]


def _counted(owned: Iterable[Ownership], span: MemberSpan) -> list[tuple[int, int | None, int]]:
    """How many partitions a member had, from its first moment to its last."""
    end = float("inf") if span.until_ms is None else span.until_ms
    steps: dict[float, int] = defaultdict(int)
    steps[span.since_ms] += 0
    for one in owned:
        until = end if one.until_ms is None else min(one.until_ms, end)
        if until > one.since_ms >= span.since_ms:
            steps[one.since_ms] += 1
            steps[until] -= 1
    steps[end] += 0
    found: list[tuple[int, int | None, int]] = []
    count = 0
    for since, until in pairwise(sorted(steps)):
        count += steps[since]
        ends = None if until == float("inf") else int(until)
        if found and found[-1][2] == count:
            found[-1] = (found[-1][0], ends, count)
        else:
            found.append((int(since), ends, count))
    return found


def _merged(blocks: Iterable[Block], fine_ms: int) -> list[Block]:
    """Blocks that follow each other and are alike, or too short to be seen, are one; one of several kinds
    has None in place of what it holds."""
    merged: list[Block] = []
    for since, until, what in blocks:
        from_ms, ended_ms, held = merged[-1] if merged else (0, None, None)
        if ended_ms is not None and until is not None:
            short = until - from_ms < fine_ms
            if since - ended_ms < (fine_ms if short else 1) and (short or held == what):
                merged[-1] = (from_ms, until, what if held == what else None)
                continue
        merged.append((since, until, what))
    return merged


def _thinned(gaps: list[Json], fine_ms: int) -> list[Json]:
    """Of several that fall on one point of the picture, the longest."""
    kept: list[Json] = []
    for gap in sorted(gaps, key=lambda one: one["since_ms"]):
        if kept and gap["since_ms"] // fine_ms == kept[-1]["since_ms"] // fine_ms:
            before = kept[-1]
            if before["until_ms"] is None or (
                gap["until_ms"] is not None
                and gap["until_ms"] - gap["since_ms"] <= before["until_ms"] - before["since_ms"]
            ):
                continue
            kept.pop()
        kept.append(gap)
    return kept
