"""Patterns of what rebalances take: slow poll loops, slow members, slow leaders, storms, eager assignors."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from statistics import median

from ringleader.clients.assignors import ASSIGNORS
from ringleader.insight.advice.draft import Draft
from ringleader.insight.advice.findings import Change, Finding, Pattern, Saving
from ringleader.insight.advice.past import Past, least_sure, place
from ringleader.insight.advice.replay.policy import Policy
from ringleader.insight.advice.thresholds import Thresholds
from ringleader.insight.advice.words import (
    clock,
    count,
    how_often,
    length,
    partition_time,
    rounded_up_ms,
    some,
)
from ringleader.insight.model import Cause, Confidence, Departure, Kind, Outcome, Rebalance

POLL_RECORDS = 500
"""Default of max.poll.records."""
AT_ONCE_MS = 100
"""A leader that does nothing but assign takes no longer."""
_SURE = (Confidence.EXACT, Confidence.CERTAIN)


def slow_poll_loop(past: Past, at: Thresholds) -> Iterator[Draft]:
    """Members that did not call poll() in time, and were out of the group for it."""
    goings = [
        one
        for one in past.goings
        if one.departure.why in (Departure.POLL_INTERVAL_EXCEEDED, Departure.NOT_REJOINED)
    ]
    enough = len(goings) >= at.poll_exceeded_min or any(one.departure.confidence in _SURE for one in goings)
    if not goings or not enough:
        return
    names = past.names(one.member.member_id for one in goings)
    now_ms = max((one.member.rebalance_timeout_ms or 0 for one in goings), default=0)
    busy = [
        one.back.at_ms - one.at_ms + (one.member.rebalance_timeout_ms or 0)
        for one in goings
        if one.back is not None
    ]
    busy_ms = max(busy, default=now_ms)
    wanted_ms = rounded_up_ms(max(busy_ms, now_ms) * 1.2)
    records = max(int(POLL_RECORDS * 0.8 * now_ms / busy_ms), 1) if busy_ms and now_ms else POLL_RECORDS // 2
    yield Draft(
        Finding(
            Pattern.SLOW_POLL_LOOP,
            f"{some(names)} did not call poll() within max.poll.interval.ms"
            f" ({length(now_ms) if now_ms else 'not known'}) {how_often(len(goings))}.",
            least_sure(one.departure.confidence for one in goings),
            tuple(
                f"{clock(one.at_ms)} {past.name(one.member.member_id)} {one.departure.why.value},"
                + (f" back {length(one.back.at_ms - one.at_ms)} later." if one.back else " not back yet.")
                for one in goings[-5:]
            ),
            goings[0].at_ms,
            goings[-1].at_ms,
            (
                Change(
                    "max.poll.records",
                    str(records),
                    why=f"If it is the default of {POLL_RECORDS} now: a round took up to {length(busy_ms)}.",
                ),
                Change(
                    "max.poll.interval.ms",
                    str(wanted_ms),
                    str(now_ms) if now_ms else None,
                    "Or allow it the time; then rebalances wait for it as long.",
                ),
            ),
            names,
            tuple(dict.fromkeys(one.rebalance.id for one in goings)),
        ),
        Policy(f"max.poll.interval.ms {length(wanted_ms)}", max_poll_interval_ms=wanted_ms),
        ("The member that came back is taken to be the same process, busy until then.",),
    )


def storm(past: Past, at: Thresholds) -> Iterator[Draft]:
    """Rebalances that make each other."""
    storms = [
        run for run in _rows(past, at) if len(run) >= at.storm_rebalances_min and _feeds_itself(past, at, run)
    ]
    if not storms:
        return
    longest = max(storms, key=len)
    all_of = [one for run in storms for one in run]
    why = Counter(departure.why for one in all_of for departure in one.left.values())
    members = [member_id for one in all_of for member_id in (*one.left, *one.cause_members)]
    known = [past.known[member_id] for member_id in members if member_id in past.known]
    session_ms = max((one.session_timeout_ms or 0 for one in known), default=0)
    rebalance_ms = max((one.rebalance_timeout_ms or 0 for one in known), default=0)
    change, policy = _against_storms(why, session_ms, rebalance_ms)
    yield Draft(
        Finding(
            Pattern.STORM,
            f"{count(len(storms), 'storm')}: up to {len(longest)} rebalances in"
            f" {length(longest[-1].at_ms - past.began_ms(longest[0]))}, each made by the one before.",
            Confidence.LIKELY,
            (
                f"{clock(past.began_ms(longest[0]))} to {clock(longest[-1].at_ms)}: "
                + ", ".join(
                    f"{n} × {cause.value}" for cause, n in Counter(o.cause for o in longest).most_common()
                )
                + ".",
                f"The next one began at most {length(at.storm_gap_ms)} after the last.",
            ),
            past.began_ms(all_of[0]),
            all_of[-1].at_ms,
            (
                change,
                Change(
                    "partition.assignment.strategy",
                    "cooperative-sticky",
                    why="Members go on with their partitions while the group rebalances.",
                ),
            ),
            past.names(members),
            tuple(one.id for one in all_of),
            no_saving="No setting that the replay knows would have prevented it.",
        ),
        policy,
    )


def _against_storms(
    why: Counter[Departure], session_ms: int, rebalance_ms: int
) -> tuple[Change, Policy | None]:
    """The setting to change, by the departures in the storms; and the same for a replay."""
    sessions = why[Departure.SESSION_EXPIRED]
    if sessions >= sum(why.values()) - sessions and sessions:
        wanted_ms = rounded_up_ms(max(session_ms * 2, 45_000))
        change = Change("session.timeout.ms", str(wanted_ms), str(session_ms) or None)
        return change, Policy(f"session timeout {length(wanted_ms)}", session_timeout_ms=wanted_ms)
    if why:
        wanted_ms = rounded_up_ms(max(rebalance_ms * 2, 300_000))
        change = Change(
            "max.poll.interval.ms",
            str(wanted_ms),
            str(rebalance_ms) or None,
            "A rebalance waits this long for members that are at work.",
        )
        return change, Policy(f"max.poll.interval.ms {length(wanted_ms)}", max_poll_interval_ms=wanted_ms)
    change = Change(
        "the client library",
        "update it: its leader asks again and again (aiokafka and kafka-python do after one change)",
    )
    return change, None


def _rows(past: Past, at: Thresholds) -> list[list[Rebalance]]:
    """Rebalances that followed each other at once. The second half of a cooperative one is no rebalance of
    its own."""
    rows: list[list[Rebalance]] = []
    last_ms = 0
    for one in past.counted:
        if one.cause is Cause.REBALANCE_CONTINUED:
            last_ms = one.at_ms
            continue
        if rows and past.began_ms(one) - last_ms <= at.storm_gap_ms:
            rows[-1].append(one)
        else:
            rows.append([one])
        last_ms = one.at_ms
    return rows


def _feeds_itself(past: Past, at: Thresholds, run: list[Rebalance]) -> bool:
    """Whether most of it is made by members that it put out itself, and leaders that ask again."""
    put_out: set[tuple[str, str]] = set()
    made = 0
    for one in run:
        joined = {place(past.known[member_id]) for member_id in one.joined if member_id in past.known}
        again = one.cause in (Cause.LEADER_REJOINED, Cause.SYNC_MISSING)
        made += again or bool(joined & put_out) or one.outcome is Outcome.SUPERSEDED
        for member_id, departure in one.left.items():
            if departure.why in (Departure.NOT_REJOINED, Departure.NOT_SYNCED, Departure.SESSION_EXPIRED):
                if member_id in past.known:
                    put_out.add(place(past.known[member_id]))
                made += bool(one.joined) and not (again or joined & put_out)
    return made >= at.storm_share * len(run)


def slow_leader(past: Past, at: Thresholds) -> Iterator[Draft]:
    """The leader computes for seconds while all the others wait."""
    # Of a group whose broker assigns, it is the time until the broker computes.
    classic = (one for one in past.counted if one.kind is Kind.CLASSIC)
    slow = [one for one in classic if (one.leader_ms or 0) >= at.slow_leader_ms]
    if len(slow) < at.slow_leader_min:
        return
    leaders = past.names(one.leader for one in slow)
    times = [one.leader_ms or 0 for one in slow]
    known = sum(one.leader_ms is not None for one in past.counted)
    yield Draft(
        Finding(
            Pattern.SLOW_LEADER,
            f"The leader took {length(median(times))} (median of {len(slow)} rebalances) to assign"
            " partitions; all members wait for it.",
            Confidence.CERTAIN,
            (
                f"In {len(slow)} of {known} rebalances it took {length(at.slow_leader_ms)} or more, up to"
                f" {length(max(times))}: {some(leaders)}.",
                f"Assignor {slow[-1].protocol or 'not known'}, {count(len(slow[-1].members), 'member')}.",
            ),
            past.began_ms(slow[0]),
            slow[-1].at_ms,
            (
                Change(
                    "partition.assignment.strategy",
                    "an assignor of the library (range, cooperative-sticky), or no calls to databases and"
                    " services in your own",
                    slow[-1].protocol or None,
                ),
                Change("the leader's host", "more CPU, if its limit throttles it while it computes"),
            ),
            leaders,
            tuple(one.id for one in slow),
        ),
        Policy(f"a leader that assigns within {length(AT_ONCE_MS)}", leader_ms=AT_ONCE_MS),
    )


def slow_joiner(past: Past, at: Thresholds) -> Iterator[Draft]:
    """One member that everybody waits for."""
    by_place: dict[tuple[str, str], list[Rebalance]] = defaultdict(list)
    for one in past.counted:
        last = past.known.get(one.join_last_member)
        if last is None or (one.join_ms or 0) < at.slow_join_ms:
            continue
        if last.member_id in one.left:
            continue  # it did not come at all: a finding of its own
        by_place[place(last)].append(one)
    slow = {where: them for where, them in by_place.items() if len(them) >= at.slow_join_min}
    if not slow:
        return
    rebalances = sorted(
        {one.id: one for them in slow.values() for one in them}.values(), key=lambda o: o.at_ms
    )
    names = past.names(one.join_last_member for one in rebalances)
    times = [one.join_ms or 0 for one in rebalances]
    unowned_ms = sum(one.unowned_ms or 0 for one in rebalances)
    rounds = max(int(POLL_RECORDS * 3_000 / median(times)), 1)
    yield Draft(
        Finding(
            Pattern.SLOW_JOINER,
            f"{some(names)} held up {count(len(rebalances), 'rebalance')}:"
            f" {length(median(times))} each (median), {length(sum(times))} together.",
            Confidence.CERTAIN,
            (
                *(
                    f"{clock(one.at_ms)} the group waited {length(one.join_ms or 0)} for"
                    f" {past.name(one.join_last_member)}."
                    for one in rebalances[-4:]
                ),
                *((f"Meanwhile {partition_time(unowned_ms)} without an owner.",) if unowned_ms else ()),
            ),
            past.began_ms(rebalances[0]),
            rebalances[-1].at_ms,
            (
                Change(
                    "max.poll.records",
                    str(rounds),
                    why=f"If it is the default of {POLL_RECORDS} now: a member rejoins in poll(), so one"
                    " round should take no longer than a heartbeat (3 s).",
                ),
                Change(
                    "partition.assignment.strategy",
                    "cooperative-sticky",
                    why="The others go on while they wait.",
                ),
            ),
            names,
            tuple(one.id for one in rebalances),
        ),
        Policy("every member rejoins at its next heartbeat", prompt=True),
    )


def eager(past: Past, at: Thresholds) -> Iterator[Draft]:
    """Everybody gives up everything, though little changes hands."""
    rebalances = [
        one
        for one in past.counted
        if one.kind is Kind.CLASSIC and len(one.before) >= at.eager_members_min and one.members
    ]
    if len(rebalances) < at.eager_rebalances_min:
        return
    protocol = rebalances[-1].protocol
    assignor = ASSIGNORS.get(protocol)
    if assignor is None or assignor.cooperative or past.rebalances[-1].protocol != protocol:
        return
    held = sum(len(member.assigned) for one in rebalances for member in one.before)
    moved = sum(len(one.moves) for one in rebalances)

    def saves(saving: Saving) -> bool:
        enough_ms = max(at.eager_saved_min_ms, at.eager_saved_share * saving.unowned_as_was_ms)
        return saving.claimed and saving.saved_ms >= enough_ms

    yield Draft(
        Finding(
            Pattern.EAGER,
            f"All members gave up all partitions {how_often(len(rebalances))}, {held:,} in all,"
            f" though {moved:,} changed hands.",
            Confidence.CERTAIN,
            (f"The assignor is {protocol}, which is eager: everybody stops while the group rebalances.",),
            past.began_ms(rebalances[0]),
            rebalances[-1].at_ms,
            (
                Change(
                    "partition.assignment.strategy",
                    f"first cooperative-sticky,{protocol} on all members, then cooperative-sticky alone"
                    " (Java and librdkafka; aiokafka and kafka-python are eager only)",
                    protocol,
                    "A member of both kinds cannot be in one group, so it takes two rounds of restarts.",
                ),
            ),
            rebalance_ids=tuple(one.id for one in rebalances),
        ),
        Policy("assignor cooperative-sticky", assignor="cooperative-sticky"),
        ("Partitions that change hands take a second, short rebalance; all others go on meanwhile.",),
        counts=saves,
        by_saving=True,
    )


ALL = (slow_poll_loop, slow_joiner, slow_leader, storm, eager)
