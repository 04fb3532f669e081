"""Patterns of members that come and go: deploys, restarts, scalers, sessions that end, instance ids."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from ringleader.insight.advice.draft import Draft
from ringleader.insight.advice.findings import Change, Finding, Pattern
from ringleader.insight.advice.past import PUT_OUT, Arrival, Going, Past, least_sure, place
from ringleader.insight.advice.replay.policy import Policy
from ringleader.insight.advice.rollouts import rollouts
from ringleader.insight.advice.thresholds import MINUTE_MS, Thresholds
from ringleader.insight.advice.words import (
    clock,
    count,
    how_often,
    length,
    partition_time,
    rounded_up_ms,
    some,
)
from ringleader.insight.model import Cause, Confidence, Departure, Member, Rebalance

STATIC = Change(
    "group.instance.id",
    "a name of its own for each pod that outlives restarts, ${HOSTNAME} in a StatefulSet",
    "not set",
    "A static member that restarts within its session timeout takes its place again without a rebalance.",
)
_ENDED = "look for why it ends: last log lines, exit code 137 (memory limit), a liveness probe"
_STOPPED = "it left in order each time: look for what stops it (an operator, a deployment, a job that ends)"
SESSION_AT_MOST_MS = 30 * MINUTE_MS
"""Default of the broker's group.max.session.timeout.ms."""


def autoscaler(past: Past, at: Thresholds) -> Iterator[Draft]:
    """The number of members goes up and down, and up again."""
    turns = _turns(past, at)
    if len(turns) < at.oscillations_min:
        return
    since_ms, until_ms = turns[0][0], turns[-1][0]
    within = [one for one in past.goings if since_ms <= one.rebalance.at_ms <= until_ms]
    first = next(one for one in past.rebalances if one.at_ms >= since_ms)
    initial = {member.member_id for member in first.members}
    if len({one.member.member_id for one in within} & initial) > 0.75 * len(initial):
        return  # a deploy
    if sum(one.departure.why in PUT_OUT or one.back is not None for one in within) * 2 > len(within):
        return  # members that flap, or restart where they are
    sizes = [size for _, size in turns]
    lengths = [later - earlier for (earlier, _), (later, _) in pairwise(turns)]
    stays_ms = rounded_up_ms(max(lengths) * 1.2)
    ids = [one.id for one in past.counted if since_ms <= one.at_ms <= until_ms and (one.joined or one.left)]
    yield Draft(
        Finding(
            Pattern.AUTOSCALER,
            f"The number of members went up and down between {min(sizes)} and {max(sizes)},"
            f" {len(turns)} times in {length(until_ms - since_ms)}: {count(len(ids), 'rebalance')}.",
            Confidence.LIKELY,
            (
                "Members by time: "
                + ", ".join(f"{size} from {clock(when)}" for when, size in turns[:8])
                + ".",
                f"The longest time between two turns was {length(max(lengths))}.",
            ),
            since_ms,
            until_ms,
            (
                Change(
                    "stabilizationWindowSeconds (behavior.scaleDown) or KEDA's cooldownPeriod",
                    str(stays_ms // 1000),
                    why="Longer than any of the times between growing and shrinking that were seen.",
                ),
                Change(
                    "partition.assignment.strategy",
                    "cooperative-sticky",
                    why="So that scaling moves only what changes hands.",
                ),
            ),
            past.names(dict.fromkeys(one.member.member_id for one in within)),
            tuple(ids),
        ),
        Policy(f"members that would be back within {length(stays_ms)} stay", stays_ms=stays_ms),
        ("A member that came within that time after one went is taken to be there for the same load.",),
    )


def _turns(past: Past, at: Thresholds) -> list[tuple[int, int]]:
    """When the number of members turned from growing to shrinking or back, and what it was then: the longest
    row of them that are not further from each other than a scaler's."""
    sizes = [(one.at_ms, len(one.members)) for one in past.counted]
    lasting = [
        (when, size)
        for (when, size), (until_ms, _) in pairwise([*sizes, (past.until_ms, 0)])
        if until_ms - when >= at.settled_ms
    ]
    levels: list[tuple[int, int]] = []
    for when, size in lasting:
        if not levels or levels[-1][1] != size:
            levels.append((when, size))
    turns = [
        two
        for one, two, three in zip(levels, levels[1:], levels[2:], strict=False)
        if (two[1] > one[1]) != (three[1] > two[1])
    ]
    runs: list[list[tuple[int, int]]] = []
    for turn in turns:
        if runs and turn[0] - runs[-1][-1][0] <= at.oscillation_ms:
            runs[-1].append(turn)
        else:
            runs.append([turn])
    return max(runs, key=len, default=[])


def rolling_deploy(past: Past, at: Thresholds) -> Iterator[Draft]:
    """Most members were replaced one after the other, and each time the group rebalanced."""
    if any(True for _ in autoscaler(past, at)):
        return
    deploys = rollouts(past, at)
    if not deploys:
        return
    goings = [one for _, some_goings, _ in deploys for one in some_goings]
    rebalances = [one for run, _, _ in deploys for one in run]
    gaps = [gap for _, _, gap in deploys]
    now_ms = max((one.member.session_timeout_ms or 0 for one in goings), default=0)
    wanted_ms = max(now_ms, rounded_up_ms(max(gaps) * 1.5))
    unowned_ms = sum(one.unowned_ms or 0 for one in rebalances)
    replaced = len({one.member.member_id for one in goings})
    changes = [STATIC]
    if wanted_ms > now_ms:
        changes.append(
            Change(
                "session.timeout.ms",
                str(wanted_ms),
                str(now_ms) if now_ms else None,
                f"A replacement took up to {length(max(gaps))}; within the session it costs no rebalance.",
            )
        )
    evidence = []
    for run, members, gap in deploys[-3:]:
        evidence.append(
            f"{clock(past.began_ms(run[0]))} to {clock(run[-1].at_ms)}:"
            f" {count(len(members), 'member')} replaced, {count(len(run), 'rebalance')},"
            f" each replacement came {'at once' if gap < 1_000 else f'within {length(gap)}'}."
        )
    if unowned_ms:
        evidence.append(f"All of them: {partition_time(unowned_ms)} without an owner.")
    evidence.append("None of the members has a group.instance.id.")
    yield Draft(
        Finding(
            Pattern.ROLLING_DEPLOY,
            f"{count(len(deploys), 'deploy')} of members without a group.instance.id:"
            f" {count(replaced, 'member')} replaced, {count(len(rebalances), 'rebalance')}.",
            Confidence.LIKELY,
            tuple(evidence),
            past.began_ms(rebalances[0]),
            rebalances[-1].at_ms,
            tuple(changes),
            past.names(one.member.member_id for one in goings),
            tuple(one.id for one in rebalances),
        ),
        Policy(
            f"static members, session timeout {length(wanted_ms)}", static=True, session_timeout_ms=wanted_ms
        ),
        (
            "Each new process takes the instance id of the one that it replaced. Who ends for good keeps its"
            " partitions until its session ends.",
        ),
    )


def restart_loop(past: Past, at: Thresholds) -> Iterator[Draft]:
    """One place begins a new process again and again."""
    by_place: dict[tuple[str, str], list[Going]] = defaultdict(list)
    for one in past.goings:
        if one.departure.why not in (*PUT_OUT, Departure.FENCED) and one.back is not None:
            by_place[place(one.member)].append(one)
    longest = {where: max(_within(them, at.restart_loop_ms), key=len) for where, them in by_place.items()}
    loops = {where: them for where, them in longest.items() if len(them) >= at.restarts_min}
    size = max((len(one.members) for one in past.rebalances), default=0)
    if not loops or (size > 1 and len(loops) > at.deploy_share * size):
        return  # all of them: those are deploys
    goings = sorted((one for some_goings in loops.values() for one in some_goings), key=lambda one: one.at_ms)
    names = past.names(one.member.member_id for one in goings)
    spans = [goings[-1].at_ms - goings[0].at_ms for goings in loops.values()]
    away = [one.away_ms or 0 for one in goings]
    static = all(one.member.instance_id for one in goings)
    in_order = all(one.departure.why is Departure.LEFT for one in goings)
    doubt = Confidence.POSSIBLE if in_order else Confidence.LIKELY
    yield Draft(
        Finding(
            Pattern.RESTART_LOOP,
            f"{some(names)} restarted {how_often(len(goings))} in {length(max(spans))}.",
            least_sure((doubt, *(one.departure.confidence for one in goings))),
            tuple(
                f"{clock(one.at_ms)} {past.name(one.member.member_id)} {one.departure.why.value},"
                f" back after {length(one.away_ms or 0)}."
                for one in goings[-5:]
            ),
            goings[0].at_ms,
            goings[-1].at_ms,
            (
                Change("the process", _STOPPED if in_order else _ENDED),
                *(() if static else (STATIC,)),
            ),
            names,
            tuple(dict.fromkeys(one.rebalance.id for one in goings)),
            no_saving="The members are static already." if static else "",
        ),
        None
        if static
        else Policy(
            "static members",
            static=True,
            session_timeout_ms=rounded_up_ms(max(max(away) * 1.5, _session_ms(one.member for one in goings))),
        ),
        ("Each new process takes the instance id of the one before.",),
    )


def _within(goings: Sequence[Going], window_ms: int) -> Iterator[list[Going]]:
    for number, first in enumerate(goings):
        yield [one for one in goings[number:] if one.at_ms - first.at_ms <= window_ms]


def _session_ms(members: Iterator[Member]) -> int:
    return max((one.session_timeout_ms or 0 for one in members), default=0)


def flapping_member(past: Past, at: Thresholds) -> Iterator[Draft]:
    """Sessions end, and their members come back."""
    goings = _flaps(past, at)
    if not goings:
        return
    names = past.names(one.member.member_id for one in goings)
    away_ms = max(one.away_ms or 0 for one in goings)
    now_ms = _session_ms(one.member for one in goings)
    wanted_ms = max(rounded_up_ms(away_ms * 1.2), now_ms)
    changes = [
        Change(
            "the process",
            "look for what stops it: garbage collection, CPU throttling (cpu limits), swapping, the network",
        ),
    ]
    if wanted_ms <= SESSION_AT_MOST_MS:
        changes.insert(
            0,
            Change(
                "session.timeout.ms",
                str(wanted_ms),
                str(now_ms) if now_ms else None,
                f"It was silent for up to {length(away_ms)} and went on then.",
            ),
        )
    yield Draft(
        Finding(
            Pattern.FLAPPING_MEMBER,
            f"{some(names)} fell silent past {'its' if len(names) == 1 else 'their'} session timeout"
            f" {how_often(len(goings))}, and came back each time.",
            least_sure(one.departure.confidence for one in goings),
            tuple(
                f"{clock(one.at_ms)} {past.name(one.member.member_id)} put out after"
                f" {length(one.at_ms - one.silent_since_ms)} of silence,"
                f" back {length(one.back.at_ms - one.at_ms)} later."
                for one in goings[-5:]
                if one.back is not None
            ),
            goings[0].silent_since_ms,
            goings[-1].at_ms,
            tuple(changes),
            names,
            tuple(dict.fromkeys(one.rebalance.id for one in goings)),
            no_saving="It was silent for longer than any session may last.",
        ),
        Policy(f"session timeout {length(wanted_ms)}", session_timeout_ms=wanted_ms)
        if wanted_ms <= SESSION_AT_MOST_MS
        else None,
        (
            "The member that came back is taken to be the same process. One that had crashed needs a "
            "group.instance.id besides.",
        ),
    )


def _flaps(past: Past, at: Thresholds) -> list[Going]:
    """Members whose sessions ended, and that came back, at places where that happened several times."""
    by_place: dict[tuple[str, str], list[Going]] = defaultdict(list)
    for one in past.goings:
        back_ms = None if one.back is None else one.back.at_ms - one.at_ms
        if (
            one.departure.why is Departure.SESSION_EXPIRED
            and back_ms is not None
            and back_ms <= at.flap_return_ms
        ):
            by_place[place(one.member)].append(one)
    return sorted(
        (one for some_goings in by_place.values() if len(some_goings) >= at.flaps_min for one in some_goings),
        key=lambda one: one.at_ms,
    )


def zombies(past: Past, at: Thresholds) -> Iterator[Draft]:
    """Processes that ended without leaving, and kept their partitions until their sessions ended."""
    found = _replaced_unnoticed(past, at)
    if len(found) < at.zombies_min:
        return
    goings = [one for one, _ in found]
    kin = all(
        joined.member.client_id == left.member.client_id or joined.member.host == left.member.host
        for left, joined in found
    )
    # Successors that came only after the sessions had ended may be restarts of what was killed.
    overlap = all(joined.at_ms < left.at_ms for left, joined in found)
    doubt = Confidence.LIKELY if kin and overlap else Confidence.POSSIBLE
    unread_ms = sum((one.at_ms - one.silent_since_ms) * len(one.member.assigned) for one in goings)
    now_ms = _session_ms(one.member for one in goings)
    yield Draft(
        Finding(
            Pattern.ZOMBIES,
            f"{count(len(goings), 'process', 'processes')} ended without leaving the group while successors"
            f" came: {partition_time(unread_ms)} without a reader until the sessions ended.",
            least_sure((doubt, *(one.departure.confidence for one in goings))),
            tuple(
                f"{past.name(left.member.member_id)} kept {count(len(left.member.assigned), 'partition')} for"
                f" {length(left.at_ms - left.silent_since_ms)} until {clock(left.at_ms)};"
                f" {past.name(joined.member.member_id)} came {clock(joined.at_ms)}."
                for left, joined in found[-5:]
            ),
            goings[0].silent_since_ms,
            goings[-1].at_ms,
            (
                Change(
                    "consumer.close() on SIGTERM",
                    "leave the group before the process ends; terminationGracePeriodSeconds longer than one"
                    " round of poll()",
                    why="A member that leaves gives its partitions up at once.",
                ),
                Change(
                    "group.instance.id",
                    "a name of its own for each pod that outlives restarts",
                    "not set",
                    "The new process takes the old one's place at once, however that ended.",
                ),
                *(
                    (Change("session.timeout.ms", "45000", str(now_ms), "Default; the wait is this long."),)
                    if now_ms > 45_000
                    else ()
                ),
            ),
            past.names(one.member.member_id for one in goings),
            tuple(dict.fromkeys(one.rebalance.id for one in goings)),
        ),
        Policy("every process leaves when it ends", leaves=True),
        counts=lambda saving: not saving.claimed or saving.saved_ms > 0,
    )


def _replaced_unnoticed(past: Past, at: Thresholds) -> list[tuple[Going, Arrival]]:
    """Members that expired, each with the process that had come in its place."""
    found: list[tuple[Going, Arrival]] = []
    free = list(past.arrivals)
    for one in past.goings:
        if (
            one.departure.why is not Departure.SESSION_EXPIRED
            or one.back is not None
            or not one.member.assigned
        ):
            continue
        if one.member.instance_id is not None:
            continue
        # The process in its place is still there when it is put out, or comes soon after.
        there = {member.member_id for member in one.rebalance.members}
        heir = next(
            (
                arrival
                for arrival in free
                if (arrival.member.member_id in there or arrival.at_ms > one.at_ms)
                and one.silent_since_ms - MINUTE_MS <= arrival.at_ms <= one.at_ms + at.zombie_near_ms
                and arrival.member.member_id != one.member.member_id
                and arrival.member.topics == one.member.topics
            ),
            None,
        )
        if heir is not None:
            free.remove(heir)
            found.append((one, heir))
    return found


def same_instance_twice(past: Past, at: Thresholds) -> Iterator[Draft]:
    """Two processes take one instance id from each other."""
    taken: dict[str, list[tuple[Rebalance, Member]]] = defaultdict(list)
    hosts: dict[str, dict[str, None]] = defaultdict(dict)
    for one in past.rebalances:
        fenced = [
            member for member in one.before if member.member_id in one.left
            and one.left[member.member_id].why is Departure.FENCED
        ]  # fmt: skip
        if not fenced and one.cause is Cause.INSTANCE_FENCED:
            fenced = [
                known for member_id in one.cause_members if (known := past.known.get(member_id)) is not None
            ][:1]
        for member in fenced:
            if member.instance_id:
                taken[member.instance_id].append((one, member))
    for one in past.rebalances:
        for member in (*one.before, *one.members):
            if member.instance_id in taken:
                hosts[member.instance_id or ""][f"{member.client_id} on {member.host.lstrip('/')}"] = None
    taken = {name: times for name, times in taken.items() if len(times) >= at.fenced_min}
    if not taken:
        return
    times = sorted((one for some_times in taken.values() for one in some_times), key=lambda one: one[0].at_ms)
    yield Draft(
        Finding(
            Pattern.SAME_INSTANCE_TWICE,
            f"{count(len(taken), 'instance id')} ({some(list(taken))}) used by more than one process at once:"
            f" taken from each other {how_often(len(times))}.",
            least_sure(one.confidence for one, _ in times),
            tuple(
                f"{name}: {how_often(len(many))}, from {clock(many[0][0].at_ms)} to"
                f" {clock(many[-1][0].at_ms)}, by {some(list(hosts[name]))}."
                for name, many in taken.items()
            ),
            times[0][0].at_ms,
            times[-1][0].at_ms,
            (
                Change(
                    "group.instance.id",
                    "a different one for each process, ${HOSTNAME} in a StatefulSet; not one for the whole"
                    " deployment",
                    some(list(taken)),
                    "The loser gets FENCED_INSTANCE_ID and ends; restarted, it takes the id back.",
                ),
            ),
            tuple(taken),
            tuple(dict.fromkeys(one.id for one, _ in times)),
            no_saving="Its cost is not rebalances: each time one process is ended with FENCED_INSTANCE_ID.",
        )
    )


ALL = (rolling_deploy, zombies, restart_loop, flapping_member, autoscaler, same_instance_twice)
