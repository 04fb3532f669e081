"""Our assignors for kafka-python: `KafkaConsumer(partition_assignment_strategy=[Sticky])`.

The names and bytes are Kafka's, so the members of one group may use these, kafka-python's own and those of
other clients side by side; the leader assigns for all. They run in kafka-python's own I/O thread:
heartbeats wait for the computation, which takes some 20 ms for 1,000 members and 10,000 partitions.

Needs kafka-python 3.0 or newer (`pip install ringleader[clients]`). Its rule: all assignors of one consumer
are eager, or all are cooperative (`CooperativeSticky`, `Weighted`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription

from ringleader.clients.assignors import (
    COOPERATIVE_STICKY,
    ORIGINAL,
    RANDOM,
    RANGE,
    ROUND_ROBIN,
    STICKY,
    WEIGHTED,
    Assignor,
    AssignorMember,
    cooperative_user_data,
    sticky_user_data,
    weight_user_data,
)

__all__ = ["CooperativeSticky", "Original", "Random", "Range", "RoundRobin", "Sticky", "Weighted"]

_SUBSCRIPTION_VERSION = 3
_ASSIGNMENT_VERSION = 0


class _Plug(AbstractPartitionAssignor):  # type: ignore[misc]  # kafka-python has no types
    """One of our assignors in the shape of kafka-python's."""

    assignor: ClassVar[Assignor]
    name: ClassVar[str]

    def __init__(self) -> None:
        self._last: dict[str, list[int]] = {}
        self._generation = -1

    def __init_subclass__(cls) -> None:
        cls.name = cls.assignor.name

    def supported_protocols(self) -> list[Any]:
        """Cooperative assignors are for consumers that keep what they own; the others give it up first."""
        if self.assignor.cooperative:
            return [RebalanceProtocol.COOPERATIVE]
        return [RebalanceProtocol.EAGER]

    def metadata(self, topics: Iterable[str]) -> Any:
        """This member's Subscription."""
        owned = self._last if self.assignor.cooperative else {}
        of_topic = ConsumerProtocolSubscription.TopicPartition
        return ConsumerProtocolSubscription(
            version=_SUBSCRIPTION_VERSION,
            topics=sorted(topics),
            user_data=self._user_data(),
            owned_partitions=[of_topic(topic=topic, partitions=ps) for topic, ps in sorted(owned.items())],
            generation_id=self._generation,
            rack_id=None,
        )

    def _user_data(self) -> bytes | None:
        return None

    def on_assignment(self, assignment: Any, generation: int) -> None:
        """Remember what this member has, for the next Subscription."""
        self._last = {found.topic: list(found.partitions) for found in assignment.assigned_partitions}
        self._generation = generation

    def assign(self, cluster: Any, members: Sequence[Any]) -> dict[str, Any]:
        """The assignment of all members, as their leader."""
        found = [_member(member) for member in members]
        assignments = self.assignor.assign(found, _counts(cluster, found))
        return {
            member_id: ConsumerProtocolAssignment(_ASSIGNMENT_VERSION, sorted(topics.items()), b"")
            for member_id, topics in assignments.items()
        }


class Range(_Plug):
    """Kafka's range assignor. Unlike kafka-python's own, no static member is left out when static and dynamic
    members come in turn."""

    assignor = RANGE


class RoundRobin(_Plug):
    """Kafka's round-robin assignor. Unlike kafka-python's own it knows members with different topics."""

    assignor = ROUND_ROBIN


class Sticky(_Plug):
    """Balanced, and each member gets back what it had as far as balance allows."""

    assignor = STICKY

    def _user_data(self) -> bytes | None:
        return sticky_user_data(self._last, self._generation)


class CooperativeSticky(_Plug):
    """As `Sticky`, for consumers that keep what they own while the group rebalances (KIP-429)."""

    assignor = COOPERATIVE_STICKY

    def _user_data(self) -> bytes | None:
        return cooperative_user_data(self._generation)


class Weighted(_Plug):
    """Shares in proportion to the members' weights; cooperative. `Weighted(8)`: an instance, not the
    class."""

    assignor = WEIGHTED

    def __init__(self, weight: float = 1.0) -> None:
        """Raises ValueError for a weight that is not above 0 and finite."""
        super().__init__()
        self._weight_data = weight_user_data(weight)

    def _user_data(self) -> bytes | None:
        return self._weight_data


class Original(_Plug):
    """The rule of Kafka's first high-level consumer."""

    assignor = ORIGINAL


class Random(_Plug):
    """A seeded draw."""

    assignor = RANDOM


def _member(member: Any) -> AssignorMember:
    metadata = member.metadata
    owned: dict[str, list[int]] = {}
    for found in getattr(metadata, "owned_partitions", None) or ():
        owned.setdefault(found.topic, []).extend(found.partitions)
    generation = getattr(metadata, "generation_id", None)
    return AssignorMember(
        member.member_id,
        member.group_instance_id,
        list(metadata.topics),
        owned,
        -1 if generation is None else generation,
        getattr(metadata, "rack_id", None) or None,
        metadata.user_data or None,
    )


def _counts(cluster: Any, members: Iterable[AssignorMember]) -> Mapping[str, int]:
    topics = {topic for member in members for topic in member.topics}
    return {topic: len(cluster.partitions_for_topic(topic) or ()) for topic in topics}
