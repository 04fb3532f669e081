"""A group's offsets from outside the group, over the blocking client."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Self, TypeVar

from ringleader.clients.blocking.connection import Connection
from ringleader.clients.blocking.endpoint import Endpoint
from ringleader.clients.connection.requests import Request, find_coordinator, found_coordinator
from ringleader.clients.errors import ConnectionLostError, is_retriable
from ringleader.clients.model import TopicPartition
from ringleader.clients.offsets.requests import commit_errors, fetched_offsets, offset_commit, offset_fetch
from ringleader.protocol.errors import ErrorCode, error_name
from ringleader.protocol.messages import FindCoordinatorResponse, OffsetCommitResponse, OffsetFetchResponse
from ringleader.protocol.schema import Message
from ringleader.spark_bridge.errors import SourceError
from ringleader.spark_bridge.network.clusters import SourceCluster
from ringleader.spark_bridge.network.log import DEFAULT_TIMEOUT_S

RETRY_PAUSE_S = 0.1
_MOVED = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
R = TypeVar("R", bound=Message)


class GroupOffsets:
    """Offsets of one group, asked of its coordinator by somebody who is no member.

    Raises SourceError when the coordinator refuses, or cannot be had within ``timeout_s``.
    """

    def __init__(self, endpoint: Endpoint, group_id: str, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        self._group_id = group_id
        self._timeout_s = timeout_s
        self._cluster = SourceCluster(endpoint)
        self._coordinator: Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def fetch(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The group's offsets; partitions without one are left out. Waits for open transactions to end."""
        request = offset_fetch(self._group_id, sorted(partitions))
        deadline = time.monotonic() + self._timeout_s
        while True:
            code, found, errors = fetched_offsets(self._ask(request, OffsetFetchResponse, deadline))
            code = code or next(iter(errors.values()), 0)
            if not code:
                return {tp: position.offset for tp, position in found.items()}
            self._again(code, deadline)

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit next offsets to read. The coordinator takes them while the group has no members."""
        request = offset_commit(self._group_id, -1, "", None, dict(sorted(offsets.items())))
        deadline = time.monotonic() + self._timeout_s
        while True:
            codes = commit_errors(self._ask(request, OffsetCommitResponse, deadline)).values()
            if not codes:
                return
            self._again(max(codes), deadline)

    def close(self) -> None:
        """Close connections; may be called twice."""
        if self._coordinator is not None:
            self._coordinator.close()
            self._coordinator = None
        self._cluster.close()

    def _ask(self, request: Request, response: type[R], deadline: float) -> R:
        while True:
            try:
                if self._coordinator is None:
                    self._coordinator = self._find(deadline)
                return self._coordinator.ask_for(request, response)
            except ConnectionLostError as error:
                self._drop()
                self._pause(str(error), deadline)

    def _find(self, deadline: float) -> Connection:
        while True:
            answer = self._cluster.ask_any(find_coordinator(self._group_id), FindCoordinatorResponse)
            code, node = found_coordinator(answer)
            if node is not None:
                return self._cluster.open(node.host, node.port)
            self._again(code, deadline)

    def _again(self, code: int, deadline: float) -> None:
        """Wait before another try. Raises SourceError when none would help."""
        if code == ErrorCode.UNKNOWN_MEMBER_ID:
            raise SourceError(
                f"group {self._group_id} has members, so nobody else can commit for it; stop them, or commit "
                "to a group of its own"
            )
        if code in _MOVED:
            self._drop()
        elif not is_retriable(code):
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
