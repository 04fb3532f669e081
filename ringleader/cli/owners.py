"""``ringleader owners``: who has, and had, a partition, and what was committed then."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ringleader.cli.common import (
    NONE,
    WRONG_INPUT,
    CommandConfigOption,
    JsonOption,
    console,
    fail,
    table,
    utf8,
)
from ringleader.cli.looking_back import (
    ClusterOption,
    HistoryOption,
    ServerOption,
    Times,
    UtcOption,
    history_of,
    moment_of,
)
from ringleader.host.clock import wall_ms
from ringleader.insight.names import nearest
from ringleader.insight.plain import iso

if TYPE_CHECKING:
    from rich.console import Console

    from ringleader.insight.history import History
    from ringleader.insight.model import Member, Ownership

HELP = (
    "Show which member of each group has a partition; with --at, which one had it then, and the offset that"
    " was"
    " committed then, so that a reset can be undone.\n\n"
    "Examples:\n\n"
    "  ringleader owners orders:17\n\n"
    "  ringleader owners orders:17 --at 2026-01-31T03:12\n\n"
    "  ringleader owners orders:17 --at 6h --group billing --json --bootstrap-server prod:9092"
)
CHANGES = 10
"""The last ones that are shown, of each group."""


PartitionArgument = Annotated[
    str,
    typer.Argument(
        metavar="TOPIC:PARTITION",
        parser=utf8,
        help="Partition as TOPIC:PARTITION, for example orders:17.",
        show_default=False,
    ),
]
AtOption = Annotated[
    str | None,
    typer.Option(
        metavar="TIME",
        help="Point in time: 6h, or 2026-01-31T03:12Z (UTC). Default: now.",
        show_default=False,
    ),
]
GroupOption = Annotated[
    str | None,
    typer.Option(parser=utf8, metavar="GROUP", help="Show only this group.", show_default=False),
]


def owners(
    ctx: typer.Context,
    partition: PartitionArgument,
    at: AtOption = None,
    group: GroupOption = None,
    history_file: HistoryOption = None,
    bootstrap_server: ServerOption = None,
    cluster: ClusterOption = None,
    command_config: CommandConfigOption = None,
    utc: UtcOption = False,
    as_json: JsonOption = False,
) -> None:
    """See `HELP`."""
    topic, number = _place(partition)
    now = wall_ms()
    at_ms, times = now if at is None else moment_of(at, now, "--at"), Times(now, utc=utc)
    with history_of(ctx) as history:
        all_of = {
            one.group: spans
            for one in history.groups()
            if group in (None, one.group)
            and (spans := history.ownership(one.group, topic=topic, partition=number))
        }
        if not all_of:
            _fail_without_owner(history, topic, number, group)
        if at is not None:
            _must_reach(history, at_ms, times, f"{topic}:{number}")
        rows = [_row(history, name, spans, topic, number, at_ms) for name, spans in all_of.items()]
        changes = {name: _changes(history, name, spans) for name, spans in all_of.items()}
    if as_json:
        answer: dict[str, Any] = {"topic": topic, "partition": number, "at_ms": at_ms, "at": iso(at_ms)}
        print(json.dumps({**answer, "owners": rows, "changes": changes}))
        return
    out = console()
    _show_owners(out, rows, times)
    if at is not None:
        _show_resets(out, rows, f"{topic}:{number}")
    else:
        _show_changes(out, changes, times)


def _must_reach(history: History, at_ms: int, times: Times, place: str) -> None:
    """Ends the command for a moment that the history does not cover."""
    oldest_ms, newest_ms = history.oldest_ms, history.newest_ms
    if oldest_ms is not None and at_ms < oldest_ms:
        fail(f"The history begins {times.point(oldest_ms)}: it does not know who had {place} before.")
    if newest_ms is not None and at_ms > newest_ms + 60_000:
        fail(f"The history ends {times.point(newest_ms)}: it does not know who had {place} then.")


def _changes(history: History, group: str, spans: list[Ownership]) -> list[dict[str, Any]]:
    """The last owners."""
    names = {span.member.member_id: span.member.name for span in history.members(group)}
    return [
        {
            "member": names.get(one.member_id, one.member_id),
            "member_id": one.member_id,
            "since_ms": one.since_ms,
            "since": iso(one.since_ms),
            "until_ms": one.until_ms,
            "until": None if one.until_ms is None else iso(one.until_ms),
            "rebalance_id": one.rebalance_id,
        }
        for one in _joined(spans)[-CHANGES:]
    ]


def _show_owners(out: Console, rows: list[dict[str, Any]], times: Times) -> None:
    shown = table("GROUP", "OWNER", "SINCE", "OFFSET", "COMMITTED", right=("OFFSET",))
    for column in shown.columns[2:]:
        column.no_wrap = True
    for row in rows:
        shown.add_row(
            row["group"],
            row["owner"] or "nobody",
            times.point(row["since_ms"]),
            NONE if row["offset"] is None else str(row["offset"]),
            times.point(row["committed_ms"]),
        )
    out.print(shown)
    for row in rows:
        if row["told"] is not None:
            out.print(f"{times.point(row['told_ms'])}: {row['told']}", style="dim", markup=False)


def _show_resets(out: Console, rows: list[dict[str, Any]], place: str) -> None:
    for row in rows:
        if row["offset"] is not None:
            out.print(
                f"\nTo set {row['group']} back to where it was then, with its members stopped:\n"
                f"  ringleader groups reset {row['group']} --topic {place} --to-offset {row['offset']}",
                markup=False,
                soft_wrap=True,
            )


def _show_changes(out: Console, changes: dict[str, list[dict[str, Any]]], times: Times) -> None:
    for name, owners in changes.items():
        out.print(f"\nThe last owners in {name}:", markup=False)
        changed = table("FROM", "TO", "OWNER")
        for one in owners:
            until = "now" if one["until_ms"] is None else times.point(one["until_ms"])
            changed.add_row(times.point(one["since_ms"]), until, one["member"])
        out.print(changed)


def _joined(spans: list[Ownership]) -> list[Ownership]:
    """Without the moments in which a rebalance took it from an owner that got it again."""
    found: list[Ownership] = []
    for one in spans:
        if found and found[-1].member_id == one.member_id:
            found[-1] = found[-1]._replace(until_ms=one.until_ms)
        else:
            found.append(one)
    return found


def _place(text: str) -> tuple[str, int]:
    topic, colon, number = text.rpartition(":")
    if not colon or not topic or not (number.isascii() and number.isdecimal()):
        fail(f"Give the partition as TOPIC:PARTITION, for example orders:17, not {text!r}.", WRONG_INPUT)
    return topic, int(number)


def _row(
    history: History, group: str, spans: list[Ownership], topic: str, number: int, at_ms: int
) -> dict[str, Any]:
    owned = [one for one in spans if one.since_ms <= at_ms and (one.until_ms is None or at_ms < one.until_ms)]
    one = owned[-1] if owned else None
    member: Member | None = None
    if one is not None:
        lives = history.members(group, since_ms=one.since_ms, until_ms=at_ms)
        member = next((span.member for span in lives if span.member.member_id == one.member_id), None)
    committed = history.offsets_at(group, at_ms).get((topic, number))
    report = history.reports(group).get(one.member_id) if one is not None else None
    if report is not None and report.at_ms > at_ms:
        report = None
    free = [span.until_ms for span in spans if span.until_ms is not None and span.until_ms <= at_ms]
    since_ms = max(free, default=None)
    if one is not None:
        same = [span for span in _joined(spans) if span.member_id == one.member_id and span.since_ms <= at_ms]
        since_ms = same[-1].since_ms
    return {
        "group": group,
        "owner": None if one is None else member.name if member else one.member_id,
        "member_id": one.member_id if one else None,
        "client": f"{member.client_id} on {member.host.lstrip('/')}" if member else None,
        "since_ms": since_ms,
        "since": None if since_ms is None else iso(since_ms),
        "offset": committed.offset if committed else None,
        "committed_ms": committed.at_ms if committed else None,
        "committed": iso(committed.at_ms) if committed else None,
        "told": None if report is None else report.text,
        "told_ms": None if report is None else report.at_ms,
    }


def _fail_without_owner(history: History, topic: str, number: int, group: str | None) -> None:
    names = [one.group for one in history.groups()]
    if group is not None and group not in names:
        near = nearest(group, names)
        fail(f"There is no group {group} in the history" + (f"; did you mean {near}?" if near else "."))
    topics: dict[str, int] = {}
    for name in names:
        for one in history.ownership(name):
            topics[one.topic] = max(topics.get(one.topic, 0), one.partition)
    whose = f"Group {group}" if group is not None else "No group in the history"
    verb = "has never had" if group is not None else "has ever had"
    if topic in topics:
        fail(f"{whose} {verb} {topic}:{number}; of {topic} the partitions 0 to {topics[topic]} are known.")
    near = nearest(topic, list(topics))
    fail(f"{whose} {verb} topic {topic}" + (f"; did you mean {near}?" if near else "."))
