"""The executor side: fetch ranges of Kafka partitions and hand them to Spark as Arrow batches.

The next request is always under way while the last answer is decoded. Connections and metadata live in
this module, so they survive from task to task in a worker that Spark uses again.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ringleader.clients.blocking.connection import SLOW_S
from ringleader.clients.connection.failures import Failures
from ringleader.clients.errors import ConnectionLostError, RetriableError, is_retriable
from ringleader.clients.model import EARLIEST, LATEST
from ringleader.protocol.errors import ErrorCode, error_name
from ringleader.protocol.messages import (
    FetchRequest,
    FetchRequestFetchPartition,
    FetchRequestFetchTopic,
    FetchResponse,
    FetchResponsePartitionData,
)
from ringleader.protocol.records import CorruptBatchError
from ringleader.spark_bridge.errors import DataLossError, FetchError
from ringleader.spark_bridge.fetching.columns import answer_batches, next_offset
from ringleader.spark_bridge.network.clusters import Clusters
from ringleader.spark_bridge.network.log import KafkaLog
from ringleader.spark_bridge.tasks import TaskSettings
from ringleader.spark_bridge.values import SliceRange

logger = logging.getLogger("ringleader.spark")

# Less of a partition is not worth a request, unless the options say so.
PARTITION_MIN_BYTES = 64 * 1024
# The assumed size of a row in the first answer, before its real size is known.
GUESSED_ROW_BYTES = 2 * 1024
# Versions without topic ids; 12 is the flexible one.
HIGHEST_FETCH = 12
RETRY_PAUSE_S = 0.1
# A partition that the cluster does not know counts as deleted after this time, not at a broker's first word.
MISSING_S = 10.0
_NO_TOPIC = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


@dataclass
class _Part:
    """One range on its way: ``position`` is the next offset wanted."""

    topic: str
    partition: int
    position: int
    end: int
    limit_bytes: int
    row_bytes: float = GUESSED_ROW_BYTES
    floor_bytes: int = 0

    @property
    def max_bytes(self) -> int:
        wanted = int((self.end - self.position) * self.row_bytes * 1.1)
        return max(self.floor_bytes, min(self.limit_bytes, max(PARTITION_MIN_BYTES, wanted)))


@dataclass
class _FetchAnswer:
    """Records of one part, with the position they were asked for. The next answer of the same broker takes
    their place in memory."""

    part: _Part
    start: int
    data: FetchResponsePartitionData


_clusters = Clusters()


def close_clusters() -> None:
    """Close this process's connections."""
    _clusters.close()


def read_slice(settings: TaskSettings, ranges: Sequence[SliceRange]) -> Iterator[Any]:
    """All records of these ranges as ``pyarrow.RecordBatch``, ascending within each Kafka partition.

    Raises FetchError when a range cannot be read, DataLossError when part of it is gone and
    ``fail_on_data_loss`` is set.
    """
    for answer in _SliceFetcher(settings, ranges).answers():
        part, data = answer.part, answer.data
        aborted = [(found.producer_id, found.first_offset) for found in data.aborted_transactions or ()]
        try:
            batches = answer_batches(
                part.topic,
                part.partition,
                data.records or b"",
                answer.start,
                part.end,
                include_headers=settings.include_headers,
                aborted=aborted if settings.read_committed else None,
            )
            wanted = settings.columns
            yield from batches if wanted is None else (batch.select(wanted) for batch in batches)
        except CorruptBatchError as error:
            raise FetchError(
                f"{part.topic}-{part.partition} holds records that cannot be read, from offset "
                f"{answer.start}: {error}"
            ) from error


class _SliceFetcher:
    """Fetches a task's ranges, leader by leader, one request ahead."""

    def __init__(self, settings: TaskSettings, ranges: Sequence[SliceRange]) -> None:
        self._settings = settings
        self._cluster = _clusters.get(settings.endpoint)
        limit_bytes = settings.partition_max_bytes
        self._parts = [_Part(*found, limit_bytes) for found in ranges if found.end > found.start]
        # For each node with a request under way: what was asked of it.
        self._requested: dict[int, dict[tuple[str, int], _Part]] = {}
        self._why = "no broker answered"
        self._progress_s = time.monotonic()
        self._missing_since: dict[tuple[str, int], float] = {}
        self._failures = Failures()

    def answers(self) -> Iterator[_FetchAnswer]:
        """Answers with records, until every range is read to its end."""
        try:
            while self._parts:
                self._send()
                for node in list(self._requested):
                    answers = self._receive(node)
                    # Ask on before the caller decodes what has just come.
                    self._send()
                    began_s = time.monotonic()
                    yield from answers
                    # While Spark works on rows no broker keeps any back.
                    self._progress_s += time.monotonic() - began_s
                self._give_up_late()
        finally:
            self._cluster.drop_waiting()

    # -- asking

    def _send(self) -> None:
        """A request to every leader that has none under way."""
        for node, wanted in self._by_leader().items():
            if node in self._requested:
                continue
            try:
                connection = self._cluster.connection(node)
                version = connection.version(FetchRequest, HIGHEST_FETCH)
                connection.send(self._request(list(wanted.values())), version)
            except ConnectionLostError as error:
                self._failed(node, error)
            else:
                self._requested[node] = wanted

    def _by_leader(self) -> dict[int, dict[tuple[str, int], _Part]]:
        busy = {key for requested in self._requested.values() for key in requested}
        first: dict[tuple[str, int], _Part] = {}
        for part in self._parts:
            key = (part.topic, part.partition)
            if key not in busy and (key not in first or part.position < first[key].position):
                first[key] = part
        missing = {topic for topic, partition in first if self._cluster.leader((topic, partition)) is None}
        if missing:
            self._refresh(missing)
        found: dict[int, dict[tuple[str, int], _Part]] = {}
        for key, part in first.items():
            node = self._cluster.leader(key)
            if node is not None:
                found.setdefault(node, {})[key] = part
        return found

    def _request(self, parts: Sequence[_Part]) -> FetchRequest:
        topics: dict[str, list[FetchRequestFetchPartition]] = {}
        for part in parts:
            entry = FetchRequestFetchPartition(
                partition=part.partition, fetch_offset=part.position, partition_max_bytes=part.max_bytes
            )
            topics.setdefault(part.topic, []).append(entry)
        # No session (KIP-227): each answer moves all that it names, and the next task asks for other ranges.
        return FetchRequest(
            replica_id=-1,
            max_wait_ms=self._settings.fetch_max_wait_ms,
            min_bytes=1,
            max_bytes=self._settings.fetch_max_bytes,
            isolation_level=1 if self._settings.read_committed else 0,
            session_id=0,
            session_epoch=-1,
            topics=[FetchRequestFetchTopic(topic=name, partitions=of) for name, of in topics.items()],
        )

    # -- answers

    def _receive(self, node: int) -> list[_FetchAnswer]:
        requested = self._requested.pop(node)
        try:
            response = self._cluster.connection(node).receive(FetchResponse, in_place=True)
        except ConnectionLostError as error:
            self._failed(node, error)
            return []
        if response.error_code:
            self._failed(node, ConnectionLostError(f"Fetch: {error_name(response.error_code)}"))
            return []
        found: list[_FetchAnswer] = []
        for topic in response.responses:
            for data in topic.partitions:
                part = requested.get((topic.topic, data.partition_index))
                if part is None:
                    continue
                if data.error_code:
                    self._partition_error(part, data.error_code)
                elif data.records:
                    found.append(_FetchAnswer(part, part.position, data))
                    self._advance(part, data.records)
                else:
                    self._why = (
                        f"no records came for {part.topic}-{part.partition} at offset {part.position} "
                        f"(range ends at {part.end}, the log at {data.high_watermark})"
                    )
        return found

    def _advance(self, part: _Part, records: bytes) -> None:
        start = part.position
        after = next_offset(records)
        if after is None:
            # Not one whole batch: ask for more at once.
            part.floor_bytes = max(part.floor_bytes, part.max_bytes) * 2
            return
        self._progress_s = time.monotonic()
        part.position = max(start, after)
        part.row_bytes = max(1.0, len(records) / max(1, part.position - start))
        self._parts.remove(part)
        if part.position < part.end:
            # Last in line: an answer is filled in the order of the request.
            self._parts.append(part)

    def _partition_error(self, part: _Part, code: int) -> None:
        name = f"{part.topic}-{part.partition}"
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._out_of_range(part)
        elif is_retriable(code) or code in (ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH):
            self._why = f"{name}: {error_name(code)}"
            self._cluster.forget((part.topic, part.partition))
        else:
            raise FetchError(f"{name} cannot be read at offset {part.position}: {error_name(code)}")

    def _out_of_range(self, part: _Part) -> None:
        """The log does not hold the position: records of the range are lost."""
        tp = (part.topic, part.partition)
        log = KafkaLog(self._settings.endpoint, False, self._settings.poll_timeout_ms / 1000)
        try:
            start, end = (log.offsets({tp: when}).get(tp, 0) for when in (EARLIEST, LATEST))
        finally:
            log.close()
        if start <= part.position < end:
            self._why = f"{part.topic}-{part.partition}: the log's bounds move"
            return
        resume_at = min(start, part.end) if part.position < start else part.end
        self._skip(
            part,
            resume_at,
            f"offsets {part.position} to {resume_at} of {part.topic}-{part.partition} are gone: the log "
            f"holds {start} to {end}",
        )

    def _skip(self, part: _Part, resume_at: int, text: str) -> None:
        """Records of the range are lost. Raises DataLossError when that must not pass."""
        if self._settings.fail_on_data_loss:
            raise DataLossError(
                f"{text}. Records were deleted, or the topic was made again. Set failOnDataLoss=false to "
                f"go on with what "
                "is there."
            )
        logger.warning("%s; skipped (failOnDataLoss=false)", text)
        part.position = resume_at
        if part.position >= part.end:
            self._parts.remove(part)

    # -- failures

    def _failed(self, node: int, error: ConnectionLostError) -> None:
        self._why = str(error)
        self._requested.pop(node, None)
        self._cluster.drop(node)
        self._refresh({part.topic for part in self._parts})

    def _refresh(self, topics: set[str]) -> None:
        self._give_up_late()
        time.sleep(RETRY_PAUSE_S)
        try:
            codes = self._cluster.refresh(topics)
        except ConnectionLostError as error:
            self._why = str(error)
        else:
            deleted = {topic for topic in topics if codes.get(topic, 0) in _NO_TOPIC}
            self._note_missing(topics, deleted)

    def _note_missing(self, topics: set[str], deleted: set[str]) -> None:
        """A topic that the cluster does not know for some time, or has with fewer partitions, was deleted."""
        now_s, known = time.monotonic(), set(self._cluster.partitions(topics))
        busy = {key for wanted in self._requested.values() for key in wanted}
        for part in [part for part in self._parts if part.topic in topics]:
            key = (part.topic, part.partition)
            if key in busy:
                continue
            there = any(topic == part.topic for topic, _ in known)
            if key in known or not (there or part.topic in deleted):
                self._missing_since.pop(key, None)
                continue
            name = f"{part.topic}-{part.partition}"
            self._why = f"{name} is not known to the cluster"
            if now_s - self._missing_since.setdefault(key, now_s) >= MISSING_S:
                text = f"{name} does not exist any more: offsets {part.position} to {part.end} are gone"
                self._skip(part, part.end, text)

    def _give_up_late(self) -> None:
        now_s = time.monotonic()
        waited_s = now_s - self._progress_s
        limit_s = self._settings.poll_timeout_ms / 1000
        if not self._parts or waited_s < min(SLOW_S, limit_s):
            return
        part = self._parts[0]
        text = (
            f"no progress for {waited_s:.0f} s (kafkaConsumer.pollTimeoutMs is {limit_s:g} s) at "
            f"{part.topic}-{part.partition} offset {part.position}, range up to {part.end}: {self._why}"
        )
        if waited_s > limit_s:
            raise FetchError(text)
        if (line := self._failures.failed(RetriableError(text), now_s)) is not None:
            logger.warning("%s; trying on", line)
