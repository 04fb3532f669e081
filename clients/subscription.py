"""Members of type "consumer": topics in, partitions out, by our assignors and the cluster's metadata.

A group of such members may be mixed with any other Kafka consumers: the bytes are Kafka's consumer protocol.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ringleader.clients.assignors import ASSIGNORS, AssignorMember
from ringleader.clients.backoff import Backoff
from ringleader.clients.driver import Driver
from ringleader.clients.errors import RetriableError
from ringleader.clients.membership import GroupMember, SyncGroupMember
from ringleader.clients.model import Assigned, MemberInfo, MemberProtocol, TopicPartition
from ringleader.clients.transport import Cluster, ClusterMetadata, retrying
from ringleader.protocol.embedded import Assignment, Subscription
from ringleader.protocol.errors import MalformedError

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
    metadata_check_ms: int = METADATA_CHECK_MS,
    **options: Any,
) -> GroupMember:
    """A `GroupMember` that shares the partitions of these topics; `partitions_of` reads what it is assigned.

    `assignors`: names out of `ringleader.clients.assignors.ASSIGNORS`, in order of preference. `rack`: where
    this member is (KIP-881). As the leader it looks at the topics every `metadata_check_ms` and rejoins when
    their partitions have changed. `options`: as for `GroupMember`. Raises ValueError for unknown assignors.
    """
    leader = _Leader(metadata_check_ms)
    protocols = _protocols(topics, assignors, rack)
    options |= {"protocols": protocols, "protocol_type": PROTOCOL_TYPE}
    return GroupMember(bootstrap, group_id, leader=leader.lead, watch=leader.watch, **options)


def sync_consumer_member(
    bootstrap: str | Sequence[str],
    group_id: str,
    topics: Iterable[str],
    *,
    assignors: Sequence[str] = ("range", "roundrobin"),
    rack: str | None = None,
    metadata_check_ms: int = METADATA_CHECK_MS,
    **options: Any,
) -> SyncGroupMember:
    """The same as a `SyncGroupMember`."""
    leader = _Leader(metadata_check_ms)
    protocols = _protocols(topics, assignors, rack)
    options |= {"protocols": protocols, "protocol_type": PROTOCOL_TYPE}
    return SyncGroupMember(bootstrap, group_id, leader=leader.lead, watch=leader.watch, **options)


def _protocols(topics: Iterable[str], assignors: Sequence[str], rack: str | None) -> list[MemberProtocol]:
    wanted = sorted({topics} if isinstance(topics, str) else set(topics))
    if not wanted:
        raise ValueError("no topics to subscribe to")
    unknown = sorted(set(assignors) - set(ASSIGNORS))
    if unknown:
        raise ValueError(f"unknown assignors {unknown}; there are {sorted(ASSIGNORS)}")
    metadata = Subscription(wanted, rack_id=rack).encode()
    return [MemberProtocol(name, metadata) for name in assignors]


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
