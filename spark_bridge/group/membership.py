"""The partitions that this query owns, and the hold on them while a batch is in flight.

Several threads meet here: those of the query's members (heartbeats, assignments, revocations) and the
worker's main thread, which Spark calls. A partition that is revoked while a batch reads it is given up
only after that batch has been committed, bounded by the rebalance timeout; an idle one goes at once.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import Protocol

from ringleader.clients.model import TopicPartition
from ringleader.spark_bridge.values import Committed, CommitToken


class CommitRefusedError(Exception):
    """The group did not take a commit because the member is not (any more, or not yet) part of that
    generation."""


class GroupUnavailableError(Exception):
    """The coordinator cannot be reached, or says "later": the same call may work in a moment.

    ``unknown_topic``: what it waits for is a topic that it does not know (any more).
    """

    def __init__(self, message: str, unknown_topic: bool = False) -> None:
        super().__init__(message)
        self.unknown_topic = unknown_topic


@dataclass(frozen=True, slots=True)
class OwnedPartition:
    """One unbroken time in which one member of this query owns one partition.

    It goes on through rebalances that leave the partition with that member. When the partition is given
    up and comes back it is another one: in between another member may have gone on.
    """

    partition: TopicPartition
    index: int
    """Which of the query's members."""
    number: int


@dataclass(frozen=True, slots=True)
class MemberCommit:
    """The commit of one member of the query: next offsets to read, as a member of that generation."""

    index: int
    generation: int
    offsets: Mapping[TopicPartition, int]
    token: CommitToken | None = None


class Group(Protocol):
    """The calls of the source to its membership. Calls block; errors as named."""

    def empty(self) -> bool:
        """Before ``start``: whether the group has no member. Raises GroupUnavailableError."""

    def start(self, ownership: Ownership, alone: bool) -> None:
        """Join; from now on ``ownership`` gets assignments and revocations. Returns at once.

        ``alone``: the query is one member and waits for no others, so the group need not either.
        """

    def grow(self, member_count: int) -> None:
        """Join with more members: ``member_count`` in all. ``ownership`` grows with them."""

    def rebalance(self, reason: str) -> None:
        """There are other partitions than the group has dealt out: deal out again if a member of this query
        leads it."""

    def commit(
        self, parts: Sequence[MemberCommit]
    ) -> list[CommitRefusedError | GroupUnavailableError | None]:
        """Commit each part by its member, all at the same time. Returns the outcome of each; None:
        committed."""

    def committed(self, partitions: frozenset[TopicPartition]) -> dict[TopicPartition, Committed]:
        """The group's offsets; partitions without one are left out. Raises GroupUnavailableError."""

    def stable(self) -> bool:
        """Whether all members of this query are in one generation with nothing under way."""

    def newest_generation(self) -> int:
        """The newest that a member of this query is in; -1: none yet."""

    def others(self) -> list[str]:
        """The members that are not of this query, in words. Raises GroupUnavailableError."""

    def leave(self, reason: str, for_good: bool = False) -> None:
        """End all threads, leaving at once. Static members stay in the group until their session ends
        unless it is ``for_good``. May be called twice, and before ``start``."""


@dataclass(slots=True)
class _Revocation:
    """The call for which a member waits before it joins again."""

    done: Future[None]
    left: set[OwnedPartition]
    everything: bool

    def finish(self) -> None:
        """Tell the member, which may have stopped waiting this very moment."""
        with contextlib.suppress(InvalidStateError):
            self.done.set_result(None)


@dataclass(slots=True)
class _Member:
    """One member of this query. ``has_assignment``: perhaps an empty one."""

    generation: int = -1
    member_id: str = ""
    has_assignment: bool = False
    revocation: _Revocation | None = None


@dataclass(slots=True)
class _State:
    owned: dict[TopicPartition, OwnedPartition] = field(default_factory=dict)
    going: set[OwnedPartition] = field(default_factory=set)
    busy: set[OwnedPartition] = field(default_factory=set)
    failure: BaseException | None = None


class Ownership:
    """The partitions of this query's members, and which of them a batch reads right now. Thread-safe."""

    def __init__(self, member_count: int = 1) -> None:
        self._changed = threading.Condition()
        self.member_count = member_count
        self._members = [_Member() for _ in range(member_count)]
        self._state = _State()
        self._numbers = itertools.count(1)

    def grow(self, member_count: int) -> None:
        """Take over the number of members."""
        with self._changed:
            self._members += [_Member() for _ in range(member_count - self.member_count)]
            self.member_count = member_count

    # -- the members' threads

    def assigned(
        self, index: int, generation: int, member_id: str, partitions: Iterable[TopicPartition]
    ) -> None:
        """A rebalance ended with this assignment of that member. Partitions that it had before go on."""
        with self._changed:
            state, mine = self._state, self._members[index]
            mine.generation, mine.member_id, mine.has_assignment = generation, member_id, True
            assignment = set(partitions)
            self._forget(t for t in self._of(index) if t.partition not in assignment)
            for tp in assignment:
                held = state.owned.get(tp)
                if held is None or held.index != index or held in state.going:
                    state.owned[tp] = OwnedPartition(tp, index, next(self._numbers))
            self._changed.notify_all()

    def revoke(
        self, index: int, generation: int, partitions: Iterable[TopicPartition] | None = None
    ) -> Future[None]:
        """That member is to give up these partitions, or (None) everything, and then joins again.

        The future is done when no batch reads them any more: at once when they are idle.
        """
        with self._changed:
            mine = self._members[index]
            mine.generation = generation
            wanted = None if partitions is None else set(partitions)
            going = {t for t in self._of(index) if wanted is None or t.partition in wanted}
            if mine.revocation is not None:
                mine.revocation.finish()
            found = mine.revocation = _Revocation(Future(), going, wanted is None)
            self._state.going |= going
            self._release()
            self._changed.notify_all()
            return found.done

    def lost(self, index: int, partitions: Iterable[TopicPartition] | None = None) -> None:
        """These partitions of that member, or (None) its whole assignment, are gone without asking: fenced,
        or the hold lasted too long."""
        with self._changed:
            wanted = None if partitions is None else set(partitions)
            self._forget(t for t in self._of(index) if wanted is None or t.partition in wanted)
            if wanted is None:
                self._members[index].has_assignment = False
            self._release()
            self._changed.notify_all()

    def failed(self, error: BaseException) -> None:
        """A membership ended with an error that no retry cures."""
        with self._changed:
            self._state.failure = self._state.failure or error
            self._changed.notify_all()

    # -- the thread that Spark calls

    def check(self) -> None:
        """Raise what ``failed`` was given, if it was."""
        with self._changed:
            self._check()

    def owned(self) -> dict[TopicPartition, OwnedPartition]:
        """The partitions that may be read now: those that are ours and not about to go."""
        with self._changed:
            self._check()
            state = self._state
            return {tp: held for tp, held in state.owned.items() if held not in state.going}

    def wait_assigned(self, timeout_s: float, everybody: bool = False) -> bool:
        """Wait until a member (or every one) has an assignment; whether one has. Raises as ``check``."""

        def reached() -> bool:
            self._check()
            return (all if everybody else any)(mine.has_assignment for mine in self._members)

        with self._changed:
            self._wait(reached, timeout_s)
            return any(mine.has_assignment for mine in self._members)

    def wait_change(self, timeout_s: float) -> None:
        """Wait until something changes, or the time is over."""
        with self._changed:
            if self._state.failure is None:
                self._changed.wait(timeout_s)

    def begin(self, owned: Iterable[OwnedPartition]) -> frozenset[OwnedPartition]:
        """A batch over these starts. Those that may be read: the others are gone or going."""
        with self._changed:
            state = self._state
            mine = {t for t in owned if state.owned.get(t.partition) == t and t not in state.going}
            state.busy |= mine
            return frozenset(mine)

    def end(self, owned: Iterable[OwnedPartition] | None = None) -> None:
        """The batch over these (None: over everything) has been committed or given up: a revocation that
        waits for them goes on."""
        with self._changed:
            if owned is None:
                self._state.busy.clear()
            else:
                self._state.busy.difference_update(owned)
            self._release()
            self._changed.notify_all()

    def holds(self, own: OwnedPartition) -> bool:
        """Whether it goes on, a revocation that waits for the batch included."""
        with self._changed:
            return self._state.owned.get(own.partition) == own

    def commits_of(self, commits: Mapping[OwnedPartition, int], token: CommitToken) -> list[MemberCommit]:
        """These commits by member, as of its generation now; those of partitions that it does not have any
        more are left out.

        Both in one look: by a later generation the partition may be another member's, which has gone on.
        """
        with self._changed:
            by_index: dict[int, dict[TopicPartition, int]] = {}
            for own, position in commits.items():
                if self._state.owned.get(own.partition) == own:
                    by_index.setdefault(own.index, {})[own.partition] = position
            return [
                MemberCommit(index, self._members[index].generation, offsets, token)
                for index, offsets in sorted(by_index.items())
            ]

    def generation(self, index: int) -> int:
        """The generation of that member's assignment."""
        with self._changed:
            return self._members[index].generation

    def members(self) -> dict[str, list[TopicPartition]]:
        """Member id -> its partitions, sorted; of members that have an assignment."""
        with self._changed:
            return {
                mine.member_id: sorted(t.partition for t in self._of(index))
                for index, mine in enumerate(self._members)
                if mine.has_assignment
            }

    # -- with the lock held

    def _check(self) -> None:
        if self._state.failure is not None:
            raise self._state.failure

    def _wait(self, reached: Callable[[], bool], timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while not reached():
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return
            self._changed.wait(left_s)

    def _of(self, index: int) -> list[OwnedPartition]:
        return [held for held in self._state.owned.values() if held.index == index]

    def _forget(self, owned: Iterable[OwnedPartition]) -> None:
        state = self._state
        for held in list(owned):
            state.going.discard(held)
            if state.owned.get(held.partition) == held:
                del state.owned[held.partition]

    def _release(self) -> None:
        """Give up what was revoked and is idle; tell each member whose revocation is complete."""
        state = self._state
        for mine in self._members:
            found = mine.revocation
            if found is None:
                continue
            idle = {t for t in found.left if t not in state.busy or state.owned.get(t.partition) != t}
            self._forget(idle)
            found.left -= idle
            if not found.left:
                mine.revocation = None
                mine.has_assignment = mine.has_assignment and not found.everything
                found.finish()
