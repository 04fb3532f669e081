"""The offset document: what Spark keeps in its checkpoint for this source.

Spark stores the document as JSON text, compares it as text, and hands it back after a restart; a
replayed batch gets nothing else. So the document of a batch holds the whole range of every Kafka
partition in it, not only an end: a partition gained between two batches starts at the group's
committed offset, which no earlier document knows.

``{"v": 1, "g": "<group>", "q": "<query>", "n": 7, "r": {"t": {"0": [100, 150]}}, "p": {"t": {"0": 150}},
"s": ["t"]}``

``r`` are the ranges of the batch, ``p`` the last known position of every partition this query has
owned (the fallback when the group's offsets have expired), and where it would begin in those that it has
not. ``s`` is the subscription that this holds for: what it covers and ``p`` does not know is newer than the
query, unless the query began at earliest. ``q`` is drawn by chance for a checkpoint and
``n`` counts its documents: both stand in the metadata of what the query commits, see ``CommitToken``. Keys
are sorted, topics by name and partitions by number, so that equal documents are equal text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ringleader.spark_bridge.values import (
    MAX_OFFSET,
    MAX_PARTITION,
    CommitToken,
    OffsetRange,
    Subscription,
    by_topic,
)

if TYPE_CHECKING:
    from ringleader.clients.model import TopicPartition

DOCUMENT_VERSION = 1


class OffsetDocumentError(ValueError):
    """A document that this source did not write, or not for this group."""


@dataclass(frozen=True)
class OffsetDocument:
    """One position of a query, and the batch that led to it.

    ``group`` is the consumer group, ``ranges`` what the batch reads, ``positions`` the next offset
    to read of every partition this query has owned or begins in. ``query`` names the checkpoint, ``number``
    counts its documents, 0 before the first batch. ``subscription``: what the query has looked at; None
    before the first batch, and in documents of older releases.
    """

    group: str
    ranges: Mapping[TopicPartition, OffsetRange] = field(default_factory=dict)
    positions: Mapping[TopicPartition, int] = field(default_factory=dict)
    query: str = ""
    number: int = 0
    subscription: Subscription | None = None

    @property
    def token(self) -> CommitToken:
        """The token of the commits that follow this batch."""
        return CommitToken(self.query, self.number)

    def to_json(self) -> dict[str, Any]:
        """The document as Spark wants it: nested dicts in one fixed order of keys."""
        number, query = ({"n": self.number}, {"q": self.query}) if self.number else ({}, {})
        looked = {} if self.subscription is None else {"s": _subscribed(self.subscription)}
        return {
            "g": self.group,
            **number,
            "p": by_topic(self.positions, int),
            **query,
            "r": by_topic(self.ranges, list),
            **looked,
            "v": DOCUMENT_VERSION,
        }

    def text(self) -> str:
        """The JSON text; equal documents give equal text."""
        return json.dumps(self.to_json())

    @classmethod
    def from_json(cls, document: Any, group: str) -> OffsetDocument:
        """Read a document back.

        Raises OffsetDocumentError when it is not ours, of another version, or of another group: a
        checkpoint says where THIS group's records went, so it cannot serve a second group.
        """
        if not isinstance(document, dict):
            raise OffsetDocumentError(f"the offset document is not an object: {document!r:.200}")
        if _of_the_connector(document):
            raise OffsetDocumentError(
                "the checkpoint is that of Spark's own Kafka connector. To go on where that query stopped, "
                "set a new checkpointLocation, and startingOffsets to what `ringleader-spark-offsets "
                "OLD_CHECKPOINT` prints (docs/spark-moving.md)"
            )
        if document.get("v") != DOCUMENT_VERSION:
            raise OffsetDocumentError(
                f"the checkpoint holds offsets of version {document.get('v')!r}; this release reads version "
                f"{DOCUMENT_VERSION} (another source or another release wrote it)"
            )
        if document.get("g") != group:
            raise OffsetDocumentError(
                f"the checkpoint belongs to the group {document.get('g')!r}, but kafka.group.id is "
                f"{group!r}: "
                "use that group again, or a new checkpoint"
            )
        ranges = {tp: _range(tp, value) for tp, value in _flat(document, "r")}
        positions = {tp: _offset(tp, value) for tp, value in _flat(document, "p")}
        number, query = document.get("n", 0), document.get("q", "")
        if not isinstance(number, int) or number < 0:
            raise OffsetDocumentError(f"field 'n' of the offset document is {number!r:.40}, not a number")
        if not isinstance(query, str):
            raise OffsetDocumentError(f"field 'q' of the offset document is {query!r:.40}, not a text")
        looked = _subscription(document["s"]) if "s" in document else None
        return cls(group, ranges, positions, query, number, looked)


def empty(group: str) -> OffsetDocument:
    """The constant document before the first batch; the real start is resolved and pinned later."""
    return OffsetDocument(group)


def _of_the_connector(document: dict[str, Any]) -> bool:
    """Whether these are topics with offsets of partitions, which is all that the connector writes."""
    return bool(document) and all(
        isinstance(partitions, dict)
        and all(name.isdecimal() and isinstance(offset, int) for name, offset in partitions.items())
        for partitions in document.values()
    )


def _subscribed(subscription: Subscription) -> Any:
    """Names of topics, a pattern, or numbers of partitions by topic."""
    if subscription.partitions:
        numbers: dict[str, list[int]] = {}
        for topic, number in sorted(subscription.partitions):
            numbers.setdefault(topic, []).append(number)
        return numbers
    return sorted(subscription.topics) if subscription.pattern is None else subscription.pattern


def _subscription(value: Any) -> Subscription:
    match value:
        case str():
            return Subscription((), value)
        case list() if all(isinstance(topic, str) for topic in value):
            return Subscription(tuple(value), None)
        case dict() if all(
            isinstance(of, list) and all(isinstance(number, int) for number in of) for of in value.values()
        ):
            partitions = tuple((topic, number) for topic, of in value.items() for number in of)
            return Subscription(tuple(value), None, partitions)
    raise OffsetDocumentError(f"field 's' of the offset document is {value!r:.40}, not a subscription")


def _flat(document: dict[str, Any], key: str) -> list[tuple[TopicPartition, Any]]:
    topics = document.get(key, {})
    if not isinstance(topics, dict):
        raise OffsetDocumentError(f"field {key!r} of the offset document is not an object")
    found: list[tuple[TopicPartition, Any]] = []
    for topic, partitions in topics.items():
        if not isinstance(partitions, dict):
            raise OffsetDocumentError(f"topic {topic!r} of the offset document is not an object")
        for partition, value in partitions.items():
            if not (isinstance(partition, str) and _is_partition(partition)):
                raise OffsetDocumentError(f"{partition!r:.40} is not a partition number of topic {topic!r}")
            found.append(((topic, int(partition)), value))
    return found


def _is_partition(name: str) -> bool:
    return name.isdecimal() and len(name) <= len(str(MAX_PARTITION)) and int(name) <= MAX_PARTITION


def _offset(tp: TopicPartition, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_OFFSET:
        raise OffsetDocumentError(f"{value!r:.40} is not an offset of {tp[0]}-{tp[1]}")
    return value


def _range(tp: TopicPartition, value: Any) -> OffsetRange:
    if not isinstance(value, list) or len(value) != 2:
        raise OffsetDocumentError(f"{value!r:.40} is not a range of {tp[0]}-{tp[1]}")
    found = OffsetRange(_offset(tp, value[0]), _offset(tp, value[1]))
    if found.end < found.start:
        raise OffsetDocumentError(f"the range {value} of {tp[0]}-{tp[1]} ends before it starts")
    return found
