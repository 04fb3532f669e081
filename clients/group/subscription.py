"""Members of type "consumer": topics in, partitions out, by our assignors and the cluster's metadata.

A group of such members may be mixed with any other Kafka consumers: the bytes are Kafka's consumer protocol.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from ringleader.clients.assignors import (
    ASSIGNORS,
    cooperative_user_data,
    sticky_user_data,
    weight_user_data,
)
from ringleader.clients.assignors.lag import DEFAULT_IMBALANCE
from ringleader.clients.group.lags import OffsetReset
from ringleader.clients.group.leader import LAG_AWARE, METADATA_MAX_AGE_MS, LeaderSettings, Leading
from ringleader.clients.group.machine import MemberMachine
from ringleader.clients.group.matching import Choice
from ringleader.clients.group.membership import GroupMember, SyncGroupMember
from ringleader.clients.model import Assigned, MemberProtocol, TopicPartition
from ringleader.protocol.embedded import Assignment, Subscription
from ringleader.protocol.errors import MalformedError

M = TypeVar("M", GroupMember, SyncGroupMember)

PROTOCOL_TYPE = "consumer"

_COOPERATIVE = {name: one.cooperative for name, one in ASSIGNORS.items()} | {LAG_AWARE: True}


def partitions_of(assigned: Assigned) -> list[TopicPartition]:
    """The partitions of a share, sorted. Raises MalformedError for bytes that are no consumer assignment."""
    if not assigned.assignment:
        return []
    shares = Assignment.decode(assigned.assignment).partitions
    return sorted((topic, partition) for topic, ps in shares.items() for partition in ps)


def consumer_member(
    bootstrap: str | Sequence[str],
    group_id: str,
    topics: Iterable[str] | None = None,
    *,
    pattern: str | re.Pattern[str] | None = None,
    assignors: Sequence[str] = ("range", "roundrobin"),
    rack: str | None = None,
    weight: float = 1.0,
    metadata_max_age_ms: int = METADATA_MAX_AGE_MS,
    imbalance: float = DEFAULT_IMBALANCE,
    auto_offset_reset: OffsetReset = "earliest",
    lag_check_ms: int | None = None,
    **options: Any,
) -> GroupMember:
    """A `GroupMember` that shares the partitions of topics; `partitions_of` reads what it is assigned.

    Exactly one of `topics` (names) and `pattern` (a regular expression of Python that matches the whole name;
    the cluster's internal topics never match). Each join announces what matches then.

    `assignors`: names out of `ringleader.clients.assignors.ASSIGNORS`, or "lag-aware", in order of
    preference. If all of them are cooperative, so is the member (KIP-429): it goes on with its partitions
    while the group rebalances; `on_revoked` is asked for those only that move away, and `on_assigned` gets
    the whole new share each time. `rack`: where this member is (KIP-881). `weight`: what it tells the
    assignor `weighted`.

    Every `metadata_max_age_ms` a member with a pattern looks whether other topics match, and the leader looks
    at all topics of the group: growth, deletion, re-creation, and other racks of replicas make it rejoin.

    "lag-aware": the leader asks for committed and end offsets first, and balances the sum of what is behind;
    `imbalance` 0.1 lets a member have a tenth more than the mean before anything moves for it. A partition
    without a commit counts from where `auto_offset_reset` begins: "earliest", or "latest" and "none", which
    have nothing behind. With `lag_check_ms` the leader looks at the lag that often, and rejoins when moving
    partitions would make it more even than `imbalance` asks for; without it, lag counts at rebalances only.

    `options`: as for `GroupMember`. Raises ValueError for what cannot work.
    """
    subscriber = _Subscriber(topics, pattern, assignors, rack, weight)
    leader = LeaderSettings(metadata_max_age_ms, imbalance, auto_offset_reset, lag_check_ms)
    given = options | subscriber.options(leader)
    return subscriber.bound(GroupMember(bootstrap, group_id, **given))


def sync_consumer_member(
    bootstrap: str | Sequence[str],
    group_id: str,
    topics: Iterable[str] | None = None,
    *,
    pattern: str | re.Pattern[str] | None = None,
    assignors: Sequence[str] = ("range", "roundrobin"),
    rack: str | None = None,
    weight: float = 1.0,
    metadata_max_age_ms: int = METADATA_MAX_AGE_MS,
    imbalance: float = DEFAULT_IMBALANCE,
    auto_offset_reset: OffsetReset = "earliest",
    lag_check_ms: int | None = None,
    **options: Any,
) -> SyncGroupMember:
    """The same as a `SyncGroupMember`."""
    subscriber = _Subscriber(topics, pattern, assignors, rack, weight)
    leader = LeaderSettings(metadata_max_age_ms, imbalance, auto_offset_reset, lag_check_ms)
    given = options | subscriber.options(leader)
    return subscriber.bound(SyncGroupMember(bootstrap, group_id, **given))


def partitions_given_up(before: bytes, after: bytes) -> bytes | None:
    """Of two consumer assignments, the partitions of the first that are not in the second, as an assignment;
    None if there are none. What cannot be read has no partitions."""
    had, has = _readable(before), _readable(after)
    gone = {topic: sorted(set(ps) - set(has.get(topic, ()))) for topic, ps in had.items()}
    moving = {topic: ps for topic, ps in gone.items() if ps}
    return Assignment(moving).encode() if moving else None


def _readable(assignment: bytes) -> dict[str, list[int]]:
    try:
        return Assignment.decode(assignment).partitions if assignment else {}
    except MalformedError:
        return {}


class _Subscriber:
    """What a member tells the leader about itself, anew at each join."""

    def __init__(
        self,
        topics: Iterable[str] | None,
        pattern: str | re.Pattern[str] | None,
        assignors: Sequence[str],
        rack: str | None,
        weight: float,
    ) -> None:
        self._choice = Choice(topics, pattern)
        if isinstance(assignors, str):
            raise ValueError(f"assignors is a list of names, as [{assignors!r}]")
        unknown = sorted(set(assignors) - set(_COOPERATIVE))
        if unknown:
            raise ValueError(f"unknown assignors {unknown}; there are {sorted(_COOPERATIVE)}")
        weight_user_data(weight)
        self._assignors = tuple(assignors)
        self._rack = rack
        self._weight = weight
        self._cooperative = all(_COOPERATIVE[name] for name in assignors)
        self._leading: Leading | None = None
        self._machine: MemberMachine | None = None

    def options(self, leader: LeaderSettings) -> dict[str, Any]:
        """What the member is made with."""
        leading = self._leading = Leading(self._choice, leader)
        return {
            "protocol_type": PROTOCOL_TYPE,
            "protocols": [MemberProtocol(name, partial(self._metadata, name)) for name in self._assignors],
            "given_up": partitions_given_up if self._cooperative else None,
            "leader": leading.lead,
            "watch": leading.watch,
            "before_join": leading.before_join if self._choice.by_pattern else None,
        }

    def bound(self, member: M) -> M:
        """Watch this member's shares."""
        assert self._leading is not None
        self._leading.bind(member.settings)
        self._machine = member.machine
        return member

    def _metadata(self, assignor: str) -> bytes:
        held = last = None
        if self._machine is not None:
            held, last = self._machine.held, self._machine.last_held
        owned = {} if held is None else _readable(held.assignment)
        generation = -1 if last is None else last.generation
        data = _user_data(assignor, self._weight, last, owned)
        return Subscription(list(self._choice.announce()), data, owned, generation, self._rack).encode()


def _user_data(
    assignor: str, weight: float, last: Assigned | None, owned: Mapping[str, Sequence[int]]
) -> bytes | None:
    had = {} if last is None else _readable(last.assignment)
    generation = -1 if last is None else last.generation
    if assignor == "sticky":
        return sticky_user_data(had, generation)
    if assignor == "cooperative-sticky":
        return cooperative_user_data(generation)
    if assignor == "weighted":
        return weight_user_data(weight) if owned else weight_user_data(weight, had, generation)
    if assignor == LAG_AWARE:
        return None if owned else sticky_user_data(had, generation)
    return None
