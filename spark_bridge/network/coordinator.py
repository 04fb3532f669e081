"""Requests to a group's coordinator from a client that is no member, over the blocking client."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from types import TracebackType
from typing import NamedTuple, Self, TypeVar

from ringleader.clients.blocking.connection import BlockingConnection
from ringleader.clients.blocking.endpoint import Endpoint
from ringleader.clients.connection.failures import Failures
from ringleader.clients.connection.requests import (
    Request,
    find_coordinator,
    found_coordinator,
    in_parts,
    plain,
)
from ringleader.clients.descriptions import GroupDescription, described_consumer_group, described_group
from ringleader.clients.errors import ConnectionLostError, RetriableError, is_retriable
from ringleader.clients.model import Node, OffsetAndMetadata, TopicPartition
from ringleader.clients.offsets.requests import (
    commit_errors,
    fetched_offsets,
    in_commits,
    offset_commit,
    offset_fetch,
)
from ringleader.protocol.errors import ErrorCode, error_name
from ringleader.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    FindCoordinatorResponse,
    OffsetCommitResponse,
    OffsetFetchResponse,
)
from ringleader.protocol.schema import Message
from ringleader.spark_bridge.errors import SourceError
from ringleader.spark_bridge.network.clusters import SourceCluster
from ringleader.spark_bridge.tasks import DEFAULT_TIMEOUT_S
from ringleader.spark_bridge.values import Committed, CommitToken

logger = logging.getLogger("ringleader.spark")

RETRY_PAUSE_S = 0.1
_MOVED = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)
_NOWHERE = Node(-1, "", 0)
R = TypeVar("R", bound=Message)
T = TypeVar("T")


class NoCoordinatorError(SourceError):
    """It could not be had in time, or says "later". ``code``: its last error, 0 without an answer."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


class Described(NamedTuple):
    """A group, and whether its coordinator serves the consumer protocol (KIP-848)."""

    group: GroupDescription
    consumer_protocol: bool


class GroupCoordinator:
    """The coordinator of one group, asked by somebody who is no member. One thread at a time.

    Raises SourceError when the coordinator refuses; NoCoordinatorError, one of these, when it cannot
    be had within ``timeout_s``.
    """

    def __init__(self, endpoint: Endpoint, group_id: str, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        self._group_id = group_id
        self._timeout_s = timeout_s
        self._cluster = SourceCluster(endpoint)
        self._coordinator: BlockingConnection | None = None
        self._failures = Failures()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def fetch(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, Committed]:
        """The group's offsets; partitions without one are left out. Waits for open transactions to end."""
        deadline = time.monotonic() + self._timeout_s
        parts = (self._fetched(part, deadline) for part in in_parts(sorted(partitions)))
        return {
            tp: Committed(at.offset, CommitToken.of(at.metadata)) for part in parts for tp, at in part.items()
        }

    def _fetched(
        self, part: list[TopicPartition], deadline: float
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        request = offset_fetch(self._group_id, part)
        while True:
            code, found, errors = fetched_offsets(self._ask(request, OffsetFetchResponse, deadline))
            code = code or _worst(errors.values())
            if not code:
                return found
            self._again(code, deadline)

    def commit(self, offsets: Mapping[TopicPartition, int], token: CommitToken | None = None) -> None:
        """Commit next offsets to read. The coordinator takes them while the group has no members.
        Many take several requests: some may be committed when it fails."""
        metadata = "" if token is None else token.text()
        positions = {tp: OffsetAndMetadata(offset, metadata) for tp, offset in sorted(offsets.items())}
        deadline = time.monotonic() + self._timeout_s
        for part in in_commits(self._group_id, positions):
            request = offset_commit(self._group_id, -1, "", None, part)
            while codes := commit_errors(self._ask(request, OffsetCommitResponse, deadline)).values():
                self._again(_worst(codes), deadline)

    def describe(self) -> Described:
        """The group as it is now. One that does not exist is `Dead` and has no members."""
        deadline = time.monotonic() + self._timeout_s
        consumer_protocol = False
        request: Request = plain(ConsumerGroupDescribeRequest(group_ids=[self._group_id]))
        if self._serves(request, deadline):
            while True:
                (group,) = self._ask(request, ConsumerGroupDescribeResponse, deadline).groups
                # Settings of the broker may leave the protocol out, though it serves the API.
                consumer_protocol = group.error_code != ErrorCode.UNSUPPORTED_VERSION
                if not group.error_code:
                    return Described(described_consumer_group(group, _NOWHERE), True)
                if group.error_code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION):
                    break
                self._again(group.error_code, deadline)
        request = plain(DescribeGroupsRequest(groups=[self._group_id]))
        while True:
            (found,) = self._ask(request, DescribeGroupsResponse, deadline).groups
            if found.error_code in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
                return Described(described_group(found, _NOWHERE), consumer_protocol)
            self._again(found.error_code, deadline)

    def close(self) -> None:
        """Close connections; may be called twice."""
        if self._coordinator is not None:
            self._coordinator.close()
            self._coordinator = None
        self._cluster.close()

    def _ask(self, request: Request, response: type[R], deadline: float) -> R:
        return self._retry(lambda connection: connection.ask_for(request, response), deadline)

    def _serves(self, request: Request, deadline: float) -> bool:
        return self._retry(lambda connection: connection.serves(request.message), deadline)

    def _retry(self, ask: Callable[[BlockingConnection], T], deadline: float) -> T:
        while True:
            try:
                if self._coordinator is None or self._coordinator.stale:
                    self._drop()
                    self._coordinator = self._find(deadline)
                return ask(self._coordinator)
            except ConnectionLostError as error:
                self._drop()
                self._pause(str(error), deadline)

    def _find(self, deadline: float) -> BlockingConnection:
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
        name = "" if self._coordinator is None else f"{self._coordinator.name}: "
        if code in _MOVED:
            self._drop()
        elif not is_retriable(code):
            raise SourceError(f"group {self._group_id}: {error_name(code)}")
        self._pause(f"{name}{error_name(code)}", deadline, code)

    def _drop(self) -> None:
        if self._coordinator is not None:
            self._coordinator.close()
            self._coordinator = None

    def _pause(self, why: str, deadline: float, code: int = 0) -> None:
        error = RetriableError(f"the coordinator of group {self._group_id} cannot be had now: {why}")
        if (line := self._failures.failed(error, time.monotonic())) is not None:
            logger.warning("%s; trying on", line)
        if time.monotonic() >= deadline:
            raise NoCoordinatorError(
                f"the coordinator of group {self._group_id} could not be had within {self._timeout_s:.0f} s: "
                f"{why}",
                code,
            )
        time.sleep(RETRY_PAUSE_S)


def _worst(codes: Collection[int]) -> int:
    """Of the errors of partitions one that no retry cures, if there is any; 0: there is no error."""
    return next((code for code in codes if not is_retriable(code)), next(iter(codes), 0))
