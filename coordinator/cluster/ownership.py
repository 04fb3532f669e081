"""The runtime follows the map: it takes over this node's partitions, and releases the others.

Nothing here makes a write safe; the fence in the store does. So a node takes over without asking the owner
before it; but only by a map which the nodes' group confirmed just now as the newest. By an older one two
nodes would take a partition from each other in turn.
"""

from __future__ import annotations

import asyncio
import math
from asyncio import get_running_loop
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from ringleader.coordinator.cluster.map import ClusterMap
from ringleader.coordinator.logs import Log
from ringleader.coordinator.runtime import GroupRuntime
from ringleader.coordinator.runtime.shards import Waiting
from ringleader.coordinator.storage.base import Failure, StorageError

AT_A_TIME = 8
"""Partitions that are taken over at once; more would only wait for each other."""
FENCED_WAIT_S = 1.0
"""The least wait of a fenced node for the next map before it takes the partition back."""
UNSURE_WAIT_S = 0.1
RETRY_S = 0.1
RETRY_MAX_S = 5.0
NAMED = 10
"""The most partitions that a log line names."""


class _Doing(Enum):
    """The work on a partition that is under way."""

    WAITING = auto()
    """Its takeover is not due yet."""
    TAKING = auto()
    RELEASING = auto()


@dataclass(slots=True)
class _Partition:
    """One partition on its way to where the map has it."""

    task: asyncio.Task[None] | None = None
    doing: _Doing | None = None
    begun_s: float | None = None
    """Since when it is to be taken over, without the wait for a turn."""
    fenced_s: float = -math.inf
    """When another node took it, since the map came."""
    not_before_s: float = 0.0
    """It is not tried again before."""
    tries: int = 0
    """Since the map came, or since it was taken over."""
    taken_records: int | None = None
    """For the log: the records that it had when it was taken over, since the last line."""
    given: bool = False
    """For the log: it was released since the last line."""

    def forget_failures(self) -> None:
        """Another map has come."""
        self.tries, self.fenced_s, self.not_before_s = 0, -math.inf, 0.0


class Ownership:
    """The partitions that this node has, and is about to have."""

    def __init__(
        self,
        node_id: int,
        runtime: GroupRuntime,
        log: Log,
        on_settled: Callable[[], None],
        silence_s: Callable[[], float],
        doubt_s: float,
    ) -> None:
        """`on_settled()`: this node has the partitions that the map gives it, and no others. `silence_s()`:
        how long ago the nodes' group confirmed that the map is the newest; after `doubt_s` it may not be any
        more."""
        self._node_id = node_id
        self._runtime = runtime
        self._log = log
        self._on_settled = on_settled
        self._silence_s = silence_s
        self._doubt_s = doubt_s
        runtime.vouch = self._vouch
        self._wanted: frozenset[int] = frozenset()
        self._partitions: dict[int, _Partition] = {}
        self._slots = asyncio.Semaphore(AT_A_TIME)
        self.fences = 0
        """Partitions that another node took while this one had them, since the start."""
        self._began_s: float | None = None
        self._more = False
        """Planned moves go on with the next map."""
        self._settled = True
        self._ended = False

    @property
    def settled(self) -> bool:
        """Whether the runtime is as the map says."""
        return self._settled

    @property
    def wanted(self) -> frozenset[int]:
        """The partitions that this node is to have."""
        return self._wanted

    def _vouch(self, partition: int) -> bool:
        return partition in self._wanted and self._silence_s() < self._doubt_s

    def late(self, now_s: float, for_s: float) -> frozenset[int]:
        """The partitions that it has tried to take over for `for_s`, and that the store has not given it."""
        return frozenset(
            partition
            for partition, one in self._partitions.items()
            if one.begun_s is not None
            if now_s - one.begun_s >= for_s and not self._runtime.opened(partition)
        )

    def follow(self, cluster: ClusterMap) -> None:
        """A new map."""
        for one in self._partitions.values():
            one.forget_failures()
            if one.doing is _Doing.WAITING and one.task is not None:
                one.task.cancel()
        self._more = bool(cluster.moving)
        self._want(cluster.owned_by(self._node_id))

    def give_up(self, reason: str) -> None:
        """From now on nothing is served until there is another map."""
        held = self._wanted | self._runtime.serving
        if held:
            self._log.warning("partitions given up", reason=reason, partitions=len(held))
        self._want(frozenset())

    def lost(self, partition: int, error: BaseException) -> None:
        """The runtime has lost a partition that it served."""
        fenced = isinstance(error, StorageError) and error.failure is Failure.FENCED
        self.fences += fenced
        if partition in self._wanted and not self._ended:
            now_s = get_running_loop().time()
            one = self._of(partition)
            if fenced:
                one.fenced_s = now_s
            one.not_before_s = now_s + (FENCED_WAIT_S if fenced else _next_wait_s(one))
            self._settled = False
            self._tend(partition)

    def prove(self) -> None:
        """Find the partitions that another node has taken meanwhile: a read of each waits until the store
        confirms that it is still this node's, and otherwise the partition is lost."""
        for partition in self._runtime.serving:
            self._runtime.list_groups(partition, (), (), Waiting())

    async def stop(self) -> None:
        """No more changes; what is served stays so until the runtime stops."""
        self._ended = True
        tasks = [one.task for one in self._partitions.values() if one.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # ---- one partition after the other ----

    def _of(self, partition: int) -> _Partition:
        return self._partitions.setdefault(partition, _Partition())

    def _want(self, wanted: frozenset[int]) -> None:
        if self._ended:
            return
        before, self._wanted = self._wanted, wanted
        for partition in self._partitions.keys() - wanted:
            self._partitions[partition].begun_s = None
        if self._began_s is None:
            self._began_s = get_running_loop().time()
        self._settled = False
        for partition in sorted((before | wanted | self._runtime.serving) - self._done()):
            one = self._of(partition)
            taking = one.doing in (_Doing.TAKING, _Doing.WAITING)
            if one.task is not None and taking and partition not in wanted:
                one.task.cancel()
            self._tend(partition)
        self._look()

    def _done(self) -> frozenset[int]:
        """Partitions that are where the map has them, without work under way."""
        return (self._wanted & self._runtime.serving) - self._busy()

    def _busy(self) -> set[int]:
        return {partition for partition, one in self._partitions.items() if one.task is not None}

    def _tend(self, partition: int) -> None:
        """Take over or release a partition, unless that is under way: at its end it looks again."""
        one = self._of(partition)
        if one.task is None:
            one.task = asyncio.create_task(self._see_to(partition, one), name=f"partition {partition}")
            one.task.add_done_callback(lambda done: self._ended_task(partition, done))

    def _ended_task(self, partition: int, task: asyncio.Task[None]) -> None:
        one = self._of(partition)
        one.task = one.doing = None
        if self._ended:
            return
        if not task.cancelled() and (error := task.exception()) is not None:
            self._log.error("partition not moved", partition=partition, exc_info=error)
        if not self._as_wanted(partition):
            self._tend(partition)
        self._look()

    def _as_wanted(self, partition: int) -> bool:
        return (partition in self._wanted) == (partition in self._runtime.serving)

    async def _see_to(self, partition: int, one: _Partition) -> None:
        if partition in self._wanted:
            await self._take(partition, one)
        elif partition in self._runtime.serving:
            one.doing = _Doing.RELEASING
            await self._runtime.release(partition)
            one.given = True

    async def _take(self, partition: int, one: _Partition) -> None:
        wait_s = self._wait_s(one)
        if wait_s > 0:
            one.doing = _Doing.WAITING
            try:
                await asyncio.sleep(wait_s)
            finally:
                one.doing = None
            return
        one.doing = _Doing.TAKING
        now_s = get_running_loop().time
        try:
            async with self._slots:
                if self._wait_s(one) > 0:
                    return
                if one.begun_s is None:
                    one.begun_s = now_s()
                one.taken_records = await self._runtime.acquire(partition)
            one.tries, one.begun_s = 0, None
        except Exception as error:
            if self._runtime.opened(partition):
                one.begun_s = None
            wait_s = _next_wait_s(one)
            one.not_before_s = now_s() + wait_s
            self._log.warning(
                "partition not taken over",
                partition=partition,
                reason=str(error) or repr(error),
                again_in_s=wait_s,
            )

    def _wait_s(self, one: _Partition) -> float:
        """The least time until it may be taken over."""
        now_s = get_running_loop().time()
        wait_s = one.not_before_s - now_s
        if wait_s > 0:
            return wait_s
        silence_s = self._silence_s()
        # The confirmation of the map may have been on its way while another map was made.
        since_s = one.fenced_s + FENCED_WAIT_S / 2
        unsure = silence_s >= self._doubt_s or now_s - silence_s < since_s
        return UNSURE_WAIT_S if unsure else 0.0

    def _look(self) -> None:
        """Is everything as the map says?"""
        if self._settled or self._busy() or self._wanted != self._runtime.serving:
            return
        self._settled = True
        if not self._more:
            self._say()
        self._on_settled()

    def _say(self) -> None:
        """One line for all that moved."""
        records, given = dict[int, int](), list[int]()
        for partition, one in sorted(self._partitions.items()):
            if one.taken_records is not None:
                records[partition] = one.taken_records
            if one.given:
                given.append(partition)
            one.taken_records, one.given = None, False
        began_s, self._began_s = self._began_s, None
        if (records or given) and began_s is not None:
            self._log.info(
                "partitions moved",
                taken=_some([*records]),
                given=_some(given),
                records=sum(records.values()),
                seconds=round(get_running_loop().time() - began_s, 3),
                serving=len(self._wanted),
            )


def _next_wait_s(one: _Partition) -> float:
    one.tries += 1
    return float(min(RETRY_MAX_S, RETRY_S * 2 ** min(one.tries, 10)))


def _some(partitions: list[int]) -> str:
    """A few by name, more by their count."""
    if len(partitions) > NAMED:
        return f"{len(partitions)} partitions"
    return ", ".join(map(str, partitions)) or "none"
