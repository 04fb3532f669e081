"""The topics as the driver-side worker sees them: which partitions there are, where logs start and end."""

from __future__ import annotations

import itertools
import logging
import re
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from ringleader.clients.blocking.endpoint import Endpoint
from ringleader.clients.connection.requests import in_parts
from ringleader.clients.errors import ConnectionLostError, is_retriable
from ringleader.clients.model import LATEST, TopicPartition
from ringleader.clients.offsets.list_offsets import list_offsets, listed_offsets
from ringleader.protocol.errors import ErrorCode, error_name
from ringleader.protocol.messages import ListOffsetsResponse
from ringleader.spark_bridge.errors import SourceError
from ringleader.spark_bridge.network.clusters import SourceCluster
from ringleader.spark_bridge.tasks import DEFAULT_TIMEOUT_S

if TYPE_CHECKING:
    from ringleader.spark_bridge.options.common import Reading

logger = logging.getLogger("ringleader.spark")

_NOT_ALLOWED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
NO_LEADER = "a partition has no leader"
RETRY_PAUSE_S = 0.1


class _Patience:
    """The end of a look-up: tries of this number of seconds, with pauses between them."""

    def __init__(self, timeout_s: float, retries: int, pause_s: float) -> None:
        self._timeout_s = timeout_s
        self._left = retries
        self._pause_s = pause_s
        self._warned = False
        self._began_s = time.monotonic()
        self._deadline_s = self._began_s + timeout_s

    def pause(self, why: str, warn: bool = True) -> None:
        """Wait before the next try; the first ``warn`` is a line in the log. Raises SourceError with ``why``
        when there is none."""
        if warn and not self._warned:
            self._warned = True
            logger.warning("topics and offsets cannot be had now, trying on: %s", why)
        if time.monotonic() < self._deadline_s:
            time.sleep(RETRY_PAUSE_S)
            return
        if self._left <= 0:
            waited_s = time.monotonic() - self._began_s
            raise SourceError(f"topics and offsets could not be had within {waited_s:.0f} s: {why}")
        self._left -= 1
        time.sleep(self._pause_s)
        self._deadline_s = time.monotonic() + self._timeout_s


class KafkaLog:
    """ListOffsets and Metadata over one cluster, with Kafka's retries.

    Raises SourceError when ``timeout_s`` was not enough, ``retries`` times more after the first.
    """

    def __init__(
        self,
        endpoint: Endpoint,
        read_committed: bool,
        timeout_s: float = DEFAULT_TIMEOUT_S,
        retries: int = 0,
        retry_pause_s: float = 0.0,
    ) -> None:
        self._cluster = SourceCluster(endpoint)
        self._read_committed = read_committed
        self._bounds = (timeout_s, retries, retry_pause_s)

    @classmethod
    def of(cls, endpoint: Endpoint, options: Reading) -> KafkaLog:
        """As the options say."""
        return cls(
            endpoint,
            options.isolation_level == "read_committed",
            options.api_timeout_ms / 1000,
            options.fetch_offset_retries,
            options.fetch_offset_pause_ms / 1000,
        )

    def topics(self, pattern: str) -> tuple[str, ...]:
        """Topics whose whole name matches this regular expression; internal ones never do."""
        matches = re.compile(pattern).fullmatch
        patience = _Patience(*self._bounds)
        while True:
            try:
                return tuple(name for name in self._cluster.topics() if matches(name))
            except ConnectionLostError as error:
                patience.pause(str(error))

    def partitions(self, topics: tuple[str, ...]) -> list[TopicPartition]:
        """All partitions of these topics; topics that do not exist have none."""
        patience = _Patience(*self._bounds)
        while True:
            try:
                self._refresh(topics)
                return self._cluster.partitions(topics)
            except ConnectionLostError as error:
                patience.pause(str(error))

    def topic_id(self, topic: str) -> bytes:
        """As of the last look at its partitions; zero: it has none."""
        return self._cluster.topic_id(topic)

    def offsets(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Offsets by ListOffsets timestamp: -2 the log's start, -1 its end, uncommitted records included."""
        return self._list(wanted, committed_only=False)

    def ends(self, wanted: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """How far to read: the log's end, or the last stable offset under read_committed."""
        return self._list(dict.fromkeys(wanted, LATEST), self._read_committed)

    def offsets_for_times(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """The first offset of this time (Unix, ms) or later; None where no record is that late."""
        found = self._list(wanted, self._read_committed)
        return {tp: offset if offset >= 0 else None for tp, offset in found.items()}

    def close(self) -> None:
        """Close connections."""
        self._cluster.close()

    def _refresh(self, topics: Iterable[str]) -> None:
        """Ask for the topics' partitions: none of what does not exist.

        Raises SourceError where topics are not for this client to see, ConnectionLostError for what may pass.
        """
        codes = self._cluster.refresh(topics)
        if hidden := sorted(topic for topic, code in codes.items() if code == _NOT_ALLOWED):
            raise SourceError(f"not allowed to see {', '.join(hidden)}: {error_name(_NOT_ALLOWED)}")
        for topic, code in sorted(codes.items()):
            if code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION and is_retriable(code):
                raise ConnectionLostError(f"{topic}: {error_name(code)}")

    def _list(self, wanted: Mapping[TopicPartition, int], committed_only: bool) -> dict[TopicPartition, int]:
        patience = _Patience(*self._bounds)
        left = dict(wanted)
        found: dict[TopicPartition, int] = {}
        for tries in itertools.count():
            why = self._try_list(left, committed_only, found)
            if not left:
                break
            # The leaders may only not have been asked for yet.
            patience.pause(why, warn=tries > 0 or why != NO_LEADER)
            try:
                self._refresh({topic for topic, _ in left})
            except ConnectionLostError as error:
                patience.pause(str(error))
                continue
            known = set(self._cluster.partitions({topic for topic, _ in left}))
            for tp in [tp for tp in left if tp not in known]:
                del left[tp]
        return found

    def _try_list(
        self, left: dict[TopicPartition, int], committed_only: bool, found: dict[TopicPartition, int]
    ) -> str:
        """One round over all leaders. Moves what was answered from ``left`` to ``found``; why not all."""
        by_node: dict[int, list[TopicPartition]] = {}
        why = NO_LEADER
        for tp in sorted(left):
            node = self._cluster.leader(tp)
            if node is not None:
                by_node.setdefault(node, []).append(tp)
        for node, part in [(node, part) for node, led in by_node.items() for part in in_parts(led)]:
            request = list_offsets({tp: left[tp] for tp in part}, committed_only=committed_only)
            try:
                answer = self._cluster.connection(node).ask_for(request, ListOffsetsResponse)
            except ConnectionLostError as error:
                self._cluster.drop(node)
                why = str(error)
                continue
            for tp, listed in listed_offsets(answer).items():
                if not listed.code:
                    found[tp] = listed.offset
                    left.pop(tp, None)
                elif is_retriable(listed.code):
                    why = f"{tp[0]}-{tp[1]}: {error_name(listed.code)}"
                    self._cluster.forget(tp)
                else:
                    raise SourceError(
                        f"the offsets of {tp[0]}-{tp[1]} cannot be listed: {error_name(listed.code)}"
                    )
        return why
