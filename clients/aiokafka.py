"""Our assignors for aiokafka: `AIOKafkaConsumer(partition_assignment_strategy=[sticky()])`.

The names and bytes are Kafka's, so the members of one group may use these, aiokafka's own and those of other
clients side by side; the leader assigns for all. aiokafka wants classes, and keeps an assignor's state in
them, so that two consumers of one process that were given the same class take each other's partitions for
their own; so each function here makes a class of its own, for one consumer.

The limits of aiokafka:

- It gives up everything before it joins, so there is no cooperative assignor (`cooperative_sticky` says so).
- It tells an assignor neither the group instance ids nor the generation. Claims are dated by a count of
  assignments instead; a leader with one of these assignors tells it to all in the assignment's user data.
- It wants the assignment at once, on the application's event loop. For members with the same topics that
  takes some 30 ms with 1,000 members and 10,000 partitions, 130 ms with 2,000 and 100,000, and 0.9 s with
  2,000 and 1,000,000, the time to write the answer included, and there is a warning in the log from `LONG_S`
  on. `ringleader.consumer_member` computes on a thread.

Use one assignor for each consumer: aiokafka joins the group once for each of them (aiokafka PR 1168).
"""

from __future__ import annotations

import logging
import time
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
from ringleader.protocol.embedded import Assignment, decode_generation, encode_generation

logger = logging.getLogger("ringleader.clients.aiokafka")

__all__ = ["cooperative_sticky", "original", "random", "range_", "roundrobin", "sticky", "weighted"]

_VERSION = 0
"""aiokafka reads and writes this version of Subscription and Assignment only."""

LONG_S = 0.2
"""The time from which on a warning says how long the computation held the event loop."""

_NEWEST = 2**31 - 1

Plug = type[AbstractPartitionAssignor]


def range_() -> Plug:
    """Kafka's range assignor, over all members in the order of their member ids."""
    return _plug(RANGE)


def roundrobin() -> Plug:
    """Kafka's round-robin assignor."""
    return _plug(ROUND_ROBIN)


def sticky() -> Plug:
    """Balanced, and each member gets back what it had as far as balance allows."""
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
        _last: dict[str, list[int]] = {}  # noqa: RUF012  # never changed in place
        _generation = -1

    return _Assignor


class _Base(AbstractPartitionAssignor):  # type: ignore[misc]  # aiokafka has no types
    """One of our assignors in the shape of aiokafka's."""

    name: str
    _assignor: Assignor
    _weight: float | None
    _last: dict[str, list[int]]
    _generation: int
    """Of `_last`, by the count of assignments; -1 before the first one."""

    @classmethod
    def metadata(cls, topics: Iterable[str]) -> Any:
        """This member's Subscription."""
        return ConsumerProtocolMemberMetadata(_VERSION, sorted(topics), cls._user_data())

    @classmethod
    def _user_data(cls) -> bytes:
        if cls._weight is not None:
            return weight_user_data(cls._weight, cls._last, cls._generation)
        if cls._assignor is STICKY:
            return sticky_user_data(cls._last, cls._generation) or b""
        return b""

    @classmethod
    def on_assignment(cls, assignment: Any) -> None:
        """Remember what this member has, for the next Subscription."""
        cls._last = {topic: list(partitions) for topic, partitions in assignment.assignment}
        user_data = assignment.user_data
        if user_data is not None and len(user_data) == len(encode_generation(0)):
            cls._generation = decode_generation(user_data)
        else:  # another library leads
            cls._generation = min(cls._generation + 1, _NEWEST)

    @classmethod
    def assign(cls, cluster: Any, members: Mapping[str, Any]) -> dict[str, Any]:
        """The assignment of all members, as their leader."""
        began = time.perf_counter()
        found = [
            AssignorMember(
                member_id, topics=list(subscription.subscription), user_data=subscription.user_data or None
            )
            for member_id, subscription in members.items()
        ]
        topics = {topic for member in found for topic in member.topics}
        counts = {topic: len(cluster.partitions_for_topic(topic) or ()) for topic in topics}
        user_data = encode_generation(_following(found)) if cls._assignor in (STICKY, WEIGHTED) else b""
        assignments = cls._assignor.assign(found, counts)
        answer = {
            member_id: _Answer(_VERSION, sorted(topics.items()), user_data)
            for member_id, topics in assignments.items()
        }
        took_s = time.perf_counter() - began
        if took_s >= LONG_S:
            logger.warning(
                "the assignment of %d partitions to %d members has held the event loop for %.1f s",
                sum(counts.values()), len(found), took_s,
            )  # fmt: skip
        return answer


class _Answer(ConsumerProtocolMemberAssignment):  # type: ignore[misc]  # aiokafka has no types
    """One member's assignment. Written by our codec: aiokafka's takes longer than the assignment itself."""

    def encode(self) -> bytes:
        return Assignment(dict(self.assignment), self.user_data).encode(_VERSION)


def _following(members: Iterable[AssignorMember]) -> int:
    """The count after the latest one that a member knows of: it stands at the end of the user data."""
    ends = [member.user_data[-4:] for member in members if member.user_data and len(member.user_data) >= 4]
    return min(max(map(decode_generation, ends), default=-1) + 1, _NEWEST)
