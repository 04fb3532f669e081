"""Members with the default assignors in one group with consumers of other libraries and their defaults: they
join in either order, and no partition ever has two owners."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from typing import Any

import pytest

from ringleader.clients.admin import Admin
from ringleader.clients.consumer import GroupConsumer
from ringleader.clients.errors import InconsistentGroupProtocolError
from ringleader.clients.group.leader import Leading
from ringleader.clients.group.matching import Choice
from ringleader.clients.group.settings import SubscriptionSettings
from ringleader.clients.group.subscription import consumer_member
from ringleader.clients.model import MemberInfo, TopicPartition
from ringleader.protocol.embedded import Assignment, Subscription
from ringleader.testing.coordinator import Coordinator
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

    def __init__(self, ledger: Ledger, coordinator: Coordinator, name: str) -> None:
        self._ledger, self._name = ledger, name
        self._partitions: set[int] = set()
        self.consumer = GroupConsumer(
            coordinator.bootstrap,
            "g",
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


async def protocol_of(coordinator: Coordinator) -> str:
    async with Admin(coordinator.bootstrap) as admin:
        (group,) = await admin.describe_groups(["g"])
    return group.protocol


def their(library: str, ledger: Ledger, coordinator: Coordinator, name: str) -> Actor:
    kind, options = THEIRS[library]
    made: Actor = kind(ledger, coordinator.bootstrap, "g", "t", name, **options)
    return made


@pytest.mark.long
@pytest.mark.parametrize("library", THEIRS)
async def test_ours_first(coordinator: Coordinator, library: str) -> None:
    """A cooperative group goes over to what the other one knows, and back when that has left."""
    ledger = Ledger()
    async with Stage() as stage:
        for name in ("a", "b"):
            await stage.enter(OurConsumer(ledger, coordinator, name))
        await until_whole(ledger, "a", "b")
        assert await protocol_of(coordinator) == "cooperative-sticky"
        other = their(library, ledger, coordinator, "other")
        await stage.enter(other)
        await until_whole(ledger, "a", "b", "other")
        assert await protocol_of(coordinator) in ("range", "roundrobin")
        await stage.exit(other)
        await until_whole(ledger, "a", "b")
        assert await protocol_of(coordinator) == "cooperative-sticky"
    assert (ledger.clashes, ledger.lost) == ([], [])


@pytest.mark.long
@pytest.mark.parametrize("library", THEIRS)
async def test_theirs_first(coordinator: Coordinator, library: str) -> None:
    ledger = Ledger()
    async with Stage() as stage:
        other = their(library, ledger, coordinator, "other")
        await stage.enter(other)
        await ledger.until_owned({"other": (0, 1, 2, 3)})
        for name in ("a", "b"):
            await stage.enter(OurConsumer(ledger, coordinator, name))
        await until_whole(ledger, "a", "b", "other")
        assert await protocol_of(coordinator) in ("range", "roundrobin")
        await stage.exit(other)
        await until_whole(ledger, "a", "b")
        assert await protocol_of(coordinator) == "cooperative-sticky"
    assert (ledger.clashes, ledger.lost) == ([], [])


@pytest.mark.parametrize(
    ("library", "uses"), [("aiokafka", "roundrobin"), ("kafka-python", "range"), ("confluent-kafka", "range")]
)
async def test_who_offers_nothing_in_common_is_told_what_to_change(
    coordinator: Coordinator, library: str, uses: str
) -> None:
    ledger = Ledger()
    async with Stage() as stage:
        await stage.enter(their(library, ledger, coordinator, "their-app"))
        await ledger.until_owned({"their-app": (0, 1, 2, 3)})
        member = consumer_member(coordinator.bootstrap, "g", "t", assignors=["cooperative-sticky"])
        with pytest.raises(InconsistentGroupProtocolError) as caught:
            async with member:
                await member.wait_assigned(20)
    assert str(caught.value) == (
        f"group 'g' uses {uses} (client their-app at 127.0.0.1); this member offers cooperative-sticky: "
        f"pass assignors=['{uses}'] with what all of them offer"
    )


def info(name: str, owned: dict[str, list[int]] | None = None, generation: int = -1) -> MemberInfo:
    return MemberInfo(name, None, Subscription(["t"], None, owned or {}, generation).encode())


async def test_a_leader_of_ours_lets_nobody_have_what_is_held() -> None:
    """What a member claims counts, as of its newest generation; and all rebalance once more."""
    member = consumer_member("h:1", "g", "t")
    leading = Leading(Choice(["t"], None), SubscriptionSettings())
    leading.bind(member.settings, member.machine)
    members = [info("a", {"t": [0, 1]}, 3), info("b", {"t": [1, 2]}, 4), info("c")]
    cluster: Any = None  # it does not have to ask
    given = await leading.lead(cluster, "range", members)
    shares = {name: Assignment.decode(share).partitions for name, share in given.items()}
    assert shares == {"a": {"t": [0]}, "b": {"t": [1, 2]}, "c": {}}
