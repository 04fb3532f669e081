"""Patterns of committed offsets: those that will expire, and those that are committed again and again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import takewhile

from ringleader.insight.advice.draft import Draft
from ringleader.insight.advice.findings import Change, Finding, Pattern
from ringleader.insight.advice.past import Past
from ringleader.insight.advice.thresholds import Thresholds
from ringleader.insight.advice.words import clock, count, how_often, length, some
from ringleader.insight.model import Commit, Confidence, EventKind, Kind, Lag, TopicPartition

RETENTION_MS = 7 * 24 * 3_600_000
"""Default of offsets.retention.minutes, since Kafka 2.0."""
_NAMED = 5
"""Partitions that the evidence names."""
_DELETED = (EventKind.OFFSETS_DELETED, EventKind.GROUP_DELETED)


def offsets_expire(past: Past, at: Thresholds) -> Iterator[Draft]:
    """A group without members whose offsets the broker deletes soon.

    A classic group's offsets expire `offsets.retention.minutes` after its last member left; those of the
    consumer protocol, and of a group that never had members, this time after their commit.
    """
    state = past.state
    if state is None or state.state != "Empty" or state.kind is Kind.SHARE or not past.offsets:
        return
    retention_ms = RETENTION_MS if past.retention_ms is None else past.retention_ms
    by_commit = state.kind is Kind.CONSUMER or not state.protocol_type
    newest_ms = max(one.at_ms for one in past.offsets.values())
    events = [one for one in past.events if one.kind in _DELETED and one.group == past.group]
    if any(one.at_ms >= newest_ms for one in events):
        return
    due: dict[TopicPartition, int] = {}
    for tp, one in past.offsets.items():
        due_ms = (one.at_ms if by_commit else state.since_ms) + retention_ms
        if past.until_ms < due_ms <= past.until_ms + at.expiry_near_ms:
            due[tp] = due_ms
    if not due:
        return
    first_ms = min(due.values())
    default = "" if past.retention_ms is not None else " by default (the setting could not be read)"
    since = f"The last commit was {clock(newest_ms)}"
    yield Draft(
        Finding(
            Pattern.OFFSETS_EXPIRE,
            f"The committed offsets of {count(len(due), 'partition')} expire in"
            f" {length(first_ms - past.until_ms)}: the group has no members.",
            Confidence.LIKELY if past.retention_ms is None else Confidence.CERTAIN,
            (
                f"{since}." if by_commit else f"{since}, the last member was gone {clock(state.since_ms)}.",
                f"Offsets of a group without members are kept for {length(retention_ms)}{default}, that is"
                f" until {clock(first_ms)}.",
                f"Afterwards its members begin where auto.offset.reset says: {_named(due)}.",
            ),
            newest_ms,
            past.until_ms,
            (
                Change(
                    "the group",
                    "a member that joins and commits before then, if only once; or write the offsets down"
                    " (`ringleader groups describe`) and set them again later",
                ),
                Change(
                    "offsets.retention.minutes",
                    "longer than the longest pause of a group",
                    str(retention_ms // 60_000),
                    "A setting of the brokers, for all groups.",
                ),
            ),
            no_saving="It is no matter of rebalances.",
        )
    )


def commits_stand(past: Past, at: Thresholds) -> Iterator[Draft]:
    """A partition whose offset is committed over and over, while records come."""
    commits: dict[TopicPartition, list[Commit]] = defaultdict(list)
    for one in past.commits:
        commits[one.topic, one.partition].append(one)
    lags: dict[TopicPartition, list[Lag]] = defaultdict(list)
    for sample in past.lags:
        lags[sample.topic, sample.partition].append(sample)
    standing = {
        tp: (run, seen)
        for tp, made in commits.items()
        if (run := _run(made, past.until_ms, at)) and (seen := _growing(run, lags[tp]))
    }
    if not standing:
        return
    owner = {tp: member for member in past.state.members for tp in member.assigned} if past.state else {}
    names = tuple(dict.fromkeys(owner[tp].name for tp in standing if tp in owner))
    behind = sum(seen[-1].end_offset - run[0].offset for run, seen in standing.values())
    begin_ms = min(run[-1].at_ms for run, _ in standing.values())
    many = len(standing) > 1
    yield Draft(
        Finding(
            Pattern.COMMITS_STAND,
            f"{some(names) or 'The group'} commits, but does not move: the"
            f" {'offsets' if many else 'offset'} of {_named(standing)} {'have' if many else 'has'} been the"
            f" same since {clock(begin_ms)}, {behind:,} records behind.",
            Confidence.LIKELY,
            tuple(
                f"{topic}-{number}: offset {run[0].offset:,} was committed {how_often(len(run))} or more in"
                f" {length(run[0].at_ms - run[-1].at_ms)}, while the end went from {seen[0].end_offset:,} to"
                f" {seen[-1].end_offset:,}."
                for (topic, number), (run, seen) in list(standing.items())[:_NAMED]
            ),
            begin_ms,
            past.until_ms,
            (
                Change(
                    "the record at that offset",
                    "look at it: one that fails again and again holds up all behind it; skip it, or write it"
                    " to a topic of dead letters",
                ),
                Change("the process", "look for partitions that it paused and never resumed"),
                Change(
                    "transactions",
                    "with isolation.level=read_committed, look for one that is open since then"
                    " (`kafka-transactions.sh find-hanging`): it hides what comes after it",
                ),
            ),
            names,
            no_saving="It is no matter of rebalances.",
        )
    )


def _run(commits: list[Commit], until_ms: int, at: Thresholds) -> list[Commit]:
    """The last commits with one offset, the newest first; none where they are too few, or over."""
    newest = commits[-1]
    run = list(takewhile(lambda one: one.offset == newest.offset, reversed(commits)))
    too_few = len(run) < at.stands_commits_min or newest.at_ms - run[-1].at_ms < at.stands_min_ms
    return [] if too_few or until_ms - newest.at_ms >= at.stands_min_ms else run


def _growing(run: list[Commit], lags: list[Lag]) -> list[Lag]:
    """The measurements of that time, if records came during it."""
    seen = [one for one in lags if one.at_ms >= run[-1].at_ms]
    grew = len(seen) > 1 and seen[-1].end_offset > max(seen[0].end_offset, run[0].offset)
    return seen if grew else []


def _named(partitions: Iterable[TopicPartition]) -> str:
    return some([f"{topic}-{number}" for topic, number in sorted(partitions)])


ALL = (offsets_expire, commits_stand)
