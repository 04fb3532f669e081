"""The reason why a member is no longer in a group, concluded from how long its partitions had been silent.

A member that leaves does so within about a commit interval of its last commit. One that expires has been
silent for its session timeout. One that exceeds its poll interval has been silent for that (which is its
rebalance timeout), and then leaves by itself. The measurement is blurred by the time between commits, and by
how long the rest of the group took to come together: where several explanations fit, none is called likely.

`RULES` decides, for every protocol: the first rule whose `when` holds. Their order: first the cases in which
silence shows nothing of the member (its coordinator was away, the broker put it out for another reason,
nothing is committed); then a departure before its session could end; then the explanations whose time fits,
one that fits alone before those that share it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ringleader.insight.inference.words import count, seconds
from ringleader.insight.model import Confidence, Departure, DepartureFinding

SLACK_MS = 60
"""The difference between records and timers of one broker."""

EXPIRY_LATE_MS = 1_000
"""A session that is over is noticed within that."""

POLL_LATE_MS = 3_500
"""A poll interval that is exceeded is noticed within a heartbeat interval; 3 s is what clients have."""

_WAITED_EARLY_MS = 700
"""The beginning of a wait lies between two polls: it may have lasted longer by that."""

_REVOKED_LATE_MS = 500
"""The broker ends a member that does not give partitions up about that early."""

_STILL_MS = 200
_STUCK_MS = 3_000

LEAVING_MS = 700
"""Between a clean stop's last commit and its LeaveGroup."""


class Absence(NamedTuple):
    """The facts about a member that a group's record no longer has."""

    at_ms: int
    """Of that record."""
    since_ms: int
    """Of the record before, when it was there."""
    partitions: int
    """Its number of partitions."""
    last_commit_ms: int | None
    """Of its partitions, since then."""
    last_moved_ms: int | None
    """The last of them that was another offset than before."""
    gap_ms: int | None
    """The longest usual time between its commits."""
    gap_borrowed: bool
    """The gap is that of other members: its own commits were too few."""
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
    """The session timeout is Kafka's default: the setting is not known."""
    static: bool = False
    commits_count: bool = True
    """A commit keeps a session alive, as in the classic protocol; else only heartbeats do."""
    coordinator_changed: bool = False
    """The coordinator was seen away or replaced: no member could commit meanwhile."""
    revoking_ms: int | None = None
    """How long it had been asked to give partitions up, without doing so."""
    can_commit: bool = True
    """Members of its group commit offsets."""


class _Silence:
    """An absence, measured: which explanations fit the time between the last commit and the departure."""

    def __init__(self, seen: Absence) -> None:
        self.seen = seen
        last_ms = seen.last_commit_ms
        self.silent_ms = None if last_ms is None else max(0, seen.at_ms - last_ms)
        self.most_ms = 0 if last_ms is None else max(0, seen.latest_ms - last_ms)
        self._least_ms = 0 if last_ms is None else max(0, min(self.most_ms, seen.earliest_ms - last_ms))
        session_ms, poll_ms, gap_ms = seen.session_timeout_ms, seen.rebalance_timeout_ms, seen.gap_ms
        blur_ms = gap_ms or 0
        # The last heartbeat may have been before the last commit.
        self.early_ms = SLACK_MS if seen.commits_count else (session_ms or 0) // 3
        self.left = gap_ms is None or self._fits(0, blur_ms + LEAVING_MS)
        self.expired = session_ms is None or self._fits(
            session_ms - self.early_ms, session_ms + blur_ms + EXPIRY_LATE_MS
        )
        self.busy = poll_ms is not None and self._fits(
            poll_ms - blur_ms - SLACK_MS, poll_ms + blur_ms + POLL_LATE_MS
        )
        self.in_a_row = False
        """Its poll interval was over, and then its session: librdkafka of the consumer protocol and static
        members do not leave, and send no more heartbeats then."""
        in_a_row = seen.static or not seen.commits_count
        if in_a_row and poll_ms is not None and session_ms is not None and not self.busy:
            both_ms = poll_ms + session_ms
            self.busy = self.in_a_row = self._fits(
                both_ms - blur_ms - self.early_ms, both_ms + blur_ms + POLL_LATE_MS
            )

    def _fits(self, from_ms: int, to_ms: int) -> bool:
        return self._least_ms <= to_ms and self.most_ms >= from_ms

    @property
    def alone(self) -> bool:
        """Nobody else committed."""
        return self.seen.others_ms is None

    @property
    def active(self) -> bool:
        """The others went on committing."""
        last_ms, silent_ms = self.seen.last_commit_ms, self.silent_ms
        if self.seen.others_ms is None or last_ms is None or silent_ms is None:
            return False
        return self.seen.others_ms > last_ms + 0.5 * silent_ms

    @property
    def early(self) -> bool:
        """It went while its session could not be over."""
        session_ms = self.seen.session_timeout_ms
        return session_ms is not None and self.most_ms < session_ms - self.early_ms

    @property
    def best(self) -> Confidence:
        """Of an explanation that alone fits."""
        doubtful = self.seen.session_assumed or self.seen.gap_borrowed
        return Confidence.POSSIBLE if doubtful else Confidence.LIKELY

    @property
    def stuck_ms(self) -> int | None:
        """How long it had committed the same offsets while those of the others moved; None: it had not."""
        seen = self.seen
        moved_ms, others_ms = seen.last_moved_ms, seen.others_moved_ms
        if moved_ms is None or others_ms is None or seen.gap_ms is None:
            return None
        stuck_ms = (seen.last_commit_ms or moved_ms) - moved_ms
        still = stuck_ms > seen.gap_ms + _STILL_MS and others_ms > moved_ms + 0.5 * stuck_ms
        return stuck_ms if still else None

    # ---- words ----

    @property
    def measured(self) -> str:
        """How long it was silent."""
        partitions = count(self.seen.partitions, "partition")
        return f"its {partitions} had been silent for {seconds(self.silent_ms or 0)}"

    @property
    def timeout(self) -> str:
        """Its session timeout."""
        session = seconds(self.seen.session_timeout_ms or 0)
        if self.seen.session_assumed:
            return f"the session timeout is {session} unless the broker has another"
        return f"its session timeout is {session}"

    @property
    def usual(self) -> str | None:
        """How often it had committed."""
        if self.seen.gap_ms is None:
            return None
        whose = "the others" if self.seen.gap_borrowed else "it"
        return f"{whose} had committed every {seconds(self.seen.gap_ms)}"

    @property
    def no_commits(self) -> str:
        """Its partitions without commits."""
        if not self.seen.partitions:
            return "it had no partitions"
        return f"its {count(self.seen.partitions, 'partition')} had no commits in this generation"

    @property
    def still(self) -> str | None:
        """Its offsets that did not move."""
        if self.stuck_ms is None:
            return None
        return (
            f"its offsets had not moved for {seconds(self.seen.at_ms - (self.seen.last_moved_ms or 0))}, "
            "though it committed and the others' moved: its application was busy, or had nothing to read"
        )


class _Rule(NamedTuple):
    when: Callable[[_Silence], bool]
    why: Departure
    confidence: Confidence | Callable[[_Silence], Confidence]
    text: Callable[[_Silence], Sequence[str | None]]


def departure_of(seen: Absence) -> DepartureFinding:
    """How it went, how sure that is, and the evidence."""
    return _decide(_Silence(seen), RULES)


def _decide(silence: _Silence, rules: Sequence[_Rule]) -> DepartureFinding:
    rule = next(one for one in rules if one.when(silence))
    sure = rule.confidence if isinstance(rule.confidence, Confidence) else rule.confidence(silence)
    evidence = tuple(one for one in rule.text(silence) if one)
    return DepartureFinding(rule.why, sure, None if _revoked(silence) else silence.silent_ms, evidence)


# ---- conditions ----


def _revoked(silence: _Silence) -> bool:
    waited_ms, limit_ms = silence.seen.revoking_ms, silence.seen.rebalance_timeout_ms
    return waited_ms is not None and limit_ms is not None and waited_ms >= limit_ms - _REVOKED_LATE_MS


def _kept_waiting(silence: _Silence) -> bool:
    seen = silence.seen
    limit_ms, waited_ms, session_ms = seen.rebalance_timeout_ms, seen.waited_ms, seen.session_timeout_ms
    if limit_ms is None or waited_ms is None or not (seen.other_cause or seen.there_last):
        return False
    # Where a session is the longer, silence would show nothing; polls saw it wait.
    shown = seen.there_last or not (session_ms and limit_ms <= session_ms)
    return shown and limit_ms - 1_500 <= waited_ms <= limit_ms + 5_000


def _too_young_to_expire(silence: _Silence) -> bool:
    seen = silence.seen
    session_ms = seen.session_timeout_ms
    if silence.silent_ms is not None or session_ms is None or seen.session_assumed:
        return False
    return seen.latest_ms - seen.since_ms < session_ms - EXPIRY_LATE_MS


def _stuck(silence: _Silence) -> bool:
    stuck_ms = silence.stuck_ms
    return (
        silence.early and stuck_ms is not None and stuck_ms > max(_STUCK_MS, 3 * (silence.seen.gap_ms or 0))
    )


def _past_both(silence: _Silence) -> bool:
    """A member that is silent because its session ended is gone by then; its poll interval ends later."""
    session_ms, poll_ms = silence.seen.session_timeout_ms, silence.seen.rebalance_timeout_ms
    if session_ms is None or poll_ms is None or not session_ms < poll_ms:
        return False
    return silence.expired and silence.busy and not silence.left and (silence.silent_ms or 0) >= poll_ms


def _short_poll(silence: _Silence) -> bool:
    session_ms, poll_ms = silence.seen.session_timeout_ms, silence.seen.rebalance_timeout_ms
    return silence.active and session_ms is not None and poll_ms is not None and poll_ms <= session_ms


def _too_few_commits(silence: _Silence) -> bool:
    return silence.seen.gap_ms is None or silence.seen.gap_borrowed


# ---- confidence ----


def _sure_of_leaving(silence: _Silence) -> Confidence:
    """With rare commits a poll interval that was exceeded looks like a clean stop."""
    seen = silence.seen
    unclear = silence.still or silence.busy or not silence.left
    doubtful = unclear or (seen.session_assumed and seen.gap_ms is None) or seen.static
    return Confidence.POSSIBLE if doubtful else Confidence.LIKELY


def _sure_of_expiry(silence: _Silence) -> Confidence:
    gap_ms, session_ms = silence.seen.gap_ms, silence.seen.session_timeout_ms
    narrow = gap_ms is not None and session_ms is not None and gap_ms + EXPIRY_LATE_MS < 0.8 * session_ms
    return silence.best if narrow and (silence.active or silence.alone) else Confidence.POSSIBLE


def _sure_of_waiting(silence: _Silence) -> Confidence:
    """A member that was killed is waited for until its session ends, which is at most a session's length."""
    waited_ms, limit_ms = silence.seen.waited_ms or 0, silence.seen.rebalance_timeout_ms or 0
    left_ms = (silence.seen.session_timeout_ms or waited_ms) - waited_ms
    exact = -_WAITED_EARLY_MS <= waited_ms - limit_ms <= EXPIRY_LATE_MS and left_ms > EXPIRY_LATE_MS
    return Confidence.LIKELY if exact or left_ms < -EXPIRY_LATE_MS else Confidence.POSSIBLE


def _sure_of_poll(silence: _Silence) -> Confidence:
    return silence.best if silence.active or silence.alone else Confidence.POSSIBLE


# ---- evidence ----


def _outage_text(silence: _Silence) -> Sequence[str | None]:
    otherwise = _decide(silence, RULES[1:])
    return (
        *otherwise.evidence,
        "its coordinator was seen away or replaced meanwhile: that would look the same",
    )


def _revoked_text(silence: _Silence) -> Sequence[str | None]:
    seen = silence.seen
    return (
        f"it had been asked {seconds(seen.revoking_ms or 0)} before to give partitions up, and had not; its "
        f"rebalance timeout is {seconds(seen.rebalance_timeout_ms or 0)}",
    )


def _kept_waiting_text(silence: _Silence) -> Sequence[str | None]:
    waited, limit = seconds(silence.seen.waited_ms or 0), seconds(silence.seen.rebalance_timeout_ms or 0)
    return (f"the group waited {waited} for it; its rebalance timeout is {limit}",)


def _too_young_text(silence: _Silence) -> Sequence[str | None]:
    there, session = silence.seen.latest_ms - silence.seen.since_ms, silence.seen.session_timeout_ms or 0
    return (
        f"{silence.no_commits}, but it was there {seconds(there)} before, and its session timeout is "
        f"{seconds(session)}: it cannot have expired",
    )


def _before_expiry(silence: _Silence) -> str:
    return f"{silence.measured}; {silence.timeout}: it was gone before that"


def _leaving_text(silence: _Silence) -> Sequence[str | None]:
    static = "most clients' static members do not leave when they stop: an operator's removal looks the same"
    return _before_expiry(silence), silence.usual, silence.still, static if silence.seen.static else None


def _short_session_text(silence: _Silence) -> Sequence[str | None]:
    poll = seconds(silence.seen.rebalance_timeout_ms or 0)
    return (
        _before_expiry(silence),
        silence.usual,
        f"its poll interval of {poll} is shorter than its session",
    )


def _expiry_text(silence: _Silence) -> Sequence[str | None]:
    idle = None if silence.active or silence.alone else "nobody else committed meanwhile"
    return f"{silence.measured}; {silence.timeout}", silence.usual, idle


def _poll_text(silence: _Silence) -> Sequence[str | None]:
    poll = seconds(silence.seen.rebalance_timeout_ms or 0)
    if silence.in_a_row:
        text = f"{silence.measured}: its poll interval of {poll}, and then its session; {silence.timeout}"
    else:
        text = (
            f"{silence.measured}; its rebalance timeout, which is its poll interval, is {poll}, and "
            f"{silence.timeout}: heartbeats had gone on"
        )
    return text, silence.usual


def _several_text(silence: _Silence) -> Sequence[str | None]:
    fits = [("a poll interval exceeded", silence.busy), ("a clean stop", silence.left)]
    others = " or ".join(name for name, one in fits if one)
    missing = "more commits before would have shown which"
    return (
        f"{silence.measured}; {silence.timeout}: {others} fits as well",
        silence.usual,
        missing if silence.left and _too_few_commits(silence) else None,
    )


def _short_poll_text(silence: _Silence) -> Sequence[str | None]:
    session = seconds(silence.seen.session_timeout_ms or 0)
    return (
        f"{silence.measured}, longer than its session timeout of {session}: heartbeats had gone on, then it "
        "went; its application may have been busy, but its poll interval is not in the record",
        silence.usual,
    )


RULES = (
    _Rule(lambda s: s.seen.coordinator_changed, Departure.UNKNOWN, Confidence.UNKNOWN, _outage_text),
    _Rule(_revoked, Departure.NOT_REJOINED, Confidence.LIKELY, _revoked_text),
    _Rule(
        lambda s: not s.seen.can_commit,
        Departure.UNKNOWN, Confidence.UNKNOWN,
        lambda s: (
            "a share group's member that leaves and one that expires write the same records, and commit "
            "nothing",
        ),
    ),
    _Rule(_kept_waiting, Departure.NOT_REJOINED, _sure_of_waiting, _kept_waiting_text),
    _Rule(_too_young_to_expire, Departure.LEFT, Confidence.LIKELY, _too_young_text),
    _Rule(
        lambda s: s.silent_ms is None,
        Departure.UNKNOWN, Confidence.UNKNOWN,
        lambda s: (
            f"{s.no_commits}, so nothing shows how long it was silent; regular commits would have shown it",
        ),
    ),
    _Rule(
        lambda s: s.early and s.busy and not s.left,
        Departure.POLL_INTERVAL_EXCEEDED, Confidence.POSSIBLE, _short_session_text,
    ),
    _Rule(
        _stuck,
        Departure.POLL_INTERVAL_EXCEEDED, Confidence.POSSIBLE, lambda s: (_before_expiry(s), s.still),
    ),
    _Rule(lambda s: s.early, Departure.LEFT, _sure_of_leaving, _leaving_text),
    _Rule(
        lambda s: s.expired and not s.left and not s.busy,
        Departure.SESSION_EXPIRED, _sure_of_expiry, _expiry_text,
    ),
    _Rule(
        lambda s: s.busy and not s.left and not s.expired,
        Departure.POLL_INTERVAL_EXCEEDED, _sure_of_poll, _poll_text,
    ),
    _Rule(
        lambda s: s.expired and s.left and _too_few_commits(s),
        Departure.UNKNOWN, Confidence.UNKNOWN, _several_text,
    ),
    _Rule(
        _past_both,
        Departure.POLL_INTERVAL_EXCEEDED, Confidence.POSSIBLE,
        lambda s: (*_poll_text(s), "a session that ended would fit as well"),
    ),
    _Rule(
        lambda s: s.expired and (s.busy or s.left),
        Departure.SESSION_EXPIRED, Confidence.POSSIBLE, _several_text,
    ),
    _Rule(
        lambda s: s.left and s.seen.gap_ms is not None,
        Departure.LEFT, Confidence.POSSIBLE, lambda s: (f"{s.measured}; {s.timeout}", s.usual),
    ),
    _Rule(_short_poll, Departure.POLL_INTERVAL_EXCEEDED, Confidence.POSSIBLE, _short_poll_text),
    _Rule(
        lambda s: True,
        Departure.UNKNOWN, Confidence.UNKNOWN,
        lambda s: (
            f"{s.measured}; {s.timeout}: neither a clean stop nor an expiry nor its poll interval fits",
            s.usual,
        ),
    ),
)  # fmt: skip
