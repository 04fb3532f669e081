"""A group's offsets from outside the group, over the blocking client."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Self, TypeVar

from ringleader.protocol.errors import ErrorCode, error_name
from ringleader.protocol.messages import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)
from ringleader.protocol.schema import Message
from ringleader.spark_bridge.errors import SourceError
from ringleader.spark_bridge.network.endpoint import Endpoint
from ringleader.spark_bridge.network.log import DEFAULT_TIMEOUT_S
from ringleader.spark_bridge.network.wire import Connection, Wire, WireError, retriable
from ringleader.spark_bridge.sharing.offsets import TopicPartition

RETRY_PAUSE_S = 0.1
# The last versions that ask about one group.
_FIND_VERSION, _FETCH_VERSION = 3, 7
_MOVED = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
R = TypeVar("R", bound=Message)


class GroupOffsets:
    """Offsets of one group, asked of its coordinator by somebody who is no member.

    Raises SourceError when the coordinator refuses, or cannot be had within ``timeout_s``.
    """

    def __init__(self, endpoint: Endpoint, group_id: str, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        self._endpoint = endpoint
        self._group_id = group_id
        self._timeout_s = timeout_s
        self._wire = Wire(endpoint)
        self._coordinator: Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def fetch(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The group's offsets; partitions without one are left out. Waits for open transactions to end."""
        topics: dict[str, list[int]] = {}
        for topic, partition in sorted(partitions):
            topics.setdefault(topic, []).append(partition)
        request = OffsetFetchRequest(
            group_id=self._group_id,
            topics=[OffsetFetchRequestTopic(name=name, partition_indexes=of) for name, of in topics.items()],
            require_stable=True,
        )
        deadline = time.monotonic() + self._timeout_s
        while True:
            answer = self._ask(request, OffsetFetchResponse, _FETCH_VERSION, deadline)
            found: dict[TopicPartition, int] = {}
            code = answer.error_code
            for topic_answer in answer.topics:
                for entry in topic_answer.partitions:
                    code = code or entry.error_code
                    if entry.committed_offset >= 0:
                        found[topic_answer.name, entry.partition_index] = entry.committed_offset
            if not code:
                return found
            self._again(code, deadline)

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit next offsets to read. The coordinator takes them while the group has no members."""
        topics: dict[str, list[OffsetCommitRequestPartition]] = {}
        for (topic, partition), offset in sorted(offsets.items()):
            entry = OffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
            topics.setdefault(topic, []).append(entry)
        request = OffsetCommitRequest(
            group_id=self._group_id,
            topics=[OffsetCommitRequestTopic(name=name, partitions=of) for name, of in topics.items()],
        )
        deadline = time.monotonic() + self._timeout_s
        while True:
            answer = self._ask(request, OffsetCommitResponse, None, deadline)
            codes = {entry.error_code for topic in answer.topics for entry in topic.partitions} - {0}
            if not codes:
                return
            self._again(max(codes), deadline)

    def close(self) -> None:
        """Close connections; may be called twice."""
        if self._coordinator is not None:
            self._coordinator.close()
            self._coordinator = None
        self._wire.close()

    def _ask(self, request: Message, response: type[R], highest: int | None, deadline: float) -> R:
        while True:
            try:
                if self._coordinator is None:
                    self._coordinator = self._find(deadline)
                connection = self._coordinator
                return connection.ask(request, response, connection.version(type(request), highest))
            except WireError as error:
                self._drop()
                self._pause(str(error), deadline)

    def _find(self, deadline: float) -> Connection:
        while True:
            request = FindCoordinatorRequest(key=self._group_id, key_type=0)
            found = self._wire.ask_any(request, FindCoordinatorResponse, _FIND_VERSION)
            if not found.error_code:
                return Connection(found.host, found.port, self._endpoint)
            self._again(found.error_code, deadline)

    def _again(self, code: int, deadline: float) -> None:
        """Wait before another try. Raises SourceError when none would help."""
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            raise SourceError(
                f"group {self._group_id} has members, so nobody else can commit for it; stop them, or commit "
                "to a group of its own"
            )
        if code in _MOVED:
            self._drop()
        elif not retriable(code):
            raise SourceError(f"group {self._group_id}: {error_name(code)}")
        self._pause(error_name(code), deadline)

    def _drop(self) -> None:
        if self._coordinator is not None:
            self._coordinator.close()
            self._coordinator = None

    def _pause(self, why: str, deadline: float) -> None:
        if time.monotonic() >= deadline:
            raise SourceError(
                f"the coordinator of group {self._group_id} could not be had within {self._timeout_s:.0f} s: "
                f"{why}"
            )
        time.sleep(RETRY_PAUSE_S)
