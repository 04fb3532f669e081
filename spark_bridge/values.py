"""Values that every room of the source knows: offsets, and the facts about them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ringleader.clients.model import TopicPartition

MAX_PARTITION = 2**31 - 1
MAX_OFFSET = 2**63 - 1
_TOKEN = "ringleader-spark"


class OffsetRange(NamedTuple):
    """Offsets ``start`` (included) to ``end`` (excluded) of one Kafka partition."""

    start: int
    end: int

    @property
    def rows(self) -> int:
        """How many offsets the range holds; compaction may have left fewer records."""
        return self.end - self.start


class SliceRange(NamedTuple):
    """The range that a task reads of one partition: offsets ``start`` (included) to ``end`` (excluded)."""

    topic: str
    partition: int
    start: int
    end: int


class Subscription(NamedTuple):
    """The subscription of a query: topics by name, or all whose whole name the pattern matches; of the topics
    only ``partitions``, if there are any."""

    topics: tuple[str, ...]
    pattern: str | None
    partitions: tuple[TopicPartition, ...] = ()

    def __str__(self) -> str:
        if self.partitions:
            return ", ".join(f"{topic}-{number}" for topic, number in self.partitions)
        return ", ".join(self.topics) if self.pattern is None else f"topics like {self.pattern}"

    def covers(self, tp: TopicPartition) -> bool:
        """Whether a partition is one of these, wherever there is such a one."""
        if self.partitions:
            return tp in self.partitions
        if self.pattern is not None:
            return re.fullmatch(self.pattern, tp[0]) is not None
        return tp[0] in self.topics

    def ordered(self) -> Subscription:
        """The same for whatever names the same, in whichever order."""
        return Subscription(tuple(sorted(self.topics)), self.pattern, tuple(sorted(self.partitions)))


class CommitToken(NamedTuple):
    """The metadata of a commit: the query that made it, and the document up to which that was done.

    So an offset that somebody else set is distinguished from one that this query committed before its last
    batch.
    """

    query: str
    number: int

    def text(self) -> str:
        """The metadata of the commit."""
        return f"{_TOKEN}:{self.query}:{self.number}"

    @classmethod
    def of(cls, metadata: str | None) -> CommitToken | None:
        """Read it back; None for what other consumers and tools commit."""
        parts = (metadata or "").split(":")
        if len(parts) != 3 or parts[0] != _TOKEN or not parts[2].isdecimal():
            return None
        return cls(parts[1], int(parts[2]))


class Committed(NamedTuple):
    """A group's offset, and what its commit says of itself."""

    offset: int
    token: CommitToken | None = None


class ReplayPolicy(StrEnum):
    """The ranges of a batch when Spark runs it again under the same batch id.

    ``clip``: of each range the part that is not yet committed by the group; ranges that others have finished
    meanwhile are not repeated. ``exact``: the whole ranges again, for sinks that
    rely on "same batch id, same rows". Neither loses records.
    """

    CLIP = "clip"
    EXACT = "exact"


def by_topic(values: Mapping[TopicPartition, Any], convert: Callable[[Any], Any] = int) -> dict[str, Any]:
    """``{(topic, partition): n}`` as ``{topic: {"partition": n}}``, sorted."""
    out: dict[str, Any] = {}
    for topic, partition in sorted(values):
        out.setdefault(topic, {})[str(partition)] = convert(values[topic, partition])
    return out
