"""Patterns of work: members without any, two applications in one group, lag, commits that stopped."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import median

from ringleader.insight.advice.draft import Draft
from ringleader.insight.advice.findings import Change, Finding, Pattern
from ringleader.insight.advice.past import Behind, Past
from ringleader.insight.advice.replay.policy import Policy
from ringleader.insight.advice.thresholds import Thresholds
from ringleader.insight.advice.words import clock, count, how_often, length, some
from ringleader.insight.model import Confidence, EventKind, Kind, Member, TopicPartition


def _last(past: Past) -> tuple[tuple[Member, ...], int]:
    """Members at the end of the window, and since when they are these."""
    if past.rebalances:
        return past.rebalances[-1].members, past.rebalances[-1].at_ms
    return (past.state.members, past.state.since_ms) if past.state else ((), past.until_ms)


def idle_members(past: Past, at: Thresholds) -> Iterator[Draft]:
    """More members than partitions."""
    members, since_ms = _last(past)
    idle = [one for one in members if not one.assigned]
    if not idle or len(idle) == len(members) or past.until_ms - since_ms < at.idle_min_ms:
        return
    if past.state is not None and past.state.kind is Kind.SHARE:
        return
    partitions = len({one for member in members for one in member.assigned})
    busy = len(members) - len(idle)
    within = [one for one in past.counted if one.joined or one.left]
    yield Draft(
        Finding(
            Pattern.IDLE_MEMBERS,
            f"{count(len(idle), 'member')} of {len(members)} {'has' if len(idle) == 1 else 'have'} nothing to"
            f" do: {count(partitions, 'partition')} for {len(members)} members.",
            Confidence.CERTAIN,
            (f"Without a partition since {clock(since_ms)}: {some([one.name for one in idle])}.",),
            since_ms,
            past.until_ms,
            (
                Change("replicas", str(busy), str(len(members)), "As many members as have partitions."),
                Change(
                    "partitions of the topic",
                    f"at least {len(members)}",
                    str(partitions),
                    "Or give them work; records of one key may then go to another partition.",
                ),
            ),
            tuple(one.name for one in idle),
            no_saving="It costs processes, no rebalances.",
        ),
        Policy(f"{busy} members", members=busy) if within else None,
    )


def two_applications(past: Past, at: Thresholds) -> Iterator[Draft]:
    """Members that read different topics under one group id."""
    members, last_ms = _last(past)
    members = tuple(one for one in members if one.topics)
    kinds: dict[tuple[str, ...], list[Member]] = defaultdict(list)
    for member in members:
        kinds[member.topics].append(member)
    if len(kinds) < 2:
        return
    apart = _components(list(kinds))
    since_ms = last_ms
    for one in reversed(past.rebalances):
        if len({member.topics for member in one.members if member.topics}) < 2:
            break
        since_ms = one.at_ms
    disjoint = len(apart) > 1
    if not disjoint and past.until_ms - since_ms < at.mixed_min_ms:
        return
    yield Draft(
        Finding(
            Pattern.TWO_APPLICATIONS,
            f"Members of one group read different topics: {len(kinds)} subscriptions"
            + (", without a topic in common: these are different applications." if disjoint else "."),
            Confidence.LIKELY if disjoint else Confidence.POSSIBLE,
            tuple(
                f"{', '.join(topics)}: {some([one.name for one in some_members])}."
                for topics, some_members in sorted(kinds.items(), key=lambda one: -len(one[1]))[:6]
            ),
            since_ms,
            past.until_ms,
            (
                Change(
                    "group.id",
                    "one for each application"
                    if disjoint
                    else "one for each application, or the same subscription everywhere",
                    past.group,
                    "Each one's restarts stop the others, too.",
                ),
            ),
            tuple(one.name for one in members),
            no_saving="" if disjoint else "Their topics overlap, so they cannot be played apart.",
        ),
        apart=tuple(apart) if disjoint else (),
    )


def _components(subscriptions: Sequence[tuple[str, ...]]) -> list[frozenset[str]]:
    """Sets of topics that are connected, as one member reads both."""
    found: list[frozenset[str]] = []
    for topics in subscriptions:
        together = frozenset(topics)
        apart = []
        for one in found:
            if one & together:
                together |= one
            else:
                apart.append(one)
        found = [*apart, together]
    return found


class _Series:
    """Lag of one partition over the window."""

    def __init__(self, behind: Behind, at: Thresholds) -> None:
        self.enough = behind.measured >= at.lag_samples_min
        if not self.enough:
            return
        self.first, self.last = behind.first, behind.last
        oldest, middle, newest = behind.ends
        begin = middle if behind.measured >= 2 * at.lag_samples_min else oldest
        seconds = max((newest.at_ms - begin.at_ms) / 1000, 0.001)
        self.produced = max(newest.end_offset - begin.end_offset, 0) / seconds
        self.consumed = max((newest.committed or 0) - (begin.committed or 0), 0) / seconds


def lag(past: Past, at: Thresholds) -> Iterator[Draft]:
    """Lag that a few partitions have, or all of them."""
    series = {tp: made for tp, one in past.behind.items() if (made := _Series(one, at)).enough}
    if not series:
        return
    first, last = sum(one.first for one in series.values()), sum(one.last for one in series.values())
    if last < at.lag_min_records or last < first:
        return
    hottest = sorted(series, key=lambda tp: -series[tp].last)
    hot = hottest[: max(len(hottest) // 5, 1)]
    hot_share = sum(series[tp].last for tp in hot) / last
    middle = median(one.last for one in series.values())
    since_ms = min(one.since_ms for one in past.behind.values())
    until_ms = max(one.newest.at_ms for one in past.behind.values())
    members, _ = _last(past)
    owner = {tp: member for member in members for tp in member.assigned}
    produced = sum(one.produced for one in series.values())
    consumed = sum(one.consumed for one in series.values())
    grown = sum(one.last > one.first * at.lag_growth for one in series.values())
    if (
        len(series) > 1
        and hot_share >= at.skew_share
        and middle <= at.skew_median_share * series[hottest[0]].last
    ):
        yield _skew(past, hot, series, owner, last, hot_share, middle, since_ms, until_ms)
    elif last >= first * at.lag_growth and grown >= at.capacity_share * len(series) and members:
        needed = math.ceil(len(members) * produced / consumed) if consumed else 2 * len(members)
        needed = max(needed, len(members) + 1)
        change = (
            Change("replicas", str(needed), str(len(members)), "Members times records produced over read.")
            if needed <= len(series)
            else Change(
                "partitions of the topic",
                f"at least {needed}, and as many members",
                str(len(series)),
                "More members than partitions would have nothing to do.",
            )
        )
        yield Draft(
            Finding(
                Pattern.LAG_IS_CAPACITY,
                f"Lag grows in {grown} of {count(len(series), 'partition')}: {produced:,.0f} records a second"
                f" come, {consumed:,.0f} are read.",
                Confidence.LIKELY,
                (
                    f"{first:,.0f} records behind at first, {last:,.0f} at the end,"
                    f" {length(until_ms - since_ms)} later.",
                    f"{count(len(members), 'member')} read {count(len(series), 'partition')}.",
                ),
                since_ms,
                until_ms,
                (change,),
                no_saving="It is no matter of rebalances: the rates say it.",
            )
        )


def _skew(
    past: Past,
    hot: Sequence[TopicPartition],
    series: dict[TopicPartition, _Series],
    owner: dict[TopicPartition, Member],
    last: float,
    hot_share: float,
    middle: float,
    since_ms: int,
    until_ms: int,
) -> Draft:
    top = hot[0]
    owners = tuple(dict.fromkeys(owner[tp].name for tp in hot if tp in owner))
    others = max((len(owner[tp].assigned) - 1 for tp in hot if tp in owner), default=0)
    rate, usual = series[top].produced, median(one.produced for one in series.values())
    changes = []
    if rate > 2 * usual:
        changes.append(
            Change(
                "the records' key",
                "one that spreads: split the hot key, or none where order does not matter",
                why=f"{top[0]}-{top[1]} gets {rate:,.0f} records a second, the median one {usual:,.0f}.",
            )
        )
    if others:
        changes.append(
            Change(
                "partition.assignment.strategy",
                "lag-aware (Ringleader's clients), so that the owner of a hot partition has fewer others",
                why=f"Its owner has {count(others, 'other partition')} besides.",
            )
        )
    if not changes:
        changes.append(
            Change("the owner", f"look at {owners[0] if owners else 'it'}: the others keep up with as much")
        )
    named = [f"{topic}-{number}" for topic, number in hot]
    return Draft(
        Finding(
            Pattern.LAG_IS_SKEW,
            f"{hot_share:.0%} of the lag of {last:,.0f} records is in {some(named)}.",
            Confidence.LIKELY,
            (
                f"{named[0]} is {series[top].last:,.0f} records behind, the median partition {middle:,.0f}.",
                *((f"Owned by {some(owners)}.",) if owners else ()),
            ),
            since_ms,
            until_ms,
            tuple(changes),
            owners,
            no_saving="It is no matter of rebalances: the rates say it.",
        )
    )


def commits_stopped(past: Past, at: Thresholds) -> Iterator[Draft]:
    """A member that is in the group, and commits nothing though there is something to read."""
    stuck = _stuck(past, at)
    seen = [one for one in past.events if one.kind is EventKind.COMMITS_STOPPED and one.group == past.group]
    if not stuck and not seen:
        return
    names = tuple(member.name for member, _, _ in stuck)
    begin_ms = min([*(when for _, when, _ in stuck), *(one.at_ms for one in seen)])
    timeout_ms = max((member.rebalance_timeout_ms or 0 for member, _, _ in stuck), default=0)
    yield Draft(
        Finding(
            Pattern.COMMITS_STOPPED,
            f"{some(names)} {'is' if len(names) == 1 else 'are'} in the group and sends heartbeats, but"
            f" commits nothing since {clock(begin_ms)}."
            if len(names) == 1
            else f"{count(len(names), 'member')} ({some(names)}) send heartbeats, but commit nothing."
            if names
            else f"Members stopped committing {how_often(len(seen))} while their heartbeats went on.",
            Confidence.CERTAIN if stuck else Confidence.LIKELY,
            (
                *(
                    f"{member.name}: last commit {clock(when)}, {records:,} records behind in"
                    f" {count(len(member.assigned), 'partition')}."
                    for member, when, records in stuck[:5]
                ),
                *(f"{clock(one.at_ms)} {one.text.rstrip('.')}." for one in seen[-5:]),
            ),
            begin_ms,
            past.until_ms,
            (
                Change(
                    "the process",
                    "look at what its poll loop waits for (a stack trace): a record that fails again and"
                    " again, a call without a timeout, paused partitions",
                ),
                Change(
                    "max.poll.interval.ms",
                    "shorter: a member that does not call poll() leaves after it, and others go on",
                    str(timeout_ms) if timeout_ms else None,
                ),
            ),
            names,
            no_saving="It is no matter of rebalances.",
        )
    )


def _stuck(past: Past, at: Thresholds) -> list[tuple[Member, int, int]]:
    """Members that stopped committing: the last commit (Unix ms), and the records behind."""
    members, since_ms = _last(past)
    commits: dict[TopicPartition, list[int]] = defaultdict(list)
    for one in past.commits:
        commits[one.topic, one.partition].append(one.at_ms)
    stuck: list[tuple[Member, int, int]] = []
    for member in members:
        times = sorted(when for tp in member.assigned for when in commits[tp])
        newest = [past.behind[tp].newest for tp in member.assigned if tp in past.behind]
        behind = [one for one in newest if one.committed is not None]
        records = sum(one.end_offset - (one.committed or 0) for one in behind)
        if not times or not behind or records <= 0:
            continue
        last_ms = max(times[-1], since_ms)
        gaps = [later - earlier for earlier, later in pairwise(times)]
        patience_ms = max(at.stopped_min_ms, at.stopped_intervals * (median(gaps) if gaps else 0))
        seen_ms = max(one.at_ms for one in behind)
        grew = any(
            one.end_offset > (one.committed or 0) and one.at_ms - last_ms >= patience_ms for one in behind
        )
        if grew and seen_ms - last_ms >= patience_ms:
            stuck.append((member, last_ms, records))
    return stuck


ALL = (commits_stopped, lag, idle_members, two_applications)
