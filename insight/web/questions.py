"""The questions that can be asked over HTTP, each a function of a history and parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import groupby

from ringleader.insight.advice import Past, Thresholds, advice_json, advise
from ringleader.insight.advice.deploys import deploys as deploys_of
from ringleader.insight.advice.deploys import marks_of
from ringleader.insight.advice.past import PARTS_MAX
from ringleader.insight.advice.thresholds import DEFAULT
from ringleader.insight.history import History
from ringleader.insight.model import EventKind, Lag, Rebalance, TopicPartition
from ringleader.insight.plain import Json, plain
from ringleader.insight.web import lanes
from ringleader.insight.web.params import BadRequestError, Params
from ringleader.insight.web.values import line, whole

REBALANCES_MAX = 2_000
"""In one answer; older ones are asked for with `until`."""
EVENTS_MAX = 2_000
MEMBERS_MAX = 2_000
OWNERSHIP_MAX = 20_000
COLUMNS_MAX = 4_000
POINTS_MAX = 1_000
ALL_MAX = 20_000
"""Rebalances of one group that one picture or report includes, the newest."""
DAY_MS = 24 * 3_600_000

Question = Callable[[History, Params, int], Json]
"""Its arguments: the history, the parameters, and the time now."""


class NotFoundError(Exception):
    """There is no such thing; the text names it."""


def cluster(history: History, _params: Params, now_ms: int) -> Json:
    """Which cluster this is the history of, and from when to when it tells."""
    return {
        "cluster_id": history.cluster_id,
        "address": history.address,
        "oldest_ms": history.oldest_ms,
        "newest_ms": history.newest_ms,
        "now_ms": now_ms,
    }


def group(history: History, params: Params, _now_ms: int) -> Json:
    """A group as it is now, with its members."""
    name = params.text("group")
    found = history.group(name)
    if found is None:
        raise NotFoundError(f"No group {name!r} was seen.")
    known = {member.member_id: member.name for member in found.members}
    reports = history.reports(name)
    return {
        **plain(found),
        "leader_name": known.get(found.leader, found.leader),
        "told": [
            {"member_id": one, "at_ms": reports[one].at_ms, "text": reports[one].text}
            for one in known
            if one in reports
        ],
    }


def rebalances(history: History, params: Params, _now_ms: int) -> Json:
    """A line for each, the newest first; `more` where older ones were left out. Of all groups without
    `group`."""
    limit = params.number("limit", 500, 1, REBALANCES_MAX)
    since_ms, until_ms = _window(params)
    found = history.rebalances(
        params.optional("group"), since_ms=since_ms, until_ms=until_ms, limit=limit + 1, newest_first=True
    )
    return {"rebalances": [line(one) for one in found[:limit]], "more": len(found) > limit}


def rebalance(history: History, params: Params, _now_ms: int) -> Json:
    """All that is known of one."""
    found = history.rebalance(params.text("id"))
    if found is None:
        raise NotFoundError("There is no rebalance of that id, or it is so old that it was forgotten.")
    return whole(found)


def members(history: History, params: Params, _now_ms: int) -> Json:
    """The lives of members that touch the time, those that began last first."""
    since_ms, until_ms = _window(params)
    found = history.members(params.text("group"), since_ms=since_ms, until_ms=until_ms)[::-1]
    return {"members": plain(found[:MEMBERS_MAX]), "more": len(found) > MEMBERS_MAX}


def ownership(history: History, params: Params, _now_ms: int) -> Json:
    """The owners of partitions, as far as they touch the time; the newest where there is more."""
    since_ms, until_ms = _window(params)
    partition = params.number("partition", -1, 0, 2**31 - 1)
    found = history.ownership(
        params.text("group"),
        topic=params.optional("topic"),
        partition=None if partition < 0 else partition,
        since_ms=since_ms,
        until_ms=until_ms,
    )
    return {"ownership": plain(found[-OWNERSHIP_MAX:]), "more": len(found) > OWNERSHIP_MAX}


def owners(history: History, params: Params, now_ms: int) -> Json:
    """The owners of a partition at a moment, in all groups, and the offset that was committed then."""
    topic, partition = params.text("topic"), params.number("partition", None, 0, 2**31 - 1)
    at_ms = params.time_ms("at")
    at_ms = now_ms if at_ms is None else at_ms
    found = []
    for one in history.owners_at(topic, partition, at_ms):
        spans = history.members(one.group, since_ms=at_ms, until_ms=at_ms)
        member = next((span.member for span in spans if span.member.member_id == one.member_id), None)
        committed = history.offsets_at(one.group, at_ms).get((topic, partition))
        found.append(
            {
                **plain(one),
                "member": plain(member),
                "offset": None if committed is None else committed.offset,
                "committed_ms": None if committed is None else committed.at_ms,
            }
        )
    return {"topic": topic, "partition": partition, "at_ms": at_ms, "owners": found}


def timeline(history: History, params: Params, now_ms: int) -> Json:
    """The lanes of a group's picture: see `insight.web.lanes`."""
    name = params.text("group")
    since_ms, until_ms = _day(params, now_ms)
    if since_ms >= until_ms:
        raise BadRequestError("since has to be before until.")
    columns = params.number("columns", 1000, 10, COLUMNS_MAX)
    first = params.number("first", 0, 0, 1_000_000)
    by = params.optional("by") or "member"
    if by not in ("member", "partition"):
        raise BadRequestError(f"by is member or partition, not {by[:40]!r}.")
    # One that ended a bit later has its gap in this time; its end tells the cause.
    near = _near(history, name, since_ms, until_ms)
    owned = history.ownership(name, since_ms=since_ms, until_ms=until_ms)
    spans = history.members(name, since_ms=since_ms, until_ms=until_ms)
    if by == "member":
        made = lanes.member_lanes(spans, owned, near, since_ms, until_ms, columns)
    else:
        made = lanes.partition_lanes(owned, near, since_ms, until_ms, columns)
    known = {span.member.member_id: span.member.name for span in spans}
    return {
        "since_ms": since_ms,
        "until_ms": until_ms,
        "by": by,
        "lanes": made[first : first + lanes.LANES_MAX],
        "total": len(made),
        "names": known,
    }


def lag(history: History, params: Params, now_ms: int) -> Json:
    """The lag over a time: at each of `points` times the largest sum that was measured, and the partitions as
    they were last."""
    name = params.text("group")
    since_ms, until_ms = _day(params, now_ms)
    if since_ms >= until_ms:
        raise BadRequestError("since has to be before until.")
    points = params.number("points", 300, 1, POINTS_MAX)
    width_ms = max((until_ms - since_ms) / points, 1)
    last: dict[TopicPartition, Lag] = {}
    behind: dict[TopicPartition, int] = {}
    best: dict[int, tuple[int, int, TopicPartition, int]] = {}
    rows = history.lag(name, since_ms=since_ms, until_ms=until_ms)
    for at_ms, measured in groupby(rows, key=lambda row: row.at_ms):
        for row in measured:
            place = (row.topic, row.partition)
            last[place] = row
            if row.committed is not None:
                behind[place] = max(row.end_offset - row.committed, 0)
        total = sum(behind.values())
        column = int((at_ms - since_ms) // width_ms)
        if behind and (column not in best or total >= best[column][1]):
            worst = max(behind, key=behind.__getitem__)
            best[column] = (at_ms, total, worst, behind[worst])
    return {
        "points": list(best.values()),
        "partitions": [
            {
                "topic": topic,
                "partition": partition,
                "at_ms": row.at_ms,
                "end_offset": row.end_offset,
                "committed": row.committed,
                "lag": None if row.committed is None else max(row.end_offset - row.committed, 0),
            }
            for (topic, partition), row in sorted(last.items())
        ],
    }


def events(history: History, params: Params, _now_ms: int) -> Json:
    """Events other than rebalances, the newest first: of one group, or of everything."""
    since_ms, until_ms = _window(params)
    every = history.events(params.optional("group"), since_ms=since_ms, until_ms=until_ms)[::-1]
    # Reports of clients stand with their members: see `group`.
    found = [one for one in every if one.kind is not EventKind.CLIENT_REPORTED]
    return {"events": plain(found[:EVENTS_MAX]), "more": len(found) > EVENTS_MAX}


def report(history: History, params: Params, now_ms: int) -> Json:
    """The cost of a time to a group."""
    name = params.text("group")
    since_ms, until_ms = _day(params, now_ms)
    by_cause: Counter[str] = Counter()
    unowned: Counter[str] = Counter()
    caused: Counter[str] = Counter()
    found = _all(history, name, since_ms, until_ms)
    for one in found:
        by_cause[one.cause] += 1
        unowned[one.cause] += one.unowned_ms or 0
        known = {member.member_id: member.name for member in (*one.before, *one.members)}
        caused.update({known.get(each, each) for each in one.cause_members})
    return {
        "since_ms": since_ms,
        "until_ms": until_ms,
        "rebalances": len(found),
        "unowned_ms": sum(unowned.values()),
        "longest_ms": max((one.duration_ms or 0 for one in found), default=0),
        "moved": sum(len(one.moves) for one in found),
        "causes": [
            {"cause": cause, "rebalances": count, "unowned_ms": unowned[cause]}
            for cause, count in by_cause.most_common()
        ],
        "members": [{"name": each, "caused": count} for each, count in caused.most_common(50)],
    }


def findings(history: History, params: Params, now_ms: int, *, thresholds: Thresholds = DEFAULT) -> Json:
    """The changes that a group needs: see `insight.advice`."""
    name = params.text("group")
    since_ms, until_ms = _day(params, now_ms)
    past = Past.read(history, name, since_ms, until_ms, parts_max=PARTS_MAX)
    return advice_json(advise(past, thresholds))


def deploys(history: History, params: Params, now_ms: int, *, thresholds: Thresholds = DEFAULT) -> Json:
    """Deploys that were marked or recognised, with their cost."""
    name = params.text("group")
    since_ms, until_ms = _day(params, now_ms)
    past = Past.read(history, name, since_ms, until_ms)
    found = deploys_of(past, marks_of(history, name, since_ms, until_ms), thresholds)
    return {"deploys": [{**plain(one), "text": one.text} for one in found]}


def _day(params: Params, now_ms: int) -> tuple[int, int]:
    """The time that is asked for: without a beginning a day, without an end until now."""
    until_ms = params.time_ms("until") or now_ms
    return params.time_ms("since") or until_ms - DAY_MS, until_ms


def _window(params: Params) -> tuple[int | None, int | None]:
    since_ms, until_ms = params.time_ms("since"), params.time_ms("until")
    if since_ms is not None and until_ms is not None and since_ms > until_ms:
        raise BadRequestError("since has to be before until.")
    return since_ms, until_ms


def _near(history: History, name: str, since_ms: int, until_ms: int) -> list[Rebalance]:
    """The rebalances of that time, and the one that ended next."""
    after = history.rebalances(name, since_ms=until_ms + 1, limit=1)
    return _all(history, name, since_ms, until_ms) + after


def _all(history: History, name: str, since_ms: int, until_ms: int) -> list[Rebalance]:
    return history.rebalances(name, since_ms=since_ms, until_ms=until_ms, limit=ALL_MAX, newest_first=True)[
        ::-1
    ]


_TIME = ("since", "until")
QUESTIONS: dict[str, tuple[Question, tuple[str, ...]]] = {
    "cluster": (cluster, ()),
    "group": (group, ("group",)),
    "rebalances": (rebalances, ("group", *_TIME, "limit")),
    "rebalance": (rebalance, ("id",)),
    "members": (members, ("group", *_TIME)),
    "ownership": (ownership, ("group", "topic", "partition", *_TIME)),
    "owners": (owners, ("topic", "partition", "at")),
    "timeline": (timeline, ("group", *_TIME, "by", "columns", "first")),
    "lag": (lag, ("group", *_TIME, "points")),
    "events": (events, ("group", *_TIME)),
    "report": (report, ("group", *_TIME)),
    "findings": (findings, ("group", *_TIME)),
    "deploys": (deploys, ("group", *_TIME)),
}
"""By their place under /api/: the function and its parameters."""
SLOW = ("findings",)
"""Recorded history is played again for these: they keep nothing else waiting."""
