"""Member machines and the real group machine together, on a simulated clock and network."""

from __future__ import annotations

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ringleader.clients.group.machine.actions import (
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
from ringleader.clients.model import Assigned, MemberInfo, MemberProtocol
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.groups.shard import Shard
from ringleader.coordinator.journal.entries import JournalEntry
from ringleader.protocol.messages import FindCoordinatorResponse

SHARDS = 12
VERSIONS = {
    "old": {"JoinGroup": 3, "SyncGroup": 1, "Heartbeat": 1, "LeaveGroup": 1},
    "middle": {"JoinGroup": 5, "SyncGroup": 3, "Heartbeat": 3, "LeaveGroup": 3},
    "new": {"JoinGroup": 9, "SyncGroup": 5, "Heartbeat": 4, "LeaveGroup": 5},
}


def deal(members: list[MemberInfo]) -> dict[str, bytes]:
    """The shards dealt out to the members in turn."""
    names = sorted(member.member_id for member in members)
    return {name: bytes(range(i, SHARDS, len(names))) for i, name in enumerate(names)}


@dataclass(eq=False)
class Ticket:
    api_version: int
    client_id: str
    connection: Connection
    send: Send
    client_host: str = "/127.0.0.1"
    principal: str = "User:ANONYMOUS"


@dataclass(eq=False)
class Connection:
    """Requests go in one after the other, as the server lets them."""

    member: Member
    queue: list[Ticket] = field(default_factory=list)
    current: Ticket | None = None
    open: bool = True


class Member:
    """A machine, its driver's part, and what its user saw."""

    def __init__(self, world: World, name: str, **settings: Any) -> None:
        given: dict[str, Any] = {"group_id": "g", "protocol_type": "work", "session_timeout_ms": 10_000}
        given |= {"rebalance_timeout_ms": 15_000, "heartbeat_interval_ms": 3_000} | settings
        self.world, self.name = world, name
        protocols = [MemberProtocol("deal", name.encode())]
        self.machine = MemberMachine(classic(MemberSettings(**given), protocols, world.random.random))
        self.machine.state.prepares = world.prepares and world.random.random() < 0.5
        self.versions = VERSIONS[world.random.choice(sorted(VERSIONS))]
        self.connection: Connection | None = None
        self.alive = True
        self.shares: list[tuple[int, bytes]] = []
        self.lost: list[str] = []
        self.over = False
        self.slow_ms = 2_000
        self.polls = True
        self._due_ms: int | None = None

    @property
    def held(self) -> Assigned:
        """Its share; it has to have one."""
        assert self.machine.state.held is not None
        return self.machine.state.held

    def step(self, step: Callable[[], None]) -> None:
        """Something happens to the machine; a killed member notices nothing any more."""
        if not self.alive:
            return
        step()
        for action in self.machine.drain():
            self._do(action)
        due_ms = self.machine.next_deadline()
        if due_ms is not None and due_ms != self._due_ms:
            self._due_ms = due_ms
            self.world.at(max(due_ms, self.world.now_ms), self._tick)

    def _tick(self) -> None:
        self._due_ms = None
        self.step(lambda: self.machine.tick(self.world.now_ms))

    def poll(self) -> None:
        """The application makes progress, again and again, unless it has stopped to."""
        if self.polls:
            self.step(lambda: self.machine.polled(self.world.now_ms))
        if self.alive and not self.over:
            self.world.after(1_000, self.poll)

    def _do(self, action: object) -> None:
        world = self.world
        match action:
            case Send(node=None):
                world.find(self, action)
            case Send():
                self._ask(action)
            case Disconnect():
                world.cut(self, tell=False)
            case PrepareJoin():
                number = action.number
                end = lambda: self.step(lambda: self.machine.prepared(number, world.now_ms))  # noqa: E731
                # Some never end: the machine goes on without them.
                world.after(world.random.choice([1, 500, 10**6]), end)
            case ComputeAssignment():
                shares = deal(action.members)
                world.after(50, lambda: self.step(self._computed(action.round, shares)))
            case TellAssigned(assigned=assigned):
                self.shares.append((assigned.generation, assigned.assignment))
                world.check_share(self, assigned.generation, assigned.assignment)
            case TellRevoked():
                round_ = action.round
                done = lambda: self.step(lambda: self.machine.revoked(round_, world.now_ms))  # noqa: E731
                world.after(self.slow_ms, done)
            case TellLost(lost=lost):
                self.lost.append(lost.reason)
            case Over():
                self.over = True
                world.cut(self, tell=False)
            case Say() | CancelRevoked():
                pass

    def _computed(self, round_: int, shares: dict[str, bytes]) -> Callable[[], None]:
        return lambda: self.machine.computed(round_, shares, self.world.now_ms)

    def _ask(self, send: Send) -> None:
        if not self.world.up:
            why = "connection refused"
            self.world.after(
                20, lambda: self.step(lambda: self.machine.fail(send.ticket, why, self.world.now_ms))
            )
            return
        if self.connection is None or not self.connection.open:
            self.connection = Connection(self)
        name = send.request.message.__name__.removesuffix("Request")
        ticket = Ticket(self.versions[name], self.name, self.connection, send)
        self.world.after(10, lambda: self.world.arrive(ticket))


class World:
    """Everything that happens, in order of time; the same seed gives the same run."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now_ms = 0
        self.up = True
        self.prepares = False
        """Whether some of the members that come have something to do before each join."""
        self.members: list[Member] = []
        self.journal: list[str] = []
        self._events: list[tuple[int, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._names = itertools.count(1)
        self._log: list[tuple[bytes, bytes | None]] = []
        self._shares: dict[tuple[int, int], str] = {}
        self._due_ms: int | None = None
        self._new_shard()

    # ---- time ----

    def at(self, when_ms: int, what: Callable[[], None]) -> None:
        heapq.heappush(self._events, (when_ms, next(self._order), what))

    def after(self, most_ms: int, what: Callable[[], None]) -> None:
        """Some time from now, by chance."""
        self.at(self.now_ms + self.random.randint(1, max(1, most_ms)), what)

    def run(self, ms: int) -> None:
        end_ms = self.now_ms + ms
        while self._events and self._events[0][0] <= end_ms:
            self.now_ms, _, what = heapq.heappop(self._events)
            what()
        self.now_ms = end_ms

    # ---- members ----

    def add(self, **settings: Any) -> Member:
        member = Member(self, f"m{next(self._names)}", **settings)
        self.members.append(member)
        member.step(lambda: member.machine.start(self.now_ms))
        if "max_poll_interval_ms" in settings:
            member.poll()
        return member

    def kill(self, member: Member) -> None:
        member.alive = False
        self.cut(member, tell=False)
        self.members.remove(member)

    def leave(self, member: Member) -> None:
        member.step(lambda: member.machine.leave("enough", self.now_ms, 1_000))
        self.members.remove(member)

    def find(self, member: Member, send: Send) -> None:
        if self.up:
            answer = FindCoordinatorResponse(node_id=1, host="h", port=1)
            self.after(
                20, lambda: member.step(lambda: member.machine.answer(send.ticket, answer, self.now_ms))
            )
        else:
            self.after(
                20, lambda: member.step(lambda: member.machine.fail(send.ticket, "refused", self.now_ms))
            )

    def check_share(self, member: Member, generation: int, share: bytes) -> None:
        """No shard is ever given to two members in one generation."""
        for shard in share:
            owner = self._shares.setdefault((generation, shard), member.name)
            assert owner == member.name, f"shard {shard} of generation {generation}: {owner}, {member.name}"

    # ---- the network ----

    def cut(self, member: Member, tell: bool = True) -> None:
        """The member's connection ends. Both sides learn of it, or only the coordinator (own wish)."""
        connection, member.connection = member.connection, None
        if connection is None:
            return
        connection.open = False
        tickets = [*connection.queue, *([connection.current] if connection.current else [])]
        for ticket in tickets:
            self.shard.ticket_closed(ticket)
            if tell:
                number = ticket.send.ticket
                member.step(partial(member.machine.fail, number, "connection reset", self.now_ms))
        self.pump()

    def arrive(self, ticket: Ticket) -> None:
        connection = ticket.connection
        if not self.up or not connection.open:
            self._failed(ticket)
            return
        connection.queue.append(ticket)
        self._next(connection)

    def _failed(self, ticket: Ticket) -> None:
        member = ticket.connection.member
        self.after(
            5, lambda: member.step(lambda: member.machine.fail(ticket.send.ticket, "reset", self.now_ms))
        )

    def _next(self, connection: Connection) -> None:
        while connection.open and connection.current is None and connection.queue:
            ticket = connection.queue.pop(0)
            connection.current = ticket
            request = ticket.send.request.build(ticket.api_version)
            answer = self.shard.handle(request, ticket, self.now_ms)
            if answer is not None:
                self._reply(ticket, answer)
        self.pump()

    def _reply(self, ticket: Ticket, answer: Any) -> None:
        connection = ticket.connection
        if connection.current is ticket:
            connection.current = None
        member, number = connection.member, ticket.send.ticket
        if answer is None:
            self.cut(member)
        elif connection.open:
            # Over the wire and back, so that a version never shows more than it carries.
            encoded = answer.encode(ticket.api_version)
            decoded = type(answer).decode(encoded, ticket.api_version)
            self.after(10, lambda: member.step(lambda: member.machine.answer(number, decoded, self.now_ms)))
            self.after(1, lambda: self._next(connection))

    # ---- the coordinator ----

    def _new_shard(self) -> None:
        settings = GroupSettings(group_initial_rebalance_delay_ms=500)
        self.shard = Shard(0, settings, lambda prefix: f"{prefix}-{self.random.getrandbits(32):08x}")
        self.shard.replay(self._log)
        self.shard.loaded(self.now_ms, self.now_ms)

    def crash(self) -> None:
        """The coordinator's process dies; what is not durable is gone."""
        self.up = False
        for member in self.members:
            self.cut(member)

    def recover(self) -> None:
        self.up = True
        self._new_shard()
        self.pump()

    def pump(self) -> None:
        shard = self.shard
        while shard.dirty and self.up:
            outbox = shard.drain()
            self.journal += [one.render() for one in outbox.events if isinstance(one, JournalEntry)]
            for append in outbox.appends:
                self.after(5, partial(self._stored, shard, append))
            for answer in outbox.answers:
                assert isinstance(answer.ticket, Ticket)
                self._reply(answer.ticket, answer.response)
        due_ms = shard.next_deadline()
        if due_ms is not None and due_ms != self._due_ms:
            self._due_ms = due_ms
            self.at(max(due_ms, self.now_ms), lambda: self._tick(shard))

    def _stored(self, shard: Shard, append: Any) -> None:
        if shard is not self.shard or not self.up:
            return
        self._log += append.records
        shard.durable(append.position, self.now_ms)
        self.pump()

    def _tick(self, shard: Shard) -> None:
        self._due_ms = None
        if shard is self.shard and self.up:
            shard.tick(self.now_ms)
            self.pump()

    # ---- what has to be true when all is calm ----

    def check_calm(self) -> None:
        phases = {member.name: member.machine.state.phase for member in self.members}
        assert set(phases.values()) <= {Phase.STABLE}, phases
        generations = {member.machine.state.generation for member in self.members}
        assert len(generations) <= 1, generations
        held = sorted(s for member in self.members for s in member.held.assignment)
        assert held == (list(range(SHARDS)) if self.members else [])
