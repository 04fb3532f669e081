"""One group: its members come, go, are killed and frozen; each such step is an `Incident`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ringleader.clients.admin import Admin
from ringleader.clients.descriptions import GroupDescription
from ringleader.clients.errors import ClientError
from ringleader.clients.model import TopicPartition
from tests.incidents.ledger import Incident
from tests.incidents.libraries import JAVA, java_config
from tests.interop.clients.java_clients import JavaClients, JavaError, LineClients

SESSION_MS = CONSUMER_SESSION_MS = 6_000
HEARTBEAT_MS = 1_500
MAX_POLL_MS = 10_000
PARTITIONS = 6
SETTLE_S = 120.0
"""A group that has not come to rest by then is none that anything can be expected of."""
ANSWER_S = 180.0
"""A JVM that starts beside thirty other processes takes its time."""
QUIET_S = 2.5
"""A group that did not change for so long rests: leaders that rejoin by themselves have done so by then."""
LOOK_S = 0.4


class PythonClients(LineClients):
    """A process with clients of one Python library."""

    def __init__(self, log_path: Path, library: str) -> None:
        super().__init__(log_path)
        self._library = library

    def command(self) -> list[str]:
        """``tests.incidents.member``."""
        return [sys.executable, "-m", "tests.incidents.member", self._library]


class Hosts:
    """The processes that members live in: one for all of a library, and one for each that will be killed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._shared: dict[str, LineClients] = {}
        self._all: list[LineClients] = []
        self._starting = threading.Lock()

    def shared(self, library: str) -> LineClients:
        """The one that stays."""
        with self._starting:
            if library not in self._shared:
                self._shared[library] = self.own(library, "shared")
            return self._shared[library]

    def own(self, library: str, name: str) -> LineClients:
        """A new one."""
        log = self._directory / f"{library}-{name}.log"
        host = JavaClients(log) if library == JAVA else PythonClients(log, library)
        host.answer_s = ANSWER_S
        host.start()
        self._all.append(host)
        return host

    def kill(self) -> None:
        """All of them."""
        for host in self._all:
            with contextlib.suppress(AssertionError, ProcessLookupError):
                os.kill(host.pid, signal.SIGCONT)
            host.kill()


class Looker:
    """Looks at all groups again and again, so that their teams can wait for what they should become."""

    def __init__(self, admin: Admin) -> None:
        self._admin = admin
        self._groups: set[str] = set()
        self._seen: dict[str, tuple[GroupDescription, float]] = {}
        self._looked = asyncio.Event()

    def add(self, group: str) -> None:
        """Look at this one, too."""
        self._groups.add(group)

    async def run(self) -> None:
        """Never ends by itself."""
        while True:
            with contextlib.suppress(ClientError, TimeoutError):
                found = await self._admin.within(10.0).describe_groups(sorted(self._groups))
                now_s = time.monotonic()
                for one in found:
                    before = self._seen.get(one.group_id)
                    if before is None or before[0] != one:
                        self._seen[one.group_id] = one, now_s
            looked, self._looked = self._looked, asyncio.Event()
            looked.set()
            await asyncio.sleep(LOOK_S)

    async def until(
        self, group: str, holds: Callable[[GroupDescription], bool], *, quiet_s: float = 0.0
    ) -> bool:
        """Wait until that holds, and has held for so long. False: it does not come."""
        began_s = time.monotonic()
        while time.monotonic() - began_s < SETTLE_S:
            seen = self._seen.get(group)
            # A state that was seen before the wait began says nothing of what it waits for.
            if seen and holds(seen[0]) and time.monotonic() - max(seen[1], began_s) >= quiet_s:
                return True
            await self._looked.wait()
        return False


@dataclass(slots=True)
class Client:
    """A member as its host knows it."""

    client_id: str
    host: LineClients
    name: str
    topics: list[str]
    instance_id: str | None
    failed: asyncio.Event = field(default_factory=asyncio.Event)

    async def call(self, op: str, **arguments: Any) -> None:
        """A command. Raises `JavaError`."""
        await self.host.call(op, self.name, **arguments)


@dataclass(frozen=True, slots=True)
class Spec:
    """A group that incidents happen to."""

    name: str
    library: str
    protocol: str = "range"
    """The assignor of a classic group, or "consumer"."""
    commit_ms: int = 500
    static: bool = False
    slow_ms: int = 0
    same_client_id: bool = False
    """All of its members have one client id, as those have that nobody named."""
    steps: tuple[str, ...] = ()
    session_ms: int = SESSION_MS
    heartbeat_ms: int = HEARTBEAT_MS
    max_poll_ms: int = MAX_POLL_MS
    idle: bool = False
    """Nobody writes to its topics."""
    drawn: str = ""
    """Of a group that was drawn: what its acts draw from."""


@dataclass(slots=True)
class World:
    """The parts that all groups share."""

    bootstrap: str
    admin: Admin
    hosts: Hosts
    looker: Looker
    ledger: list[Incident]
    say: Callable[[str], None]


class Team:
    """See above."""

    def __init__(self, spec: Spec, world: World) -> None:
        self.spec = spec
        self.world = world
        self.topic = f"{spec.name}.orders"
        self.other_topic = f"{spec.name}.bills"
        self.partitions = {self.topic: PARTITIONS, self.other_topic: 2}
        self.members: dict[str, Client] = {}
        self.done: list[Incident] = []
        self.live = not spec.drawn
        """Its topics get records."""

    @property
    def group(self) -> str:
        """Its id."""
        return self.spec.name

    def client_id(self, name: str) -> str:
        """Of a member: its own, or that of all."""
        return "worker" if self.spec.same_client_id else f"{self.spec.name}-{name}"

    def config(self, name: str, instance_id: str | None) -> dict[str, Any]:
        """As `libraries.Config`."""
        classic = self.spec.protocol != "consumer"
        return {
            "bootstrap": self.world.bootstrap,
            "group": self.group,
            "client_id": self.client_id(name),
            "instance_id": instance_id,
            "session_ms": self.spec.session_ms,
            "heartbeat_ms": self.spec.heartbeat_ms,
            "max_poll_ms": self.spec.max_poll_ms,
            "commit_ms": self.spec.commit_ms,
            "assignor": "slow" if self.spec.slow_ms else self.spec.protocol if classic else "",
            "protocol": "classic" if classic else "consumer",
            "slow_ms": self.spec.slow_ms,
        }

    async def start(
        self,
        name: str,
        *,
        host: LineClients | None = None,
        topics: list[str] | None = None,
        instance_id: str | None = None,
    ) -> Client:
        """A member begins."""
        if host is None:
            # A JVM takes seconds to start: others go on meanwhile.
            host = await asyncio.to_thread(self.world.hosts.shared, self.spec.library)
        if instance_id is None and self.spec.static:
            instance_id = f"{self.group}-i{name}"
        loop = asyncio.get_running_loop()

        def happens(event: Mapping[str, Any]) -> None:
            if event["event"] == "failed":
                loop.call_soon_threadsafe(client.failed.set)

        topics = topics or [self.topic]
        client = Client(
            self.client_id(name), host, host.name(f"{self.group}-{name}", happens), topics, instance_id
        )
        config: Mapping[str, Any] = self.config(name, instance_id)
        if self.spec.library == JAVA:
            config = java_config(config)
        self.members[name] = client
        await client.call("consumer", config=config, topics=topics)
        return client

    async def stop(self, name: str) -> None:
        """A member ends as it should."""
        client = self.members.pop(name)
        await client.call("close", how="DEFAULT")
        client.host.forget(client.name)

    def _rests(self, members: int) -> Callable[[GroupDescription], bool]:
        wanted = {
            (topic, partition)
            for client in self.members.values()
            for topic in client.topics
            for partition in range(self.partitions[topic])
        }

        def holds(seen: GroupDescription) -> bool:
            owned = [
                (topic, partition)
                for member in seen.members
                for topic, partitions in member.assignment.items()
                for partition in partitions
            ]
            return seen.state == "Stable" and len(seen.members) == members and sorted(owned) == sorted(wanted)

        return holds

    async def rests(self, members: int | None = None) -> bool:
        """Wait until all members are in the group, or `members` if given; they have all partitions, and
        nothing moves any more. False: that does not come."""
        return await self.world.looker.until(
            self.group, self._rests(len(self.members) if members is None else members), quiet_s=QUIET_S
        )

    async def has(self, members: int) -> bool:
        """Wait until the group has this number of members, whatever it does."""
        return await self.world.looker.until(self.group, lambda seen: len(seen.members) == members)

    async def works(self) -> None:
        """Wait until everybody has committed twice, so that its silence would be noticed."""
        wanted = [
            (topic, number)
            for client in self.members.values()
            for topic in client.topics
            for number in range(self.partitions[topic])
        ]
        began_s = time.monotonic()
        for _ in range(2 if self.spec.commit_ms and not self.spec.idle else 0):
            before = await self._offsets()
            while time.monotonic() - began_s < SETTLE_S:
                await asyncio.sleep(LOOK_S)
                now = await self._offsets()
                if all(now.get(place, -1) > before.get(place, -1) for place in wanted):
                    break
            else:
                # Somebody stands still by itself, and may expire for that: nobody did that to it.
                self.done[-1].settled = False
                self.world.say(f"{self.group}: NOT ALL OF ITS MEMBERS WORK since {self.done[-1].what}")

    async def _offsets(self) -> dict[TopicPartition, int]:
        try:
            found = await self.world.admin.group_offsets(self.group)
        except ClientError:  # a broker beside thirty processes may take its time
            return {}
        return {place: committed.offset for place, committed in found.items()}

    @contextlib.asynccontextmanager
    async def incident(
        self, kind: str, what: str, client_ids: list[str], **expected: Any
    ) -> AsyncIterator[Incident]:
        """Write down what is done inside, until the group rests."""
        spec = self.spec
        commits = f"{spec.commit_ms / 1000:g} s" if spec.commit_ms else "never"
        one = Incident(
            group=self.group,
            kind=kind,
            what=what,
            client=spec.library,
            protocol=spec.protocol,
            commits=commits,
            client_ids=client_ids,
            began_ms=now_ms(),
            **expected,
        )
        self.world.ledger.append(one)
        self.done.append(one)
        try:
            yield one
        except (ClientError, JavaError, TimeoutError) as error:
            self.world.say(f"{self.group}: {what}: {type(error).__name__}: {error}")
            one.settled = False
        if one.settled and not await self.rests():
            one.settled = False
        one.ended_ms = now_ms()
        self.world.say(f"{self.group}: {what}" + ("" if one.settled else ": DID NOT COME TO REST"))


def now_ms() -> int:
    """Unix time."""
    return time.time_ns() // 1_000_000
