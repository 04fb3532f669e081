"""Deploys of dynamic members, recognised by the rebalances that they make."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ringleader.insight.advice.past import PUT_OUT, Arrival, Going, Past
from ringleader.insight.advice.thresholds import Thresholds
from ringleader.insight.model import Departure, Rebalance


def rollouts(past: Past, at: Thresholds) -> list[tuple[list[Rebalance], list[Going], int]]:
    """Of each deploy of dynamic members: its rebalances, the members that were replaced, and how long a
    replacement took at most (ms)."""
    return [found for run in _runs(past, at) if (found := _deploy(past, at, run)) is not None]


def _runs(past: Past, at: Thresholds) -> list[list[Rebalance]]:
    """Rebalances in which members came or went, in rows without long gaps."""
    runs: list[list[Rebalance]] = []
    for one in past.counted:
        if not (one.joined or one.left):
            continue
        if runs and past.began_ms(one) - runs[-1][-1].at_ms <= at.deploy_gap_ms:
            runs[-1].append(one)
        else:
            runs.append([one])
    return runs


def _deploy(
    past: Past, at: Thresholds, run: Sequence[Rebalance]
) -> tuple[list[Rebalance], list[Going], int] | None:
    """The run's rebalances, who was replaced, and how long a replacement took at most."""
    first = next((number for number, one in enumerate(run) if one.left), len(run))
    run = run[first:]  # before that it only grew
    initial = {member.member_id for member in run[0].before} if run else set()
    # It ends when the group is as large as before for the last time.
    near = max(1, 0.2 * len(initial))
    ends = [number for number, one in enumerate(run, 1) if abs(len(one.members) - len(initial)) <= near]
    run = run[: max(ends, default=0)]
    if not run:
        return None
    ids = {one.id for one in run}
    goings = [one for one in past.goings if one.rebalance.id in ids and _by_itself(one)]
    arrivals = [one for one in past.arrivals if one.rebalance.id in ids]
    replaced = [one for one in goings if one.member.member_id in initial]
    if len(replaced) < max(at.deploy_members_min, at.deploy_share * len(initial)):
        return None
    if len(arrivals) < len(replaced) or any(one.member.instance_id for one in replaced):
        return None
    if len(goings) > at.deploy_departures_per_member * len(replaced):
        return None  # the same places again and again
    if len({one.rebalance.id for one in goings}) < at.deploy_members_min:
        return None  # all at once: nothing rolls
    return list(run), replaced, max(_gaps(goings, arrivals), default=0)


def _gaps(goings: Sequence[Going], arrivals: Sequence[Arrival]) -> Iterator[int]:
    """How long after each member its successor came: who came to the same place, else the next one."""
    free = list(arrivals)
    for going in goings:
        heir = going.back if going.back in free else None
        heir = heir or next((one for one in free if one.at_ms >= going.at_ms), None)
        if heir is not None:
            free.remove(heir)
            yield heir.at_ms - going.at_ms


def _by_itself(going: Going) -> bool:
    """It was not put out and came back."""
    return going.departure.why not in PUT_OUT or (
        going.departure.why is Departure.SESSION_EXPIRED and going.back is None
    )
