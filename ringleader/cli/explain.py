"""``ringleader explain``: why a member was removed, and what an error means in a group."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from ringleader.cli.common import CommandConfigOption, JsonOption, complain, console, fail, utf8
from ringleader.cli.looking_back import (
    ClusterOption,
    GroupArgument,
    HistoryOption,
    ServerOption,
    SinceOption,
    Times,
    UntilOption,
    UtcOption,
    doubt,
    plain,
    say,
    view_of,
    where,
)
from ringleader.insight.names import nearest

if TYPE_CHECKING:
    from rich.console import Console

    from ringleader.insight.advice.explain import Incident, Seen
    from ringleader.insight.advice.fall_backs import FallBack
    from ringleader.insight.advice.findings import Change, Saving
    from ringleader.insight.advice.past import Past
    from ringleader.insight.model import Event, MemberSpan

HELP = (
    "Tell why members are no longer in a group: when, why, how long they had been silent, from"
    " where,"
    " and what to change.\n\n"
    "With a MEMBER (its client id, host, instance id or member id, or the beginning of one) only of that one;"
    " with an ERROR (Kafka's name or number, or what a library calls it) what it means, and what in the"
    " group's"
    " history brings it.\n\n"
    "Examples:\n\n"
    "  ringleader explain billing\n\n"
    "  ringleader explain billing billing-7 --since 7d\n\n"
    "  ringleader explain billing CommitFailedException\n\n"
    "  ringleader explain billing 27 --bootstrap-server prod:9092"
)
INCIDENTS_MAX = 10
"""That are shown; JSON has all."""


def explain(
    ctx: typer.Context,
    group: GroupArgument,
    about: Annotated[
        str | None,
        typer.Argument(
            metavar="[MEMBER or ERROR]",
            parser=utf8,
            help="Member, client id or instance id, or error, to explain.",
            show_default=False,
        ),
    ] = None,
    since: SinceOption = "24h",
    until: UntilOption = None,
    history_file: HistoryOption = None,
    bootstrap_server: ServerOption = None,
    cluster: ClusterOption = None,
    command_config: CommandConfigOption = None,
    utc: UtcOption = False,
    as_json: JsonOption = False,
) -> None:
    """See `HELP`."""
    from ringleader.insight.advice import explain as explaining
    from ringleader.insight.advice.errors import error_of, looks_like_an_error
    from ringleader.insight.advice.fall_backs import fall_backs

    with view_of(ctx) as view:
        past, window, times = view.past(), view.window, view.times
        reports = view.history.reports(group)
        view.warn_of_gaps()
    spans: list[MemberSpan] = []
    error = None
    if about is not None:
        spans = explaining.members_named(past, about)
        error = None if spans else error_of(about)
        if not spans and error is None:
            if looks_like_an_error(about):
                fail(f"{about} is no error that members of groups meet.")
            _no_such_member(past, group, about, times)
    if error is not None:
        _say_error(past, explaining.of_error(past, error), group, times, as_json=as_json)
        return
    found = explaining.of_members(past, spans) if about is not None else explaining.incidents(past)
    computed = fall_backs(past) if about is None else []
    ids = list(dict.fromkeys(one.member.member_id for one in spans))
    if as_json:
        print(
            json.dumps(
                {
                    "group": group,
                    **plain(window),
                    "incidents": plain(found),
                    "members": plain(spans),
                    "told": plain([one for one in map(reports.get, ids) if one is not None]),
                    "fall_backs": plain(computed),
                }
            )
        )
        return
    out = console()
    if about is None and not found:
        many = len(past.counted)
        rebalances = f"{many} rebalance{'' if many == 1 else 's'}" if many else "no rebalance"
        out.print(
            f"No member of {group} went since {times.point(window.since_ms)}; there was {rebalances}.",
            markup=False,
        )
    _say_incidents(out, found, times)
    _say_fall_backs(out, computed, times)
    _say_present(out, past, spans, reports, times)


def _say_present(
    out: Console, past: Past, spans: list[MemberSpan], reports: dict[str, Event], times: Times
) -> None:
    """Members that are still there, with what their clients reported."""
    members = {one.member_id: one for one in (past.state.members if past.state else ())}
    for span in spans:
        if span.until_ms is None:
            here = members.get(span.member.member_id, span.member)
            since, has = times.point(span.since_ms), _partitions(here.assigned)
            host = f" ({where(here)})" if here.instance_id else ""
            out.print(f"{here.name}{host} is in the group since {since}, with {has}.", markup=False)
            if (report := reports.get(here.member_id)) is not None:
                say(out, f"{times.point(report.at_ms)}: {report.text}", style="dim")


def _say_fall_backs(out: Console, found: list[FallBack], times: Times) -> None:
    """Where the coordinator computed in place of a member."""
    from ringleader.insight.advice.words import how_often, some

    for one in found:
        often, last = how_often(len(one.times)), times.point(one.times[-1])
        out.print(f"The coordinator assigned {often} in place of a member, last {last}:", markup=False)
        members = f" ({some(one.members)})" if one.members else ""
        say(out, f"{one.reason}{members}")
        for change in one.changes:
            say_change(out, change)
        out.print()


def _no_such_member(past: Past, group: str, about: str, times: Times) -> None:
    from ringleader.insight.advice import explain as explaining

    known = explaining.names(past)
    clients = sorted({one.client_id for one in past.known.values()})
    near = nearest(about, known) or nearest(about, clients)
    hint = f"did you mean {near}?" if near else f"its members were {', '.join(known[:5])}." if known else ""
    fail(
        f"No member {about} was in {group} since {times.point(past.since_ms)}"
        + (f"; {hint}" if hint else ".")
    )


def _say_incidents(out: Console, found: list[Incident], times: Times) -> None:
    from ringleader.insight.advice.words import length, some

    if len(found) > INCIDENTS_MAX:
        complain(f"{len(found)} members went; the last {INCIDENTS_MAX} are shown, --json has all.")
    for one in found[-INCIDENTS_MAX:]:
        out.print(
            f"[bold]{_safe(one.member.name)}[/bold] went {times.point(one.at_ms)}:"
            f" [bold]{one.why}[/bold]{doubt(one.confidence)}"
        )
        lines = [f"from {where(one.member)}, generation {one.generation}"]
        if one.silent_ms is not None and one.why not in ("left", "restarted", "fenced"):
            lines.append(f"it was silent for {length(one.silent_ms)}{_limit(one)}")
        if one.partitions:
            heirs = f", then of {some(one.heirs)}" if one.heirs else ""
            lines.append(f"it had {_partitions(one.partitions)}{heirs}")
        later_ms = None if one.back_ms is None else one.back_ms - one.at_ms
        if later_ms is None:
            lines.append("it has not come back")
        else:
            lines.append("back at once" if later_ms < 1_000 else f"back {length(later_ms)} later")
        for line in lines:
            say(out, line)
        for sentence in one.evidence:
            say(out, sentence, style="dim")
        for change in one.changes:
            say_change(out, change)
        out.print()


def _limit(one: Incident) -> str:
    from ringleader.insight.advice.words import length

    timeout, name = one.member.session_timeout_ms, "session timeout"
    if one.why in ("poll interval exceeded", "did not rejoin in time"):
        timeout, name = one.member.rebalance_timeout_ms, "max.poll.interval.ms"
    return f" ({name} {length(timeout)})" if timeout else ""


def say_change(out: Console, change: Change) -> None:
    """One line, or two where it has a reason."""
    from rich.text import Text

    now = f" (now {change.now})" if change.now else ""
    say(out, Text.assemble(f"{change.setting}: ", (change.value, "bold"), now), "→")
    if change.why:
        say(out, change.why, style="dim", indent=4)


def say_saving(out: Console, saving: Saving | None, no_saving: str) -> None:
    """Print the figure of a saving, or the reason why there is none."""
    if saving is not None and saving.claimed:
        say(out, saving.text, "=")
        for sentence in saving.assumptions:
            say(out, sentence, style="dim", indent=4)
    elif no_saving:
        say(out, f"No figure: {no_saving[0].lower()}{no_saving[1:]}", "=")


def _say_error(past: Past, seen: Seen, group: str, times: Times, *, as_json: bool) -> None:
    from ringleader.insight.advice.words import count, length

    error = seen.error
    if as_json:
        rebalances = [
            {"id": one.id, "at_ms": one.at_ms, "generation": one.generation, "cause": one.cause}
            for one in seen.rebalances
        ]
        print(
            json.dumps(
                {
                    "group": group,
                    "error": plain(error),
                    "incidents": plain(seen.incidents),
                    "rebalances": rebalances,
                    "events": plain(seen.events),
                }
            )
        )
        return
    out = console()
    number = f" ({error.code})" if error.code is not None else ""
    out.print(f"[bold]{error.name}[/bold]{number}")
    for title, text in (("means", error.means), ("client", error.client), ("to do", error.do)):
        say(out, text, f"{title:6}")
    out.print()
    since = times.point(past.since_ms)
    if seen.nothing:
        out.print(f"Nothing in the history of {group} since {since} brings it.", markup=False)
        return
    if seen.rebalances:
        longest = max((one.duration_ms or 0 for one in seen.rebalances), default=0)
        took = f", up to {length(longest)} long" if longest else ""
        last = seen.rebalances[-1]
        out.print(
            f"In {group} since {since}: {count(len(seen.rebalances), 'rebalance')} that may bring it{took};"
            f" the last one {times.point(last.at_ms)} ({last.cause}).",
            markup=False,
        )
    for event in seen.events[-5:]:
        out.print(f"{times.point(event.at_ms)}  {event.kind}: {event.text}", markup=False)
    if seen.incidents:
        out.print(
            f"{count(len(seen.incidents), 'member')} of {group} may have met it since {since}:\n",
            markup=False,
        )
        _say_incidents(out, [*seen.incidents], times)


def _partitions(partitions: tuple[tuple[str, int], ...]) -> str:
    """``12 partitions (orders-0 to orders-11)`` in as few words as it takes."""
    from ringleader.insight.advice.words import count

    if not partitions:
        return "no partition"
    by_topic: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        by_topic.setdefault(topic, []).append(number)
    parts = []
    for topic, numbers in list(by_topic.items())[:3]:
        shown = ",".join(map(str, numbers[:6])) + (",..." if len(numbers) > 6 else "")
        parts.append(f"{topic}:{shown}")
    more = f" and {len(by_topic) - 3} more topics" if len(by_topic) > 3 else ""
    return f"{count(len(partitions), 'partition')} ({' '.join(parts)}{more})"


def _safe(text: str) -> str:
    from rich.markup import escape

    return escape(text)
