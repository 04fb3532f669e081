"""What a member is at a moment: its phase, generation and assignment; and how an assignment is lost."""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ringleader.clients.errors import MembershipError
from ringleader.clients.group.actions import (
    Action,
    CancelRevoked,
    Over,
    Say,
    TellAssigned,
    TellLost,
    TellRevoked,
)
from ringleader.clients.group.link import Link
from ringleader.clients.group.poll_clock import PollClock
from ringleader.clients.group.settings import MemberSettings
from ringleader.clients.metrics import Counters
from ringleader.clients.model import Assigned, Lost, MemberProtocol, Node, Revoked


class Phase(enum.Enum):
    """Where the member stands."""

    NEW = "new"
    UNJOINED = "about to join"
    PREPARING = "preparing to join"
    JOINING = "joining"
    ASSIGNING = "computing the assignment"
    SYNCING = "waiting for its assignment"
    STABLE = "stable"
    REVOKING = "giving up its assignment"
    RESTING = "out of the group until the application polls"
    LEAVING = "leaving"
    LEFT = "left"
    FAILED = "failed"


BEATING = (Phase.PREPARING, Phase.ASSIGNING, Phase.STABLE, Phase.REVOKING)
"""The phases with heartbeats. Not while JoinGroup or SyncGroup is parked: a heartbeat would wait behind it on
the same connection, and the coordinator takes a member with a parked request for alive."""

ENTERING = (Phase.UNJOINED, Phase.PREPARING, Phase.JOINING, Phase.ASSIGNING, Phase.SYNCING)
"""The phases on the way to an assignment; of a cooperative member, with the one before still in hand."""

PARKED = (Phase.UNJOINED, Phase.JOINING, Phase.SYNCING)
"""The phases in which JoinGroup or SyncGroup is parked, or about to be."""

OVER = (Phase.LEFT, Phase.FAILED)
ASLEEP = (Phase.NEW, Phase.RESTING, *OVER)
"""The phases in which nothing happens by itself."""


@dataclass(slots=True)
class Election:
    """What the JoinGroup answer settled, until SyncGroup gives the assignment."""

    protocol: str
    leader_id: str
    members: list[str]
    assignments: Mapping[str, bytes] = field(default_factory=dict)


class MemberState:
    """One member of one group. `random` gives numbers from 0 to 1, for the jitter of retries."""

    JOIN, BEAT, LEAVE = "JoinGroup", "Heartbeat", "LeaveGroup"
    """What it sends to join, to stay and to leave, in words."""

    def __init__(
        self, settings: MemberSettings, protocols: Sequence[MemberProtocol], random: Callable[[], float]
    ) -> None:
        if not protocols:
            raise ValueError("at least one protocol is needed")
        if isinstance(protocols, MemberProtocol) or not all(isinstance(p, MemberProtocol) for p in protocols):
            raise ValueError("protocols is a list of MemberProtocol")
        if len({protocol.name for protocol in protocols}) != len(protocols):
            raise ValueError("protocol names have to differ")
        self.settings = settings
        self.protocols = tuple(protocols)
        self.phase = Phase.NEW
        self.generation = -1
        self.member_id = ""
        self.held: Assigned | None = None
        """The assignment that the user has been given and has not given up."""
        self.kept_since = -1
        """Generation from which on nothing of the assignment has been given up. An eager member's assignment
        is of one generation; a cooperative member's may last through many."""
        self.shrinks = 0
        """How often a part of an assignment was given up or lost while the rest stayed."""
        self.last_held: Assigned | None = None
        """The newest assignment that there was, given up or not: what sticky assignors go by."""
        self.error: MembershipError | None = None
        self.prepares = False
        """Whether its driver has something to do before each JoinGroup."""
        self.counters = Counters()
        self.poll = PollClock(settings.max_poll_interval_ms)
        self.rest_reason = ""
        """Why it left the group for lack of progress, while it is out of it; else empty."""
        self.hold_until_ms = 0
        """When the wait for a revocation ends."""
        self._actions: list[Action] = []
        self.link = Link(settings, random, self._actions)
        self._round = 0
        self._refusals = 0
        self._join_reason = "first join"
        self._join_until_ms: int | None = None  # the rebalance under way waits so long for this member
        self._preparation = 0
        self._prepared = False
        self._prepare_until_ms = 0
        self._rejoin_reason: str | None = None
        self._election: Election | None = None
        self._beat_at_ms = 0
        self._beat_after_ms = settings.heartbeat_interval_ms
        self._contact_ms = 0
        self._moving = (
            b""  # of the assignment, what is being given up in a cooperative member; b"": all of it
        )
        self._leave_reason: str | None = None
        self._leave_silently = False
        self._rest_polled_ms: int | None = None
        self._leave_until_ms = 0
        self._leave_by_ms: int | None = None

    @property
    def coordinator(self) -> Node | None:
        """Where the group's coordinator is; None while it is looked for."""
        return self.link.coordinator

    def holds(self, generation: int) -> bool:
        """Whether everything that was in the assignment of that generation is still in this member's
        assignment."""
        return self.held is not None and self.kept_since <= generation <= self.generation

    @property
    def fetches_offsets_as(self) -> tuple[int, str] | None:
        """Epoch and member id that OffsetFetch tells, where the coordinator checks them; None: as nobody."""
        return None

    @property
    def owned(self) -> tuple[bytes, ...]:
        """The assignments that make up what this member still has: the present one, and of the one before it
        what is being given up."""
        return () if self.held is None else (self.held.assignment, self._moving)

    def cooperates(self, protocol: str) -> bool:
        """Whether the member keeps what it holds of a generation with that protocol while it joins again."""
        return self.settings.cooperative and not any(
            one.eager for one in self.protocols if one.name == protocol
        )

    def _say(self, level: int, text: str) -> None:
        self._actions.append(Say(level, text))

    def _identity(self) -> tuple[int, str]:
        return self.generation, self.member_id

    @property
    def enters(self) -> bool:
        """Whether a request of its own may be parked on its connection, and hold back what comes after it."""
        return self.phase in PARKED or self.link.waits_for(self.JOIN)

    def _beats(self) -> bool:
        """Whether heartbeats belong to where it stands."""
        return self.phase in BEATING and self.generation >= 0 and not self.link.waits_for(self.JOIN)

    # ---- how an assignment ends ----

    def _to_join(self, reason: str, now_ms: int) -> None:
        raise NotImplementedError

    def _rebalance(self, reason: str, hold_until_ms: int, now_ms: int) -> None:
        """Join again; an eager member gives up its assignment first."""
        self._join_until_ms = hold_until_ms
        if self.held is not None and self.cooperates(self.held.protocol):
            self._say(logging.INFO, f"joining again with generation {self.generation} in hand: {reason}")
            self._to_join(reason, now_ms)
        else:
            self._revoke(reason, hold_until_ms, now_ms)

    def _given_up(self, now_ms: int) -> None:
        moved, self._moving = self._moving, b""
        self.counters.revoked(now_ms)
        if not moved:
            self.held = None
            self.counters.assigned_ms = None
        elif self.held is not None:
            self._shrunk()
            self._actions.append(TellAssigned(self.held))
            if self._leave_reason is not None:
                self._revoke(f"leaving: {self._leave_reason}", self.hold_until_ms, now_ms)
                return
        self._to_join(self._join_reason, now_ms)

    def _revoke(self, reason: str, hold_until_ms: int, now_ms: int, moving: bytes = b"") -> None:
        """Ask the user to give up the assignment, or only the part of it that moves to another member."""
        held, bound_ms = self.held, self.settings.quiesce_timeout_ms
        assert held is not None
        self.phase = Phase.REVOKING
        self._round += 1
        if bound_ms is not None:
            hold_until_ms = min(hold_until_ms, now_ms + bound_ms)
        self.hold_until_ms = hold_until_ms
        self.counters.revoking_ms = now_ms
        self._join_reason = reason
        self._moving = moving
        # Work that does not end leaves on_revoked a tenth of the time, so that it is called in any case.
        work_until_ms = hold_until_ms - min(1_000, max(0, hold_until_ms - now_ms) // 10)
        part = "a part of " if moving else ""
        self._say(logging.INFO, f"giving up {part}generation {held.generation}: {reason}")
        revoked = Revoked(held.generation, held.member_id, moving or held.assignment, reason, bool(moving))
        self._actions.append(TellRevoked(self._round, revoked, work_until_ms))

    def _lose(self, reason: str, now_ms: int) -> None:
        """The assignment, if there is one, is gone without asking."""
        held, self.held = self.held, None
        self._moving = b""
        self.counters.assigned_ms = None
        self.counters.revoked(now_ms)
        if held is None:
            return
        self.counters.times_lost += 1
        if self.phase is Phase.REVOKING:
            self._actions.append(CancelRevoked(self._round))
        self._say(logging.WARNING, f"lost generation {held.generation}: {reason}")
        self._actions.append(TellLost(Lost(held.generation, held.member_id, held.assignment, reason)))

    def _give_up_late(self, now_ms: int) -> None:
        """`on_revoked` did not end in time."""
        why, held, moving = "on_revoked did not end in time: going on without it", self.held, self._moving
        if held is None or not moving:
            self._lose(why, now_ms)
            return
        self._actions.append(CancelRevoked(self._round))
        self._lose_a_part(held, moving, why)

    def _lose_a_part(self, held: Assigned, gone: bytes, why: str) -> None:
        """Of what the member holds, this is gone without asking."""
        self.counters.times_lost += 1
        self._shrunk()
        self._say(logging.WARNING, f"lost a part of generation {held.generation}: {why}")
        self._actions.append(TellLost(Lost(held.generation, held.member_id, gone, why, partial=True)))

    def _shrunk(self) -> None:
        """A part of the assignment is gone: a commit that was asked for before may not outlast this
        generation."""
        self.kept_since = self.generation
        self.shrinks += 1

    def _removal(self, now_ms: int) -> str:
        silent_ms, session_ms = now_ms - self._contact_ms, self.settings.session_timeout_ms
        if silent_ms >= session_ms:
            return f"removed: silent for {silent_ms / 1000:.1f} s, session timeout {session_ms / 1000:g} s"
        return (
            "removed: the coordinator does not know this member id (somebody removed it, it was late for a "
            "rebalance, or the coordinator lost its state)"
        )

    # ---- the end ----

    def _end(self, error: MembershipError, now_ms: int) -> None:
        """An error that no retry cures."""
        self.error = error
        self._lose(str(error), now_ms)
        self._over()

    def _over(self) -> None:
        self.link.forget_all()
        self.held = None
        self.generation = -1
        self.counters.assigned_ms = None
        if self.error is None:
            self.phase = Phase.LEFT
            self._say(logging.INFO, f"left: {self._leave_reason}")
        else:
            self.phase = Phase.FAILED
            self._say(logging.ERROR, f"the membership is over: {self.error}")
        self._actions.append(Over(self.error))
