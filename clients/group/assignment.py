"""The partitions in the bytes of a consumer's assignment. Zero bytes are an assignment of nothing."""

from __future__ import annotations

from ringleader.clients.model import TopicPartition
from ringleader.protocol.embedded import Assignment
from ringleader.protocol.errors import MalformedError


def assigned_partitions(assignment: bytes) -> list[TopicPartition]:
    """Sorted. Raises MalformedError for bytes that are no consumer assignment."""
    topics = Assignment.decode(assignment).partitions if assignment else {}
    return sorted((topic, partition) for topic, found in topics.items() for partition in found)


def readable_topics(assignment: bytes) -> dict[str, list[int]]:
    """Topic -> partitions, in their order; what cannot be read has none."""
    try:
        return Assignment.decode(assignment).partitions if assignment else {}
    except MalformedError:
        return {}
