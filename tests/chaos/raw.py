"""A member of a group at the level of requests, impatient: it gives up a request after `REQUEST_S` and looks
for its coordinator again at every address that it knows. Blocking, one thread."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ringleader.protocol.embedded import Assignment, Subscription
from ringleader.protocol.errors import ErrorCode, MalformedError, error_name
from ringleader.protocol.messages import (
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    LeaveGroupRequest,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from ringleader.protocol.schema import Message
from tests.chaos.clients.common import token_of
from tests.support.rawclient import Address, ConnectionClosedError, RawConnection, address_of

REQUEST_S = 1.5
"""An owner that is stopped holds a request for so long. Raft's elections, and the goal of a fail-over, take
longer."""
JOIN_S = 20.0
"""A join is parked until the others have come."""
AGAIN_S = 0.02
PROTOCOL = "range"

FIND, JOIN, SYNC, HEARTBEAT, LEAVE, COMMIT, FETCH = 3, 5, 3, 3, 1, 7, 5
"""Versions."""

_ELSEWHERE = {
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
}
_OVER = {ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID}


class LostError(Exception):
    """The coordinator did not answer, or is elsewhere: what was asked may have had an effect."""


class UnsentError(LostError):
    """It did not even come to the coordinator."""


class RejoinError(Exception):
    """The group is rebalancing, or goes on without this member: what was asked had no effect. `over`: the
    member's id counts no longer."""

    def __init__(self, why: str, over: bool) -> None:
        super().__init__(why)
        self.over = over


class Refused(Exception):  # noqa: N818  # an answer, not an error of this program
    """Any other error code: nothing of this run should see one."""


class RawMember:
    """One member. `partitions`: how its leader gives partitions to members, from the members' ids."""

    def __init__(
        self,
        bootstrap: str,
        group: str,
        stop: threading.Event,
        *,
        topic: str,
        partitions: int,
        session_timeout_ms: int = 45_000,
    ) -> None:
        self.group, self.topic = group, topic
        self.member_id, self.generation, self.leader = "", -1, ""
        self.owned: list[int] = []
        self.members: list[str] = []
        self._partitions = partitions
        self._session_timeout_ms = session_timeout_ms
        self._addresses = [address_of(one) for one in bootstrap.split(",")]
        self._stop = stop
        self._connection: RawConnection | None = None

    # ---- its coordinator ----

    def call(self, message: Message, version: int, timeout_s: float = REQUEST_S) -> Any:
        """One try. Raises `LostError`."""
        if self._connection is None:
            try:
                self._connection = RawConnection(self._find(), timeout_s=REQUEST_S)
            except OSError as error:
                raise UnsentError(f"{type(error).__name__}: {error}") from error
        try:
            self._connection.socket.settimeout(timeout_s)
            return self._connection.call(message, version)
        except (OSError, ConnectionClosedError, MalformedError) as error:
            self.disconnect()
            raise LostError(f"{type(error).__name__}: {error}") from error

    def disconnect(self) -> None:
        """The next call looks for the coordinator."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _find(self) -> Address:
        for address in list(self._addresses):
            # A node that does not answer is asked last the next time.
            with contextlib.suppress(OSError, ConnectionClosedError, MalformedError):
                with RawConnection(address, timeout_s=REQUEST_S / 3) as connection:
                    answer = connection.call(FindCoordinatorRequest(key=self.group), FIND)
                if answer.error_code == 0:
                    return answer.host, answer.port
            self._addresses.append(self._addresses.pop(0))
        raise UnsentError("nobody knows the coordinator")

    def _checked(self, code: int) -> None:
        if code == 0:
            return
        why = error_name(code)
        if code in _ELSEWHERE:
            if code != ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                self.disconnect()
            raise LostError(why)
        if code in _OVER or code == ErrorCode.REBALANCE_IN_PROGRESS:
            raise RejoinError(why, code in _OVER)
        # Kafka's coordinator says this, too, when its append was not acknowledged in time.
        if code == ErrorCode.REQUEST_TIMED_OUT:
            raise LostError(why)
        raise Refused(why)

    # ---- what a member does ----

    def until_done(self, do: Callable[[], None]) -> bool:
        """`do`, until it is not lost; False if it was time to stop. Raises what `do` raises but LostError."""
        while not self._stop.is_set():
            try:
                do()
            except LostError:
                self._stop.wait(AGAIN_S)
            else:
                return True
        return False

    def join(self) -> JoinGroupResponse:
        """One try to join; the answer of success. Raises `LostError`, `RejoinError`."""
        request = JoinGroupRequest(
            group_id=self.group,
            session_timeout_ms=self._session_timeout_ms,
            rebalance_timeout_ms=60_000,
            member_id=self.member_id,
            protocol_type="consumer",
            protocols=[
                JoinGroupRequestProtocol(name=PROTOCOL, metadata=Subscription([self.topic]).encode(1))
            ],
        )
        answer: JoinGroupResponse = self.call(request, JOIN, JOIN_S)
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            self.member_id = answer.member_id
            return self.join()
        if answer.error_code in _OVER:
            self.member_id = ""
        self._checked(answer.error_code)
        self.member_id, self.generation = answer.member_id, answer.generation_id
        self.leader, self.members = answer.leader, [one.member_id for one in answer.members]
        return answer

    def sync(self) -> None:
        """One try to get its partitions. Raises `LostError`, `RejoinError`."""
        order = sorted(self.members)
        plan = [
            SyncGroupRequestAssignment(
                member_id=member,
                assignment=Assignment(
                    {self.topic: list(range(self._partitions))[place :: len(order)]}
                ).encode(1),
            )
            for place, member in enumerate(order)
        ]
        request = SyncGroupRequest(
            group_id=self.group,
            generation_id=self.generation,
            member_id=self.member_id,
            assignments=plan,
        )
        answer = self.call(request, SYNC, JOIN_S)
        self._checked(answer.error_code)
        given = Assignment.decode(answer.assignment)
        self.owned = given.partitions.get(self.topic, [])

    def heartbeat(self) -> None:
        """One try. Raises `LostError`, `RejoinError`."""
        request = HeartbeatRequest(
            group_id=self.group, generation_id=self.generation, member_id=self.member_id
        )
        self._checked(self.call(request, HEARTBEAT).error_code)

    def leave(self) -> None:
        """One try. Raises `LostError`, `RejoinError`."""
        request = LeaveGroupRequest(group_id=self.group, member_id=self.member_id)
        self._checked(self.call(request, LEAVE).error_code)

    def commit(self, offsets: Mapping[int, tuple[int, str]]) -> None:
        """One try to commit offsets with their metadata. Raises `LostError`, `RejoinError`."""
        partitions = [
            OffsetCommitRequestPartition(
                partition_index=partition, committed_offset=offset, committed_metadata=token
            )
            for partition, (offset, token) in offsets.items()
        ]
        request = OffsetCommitRequest(
            group_id=self.group,
            generation_id_or_member_epoch=self.generation,
            member_id=self.member_id,
            topics=[OffsetCommitRequestTopic(name=self.topic, partitions=partitions)],
        )
        answer = self.call(request, COMMIT)
        for topic in answer.topics:
            for one in topic.partitions:
                self._checked(one.error_code)

    def committed(self, partitions: Sequence[int]) -> dict[int, tuple[int, str]]:
        """One try to read offsets and their metadata. Raises `LostError`."""
        topics = [OffsetFetchRequestTopic(name=self.topic, partition_indexes=list(partitions))]
        answer = self.call(OffsetFetchRequest(group_id=self.group, topics=topics), FETCH)
        self._checked(answer.error_code)
        [topic] = answer.topics
        return {
            one.partition_index: (one.committed_offset, token_of(one.metadata)) for one in topic.partitions
        }


def wait(stop: threading.Event, until_s: float) -> None:
    """Until that time of the monotonic clock, or until it is time to stop."""
    stop.wait(max(0.0, until_s - time.monotonic()))
