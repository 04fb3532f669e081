"""Makes the runtime follow the map: takes over what is this node's, gives up what is not.

Nothing here makes a write safe; the fence in the store does. So a node takes over without asking whoever had
a partition before; but only by a map of which the nodes' group said just now that it is the newest. By an
older one two nodes would take a partition from each other in turn.
"""

from __future__ import annotations

import asyncio
import math
from asyncio import get_running_loop
from collections.abc import Callable

from ringleader.coordinator.cluster.map import ClusterMap
from ringleader.coordinator.logs import Log
from ringleader.coordinator.runtime import GroupRuntime
from ringleader.coordinator.runtime.shards import Waiting
from ringleader.coordinator.storage.base import Failure, StorageError

AT_A_TIME = 8
"""Partitions that are taken over at once; more would only wait for each other."""
FENCED_WAIT_S = 1.0
"""Who was fenced waits for the next map at least so long before it takes the partition back."""
UNSURE_WAIT_S = 0.1
RETRY_S = 0.1
RETRY_MAX_S = 5.0
NAMED = 10
"""A log line names so many partitions at most."""


class Ownership:
    """Which partitions this node has, and is about to have."""

    def __init__(
        self,
        node_id: int,
        runtime: GroupRuntime,
        log: Log,
        on_settled: Callable[[], None],
        silence_s: Callable[[], float],
        doubt_s: float,
    ) -> None:
        """`on_settled()`: this node has what the map gives it, and has given up the rest. `silence_s()`: how
        long ago the nodes' group said that the map is the newest; after `doubt_s` it may not be any more."""
        self._node_id = node_id
        self._runtime = runtime
        self._log = log
        self._on_settled = on_settled
        self._silence_s = silence_s
        self._doubt_s = doubt_s
        runtime.vouch = self._vouch
        self._wanted: frozenset[int] = frozenset()
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._slots = asyncio.Semaphore(AT_A_TIME)
        self._sleeping: set[int] = set()
        self._taking: set[int] = set()
        self._begun_s: dict[int, float] = {}
        """Partitions that are to be taken over: since when, without the wait for a turn."""
        self._fenced_s: dict[int, float] = {}
        """When another node took them, since the map came."""
        self.fences = 0
        """Partitions that another node took while this one had them, since the start."""
        self._tries: dict[int, int] = {}
        self._not_before_s: dict[int, float] = {}
        self._taken: dict[int, int] = {}
        """For the log: partition -> records that it had, since the last line; likewise the next two."""
        self._given: set[int] = set()
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
        """The partitions that it tries to take over for so long, and the store has not given it any."""
        return frozenset(
            partition
            for partition, begun_s in self._begun_s.items()
            if now_s - begun_s >= for_s and not self._runtime.opened(partition)
        )

    def follow(self, cluster: ClusterMap) -> None:
        """A new map."""
        self._tries.clear()
        self._fenced_s.clear()
        self._not_before_s.clear()
        for partition in self._sleeping:
            self._tasks[partition].cancel()
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
            if fenced:
                self._fenced_s[partition] = now_s
            wait_s = FENCED_WAIT_S if fenced else self._next_wait_s(partition)
            self._not_before_s[partition] = now_s + wait_s
            self._settled = False
            self._tend(partition)

    def prove(self) -> None:
        """Find out which partitions another node has taken meanwhile: a read of each waits for proof that it
        is still this node's, and without it the partition is lost."""
        for partition in self._runtime.serving:
            self._runtime.list_groups(partition, (), (), Waiting())

    async def stop(self) -> None:
        """No more changes; what is served stays so until the runtime stops."""
        self._ended = True
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # ---- one partition after the other ----

    def _want(self, wanted: frozenset[int]) -> None:
        if self._ended:
            return
        before, self._wanted = self._wanted, wanted
        for partition in self._begun_s.keys() - wanted:
            del self._begun_s[partition]
        if self._began_s is None:
            self._began_s = get_running_loop().time()
        self._settled = False
        for partition in sorted((before | wanted | self._runtime.serving) - self._done()):
            if partition in self._taking and partition not in wanted:
                self._tasks[partition].cancel()
            self._tend(partition)
        self._look()

    def _done(self) -> frozenset[int]:
        """Partitions that are as they should be, and nothing is under way."""
        return (self._wanted & self._runtime.serving) - self._tasks.keys()

    def _tend(self, partition: int) -> None:
        """See to a partition, unless that is under way: at its end it looks again."""
        if partition not in self._tasks:
            task = asyncio.create_task(self._see_to(partition), name=f"partition {partition}")
            self._tasks[partition] = task
            task.add_done_callback(lambda done: self._ended_task(partition, done))

    def _ended_task(self, partition: int, task: asyncio.Task[None]) -> None:
        del self._tasks[partition]
        if self._ended:
            return
        if not task.cancelled() and (error := task.exception()) is not None:
            self._log.error("partition not moved", partition=partition, exc_info=error)
        if not self._as_wanted(partition):
            self._tend(partition)
        self._look()

    def _as_wanted(self, partition: int) -> bool:
        return (partition in self._wanted) == (partition in self._runtime.serving)

    async def _see_to(self, partition: int) -> None:
        if partition not in self._wanted:
            if partition in self._runtime.serving:
                await self._runtime.release(partition)
                self._given.add(partition)
            return
        self._taking.add(partition)
        try:
            await self._take(partition)
        finally:
            self._taking.discard(partition)

    async def _take(self, partition: int) -> None:
        wait_s = self._wait_s(partition)
        if wait_s > 0:
            self._sleeping.add(partition)
            try:
                await asyncio.sleep(wait_s)
            finally:
                self._sleeping.discard(partition)
            return
        now_s = get_running_loop().time
        try:
            async with self._slots:
                if self._wait_s(partition) > 0:
                    return
                self._begun_s.setdefault(partition, now_s())
                self._taken[partition] = await self._runtime.acquire(partition)
            self._tries.pop(partition, None)
            self._begun_s.pop(partition, None)
        except Exception as error:
            if self._runtime.opened(partition):
                self._begun_s.pop(partition, None)
            wait_s = self._next_wait_s(partition)
            self._not_before_s[partition] = now_s() + wait_s
            self._log.warning(
                "partition not taken over",
                partition=partition,
                reason=str(error) or repr(error),
                again_in_s=wait_s,
            )

    def _wait_s(self, partition: int) -> float:
        """How long it has to wait at least until it may be taken over."""
        now_s = get_running_loop().time()
        wait_s = self._not_before_s.get(partition, 0.0) - now_s
        if wait_s > 0:
            return wait_s
        silence_s = self._silence_s()
        # The word that the map is the newest may have been on its way while another one was made.
        since_s = self._fenced_s.get(partition, -math.inf) + FENCED_WAIT_S / 2
        unsure = silence_s >= self._doubt_s or now_s - silence_s < since_s
        return UNSURE_WAIT_S if unsure else 0.0

    def _next_wait_s(self, partition: int) -> float:
        tries = self._tries[partition] = self._tries.get(partition, 0) + 1
        return float(min(RETRY_MAX_S, RETRY_S * 2 ** min(tries, 10)))

    def _look(self) -> None:
        """Is everything as the map says?"""
        if self._settled or self._tasks or self._wanted != self._runtime.serving:
            return
        self._settled = True
        if not self._more:
            self._say()
        self._on_settled()

    def _say(self) -> None:
        """One line for all that moved."""
        taken, given, began_s = self._taken, self._given, self._began_s
        self._taken, self._given, self._began_s = {}, set(), None
        if (taken or given) and began_s is not None:
            self._log.info(
                "partitions moved",
                taken=_some(sorted(taken)),
                given=_some(sorted(given)),
                records=sum(taken.values()),
                seconds=round(get_running_loop().time() - began_s, 3),
                serving=len(self._wanted),
            )


def _some(partitions: list[int]) -> str:
    """A few by name, many by number."""
    if len(partitions) > NAMED:
        return f"{len(partitions)} partitions"
    return ", ".join(map(str, partitions)) or "none"
