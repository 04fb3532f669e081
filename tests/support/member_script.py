"""Plays the coordinator, the clock and the driver to one member machine, step by step."""

from __future__ import annotations

from typing import Any, Self

from ringleader.clients.group.machine.actions import (
    Action,
    CancelRevoked,
    ComputeAssignment,
    Disconnect,
    Over,
    PrepareJoin,
    Say,
    Send,
    TellAssigned,
    TellLost,
    TellRevoked,
)
from ringleader.clients.group.machine.classic import classic
from ringleader.clients.group.machine.machine import MemberMachine
from ringleader.clients.group.machine.phases import Phase
from ringleader.clients.group.settings import MemberSettings
from ringleader.clients.model import MemberProtocol, Node
from ringleader.protocol.messages import (
    FindCoordinatorResponse,
    HeartbeatResponse,
    JoinGroupResponse,
    JoinGroupResponseMember,
    LeaveGroupResponse,
    LeaveGroupResponseMemberResponse,
    SyncGroupResponse,
)

TURNS_AT_ONCE = 2
"""So often in a row a machine may be due at once: what was given up late is followed by the rest."""
NEWEST = {
    "FindCoordinator": 4,
    "DescribeGroups": 5,
    "JoinGroup": 9,
    "SyncGroup": 5,
    "Heartbeat": 4,
    "LeaveGroup": 5,
}


class MemberScript:
    """A machine at a time of its own; everything it wants is kept until the script looks at it."""

    def __init__(self, *, protocols: list[MemberProtocol] | None = None, **settings: Any) -> None:
        given: dict[str, Any] = {"group_id": "g", "protocol_type": "work", "session_timeout_ms": 10_000}
        self.now_ms = 1_000
        given_protocols = protocols or [MemberProtocol("even", b"me")]
        self.machine = MemberMachine(
            classic(MemberSettings(**(given | settings)), given_protocols, lambda: 0.5)
        )
        self.sends: list[Send] = []
        self.reported: list[Action] = []
        self.logged: list[str] = []
        self.disconnects = 0

    # ---- time and wishes ----

    def start(self) -> Self:
        self.machine.start(self.now_ms)
        return self.look()

    def rejoin(self, reason: str = "news") -> None:
        self.machine.rejoin(reason, self.now_ms)
        self.look()

    def leave(self, reason: str = "done", timeout_ms: int = 5_000, silently: bool = False) -> None:
        self.machine.leave(reason, self.now_ms, timeout_ms, silently)
        self.look()

    def polled(self) -> None:
        self.machine.polled(self.now_ms)
        self.look()

    def wait(self, ms: int) -> None:
        """Time passes; every deadline on the way is kept."""
        end_ms, turns = self.now_ms + ms, 0
        while (due_ms := self.machine.next_deadline()) is not None and due_ms <= end_ms:
            turns = turns + 1 if due_ms <= self.now_ms else 0
            if turns > TURNS_AT_ONCE:
                raise AssertionError("the machine's deadline does not move: its driver would spin")
            self.now_ms = max(self.now_ms, due_ms)
            self.machine.tick(self.now_ms)
            self.look()
        self.now_ms = end_ms

    def phase(self) -> Phase:
        """The machine's current phase; mypy believes that an attribute stays what a test once found it."""
        return self.machine.state.phase

    def look(self) -> Self:
        for action in self.machine.drain():
            match action:
                case Send():
                    self.sends.append(action)
                case Say():
                    self.logged.append(action.text)
                case Disconnect():
                    self.disconnects += 1
                case _:
                    self.reported.append(action)
        return self

    # ---- what it wants ----

    @property
    def wanted(self) -> list[str]:
        """Names of the requests that wait for an answer."""
        return [send.request.message.__name__.removesuffix("Request") for send in self.sends]

    def coordinator(self) -> Node:
        """Where the machine takes the coordinator to be; it has to know one."""
        node = self.machine.state.link.coordinator
        assert node is not None
        return node

    def due_ms(self) -> int:
        """The machine's deadline; it has to have one."""
        due_ms = self.machine.next_deadline()
        assert due_ms is not None
        return due_ms

    def request(self, name: str, version: int | None = None) -> Any:
        """The body of the oldest waiting request of that name."""
        send = self._find(name)
        return send.request.build(NEWEST[name] if version is None else version)

    def last_reported(self, kind: type[Any]) -> Any:
        """The newest callback of that kind; there has to be one."""
        return [action for action in self.reported if isinstance(action, kind)][-1]

    def kinds(self) -> list[str]:
        """Names of all callbacks so far."""
        return [type(action).__name__ for action in self.reported]

    # ---- answers ----

    def answer(self, name: str, response: Any) -> None:
        send = self._find(name)
        self.sends.remove(send)
        self.machine.answer(send.ticket, response, self.now_ms)
        self.look()

    def fail(self, name: str, why: str = "connection reset") -> None:
        send = self._find(name)
        self.sends.remove(send)
        self.machine.fail(send.ticket, why, self.now_ms)
        self.look()

    def find(self, code: int = 0, port: int = 9092) -> None:
        self.answer(
            "FindCoordinator", FindCoordinatorResponse(error_code=code, node_id=1, host="h", port=port)
        )

    def join(self, code: int = 0, **fields: Any) -> None:
        """The JoinGroup answer; by default generation 1 with this member as its leader."""
        given: dict[str, Any]
        if code:
            given = {"generation_id": -1, "protocol_name": None}
        else:
            me = fields.get("member_id", "m-1")
            members = [JoinGroupResponseMember(member_id=m) for m in fields.pop("members", [me])]
            given = {
                "generation_id": 1,
                "protocol_type": "work",
                "protocol_name": "even",
                "leader": me,
                "member_id": me,
                "members": members,
            }
        self.answer("JoinGroup", JoinGroupResponse(error_code=code, **(given | fields)))

    def compute(self, shares: dict[str, bytes]) -> None:
        self.machine.computed(self.last_reported(ComputeAssignment).round, shares, self.now_ms)
        self.look()

    def sync(self, code: int = 0, share: bytes = b"share", **fields: Any) -> None:
        kind = None if code else "work"
        given: dict[str, Any] = {"protocol_type": kind, "protocol_name": None if code else "even"}
        given["assignment"] = share
        self.answer("SyncGroup", SyncGroupResponse(error_code=code, **(given | fields)))

    def beat(self, code: int = 0) -> None:
        self.answer("Heartbeat", HeartbeatResponse(error_code=code))

    def revoked(self) -> None:
        self.machine.revoked(self.last_reported(TellRevoked).round, self.now_ms)
        self.look()

    def prepared(self) -> None:
        self.machine.prepared(self.last_reported(PrepareJoin).number, self.now_ms)
        self.look()

    def left(self, code: int = 0, members: int = 1) -> None:
        one = LeaveGroupResponseMemberResponse(member_id="m-1", error_code=code)
        self.answer("LeaveGroup", LeaveGroupResponse(members=[one] * members))

    def settle(self, generation: int = 1, member_id: str = "m-1") -> MemberScript:
        """All the way to a share, from wherever a join is wanted; as a follower."""
        if "FindCoordinator" in self.wanted:
            self.find()
        if self.request("JoinGroup").member_id == "":
            self.join(79, member_id=member_id)
        self.join(generation_id=generation, member_id=member_id, leader="other")
        self.sync(share=b"share %d" % generation)
        return self

    def _find(self, name: str) -> Send:
        for send in self.sends:
            if send.request.message.__name__ == name + "Request":
                return send
        raise AssertionError(f"no {name} is wanted, but {self.wanted}")


__all__ = [
    "CancelRevoked",
    "ComputeAssignment",
    "MemberScript",
    "Over",
    "PrepareJoin",
    "TellAssigned",
    "TellLost",
    "TellRevoked",
]
