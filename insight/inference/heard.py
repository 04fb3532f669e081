"""Reports of clients about themselves (KIP-714), as evidence of how their members went.

A report counts for a departure only where it is of the same client: of this very member, or of the client
instance that had told as this member before. A client id says nothing, as many may have it. And only where
its times fit: what was told long before, or of another membership, shows nothing.

`RULES` decides, for every protocol, after `departures`: the first rule that holds for any report, the newest
first. Their order: the client's own words; a time without poll() that is under way, then one that is over;
a client that said that it ends; a callback; then what contradicts the conclusion from the records, which
takes it back or casts doubt on it. Where none holds, a report that is fresh is told beside the conclusion,
and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

from ringleader.insight.inference.departures import EXPIRY_LATE_MS, POLL_LATE_MS
from ringleader.insight.inference.facts import ClientReport, Output
from ringleader.insight.inference.kept import Kept, Restorable
from ringleader.insight.inference.words import seconds
from ringleader.insight.model import (
    Confidence,
    Departure,
    DepartureFinding,
    Event,
    EventKind,
    Member,
    MemberSpan,
    report_id,
)

POLL_EXPIRED = "consumer poll timeout has expired"
"""How the reason begins with which clients leave when their poll interval is over (KIP-800)."""
FRESH_MS = 180_000
"""A report that is older than this when its member leaves explains nothing: three intervals of a minute."""
LATER_MS = 600_000
"""A report within this time after its member left can explain the departure."""
REPORTS_MAX = 10_000
"""Members of one group whose last report is remembered."""
WENT_MAX = 100
"""Departures of one group that a report may explain later."""
_WINDOW_MS = 60_000
"""A client's maximum is of the last minute (two windows of 30 s, as Java's clients have them)."""
_CLOCK_MS = 1_000
"""Clients tell how long ago they polled in whole seconds."""
_OWN_WORDS_MS = 3_000
"""Between a client's leaving, by its own words, and the broker's record."""
_CLOSING_MS = 5_000
"""Between a client's last report and its LeaveGroup."""
_ENDED_MS = 25_000
"""A time without poll() that is over is in the maximum for at least this time."""


class Went(NamedTuple):
    """A member that went, as the records show it."""

    member: Member
    since_ms: int | None
    """Since when it was there; None: not known."""
    earliest_ms: int
    """It went not before,"""
    latest_ms: int
    """and not after."""
    finding: DepartureFinding
    """As it was concluded without its client's words."""
    rebalance_id: str
    at_ms: int
    """Of that rebalance."""
    reports: tuple[ClientReport, ...] = ()
    """The reports of its client: the last as this member, and one after."""
    alone: bool = False
    """Nothing else can have begun the rebalance."""


class _Case:
    """A departure, and one report."""

    def __init__(self, went: Went, report: ClientReport) -> None:
        self.went, self.report = went, report
        self.at_ms = report.at_ms
        self.as_member = report.member_id == went.member.member_id
        values = report.values
        self.polled_ms = _ms(values.get("last_poll_ago_seconds"))
        """Since its last poll()."""
        self.gap_ms = _ms(values.get("poll_interval_max_seconds"))
        self.heartbeat_ms = _ms(values.get("last_heartbeat_ago_seconds"))
        self.callback_ms = _ms(values.get("callback_max_seconds"))
        limit_ms = _ms(values.get("poll_interval_limit_seconds"))
        if limit_ms is None and self.callback_ms is None:
            # Of this package's clients the rebalance timeout is no poll interval.
            limit_ms = went.member.rebalance_timeout_ms
        self.limit_ms = limit_ms
        self.session_ms = went.member.session_timeout_ms
        self.static = went.member.instance_id is not None

    def between(self, from_ms: int, to_ms: int) -> bool:
        """Whether it may have gone then."""
        return self.went.earliest_ms <= to_ms and self.went.latest_ms >= from_ms

    @property
    def when(self) -> str:
        """The time of the report, relative to the departure."""
        apart_ms = self.at_ms - self.went.latest_ms
        return f"{seconds(abs(apart_ms))} {'later' if apart_ms >= 0 else 'before'}"

    @property
    def expires_ms(self) -> int | None:
        """When the poll interval under way at the time of the report ends, if nothing happens."""
        if self.polled_ms is None or self.limit_ms is None:
            return None
        return self.at_ms - self.polled_ms + self.limit_ms

    @property
    def late_ms(self) -> int:
        """A static member does not leave when its poll interval is over: its session ends."""
        return POLL_LATE_MS + (self.session_ms or 0 if self.static else 0)


class _Rule(NamedTuple):
    when: Callable[[_Case], bool]
    finding: Callable[[_Case], DepartureFinding]


def judge(went: Went) -> DepartureFinding:
    """The reason of a departure, in the light of the client's reports."""
    cases = [_Case(went, report) for report in reversed(went.reports)]
    for rule in RULES:
        for case in cases:
            if rule.when(case):
                return rule.finding(case)
    fresh = next((one for one in cases if one.at_ms >= went.earliest_ms - FRESH_MS), None)
    if fresh is None or not (words := figures(fresh.report)):
        return went.finding
    return _and(went.finding, f"its client told {fresh.when}: {words}")


def figures(report: ClientReport) -> str:
    """The report in words; "": nothing that these words are for."""
    values = report.values
    some = []
    for name, words in _WORDS:
        if name in values:
            some.append(f"{words} {seconds(values[name] * 1000)}")
    if (idle := values.get("poll_idle_ratio")) is not None:
        some.append(f"{idle * 100:.0f} % of its time in poll()")
    if report.error:
        some.append(f"last error {report.error}")
    if report.terminating:
        some.append("it ends")
    return ", ".join(some)


_WORDS = (
    ("poll_interval_max_seconds", "longest time between two calls of poll()"),
    ("last_poll_ago_seconds", "since the last call"),
    ("callback_max_seconds", "longest callback"),
    ("last_heartbeat_ago_seconds", "since the last heartbeat"),
    ("heartbeat_latency_max_seconds", "longest answer to a heartbeat"),
    ("rebalance_latency_max_seconds", "longest rebalance"),
)


# ---- conditions ----


def _reported_leaving(case: _Case) -> bool:
    report = case.report
    finding = case.went.finding
    if report.left_id != case.went.member.member_id or report.left_ms is None or not report.left_reason:
        return False
    if finding.confidence is Confidence.EXACT and finding.why is not Departure.LEFT:
        return False
    return not case.static and case.between(report.left_ms - _OWN_WORDS_MS, report.left_ms + _OWN_WORDS_MS)


def _not_polled_for_too_long(case: _Case) -> bool:
    due_ms = case.expires_ms
    if due_ms is None or case.polled_ms is None or case.limit_ms is None or not _by_itself(case):
        return False
    return case.polled_ms >= case.limit_ms and case.between(due_ms - _CLOCK_MS, due_ms + case.late_ms)


def _had_not_polled_for_too_long(case: _Case) -> bool:
    gap_ms, limit_ms, since_ms = case.gap_ms, case.limit_ms, case.went.since_ms
    if gap_ms is None or limit_ms is None or gap_ms < limit_ms or not _by_itself(case):
        return False
    if case.at_ms < case.went.latest_ms:
        return False  # it may be of an earlier time without poll() that had ended
    last_ms = case.at_ms - gap_ms + limit_ms
    # The time without poll() began in this membership.
    long_enough = since_ms is not None and case.went.latest_ms - since_ms >= limit_ms - _CLOCK_MS
    return long_enough and case.between(last_ms - _WINDOW_MS - _CLOCK_MS, last_ms + case.late_ms)


def _would_not_poll_in_time(case: _Case) -> bool:
    due_ms = case.expires_ms
    if due_ms is None or case.polled_ms is None or case.limit_ms is None or not _by_itself(case):
        return False
    open_ = case.as_member and case.at_ms <= case.went.earliest_ms and 2 * case.polled_ms >= case.limit_ms
    weak = case.went.finding.confidence in (Confidence.POSSIBLE, Confidence.UNKNOWN)
    return open_ and weak and case.between(due_ms - _CLOCK_MS, due_ms + case.late_ms)


def _by_itself(case: _Case) -> bool:
    """The records do not say that the broker put it out."""
    finding = case.went.finding
    if finding.confidence is Confidence.EXACT:
        return finding.why is Departure.LEFT
    return finding.why in (Departure.LEFT, Departure.POLL_INTERVAL_EXCEEDED, Departure.UNKNOWN)


def _reported_terminating(case: _Case) -> bool:
    went, session_ms = case.went, case.session_ms
    if not (case.report.terminating and case.as_member and not case.static):
        return False
    if went.finding.confidence is Confidence.EXACT or session_ms is None:
        return False  # the journal knows
    if case.polled_ms is None or case.limit_ms is None or case.polled_ms >= case.limit_ms - _CLOCK_MS:
        return False  # it may have been out already
    alive = went.latest_ms < case.at_ms + session_ms - EXPIRY_LATE_MS
    return alive and case.between(case.at_ms - _CLOCK_MS, case.at_ms + _CLOSING_MS)


def _callback_was_too_long(case: _Case) -> bool:
    limit_ms, callback_ms = case.went.member.rebalance_timeout_ms, case.callback_ms
    if limit_ms is None or callback_ms is None or case.went.finding.why is not Departure.NOT_REJOINED:
        return False
    return callback_ms >= limit_ms and 0 <= case.at_ms - case.went.earliest_ms <= callback_ms + _WINDOW_MS


def _polled_in_time(case: _Case) -> bool:
    finding, due_ms, limit_ms = case.went.finding, case.expires_ms, case.limit_ms
    if finding.why is not Departure.POLL_INTERVAL_EXCEEDED or finding.confidence is Confidence.EXACT:
        return False
    if due_ms is None or limit_ms is None or case.polled_ms is None or case.static:
        return False
    if case.at_ms - case.polled_ms <= case.went.earliest_ms:
        return due_ms - _CLOCK_MS > case.went.latest_ms
    after_ms = case.at_ms - case.went.latest_ms
    short = case.gap_ms is not None and max(case.gap_ms, case.polled_ms) < limit_ms - _CLOCK_MS
    return short and 0 <= after_ms <= _ENDED_MS


def _heartbeat_was_sent_in_time(case: _Case) -> bool:
    finding, heartbeat_ms = case.went.finding, case.heartbeat_ms
    if finding.why is not Departure.SESSION_EXPIRED or finding.confidence is Confidence.EXACT:
        return False
    if heartbeat_ms is None or case.session_ms is None or not case.as_member:
        return False
    sent_ms = case.at_ms - heartbeat_ms
    ends_ms = sent_ms - _CLOCK_MS + case.session_ms
    return sent_ms <= case.went.earliest_ms and ends_ms > case.went.latest_ms


# ---- conclusions ----


def _own_words(case: _Case) -> DepartureFinding:
    reason = case.report.left_reason
    busy = reason.startswith(POLL_EXPIRED)
    why = Departure.POLL_INTERVAL_EXCEEDED if busy else Departure.LEFT
    finding = case.went.finding
    sure = (
        Confidence.EXACT
        if finding.confidence is Confidence.EXACT and finding.why is why
        else Confidence.CERTAIN
    )
    return finding._replace(
        why=why,
        confidence=sure,
        evidence=(*finding.evidence, f"its client said {case.when} why it left: {reason}"),
    )


def _busy_now(case: _Case) -> DepartureFinding:
    text = (
        f"its client told {case.when} that it had not called poll() for {seconds(case.polled_ms or 0)}; "
        f"its poll interval is {seconds(case.limit_ms or 0)}"
    )
    return _busy(case, Confidence.CERTAIN, text)


def _busy_then(case: _Case) -> DepartureFinding:
    finding = case.went.finding
    text = (
        f"its client told {case.when} that {seconds(case.gap_ms or 0)} had been between two calls of poll(); "
        f"its poll interval is {seconds(case.limit_ms or 0)}"
    )
    same = finding.why is Departure.POLL_INTERVAL_EXCEEDED or finding.confidence is Confidence.EXACT
    return _busy(case, Confidence.CERTAIN if same else Confidence.LIKELY, text)


def _busy_perhaps(case: _Case) -> DepartureFinding:
    text = (
        f"its client told {case.when} that it had not called poll() for {seconds(case.polled_ms or 0)}: "
        f"its poll interval of {seconds(case.limit_ms or 0)} would be over when it went"
    )
    return _busy(case, Confidence.LIKELY, text)


def _busy(case: _Case, sure: Confidence, text: str) -> DepartureFinding:
    finding = case.went.finding
    return DepartureFinding(
        Departure.POLL_INTERVAL_EXCEEDED, sure, finding.silent_ms, (*finding.evidence, text)
    )


def _closed(case: _Case) -> DepartureFinding:
    finding = case.went.finding
    polled = seconds(case.polled_ms or 0)
    text = f"its client said {case.when} that it ends, and had called poll() {polled} before"
    return DepartureFinding(Departure.LEFT, Confidence.CERTAIN, finding.silent_ms, (*finding.evidence, text))


def _held_up(case: _Case) -> DepartureFinding:
    finding = case.went.finding
    sure = finding.confidence if finding.confidence is Confidence.EXACT else Confidence.CERTAIN
    text = (
        f"its client told {case.when} that a callback took {seconds(case.callback_ms or 0)}; "
        f"its rebalance timeout is {seconds(case.went.member.rebalance_timeout_ms or 0)}"
    )
    return _and(finding._replace(confidence=sure), text)


def _refuted(case: _Case) -> DepartureFinding:
    finding = case.went.finding
    text = f"but its client told {case.when}: {figures(case.report)}: its poll interval was not over"
    return DepartureFinding(
        Departure.UNKNOWN, Confidence.UNKNOWN, finding.silent_ms, (*finding.evidence, text)
    )


def _doubted(case: _Case) -> DepartureFinding:
    text = (
        f"but its client told {case.when} that it had sent a heartbeat {seconds(case.heartbeat_ms or 0)} "
        "before: if that came, its session was not over"
    )
    return _and(case.went.finding._replace(confidence=Confidence.POSSIBLE), text)


def _and(finding: DepartureFinding, text: str) -> DepartureFinding:
    return finding._replace(evidence=(*finding.evidence, text))


RULES = (
    _Rule(_reported_leaving, _own_words),
    _Rule(_not_polled_for_too_long, _busy_now),
    _Rule(_had_not_polled_for_too_long, _busy_then),
    _Rule(_reported_terminating, _closed),
    _Rule(_callback_was_too_long, _held_up),
    _Rule(_polled_in_time, _refuted),
    _Rule(_heartbeat_was_sent_in_time, _doubted),
    _Rule(_would_not_poll_in_time, _busy_perhaps),
)


def _ms(value_s: float | None) -> int | None:
    return None if value_s is None else int(min(value_s, 1e9) * 1000)


class Heard(Restorable):
    """The reports of the clients of one group, and the members that went."""

    _last: Kept[dict[str, ClientReport]]
    """By member id."""
    _went: Kept[dict[str, Went]]
    """By member id, lately."""

    def __init__(self, group: str, out: list[Output]) -> None:
        self.group = group
        self._out = out
        self._last, self._went = {}, {}

    def add(self, report: ClientReport) -> list[tuple[Went, DepartureFinding]]:
        """Take a report; returns the departures that it explains better, each with its new finding."""
        found = [
            self._later(went, report)
            for went in list(self._went.values())
            if _is_of(went, report) and report.at_ms - went.latest_ms <= LATER_MS
        ]
        self._last.pop(report.member_id, None)
        self._last[report.member_id] = report
        while len(self._last) > REPORTS_MAX:
            del self._last[next(iter(self._last))]
        if words := figures(report):
            name = (
                report.client_id + (f"@{report.host.lstrip('/')}" if report.host else "") or report.member_id
            )
            event_id = report_id(self.group, report.member_id)
            text = f"{name} told of itself: {words}."
            self._out.append(Event(event_id, self.group, report.at_ms, EventKind.CLIENT_REPORTED, text))
        return [one for one in found if one is not None]

    def later(self, member_id: str, report: ClientReport) -> list[tuple[Went, DepartureFinding]]:
        """A report of a client that was this member, which is in the group no more."""
        went = self._went.get(member_id)
        found = None if went is None or not _same_place(went, report) else self._later(went, report)
        return [] if found is None else [found]

    def went(self, went: Went, report: ClientReport | None = None) -> DepartureFinding:
        """A member left: why, in the light of the last report of its client as this member."""
        report = report or self._last.get(went.member.member_id)
        if report is not None and _same_place(went, report):
            went = went._replace(reports=(report,))
        self._went.pop(went.member.member_id, None)
        self._went[went.member.member_id] = went
        while len(self._went) > WENT_MAX:
            del self._went[next(iter(self._went))]
        return judge(went)

    def alone(self, member_ids: Collection[str]) -> None:
        """Only the departure of these members, reported just now, can have begun the rebalance."""
        for one in member_ids:
            if one in self._went:
                self._went[one] = self._went[one]._replace(alone=True)

    def _later(self, went: Went, report: ClientReport) -> tuple[Went, DepartureFinding] | None:
        before = judge(went)
        went = went._replace(reports=(*went.reports[:1], report))
        now = judge(went)
        if now == before or (before.confidence is Confidence.CERTAIN and now.why is before.why):
            return None
        if now.why is before.why and now.confidence is before.confidence:
            return None  # more words, and nothing that they change
        self._went[went.member.member_id] = went
        span = MemberSpan(
            self.group,
            went.member._replace(assigned=()),
            went.since_ms or went.at_ms,
            went.at_ms,
            now,
            went.rebalance_id,
        )
        if went.since_ms is not None:
            self._out.append(span)
        return went, now


def _is_of(went: Went, report: ClientReport) -> bool:
    """Whether the client that sent this report was the member that left."""
    if not _same_place(went, report):
        return False
    if report.instance_id and went.reports:
        return report.instance_id == went.reports[0].instance_id
    return report.left_id == went.member.member_id or report.member_id == went.member.member_id


def _same_place(went: Went, report: ClientReport) -> bool:
    member = went.member
    return report.client_id in ("", member.client_id) and report.host in ("", member.host)
