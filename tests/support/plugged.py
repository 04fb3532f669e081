"""The arguments that aiokafka and kafka-python hand to an assignor, and the results that they get back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafka.protocol.consumer.group import JoinGroupResponse
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

KafkaPythonInfo = JoinGroupResponse.JoinGroupResponseMember


class Topics:
    """Cluster metadata as an assignor asks for it."""

    def __init__(self, **counts: int) -> None:
        self._counts = counts

    def partitions_for_topic(self, topic: str) -> set[int] | None:
        """Numbers of its partitions; None for a topic that does not exist."""
        count = self._counts.get(topic)
        return None if count is None else set(range(count))

    def topics(self, exclude_internal_topics: bool = True) -> set[str]:
        """All that there are."""
        return set(self._counts)


def info(member_id: str, topics: list[str], instance_id: str | None = None, plug: Any = None) -> Any:
    """A member as kafka-python's leader sees it; `plug`: the assignor that says what it owns."""
    metadata = ConsumerProtocolSubscription(0, topics, b"") if plug is None else plug.metadata(topics)
    return KafkaPythonInfo(member_id=member_id, group_instance_id=instance_id, metadata=metadata)


def shares(assigned: Mapping[str, Any]) -> dict[str, list[tuple[str, int]]]:
    """Partitions by member, of either library's answer."""
    found = {}
    for member_id, one in assigned.items():
        pairs = one.assignment if hasattr(one, "assignment") else one.assigned_partitions
        found[member_id] = sorted((topic, p) for topic, ps in pairs for p in ps)
    return found
