"""Asks a cluster for what its records do not say: how groups move just now, topics, who coordinates, how much
there is to read. It changes nothing and keeps no client waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.metadata import ClusterMetadata, read_metadata
from ringleader.clients.connection.requests import Request, in_parts, plain
from ringleader.clients.errors import ClientError, UnsupportedVersionError
from ringleader.clients.model import LATEST, Node
from ringleader.clients.offsets.list_offsets import list_offsets, listed_offsets
from ringleader.clients.offsets.share_groups import described_share_offsets, share_offsets
from ringleader.insight.feed.broker_settings import of_first_broker
from ringleader.insight.inference.facts import (
    CoordinatorSeen,
    Described,
    DescribedMember,
    Fact,
    SessionTimeouts,
    Topic,
    TopicsSeen,
)
from ringleader.insight.model import Commit, Lag, TopicPartition
from ringleader.protocol.messages import (
    ConsumerGroupDescribeRequest,
    DescribeGroupsRequest,
    DescribeGroupsResponseDescribedGroup,
    FindCoordinatorRequest,
    ListGroupsRequest,
    MetadataRequest,
)

OFFSETS_TOPIC = "__consumer_offsets"
NODES_TOPIC = "__ringleader_groups"
"""The topic of Ringleader's nodes, unless their `cluster.groups.topic` names another."""
MOVING_STATES = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")
"""A group in one of these will soon be in another (KIP-518, KIP-848)."""
_SESSION_TIMEOUTS = ("group.consumer.session.timeout.ms", "group.share.session.timeout.ms")
_NODES_TOPIC = "cluster.groups.topic"
_RETENTION = "offsets.retention.minutes"
GROUPS_TIMEOUT_S = 3.0
"""A broker that does not tell its groups in that time counts as away."""
METADATA_TIMEOUT_S = 10.0
GROUPS_MAX = 1_000
"""Groups in one question who coordinates them."""
SHARE_GROUPS_MAX = 100
"""Share groups in one request: their coordinator asks the leaders of all their partitions."""
PURPOSE = "polls"
"""A connection of its own: no answer to it waits behind records."""


class Polls:
    """Each method asks once. `tell` gets what is to be inferred from, `now_ms` is the clock (Unix time)."""

    def __init__(self, cluster: Cluster, tell: Callable[[Fact], None], now_ms: Callable[[], int]) -> None:
        self._cluster = cluster
        self._tell = tell
        self._now_ms = now_ms
        self.cluster_id: str | None = None
        self.offsets_topic = ""
        """Where the cluster keeps its groups; known with `topics`."""
        self._metadata: ClusterMetadata | None = None
        self._away: set[int] = set()
        """Brokers that did not answer when they were asked last."""
        self._seen: dict[int, tuple[int, int, bool]] = {}
        """Partition of the offsets topic -> leader, epoch, reachable, as reported last."""
        self._moved: dict[str, Node] = {}
        """Groups that were moving when asked last, and where."""
        self._modern: set[str] = set()
        """Groups of the consumer protocol, as far as they moved."""
        self._unsupported: set[int] = set()
        """Brokers that do not know the states of groups (before 2.6)."""
        self._no_share_groups: set[int] = set()
        """Brokers without share groups (before 4.1)."""

    # ---- the cluster ----

    async def topics(self) -> ClusterMetadata:
        """All topics and brokers. Raises ClientError."""

        def build(version: int) -> MetadataRequest:
            return MetadataRequest(topics=None if version else [], allow_auto_topic_creation=version < 4)

        deadline_s = asyncio.get_running_loop().time() + METADATA_TIMEOUT_S
        answer = await self._cluster.send(
            None, Request(MetadataRequest, build), deadline_s=deadline_s, purpose=PURPOSE
        )
        metadata = self._metadata = read_metadata(answer)
        self._cluster.know(metadata.brokers)
        self.cluster_id = answer.cluster_id
        self.offsets_topic = self.offsets_topic or await self._groups_topic(metadata.brokers.values())
        there = {
            name: Topic(len(topic.partitions), topic.id)
            for name, topic in metadata.topics.items()
            if not topic.error_code
        }
        self._tell(TopicsSeen(self._now_ms(), there))
        if self.all_away:
            self._away = set()  # one of them answers
        self._away &= set(metadata.brokers)
        self._coordinators()
        return metadata

    async def _groups_topic(self, brokers: Iterable[Node]) -> str:
        """Nodes name the topic of their groups (DescribeConfigs of one); brokers, and a daemon by itself,
        keep theirs in `__consumer_offsets`."""

        def read(reported: dict[str, str | None]) -> str:
            return (reported.get("cluster") and reported.get(_NODES_TOPIC)) or OFFSETS_TOPIC

        names = ("cluster", _NODES_TOPIC)
        return await of_first_broker(brokers, names, self._ask, read) or OFFSETS_TOPIC

    @property
    def of_nodes(self) -> bool:
        """Whether it is a cluster of Ringleader's nodes before a Kafka cluster."""
        return self.offsets_topic not in ("", OFFSETS_TOPIC)

    async def session_timeouts(self) -> None:
        """Tell how long the brokers wait for members of the newer protocols, where they say so
        (DescribeConfigs of a broker; who may not ask, or asks an older one, goes without)."""
        reported = await self._settings(*_SESSION_TIMEOUTS)
        if reported is not None:
            self._tell(SessionTimeouts(self._now_ms(), *reported))

    async def retention_ms(self) -> int | None:
        """How long the brokers keep offsets of groups without members; None: they do not say."""
        reported = await self._settings(_RETENTION)
        return None if reported is None or reported[0] is None else reported[0] * 60_000

    async def _settings(self, *names: str) -> list[int | None] | None:
        """These settings, of the first broker that reports one of them, each None where it does not have it.
        None: no broker reports any."""
        assert self._metadata is not None

        def read(reported: dict[str, Any]) -> list[int | None]:
            if not any(reported.get(name) for name in names):
                raise KeyError(*names)
            return [int(reported[name]) if reported.get(name) else None for name in names]

        return await of_first_broker(self._metadata.brokers.values(), names, self._ask, read)

    def lost(self) -> None:
        """No broker answers."""
        if self._metadata is not None:
            self._away = set(self._metadata.brokers)
            self._coordinators()

    @property
    def all_away(self) -> bool:
        """Whether no broker answered when it was asked last."""
        return self._metadata is not None and self._away >= set(self._metadata.brokers)

    def partitions(self, topic: str) -> int:
        """How many it has; 0: there is none."""
        found = None if self._metadata is None else self._metadata.topics.get(topic)
        return 0 if found is None or found.error_code else len(found.partitions)

    @property
    def hosts(self) -> set[str]:
        """Of all brokers, or nodes."""
        return set() if self._metadata is None else {one.host for one in self._metadata.brokers.values()}

    def _coordinators(self) -> None:
        """Tell who leads the partitions of the offsets topic, where that changed. Nodes tell it in the topic
        itself: in metadata they stand for the brokers that lead it."""
        assert self._metadata is not None
        topic = None if self.of_nodes else self._metadata.topics.get(self.offsets_topic)
        for part in () if topic is None else topic.partitions:
            there = part.leader in self._metadata.brokers and part.leader not in self._away
            now = (part.leader, part.leader_epoch, there)
            if self._seen.get(part.partition) != now:
                self._seen[part.partition] = now
                self._tell(CoordinatorSeen(self._now_ms(), part.partition, *now))

    # ---- groups that move ----

    async def moving(self, also: Iterable[str]) -> None:
        """Describe the groups that change just now, `also` these, and those that did when asked last."""
        assert self._metadata is not None
        brokers = list(self._metadata.brokers.values())
        listed = await asyncio.gather(*map(self._listed, brokers))
        wanted = dict(self._moved)
        self._moved = {}
        for broker, groups in zip(brokers, listed, strict=True):
            for group in groups:
                if group.group_type.lower() == "consumer":
                    self._modern.add(group.group_id)
                if group.group_type.lower() in ("", "classic", "consumer"):
                    self._moved[group.group_id] = broker
        wanted |= self._moved
        wanted |= await self._coordinators_of(one for one in also if one not in wanted)
        by_node: dict[Node, list[str]] = {}
        for group_id, node in wanted.items():
            if node.node_id not in self._away:
                by_node.setdefault(node, []).append(group_id)
        await asyncio.gather(
            *(self._describe(node, some) for node, groups in by_node.items() for some in in_parts(groups))
        )
        self._modern &= set(wanted)

    async def _listed(self, broker: Node) -> Sequence[Any]:
        """Its groups that move; none where it does not say."""
        if broker.node_id in self._unsupported:
            return ()
        try:
            answer = await self._ask(broker, plain(ListGroupsRequest(states_filter=list(MOVING_STATES))))
        except UnsupportedVersionError:
            self._unsupported.add(broker.node_id)
            return ()
        except ClientError:
            away = True
        else:
            away = False
        if away != (broker.node_id in self._away):
            (self._away.add if away else self._away.discard)(broker.node_id)
            self._coordinators()
        return () if away or answer.error_code else answer.groups

    async def _coordinators_of(self, groups: Iterable[str]) -> dict[str, Node]:
        """The leader of the partition that a group's offsets are in; nodes are asked. Without those that have
        none now."""
        assert self._metadata is not None
        brokers, wanted = self._metadata.brokers, list(groups)
        if self.of_nodes:
            found = [await self._owners(some) for some in in_parts(wanted, GROUPS_MAX)]
            owners = {group_id: node_id for one in found for group_id, node_id in one.items()}
        else:
            topic = self._metadata.topics.get(self.offsets_topic)
            parts = () if topic is None else topic.partitions
            owners = {one: parts[offsets_partition(one, len(parts))].leader for one in wanted if parts}
        return {group_id: brokers[of] for group_id, of in owners.items() if of in brokers}

    async def _owners(self, groups: Sequence[str]) -> dict[str, int]:
        """Group -> node, as any node says."""
        for node in self._metadata.brokers.values() if self._metadata is not None and groups else ():
            if node.node_id not in self._away:
                try:
                    answer = await self._ask(node, plain(FindCoordinatorRequest(coordinator_keys=[*groups])))
                except ClientError:
                    continue
                return {one.key: one.node_id for one in answer.coordinators if not one.error_code}
        return {}

    async def _describe(self, node: Node, groups: Sequence[str]) -> None:
        """Tell what it says of these."""
        classic = [one for one in groups if one not in self._modern]
        modern = [one for one in groups if one in self._modern]
        try:
            found: list[Any] = []
            if classic:
                answer = await self._ask(node, plain(DescribeGroupsRequest(groups=classic)))
                found += [one for one in answer.groups if one.group_state != "Dead"]
            if modern:
                answer = await self._ask(node, plain(ConsumerGroupDescribeRequest(group_ids=modern)))
                found += answer.groups
        except ClientError:
            return  # it moved, or is away: the next poll sees that
        for group in found:
            if not group.error_code:
                self._tell(Described(self._now_ms(), group.group_id, group.group_state, _members(group)))

    # ---- how much there is ----

    async def lags(self, committed: Mapping[str, Iterable[Commit]]) -> list[Lag]:
        """How far groups are behind the ends of what they commit. `committed`: by group."""
        ends = await self._ends({(one.topic, one.partition) for found in committed.values() for one in found})
        at_ms = self._now_ms()
        return [
            Lag(group, one.topic, one.partition, at_ms, ends[one.topic, one.partition], one.offset)
            for group, found in committed.items()
            for one in found
            if (one.topic, one.partition) in ends
        ]

    async def share_lags(self, groups: Iterable[str]) -> list[Lag]:
        """How far share groups are behind, where their coordinators know it (DescribeShareGroupOffsets v1,
        KIP-1226). A share group takes records out of order: `committed` is as far before the end as records
        are not done, not where its window starts."""
        by_node: dict[Node, list[str]] = {}
        for group_id, node in (await self._coordinators_of(groups)).items():
            if node.node_id not in self._away | self._no_share_groups:
                by_node.setdefault(node, []).append(group_id)
        requests = [
            (node, some)
            for node, groups_of_it in by_node.items()
            for some in in_parts(groups_of_it, SHARE_GROUPS_MAX)
        ]
        found = await asyncio.gather(*(self._share_lags(node, some) for node, some in requests))
        left = {key: lag for one in found for key, lag in one.items()}
        ends = await self._ends({(topic, partition) for _, topic, partition in left})
        at_ms = self._now_ms()
        return [
            Lag(group, topic, partition, at_ms, end, max(end - lag, 0))
            for (group, topic, partition), lag in left.items()
            if (end := ends.get((topic, partition))) is not None
        ]

    async def _share_lags(self, node: Node, groups: Sequence[str]) -> dict[tuple[str, str, int], int]:
        """By group, topic and partition; without those that are not known or may not be seen."""
        try:
            answer = await self._ask(node, share_offsets(groups))
        except UnsupportedVersionError:
            self._no_share_groups.add(node.node_id)
            return {}
        except ClientError:
            return {}  # it moved, or is away: asked again with the next
        return {
            (group, *place): one.lag
            for group, found in described_share_offsets(answer).items()
            for place, one in found.partitions.items()
            if not found.error_code and not one.error_code and one.lag is not None
        }

    async def _ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Ends of those whose leaders tell."""
        assert self._metadata is not None
        by_node: dict[Node, dict[TopicPartition, int]] = {}
        for topic, partition in partitions:
            known = self._metadata.topics.get(topic)
            if known is None or partition >= len(known.partitions):
                continue
            node = self._metadata.brokers.get(known.partitions[partition].leader)
            if node is not None and node.node_id not in self._away:
                by_node.setdefault(node, {})[topic, partition] = LATEST

        async def of(node: Node, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
            found: dict[TopicPartition, int] = {}
            for part in in_parts(times):
                try:
                    answer = await self._ask(node, list_offsets({tp: times[tp] for tp in part}))
                except ClientError:
                    break
                found |= {tp: one.offset for tp, one in listed_offsets(answer).items() if not one.code}
            return found

        found = await asyncio.gather(*(of(node, times) for node, times in by_node.items()))
        return {tp: end for one in found for tp, end in one.items()}

    async def _ask(self, node: Node, request: Request) -> Any:
        deadline_s = asyncio.get_running_loop().time() + GROUPS_TIMEOUT_S
        return await self._cluster.send(node, request, deadline_s=deadline_s, purpose=PURPOSE)


def _members(group: Any) -> tuple[DescribedMember, ...]:
    classic = isinstance(group, DescribeGroupsResponseDescribedGroup)
    return tuple(
        DescribedMember(
            one.member_id,
            one.client_id,
            one.client_host,
            one.group_instance_id if classic else one.instance_id,
        )
        for one in group.members
    )


def offsets_partition(group_id: str, partitions: int) -> int:
    """Where Kafka keeps a group: Java's hash of its id, modulo the partitions of the offsets topic."""
    value = 0
    data = group_id.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(data), 2):
        value = (31 * value + (data[at] << 8 | data[at + 1])) & 0xFFFFFFFF
    signed = value - (1 << 32) if value >> 31 else value
    return 0 if signed == -(1 << 31) else abs(signed) % partitions
