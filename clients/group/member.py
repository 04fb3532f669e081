"""The common part of `GroupMember` and `SyncGroupMember`: settings, state, and calls that need no waiting."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from random import random
from typing import Any, Unpack

from ringleader.clients.checks import check
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.errors import ClientError, MembershipError, MembershipOverError
from ringleader.clients.group.callbacks.callers import Caller
from ringleader.clients.group.callbacks.listener import Listener
from ringleader.clients.group.driver import LOOP_ENDED, BeforeJoin, Delegate, Driver, Leader, Watch
from ringleader.clients.group.leading.matching import Choice
from ringleader.clients.group.machine.classic import classic
from ringleader.clients.group.machine.machine import MemberMachine
from ringleader.clients.group.settings import GivenUp, MemberSettings
from ringleader.clients.metrics import MemberMetrics
from ringleader.clients.model import Assigned, MemberInfo, MemberProtocol, Offsets
from ringleader.clients.offsets.member_offsets import Progress
from ringleader.clients.options import MemberOptions, check_call, cluster_of

COMMIT_TIMEOUT_S = 30.0
READY_TIMEOUT_S = 30.0
STOP_TIMEOUT_S = 30.0
CLIENT_ID = "ringleader-member"

Assignments = Mapping[str, bytes]
AssignCallback = Callable[[str, list[MemberInfo]], "Assignments | Awaitable[Assignments]"]


class Member:
    """The common part of both kinds of members."""

    _caller: Caller | None = None

    def __init__(
        self,
        bootstrap: str | Sequence[str],
        group_id: str,
        *,
        protocols: Sequence[MemberProtocol],
        protocol_type: str = "consumer",
        assign: AssignCallback | None = None,
        given_up: GivenUp | None = None,
        leader: Leader | None = None,
        delegate: Delegate | None = None,
        watch: Watch | None = None,
        before_join: BeforeJoin | None = None,
        consumed: Progress | None = None,
        machine: Callable[[MemberSettings], MemberMachine] | None = None,
        **options: Unpack[MemberOptions],
    ) -> None:
        """Does not connect yet. Raises TypeError for an option that there is not, ValueError for values that
        cannot work.

        `assign(protocol, members)` runs when this member leads: it returns each member's assignment as bytes.
        `on_assigned` gets the new assignment; `on_revoked` has to give it up before the group goes on (the
        rejoin waits for it, at most until the rebalance timeout); `on_lost` is called when it is gone
        already; `on_failed` when the membership ended with an error. With `given_up(before, after)` the
        member keeps its assignment while it rejoins (KIP-429): `on_revoked` is asked only for what that
        function says is in the assignment before and not in the new one, and then the member joins once more;
        the group's `assign` must not give out what another member still holds. `options`: see `MemberOptions`
        and `MemberSettings`. `leader`, `delegate`, `watch`, `before_join`, `consumed` and
        `machine` are for code that works inside of the driver, see
        `ringleader.clients.group.subscription` and `ringleader.clients.offsets.consumed`."""
        call = f"{type(self).__name__}()"
        check_call(call, bootstrap, group_id, options, MemberOptions)
        for name, callback in (("assign", assign), ("given_up", given_up)):
            check(name, callback, Callable[..., Any] | None, call)
        if assign is None and leader is None and machine is None:
            raise ValueError("an assign callback is needed: any member may become the leader")
        given: dict[str, Any] = dict(options)
        members = {name: given[name] for name in MemberSettings.__slots__ if name in given}
        self.settings = MemberSettings(
            group_id=group_id, protocol_type=protocol_type, given_up=given_up, **members
        )
        client_id = options.get("client_id", CLIENT_ID)

        def make_cluster() -> Cluster:
            return cluster_of(
                bootstrap,
                options,
                client_id=client_id,
                request_timeout_ms=self.settings.request_timeout_ms,
                connect_timeout_ms=min(10_000, self.settings.session_timeout_ms // 3),
            )

        self._assign = assign
        self._on_assigned, self._on_revoked = options.get("on_assigned"), options.get("on_revoked")
        self._on_lost, self._on_failed = options.get("on_lost"), options.get("on_failed")
        self.subscription: Choice | None = None
        """Of a member that subscribes to topics: which."""
        self._assigned: Assigned | None = None
        self._driver = Driver(
            make_cluster,
            MemberMachine(classic(self.settings, protocols, random))
            if machine is None
            else machine(self.settings),
            self._listener(),
            client_id=client_id,
            leader=leader,
            delegate=delegate,
            watch=watch,
            before_join=before_join,
            consumed=consumed,
        )

    def _listener(self) -> Listener:
        raise NotImplementedError

    # ---- its state ----

    @property
    def machine(self) -> MemberMachine:
        """The member as a machine. It is run by the member's own thread: look, and do not touch."""
        return self._driver.machine

    @property
    def assigned(self) -> Assigned | None:
        """The assignment that this member holds; None from the moment a rebalance asks for all of it."""
        return None if self._driver.ended.is_set() else self._assigned

    @property
    def generation(self) -> int:
        """Generation of the group that this member is in; -1: none."""
        return self._driver.machine.state.generation

    @property
    def member_id(self) -> str:
        """The id that the coordinator gave; "" before that."""
        return self._driver.machine.state.member_id

    @property
    def is_leader(self) -> bool:
        """Whether this member leads the generation of its assignment."""
        assigned = self.assigned
        return assigned is not None and assigned.is_leader

    @property
    def error(self) -> MembershipError | None:
        """The error that ended the membership, if one did."""
        return self._driver.machine.state.error

    @property
    def ended(self) -> bool:
        """Whether it has left, or was ended by an error."""
        return self._driver.ended.is_set()

    def metrics(self) -> MemberMetrics:
        """Its current figures."""
        return self._driver.metrics()

    # ---- calls of the application ----

    def polled(self) -> None:
        """The application makes progress. From any thread, as often as it likes.

        With `max_poll_interval_ms`: a member that has held an assignment for that time without it leaves the
        group (`on_lost` with the reason; a static member only falls silent), and joins again at the next one.
        Time without an assignment and time in which a revocation waits for the application do not count.
        `wait_assigned` and the beginning of `working` say it, too.
        """
        self._driver.polled()

    def store(self, offsets: Offsets, *, generation: int | None = None) -> None:
        """These are processed: what auto-commit commits. From any thread; sends no request.

        Offsets that were stored for an assignment go with it if it is lost. `generation`: of the assignment
        that the work belongs to. Raises CommitFailedError if that is over, or if there is no assignment."""
        self._driver.offsets.store(offsets, generation)

    def commit_nowait(
        self,
        offsets: Offsets,
        *,
        generation: int | None = None,
        on_done: Callable[[ClientError | None], None] | None = None,
    ) -> None:
        """Commit in one try, without waiting for it. From any thread.

        It stands in the same queue as `commit`: neither overtakes the other. Those that wait next to each
        other are made as one, the newest offset of each partition counts. `on_done` runs where callbacks run
        and gets the error, or None; without it a failure is a line in the log. Raises MembershipOverError.
        """
        self._driver.offsets.commit_nowait(offsets, generation, on_done)

    def _describe(self) -> str:
        return f"group {self.settings.group_id!r}: {self._driver.describe()}"

    def _check_new(self) -> None:
        if self._caller is not None:
            raise MembershipError(f"group {self.settings.group_id!r}: this member was started before")

    def _check_wait(self) -> None:
        """RuntimeError where it would wait for itself."""
        if self._caller is not None and self._caller.inside():
            group = self.settings.group_id
            raise RuntimeError(
                f"group {group!r}: a callback cannot wait for an assignment: that comes after it"
            )

    def _check_running(self) -> None:
        """Raises why this member is over, or that it never began."""
        if self.error is not None:
            raise self.error
        group = f"group {self.settings.group_id!r}"
        if self._caller is None:
            raise MembershipOverError(f"{group}: this member was never started")
        if not self._caller.alive():
            raise MembershipOverError(f"{group}: {LOOP_ENDED}, and this member with it: make a new one")
        if self._driver.ended.is_set():
            raise MembershipOverError(f"{group}: this member has left")

    def _assigned_if_any(self) -> Assigned | None:
        """The assignment if there is one, None if one may come; raises why none will come."""
        self._check_running()
        return self._assigned
