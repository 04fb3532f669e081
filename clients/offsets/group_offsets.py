"""The group's offsets at the coordinator: written and read by a member, with retries until time is over."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from ringleader.clients.connection.backoff import Backoff
from ringleader.clients.connection.requests import Request, in_parts
from ringleader.clients.errors import (
    BrokerError,
    ClientError,
    CommitFailedError,
    CoordinatorUnavailableError,
    MembershipOverError,
    RebalanceInProgressError,
    RetriableError,
)
from ringleader.clients.group.machine.machine import MemberMachine
from ringleader.clients.group.machine.phases import OVER, Phase
from ringleader.clients.model import Node, OffsetAndMetadata, TopicPartition
from ringleader.clients.offsets.commit_queue import Commit
from ringleader.clients.offsets.requests import (
    commit_errors,
    fetched_offsets,
    in_commits,
    offset_commit,
    offset_fetch,
)
from ringleader.clients.offsets.verdicts import Verdict, commit_error, judge_commit, judge_fetch
from ringleader.protocol.errors import ErrorCode, error_name

COMMITTING = (Phase.STABLE, Phase.REVOKING)
BETWEEN = (Phase.ASSIGNING, Phase.SYNCING)
"""Between JoinGroup and SyncGroup the coordinator accepts no commits of any member."""


OTHER_GENERATION = (
    ErrorCode.ILLEGAL_GENERATION,
    ErrorCode.REBALANCE_IN_PROGRESS,
    ErrorCode.STALE_MEMBER_EPOCH,
)
"""The group is in another generation than the commit. The last is KIP-848's."""


class Host(Protocol):
    """The driver of the machine, as far as offsets need it."""

    machine: MemberMachine

    def now_ms(self) -> int: ...

    def pump(self) -> None:
        """Do what the machine wants."""

    async def ask(self, node: Node, request: Request, timeout_ms: int) -> Any:
        """Send a request to the coordinator; raises a retriable error after that time."""

    async def change(self) -> None:
        """Wait until the machine has moved."""

    def over_text(self) -> str:
        """That the member is not running, and why."""


class GroupOffsets:
    """Belongs to the driver's event loop."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._settings = host.machine.state.settings

    async def write(self, commit: Commit) -> None:
        """Send it, as the member and in the generation that it names, or in a later one that still has all of
        that assignment; with retries or in one try. Many offsets take several requests, one after the other:
        an error of one ends the commit, and those before it count."""
        tries = _Tries(self._host, commit.deadline_ms)
        for part in in_commits(self._settings.group_id, commit.offsets):
            await self._write(commit, tries, part)

    async def _write(
        self, commit: Commit, tries: _Tries, left: dict[TopicPartition, int | OffsetAndMetadata]
    ) -> None:
        settings, host = self._settings, self._host
        while left:
            identity = await self._ready(commit)
            request = offset_commit(settings.group_id, *identity, settings.group_instance_id, left)
            sent_ms = host.now_ms()
            response = await tries.ask(request, commit.may_repeat)
            if response is None:
                continue
            errors = commit_errors(response)
            verdict, code = judge_commit(errors)
            if verdict is Verdict.MEMBERSHIP:
                host.machine.offsets_refused("OffsetCommit", code, identity, host.now_ms())
                host.pump()
                if self._comes_again(code, identity):
                    verdict = Verdict.RETRY
            else:
                host.machine.state.contact(sent_ms)
            left = {partition: value for partition, value in left.items() if partition in errors}
            if verdict is not Verdict.DONE:
                error = commit_error(code, settings.group_id, identity[0], errors)
                await tries.after(verdict, error, commit.may_repeat)

    def _comes_again(self, code: int, identity: tuple[int, str]) -> bool:
        """Whether the group has only gone on to a generation in which this member keeps what it has."""
        state, (generation, member_id) = self._host.machine.state, identity
        stays = member_id == state.member_id and state.holds(generation)
        return self._settings.cooperative and code in OTHER_GENERATION and stays

    async def _ready(self, commit: Commit) -> tuple[int, str]:
        """Wait until the coordinator may accept it; returns its identity then. Raises what makes it
        impossible."""
        state, deadline_ms = self._host.machine.state, commit.deadline_ms
        while True:
            self._check(commit)
            if state.phase not in BETWEEN:
                return state.identity
            try:
                async with asyncio.timeout(max(0, deadline_ms - self._host.now_ms()) / 1000):
                    await self._host.change()
            except TimeoutError:
                text = f"{state.group}: no commit while this member is {state.phase.value}"
                raise RebalanceInProgressError(text) from None

    def _check(self, commit: Commit) -> None:
        state, identity = self._host.machine.state, commit.identity
        group = state.group
        if state.phase in OVER:
            raise MembershipOverError(f"{group}: this member is not running ({state.phase.value})")
        if state.rest_reason:
            raise CommitFailedError(f"{group}: this member is out of the group: {state.rest_reason}")
        # A cooperative member may commit while it joins again, in the generation that it still holds.
        holds = state.phase in COMMITTING or state.held is not None
        if not holds or identity[0] < 0:
            raise RebalanceInProgressError(
                f"{group}: this member holds no assignment now ({state.phase.value})"
            )
        generation, member_id = identity
        lasts = state.holds(generation) and commit.shrinks == state.shrinks
        if member_id != state.member_id or not (generation == state.generation or lasts):
            now = state.generation
            raise CommitFailedError(f"{group}: generation {identity[0]} is over, this is generation {now}")

    async def read(
        self, partitions: Iterable[TopicPartition] | None, timeout_ms: int
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """The group's committed offsets: of all partitions (None) or of these; those without one left out."""
        tries = _Tries(self._host, self._host.now_ms() + timeout_ms)
        found: dict[TopicPartition, OffsetAndMetadata] = {}
        for part in [None] if partitions is None else in_parts(partitions):
            found |= await self._read(part, tries)
        return found

    async def _read(
        self, wanted: list[TopicPartition] | None, tries: _Tries
    ) -> Mapping[TopicPartition, OffsetAndMetadata]:
        group_id, machine = self._settings.group_id, self._host.machine
        while True:
            member = machine.state.rules.fetches_offsets_as()
            response = await tries.ask(offset_fetch(group_id, wanted, member=member))
            if response is None:
                continue
            fetched = fetched_offsets(response)
            verdict, code = judge_fetch(fetched.code, fetched.errors)
            if verdict is Verdict.DONE:
                return fetched.offsets
            if verdict is Verdict.MEMBERSHIP and member is not None:
                machine.offsets_refused("OffsetFetch", code, member, self._host.now_ms())
                self._host.pump()
                verdict = Verdict.RETRY  # as the member that it is then
            text = f"group {self._settings.group_id!r}: cannot fetch offsets: {error_name(code)}"
            kind = BrokerError if verdict is Verdict.REFUSED else RetriableError
            await tries.after(verdict, kind(text, code))


class _Tries:
    """Asks the coordinator until there is an answer to go on with, or time is over."""

    def __init__(self, host: Host, deadline_ms: int) -> None:
        settings = host.machine.state.settings
        self._host = host
        self._group = f"group {settings.group_id!r}"
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, random.random)
        self._deadline_ms = deadline_ms
        self._found = 0
        self._refusal: ClientError | None = None  # the last answer that asked for another try

    async def ask(self, request: Request, again: Callable[[], bool] = lambda: True) -> Any | None:
        """The answer; None when the connection failed: try again. Raises what is to be raised when time is
        over, or when there is to be no other try."""
        node = await self._coordinator()
        try:
            return await self._host.ask(node, request, max(1, self._left_ms()))
        except RetriableError as error:
            if self._left_ms() <= 0:  # the caller's time is over, which says nothing about the coordinator
                raise self._refusal or error from None
            await self.after(Verdict.FIND, error, again)
            return None

    async def after(
        self, verdict: Verdict, error: ClientError, again: Callable[[], bool] = lambda: True
    ) -> None:
        """Go on after that verdict, or raise."""
        if verdict is Verdict.FIND:
            self._host.machine.coordinator_lost(str(error), self._found, self._host.now_ms())
            self._host.pump()
        elif verdict is not Verdict.RETRY:
            raise error
        else:
            self._refusal = error
        wait_ms = self._backoff.next_ms()
        if wait_ms >= self._left_ms() or not again():
            raise error
        await asyncio.sleep(wait_ms / 1000)

    async def _coordinator(self) -> Node:
        state = self._host.machine.state
        while (node := state.link.coordinator) is None:
            if state.phase in OVER:
                raise MembershipOverError(f"{self._group}: this member is not running ({state.phase.value})")
            try:
                async with asyncio.timeout(max(0, self._left_ms()) / 1000):
                    await self._host.change()
            except TimeoutError:
                trouble = state.link.trouble
                raise CoordinatorUnavailableError(f"{self._group}: no coordinator: {trouble}") from None
        self._found = state.link.found
        return node

    def _left_ms(self) -> int:
        return self._deadline_ms - self._host.now_ms()
