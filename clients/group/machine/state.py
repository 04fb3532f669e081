"""The state of a member as plain data, and what the two group protocols do with it each in their own way."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple, Protocol

from ringleader.clients.connection.requests import Request
from ringleader.clients.errors import ClientError, MembershipError
from ringleader.clients.group.machine.actions import Action, Say
from ringleader.clients.group.machine.link import Handle, Link, Pending
from ringleader.clients.group.machine.phases import BEATING, PARKED, Phase, check_transition
from ringleader.clients.group.machine.poll_clock import PollClock
from ringleader.clients.group.settings import MemberSettings
from ringleader.clients.metrics import Counters
from ringleader.clients.model import Assigned, MemberProtocol

Identity = tuple[int, str]
"""Generation (or member epoch) and member id, as requests of a member name it."""


class RequestNames(NamedTuple):
    """The requests that join the group, keep the membership and leave, as logs and errors name them."""

    join: str
    heartbeat: str
    leave: str


class Rules(Protocol):
    """The steps that the two group protocols take each in their own way: `Classic` and `ConsumerProtocol`."""

    names: ClassVar[RequestNames]

    def join(self, now_ms: int) -> None:
        """Send the request that joins."""

    def heartbeat(self, now_ms: int) -> None:
        """Send the heartbeat that is due."""

    def leave(self, now_ms: int) -> None:
        """Send the request that leaves."""

    def pursue(self, now_ms: int) -> None:
        """Send what else the phase and the time ask for."""

    def deadline_ms(self) -> int | None:
        """When `pursue` has something to send; None: not by itself."""

    def rebalance(self, reason: str, hold_until_ms: int, now_ms: int) -> None:
        """Take part in a rebalance, or cause one; the wait for `on_revoked` ends at `hold_until_ms`."""

    def given_up(self, now_ms: int) -> None:
        """Go on after the end of a revocation."""

    def lost(self) -> None:
        """Forget what belonged to an assignment that is lost."""

    def repeat(self, name: str, why: str, now_ms: int) -> None:
        """Do again what the request of that name was for: its coordinator is gone."""

    def offsets_refused(self, name: str, code: int, identity: Identity, now_ms: int) -> None:
        """React to the error that OffsetCommit or OffsetFetch got, sent under that identity."""

    def impossible(self, name: str, error: ClientError) -> MembershipError:
        """The error of a member whose request of that name cannot be sent."""

    def stop_joining(self) -> None:
        """Give up what is under way to enter the group."""

    def leaves_silently(self, wanted: bool) -> bool:
        """Whether nothing is sent to leave. `wanted`: a static member shall leave no trace."""

    def out_of_group(self) -> None:
        """Forget by what the coordinator knew the member."""

    def fetches_offsets_as(self) -> Identity | None:
        """The identity in OffsetFetch where the coordinator checks it; None: without one."""


@dataclass(slots=True)
class Election:
    """The outcome of JoinGroup in the classic protocol, until SyncGroup gives the assignment."""

    protocol: str
    leader_id: str
    members: list[str]
    """All members, known to the leader only."""
    assignments: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class MemberState:
    """One member of one group. Times in milliseconds of the driver's clock."""

    settings: MemberSettings
    protocols: tuple[MemberProtocol, ...]
    actions: list[Action]
    """The next actions of the driver, in order."""
    link: Link
    poll: PollClock
    counters: Counters = field(default_factory=Counters)
    rules: Rules = field(init=False)
    phase: Phase = Phase.NEW
    error: MembershipError | None = None

    # ---- the membership ----
    generation: int = -1
    member_id: str = ""
    contact_ms: int = 0
    """When the newest request was sent that the coordinator accepted."""
    heartbeat_at_ms: int = 0
    heartbeat_after_ms: int = 0
    """Until the heartbeat after the next one, at most."""

    # ---- the assignment ----
    held: Assigned | None = None
    """The assignment that the user has been given and has not given up."""
    kept_since: int = -1
    """Generation from which on nothing of the assignment has been given up. An eager member's assignment is
    of one generation; a cooperative member's may last through many."""
    shrinks: int = 0
    """How often a part of an assignment was given up or lost while the rest stayed."""
    last_held: Assigned | None = None
    """The newest assignment that there was, given up or not: sticky assignors go by it."""
    round: int = 0
    """Callbacks of an earlier round are out of date."""
    hold_until_ms: int = 0
    """When the wait for a revocation ends."""
    moving: bytes = b""
    """The part of the assignment that is being given up while the rest stays; empty: all of it."""

    # ---- joining ----
    prepares: bool = False
    """Whether the driver has something to do before each JoinGroup."""
    prepared: bool = False
    preparation: int = 0
    prepare_until_ms: int = 0
    join_reason: str = "first join"
    join_until_ms: int | None = None
    """How long the rebalance under way waits for this member."""
    rejoin_reason: str | None = None
    """The reason to join again as soon as the member is stable."""
    election: Election | None = None
    refusals: int = 0
    """Joins and syncs that were rejected in a row."""

    # ---- leaving ----
    leave_reason: str | None = None
    leave_silently: bool = False
    leave_by_ms: int | None = None
    leave_until_ms: int = 0
    rest_reason: str = ""
    """The reason for which the member is out of the group until the application makes progress; empty: it is
    not."""
    rest_polled_ms: int | None = None
    """The newest progress before that."""

    @property
    def identity(self) -> Identity:
        """The identity that requests are sent under."""
        return self.generation, self.member_id

    @property
    def group(self) -> str:
        """The group, as error texts begin."""
        return f"group {self.settings.group_id!r}"

    @property
    def owned(self) -> tuple[bytes, ...]:
        """The assignments that make up what this member still has: the present one, and of the one before it
        what is being given up."""
        return () if self.held is None else (self.held.assignment, self.moving)

    @property
    def enters(self) -> bool:
        """Whether a request of its own may be parked on its connection, and hold back what comes after it."""
        return self.phase in PARKED or self.link.waits_for(self.rules.names.join)

    @property
    def beats(self) -> bool:
        """Whether heartbeats belong to where it stands."""
        joins = self.link.waits_for(self.rules.names.join)
        return self.phase in BEATING and self.generation >= 0 and not joins

    def holds(self, generation: int) -> bool:
        """Whether everything that was in the assignment of that generation is still in this member's
        assignment."""
        return self.held is not None and self.kept_since <= generation <= self.generation

    def cooperates(self, protocol: str) -> bool:
        """Whether the member keeps what it holds of a generation with that protocol while it joins again."""
        return self.settings.cooperative and not any(
            one.eager for one in self.protocols if one.name == protocol
        )

    def contact(self, sent_ms: int) -> None:
        """The coordinator accepted something that this member sent at that time: its session goes on."""
        self.contact_ms = max(self.contact_ms, sent_ms)

    def enter(self, phase: Phase) -> None:
        """Go on to that phase. Raises `PhaseError` unless the table of phases allows it."""
        check_transition(self.settings.group_id, self.phase, phase)
        self.phase = phase

    def send(
        self,
        name: str,
        request: Request,
        handle: Handle,
        now_ms: int,
        timeout_ms: int,
        unanswered: Callable[[str, int], None] | None = None,
        *,
        optional: bool = False,
    ) -> None:
        """Send a request under the present identity; see `Pending` for its parts."""
        pending = Pending(name, handle, self.identity, now_ms, self.link.found, unanswered, optional)
        self.link.send(pending, request, timeout_ms)

    def say(self, level: int, text: str) -> None:
        """Add a line to the log."""
        self.actions.append(Say(level, text))


def new_state(
    settings: MemberSettings, protocols: Sequence[MemberProtocol], random: Callable[[], float]
) -> MemberState:
    """The state of a member that has not started. `random` gives numbers from 0 to 1, for the jitter of
    retries. Raises ValueError for protocols that cannot work."""
    if not protocols:
        raise ValueError("at least one protocol is needed")
    if isinstance(protocols, MemberProtocol) or not all(isinstance(p, MemberProtocol) for p in protocols):
        raise ValueError("protocols is a list of MemberProtocol")
    if len({protocol.name for protocol in protocols}) != len(protocols):
        raise ValueError("protocol names have to differ")
    actions: list[Action] = []
    link, poll = Link(settings, random, actions), PollClock(settings.max_poll_interval_ms)
    state = MemberState(settings, tuple(protocols), actions, link, poll)
    state.heartbeat_after_ms = settings.heartbeat_interval_ms
    return state
