"""The applications of a simulated run: real clients of the library, whose answers are checked."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any, TypeVar

from ringleader.clients.admin import Admin
from ringleader.clients.blocking.cluster import BlockingCluster
from ringleader.clients.blocking.endpoint import Endpoint
from ringleader.clients.connection.security.sasl import SaslScram
from ringleader.clients.consumer.group import GroupConsumer
from ringleader.clients.errors import ClientError
from ringleader.clients.group.membership import GroupMember
from ringleader.clients.group.subscription import partitions_of
from ringleader.clients.model import Assigned, MemberInfo, MemberProtocol
from ringleader.clients.produce.producer import Producer, ProduceSettings
from ringleader.clients.produce.rows import Row, RowList
from tests.simulation.daemon import turns as simulated
from tests.simulation.daemon.network import HOST, PORT, SASL_PORT
from tests.simulation.daemon.turns import Process, Thread

if TYPE_CHECKING:
    from tests.simulation.daemon.world import DaemonWorld

T = TypeVar("T")

BOOTSTRAP = f"{HOST}:{PORT}"
SASL_BOOTSTRAP = f"{HOST}:{SASL_PORT}"
USER, PASSWORD = "app", "a secret of the simulation"
TOPIC = "orders"
PROGRESS = "progress"
SHARDS = 4
READERS, JOBS = "readers", "jobs"
SLACK_S = 1.5
"""A call may take so long beyond its bound, for the end of what it waits for."""
SESSION_MS = 6_000
MAX_POLL_MS = 8_000


class Client:
    """An application in a process of its own. It goes on until it is stopped or killed."""

    is_member = False

    def __init__(self, world: DaemonWorld, name: str) -> None:
        self.world, self.name = world, name
        self.sasl: SaslScram | None
        self.process = Process(name)
        self.rng = random.Random(f"{world.seed} {name} {len(world.clients)}")
        self.bootstrap, self.sasl = BOOTSTRAP, None
        if world.secured and self.is_member:
            self.bootstrap, self.sasl = SASL_BOOTSTRAP, SaslScram(USER, PASSWORD, "SHA-256")
        self.stalled_until_us = 0
        self.settled = False
        """It has what it is to have, as far as it knows."""
        self.stopping = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake: asyncio.Event | None = None
        self.thread = Thread(target=self._run, name="application", process=self.process)

    def start(self) -> None:
        """Begin."""
        self.thread.start()

    def stop(self) -> None:
        """End in good order."""
        self.stopping = True
        if self._loop is not None and self._wake is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._wake.set)

    def kill(self) -> None:
        """SIGKILL: the brokers see its connections end, and nobody hears of it again."""
        self.process.dead = True
        self.world.net.reset(self.name)
        self.stop()

    def _run(self) -> None:
        asyncio.run(self._main())

    async def _main(self) -> None:
        self._loop, self._wake = asyncio.get_running_loop(), asyncio.Event()
        while not self.stopping:
            try:
                await self.work()
            except ClientError as error:
                self.settled = False
                self.world.say(f"{self.name} failed", error)
                await self.nap(1.0)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        if left and not self.process.dead:
            self.world.wrong("no task is left", f"{self.name}: {sorted(one.get_name() for one in left)}")

    async def work(self) -> None:
        """Until it is to stop, or a ClientError."""
        raise NotImplementedError

    async def nap(self, seconds: float) -> None:
        """Sleep, but hear that it is to stop."""
        assert self._wake is not None
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), seconds)

    async def bounded(self, name: str, seconds: float, call: Awaitable[T]) -> T:
        """A call that must end in that time, whatever happens."""
        turns, began_us, paused_us = self.world.turns, self.world.turns.now_us, self.process.paused_us
        try:
            return await call
        finally:
            took_s = (turns.now_us - began_us - (self.process.paused_us - paused_us)) / 1e6
            self.world.checks.counts[name] += 1
            if took_s > seconds + SLACK_S and not self.process.dead:
                self.world.wrong("every call ends", f"{self.name}: {name} took {took_s:.1f} of {seconds:g} s")


class _Watched(GroupConsumer):
    """A consumer that tells in which generation it got what."""

    owner: Reader

    async def _assigned(self, assigned: Assigned) -> None:
        self.owner.owns(assigned.generation, partitions_of(assigned))
        await super()._assigned(assigned)


class Reader(Client):
    """Reads as a member of the group, commits as it was drawn."""

    is_member = True

    def __init__(self, world: DaemonWorld, name: str) -> None:
        super().__init__(world, name)
        rng = random.Random(f"{world.seed} {name}")
        self._commits = rng.choice(("wait", "wait", "no wait", "auto"))
        self._records = rng.choice((1, 7, 500))
        self._work_s = rng.choice((0.0, 0.0, 0.05) if self._records == 1 else (0.0, 0.05, 0.4))
        self._refused = False
        """A commit was refused, and none was made since."""
        static = rng.random() < 0.25
        self._options: dict[str, Any] = {
            "auto_offset_reset": "earliest",
            "auto_commit": self._commits == "auto",
            "auto_commit_interval_ms": 700,
            "session_timeout_ms": SESSION_MS,
            "heartbeat_interval_ms": 500,
            "max_poll_interval_ms": MAX_POLL_MS,
            "request_timeout_ms": 5_000,
            "metadata_max_age_ms": 3_000,
            "group_instance_id": name if static else None,
            "client_id": name,
            "sasl": self.sasl,
        }

    def owns(self, generation: int, partitions: list[Any]) -> None:
        """Its member got these."""
        if not self.process.dead:
            self.world.checks.owns(READERS, self.name, generation, [(tp[0], tp[1]) for tp in partitions])

    async def work(self) -> None:
        """See `Client.work`."""
        consumer = _Watched(self.bootstrap, READERS, **self._options, pattern=f"{TOPIC}.*")
        consumer.owner = self
        await self.bounded("start", 10, consumer.start(timeout_s=10))
        try:
            while not self.stopping:
                await self._turn(consumer)
        finally:
            self.settled = False
            await self.bounded("stop", 10, consumer.stop(timeout_s=10))

    async def _turn(self, consumer: _Watched) -> None:
        checks, turns = self.world.checks, self.world.turns
        batches = await self.bounded("getmany", 1, consumer.getmany(self._records, timeout_s=1))
        if self.process.dead:
            return
        for batch in batches:
            for record in batch:
                checks.handed((batch.topic, batch.partition), record.offset, record.value or b"")
        self.settled = bool(consumer.member.assigned)
        if self._work_s and batches:
            await asyncio.sleep(self._work_s)
        if turns.now_us < self.stalled_until_us:
            await self.nap((self.stalled_until_us - turns.now_us) / 1e6)
        made = {(one.topic, one.partition): one.next_offset for one in batches}
        if self._commits == "auto" or not (made or self._refused):
            return
        checks.calls_offsets(self.name)
        if self._refused:  # perhaps nobody else has it now
            made, self._refused = {}, False
            call = consumer.commit(timeout_s=6)
        elif self._commits == "no wait":
            consumer.commit_nowait(batches, on_done=lambda error: self._done(made, error))
            return
        else:
            call = consumer.commit(batches, timeout_s=6)
        try:
            await self.bounded("commit", 6, call)
        except ClientError as error:
            self._done(made, error)
        else:
            self._done(made, None)

    def _done(self, made: dict[Any, int], error: ClientError | None) -> None:
        if self.process.dead:
            return
        if error is None:
            self.world.checks.committed(READERS, made)
        else:
            self._refused = True
            self.world.say(f"{self.name} did not commit", error)
            self.world.checks.counts["commits refused"] += 1


def deal(_protocol: str, members: list[MemberInfo]) -> dict[str, bytes]:
    """The shards dealt out in turn."""
    names = sorted(member.member_id for member in members)
    return {name: bytes(range(at, SHARDS, len(names))) for at, name in enumerate(names)}


class Worker(Client):
    """Has shards by its own protocol, and counts on in each from what is committed."""

    is_member = True

    def __init__(self, world: DaemonWorld, name: str) -> None:
        super().__init__(world, name)
        self._work_s = random.Random(f"{world.seed} {name}").choice((0.2, 0.5, 1.0))

    def _note_assigned(self, assigned: Assigned) -> None:
        if not self.process.dead:
            shards = [(PROGRESS, shard) for shard in assigned.assignment]
            self.world.checks.owns(JOBS, self.name, assigned.generation, shards)

    async def work(self) -> None:
        """See `Client.work`."""
        member = GroupMember(
            self.bootstrap,
            JOBS,
            protocol_type="sharding",
            protocols=[MemberProtocol("deal")],
            assign=deal,
            on_assigned=self._note_assigned,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=MAX_POLL_MS,
            heartbeat_interval_ms=500,
            request_timeout_ms=5_000,
            client_id=self.name,
            sasl=self.sasl,
        )
        await member.start()
        try:
            while not self.stopping:
                with contextlib.suppress(TimeoutError):
                    await self._turn(member)
        finally:
            self.settled = False
            await self.bounded("stop", 10, member.stop(timeout_s=10))

    async def _turn(self, member: GroupMember) -> None:
        checks, turns = self.world.checks, self.world.turns
        await self.bounded("wait_assigned", 5, member.wait_assigned(5))
        async with member.working() as assigned:
            shards = [(PROGRESS, shard) for shard in assigned.assignment]
            known = {place: offset for place, offset in checks.known(JOBS).items() if place[1:] in shards}
            checks.calls_offsets(self.name)
            lookup = member.committed(shards, timeout_s=6) if shards else asyncio.sleep(0, {})
            found = {tp: one.offset for tp, one in (await self.bounded("committed", 6, lookup)).items()}
            if self.process.dead:
                return
            checks.fetched(JOBS, known, found, self.name)
            self.settled = True
            made = {shard: found.get(shard, 0) + 1 for shard in shards}
            await asyncio.sleep(self._work_s)
            if turns.now_us < self.stalled_until_us:
                await self.nap((self.stalled_until_us - turns.now_us) / 1e6)
            if not made:
                return
            try:
                call = member.commit(made, generation=assigned.generation, timeout_s=6)
                await self.bounded("commit", 6, call)
            except ClientError as error:
                self.world.say(f"{self.name} did not commit", error)
                checks.counts["commits refused"] += 1
            else:
                if not self.process.dead:
                    checks.committed(JOBS, made)


class Operator(Client):
    """Makes topics and lets them grow, and looks at what is committed."""

    def __init__(self, world: DaemonWorld, name: str) -> None:
        super().__init__(world, name)
        self.wants: list[tuple[str, int]] = []
        """("create" or "grow", how many partitions), in order."""
        self.partitions = {TOPIC: 3}
        """Topics and how many partitions they have at least."""

    async def work(self) -> None:
        """See `Client.work`."""
        checks = self.world.checks
        async with Admin(BOOTSTRAP, client_id=self.name, timeout_ms=8_000) as admin:
            if self.world.secured:
                await admin.set_scram_user(USER, PASSWORD, hash_name="SHA-256", iterations=4_096)
            while not self.stopping:
                while self.wants and not self.stopping:
                    await self._change(admin, *self.wants[0])
                    self.wants.pop(0)
                for group in (READERS, JOBS):
                    known = checks.known(group)
                    found = await self.bounded("group_offsets", 8, admin.group_offsets(group))
                    checks.fetched(group, known, {tp: one.offset for tp, one in found.items()}, self.name)
                self.settled = not self.wants
                await self.nap(2.0)

    async def _change(self, admin: Admin, change: str, count: int) -> None:
        """Not known to have been made: it is tried again, and what is there already is as good."""
        there = {one.name: len(one.partitions) for one in await admin.list_topics()}
        if change == "create":
            name, total = f"{TOPIC}-{len(self.partitions)}", count
            if name not in there:
                await self.bounded("create_topic", 8, admin.create_topic(name, count))
        else:
            name = max(self.partitions)
            total = self.partitions[name] + count
            if there[name] < total:
                await self.bounded("create_partitions", 8, admin.create_partitions(name, total))
        self.partitions[name] = max(total, there.get(name, 0))
        self.world.checks.counts[change] += 1


class Writer(Client):
    """Produces the records that it is given, with the library's blocking producer."""

    def __init__(self, world: DaemonWorld, name: str) -> None:
        super().__init__(world, name)
        self.wants = 0
        self._made = 0
        self._batch_bytes = random.Random(f"{world.seed} {name}").choice((200, 2_000, 1_000_000))

    def _run(self) -> None:
        cluster = BlockingCluster(Endpoint(((HOST, PORT),), self.name, request_timeout_ms=5_000))
        settings = ProduceSettings(
            delivery_timeout_s=300,
            max_block_s=300,
            batch_bytes=self._batch_bytes,
            max_request_bytes=max(1_000, self._batch_bytes),
        )
        producer = Producer(cluster, settings)
        while not self.stopping:
            self.settled = not self.wants
            if not self.wants:
                simulated.sleep(0.2)
                continue
            count, self.wants = self.wants, 0
            topics = sorted(self.world.operator.partitions)
            for topic in topics:
                made = range(self._made, self._made + count)
                self._made += count
                rows = [Row(0, -1, b"%d" % (n % 7), b"%s %d" % (topic.encode(), n)) for n in made]
                producer.write(topic, RowList(rows))
            producer.flush()
            for (topic, partition), written in producer.written().items():
                self.world.checks.produced[topic, partition] = written.records
            self.world.checks.counts["produced"] += 1
        producer.close()
        cluster.close()
