"""Our assignors for aiokafka: `AIOKafkaConsumer(partition_assignment_strategy=[sticky()])`.

The names and bytes are Kafka's, so the members of one group may use these, aiokafka's own and those of other
clients side by side; whoever leads assigns for all. aiokafka wants classes, and keeps an assignor's state in
them; so each function here makes a class of its own, for one consumer.

What aiokafka does not offer: it gives up everything before it joins, so there is no cooperative assignor
(`cooperative_sticky` says so); it tells an assignor neither the group instance ids nor generations. It
computes on the application's event loop: some 20 ms for 1,000 members and 10,000 partitions.

Use one assignor for each consumer: aiokafka joins the group once for each of them (aiokafka PR 1168).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from aiokafka.coordinator.assignors.abstract import AbstractPartitionAssignor
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata

from ringleader.clients.assignors import (
    ORIGINAL,
    RANDOM,
    RANGE,
    ROUND_ROBIN,
    STICKY,
    WEIGHTED,
    Assignor,
    AssignorMember,
    sticky_user_data,
    weight_user_data,
)

__all__ = ["cooperative_sticky", "original", "random", "range_", "roundrobin", "sticky", "weighted"]

_VERSION = 0
"""aiokafka reads and writes this version of Subscription and Assignment only."""

_GENERATION = 0
"""aiokafka does not say which generation an assignment is of. All claims count alike; a partition that two
members claim goes to neither of them for that."""

Plug = type[AbstractPartitionAssignor]


def range_() -> Plug:
    """Kafka's range assignor, over all members in the order of their member ids."""
    return _plug(RANGE)


def roundrobin() -> Plug:
    """Kafka's round-robin assignor."""
    return _plug(ROUND_ROBIN)


def sticky() -> Plug:
    """Balanced, and everybody gets back what they had as far as balance allows."""
    return _plug(STICKY)


def weighted(weight: float) -> Plug:
    """Shares in proportion to the members' weights, sticky. Raises ValueError for a weight that is not above
    0 and finite."""
    weight_user_data(weight)
    return _plug(WEIGHTED, weight)


def original() -> Plug:
    """The rule of Kafka's first high-level consumer."""
    return _plug(ORIGINAL)


def random() -> Plug:
    """A seeded draw."""
    return _plug(RANDOM)


def cooperative_sticky() -> NoReturn:
    """Always raises ValueError: it would let two members work on one partition."""
    raise ValueError(
        "aiokafka gives up all partitions before it joins, so it cannot be a cooperative member: "
        "use sticky(), or ringleader.consumer_member"
    )


def _plug(assignor: Assignor, weight: float | None = None) -> Plug:
    class _Assignor(_Base):
        name = assignor.name
        _assignor = assignor
        _weight = weight
        _last: dict[str, list[int]] | None = None

    return _Assignor


class _Base(AbstractPartitionAssignor):  # type: ignore[misc]  # aiokafka has no types
    """One of our assignors in the shape of aiokafka's."""

    name: str
    _assignor: Assignor
    _weight: float | None
    _last: dict[str, list[int]] | None

    @classmethod
    def metadata(cls, topics: Iterable[str]) -> Any:
        """This member's Subscription."""
        return ConsumerProtocolMemberMetadata(_VERSION, sorted(topics), cls._user_data())

    @classmethod
    def _user_data(cls) -> bytes:
        had, generation = (cls._last or {}), -1 if cls._last is None else _GENERATION
        if cls._weight is not None:
            return weight_user_data(cls._weight, had, generation)
        if cls._assignor is STICKY:
            return sticky_user_data(had, generation) or b""
        return b""

    @classmethod
    def on_assignment(cls, assignment: Any) -> None:
        """Remember what this member has, for the next Subscription."""
        cls._last = {topic: list(partitions) for topic, partitions in assignment.assignment}

    @classmethod
    def assign(cls, cluster: Any, members: Mapping[str, Any]) -> dict[str, Any]:
        """The assignment of all members, as their leader."""
        found = [
            AssignorMember(member_id, topics=list(said.subscription), user_data=said.user_data or None)
            for member_id, said in members.items()
        ]
        topics = {topic for member in found for topic in member.topics}
        counts = {topic: len(cluster.partitions_for_topic(topic) or ()) for topic in topics}
        shares = cls._assignor.assign(found, counts)
        return {
            member_id: ConsumerProtocolMemberAssignment(_VERSION, sorted(share.items()), b"")
            for member_id, share in shares.items()
        }
