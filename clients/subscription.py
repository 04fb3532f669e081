"""Members of type "consumer": topics in, partitions out, by our assignors and the cluster's metadata.

A group of such members may be mixed with any other Kafka consumers: the bytes are Kafka's consumer protocol.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from ringleader.clients.assignors import (
    ASSIGNORS,
    AssignorMember,
    cooperative_user_data,
    sticky_user_data,
    weight_user_data,
)
from ringleader.clients.backoff import Backoff
from ringleader.clients.driver import Driver
from ringleader.clients.errors import RetriableError
from ringleader.clients.machine import MemberMachine
from ringleader.clients.membership import GroupMember, SyncGroupMember
from ringleader.clients.model import Assigned, MemberInfo, MemberProtocol, TopicPartition
from ringleader.clients.transport import Cluster, ClusterMetadata, retrying
from ringleader.protocol.embedded import Assignment, Subscription
from ringleader.protocol.errors import MalformedError

M = TypeVar("M", GroupMember, SyncGroupMember)

logger = logging.getLogger("ringleader.clients.subscription")

PROTOCOL_TYPE = "consumer"
METADATA_CHECK_MS = 30_000
LEADER_TIMEOUT_MS = 30_000
INLINE_WORK = 20_000
"""Members times topics plus partitions up to which an assignment is computed in the driver's loop (some
milliseconds); more goes to a thread, so that heartbeats go on."""


def partitions_of(assigned: Assigned) -> list[TopicPartition]:
    """The partitions of a share, sorted. Raises MalformedError for bytes that are no consumer assignment."""
    if not assigned.assignment:
        return []
    shares = Assignment.decode(assigned.assignment).partitions
    return sorted((topic, partition) for topic, ps in shares.items() for partition in ps)


def consumer_member(
    bootstrap: str | Sequence[str],
    group_id: str,
    topics: Iterable[str],
    *,
    assignors: Sequence[str] = ("range", "roundrobin"),
    rack: str | None = None,
    weight: float = 1.0,
    metadata_check_ms: int = METADATA_CHECK_MS,
    **options: Any,
) -> GroupMember:
    """A `GroupMember` that shares the partitions of these topics; `partitions_of` reads what it is assigned.

    `assignors`: names out of `ringleader.clients.assignors.ASSIGNORS`, in order of preference. If all of them
    are cooperative, so is the member (KIP-429): it goes on with its partitions while the group rebalances;
    `on_revoked` is asked for those only that move away, and `on_assigned` gets the whole new share each time.
    `rack`: where this member is (KIP-881). `weight`: what it tells the assignor `weighted`. As the leader it
    looks at the topics every `metadata_check_ms` and rejoins when their partitions have changed. `options`:
    as for `GroupMember`. Raises ValueError for unknown assignors and a weight that is not above 0.
    """
    subscriber = _Subscriber(topics, assignors, rack, weight)
    leader = _Leader(metadata_check_ms)
    given = options | subscriber.options()
    return subscriber.bound(GroupMember(bootstrap, group_id, leader=leader.lead, watch=leader.watch, **given))


def sync_consumer_member(
    bootstrap: str | Sequence[str],
    group_id: str,
    topics: Iterable[str],
    *,
    assignors: Sequence[str] = ("range", "roundrobin"),
    rack: str | None = None,
    weight: float = 1.0,
    metadata_check_ms: int = METADATA_CHECK_MS,
    **options: Any,
) -> SyncGroupMember:
    """The same as a `SyncGroupMember`."""
    subscriber = _Subscriber(topics, assignors, rack, weight)
    leader = _Leader(metadata_check_ms)
    given = options | subscriber.options()
    return subscriber.bound(
        SyncGroupMember(bootstrap, group_id, leader=leader.lead, watch=leader.watch, **given)
    )


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
        self, topics: Iterable[str], assignors: Sequence[str], rack: str | None, weight: float
    ) -> None:
        self._topics = sorted({topics} if isinstance(topics, str) else set(topics))
        if not self._topics:
            raise ValueError("no topics to subscribe to")
        unknown = sorted(set(assignors) - set(ASSIGNORS))
        if unknown:
            raise ValueError(f"unknown assignors {unknown}; there are {sorted(ASSIGNORS)}")
        weight_user_data(weight)
        self._assignors = tuple(assignors)
        self._rack = rack
        self._weight = weight
        self._cooperative = all(ASSIGNORS[name].cooperative for name in assignors)
        self._machine: MemberMachine | None = None

    def options(self) -> dict[str, Any]:
        """What the member is made with."""
        return {
            "protocol_type": PROTOCOL_TYPE,
            "protocols": [MemberProtocol(name, partial(self._metadata, name)) for name in self._assignors],
            "given_up": partitions_given_up if self._cooperative else None,
        }

    def bound(self, member: M) -> M:
        """Watch this member's shares."""
        self._machine = member.machine
        return member

    def _metadata(self, assignor: str) -> bytes:
        held = last = None
        if self._machine is not None:
            held, last = self._machine.held, self._machine.last_held
        owned = {} if held is None else _readable(held.assignment)
        generation = -1 if last is None else last.generation
        data = _user_data(assignor, self._weight, last, owned)
        return Subscription(self._topics, data, owned, generation, self._rack).encode()


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
    return None


class _Leader:
    """What a member does while it leads: compute assignments, and watch the topics that they rest on."""

    def __init__(self, check_ms: int) -> None:
        self._check_ms = check_ms
        self._counts: dict[str, int] = {}
        """Partitions of every topic that the group subscribes to, as of the last assignment; 0: missing."""

    async def lead(self, cluster: Cluster, protocol: str, infos: list[MemberInfo]) -> Mapping[str, bytes]:
        """Each member's partitions."""
        members = [_member(info) for info in infos]
        topics = sorted({topic for member in members for topic in member.topics})
        metadata = await _metadata(cluster, topics)
        counts = metadata.partition_counts(topics)
        self._counts = {topic: counts.get(topic, 0) for topic in topics}
        missing = [topic for topic, count in self._counts.items() if count == 0]
        if missing:
            logger.warning("the group subscribes to topics that do not exist: %s", ", ".join(missing))
        assign = ASSIGNORS[protocol].assign
        racks = metadata.partition_racks(topics)
        work = sum(len(member.topics) for member in members) + sum(counts.values())
        if work <= INLINE_WORK:
            shares = assign(members, counts, racks)
        else:
            shares = await asyncio.to_thread(assign, members, counts, racks)
        return {member_id: Assignment(partitions).encode() for member_id, partitions in shares.items()}

    async def watch(self, driver: Driver, cluster: Cluster) -> None:
        """Rejoin when the topics are not any more what the assignment was computed for."""
        while True:
            await asyncio.sleep(self._check_ms / 1000)
            held = driver.machine.held
            if held is None or not held.is_leader or not self._counts:
                continue
            try:
                counts = (await cluster.metadata(self._counts)).partition_counts(self._counts)
            except RetriableError as error:
                logger.debug("topics cannot be looked at now: %s", error)
                continue
            changes = [
                f"{topic} has {counts.get(topic, 0)} partitions instead of {before}"
                for topic, before in self._counts.items()
                if counts.get(topic, 0) != before
            ]
            if changes and driver.machine.held is held:
                driver.rejoin("; ".join(changes))


def _member(info: MemberInfo) -> AssignorMember:
    try:
        said = Subscription.decode(info.metadata)
    except MalformedError as error:
        # The others should not pay for it: this one gets nothing.
        logger.warning("member %s has a subscription that cannot be read: %s", info.member_id, error)
        said = Subscription([])
    return AssignorMember(
        info.member_id,
        info.group_instance_id,
        said.topics,
        said.owned_partitions,
        said.generation,
        said.rack_id,
        said.user_data,
    )


async def _metadata(cluster: Cluster, topics: list[str]) -> ClusterMetadata:
    backoff = Backoff(100, 1_000, random.random)
    return await retrying(LEADER_TIMEOUT_MS, backoff, lambda: cluster.metadata(topics))
