"""How far an application is in the partitions that it reads: the one source of every commit of a consumer."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping

from ringleader.clients.errors import ClientError, CommitFailedError
from ringleader.clients.fetch.partition_state import PartitionState
from ringleader.clients.fetch.reader import Reader
from ringleader.clients.group.membership import GroupMember
from ringleader.clients.model import OffsetAndMetadata, Offsets, TopicPartition, with_metadata

logger = logging.getLogger("ringleader.clients.consumer")

ASSIGNMENT_WAIT_S = 2.0
"""How long a commit that crossed a rebalance waits for the new assignment."""


class ConsumedOffsets:
    """The offsets for every commit, of the application, and of the member when it commits by itself.

    A commit belongs to the generation that the application knows of: what it has may be another member's in a
    later one. Partitions that stayed through a rebalance go on under the next.
    """

    def __init__(self) -> None:
        self._reader: Reader | None = None
        self.generation = -1
        """Of the assignment that the application knows of."""
        self._revoked: dict[TopicPartition, PartitionState] = {}
        """Given up by the application, and not yet by the member: it still commits what is processed."""
        self._changed = asyncio.Event()

    def of(self, reader: Reader) -> None:
        """Of the partitions of this reader."""
        self._reader = reader

    # ---- from any thread ----

    def uncommitted(self) -> tuple[int, Mapping[TopicPartition, OffsetAndMetadata]]:
        """The generation of the present assignment, and the offsets that are processed and not known to be
        committed, those of revoked partitions included."""
        generation = self.generation  # first: what changes meanwhile makes it older, not newer
        return generation, _uncommitted(self._revoked | self._states())

    def committed(self, offsets: Offsets) -> None:
        """The group has these now."""
        states = self._revoked | self._states()
        for partition, value in offsets.items():
            if (state := states.get(partition)) is not None:
                state.committed = with_metadata(value)

    def _states(self) -> dict[TopicPartition, PartitionState]:
        return {} if self._reader is None else dict(self._reader.states)

    # ---- the assignment ----

    def assigned(self, generation: int) -> None:
        """There is an assignment of that generation."""
        self._revoked.clear()
        self.generation = generation
        self._tell_change()

    def revoked(self, states: Mapping[TopicPartition, PartitionState], generation: int) -> None:
        """These partitions are not read any more; the others go on in that generation."""
        self._revoked = dict(states)
        self.generation = generation
        self._tell_change()

    def lost(self, states: Mapping[TopicPartition, PartitionState], generation: int) -> None:
        """These partitions are gone; the others go on in that generation. Their offsets that
        are not committed are not this consumer's any more."""
        self._revoked.clear()
        self.generation = generation
        self._tell_change()
        if open_ := _uncommitted(states):
            names = ", ".join(f"{topic}-{number}" for topic, number in sorted(open_)[:10])
            logger.warning("%d lost partitions had uncommitted offsets: %s", len(open_), names)

    def _tell_change(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    # ---- the application's commits ----

    async def commit(self, member: GroupMember, offsets: Offsets, timeout_s: float) -> None:
        """Commit, and again if only a rebalance came between and the partitions stayed."""
        deadline_s = asyncio.get_running_loop().time() + timeout_s
        states = self._read_now(offsets)
        self._processed(states, offsets)
        while True:
            generation = self.generation
            left_s = max(0.001, deadline_s - asyncio.get_running_loop().time())
            try:
                await member.commit(offsets, generation=generation, timeout_s=left_s)
                break
            except CommitFailedError:
                if not await self._stayed(states, generation, left_s):
                    raise
        for partition, value in offsets.items():
            states[partition].committed = with_metadata(value)

    def commit_nowait(
        self, member: GroupMember, offsets: Offsets, on_done: Callable[[ClientError | None], None] | None
    ) -> None:
        """One try."""
        try:
            self._processed(self._read_now(offsets), offsets)
        except CommitFailedError as error:
            asyncio.get_running_loop().call_soon(_warn if on_done is None else on_done, error)
            return
        member.commit_nowait(offsets, generation=self.generation, on_done=on_done)

    def _read_now(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, PartitionState]:
        """Raises CommitFailedError for what this consumer does not have: another member commits that. A batch
        in hand may be from before its partition went away and came back: others have read on since."""
        found, states = {}, self._revoked | self._states()
        in_hand = {} if self._reader is None else self._reader.in_hand
        for partition in partitions:
            state = states.get(partition)
            if state is None or in_hand.get(partition) not in (None, state):
                topic, number = partition
                why = "is not this consumer's now" if state is None else "was not kept since it was read"
                raise CommitFailedError(f"{topic}-{number} {why}: what is not committed of it comes again")
            found[partition] = state
        return found

    def _processed(self, states: Mapping[TopicPartition, PartitionState], offsets: Offsets) -> None:
        # Before the commit is made: an auto-commit that comes after it in the queue must not turn it back.
        for partition, value in offsets.items():
            states[partition].processed_to(with_metadata(value))

    async def _stayed(
        self, states: Mapping[TopicPartition, PartitionState], generation: int, left_s: float
    ) -> bool:
        """Whether the group has gone on with these partitions still here."""
        try:
            async with asyncio.timeout(min(ASSIGNMENT_WAIT_S, left_s)):
                while self.generation == generation:
                    await self._changed.wait()
        except TimeoutError:
            return False
        now = self._states()
        return all(now.get(partition) is state for partition, state in states.items())


def _uncommitted(states: Mapping[TopicPartition, PartitionState]) -> dict[TopicPartition, OffsetAndMetadata]:
    return {tp: value for tp, state in states.items() if (value := state.uncommitted) is not None}


def _warn(error: ClientError | None) -> None:
    logger.warning("a commit failed: %s", error)
