"""Runs the user's callbacks for a driver, and waits for the work in hand before a revocation."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from ringleader.clients.errors import MembershipError
from ringleader.clients.group.callbacks.callers import Caller, Job, LoopEndedError
from ringleader.clients.group.callbacks.work import WorkGate
from ringleader.clients.group.machine.actions import TellRevoked
from ringleader.clients.model import Assigned, Lost, MemberInfo, Revoked

logger = logging.getLogger("ringleader.clients.group.membership")


@dataclass(frozen=True, slots=True)
class Listener:
    """The functions that the driver calls, as jobs of the caller. Each may return an object that the caller
    can wait for. `assigned` gets the count of closings with which it opens the gate."""

    assigned: Callable[[Assigned, int], Any]
    revoking: Callable[[Revoked], Any]
    """An assignment is to be given up, and there is work in hand first; `revoked` comes after that."""
    revoked: Callable[[Revoked], Any]
    lost: Callable[[Lost], Any]
    over: Callable[[MembershipError | None], Any]
    assign: Callable[[str, list[MemberInfo]], Any] | None


class Clock(Protocol):
    """Measures callbacks. From any thread."""

    def callback_began(self) -> None:
        """One runs from now on."""

    def callback_ended(self) -> None:
        """It has ended, or does not matter any more."""


class Callbacks:
    """Belongs to the driver's loop. `step` runs a function there, from any thread."""

    def __init__(
        self,
        name: str,
        listener: Listener,
        gate: WorkGate,
        step: Callable[[Callable[[], None]], None],
        clock: Clock,
    ) -> None:
        self._clock = clock
        self.caller: Caller | None = None
        self._name = name
        self._listener = listener
        self._gate = gate
        self._step = step

    def assigned(self, assigned: Assigned) -> None:
        """Run `on_assigned`; then work may begin."""
        closings = self._gate.closings
        self.post("on_assigned", lambda: self._listener.assigned(assigned, closings))

    def lost(self, lost: Lost) -> None:
        """Run `on_lost`. No work begins until there is an assignment again."""
        if not lost.partial:
            self._gate.close()
        self.post("on_lost", lambda: self._listener.lost(lost))

    def over(self, error: MembershipError | None) -> None:
        """Run `on_failed`, if it is one."""
        self._gate.close()
        self.post("on_failed", lambda: self._listener.over(error))

    def assign(
        self, protocol: str, members: list[MemberInfo], done: Callable[[Any, BaseException | None], None]
    ) -> None:
        """Run `assign`; `done` gets its result."""
        assign = self._listener.assign
        assert assign is not None
        self._post(Job("assign", lambda: assign(protocol, list(members)), done))

    async def revoked(self, action: TellRevoked, now_ms: int) -> None:
        """Let no work begin, wait for the work in hand, run `on_revoked` and wait for it. Cancelled: what
        runs is cancelled, too."""
        await self._quiesce(action.revoked, (action.work_until_ms - now_ms) / 1000)
        ended = asyncio.get_running_loop().create_future()

        def done(_result: Any, error: BaseException | None) -> None:
            self._log(job.name, error)
            self._step(lambda: _set(ended))

        job = Job("on_revoked", lambda: self._listener.revoked(action.revoked), done)
        self._post(job)
        try:
            await ended
        except asyncio.CancelledError:
            assert self.caller is not None
            self.caller.cancel(job)
            self._clock.callback_ended()
            raise

    async def _quiesce(self, revoked: Revoked, bound_s: float) -> None:
        idle = asyncio.get_running_loop().create_future()
        count = self._gate.close(lambda: self._step(lambda: _set(idle)))
        if count == 0:
            return
        self.post("on_revoked", lambda: self._listener.revoking(revoked))
        logger.info("%s: waiting for the end of the work in hand (%d)", self._name, count)
        try:
            async with asyncio.timeout(max(0.0, bound_s)):
                await idle
        except TimeoutError:
            logger.warning(
                "%s: %d of %d pieces of work in hand have not ended within %.1f s: giving up the "
                "assignment all the same",
                self._name,
                self._gate.in_hand,
                count,
                bound_s,
            )

    def post(self, name: str, run: Callable[[], Any]) -> None:
        """Run a callback; an exception is logged."""
        self._post(Job(name, run, lambda _result, error: self._log(name, error)))

    def _post(self, job: Job) -> None:
        assert self.caller is not None
        run, done = job.run, job.done

        def timed() -> Any:
            self._clock.callback_began()
            return run()

        def ended(result: Any, error: BaseException | None) -> None:
            self._clock.callback_ended()
            done(result, error)

        job.run, job.done = timed, ended
        self.caller.post(job)

    def _log(self, name: str, error: BaseException | None) -> None:
        if error is not None and not isinstance(error, LoopEndedError):
            logger.error("%s: %s raised", self._name, name, exc_info=error)


def _set(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
