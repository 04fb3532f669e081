"""The cause of a rebalance, concluded from the difference between two records of a group, for every protocol.

`RULES` decides: the first rule whose `when` holds. Their order: without the record before there is no
difference; then an outage of the coordinator, which explains departures and restarts; then members that came
and went, from which subscriptions and assignments follow; then static members that came back, subscriptions,
and last topics, which alone change a group whose members stay as they are. Where none of these changed, a
classic group's leader asked for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from ringleader.insight.inference.changes import Change, back_at_once, place
from ringleader.insight.inference.words import count, listed, members, seconds
from ringleader.insight.inference.world import change_text
from ringleader.insight.model import Cause, Confidence, Departure, DepartureFinding, Member

_RUN_MS = 20_000
"""Generations in a row, each within this of the one before, belong to one change."""

_LATE_MS = 1_500
"""Sessions end, and groups come together, that much later."""

_YOUNG = 5
"""A group that is seen first in a generation up to this may be new."""

_AGAIN_MS = 2 * 60_000
"""The second half of a cooperative rebalance comes within this."""

_WAITED_MS = 5_000
"""Of a group whose join phase was longer, it is not known what it began with."""

BY_DEPARTURE = {
    Departure.LEFT: Cause.MEMBER_LEFT,
    Departure.SESSION_EXPIRED: Cause.SESSION_EXPIRED,
    Departure.POLL_INTERVAL_EXCEEDED: Cause.POLL_INTERVAL_EXCEEDED,
    # It held the group up: it was busy for longer than it may be.
    Departure.NOT_REJOINED: Cause.POLL_INTERVAL_EXCEEDED,
    Departure.REMOVED: Cause.MEMBER_REMOVED,
}


class Verdict(NamedTuple):
    """A cause, how sure it is, the evidence, and the members that caused it."""

    cause: Cause
    confidence: Confidence
    evidence: tuple[str, ...]
    members: tuple[str, ...] = ()


class Rule(NamedTuple):
    """One row of the decision table."""

    when: Callable[[Change], bool]
    cause: Cause | Callable[[Change], Cause]
    confidence: Confidence | Callable[[Change], Confidence]
    text: Callable[[Change], Sequence[str]]
    members: Callable[[Change], Sequence[Member]] = lambda change: ()


def verdict(change: Change) -> Verdict:
    """The cause of a rebalance."""
    return _decide(RULES, change)


def _decide(rules: Sequence[Rule], change: Change) -> Verdict:
    rule = next(one for one in rules if one.when(change))
    return Verdict(
        rule.cause if isinstance(rule.cause, Cause) else rule.cause(change),
        rule.confidence if isinstance(rule.confidence, Confidence) else rule.confidence(change),
        tuple(rule.text(change)),
        tuple(one.member_id for one in rule.members(change)),
    )


def _is_are(some: Sequence[Member]) -> str:
    return f"{members(some)} {'is' if len(some) == 1 else 'are'}"


# ---- the record before was not read ----


def _unread(change: Change) -> str:
    return f"the record before {change.word} {change.generation} was not read"


def _may_be_new(change: Change) -> bool:
    """Where several start at once, their first generations may end before the leader has synced."""
    return change.classic and change.generation <= _YOUNG and bool(change.members)


# ---- an outage of the coordinator ----


def _put_out(change: Change) -> bool:
    """Members that only join need no outage for it; those that went and came back may have been put out."""
    if change.coordinator_ms is None or _went_by_themselves(change):
        return False
    return bool(change.missing) or _all_back(change)


def _went_by_themselves(change: Change) -> bool:
    """Whether it is certain why members went, all of them alike: they need no outage for it."""
    if not change.missing or not change.all_went_alike:
        return False
    why, sure = change.departure.why, change.departure.confidence
    return sure is Confidence.CERTAIN and why in BY_DEPARTURE and why is not Departure.NOT_REJOINED


def _outage_text(change: Change) -> Sequence[str]:
    first, *more = _decide(JOINED_AND_LEFT, change).evidence
    return f"{_outage(change)}; {first}", *more


def _outage(change: Change) -> str:
    ago_ms = change.at_ms - (change.coordinator_ms or change.at_ms)
    return f"the coordinator was seen away or replaced {seconds(ago_ms)} before"


# ---- members went ----


def _departure_cause(change: Change) -> Cause:
    return BY_DEPARTURE.get(change.departure.why, Cause.UNKNOWN)


def _sure_of_departure(change: Change) -> Confidence:
    if _departure_cause(change) is Cause.UNKNOWN:
        return Confidence.UNKNOWN
    confidence = change.departure.confidence
    if change.departure.why is Departure.NOT_REJOINED:
        return Confidence.POSSIBLE
    if not change.all_went_alike and confidence is not Confidence.UNKNOWN:
        return Confidence.POSSIBLE
    if confidence is Confidence.CERTAIN and not departures_alone(change):
        return Confidence.LIKELY
    return confidence


def departures_alone(change: Change) -> bool:
    """Whether nothing else than that members went can have begun it. A member may go while the group waits
    for it, for another reason."""
    if change.joined or change.changed or change.taken or change.touched or change.matched:
        return False
    if change.coordinator_ms is not None or change.hash_changed or not change.all_went_alike:
        return False
    if not change.classic or not change.members:
        return True
    return change.waited_ms is not None and change.waited_ms <= _WAITED_MS


def _departure_text(change: Change) -> Sequence[str]:
    where = f"generation {change.generation}" if change.classic else "the group"
    name = f"{change.went_first.name}: " if len(change.missing) > 1 else ""
    evidence = [
        f"{_is_are(change.went_alike)} in {where} no more",
        *(name + text for text in change.departure.evidence),
        *(
            f"one of the same client id came from the same host {seconds(change.at_ms - since_ms)} before"
            for _, since_ms in change.twins
        ),
    ]
    if change.classic and change.departure.why is Departure.NOT_REJOINED:
        evidence.append("what the rebalance began with does not show")
    return evidence


# ---- members came ----


def _all_back(change: Change) -> bool:
    whys = {change.returned[one.member_id].why for one in change.back}
    return 0 < len(change.back) == len(change.joined) and whys <= {Departure.LEFT, Departure.UNKNOWN}


def _sure_of_return(change: Change) -> Confidence:
    earlier = change.returned.values()
    likely = all(one.why is Departure.LEFT and one.sure for one in earlier) and not change.shared(change.back)
    return Confidence.LIKELY if likely else Confidence.POSSIBLE


_ANOTHER = "others have the same client id and host: it may be another one"


def _return_text(change: Change) -> Sequence[str]:
    return *_back_text(change), *((_ANOTHER,) if change.shared(change.back) else ())


def _back_text(change: Change) -> Sequence[str]:
    return [
        f"{one.name} went {seconds(change.at_ms - earlier.at_ms)} before ({earlier.why.value}), and came "
        "back with the same client id from the same host"
        for one in change.back
        for earlier in (change.returned[one.member_id],)
    ]


def _joined_text(change: Change) -> Sequence[str]:
    where = f" in generation {change.generation}" if change.classic else ""
    evidence = [f"{_is_are(change.joined)} new{where}", *_back_text(change), *_two_applications(change)]
    if change.silent_twins:
        evidence.append(
            f"{members(change.silent_twins)} of the same client id and host is still there, and nothing "
            "shows that it is alive: the new one may be its restart"
        )
    return evidence


def _two_applications(change: Change) -> Sequence[str]:
    new = {one.member_id for one in change.joined}
    others = {topic for one in change.members if one.member_id not in new for topic in one.topics}
    return [
        f"{one.name} subscribes to {listed(one.topics)}, the others to {listed(sorted(others))}: two "
        "applications under one group id?"
        for one in change.joined
        if others and one.topics and not others & set(one.topics)
    ]


# ---- members came and went ----


def _restarted(change: Change) -> bool:
    pairs = len(change.pairs)
    return bool(pairs) and pairs == len(change.joined) == len(change.missing)


def _sure_of_restart(change: Change) -> Confidence:
    as_if_ended = all(_as_if_ended(old, change.left[old.member_id]) for old, _ in change.pairs)
    sure = as_if_ended and not change.shared([new for _, new in change.pairs]) and not _expired_before(change)
    return Confidence.LIKELY if sure else Confidence.POSSIBLE


def _expired_before(change: Change) -> bool:
    """Whether the session of one of them had ended when the others began to rejoin: its process may have gone
    on, and come back as a new member."""
    waited_ms = change.waited_ms
    if waited_ms is None:
        return False
    silences = ((change.left[old.member_id].silent_ms, old.session_timeout_ms) for old, _ in change.pairs)
    return any(
        silent_ms is not None and session_ms is not None and silent_ms - waited_ms >= session_ms
        for silent_ms, session_ms in silences
    )


def _as_if_ended(old: Member, departure: DepartureFinding) -> bool:
    """Whether it was silent no longer than until its session ended, if it did not leave before."""
    session_ms = old.session_timeout_ms
    if departure.silent_ms is None or session_ms is None:
        return False
    return departure.silent_ms <= session_ms * 5 // 4 + _LATE_MS


def _restart_text(change: Change) -> Sequence[str]:
    evidence = []
    for old, new in change.pairs:
        evidence.append(f"{new.name} came from the same host with the same client id as one that went")
        evidence += change.left[old.member_id].evidence
    if change.shared([new for _, new in change.pairs]):
        evidence.append(_ANOTHER)
    elif _expired_before(change):
        evidence.append(
            "its session had ended when the others began to rejoin: it may have come back by itself"
        )
    elif change.classic and _sure_of_restart(change) is Confidence.POSSIBLE:
        evidence.append("a coordinator that was away for longer than the sessions would look the same")
    return evidence


def _joined_ms(change: Change) -> int | None:
    return min(change.poll_new.values(), default=None)


def _seen_to_leave_first(change: Change) -> bool:
    left_ms, joined_ms = change.poll_missing.get(change.went_first.member_id), _joined_ms(change)
    return left_ms is not None and (joined_ms is None or left_ms < joined_ms)


def _seen_to_join_first(change: Change) -> bool:
    left_ms, joined_ms = change.poll_missing.get(change.went_first.member_id), _joined_ms(change)
    return joined_ms is not None and (left_ms is None or joined_ms < left_ms)


_ORDER_UNSEEN = "nothing shows which came first; polls while it moved would have"


def _left_first_text(change: Change) -> Sequence[str]:
    return *_departure_text(change), *_decide(JOINED, change).evidence


def _joined_first_text(change: Change) -> Sequence[str]:
    return *_decide(JOINED, change).evidence, *_departure_text(change)


# ---- static members came back ----


def _moved(change: Change) -> bool:
    return place(change.taken[0][0]) != place(change.taken[0][1])


def _taken_text(change: Change) -> Sequence[str]:
    old, new = change.taken[0]
    evidence = [f"{one.instance_id} came back with another member id" for _, one in change.taken]
    if change.generation == change.generation_before:
        evidence.append(f"{change.word} {change.generation} went on as it was")
    if change.coordinator_ms is not None:
        evidence.append(f"{_outage(change)}: it may have joined again")
    if _moved(change):
        evidence.append(
            f"from {new.client_id}@{new.host.lstrip('/')}, where it was "
            f"{old.client_id}@{old.host.lstrip('/')}: another process with the same instance id would look "
            "the same"
        )
    return evidence


def _sure_of_takeover(change: Change) -> Confidence:
    doubtful = _moved(change) or change.coordinator_ms is not None
    return Confidence.POSSIBLE if doubtful else Confidence.LIKELY


# ---- subscriptions and topics ----


def _subscription_text(change: Change) -> Sequence[str]:
    evidence = []
    for old, new in change.changed:
        gained, lost = set(new.topics) - set(old.topics), set(old.topics) - set(new.topics)
        words = [f"gained {listed(sorted(gained))}"] if gained else []
        words += [f"lost {listed(sorted(lost))}"] if lost else []
        evidence.append(f"the subscription of {new.name} {' and '.join(words)}")
    return evidence


def _sure_of_pattern(change: Change) -> Confidence:
    """A pattern matches another topic for all members that have it; a deleted topic is lost by itself."""
    deleted = not any(new for _, new in change.resubscribed.values())
    return Confidence.LIKELY if deleted or change.alike else Confidence.POSSIBLE


def _pattern_text(change: Change) -> Sequence[str]:
    doubt = "a member that asks for a new topic by name would look the same"
    doubts = () if _sure_of_pattern(change) is Confidence.LIKELY else (doubt,)
    return *_subscription_text(change), change_text(change.resubscribed), *doubts


def _resubscribed(change: Change) -> Sequence[Member]:
    return [new for _, new in change.changed]


def _grown_text(change: Change) -> str:
    return listed(
        f"{name} had {old} partitions in assignments so far, now {new}"
        for name, (old, new) in change.grown.items()
    )


def _seen_to_grow(change: Change) -> bool:
    grown = change.grown
    return any(old for old, _ in grown.values()) or bool(grown.keys() & change.topic_changes.keys())


# ---- the same members with the same subscriptions ----

_SAME = "the same members with the same subscriptions"


def _leader(change: Change) -> Sequence[Member]:
    return [one for one in change.before if one.member_id == change.leader][:1]


def _resumed(change: Change) -> bool:
    given = bool(change.has - change.had) and not change.eager
    return given and change.at_ms - change.since_ms <= _AGAIN_MS


def _resumed_text(change: Change) -> Sequence[str]:
    number = len(change.has - change.had)
    return (
        f"{count(number, 'partition')} that nobody had in generation {change.generation_before} "
        f"{'was' if number == 1 else 'were'} given out {seconds(change.at_ms - change.since_ms)} later, to "
        "the same members",
    )


def _in_a_run(change: Change) -> bool:
    return change.visible_ms is not None and change.at_ms - change.visible_ms <= _RUN_MS


JOINED = (
    Rule(
        back_at_once,
        Cause.MEMBER_JOINED, Confidence.POSSIBLE,
        lambda c: (
            *_back_text(c),
            "no process begins that quickly: an operator removed them, or they left and joined again",
        ),
        lambda c: c.joined,
    ),
    Rule(_all_back, Cause.MEMBER_RESTARTED, _sure_of_return, _return_text, lambda c: c.joined),
    Rule(
        lambda c: bool(c.joined),
        Cause.MEMBER_JOINED,
        lambda c: Confidence.POSSIBLE if c.silent_twins else Confidence.CERTAIN,
        _joined_text, lambda c: c.joined,
    ),
)  # fmt: skip
"""Members only joined."""

JOINED_AND_LEFT = (
    Rule(_restarted, Cause.MEMBER_RESTARTED, _sure_of_restart, _restart_text, lambda c: c.joined),
    Rule(
        lambda c: bool(c.missing) and not c.joined,
        _departure_cause, _sure_of_departure, _departure_text, lambda c: c.went_alike,
    ),
    Rule(
        lambda c: bool(c.missing) and _seen_to_leave_first(c),
        _departure_cause, _sure_of_departure, _left_first_text, lambda c: c.went_alike,
    ),
    Rule(
        lambda c: bool(c.missing) and _seen_to_join_first(c),
        lambda c: _decide(JOINED, c).cause, Confidence.LIKELY, _joined_first_text, lambda c: c.joined,
    ),
    Rule(
        lambda c: bool(c.missing) and c.departure.why is Departure.LEFT,
        Cause.MEMBER_LEFT, Confidence.POSSIBLE,
        lambda c: (*_left_first_text(c), _ORDER_UNSEEN), lambda c: c.went_alike,
    ),
    Rule(
        lambda c: bool(c.missing),
        lambda c: _decide(JOINED, c).cause, Confidence.POSSIBLE,
        lambda c: (*_joined_first_text(c), _ORDER_UNSEEN), lambda c: c.joined,
    ),
    *JOINED,
)  # fmt: skip
"""Members joined, went, or both; then the first of these that is sure to have come first."""

RULES = (
    Rule(
        lambda c: not c.known and not _may_be_new(c),
        Cause.UNKNOWN, Confidence.UNKNOWN, lambda c: (_unread(c),),
    ),
    Rule(
        lambda c: not c.known,
        Cause.MEMBER_JOINED, Confidence.POSSIBLE,
        lambda c: (
            f"{_unread(c)}, or there was none: {members(c.members)} may have formed the group just now",
        ),
        lambda c: c.members,
    ),
    Rule(_put_out, Cause.COORDINATOR_CHANGED, Confidence.LIKELY, _outage_text),
    *JOINED_AND_LEFT,
    Rule(
        lambda c: bool(c.taken),
        Cause.STATIC_MEMBER_REPLACED, _sure_of_takeover, _taken_text, lambda c: [new for _, new in c.taken],
    ),
    Rule(
        lambda c: bool(c.changed) and bool(c.resubscribed),
        Cause.TOPICS_CHANGED, _sure_of_pattern, _pattern_text, _resubscribed,
    ),
    Rule(
        lambda c: bool(c.changed),
        Cause.MEMBER_CHANGED, lambda c: Confidence.CERTAIN if c.by_itself else Confidence.LIKELY,
        _subscription_text, _resubscribed,
    ),
    Rule(
        lambda c: bool(c.matched),
        Cause.TOPICS_CHANGED, Confidence.LIKELY,
        lambda c: (f"the pattern {listed(c.matched)} matches other topics than before",),
    ),
    Rule(
        lambda c: c.hash_changed,
        Cause.TOPICS_CHANGED, Confidence.CERTAIN,
        lambda c: (
            "the hash of its topics' partitions, which the group keeps, has changed",
            *((change_text(c.touched),) if c.touched else ()),
        ),
    ),
    Rule(_seen_to_grow, Cause.TOPICS_CHANGED, Confidence.CERTAIN, lambda c: (_grown_text(c),)),
    Rule(
        lambda c: bool(c.grown),
        Cause.LEADER_REJOINED, Confidence.POSSIBLE,
        lambda c: (
            f"{_grown_text(c)}: its leader learned only now that they are there, or they were created",
        ),
        _leader,
    ),
    Rule(_resumed, Cause.REBALANCE_CONTINUED, Confidence.CERTAIN, _resumed_text),
    Rule(
        lambda c: bool(c.touched),
        Cause.TOPICS_CHANGED, Confidence.LIKELY, lambda c: (change_text(c.touched),),
    ),
    Rule(
        lambda c: not c.classic,
        Cause.UNKNOWN, Confidence.UNKNOWN, lambda c: (f"{_SAME} and topics; the broker does not say why",),
    ),
    Rule(
        lambda c: c.coordinator_ms is not None,
        Cause.COORDINATOR_CHANGED, Confidence.LIKELY, lambda c: (f"{_SAME}; {_outage(c)}",),
    ),
    Rule(
        lambda c: bool(c.glimpsed),
        Cause.MEMBER_JOINED, Confidence.POSSIBLE,
        lambda c: (f"{_SAME}, but polls saw {listed(sorted(c.glimpsed))} join and go in between",),
    ),
    Rule(
        _in_a_run,
        Cause.LEADER_REJOINED, Confidence.LIKELY,
        lambda c: (
            f"{_SAME}, {seconds(c.at_ms - (c.visible_ms or 0))} after the last change: some clients' leaders "
            "rejoin several times after one",
        ),
        _leader,
    ),
    Rule(
        lambda c: True,
        Cause.LEADER_REJOINED, Confidence.POSSIBLE,
        lambda c: (
            f"{_SAME}: only a leader asks for that unseen, but a member that joined and went at once would "
            "look the same",
        ),
        _leader,
    ),
)  # fmt: skip
