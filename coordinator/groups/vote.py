"""The vote for the protocol of a generation, and what members subscribe to under it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ringleader.protocol.embedded import Subscription
from ringleader.protocol.errors import MalformedError

CONSUMER_TYPE = "consumer"
"""The protocol type whose metadata is a consumer Subscription."""

Protocols = tuple[tuple[str, bytes], ...]
"""A member's offer, in its order of preference: (protocol name, metadata). Names are unique."""


def elect(offers: Iterable[Protocols], supporters: Mapping[str, int], count: int, leader: Protocols) -> str:
    """The protocol that all `count` members support and most of them prefer.

    Every member votes for the first of its own names that all members support. Kafka leaves open which of
    equal votes wins; here it is the first in the leader's preference, so that equal votes give the same
    protocol in each generation for as long as the leader stays.

    Raises ValueError when no protocol is common to all (a bug: JoinGroup refuses members that would cause
    it).
    """
    votes = {name: 0 for name, _ in leader if supporters.get(name, 0) == count}  # all that any other offers
    if not votes:
        raise ValueError("no protocol is supported by all members")
    if len(votes) == 1:
        return next(iter(votes))
    for offer in offers:
        for name, _ in offer:
            if name in votes:
                votes[name] += 1
                break
    return max(votes, key=votes.__getitem__)


def subscribed_topics(metadata: Iterable[bytes]) -> frozenset[str] | None:
    """Union of the topics in the members' consumer Subscriptions; None if any cannot be read.

    Only the part that all versions share is read (version, topics). Kafka leaves the JoinGroup of a member
    with unreadable metadata unanswered; here it only makes the subscription unknown, which protects all
    offsets.
    """
    topics: set[str] = set()
    seen: set[bytes] = set()  # members of one application send equal bytes
    for one in metadata:
        if one in seen:
            continue
        seen.add(one)
        try:
            topics.update(Subscription.decode_topics(one))
        except MalformedError:
            return None
    return frozenset(topics)
