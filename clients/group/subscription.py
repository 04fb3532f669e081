"""Members of type "consumer": topics in, partitions out, by our assignors and the cluster's metadata.

A group of such members may be mixed with any other Kafka consumers: the bytes are Kafka's consumer protocol.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from random import random
from typing import Any, TypeVar, Unpack
from uuid import uuid4

from ringleader.clients.assignors import (
    cooperative_user_data,
    sticky_user_data,
    weight_user_data,
)
from ringleader.clients.checks import check
from ringleader.clients.group.assignment import assigned_partitions, readable_topics
from ringleader.clients.group.leading.leader import Leading
from ringleader.clients.group.leading.matching import Choice
from ringleader.clients.group.machine.consumer_protocol import consumer_protocol
from ringleader.clients.group.machine.machine import MemberMachine
from ringleader.clients.group.membership import GroupMember, SyncGroupMember
from ringleader.clients.group.settings import (
    DELEGATED,
    LAG_AWARE,
    MemberSettings,
    SubscriptionSettings,
    is_cooperative,
)
from ringleader.clients.model import Assigned, Lost, MemberProtocol, Revoked, TopicPartition
from ringleader.clients.offsets.member_offsets import Progress
from ringleader.clients.options import ConsumerMemberOptions, check_call
from ringleader.protocol.embedded import Assignment, Subscription

M = TypeVar("M", GroupMember, SyncGroupMember)

PROTOCOL_TYPE = "consumer"
CLASSIC_OPTIONS = {
    "session_timeout_ms",
    "heartbeat_interval_ms",
    "assignors",
    "weight",
    "imbalance",
    "lag_check_ms",
}
"""Without a meaning in the consumer protocol."""
LEADERS_OPTIONS = {"weight", "imbalance"}
"""Of these, those that have one where a member computes the assignment."""


def partitions_of(change: Assigned | Revoked | Lost) -> list[TopicPartition]:
    """The partitions of an assignment, or of what is given up or lost of one, sorted. Raises MalformedError
    for bytes that are no consumer assignment."""
    return assigned_partitions(change.assignment)


def consumer_member(
    bootstrap: str | Sequence[str],
    group_id: str,
    topics: Iterable[str] | None = None,
    **options: Unpack[ConsumerMemberOptions],
) -> GroupMember:
    """A `GroupMember` that is assigned partitions of topics; `partitions_of` reads which.

    Exactly one of `topics` (names) and `pattern` (a regular expression of Python that matches the whole name;
    the cluster's internal topics never match). Each join announces what matches then. With
    group_protocol="consumer" `pattern` may be a `SubscriptionPattern`, which the coordinator matches.

    While the group is assigned by a cooperative one of the `assignors`, the member goes on with its
    partitions when it rebalances (KIP-429): `on_revoked` is asked for those only that move away, and
    `on_assigned` gets the whole new assignment each time. With an eager one it gives up everything first.
    When a client joins that knows eager ones only, the group goes over to one of those: a leader of this
    library has all give up what they hold before another member gets it; under another leader, `on_lost`
    reports what others have taken.

    Every `metadata_max_age_ms` a member with a pattern looks whether other topics match, and the leader looks
    at all topics of the group: growth, deletion, re-creation, and other racks of replicas make it rejoin.

    "lag-aware": the leader asks for committed and end offsets first, and balances the sum of what is behind.
    A partition without a commit counts from where `auto_offset_reset` begins: "earliest", or "latest" and
    "none", which have nothing behind. With `lag_check_ms` the leader looks at the lag that often, and rejoins
    when moving partitions would make it more even than `imbalance` asks for.

    `options`: see `SubscriptionSettings`, `MemberOptions` and `MemberSettings`. Raises TypeError for an
    option that there is not, ValueError for values that cannot work.
    """
    return group_member("consumer_member()", GroupMember, bootstrap, group_id, topics, options)


def sync_consumer_member(
    bootstrap: str | Sequence[str],
    group_id: str,
    topics: Iterable[str] | None = None,
    **options: Unpack[ConsumerMemberOptions],
) -> SyncGroupMember:
    """The same as a `SyncGroupMember`."""
    return group_member("sync_consumer_member()", SyncGroupMember, bootstrap, group_id, topics, options)


def group_member(
    call: str,
    kind: type[M],
    bootstrap: str | Sequence[str],
    group_id: str,
    topics: Iterable[str] | None,
    options: Mapping[str, Any],
    consumed: Progress | None = None,
) -> M:
    """The member behind the call that the user wrote. Raises TypeError and ValueError that name that call."""
    check_call(call, bootstrap, group_id, options, ConsumerMemberOptions)
    check("topics", topics, Iterable[str] | str | None, call)
    remote = options.get("group_remote_assignor")
    leads = isinstance(remote, str) and remote.startswith(DELEGATED)
    meaningless = CLASSIC_OPTIONS - LEADERS_OPTIONS if leads else CLASSIC_OPTIONS
    if options.get("group_protocol") == "consumer" and (given := sorted(set(options) & meaningless)):
        text = f'{", ".join(given)}: without a meaning for group_protocol="consumer", leave it out'
        raise ValueError(f"{call}: {text}")
    left: dict[str, Any] = dict(options)
    by_coordinator = options.get("group_protocol") == "consumer"
    choice = Choice(topics, left.pop("pattern", None), by_coordinator=by_coordinator)
    own = {name: left.pop(name) for name in SubscriptionSettings.__slots__ if name in left}
    subscriber = _Subscriber(choice, SubscriptionSettings(**own))
    return subscriber.bound(kind(bootstrap, group_id, consumed=consumed, **left, **subscriber.options()))


def partitions_given_up(before: bytes, after: bytes) -> bytes | None:
    """Of two consumer assignments, the partitions of the first that are not in the second, as an assignment;
    None if there are none. Bytes that cannot be read have no partitions."""
    had, has = readable_topics(before), readable_topics(after)
    removed = {topic: sorted(set(ps) - set(has.get(topic, ()))) for topic, ps in had.items()}
    moving = {topic: ps for topic, ps in removed.items() if ps}
    return Assignment(moving).encode() if moving else None


class _Subscriber:
    """The metadata of a member for the leader, computed at each join."""

    def __init__(self, choice: Choice, settings: SubscriptionSettings) -> None:
        self._choice = choice
        self._settings = settings
        self._leading = Leading(choice, settings)
        self._machine: MemberMachine | None = None

    def options(self) -> dict[str, Any]:
        """The arguments that the member is made with."""
        leading, settings = self._leading, self._settings
        if settings.group_protocol == "consumer":
            return {
                "protocol_type": PROTOCOL_TYPE,
                "protocols": (),
                "given_up": partitions_given_up,
                "machine": self._consumer_protocol,
                "delegate": leading.delegated,
                "watch": leading.watch,  # it does nothing without a pattern, which may come later
                "before_join": leading.before_join if self._choice.by_pattern else None,
            }
        return {
            "protocol_type": PROTOCOL_TYPE,
            "protocols": [
                MemberProtocol(name, partial(self._metadata, name), eager=not is_cooperative(name))
                for name in settings.assignors
            ],
            "given_up": partitions_given_up if settings.cooperative else None,
            "leader": leading.lead,
            "watch": leading.watch,
            "before_join": leading.before_join,
        }

    def bound(self, member: M) -> M:
        """Look at this member from now on."""
        self._leading.bind(member.settings, member.machine)
        self._machine = member.machine
        member.subscription = self._choice
        return member

    def _consumer_protocol(self, settings: MemberSettings) -> MemberMachine:
        return MemberMachine(
            consumer_protocol(
                settings,
                str(uuid4()),
                self._choice.announce,
                random,
                regex=lambda: self._choice.regex,
                server_assignor=self._settings.group_remote_assignor,
                rack=self._settings.rack,
                user_data=None if self._settings.own_assignor is None else self._leader_user_data,
            )
        )

    def _leader_user_data(self) -> bytes:
        """For a leader of the consumer protocol, which knows from the coordinator what is owned."""
        settings = self._settings
        weighted = settings.own_assignor == "weighted"
        return weight_user_data(settings.weight) if weighted else settings.assignor_user_data

    def _metadata(self, assignor: str) -> bytes:
        held = last = None
        if self._machine is not None:
            held, last = self._machine.state.held, self._machine.state.last_held
        owned = {} if held is None else readable_topics(held.assignment)
        generation = -1 if last is None else last.generation
        data, rack = _user_data(assignor, self._settings, last, owned), self._settings.rack
        return Subscription(list(self._choice.announce()), data, owned, generation, rack).encode()


def _user_data(
    assignor: str, settings: SubscriptionSettings, last: Assigned | None, owned: Mapping[str, Sequence[int]]
) -> bytes | None:
    had = {} if last is None else readable_topics(last.assignment)
    generation = -1 if last is None else last.generation
    if assignor == "sticky":
        return sticky_user_data(had, generation)
    if assignor == "cooperative-sticky":
        return cooperative_user_data(generation)
    if assignor == "weighted":
        weight = settings.weight
        return weight_user_data(weight) if owned else weight_user_data(weight, had, generation)
    if assignor == LAG_AWARE:
        return None if owned else sticky_user_data(had, generation)
    return settings.assignor_user_data or None
