"""Why a member of a group is gone: concluded from how long its partitions had been silent.

Whoever leaves, leaves within about a commit interval of its last commit. Whoever expires has been silent
for its session timeout. Whoever exceeds its poll interval has been silent for that (which is its rebalance
timeout), and then leaves by itself. What is measured is blurred by the time between commits, and by how
long the rest of the group took to come together: where several explanations fit, none is called likely.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ringleader.insight.inference.words import count, seconds
from ringleader.insight.model import Confidence, Departure, Gone

SLACK_MS = 60
"""Records and timers of one broker differ by that."""

EXPIRY_LATE_MS = 1_000
"""A session that is over is noticed within that."""

POLL_LATE_MS = 3_500
"""A poll interval that is exceeded is noticed within a heartbeat interval; 3 s is what clients have."""

_STILL_MS = 200
_STUCK_MS = 3_000

LEAVING_MS = 700
"""Between a clean stop's last commit and its LeaveGroup."""


class Absence(NamedTuple):
    """What is known of a member that is in a group's record no more."""

    at_ms: int
    """Of that record."""
    since_ms: int
    """Of the record before, when it was there."""
    partitions: int
    """That it had."""
    last_commit_ms: int | None
    """Of its partitions, since then."""
    last_moved_ms: int | None
    """The last of them that was another offset than before."""
    gap_ms: int | None
    """The longest usual time between its commits."""
    gap_borrowed: bool
    """That is the others': its own were too few."""
    others_ms: int | None
    """The last commit of members that stayed,"""
    others_moved_ms: int | None
    """and the last that was another offset."""
    earliest_ms: int
    """It went not before,"""
    latest_ms: int
    """and not after."""
    session_timeout_ms: int | None
    rebalance_timeout_ms: int | None
    other_cause: bool
    """Something else may have begun the rebalance."""
    waited_ms: int | None
    """How long the group had waited in its join phase, where that is known."""
    there_last: bool = False
    """Polls saw it there until shortly before that record, while the group waited."""
    session_assumed: bool = False
    """The session timeout is Kafka's default: nobody said it."""
    static: bool = False
    commits_count: bool = True
    """A commit keeps a session alive, as in the classic protocol; else only heartbeats do."""


def why_gone(seen: Absence) -> Gone:
    """How it went, how sure that is, and what tells."""
    silent_ms = None if seen.last_commit_ms is None else max(0, seen.at_ms - seen.last_commit_ms)
    kept_waiting = _kept_waiting(seen, silent_ms)
    if kept_waiting is not None:
        return kept_waiting
    if silent_ms is None or seen.last_commit_ms is None:
        return _without_commits(seen)
    return _by_silence(seen, seen.last_commit_ms, silent_ms)


def _kept_waiting(seen: Absence, silent_ms: int | None) -> Gone | None:
    limit_ms, waited_ms = seen.rebalance_timeout_ms, seen.waited_ms
    if limit_ms is None or waited_ms is None or not (seen.other_cause or seen.there_last):
        return None
    session_ms = seen.session_timeout_ms
    if not limit_ms - 1_500 <= waited_ms <= limit_ms + 5_000 or (session_ms and limit_ms <= session_ms):
        return None
    said = f"the group waited {seconds(waited_ms)} for it; its rebalance timeout is {seconds(limit_ms)}"
    return Gone(Departure.NOT_REJOINED, Confidence.LIKELY, silent_ms, (said,))


def _without_commits(seen: Absence) -> Gone:
    there_ms = seen.latest_ms - seen.since_ms
    session_ms = seen.session_timeout_ms
    had = (
        f"its {count(seen.partitions, 'partition')} had no commits in this generation"
        if seen.partitions
        else "it had no partitions"
    )
    if session_ms is not None and there_ms < session_ms - EXPIRY_LATE_MS and not seen.session_assumed:
        said = (
            f"{had}, but it was there {seconds(there_ms)} before, and its session timeout is "
            f"{seconds(session_ms)}: it cannot have expired"
        )
        return Gone(Departure.LEFT, Confidence.LIKELY, None, (said,))
    said = f"{had}, so nothing shows how long it was silent; regular commits would have shown it"
    return Gone(Departure.UNKNOWN, Confidence.UNKNOWN, None, (said,))


def _by_silence(seen: Absence, last_ms: int, silent_ms: int) -> Gone:
    session_ms, poll_ms = seen.session_timeout_ms, seen.rebalance_timeout_ms
    most_ms = max(0, seen.latest_ms - last_ms)
    least_ms = max(0, min(most_ms, seen.earliest_ms - last_ms))
    gap_ms = seen.gap_ms
    blur_ms = gap_ms or 0
    measured = f"its {count(seen.partitions, 'partition')} had been silent for {seconds(silent_ms)}"
    whose = "the others had" if seen.gap_borrowed else "it had"
    usual = f"{whose} committed every {seconds(gap_ms)}" if gap_ms is not None else None
    active = seen.others_ms is not None and seen.others_ms > last_ms + 0.5 * silent_ms
    alone = seen.others_ms is None

    def fits(from_ms: int, to_ms: int) -> bool:
        return least_ms <= to_ms and most_ms >= from_ms

    # The last heartbeat may have been before the last commit.
    early_ms = SLACK_MS if seen.commits_count else (session_ms or 0) // 3
    left = gap_ms is None or fits(0, blur_ms + LEAVING_MS)
    expired = session_ms is None or fits(session_ms - early_ms, session_ms + blur_ms + EXPIRY_LATE_MS)
    busy = poll_ms is not None and fits(poll_ms - blur_ms - SLACK_MS, poll_ms + blur_ms + POLL_LATE_MS)
    in_a_row = False
    if not seen.commits_count and poll_ms is not None and session_ms is not None and not busy:
        # librdkafka then sends no more heartbeats, and its session ends, too.
        both_ms = poll_ms + session_ms
        busy = in_a_row = fits(both_ms - blur_ms - early_ms, both_ms + blur_ms + POLL_LATE_MS)
    timeout = f"its session timeout is {seconds(session_ms or 0)}"
    if seen.session_assumed:
        timeout = f"the session timeout is {seconds(session_ms or 0)} unless the broker has another"
    best = Confidence.POSSIBLE if seen.session_assumed or seen.gap_borrowed else Confidence.LIKELY

    def gone(why: Departure, how: Confidence, *said: str | None) -> Gone:
        return Gone(why, how, silent_ms, tuple(one for one in said if one))

    if session_ms is not None and most_ms < session_ms - early_ms:
        return _before_expiry(
            seen, gone, f"{measured}; {timeout}: it was gone before that", usual, busy, left
        )
    if expired and not left and not busy:
        narrow = gap_ms is not None and session_ms is not None and gap_ms + EXPIRY_LATE_MS < 0.8 * session_ms
        idle = None if active or alone else "nobody else committed meanwhile"
        sure = best if narrow and not idle else Confidence.POSSIBLE
        return gone(Departure.SESSION_EXPIRED, sure, f"{measured}; {timeout}", usual, idle)
    if busy and not left and not expired and poll_ms is not None:
        said = (
            f"{measured}; its rebalance timeout, which is its poll interval, is {seconds(poll_ms)}, "
            f"and {timeout}: "
            "heartbeats had gone on"
        )
        if in_a_row:
            said = f"{measured}: its poll interval of {seconds(poll_ms)}, and then its session; {timeout}"
        sure = best if active or alone else Confidence.POSSIBLE
        return gone(Departure.POLL_INTERVAL_EXCEEDED, sure, said, usual)
    if expired and (busy or left):
        others = [name for name, one in (("a poll interval exceeded", busy), ("a clean stop", left)) if one]
        said = f"{measured}; {timeout}: {' or '.join(others)} fits as well"
        if left and (gap_ms is None or seen.gap_borrowed):
            missing = "more commits before would have shown which"
            return gone(Departure.UNKNOWN, Confidence.UNKNOWN, said, usual, missing)
        return gone(Departure.SESSION_EXPIRED, Confidence.POSSIBLE, said, usual)
    if left and gap_ms is not None:
        return gone(Departure.LEFT, Confidence.POSSIBLE, f"{measured}; {timeout}", usual)
    if active and session_ms is not None and poll_ms is not None and poll_ms <= session_ms:
        said = (
            f"{measured}, longer than its session timeout of {seconds(session_ms)}: heartbeats had "
            "gone on, then it "
            "went; its application may have been busy, but its poll interval is not in the record"
        )
        return gone(Departure.POLL_INTERVAL_EXCEEDED, Confidence.POSSIBLE, said, usual)
    said = f"{measured}; {timeout}: neither a clean stop nor an expiry nor its poll interval fits"
    return gone(Departure.UNKNOWN, Confidence.UNKNOWN, said, usual)


def _before_expiry(
    seen: Absence, gone: Callable[..., Gone], said: str, usual: str | None, busy: bool, left: bool
) -> Gone:
    """It went while its session could not be over."""
    if busy and not left:
        poll = f"its poll interval of {seconds(seen.rebalance_timeout_ms or 0)} is shorter than its session"
        return gone(Departure.POLL_INTERVAL_EXCEEDED, Confidence.POSSIBLE, said, usual, poll)
    still = None
    moved_ms, others_ms = seen.last_moved_ms, seen.others_moved_ms
    if moved_ms is not None and others_ms is not None and seen.gap_ms is not None:
        stuck_ms = (seen.last_commit_ms or moved_ms) - moved_ms
        if stuck_ms > seen.gap_ms + _STILL_MS and others_ms > moved_ms + 0.5 * stuck_ms:
            still = (
                f"its offsets had not moved for {seconds(seen.at_ms - moved_ms)}, though it committed "
                "and the "
                "others' moved: its application was busy, or had nothing to read"
            )
            if stuck_ms > max(_STUCK_MS, 3 * seen.gap_ms):
                return gone(Departure.POLL_INTERVAL_EXCEEDED, Confidence.POSSIBLE, said, still)
    # With rare commits a poll interval that was exceeded looks like a clean stop.
    doubtful = still or busy or not left or (seen.session_assumed and seen.gap_ms is None)
    sure = Confidence.POSSIBLE if doubtful else Confidence.LIKELY
    static = None
    if seen.static:
        sure = Confidence.POSSIBLE
        static = (
            "most clients' static members do not leave when they stop: an operator's removal looks the same"
        )
    return gone(Departure.LEFT, sure, said, usual, still, static)
