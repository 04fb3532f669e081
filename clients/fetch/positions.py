"""Where a partition is read from: the committed offset, the beginning or end of the log, and whether the log
still holds what was read."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from typing import Any, Literal

from ringleader.clients.connection.backoff import Backoff
from ringleader.clients.errors import ClientError, MembershipError
from ringleader.clients.fetch.errors import (
    LogTruncatedError,
    NoOffsetError,
    OffsetGoneError,
    PartitionError,
)
from ringleader.clients.fetch.leaders import MOVED, Leaders
from ringleader.clients.fetch.partition_state import COMMITTED, PartitionState
from ringleader.clients.model import EARLIEST, LATEST, OffsetAndMetadata, TopicPartition
from ringleader.protocol.errors import KafkaError, error_name

logger = logging.getLogger("ringleader.clients.consumer")

Reset = Literal["earliest", "latest", "none"]
RESETS: Mapping[str, int] = {"earliest": EARLIEST, "latest": LATEST}
Committed = Callable[[Iterable[TopicPartition]], Awaitable[Mapping[TopicPartition, OffsetAndMetadata]]]

_Asked = Mapping[TopicPartition, tuple[PartitionState, int]]
"""Partitions that something is asked for, and the position of each that it is asked for."""


class PositionLookup:
    """Gives partitions their positions. `runs` do the work, each its kind of it: a slow coordinator does not
    hold up those that are looked up elsewhere. `wake` says that there is some.

    `on_positioned(partition)`: it may be fetched, or has an error to tell.
    """

    def __init__(
        self,
        states: Mapping[TopicPartition, PartitionState],
        leaders: Leaders,
        committed: Committed,
        reset: Reset,
        committed_only: bool,
        on_positioned: Callable[[PartitionState], None],
    ) -> None:
        self._states = states
        self._leaders = leaders
        self._committed = committed
        self._reset = reset
        self._committed_only = committed_only
        self._on_positioned = on_positioned
        self._wakes: list[asyncio.Event] = []

    def wake(self) -> None:
        """Somebody has no position, or must validate it."""
        for wake in self._wakes:
            wake.set()

    def out_of_range(self, state: PartitionState) -> None:
        """The leader says that the log does not hold what was asked for."""
        asked, position = state.fetch_offset, state.position
        if position is not None and asked != position:
            # What is buffered was there a moment ago: it is handed out first.
            state.not_before_s = asyncio.get_running_loop().time() + 0.1
            if not state.ready:
                state.refetch()
            return
        self._start_over(state, "the log does not hold this offset")

    def made_anew(self, state: PartitionState) -> None:
        """The topic was deleted and created again: the position means nothing any more."""
        self._start_over(state, "the topic was created anew")

    def _start_over(self, state: PartitionState, why: str) -> None:
        at = state.position
        if self._reset == "none":
            state.reset_position(COMMITTED)
            state.fail(OffsetGoneError(*state.topic_partition, at, f"{why}, and auto_offset_reset is 'none'"))
            self._on_positioned(state)
            return
        name = f"{state.topic}-{state.partition}"
        logger.warning("%s at offset %s: %s; going on at the %s", name, at, why, self._reset)
        state.reset_position(RESETS[self._reset])
        self.wake()

    def runs(self) -> list[Coroutine[Any, Any, None]]:
        """Until cancelled."""
        return [
            self._run(
                self._from_committed, lambda state: state.position is None and state.reset_to == COMMITTED
            ),
            self._run(self._from_log, lambda state: state.position is None and state.reset_to != COMMITTED),
            self._run(self._validate, lambda state: state.position is not None and state.validate),
        ]

    async def _run(
        self,
        work: Callable[[_Asked], Coroutine[Any, Any, None]],
        wanted: Callable[[PartitionState], bool],
    ) -> None:
        backoff = Backoff(100, 1_000, random.random)
        wake = asyncio.Event()
        self._wakes.append(wake)
        while True:
            wake.clear()
            if asked := self._wanted(wanted):
                await work(asked)
            if self._wanted(wanted):
                await asyncio.sleep(backoff.next_ms() / 1000)
            else:
                backoff.reset()
                await wake.wait()

    @staticmethod
    def _open(state: PartitionState) -> bool:
        """Whether there is something to do for it."""
        return state.error is None and (state.position is None or state.validate)

    def _wanted(self, wanted: Callable[[PartitionState], bool]) -> _Asked:
        return {
            tp: (state, state.position_id)
            for tp, state in self._states.items()
            if self._open(state) and wanted(state)
        }

    def _still(self, state: PartitionState, position_id: int) -> bool:
        return state.position_id == position_id and self._states.get(state.topic_partition) is state

    async def _from_committed(self, asked: _Asked) -> None:
        try:
            offsets = await self._committed(list(asked))
        except MembershipError:
            return  # the application hears of it otherwise
        except ClientError as error:
            logger.warning("committed offsets cannot be fetched, trying again: %s", error)
            return
        for tp, (state, position_id) in asked.items():
            if not self._still(state, position_id):
                continue
            if (found := offsets.get(tp)) is not None:
                state.set_position(found.offset, found.leader_epoch)
                state.committed = found.offset
                state.validate = found.leader_epoch >= 0
                if not state.validate:
                    self._on_positioned(state)
            elif self._reset == "none":
                why = "the group has no committed offset, and auto_offset_reset is 'none'"
                state.fail(NoOffsetError(*tp, None, why))
                self._on_positioned(state)
            else:
                state.reset_to = RESETS[self._reset]
        self.wake()

    async def _from_log(self, asked: _Asked) -> None:
        times = {tp: state.reset_to for tp, (state, _) in asked.items()}
        found, errors = await self._leaders.list_offsets(times, self._committed_only)
        for tp, (offset, _, epoch) in found.items():
            state, position_id = asked[tp]
            if self._still(state, position_id) and state.reset_to == times[tp]:
                state.set_position(offset, epoch)
                self._on_positioned(state)
        self._refuse(asked, errors)

    async def _validate(self, asked: _Asked) -> None:
        """KIP-320: after a change of leader, is what was read still in the log?"""
        # An answer under way would move what is to be validated.
        epochs = {tp: state.fetch_epoch for tp, (state, _) in asked.items() if not state.fetching}
        found, errors = await self._leaders.epoch_ends(epochs)
        for tp, end in found.items():
            state, position_id = asked[tp]
            if self._still(state, position_id) and state.fetch_epoch == epochs[tp]:
                state.validate = False
                self._validated(state, end)
        self._refuse(asked, errors)

    def _validated(self, state: PartitionState, end: int) -> None:
        position = state.position
        assert position is not None
        if end < 0 or state.fetch_offset <= end:
            # A leader that does not know the epoch cannot tell; out of range will be noticed anyway.
            self._on_positioned(state)
            return
        name = f"{state.topic}-{state.partition}"
        if position <= end:
            logger.warning("%s: records after offset %d are gone, they are fetched again", name, end)
            state.refetch()
        elif self._reset == "none":
            state.fail(LogTruncatedError(*state.topic_partition, position, end))
        else:
            logger.warning(
                "%s: the log was truncated below position %d: going on at %d, where the histories part",
                name,
                position,
                end,
            )
            state.set_position(end)
        self._on_positioned(state)

    def _refuse(self, asked: _Asked, errors: Mapping[TopicPartition, int]) -> None:
        for tp, code in errors.items():
            state, position_id = asked[tp]
            if not self._still(state, position_id) or code in MOVED or KafkaError(code).retriable:
                continue
            why = f"the broker does not tell its offsets: {error_name(code)}"
            state.fail(PartitionError(*tp, state.position, why, code))
            self._on_positioned(state)
