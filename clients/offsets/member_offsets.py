"""A member's offsets: the commits of the application, those of stored offsets, and what is committed."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Protocol

from ringleader.clients.checks import check
from ringleader.clients.errors import ClientError, CommitFailedError, MembershipOverError
from ringleader.clients.group.assignment import assigned_partitions
from ringleader.clients.model import Lost, OffsetAndMetadata, Offsets, Revoked, TopicPartition, checked
from ringleader.clients.offsets.commit_queue import Commit, CommitQueue
from ringleader.clients.offsets.group_offsets import GroupOffsets, Host
from ringleader.clients.offsets.stored import Stored, StoredOffsets
from ringleader.protocol.errors import MalformedError

logger = logging.getLogger("ringleader.clients.group.membership")

CONSUMER = "consumer"
OnDone = Callable[[ClientError | None], None]


class Progress(Protocol):
    """The reader of the member's partitions, which knows how far the application is. From any thread."""

    def uncommitted(self) -> tuple[int, Offsets]:
        """The generation of the present assignment, and the offsets that are processed and not committed."""

    def committed(self, offsets: Offsets) -> None:
        """The group has these now."""


class MemberOffsets:
    """A commit waits in the `queue`, and `GroupOffsets` writes it to the group. `tell(name, run)` runs a
    callback of the application. `name` begins its log lines. `consumed` is asked at each auto-commit."""

    def __init__(
        self,
        host: Host,
        name: str,
        tell: Callable[[str, Callable[[], None]], None],
        consumed: Progress | None = None,
    ) -> None:
        self._host = host
        self._name = name
        self._tell = tell
        self._settings = host.machine.state.settings
        self.stored = StoredOffsets(self._settings.group_id, host.machine.state.holds)
        self.queue = CommitQueue(host.machine.state.counters, host.now_ms, host.over_text)
        self._consumed = consumed
        self._group = GroupOffsets(host)
        self._saving = False
        self._order = threading.Lock()
        """So that what is stored never gets into the queue behind a commit that came later."""

    # ---- from any thread ----

    def commit(self, offsets: Offsets, generation: int | None, timeout_ms: int) -> Future[None]:
        """Commit in turn, with retries."""
        future: Future[None] = Future()

        def end(error: Exception | None) -> None:
            if future.set_running_or_notify_cancel():
                future.set_result(None) if error is None else future.set_exception(error)

        check("generation", generation, int | None)
        commit = self._new(offsets, timeout_ms, repeats=True)
        commit.ends.append(end)
        future.add_done_callback(lambda done: commit.drop() if done.cancelled() else None)
        self._add(commit, generation)
        return future

    def commit_nowait(self, offsets: Offsets, generation: int | None, on_done: OnDone | None) -> None:
        """Commit in turn, in one try."""
        check("generation", generation, int | None)
        check("on_done", on_done, Callable[..., object] | None)
        commit = self._new(offsets, self._settings.request_timeout_ms, repeats=False)
        if on_done is None:
            commit.warn = self._warn
        else:
            callback = on_done
            commit.ends.append(lambda error: self._tell("on_done", lambda: callback(_client_error(error))))
        self._add(commit, generation)

    def store(self, offsets: Offsets, generation: int | None) -> None:
        """These are processed."""
        check("generation", generation, int | None)
        self.stored.store(checked(offsets), generation)

    def _add(self, commit: Commit, generation: int | None) -> None:
        present = commit.identity[0]
        if generation not in (None, present) and not self._host.machine.state.holds(generation):
            group = f"group {self._settings.group_id!r}"
            text = f"{group}: generation {generation} is over, this is generation {present}"
            commit.end(CommitFailedError(text))
            return
        with self._order:
            self.stored.replaced(commit.offsets)
            taken = self.queue.add(commit)
        if not taken:
            raise MembershipOverError(self._host.over_text())

    def _new(self, offsets: Offsets, timeout_ms: int, repeats: bool) -> Commit:
        state = self._host.machine.state
        # Before the generation: what changes meanwhile makes the commit older, not newer.
        shrinks = state.shrinks
        now_ms = self._host.now_ms()
        return Commit(checked(offsets), state.identity, now_ms, timeout_ms, repeats, shrinks=shrinks)

    def _warn(self, error: Exception | None) -> None:
        if error is not None:
            logger.warning("%s: a commit failed: %s", self._name, error)

    # ---- in the driver's loop ----

    async def run(self) -> None:
        """Make commits, while the member lives."""
        await self.queue.run(self._group.write)

    async def run_auto_commit(self, interval_ms: int) -> None:
        """Commit what is stored, again and again."""
        while True:
            await asyncio.sleep(interval_ms / 1000)
            if not self._saving and self._host.machine.state.held is not None:
                self._save(self._settings.request_timeout_ms, repeats=False)

    def _save(self, timeout_ms: int, repeats: bool) -> Commit | None:
        with self._order:
            stored = self.uncommitted()
            if not stored:
                return None
            commit = self._new(stored, timeout_ms, repeats)
            commit.ends.append(lambda error: self._saved(stored, error))
            self._saving = self.queue.add(commit)
        return commit

    def uncommitted(self) -> Stored:
        """The offsets that auto-commit has to commit. From any thread."""
        return self.stored.uncommitted() | self._consumed_of_held()

    def _consumed_of_held(self) -> Stored:
        """Of partitions that the member holds: the application may not know yet what is gone."""
        state = self._host.machine.state
        if self._consumed is None:
            return {}
        generation, offsets = self._consumed.uncommitted()
        if not offsets or not state.holds(generation):
            return {}
        owned = {partition for one in state.owned for partition in _partitions(one) or ()}
        return {partition: value for partition, value in offsets.items() if partition in owned}

    def _saved(self, stored: Stored, error: Exception | None) -> None:
        self._saving = False
        if error is None:
            self.stored.committed(stored)
            if self._consumed is not None:
                self._consumed.committed(stored)
        else:
            logger.warning("%s: auto-commit of %d partitions failed: %s", self._name, len(stored), error)

    async def finish(self, until_ms: int) -> None:
        """Commit what is stored, and wait for all commits so far; at most `auto_commit_timeout_ms`, and less
        than until then."""
        now_ms = self._host.now_ms()
        # Something has to be left for the rest: a revocation that ends late is a lost assignment.
        bound_ms = min(self._settings.auto_commit_timeout_ms, (until_ms - now_ms) * 9 // 10)
        if bound_ms <= 0:
            return
        last = None
        if self._settings.auto_commit_interval_ms is not None:
            last = self._save(bound_ms, repeats=True)
        if last is None:
            if not len(self.queue):
                return
            last = self._new({}, bound_ms, repeats=True)  # it comes to its end when all before it have
            self.queue.add(last)
        ended = asyncio.get_running_loop().create_future()
        last.ends.append(lambda _error: None if ended.done() else ended.set_result(None))
        try:
            async with asyncio.timeout(bound_ms / 1000):
                await ended
        except TimeoutError:
            logger.warning("%s: commits have not ended within %.1f s", self._name, bound_ms / 1000)

    def forget(self, change: Revoked | Lost) -> None:
        """Forget what was stored for that assignment, or part of one: it is not this member's any more."""
        held = self._host.machine.state.held
        partitions = _partitions(change.assignment) if self._settings.protocol_type == CONSUMER else None
        dropped = self.stored.forget(partitions if change.partial else None)
        if change.partial and held is not None:
            self.stored.assigned(held.generation)
        if dropped:
            logger.warning(
                "%s: %d stored offsets of generation %d were not committed",
                self._name,
                dropped,
                change.generation,
            )

    async def committed(
        self, partitions: Iterable[TopicPartition] | None, timeout_ms: int
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """The group's committed offsets."""
        return await self._group.read(partitions, timeout_ms)


def _partitions(assignment: bytes) -> list[TopicPartition] | None:
    try:
        return assigned_partitions(assignment)
    except MalformedError:
        return None


def _client_error(error: Exception | None) -> ClientError | None:
    if error is None or isinstance(error, ClientError):
        return error
    wrapped = ClientError(f"the commit could not be made: {error!r}")
    wrapped.__cause__ = error
    return wrapped
