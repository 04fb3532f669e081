"""The topics as the driver-side worker sees them: which partitions there are, where logs start and end."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from ringleader.protocol.errors import error_name
from ringleader.protocol.messages import (
    ListOffsetsRequest,
    ListOffsetsRequestListOffsetsPartition,
    ListOffsetsRequestListOffsetsTopic,
    ListOffsetsResponse,
)
from ringleader.spark_bridge.errors import SourceError
from ringleader.spark_bridge.offsets import LATEST, TopicPartition
from ringleader.spark_bridge.wire import Endpoint, Wire, WireError, retriable

RETRY_PAUSE_S = 0.1


class KafkaLog:
    """ListOffsets and Metadata over one cluster, with Kafka's retries.

    Raises SourceError when ``timeout_s`` was not enough.
    """

    def __init__(self, endpoint: Endpoint, read_committed: bool, timeout_s: float = 60.0) -> None:
        self._wire = Wire(endpoint)
        self._read_committed = read_committed
        self._timeout_s = timeout_s

    def partitions(self, topics: tuple[str, ...]) -> list[TopicPartition]:
        """All partitions of these topics; topics that do not exist have none."""
        deadline = time.monotonic() + self._timeout_s
        while True:
            try:
                self._wire.refresh(topics)
                return self._wire.partitions(topics)
            except WireError as error:
                self._pause(deadline, str(error))

    def offsets(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Offsets by ListOffsets timestamp: -2 the log's start, -1 its end, uncommitted records included."""
        return self._list(wanted, 0)

    def ends(self, wanted: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """How far to read: the log's end, or the last stable offset under read_committed."""
        return self._list(dict.fromkeys(wanted, LATEST), 1 if self._read_committed else 0)

    def close(self) -> None:
        """Close connections."""
        self._wire.close()

    def _list(self, wanted: Mapping[TopicPartition, int], isolation: int) -> dict[TopicPartition, int]:
        deadline = time.monotonic() + self._timeout_s
        left = dict(wanted)
        found: dict[TopicPartition, int] = {}
        while True:
            why = self._try_list(left, isolation, found)
            if not left:
                return found
            self._pause(deadline, why)
            try:
                self._wire.refresh({topic for topic, _ in left})
            except WireError as error:
                self._pause(deadline, str(error))
            known = set(self._wire.partitions({topic for topic, _ in left}))
            for tp in [tp for tp in left if tp not in known]:
                del left[tp]

    def _try_list(
        self, left: dict[TopicPartition, int], isolation: int, found: dict[TopicPartition, int]
    ) -> str:
        """One round over all leaders. Moves what was answered from ``left`` to ``found``; why not all."""
        by_node: dict[int, list[TopicPartition]] = {}
        why = "a partition has no leader"
        for tp in sorted(left):
            node = self._wire.leader(tp)
            if node is not None:
                by_node.setdefault(node, []).append(tp)
        for node, partitions in by_node.items():
            topics: dict[str, list[ListOffsetsRequestListOffsetsPartition]] = {}
            for topic, partition in partitions:
                entry = ListOffsetsRequestListOffsetsPartition(
                    partition_index=partition, timestamp=left[topic, partition]
                )
                topics.setdefault(topic, []).append(entry)
            request = ListOffsetsRequest(
                replica_id=-1,
                isolation_level=isolation,
                topics=[
                    ListOffsetsRequestListOffsetsTopic(name=name, partitions=of)
                    for name, of in topics.items()
                ],
            )
            try:
                answer = self._wire.connection(node).ask(request, ListOffsetsResponse)
            except WireError as error:
                self._wire.drop(node)
                why = str(error)
                continue
            for topic_answer in answer.topics:
                for entry_answer in topic_answer.partitions:
                    tp = (topic_answer.name, entry_answer.partition_index)
                    code = entry_answer.error_code
                    if code == 0:
                        found[tp] = entry_answer.offset
                        left.pop(tp, None)
                    elif retriable(code):
                        why = f"{tp[0]}-{tp[1]}: {error_name(code)}"
                        self._wire.forget(tp)
                    else:
                        raise SourceError(
                            f"the offsets of {tp[0]}-{tp[1]} cannot be listed: {error_name(code)}"
                        )
        return why

    def _pause(self, deadline: float, why: str) -> None:
        if time.monotonic() >= deadline:
            raise SourceError(f"log offsets could not be had within {self._timeout_s:.0f} s: {why}")
        time.sleep(RETRY_PAUSE_S)
