"""The calls of the source to the topics, as protocols: the tests have logs of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from ringleader.clients.model import TopicPartition


class Lookup(Protocol):
    """Where topics and offsets are looked up. Partitions that do not exist are left out of answers."""

    def topics(self, pattern: str) -> tuple[str, ...]:
        """Topics whose whole name matches, internal ones never."""

    def partitions(self, topics: tuple[str, ...]) -> list[TopicPartition]:
        """All partitions of these topics."""

    def offsets(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Offsets by ListOffsets timestamp: -2 the log's start, -1 its end."""

    def ends(self, wanted: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """How far the query may read: the log's end, or the last stable offset under read_committed."""

    def offsets_for_times(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """The first offset of this time (Unix, ms) or later; None where no record is that late."""


class Log(Lookup, Protocol):
    """Look-ups over connections that are closed at the end."""

    def topic_id(self, topic: str) -> bytes:
        """The id of a topic, as of the last look at its partitions; zero: it has none. One that is deleted
        and made again gets another."""

    def close(self) -> None:
        """Close connections."""
