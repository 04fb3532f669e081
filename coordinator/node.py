"""Puts the rooms together: one node that serves Kafka clients from a data directory."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Coroutine
from ipaddress import ip_address
from types import TracebackType
from typing import Any

from ringleader.coordinator.clock import Clock, WallClock, monotonic_ms, wall_ms
from ringleader.coordinator.config import Settings
from ringleader.coordinator.identity import Identity, IdentityError, make_directory
from ringleader.coordinator.logs import Log, get_log
from ringleader.coordinator.runtime.groups import GroupRuntime
from ringleader.coordinator.runtime.transactions import STORE_PARTITIONS, TransactionRuntime
from ringleader.coordinator.server.call import Call
from ringleader.coordinator.server.handlers import LocalServices, build
from ringleader.coordinator.server.server import Server
from ringleader.coordinator.storage.base import Storage, StorageError
from ringleader.coordinator.storage.lock import DirectoryLock
from ringleader.coordinator.storage.sqlite import SqliteStorage
from ringleader.coordinator.topics import DamagedError, Topics
from ringleader.coordinator.topics.log import CATALOG_FILE
from ringleader.protocol.errors import KafkaError, MalformedError

GROUPS_FILE = "groups.db"
TRANSACTIONS_FILE = "transactions.db"
TOPICS_DIRECTORY = "topics"
STORES = (GROUPS_FILE, TOPICS_DIRECTORY, TRANSACTIONS_FILE)
"""In the order in which a start opens them."""


class StartError(OSError):
    """The node cannot start; the text is one sentence. An OSError, so that who expects what a socket or a
    file raises need not know it."""


class Node:
    """One node. `async with Node(settings) as node:` or `start` and `stop`; runs on any loop, in any thread.

    Nothing is printed; see `logs` for where log lines go. Signals are the caller's business.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        storage: Storage | None = None,
        now_ms: Clock = monotonic_ms,
        wall_ms: WallClock = wall_ms,
        log: Log | None = None,
    ) -> None:
        """`storage`: another store for groups than SQLite in the data directory."""
        self.settings = settings
        self.host = ""
        """Where it listens; set by `start`."""
        self.port = 0
        self.log = log or get_log()
        self.failure: Exception | None = None
        """Why it can serve no more."""
        self._lock = DirectoryLock(settings.data_dir)
        self._stores = STORES if storage is None else STORES[1:]
        self._storage = storage or SqliteStorage(
            settings.data_dir / GROUPS_FILE,
            settings.storage_sync,
            partitions=settings.offsets_topic_num_partitions,
        )
        self.topics: Topics
        self.transactions: TransactionRuntime | None = None
        self.runtime = GroupRuntime(
            settings,
            self._storage,
            partitions=settings.offsets_topic_num_partitions,
            now_ms=now_ms,
            wall_ms=wall_ms,
            log=self.log,
            storage_timeout_ms=settings.storage_timeout_ms,
            on_failed=self._stop_serving,
        )
        self.server = Server(settings, self.runtime, now_ms=now_ms, log=self.log)
        self._now_ms = now_ms
        self._wall_ms = wall_ms
        self._tasks: set[asyncio.Task[None]] = set()
        self._failed = asyncio.Event()
        self._started = False
        self._topics_open = False

    @property
    def bootstrap(self) -> str:
        """HOST:PORT that it listens on."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    async def start(self) -> None:
        """Take possession of the data directory, replay it, listen. Raises `StartError`, or OSError for an
        address that cannot be listened on; then nothing is left running."""
        try:
            await self._start()
        except (StorageError, MalformedError, KafkaError, DamagedError, IdentityError) as error:
            await self.stop()
            raise StartError(str(error)) from error
        except BaseException:
            await self.stop()
            raise

    async def _start(self) -> None:
        settings = self.settings
        self._started = True
        make_directory(settings.data_dir)
        self._lock.acquire()
        identity = Identity.find(settings.data_dir, self._stores)
        await self.runtime.start()
        topics = Topics(
            settings.data_dir / TOPICS_DIRECTORY,
            settings,
            self._wall_ms,
            on_failed=self._stop_serving,
            sync=settings.storage_sync == "full",
        )
        await topics.open()
        self.topics, self._topics_open = topics, True
        await topics.finish_deletions(self.runtime.forget_topic)
        self.transactions = self._transaction_runtime(topics)
        await self.transactions.start()
        identity.keep([*self._stores, f"{TOPICS_DIRECTORY}/{CATALOG_FILE}"])
        for name, partitions in settings.topic:
            info = self.topics.describe(name)
            if info is None:
                await self.topics.create(name, partitions)
            elif info.partitions != partitions:
                self.log.warning(
                    "topic has another number of partitions",
                    topic=name,
                    has=info.partitions,
                    asked=partitions,
                )
        services = LocalServices(
            settings=settings,
            runtime=self.runtime,
            topics=self.topics,
            node_id=settings.node_id,
            host="",
            port=0,
            cluster_id=identity.cluster_id,
            spawn=self._spawn,
            transactions=self.transactions,
            now_ms=self._now_ms,
            wall_ms=self._wall_ms,
        )
        self.host, self.port = await self.server.start(build(services), topics)
        services.host, services.port = self._advertised()
        self.log.info(
            "listening",
            address=self.bootstrap,
            advertised=f"{services.host}:{services.port}",
            data_dir=str(settings.data_dir),
            storage_sync=settings.storage_sync,
        )

    def _transaction_runtime(self, topics: Topics) -> TransactionRuntime:
        settings = self.settings
        storage = SqliteStorage(
            settings.data_dir / TRANSACTIONS_FILE, settings.storage_sync, partitions=STORE_PARTITIONS
        )
        return TransactionRuntime(
            settings,
            storage,
            topics,
            self.runtime,
            now_ms=self._now_ms,
            wall_ms=self._wall_ms,
            log=self.log,
            storage_timeout_ms=settings.storage_timeout_ms,
            on_failed=self._stop_serving,
        )

    def _advertised(self) -> tuple[str, int]:
        """What clients are told. Everywhere ("0.0.0.0") is no address to come to: then this machine's
        name."""
        asked = self.settings.advertised_address
        if asked is not None:
            return asked.host, asked.port or self.port
        if ip_address(self.host.partition("%")[0]).is_unspecified:
            name = socket.gethostname()
            self.log.warning(
                "clients are told to come to this machine's name; see advertised.address", host=name
            )
            return name, self.port
        return self.host, self.port

    async def stop(self) -> None:
        """Stop accepting, finish what is on its way to the disk, answer everything that waits with a
        retriable error, close connections and files. May be called twice, and without `start`."""
        if not self._started:
            return
        self._started = False
        self.server.stop_accepting()
        if self.transactions is not None:
            await self.transactions.stop()
        await self.runtime.stop()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.server.close_connections(self.settings.shutdown_grace_ms / 1000)
        if self._topics_open:
            self._topics_open = False
            await self.topics.close()
        self._lock.release()
        self.log.info("stopped")

    async def wait_failed(self) -> None:
        """Returns when the node can serve no more (`failure` says why): the process should end, so that the
        next one replays what the disk really holds."""
        await self._failed.wait()

    async def __aenter__(self) -> Node:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def _stop_serving(self, error: Exception) -> None:
        self.failure = self.failure or error
        self._failed.set()

    # ---- work that handlers start ----

    def _spawn(self, call: Call | None, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(self._contained(call, coroutine))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if call is not None:
            call.on_closed = task.cancel

    async def _contained(self, call: Call | None, coroutine: Coroutine[Any, Any, None]) -> None:
        try:
            await coroutine
        except Exception:
            self.log.exception("work failed", api_key=None if call is None else call.api_key)
            if call is not None:
                call.close("failed")
