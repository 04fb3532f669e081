"""One node as a process: the real runtime of groups over the real store, on an event loop that can stand
still between any two steps."""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog

from ringleader.coordinator.runtime import GroupRuntime
from ringleader.coordinator.storage.base import StorageError
from ringleader.coordinator.storage.kafka import Claim, KafkaStorage
from tests.simulation.nodes.kafka import TOPIC, Link
from tests.simulation.nodes.loop import NodeLoop
from tests.simulation.requests import ListGroups, hand_over

if TYPE_CHECKING:
    from tests.simulation.nodes.world import NodeCall, NodesWorld

STORAGE_TIMEOUT_MS = 5_000
_RETRY_S = 0.3
_FENCED_WAIT_S = 1.0


class WatchedStorage(KafkaStorage):
    """Says when it is asked to open a partition."""

    def __init__(self, node: Node, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._node = node

    async def open(self, partition: int, epoch: int) -> int:
        """See `Storage.open`."""
        if self._node.alive:
            self._node.world.checks.opened(self._node, partition)
        return await super().open(partition, epoch)


class Node:
    """It has the shards that it was given; `wanted` is what it believes should be its own."""

    link_class: type[Link] = Link

    def __init__(self, world: NodesWorld, number: int) -> None:
        self.world = world
        self.number = number
        self.alive = True
        self.paused = False
        self.cut = False
        """No way to the brokers, both ways."""
        self.uptime_more_s = 0.0
        """The time that it was suspended beyond the time of this world."""
        self.wanted: set[int] = set()
        self.started = False
        self.lines: deque[Mapping[str, Any]] = deque(maxlen=50)
        self.loop = NodeLoop(lambda: world.time_s, lambda what: world.checks.wrong("P1", what))
        self.link = self.link_class(self)
        self.acquiring: set[int] = set()
        """The shards that its runtime was just asked to acquire."""
        self._pause_next = False
        self._moving: dict[int, asyncio.Task[None]] = {}
        log = structlog.wrap_logger(
            None, processors=[self._keep], wrapper_class=structlog.make_filtering_bound_logger(0)
        )
        self.storage = WatchedStorage(
            self,
            "broker:9092",
            Claim(number, f"node-{number}", 9092, "1"),
            topic=TOPIC,
            partitions=world.partition_count,
            replication_factor=1,
            transactional_id_prefix="x",
            timeout_ms=world.storage_timeout_ms * 4 // 5,
            log=log,
        )
        self.runtime = GroupRuntime(
            world.settings,
            self.storage,
            partitions=world.partition_count,
            ids=world.fresh_id,
            storage_timeout_ms=world.storage_timeout_ms,
            now_ms=lambda: world.now_ms,
            wall_ms=lambda: 1_700_000_000_000 + world.now_ms,
            log=log,
            on_lost=self._lost,
            on_failed=lambda error: world.checks.wrong("P1", f"a node can serve no more: {error!r}"),
        )
        self.loop.start(self._start())

    def __repr__(self) -> str:
        return f"node {self.number}"

    def _keep(
        self, logger: Any, method: str, event: structlog.typing.EventDict
    ) -> structlog.typing.EventDict:
        self.lines.append(event)
        if self.alive:
            self.world.say("log", (self, event))
            if "exc_info" in event:
                self.world.checks.wrong("P1", f"{event}: {sys.exception()!r}")
        raise structlog.DropEvent

    async def _start(self) -> None:
        while True:
            try:
                await self.runtime.start_empty()
            except StorageError:
                await asyncio.sleep(_RETRY_S)
            else:
                break
        self.started = True
        for partition in sorted(self.wanted):
            self._tend(partition)

    # ---- what becomes of it ----

    def tell(self, what: Callable[[], None]) -> None:
        """Something arrives; it is seen to when the process runs."""
        if self.alive:
            self.loop.call_soon(what)

    @property
    def busy(self) -> bool:
        """Whether it has a step to do now."""
        return self.alive and not self.paused and self.loop.busy

    def step(self) -> None:
        """One callback."""
        self.loop.step()
        if self._pause_next:
            self._pause_next = False
            self.world.pause(self)

    def pause_soon(self) -> None:
        """Right after what it is doing."""
        self._pause_next = True

    def kill(self) -> None:
        """kill -9: whatever it wanted to say is never said, what it sent is on its way."""
        self.alive = False
        self.loop.bury()

    # ---- calls from outside ----

    def want(self, partition: int, yes: bool) -> None:
        """The map says that a partition is its own, or not."""
        (self.wanted.add if yes else self.wanted.discard)(partition)
        if self.started:
            self._tend(partition)

    def _tend(self, partition: int, wait_s: float = 0.0) -> None:
        if partition not in self._moving:
            self._moving[partition] = self.loop.create_task(self._see_to(partition, wait_s))

    async def _see_to(self, partition: int, wait_s: float) -> None:
        await asyncio.sleep(wait_s)
        try:
            while (partition in self.wanted) != (partition in self.runtime.serving):
                if partition in self.wanted:
                    self.acquiring.add(partition)
                    try:
                        await self.runtime.acquire(partition)
                    except StorageError as error:
                        self.world.say("not acquired", (self, partition, str(error)))
                        await asyncio.sleep(_RETRY_S)
                    else:
                        self.world.checks.acquired(self, partition)
                    finally:
                        self.acquiring.discard(partition)
                else:
                    await self.runtime.release(partition)
                    self.world.checks.released(self, partition)
        finally:
            del self._moving[partition]

    def _lost(self, partition: int, error: BaseException) -> None:
        self.world.say("lost", (self, partition, str(error)))
        self.world.checks.lost(self, partition, error)
        if partition in self.wanted:
            self._tend(partition, _FENCED_WAIT_S)

    # ---- requests ----

    def arrive(self, call: NodeCall) -> None:
        """A request has been read, as the server hands it over."""
        runtime, checks = self.runtime, self.world.checks
        partition = self.world.partition_of(call.request)
        call.node = self
        if call.closed:
            return
        checks.before(call, partition)
        method = partial(_hand_over, call)
        if isinstance(call.request, ListGroups) and partition not in runtime.serving:
            call.refuse(16)
            return
        response = runtime.call(partition, type(call.request).__name__, "", call, method)
        if response is not None:
            call.answer(response)


def _hand_over(call: NodeCall, shard: Any, now_ms: int) -> Any:
    return hand_over(shard, call, now_ms)
