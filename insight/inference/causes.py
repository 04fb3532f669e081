"""Why a classic group rebalanced: concluded from the difference between two of its records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from ringleader.insight.inference.words import count, listed, members, seconds
from ringleader.insight.inference.world import change_text
from ringleader.insight.model import Cause, Confidence, Departure, Gone, GroupState, Member, TopicPartition

_RUN_MS = 20_000
"""Generations in a row, each within this of the one before, belong to one change."""

_LATE_MS = 1_500
"""Sessions end, and groups come together, that much later."""

_YOUNG = 5
"""A group that is seen first in a generation up to this may be new."""

_ANOTHER = "others have the same client id and host: it may be another one"

_AGAIN_MS = 2 * 60_000
"""The second half of a cooperative rebalance comes within this."""

BY_DEPARTURE = {
    Departure.LEFT: Cause.MEMBER_LEFT,
    Departure.SESSION_EXPIRED: Cause.SESSION_EXPIRED,
    Departure.POLL_INTERVAL_EXCEEDED: Cause.POLL_INTERVAL_EXCEEDED,
    Departure.REMOVED: Cause.MEMBER_REMOVED,
}


class Earlier(Protocol):
    """Who went not long ago."""

    @property
    def name(self) -> str: ...
    @property
    def at_ms(self) -> int: ...
    @property
    def why(self) -> Departure: ...
    @property
    def sure(self) -> bool: ...


class Change(NamedTuple):
    """What differs between two records of a group, and what else was seen between them."""

    at_ms: int
    since_ms: int
    generation: int
    before: GroupState | None
    known: bool
    """The record before was read, or there was none."""
    members: tuple[Member, ...]
    joined: Sequence[Member]
    missing: Sequence[Member]
    left: Mapping[str, Gone]
    taken: Sequence[tuple[Member, Member]]
    """Static members that came back: before, after."""
    changed: Sequence[tuple[Member, Member]]
    """Members with another subscription: before, after."""
    counts: Mapping[str, int]
    """Topic -> partitions that assignments have had so far."""
    topic_changes: Mapping[str, tuple[int, int]]
    coordinator_ms: int | None
    """When the coordinator was seen to be away or another."""
    returned: Mapping[str, Earlier]
    """Who joined now and had gone before: member id -> the one that went."""
    visible_ms: int | None
    """When something was last seen to change."""
    glimpsed: Sequence[str]
    """Names of members that polls saw between the records, and that are in neither."""
    poll_missing: Mapping[str, int]
    """Member id -> when a poll first missed it."""
    poll_new: Mapping[str, int]
    """Member id of a new member -> when a poll saw it."""


class Verdict(NamedTuple):
    """A cause, how sure it is, what tells, and who."""

    cause: Cause
    confidence: Confidence
    evidence: tuple[str, ...]
    members: tuple[str, ...] = ()


def verdict(change: Change) -> Verdict:
    """Why."""
    if not change.known:
        missing = f"the record before generation {change.generation} was not read"
        if change.generation > _YOUNG or not change.members:
            return Verdict(Cause.UNKNOWN, Confidence.UNKNOWN, (missing,))
        # Where several start at once, their first generations may end before the leader has synced.
        text = f"{missing}, or there was none: {members(change.members)} may have formed the group just now"
        return Verdict(Cause.MEMBER_JOINED, Confidence.POSSIBLE, (text,), _ids(change.members))
    outage = change.coordinator_ms is not None
    if change.missing and change.joined:
        said = _came_and_went(change)
    elif change.missing:
        said = _went(change)
    elif change.joined:
        said = _came(change)
    elif change.taken:
        return _taken(change)
    elif change.changed:
        return _subscribed(change)
    else:
        return _nobody(change)
    # Who only joins needs no outage for it; who went and came back may have been put out by it.
    if outage and (change.missing or said.cause is not Cause.MEMBER_JOINED):
        ago = seconds(change.at_ms - (change.coordinator_ms or 0))
        text = f"the coordinator was seen away or replaced {ago} before; {said.evidence[0]}"
        return Verdict(Cause.COORDINATOR_CHANGED, Confidence.LIKELY, (text, *said.evidence[1:]))
    return said


def _ids(some: Sequence[Member]) -> tuple[str, ...]:
    return tuple(one.member_id for one in some)


def _came(change: Change) -> Verdict:
    back = [one for one in change.joined if one.member_id in change.returned]
    whys = {change.returned[one.member_id].why for one in back}
    evidence = []
    for one in back:
        earlier = change.returned[one.member_id]
        evidence.append(
            f"{one.name} went {seconds(change.at_ms - earlier.at_ms)} before ({earlier.why.value}), and came "
            "back with the same client id from the same host"
        )
    if len(back) == len(change.joined) and whys <= {Departure.LEFT, Departure.UNKNOWN}:
        likely = whys == {Departure.LEFT} and all(one.sure for one in change.returned.values())
        sure = Confidence.LIKELY if likely else Confidence.POSSIBLE
        if any(_shared(change, one) for one in back):
            sure = Confidence.POSSIBLE
            evidence.append(_ANOTHER)
        return Verdict(Cause.MEMBER_RESTARTED, sure, tuple(evidence), _ids(change.joined))
    new = (
        f"{members(change.joined)} {'is' if len(change.joined) == 1 else 'are'} new in generation "
        f"{change.generation}"
    )
    joined = set(_ids(change.joined))
    others = {topic for one in change.members if one.member_id not in joined for topic in one.topics}
    evidence += [
        f"{one.name} subscribes to {listed(one.topics)}, the others to {listed(sorted(others))}: two "
        "applications "
        "under one group id?"
        for one in change.joined
        if others and one.topics and not others & set(one.topics)
    ]
    return Verdict(Cause.MEMBER_JOINED, Confidence.CERTAIN, (new, *evidence), _ids(change.joined))


def _shared(change: Change, one: Member) -> bool:
    """Others have its client id and host, too: these do not say who it is."""
    joined = {new.member_id for new in change.joined}
    return any(
        (other.client_id, other.host) == (one.client_id, one.host)
        for other in change.members
        if other.member_id not in joined
    )


def _went(change: Change) -> Verdict:
    first = _first_gone(change)
    gone = change.left[first.member_id]
    same = [one for one in change.missing if change.left[one.member_id].why is gone.why]
    evidence = [
        f"{members(same)} {'is' if len(same) == 1 else 'are'} in generation {change.generation} no more"
    ]
    evidence += [f"{first.name}: {text}" if len(change.missing) > 1 else text for text in gone.evidence]
    if gone.why is Departure.NOT_REJOINED:
        evidence.append("what the rebalance began with does not show")
        return Verdict(Cause.POLL_INTERVAL_EXCEEDED, Confidence.POSSIBLE, tuple(evidence), _ids(same))
    cause = BY_DEPARTURE.get(gone.why, Cause.UNKNOWN)
    confidence = gone.confidence if cause is not Cause.UNKNOWN else Confidence.UNKNOWN
    if len(same) != len(change.missing) and confidence is Confidence.LIKELY:
        confidence = Confidence.POSSIBLE
    return Verdict(cause, confidence, tuple(evidence), _ids(same))


def _first_gone(change: Change) -> Member:
    """Who most likely went first: those that polls missed, then the surest."""
    order = list(Confidence)

    def key(one: Member) -> tuple[int, int]:
        missed = change.poll_missing.get(one.member_id, change.at_ms)
        return missed, order.index(change.left[one.member_id].confidence)

    return min(change.missing, key=key)


def _came_and_went(change: Change) -> Verdict:
    free = list(change.missing)
    pairs: list[tuple[Member, Member]] = []
    for new in change.joined:
        old = next((one for one in free if (one.client_id, one.host) == (new.client_id, new.host)), None)
        if old is not None:
            free.remove(old)
            pairs.append((old, new))
    if len(pairs) == len(change.joined) and not free:
        return _restarted(change, pairs)
    went, came = _went(change), _came(change)
    first = _first_gone(change)
    gone_ms = change.poll_missing.get(first.member_id)
    came_ms = min(change.poll_new.values(), default=None)
    if gone_ms is not None or came_ms is not None:
        if came_ms is None or (gone_ms is not None and gone_ms < came_ms):
            return went._replace(evidence=(*went.evidence, *came.evidence))
        if gone_ms is None or came_ms < gone_ms:
            return came._replace(confidence=Confidence.LIKELY, evidence=(*came.evidence, *went.evidence))
    told = "nothing shows which came first; polls while it moved would have"
    said = went if change.left[first.member_id].why is Departure.LEFT else came
    other = came if said is went else went
    return said._replace(confidence=Confidence.POSSIBLE, evidence=(*said.evidence, *other.evidence, told))


def _restarted(change: Change, pairs: Sequence[tuple[Member, Member]]) -> Verdict:
    evidence = []
    sure = Confidence.LIKELY
    for old, new in pairs:
        gone = change.left[old.member_id]
        evidence.append(f"{new.name} came from the same host with the same client id as one that went")
        evidence += gone.evidence
        if not _as_if_ended(old, gone):
            sure = Confidence.POSSIBLE
    if any(_shared(change, new) for _, new in pairs):
        sure = Confidence.POSSIBLE
        evidence.append(_ANOTHER)
    elif sure is Confidence.POSSIBLE:
        evidence.append("a coordinator that was away for longer than the sessions would look the same")
    return Verdict(Cause.MEMBER_RESTARTED, sure, tuple(evidence), _ids([new for _, new in pairs]))


def _as_if_ended(old: Member, gone: Gone) -> bool:
    """Whether it was silent no longer than until its session ended, if it did not leave before."""
    session_ms = old.session_timeout_ms
    if gone.silent_ms is None or session_ms is None:
        return False
    return gone.silent_ms <= session_ms * 5 // 4 + _LATE_MS


def _taken(change: Change) -> Verdict:
    old, new = change.taken[0]
    evidence = [f"{one.instance_id} came back with another member id" for _, one in change.taken]
    if change.before is not None and change.generation == change.before.generation:
        evidence.append(f"generation {change.generation} went on as it was")
    moved = (old.client_id, old.host) != (new.client_id, new.host)
    if change.coordinator_ms is not None:
        ago = seconds(change.at_ms - change.coordinator_ms)
        evidence.append(f"the coordinator was seen away or replaced {ago} before: it may have joined again")
    if moved:
        evidence.append(
            f"from {new.client_id}@{new.host.lstrip('/')}, where it was "
            f"{old.client_id}@{old.host.lstrip('/')}: "
            "another process with the same instance id would look the same"
        )
    sure = Confidence.POSSIBLE if moved or change.coordinator_ms is not None else Confidence.LIKELY
    return Verdict(
        Cause.STATIC_MEMBER_REPLACED, sure, tuple(evidence), _ids([one for _, one in change.taken])
    )


def _subscribed(change: Change) -> Verdict:
    evidence = []
    touched: set[str] = set()
    for old, new in change.changed:
        gained, lost = set(new.topics) - set(old.topics), set(old.topics) - set(new.topics)
        touched |= gained | lost
        words = [f"gained {listed(sorted(gained))}"] if gained else []
        words += [f"lost {listed(sorted(lost))}"] if lost else []
        evidence.append(f"the subscription of {new.name} {' and '.join(words)}")
    ids = _ids([new for _, new in change.changed])
    told = {name: change.topic_changes[name] for name in sorted(touched & change.topic_changes.keys())}
    if touched and touched == told.keys():
        return Verdict(Cause.TOPICS_CHANGED, Confidence.LIKELY, (*evidence, change_text(told)), ids)
    return Verdict(Cause.MEMBER_CHANGED, Confidence.CERTAIN, tuple(evidence), ids)


def _nobody(change: Change) -> Verdict:
    """The same members with the same subscriptions."""
    before = change.before
    assert before is not None
    had = {partition for one in before.members for partition in one.assigned}
    has = {partition for one in change.members for partition in one.assigned}
    since_ms = change.at_ms - change.since_ms
    leader = next((one for one in before.members if one.member_id == before.leader), None)
    who = (leader.member_id,) if leader is not None else ()
    grown = _grown(change, has)
    if grown:
        text = listed(
            [
                f"{name} had {old} partitions in assignments so far, now {new}"
                for name, (old, new) in grown.items()
            ]
        )
        if any(old for old, _ in grown.values()) or grown.keys() & change.topic_changes.keys():
            return Verdict(Cause.TOPICS_CHANGED, Confidence.CERTAIN, (text,))
        text += ": its leader learned only now that they are there, or they were created"
        return Verdict(Cause.LEADER_REJOINED, Confidence.POSSIBLE, (text,), who)
    resumed = has - had
    if resumed and since_ms <= _AGAIN_MS:
        text = (
            f"{count(len(resumed), 'partition')} that nobody had in generation {before.generation} "
            f"{'was' if len(resumed) == 1 else 'were'} given out {seconds(since_ms)} later, to the "
            "same members"
        )
        return Verdict(Cause.REBALANCE_CONTINUED, Confidence.CERTAIN, (text,))
    gone = {topic for topic, _ in had} - {topic for topic, _ in has}
    topics = {topic for one in change.members for topic in one.topics}
    told = {
        name: (old, new)
        for name, (old, new) in change.topic_changes.items()
        # What had been given out before it was seen made an earlier rebalance.
        if name in topics | gone and not old < new <= change.counts.get(name, 0)
    }
    if told:
        return Verdict(Cause.TOPICS_CHANGED, Confidence.LIKELY, (change_text(told),))
    same = "the same members with the same subscriptions"
    if change.coordinator_ms is not None:
        ago = seconds(change.at_ms - change.coordinator_ms)
        text = f"{same}; the coordinator was seen away or replaced {ago} before"
        return Verdict(Cause.COORDINATOR_CHANGED, Confidence.LIKELY, (text,))
    if change.glimpsed:
        text = f"{same}, but polls saw {listed(sorted(change.glimpsed))} join and go in between"
        return Verdict(Cause.MEMBER_JOINED, Confidence.POSSIBLE, (text,))
    if change.visible_ms is not None and change.at_ms - change.visible_ms <= _RUN_MS:
        text = (
            f"{same}, {seconds(change.at_ms - change.visible_ms)} after the last change: some "
            "clients' leaders "
            "rejoin several times after one"
        )
        return Verdict(Cause.LEADER_REJOINED, Confidence.LIKELY, (text,), who)
    text = (
        f"{same}: only a leader asks for that unseen, but a member that joined and went at once would "
        "look the same"
    )
    return Verdict(Cause.LEADER_REJOINED, Confidence.POSSIBLE, (text,), who)


def _grown(change: Change, has: set[TopicPartition]) -> dict[str, tuple[int, int]]:
    subscribed = {topic for one in change.members for topic in one.topics}
    now: dict[str, int] = {}
    for topic, number in has:
        if topic in subscribed:
            now[topic] = max(now.get(topic, 0), number + 1)
    return {
        name: (change.counts.get(name, 0), number)
        for name, number in sorted(now.items())
        if number > change.counts.get(name, 0)
    }
