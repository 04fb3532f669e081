"""Forms a whole consumer group from one thread, as fast as the coordinator allows.

Every member has a connection of its own and answers at once, so the time from the first JoinGroup to the last
SyncGroup answer is the coordinator's (and this program's), not that of heartbeat intervals.
"""

from __future__ import annotations

import resource
import select
import socket
import struct
import time
from dataclasses import dataclass, field

from ringleader.protocol.embedded import Assignment, Subscription
from ringleader.protocol.errors import ErrorCode, error_name
from ringleader.protocol.frames import decode_response, encode_request
from ringleader.protocol.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
    SyncGroupResponse,
)
from ringleader.protocol.schema import Message
from tests.support.rawclient import Address

JOIN_VERSION, SYNC_VERSION, HEARTBEAT_VERSION = 5, 3, 3
# Small enough that Python's allocator, not the kernel, provides it.
READ_BYTES = 65_536
# A member of a generation that lacks members asks this often whether the next one has begun.
ASK_AGAIN_S = 0.005
FORM_TIMEOUT_S = 120.0


def allow_connections(count: int) -> None:
    """Raises the limit of open files of this process so that `count` connections fit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count + 100:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(count + 100, hard), hard))


@dataclass(slots=True)
class GroupMember:
    """One member. `expects` says which answer is due."""

    index: int
    socket: socket.socket
    member_id: str = ""
    generation: int = -1
    assignment: bytes = b""
    correlation_id: int = 0
    expects: type[Message] = JoinGroupResponse
    buffer: bytearray = field(default_factory=bytearray)


@dataclass(frozen=True, slots=True)
class FormedGroup:
    """A stable group: its members' connections are open and idle."""

    group_id: str
    generation: int
    members: list[GroupMember]
    seconds: float
    """From the first JoinGroup sent to the last SyncGroup answer."""

    def close(self) -> None:
        """Closes the connections; nobody leaves."""
        for member in self.members:
            member.socket.close()


class _Former:
    def __init__(
        self, address: Address, group_id: str, count: int, topic: str, session_timeout_ms: int
    ) -> None:
        self._group_id, self._count, self._topic = group_id, count, topic
        self._session_timeout_ms = session_timeout_ms
        self._protocols = [JoinGroupRequestProtocol(name="range", metadata=Subscription([topic]).encode(1))]
        self._join_around = self._make_join()
        self._epoll = select.epoll()
        self._by_socket: dict[int, GroupMember] = {}
        self._members: list[GroupMember] = []
        self._asking: list[GroupMember] = []
        self._named = 0
        self._complete = 0
        self._whole_generation = -1  # whose leader saw all members
        for index in range(count):
            connection = socket.create_connection(address)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            member = GroupMember(index, connection)
            self._members.append(member)
            self._by_socket[connection.fileno()] = member
            self._epoll.register(connection, select.EPOLLIN)

    def _make_join(self) -> tuple[bytes, bytes]:
        """A JoinGroup frame up to its member id, and from there on."""
        mark = "\0the member id\0"
        request = JoinGroupRequest(
            group_id=self._group_id,
            session_timeout_ms=self._session_timeout_ms,
            rebalance_timeout_ms=60_000,
            member_id=mark,
            protocol_type="consumer",
            protocols=self._protocols,
        )
        frame = encode_request(request, JOIN_VERSION, 0, "raw-group")
        before, _, after = frame.partition(struct.pack(">h", len(mark)) + mark.encode())
        return before, after

    def run(self) -> FormedGroup:
        first = [self._join(member) for member in self._members]
        by_socket = self._by_socket
        began = time.perf_counter()
        for member, frame in zip(self._members, first, strict=True):
            member.socket.sendall(frame)
        ask_at = 0.0
        while self._complete < self._count:
            if time.perf_counter() - began > FORM_TIMEOUT_S:
                raise TimeoutError(f"{self._complete} of {self._count} members synced")
            for descriptor, _ in self._epoll.poll(ASK_AGAIN_S if self._asking else 1.0):
                self._receive(by_socket[descriptor])
            if not self._asking or time.perf_counter() < ask_at:
                continue
            ask_at = time.perf_counter() + ASK_AGAIN_S
            asking, self._asking = self._asking, []
            for member in asking:
                self._send(member, self._heartbeat(member), HEARTBEAT_VERSION, HeartbeatResponse)
        seconds = time.perf_counter() - began
        self._epoll.close()
        generation = self._members[0].generation
        return FormedGroup(self._group_id, generation, self._members, seconds)

    def _join(self, member: GroupMember) -> bytes:
        """A JoinGroup frame. Thousands differ in member and correlation id only: the rest is made once."""
        member.correlation_id += 1
        name = member.member_id.encode()
        before, after = self._join_around
        size = len(before) - 4 + 2 + len(name) + len(after)
        return b"".join(
            (
                struct.pack(">i", size),
                before[4:8],
                struct.pack(">i", member.correlation_id),
                before[12:],
                struct.pack(">h", len(name)),
                name,
                after,
            )
        )

    def _heartbeat(self, member: GroupMember) -> Message:
        return HeartbeatRequest(
            group_id=self._group_id, generation_id=member.generation, member_id=member.member_id
        )

    def _frame(self, member: GroupMember, message: Message, version: int) -> bytes:
        member.correlation_id += 1
        return encode_request(message, version, member.correlation_id, "raw-group")

    def _send(self, member: GroupMember, message: Message, version: int, expects: type[Message]) -> None:
        member.expects = expects
        member.socket.sendall(self._frame(member, message, version))

    def _receive(self, member: GroupMember) -> None:
        data = member.socket.recv(READ_BYTES)
        if not data:
            raise ConnectionError(f"the coordinator closed the connection of member {member.index}")
        member.buffer += data
        if len(member.buffer) < 4:
            return
        (size,) = struct.unpack_from(">i", member.buffer)
        if len(member.buffer) < 4 + size:
            return
        frame = bytes(member.buffer[4 : 4 + size])
        del member.buffer[: 4 + size]
        if member.expects is JoinGroupResponse:
            self._joined(member, decode_response(JoinGroupResponse, frame, JOIN_VERSION)[1])
        elif member.expects is SyncGroupResponse:
            self._synced(member, decode_response(SyncGroupResponse, frame, SYNC_VERSION)[1])
        else:
            self._beaten(member, decode_response(HeartbeatResponse, frame, HEARTBEAT_VERSION)[1])

    def _rejoin(self, member: GroupMember) -> None:
        member.expects = JoinGroupResponse
        member.socket.sendall(self._join(member))

    def _joined(self, member: GroupMember, answer: JoinGroupResponse) -> None:
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            member.member_id = answer.member_id
            self._named += 1
            if self._named == self._count:
                # All at once: had the early ones gone ahead, each straggler would cost all of them a rejoin.
                for one in self._members:
                    self._rejoin(one)
            return
        if answer.error_code:
            raise RuntimeError(f"JoinGroup: {error_name(answer.error_code)}")
        member.generation = answer.generation_id
        if len(answer.members) == self._count:
            self._whole_generation = answer.generation_id
        plan = [
            SyncGroupRequestAssignment(
                member_id=one.member_id, assignment=Assignment({self._topic: [place]}).encode(1)
            )
            for place, one in enumerate(answer.members)
        ]
        request = SyncGroupRequest(
            group_id=self._group_id,
            generation_id=member.generation,
            member_id=member.member_id,
            assignments=plan,
        )
        self._send(member, request, SYNC_VERSION, SyncGroupResponse)

    def _synced(self, member: GroupMember, answer: SyncGroupResponse) -> None:
        if answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._rejoin(member)
        elif answer.error_code:
            raise RuntimeError(f"SyncGroup: {error_name(answer.error_code)}")
        else:
            member.assignment = answer.assignment
            self._settle(member)

    def _settle(self, member: GroupMember) -> None:
        if member.generation == self._whole_generation:
            self._complete += 1
        else:
            self._asking.append(member)

    def _beaten(self, member: GroupMember, answer: HeartbeatResponse) -> None:
        if answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS:
            self._rejoin(member)
        elif answer.error_code:
            raise RuntimeError(f"Heartbeat: {error_name(answer.error_code)}")
        else:
            self._settle(member)


def form_group(
    address: Address,
    group_id: str,
    count: int,
    *,
    topic: str = "bench",
    session_timeout_ms: int = 600_000,
) -> FormedGroup:
    """Forms a stable group of `count` dynamic members (protocol "range") and returns it.

    Member i, in the leader's order, is assigned partition i of `topic`. Raises `TimeoutError`,
    `ConnectionError`, and `RuntimeError` on an error code that no member should see.
    """
    allow_connections(count)
    return _Former(address, group_id, count, topic, session_timeout_ms).run()
