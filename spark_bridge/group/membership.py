"""What this query owns, and the hold on it while a batch is in flight.

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
class Tenure:
    """One unbroken time in which one member of this query owns one partition.

    It goes on through rebalances that leave the partition with that member. When the partition is given
    up and comes back it is another tenure: in between somebody else may have gone on.
    """

    partition: TopicPartition
    slot: int
    number: int


@dataclass(frozen=True, slots=True)
class Part:
    """What one member of the query commits: next offsets to read, as a member of that generation."""

    slot: int
    generation: int
    offsets: Mapping[TopicPartition, int]
    token: CommitToken | None = None


class Group(Protocol):
    """What the source asks of its membership. Calls block; errors as named."""

    def empty(self) -> bool:
        """Before ``start``: whether nobody is in the group. Raises GroupUnavailableError."""

    def start(self, holdings: Holdings) -> None:
        """Join; from now on ``holdings`` is told of assignments and revocations. Returns at once."""

    def grow(self, slots: int) -> None:
        """Join with more members: ``slots`` in all. ``holdings`` grows with them."""

    def deal_out(self, reason: str) -> None:
        """There are other partitions than the group has dealt out: deal out anew if a member of this query
        leads it."""

    def commit(self, parts: Sequence[Part]) -> list[CommitRefusedError | GroupUnavailableError | None]:
        """Commit each part by its member, all at the same time. What became of each; None: committed."""

    def committed(self, partitions: frozenset[TopicPartition]) -> dict[TopicPartition, Committed]:
        """The group's offsets; partitions without one are left out. Raises GroupUnavailableError."""

    def calm(self) -> bool:
        """Whether all members of this query are in one generation with nothing under way."""

    def others(self) -> list[str]:
        """The members that are not of this query, in words. Raises GroupUnavailableError."""

    def leave(self, reason: str, for_good: bool = False) -> None:
        """End all threads, leaving at once. Static members stay in the group until their session ends
        unless it is ``for_good``. May be called twice, and before ``start``."""


@dataclass(slots=True)
class _Revocation:
    """What a member waits for before it joins again."""

    done: Future[None]
    left: set[Tenure]
    everything: bool

    def finish(self) -> None:
        """Tell the member, which may have stopped waiting this very moment."""
        with contextlib.suppress(InvalidStateError):
            self.done.set_result(None)


@dataclass(slots=True)
class _Slot:
    """One member of this query. ``here``: it has a share, perhaps an empty one."""

    generation: int = -1
    member_id: str = ""
    here: bool = False
    revocation: _Revocation | None = None


@dataclass(slots=True)
class _State:
    owned: dict[TopicPartition, Tenure] = field(default_factory=dict)
    going: set[Tenure] = field(default_factory=set)
    busy: set[Tenure] = field(default_factory=set)
    failure: BaseException | None = None


class Holdings:
    """The partitions of this query's members, and which of them a batch reads right now. Thread-safe."""

    def __init__(self, slots: int = 1) -> None:
        self._changed = threading.Condition()
        self.slots = slots
        self._slots = [_Slot() for _ in range(slots)]
        self._state = _State()
        self._numbers = itertools.count(1)

    def grow(self, slots: int) -> None:
        """There are so many members now."""
        with self._changed:
            self._slots += [_Slot() for _ in range(slots - self.slots)]
            self.slots = slots

    # -- the members' threads

    def assigned(
        self, slot: int, generation: int, member_id: str, partitions: Iterable[TopicPartition]
    ) -> None:
        """A rebalance ended with this share of that member. What it had before goes on."""
        with self._changed:
            state, mine = self._state, self._slots[slot]
            mine.generation, mine.member_id, mine.here = generation, member_id, True
            share = set(partitions)
            self._forget(t for t in self._of(slot) if t.partition not in share)
            for tp in share:
                held = state.owned.get(tp)
                if held is None or held.slot != slot or held in state.going:
                    state.owned[tp] = Tenure(tp, slot, next(self._numbers))
            self._changed.notify_all()

    def revoke(
        self, slot: int, generation: int, partitions: Iterable[TopicPartition] | None = None
    ) -> Future[None]:
        """That member is to give up these partitions, or (None) everything, and then joins again.

        The future is done when no batch reads them any more: at once when they are idle.
        """
        with self._changed:
            mine = self._slots[slot]
            mine.generation = generation
            wanted = None if partitions is None else set(partitions)
            going = {t for t in self._of(slot) if wanted is None or t.partition in wanted}
            if mine.revocation is not None:
                mine.revocation.finish()
            found = mine.revocation = _Revocation(Future(), going, wanted is None)
            self._state.going |= going
            self._release()
            self._changed.notify_all()
            return found.done

    def lost(self, slot: int, partitions: Iterable[TopicPartition] | None = None) -> None:
        """These partitions of that member, or (None) its whole share, are gone without asking: fenced, or
        the hold lasted too long."""
        with self._changed:
            wanted = None if partitions is None else set(partitions)
            self._forget(t for t in self._of(slot) if wanted is None or t.partition in wanted)
            if wanted is None:
                self._slots[slot].here = False
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

    def owned(self) -> dict[TopicPartition, Tenure]:
        """What may be read now: partitions that are ours and not about to go."""
        with self._changed:
            self._check()
            state = self._state
            return {tp: held for tp, held in state.owned.items() if held not in state.going}

    def wait_here(self, timeout_s: float, everybody: bool = False) -> bool:
        """Wait until a member (or every one) has a share; whether one has. Raises as ``check``."""

        def reached() -> bool:
            self._check()
            return (all if everybody else any)(mine.here for mine in self._slots)

        with self._changed:
            self._wait(reached, timeout_s)
            return any(mine.here for mine in self._slots)

    def wait_change(self, timeout_s: float) -> None:
        """Wait until something changes, or the time is over."""
        with self._changed:
            if self._state.failure is None:
                self._changed.wait(timeout_s)

    def begin(self, tenures: Iterable[Tenure]) -> frozenset[Tenure]:
        """A batch over these starts. Those that may be read: the others are gone or going."""
        with self._changed:
            state = self._state
            mine = {t for t in tenures if state.owned.get(t.partition) == t and t not in state.going}
            state.busy |= mine
            return frozenset(mine)

    def end(self, tenures: Iterable[Tenure] | None = None) -> None:
        """The batch over these (None: over everything) has been committed or given up: a revocation that
        waits for them goes on."""
        with self._changed:
            if tenures is None:
                self._state.busy.clear()
            else:
                self._state.busy.difference_update(tenures)
            self._release()
            self._changed.notify_all()

    def holds(self, tenure: Tenure) -> bool:
        """Whether it goes on, a revocation that waits for the batch included."""
        with self._changed:
            return self._state.owned.get(tenure.partition) == tenure

    def parts(self, commits: Mapping[Tenure, int], token: CommitToken) -> list[Part]:
        """These commits by member, as of its generation now; those of partitions that it does not have any
        more are left out.

        Both in one look: by a later generation the partition may be somebody else's, who has gone on.
        """
        with self._changed:
            by_slot: dict[int, dict[TopicPartition, int]] = {}
            for tenure, position in commits.items():
                if self._state.owned.get(tenure.partition) == tenure:
                    by_slot.setdefault(tenure.slot, {})[tenure.partition] = position
            return [
                Part(slot, self._slots[slot].generation, offsets, token)
                for slot, offsets in sorted(by_slot.items())
            ]

    def generation(self, slot: int) -> int:
        """The generation of that member's share."""
        with self._changed:
            return self._slots[slot].generation

    def members(self) -> dict[str, list[TopicPartition]]:
        """Member id -> its partitions, sorted; of members that have a share."""
        with self._changed:
            return {
                mine.member_id: sorted(t.partition for t in self._of(slot))
                for slot, mine in enumerate(self._slots)
                if mine.here
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

    def _of(self, slot: int) -> list[Tenure]:
        return [held for held in self._state.owned.values() if held.slot == slot]

    def _forget(self, tenures: Iterable[Tenure]) -> None:
        state = self._state
        for held in list(tenures):
            state.going.discard(held)
            if state.owned.get(held.partition) == held:
                del state.owned[held.partition]

    def _release(self) -> None:
        """Give up what was revoked and is idle; tell each member whose revocation is complete."""
        state = self._state
        for mine in self._slots:
            found = mine.revocation
            if found is None:
                continue
            idle = {t for t in found.left if t not in state.busy or state.owned.get(t.partition) != t}
            self._forget(idle)
            found.left -= idle
            if not found.left:
                mine.revocation = None
                mine.here = mine.here and not found.everything
                found.finish()
