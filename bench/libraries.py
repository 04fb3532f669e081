"""The sticky assignors of three libraries, each from its own shape of the members to its own answer.

`Library.joined` makes what the members send, `decoded` is what the leader reads it as, `assign` computes, and
`encoded` is what it sends back. Measured are the last three.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from aiokafka.coordinator.assignors.sticky.sticky_assignor import (
    StickyPartitionAssignor as AiokafkaSticky,
)
from aiokafka.coordinator.protocol import ConsumerProtocolMemberMetadata
from aiokafka.structs import TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.protocol.consumer.group import JoinGroupResponse
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

from bench.plan import RINGLEADER
from ringleader.clients.assignors import (
    COOPERATIVE_STICKY,
    STICKY,
    Assignor,
    AssignorMember,
    cooperative_user_data,
    sticky_user_data,
)
from ringleader.protocol.embedded import Assignment, Subscription

KAFKA_PYTHON, AIOKAFKA = "kafka-python", "aiokafka"

Shares = Mapping[str, Mapping[str, Sequence[int]]]
"""Member id -> topic -> partitions."""

Info = JoinGroupResponse.JoinGroupResponseMember


class Job(NamedTuple):
    """One assignment: members by name with their topics, and what each owns since which generation."""

    members: Mapping[str, Sequence[str]]
    counts: Mapping[str, int]
    owned: Shares
    generation: int = 1


class Library(Protocol):
    """One library's assignor."""

    def joined(self, job: Job) -> dict[str, bytes]:
        """Every member's Subscription as JoinGroup carries it."""

    def decoded(self, joined: Mapping[str, bytes]) -> Any:
        """The members as the library's `assign` takes them."""

    def assign(self, job: Job, members: Any) -> Any:
        """The library's answer."""

    def shares(self, answer: Any) -> Shares:
        """The answer in plain values."""

    def encoded(self, answer: Any) -> Mapping[str, bytes]:
        """Every member's Assignment as SyncGroup carries it."""


class Ours:
    """Ringleader."""

    def __init__(self, assignor: Assignor) -> None:
        self._assignor = assignor

    def joined(self, job: Job) -> dict[str, bytes]:
        cooperative, found = self._assignor.cooperative, {}
        for name, topics in job.members.items():
            own = {topic: list(ps) for topic, ps in job.owned.get(name, {}).items()}
            since = job.generation if name in job.owned else -1
            data = cooperative_user_data(since) if cooperative else sticky_user_data(own, since)
            found[name] = Subscription(list(topics), data, own if cooperative else {}, since).encode()
        return found

    def decoded(self, joined: Mapping[str, bytes]) -> list[AssignorMember]:
        members = []
        for name, data in joined.items():
            subscription = Subscription.decode(data)
            members.append(
                AssignorMember(
                    name,
                    None,
                    subscription.topics,
                    subscription.owned_partitions,
                    subscription.generation,
                    subscription.rack_id,
                    subscription.user_data,
                )
            )
        return members

    def assign(self, job: Job, members: Any) -> Any:
        return self._assignor.assign(members, job.counts)

    def shares(self, answer: Any) -> Shares:
        found: Shares = answer
        return found

    def encoded(self, answer: Any) -> Mapping[str, bytes]:
        return {name: Assignment(share).encode() for name, share in answer.items()}


class _Cluster:
    """Metadata as the other libraries ask for it."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self._counts = counts

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        return set(range(self._counts[topic])) if topic in self._counts else None

    def topics(self, exclude_internal_topics: bool = True) -> set[str]:
        return set(self._counts)


class KafkaPython:
    """kafka-python's class of this name."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind

    def joined(self, job: Job) -> dict[str, bytes]:
        found = {}
        for name, topics in job.members.items():
            assignor = self._kind()
            if name in job.owned:
                own = job.owned[name]
                assignor.member_assignment = [TopicPartition(t, p) for t, ps in own.items() for p in ps]
                assignor.generation = job.generation
            found[name] = assignor.metadata(topics).encode()
        return found

    def decoded(self, joined: Mapping[str, bytes]) -> list[Any]:
        return [
            Info(
                member_id=name,
                group_instance_id=None,
                metadata=ConsumerProtocolSubscription.decode(data),
            )
            for name, data in joined.items()
        ]

    def assign(self, job: Job, members: Any) -> Any:
        return self._kind().assign(_Cluster(job.counts), members)

    def shares(self, answer: Any) -> Shares:
        return {name: dict(one.assigned_partitions) for name, one in answer.items()}

    def encoded(self, answer: Any) -> Mapping[str, bytes]:
        return {name: one.encode() for name, one in answer.items()}


class Aiokafka:
    """aiokafka's sticky assignor."""

    def joined(self, job: Job) -> dict[str, bytes]:
        found = {}
        for name, topics in job.members.items():
            own = job.owned.get(name)
            had = None if own is None else [TopicPartition(t, p) for t, ps in own.items() for p in ps]
            since = -1 if own is None else job.generation
            found[name] = AiokafkaSticky._metadata(topics, had, since).encode()
        return found

    def decoded(self, joined: Mapping[str, bytes]) -> dict[str, Any]:
        return {name: ConsumerProtocolMemberMetadata.decode(data) for name, data in joined.items()}

    def assign(self, job: Job, members: Any) -> Any:
        return AiokafkaSticky.assign(_Cluster(job.counts), members)

    def shares(self, answer: Any) -> Shares:
        return {name: dict(one.assignment) for name, one in answer.items()}

    def encoded(self, answer: Any) -> Mapping[str, bytes]:
        return {name: one.encode() for name, one in answer.items()}


LIBRARIES: dict[str, dict[str, Library]] = {
    "sticky": {
        RINGLEADER: Ours(STICKY),
        KAFKA_PYTHON: KafkaPython(StickyPartitionAssignor),
        AIOKAFKA: Aiokafka(),
    },
    "cooperative-sticky": {
        RINGLEADER: Ours(COOPERATIVE_STICKY),
        KAFKA_PYTHON: KafkaPython(CooperativeStickyAssignor),
    },
}
