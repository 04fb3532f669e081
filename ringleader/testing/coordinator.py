"""A coordinator for tests: in this process, on a thread of its own, gone at the end.

    def test_it():
        with Coordinator(topics={"orders": 3}) as coordinator:
            consumer = KafkaConsumer("orders", bootstrap_servers=coordinator.bootstrap, group_id="g")

or, as a pytest fixture: take `ringleader_coordinator` (a fresh one for the test) or
`ringleader_session_coordinator` (one for all tests of the session) as an argument; pytest finds them by
itself when Ringleader is installed. Its own thread means that clients of any kind work: asyncio,
synchronous, other processes.

To test an application when things go wrong, `coordinator.faults` answers with errors, delays, drops
connections, lets the coordinator move, and knows what was asked; `expire_member`, `fence_producer`,
`advance_clock` and `restart` do what their names say.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import threading
from collections.abc import Coroutine, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import uvloop

from ringleader.clients.admin import Admin
from ringleader.clients.consumer import PartitionConsumer
from ringleader.clients.fetch.model import Record as ReadRecord
from ringleader.clients.model import TopicPartition
from ringleader.clients.producer import Producer
from ringleader.coordinator.clock import monotonic_ms, wall_ms
from ringleader.coordinator.config import Settings
from ringleader.coordinator.node import Node
from ringleader.protocol.records import Headers, Record, build_batch
from ringleader.testing.faults import Faults, Relay

LOOK_S = 0.05
"""Behind the last record of a topic may be aborted ones, which no consumer is handed."""

T = TypeVar("T")


class Coordinator:
    """A node on a free port of the loopback address.

    `settings`: fields of `ringleader.coordinator.config.Settings`. Other than in production the first
    rebalance of a group does not wait for more members, and commits are not synced to the disk. Without
    `data_dir` its files go to a temporary directory that is deleted when it stops for good.
    """

    def __init__(
        self,
        *,
        topics: Mapping[str, int] | None = None,
        data_dir: Path | str | None = None,
        **settings: Any,
    ) -> None:
        self._temporary = data_dir is None
        self._given_dir = None if data_dir is None else Path(data_dir)
        self._settings: dict[str, Any] = {
            "group_initial_rebalance_delay_ms": 0,
            "storage_sync": "off",
        } | settings
        self._settings["topic"] = tuple((topics or {}).items())
        self.data_dir = Path()
        """Where its files are, while it runs."""
        self.host = "127.0.0.1"
        self.port = 0
        self.faults = Faults()
        """The faults to inject, and the requests that were seen."""
        self._ahead_ms = 0
        self._node: Node | None = None
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._ready = threading.Event()
        self._error: BaseException | None = None

    @property
    def bootstrap(self) -> str:
        """HOST:PORT for clients."""
        return f"{self.host}:{self.port}"

    @property
    def node(self) -> Node:
        """The node inside; touch it in its own loop only, see `run`."""
        assert self._node is not None, "the coordinator is not running"
        return self._node

    def start(self) -> Self:
        """Start it and wait until clients can come. Raises what kept it from starting."""
        assert self._thread is None, "the coordinator is running"
        if self._given_dir is not None:
            self.data_dir = self._given_dir
        elif not self.data_dir.name:
            self.data_dir = Path(tempfile.mkdtemp(prefix="ringleader-"))
        self._ready.clear()
        self._error = None
        self._thread = threading.Thread(target=self._run, name="ringleader coordinator", daemon=True)
        self._thread.start()
        self._ready.wait()
        self._raise_error()
        return self

    def _raise_error(self) -> None:
        if self._error is not None:
            self.stop()

    def stop(self) -> None:
        """Stop it cleanly and delete its temporary directory. May be called more than once. Raises what kept
        it from that, or had ended it before."""
        try:
            self._end()
        finally:
            if self._temporary and self.data_dir.name:
                shutil.rmtree(self.data_dir, ignore_errors=True)
                self.data_dir = Path()

    def restart(self) -> None:
        """Stop it cleanly and start it again, on the same port and with the same state."""
        self._end()
        self.start()

    def expire_member(self, group_id: str, member_id: str) -> None:
        """End a member's session now, as if it had been silent for too long. Raises KeyError for a member
        that there is not."""

        async def expire() -> None:
            self.node.runtime.expire_member(group_id, member_id)

        self.run(expire())

    def fence_producer(self, transactional_id: str) -> None:
        """Shut out the producer of a transactional id, as if another one had begun with it; an open
        transaction of its is aborted. Raises KeyError for an id that no producer has begun with."""

        async def fence() -> None:
            transactions = self.node.transactions
            if transactions is None or transactions.call_for(
                transactional_id,
                "fence",
                None,
                lambda shard, _: shard.needs_producer_id(transactional_id),
                reads=True,
            ):
                raise KeyError(transactional_id)
            async with Producer(self.bootstrap, transactional_id=transactional_id):
                pass

        self.run(fence())

    def advance_clock(self, seconds: float) -> None:
        """Let time pass for the coordinator: sessions end, delays are over, offsets expire. Clients do not
        notice: their own clocks go on as before."""

        async def advance() -> None:
            self._ahead_ms += int(seconds * 1000)
            self.node.runtime.wake()

        self.run(advance())

    def create_topic(self, name: str, partitions: int = 1, configs: Mapping[str, str] | None = None) -> None:
        """Create a topic."""
        self.run(self.node.topics.create(name, partitions, dict(configs or {})))

    def produce(
        self,
        topic: str,
        *values: bytes | None,
        key: bytes | None = None,
        partition: int = 0,
        headers: Headers = (),
        timestamp_ms: int | None = None,
    ) -> int:
        """Put records into a partition of a topic: the offset of the first. `timestamp_ms`: Unix time;
        None: now. Raises KafkaError."""
        at_ms = wall_ms() if timestamp_ms is None else timestamp_ms
        batch = build_batch([Record(n, at_ms, key, value, headers) for n, value in enumerate(values)])
        return self.run(self.node.topics.append(topic, partition, batch)).base_offset

    def records(self, topic: str) -> list[ReadRecord]:
        """All records of a topic, by partition and offset; those of transactions that are not committed are
        left out. Raises BrokerError for a topic that there is not."""

        async def read() -> list[ReadRecord]:
            options: Any = {"auto_offset_reset": "earliest", "isolation_level": "read_committed"}
            found: list[ReadRecord] = []
            async with PartitionConsumer(self.bootstrap, [topic], **options) as consumer:
                ends = await consumer.end_offsets(consumer.assignment())
                for partition, end in ends.items():
                    while await consumer.position(partition) < end:
                        for batch in await consumer.getmany(timeout_s=LOOK_S):
                            found += batch.records
            return sorted(found, key=lambda record: (record.partition, record.offset))

        return self.run(read())

    def committed(self, group_id: str) -> dict[TopicPartition, int]:
        """The committed offsets of a group."""

        async def ask() -> dict[TopicPartition, int]:
            async with Admin(self.bootstrap) as admin:
                return {place: at.offset for place, at in (await admin.group_offsets(group_id)).items()}

        return self.run(ask())

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the coordinator's loop, and wait for it."""
        assert self._loop is not None, "the coordinator is not running"
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _end(self) -> None:
        thread, self._thread = self._thread, None
        if thread is None:
            return
        if self._loop is not None and self._stop is not None:
            self._loop.call_soon_threadsafe(self._stop.set)
        thread.join()
        self._loop, self._stop, self._node = None, None, None
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
                runner.run(self._serve())
        except BaseException as error:
            self._error = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        relay = Relay(self.faults)
        try:
            port = await relay.listen(self.host, self.port)
            # Validated as it is: the environment of the tests' machine must not change what they test.
            settings = Settings.model_validate(
                {
                    "listen": f"{self.host}:0",
                    "advertised_address": f"{self.host}:{port}",
                    "data_dir": self.data_dir,
                    **self._settings,
                }
            )
            async with Node(settings, now_ms=self._now_ms, wall_ms=self._wall_ms) as node:
                await relay.serve(node.host, node.port)
                self.port = port
                self._node, self._loop, self._stop = node, asyncio.get_running_loop(), asyncio.Event()
                self._ready.set()
                await self._stop.wait()
        finally:
            await relay.close()

    def _now_ms(self) -> int:
        return monotonic_ms() + self._ahead_ms

    def _wall_ms(self) -> int:
        return wall_ms() + self._ahead_ms
