"""Our consumers beside those of other libraries in one group; a ledger finds partitions with two owners."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from typing import Any

from ringleader.clients.admin import Admin
from ringleader.clients.consumer import GroupConsumer
from ringleader.clients.model import TopicPartition
from tests.support.members import Actor, AiokafkaMember, Board, ConfluentMember, KafkaPythonMember, Stage

QUICK: dict[str, Any] = {"heartbeat_interval_ms": 100, "session_timeout_ms": 6_000}
THEIRS: dict[str, tuple[type[Any], dict[str, Any]]] = {
    "aiokafka": (AiokafkaMember, QUICK),
    "kafka-python": (KafkaPythonMember, QUICK),
    "confluent-kafka": (
        ConfluentMember,
        {"heartbeat.interval.ms": 100, "session.timeout.ms": 6_000},
    ),
}


class Ledger(Board):
    """A board on which nobody may own what another one has not given up."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._held: dict[str, frozenset[int]] = {}
        self.clashes: list[str] = []
        self.lost: list[str] = []

    def owns(self, name: str, partitions: Iterable[int] | None) -> None:
        now = frozenset(partitions or ())
        with self._lock:
            for other, held in self._held.items():
                if other != name and held & now:
                    self.clashes.append(f"{name} got {sorted(held & now)} while {other} had them")
            self._held[name] = now
        super().owns(name, None if partitions is None else now)

    def gives_up(self, name: str, partitions: Iterable[int]) -> None:
        with self._lock:
            self._held[name] = self._held.get(name, frozenset()) - set(partitions)


class OurConsumer:
    """A `GroupConsumer` with its defaults, for the stage."""

    def __init__(self, ledger: Ledger, bootstrap: str, group: str, name: str) -> None:
        self._ledger, self._name = ledger, name
        self._partitions: set[int] = set()
        self.consumer = GroupConsumer(
            bootstrap,
            group,
            "t",
            client_id=name,
            on_assigned=self._assigned,
            on_revoked=self._revoked,
            on_lost=self._lost,
            **QUICK,
        )
        self._task: asyncio.Task[None] | None = None

    def _assigned(self, partitions: list[TopicPartition]) -> None:
        self._partitions |= {number for _, number in partitions}
        self._ledger.owns(self._name, self._partitions)

    def _revoked(self, partitions: list[TopicPartition]) -> None:
        self._partitions -= {number for _, number in partitions}
        self._ledger.gives_up(self._name, [number for _, number in partitions])

    def _lost(self, partitions: list[TopicPartition]) -> None:
        self._ledger.lost.append(f"{self._name}: {partitions}")
        self._revoked(partitions)

    async def join(self) -> None:
        await self.consumer.start()
        self._task = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for _ in self.consumer:
            pass

    async def leave(self) -> None:
        await self.consumer.stop()
        if self._task is not None:
            await self._task
        self._ledger.owns(self._name, None)


async def until_whole(ledger: Ledger, *names: str) -> None:
    """These own all of the four partitions, each once, and none is without."""

    def holds(now: Board) -> bool:
        owned = {name: ps for name, ps in now.owned.items() if ps is not None}
        together = sorted(p for ps in owned.values() for p in ps)
        return owned.keys() == set(names) and together == [0, 1, 2, 3] and all(owned.values())

    await ledger.until(holds)


async def protocol_of(bootstrap: str, group: str) -> str:
    async with Admin(bootstrap) as admin:
        (found,) = await admin.describe_groups([group])
    return found.protocol


def their(library: str, ledger: Ledger, bootstrap: str, group: str, name: str) -> Actor:
    """A member of that library with its default assignors."""
    kind, options = THEIRS[library]
    made: Actor = kind(ledger, bootstrap, group, "t", name, **options)
    return made


async def ours_first(library: str, bootstrap: str, group: str) -> None:
    """A cooperative group goes over to what the other one knows, and back when that has left."""
    ledger = Ledger()
    async with Stage() as stage:
        for name in ("a", "b"):
            await stage.enter(OurConsumer(ledger, bootstrap, group, name))
        await until_whole(ledger, "a", "b")
        assert await protocol_of(bootstrap, group) == "cooperative-sticky"
        other = their(library, ledger, bootstrap, group, "other")
        await stage.enter(other)
        await until_whole(ledger, "a", "b", "other")
        assert await protocol_of(bootstrap, group) in ("range", "roundrobin")
        await stage.exit(other)
        await until_whole(ledger, "a", "b")
        assert await protocol_of(bootstrap, group) == "cooperative-sticky"
    assert (ledger.clashes, ledger.lost) == ([], [])


async def theirs_first(library: str, bootstrap: str, group: str) -> None:
    """Ours join as that one does, and go on in their own way when it has left."""
    ledger = Ledger()
    async with Stage() as stage:
        other = their(library, ledger, bootstrap, group, "other")
        await stage.enter(other)
        await ledger.until_owned({"other": (0, 1, 2, 3)})
        for name in ("a", "b"):
            await stage.enter(OurConsumer(ledger, bootstrap, group, name))
        await until_whole(ledger, "a", "b", "other")
        assert await protocol_of(bootstrap, group) in ("range", "roundrobin")
        await stage.exit(other)
        await until_whole(ledger, "a", "b")
        assert await protocol_of(bootstrap, group) == "cooperative-sticky"
    assert (ledger.clashes, ledger.lost) == ([], [])
