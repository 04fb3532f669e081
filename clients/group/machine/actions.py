"""The actions that the member machine asks its driver for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ringleader.clients.connection.requests import Request
from ringleader.clients.errors import MembershipError
from ringleader.clients.model import Assigned, Lost, MemberInfo, Node, Revoked
from ringleader.protocol.messages import (
    ConsumerGroupHeartbeatRequestComputedTarget,
    ConsumerGroupHeartbeatResponseLeaderTask,
)


@dataclass(frozen=True, slots=True)
class Send:
    """Send to that node, or to any broker when `node` is None; report back under `ticket`."""

    ticket: int
    node: Node | None
    request: Request
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class Disconnect:
    """Close the connection to the coordinator: a request that is parked there blocks those behind it."""

    node: Node


@dataclass(frozen=True, slots=True)
class ComputeAssignment:
    """This member leads: run `assign`, report `computed` or `compute_failed` with this round."""

    round: int
    protocol: str
    members: list[MemberInfo]


@dataclass(frozen=True, slots=True)
class ComputeTarget:
    """The coordinator wants this member to compute the group's assignment: report it to
    `MemberMachine.delegated`."""

    task: ConsumerGroupHeartbeatResponseLeaderTask
    done: Callable[[ConsumerGroupHeartbeatRequestComputedTarget, int], None]


@dataclass(frozen=True, slots=True)
class TellAssigned:
    """Run `on_assigned`."""

    assigned: Assigned


@dataclass(frozen=True, slots=True)
class PrepareJoin:
    """Do what has to be done before JoinGroup, until then at most; report `prepared` with this number."""

    number: int
    until_ms: int


@dataclass(frozen=True, slots=True)
class TellRevoked:
    """Let no more work begin, wait for the end of the work in hand, but not beyond `work_until_ms`, then run
    `on_revoked`, wait for its end, report `revoked` with this round. Heartbeats go on meanwhile."""

    round: int
    revoked: Revoked
    work_until_ms: int


@dataclass(frozen=True, slots=True)
class CancelRevoked:
    """Do not wait any longer for `on_revoked` of this round."""

    round: int


@dataclass(frozen=True, slots=True)
class TellLost:
    """Run `on_lost`."""

    lost: Lost


@dataclass(frozen=True, slots=True)
class Over:
    """The membership has ended, as asked (`error` None) or not: then run `on_failed`. The last action."""

    error: MembershipError | None


@dataclass(frozen=True, slots=True)
class Say:
    """A line for the log. `level` as in `logging`."""

    level: int
    text: str


Action = (
    Send
    | Disconnect
    | PrepareJoin
    | ComputeAssignment
    | ComputeTarget
    | TellAssigned
    | TellRevoked
    | CancelRevoked
    | TellLost
    | Over
    | Say
)
