"""Where a partition is read from: the committed offset, the beginning or end of the log, and whether the log
still holds what was read."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from time import time_ns
from typing import Any

from ringleader.clients.connection.backoff import Backoff
from ringleader.clients.errors import ClientError, MembershipError
from ringleader.clients.fetch.baseline import Baseline
from ringleader.clients.fetch.errors import (
    LogTruncatedError,
    NoOffsetError,
    OffsetGoneError,
    PartitionError,
)
from ringleader.clients.fetch.leaders import MOVED, Leaders
from ringleader.clients.fetch.partition_state import BY_POLICY, COMMITTED, PartitionState
from ringleader.clients.model import EARLIEST, LATEST, OffsetAndMetadata, OffsetReset, TopicPartition
from ringleader.clients.reset import reset_time
from ringleader.protocol.errors import KafkaError, error_name

logger = logging.getLogger("ringleader.clients.consumer")

Committed = Callable[[Iterable[TopicPartition]], Awaitable[Mapping[TopicPartition, OffsetAndMetadata]]]

_Requested = Mapping[TopicPartition, tuple[PartitionState, int]]
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
        reset: OffsetReset,
        committed_only: bool,
        baseline: Baseline,
        on_positioned: Callable[[PartitionState], None],
    ) -> None:
        self._states = states
        self._leaders = leaders
        self._committed = committed
        self._reset = reset
        self._committed_only = committed_only
        self._baseline = baseline
        self._on_positioned = on_positioned
        self._wakes: list[asyncio.Event] = []
        self._left: dict[TopicPartition, tuple[bytes, frozenset[int]]] = {}
        """Of partitions that were given up: the topic's id, and the offsets that may be committed in it."""

    def wake(self) -> None:
        """Somebody has no position, or must validate it."""
        for wake in self._wakes:
            wake.set()

    def left(self, state: PartitionState) -> None:
        """It is given up. Its committed offset may be found again when the topic is another one of the
        same name: a commit that crosses the topic's deletion outlives it."""
        if state.topic_id is not None:
            offsets = frozenset(at.offset for at in (state.consumed, state.committed) if at is not None)
            self._left[state.topic_partition] = state.topic_id, offsets

    def _of_another_topic(self, tp: TopicPartition, offset: int) -> bool | None:
        """Whether a committed offset is of a topic that is gone; None: not known before the topic is
        seen."""
        if tp not in self._left or offset not in self._left[tp][1]:
            return False
        topic_id = self._leaders.topic_id(tp)
        return None if topic_id is None else topic_id != self._left[tp][0]

    def out_of_range(self, state: PartitionState) -> None:
        """The leader says that the log does not hold what was asked for."""
        fetched, position = state.fetch_offset, state.position
        if position is not None and fetched != position:
            # The buffered records were there a moment ago: they are handed out first.
            state.not_before_s = asyncio.get_running_loop().time() + 0.1
            if not state.buffer and state.error is None:
                state.refetch()
            return
        self._start_over(state, "the log does not hold this offset")

    def made_anew(self, state: PartitionState) -> None:
        """The topic was deleted and created again: the position means nothing any more, and what the group
        has committed does not either."""
        state.committed = None
        self._start_over(state, "the topic was created again", created_again=True)

    def _start_over(self, state: PartitionState, why: str, *, created_again: bool = False) -> None:
        at = state.position
        if self._reset == "none":
            state.reset_position(COMMITTED)
            text = f"{why}, and auto_offset_reset is 'none'"
            state.fail(OffsetGoneError(*state.topic_partition, at, text, created_again=created_again))
            self._on_positioned(state)
            return
        name = f"{state.topic}-{state.partition}"
        logger.warning("%s at offset %s: %s; going on by auto_offset_reset=%r", name, at, why, self._reset)
        state.reset_position(BY_POLICY)
        if self._reset != "earliest":
            self._leaders.stale(state.topic_partition)  # is it still the same topic?
        self.wake()

    def _time(self, state: PartitionState) -> int:
        """The first position of the partition. A new partition begins at its beginning: nothing in it is
        older than this consumer."""
        if state.reset_to != BY_POLICY:
            return state.reset_to
        topic_id, partition = self._leaders.topic_id(state.topic_partition), state.topic_partition
        time = reset_time(self._reset, time_ns() // 10**6)
        if time != LATEST or topic_id is None:
            return time
        known = state.topic_id
        new = self._baseline.is_new(partition, topic_id) if known is None else known != topic_id
        if new:
            logger.info("%s-%d is new: it is read from its beginning", *partition)
        return EARLIEST if new else LATEST

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
        work: Callable[[_Requested], Coroutine[Any, Any, None]],
        wanted: Callable[[PartitionState], bool],
    ) -> None:
        backoff = Backoff(100, 1_000, random.random)
        wake = asyncio.Event()
        self._wakes.append(wake)
        while True:
            wake.clear()
            if requested := self._wanted(wanted):
                await work(requested)
            if self._wanted(wanted):
                await asyncio.sleep(backoff.next_ms() / 1000)
            else:
                backoff.reset()
                await wake.wait()

    @staticmethod
    def _open(state: PartitionState) -> bool:
        """Whether there is something to do for it."""
        return state.error is None and (state.position is None or state.validate)

    def _wanted(self, wanted: Callable[[PartitionState], bool]) -> _Requested:
        return {
            tp: (state, state.position_id)
            for tp, state in self._states.items()
            if self._open(state) and wanted(state)
        }

    def _still(self, state: PartitionState, position_id: int) -> bool:
        return state.position_id == position_id and self._states.get(state.topic_partition) is state

    async def _from_committed(self, requested: _Requested) -> None:
        try:
            offsets = await self._committed(list(requested))
        except MembershipError:
            return  # the application hears of it otherwise
        except ClientError as error:
            logger.warning("committed offsets cannot be fetched, trying again: %s", error)
            return
        for tp, (state, position_id) in requested.items():
            if not self._still(state, position_id):
                continue
            found = offsets.get(tp)
            if found is not None and (other := self._of_another_topic(tp, found.offset)) is not False:
                if other is None:
                    continue
                found = None
            if found is not None:
                state.set_position(found.offset, found.leader_epoch, found.metadata)
                state.committed = found
                state.topic_id = self._leaders.topic_id(tp)
                state.validate = found.leader_epoch >= 0
                if not state.validate:
                    self._on_positioned(state)
            elif self._reset == "none":
                why = "the group has no committed offset, and auto_offset_reset is 'none'"
                state.fail(NoOffsetError(*tp, None, why))
                self._on_positioned(state)
            else:
                state.reset_to = BY_POLICY
        self.wake()

    async def _from_log(self, requested: _Requested) -> None:
        wishes = {tp: (state.reset_to, self._leaders.topic_id(tp)) for tp, (state, _) in requested.items()}
        times = {tp: self._time(state) for tp, (state, _) in requested.items()}
        found, errors = await self._offsets_at(times)
        for tp, (offset, _, epoch) in found.items():
            state, position_id = requested[tp]
            wish, topic_id = wishes[tp]
            now = self._leaders.topic_id(tp)
            if now not in (None, topic_id):
                continue  # the answer may be of a topic that is gone
            if self._still(state, position_id) and state.reset_to == wish:
                state.set_position(offset, epoch)
                state.topic_id = topic_id
                self._on_positioned(state)
        self._refuse(requested, errors)

    async def _offsets_at(
        self, times: Mapping[TopicPartition, int]
    ) -> tuple[dict[TopicPartition, tuple[int, int, int]], dict[TopicPartition, int]]:
        """As `Leaders.list_offsets`, and the end of the log where no record is as late as the time. The end
        is asked for first: a record that comes in between is found by its time, or stands behind that end."""
        later = dict.fromkeys((tp for tp, time in times.items() if time >= 0), LATEST)
        if not later:
            return await self._leaders.list_offsets(times, self._committed_only)
        ends, refused = await self._leaders.list_offsets(later, self._committed_only)
        known = {tp: time for tp, time in times.items() if tp in ends or tp not in later}
        found, errors = await self._leaders.list_offsets(known, self._committed_only)
        return {tp: ends[tp] if one[0] < 0 else one for tp, one in found.items()}, refused | errors

    async def _validate(self, requested: _Requested) -> None:
        """KIP-320: after a change of leader, is what was read still in the log?"""
        # An answer under way would move what is to be validated.
        epochs = {tp: state.fetch_epoch for tp, (state, _) in requested.items() if not state.fetching}
        found, errors = await self._leaders.epoch_ends(epochs)
        for tp, end in found.items():
            state, position_id = requested[tp]
            if self._still(state, position_id) and state.fetch_epoch == epochs[tp]:
                state.validate = False
                self._validated(state, end)
        self._refuse(requested, errors)

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

    def _refuse(self, requested: _Requested, errors: Mapping[TopicPartition, int]) -> None:
        for tp, code in errors.items():
            state, position_id = requested[tp]
            if not self._still(state, position_id) or code in MOVED or KafkaError(code).retriable:
                continue
            why = f"the broker does not give its offsets: {error_name(code)}"
            state.fail(PartitionError(*tp, state.position, why, code))
            self._on_positioned(state)
