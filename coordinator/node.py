"""Puts the rooms together: one node that serves Kafka clients from a data directory."""

from __future__ import annotations

from ringleader.coordinator.clock import Clock, WallClock, monotonic_ms, wall_ms
from ringleader.coordinator.config import Settings
from ringleader.coordinator.data_dir import claim
from ringleader.coordinator.identity import Identity, IdentityError
from ringleader.coordinator.journal import record as journal_record
from ringleader.coordinator.journal.writer import JournalWriter
from ringleader.coordinator.logs import Log
from ringleader.coordinator.runtime import offsets_topic
from ringleader.coordinator.runtime.groups import GroupRuntime
from ringleader.coordinator.runtime.offsets_topic import OffsetsTopic
from ringleader.coordinator.runtime.transactions import STORE_PARTITIONS, TransactionRuntime
from ringleader.coordinator.security.directory import Security
from ringleader.coordinator.security.store import FILE as SECURITY_FILE
from ringleader.coordinator.security.store import FileStore
from ringleader.coordinator.server.audit import Audit
from ringleader.coordinator.server.sasl import Sasl
from ringleader.coordinator.server.server import Server
from ringleader.coordinator.server.services import LocalServices
from ringleader.coordinator.server.tables import build
from ringleader.coordinator.serving import ServingNode, authorizer_of, quotas_of
from ringleader.coordinator.storage.base import Storage, StorageError
from ringleader.coordinator.storage.lock import DirectoryLock
from ringleader.coordinator.storage.sqlite import SqliteStorage
from ringleader.coordinator.topics import DamagedError, Topics
from ringleader.coordinator.topics.log import CATALOG_FILE, PRODUCER_IDS_FILE
from ringleader.host.lock_file import ForeignFileError
from ringleader.protocol.errors import KafkaError, MalformedError

GROUPS_FILE = "groups.db"
TRANSACTIONS_FILE = "transactions.db"
TOPICS_DIRECTORY = "topics"
JOURNAL_BATCH_MAX_BYTES = 2_097_152
JOURNAL_FILE_MAX_BYTES = 67_108_864
JOURNAL_FILE_MAX_MS = 86_400_000
STORES = (GROUPS_FILE, TOPICS_DIRECTORY, TRANSACTIONS_FILE)
"""In the order in which a start opens them."""


class Node(ServingNode):
    """One node by itself. `async with Node(settings) as node:` or `start` and `stop`; runs on any loop, in
    any thread.

    Nothing is printed; see `logs` for where log lines go. Signals are the caller's business.
    """

    refusals = (StorageError, MalformedError, KafkaError, DamagedError, IdentityError, ForeignFileError)

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
        super().__init__(settings, log)
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
        self.offsets: OffsetsTopic | None = None
        if isinstance(self._storage, SqliteStorage):
            self.offsets = OffsetsTopic(settings.offsets_topic_num_partitions, self._storage, wall_ms)
            self.runtime.observe(self.offsets.durable)
        self.security: Security = Security(
            FileStore(settings.data_dir / SECURITY_FILE, self._stop_serving),
            authorizer_of(settings),
            quotas_of(settings),
        )
        self.journal = JournalWriter(wall_ms, self.log, reports=self.telemetry)
        if self.telemetry is not None:
            self.telemetry.on_report = self.journal.add
        self.runtime.on_journal = self.journal.add
        self.server = Server(
            settings,
            self.runtime,
            now_ms=now_ms,
            log=self.log,
            authorizer=self.security.authorizer,
            quotas=self.security.quotas,
        )
        self._now_ms = now_ms
        self._wall_ms = wall_ms
        self._topics_open = False

    async def _start(self) -> None:
        """Take possession of the data directory, replay it, listen."""
        settings = self.settings
        self._measure(self.server, self.runtime, self.journal)
        claim(settings.data_dir, self.log)
        self._lock.acquire()
        identity = Identity.find(settings.data_dir, self._stores)
        self.security.on_groups = self.runtime.configs.apply
        # Before groups are loaded: their configurations say how long the first sessions are.
        await self.security.start()
        await self.runtime.start()
        topics = Topics(
            settings.data_dir / TOPICS_DIRECTORY,
            settings,
            self._wall_ms,
            on_failed=self._stop_serving,
            sync=settings.storage_sync == "full",
            now_ms=self._now_ms,
            run_queue=self.runtime.run_queue,
        )
        await topics.open()
        self.topics, self._topics_open = topics, True
        topics.follow(self.runtime.topic_changed)
        await topics.finish_deletions(self.runtime.forget_topic)
        await self._open_journal(topics)
        if self.offsets is not None:
            await self.offsets.start()
            topics.serve(offsets_topic.TOPIC, self.offsets.partitions, offsets_topic.CONFIGS)
        self.transactions = self._transaction_runtime(topics)
        await self.transactions.start()
        of_topics = (f"{TOPICS_DIRECTORY}/{name}" for name in (CATALOG_FILE, PRODUCER_IDS_FILE))
        identity.keep([*self._stores, *of_topics, SECURITY_FILE])
        for name, partitions in settings.topic:
            info = self.topics.describe(name)
            if info is None:
                await self.topics.create(name, partitions)
            elif info.partitions != partitions:
                self.log.warning(
                    "topic has another number of partitions",
                    topic=name,
                    has=info.partitions,
                    requested=partitions,
                )
        services = LocalServices(
            settings=settings,
            runtime=self.runtime,
            topics=self.topics,
            node_id=settings.node_id,
            cluster_id=identity.cluster_id,
            spawn=self._spawn,
            transactions=self.transactions,
            now_ms=self._now_ms,
            wall_ms=self._wall_ms,
            authorizer=self.security.authorizer,
            security=self.security,
            telemetry=self.telemetry,
            audit=Audit(self.log, self._now_ms, self._wall_ms, self.journal.add),
        )
        self.server.sasl = Sasl(self.security.users, await self._token_keys(), self._wall_ms)
        listeners = await self.server.start(build(services), topics)
        self.host, self.port = listeners[0].address
        self._listening(self.server, data_dir=str(settings.data_dir), storage_sync=settings.storage_sync)

    async def _open_journal(self, topics: Topics) -> None:
        settings = self.settings
        configs: dict[str, str | None] = {
            "retention.ms": str(settings.journal_retention_ms),
            "retention.bytes": str(settings.journal_retention_bytes),
            "segment.bytes": str(min(settings.journal_retention_bytes // 8, JOURNAL_FILE_MAX_BYTES)),
            "segment.ms": str(JOURNAL_FILE_MAX_MS),
            "max.message.bytes": str(JOURNAL_BATCH_MAX_BYTES),
        }
        info = topics.describe(journal_record.TOPIC)
        if info is None:
            await topics.create(journal_record.TOPIC, 1, configs)
        elif info.configs != configs:
            await topics.configure(journal_record.TOPIC, lambda _: configs)
        self.journal.start(topics)

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
            run_queue=self.runtime.run_queue,
        )

    async def _stop(self) -> None:
        self.server.stop_accepting()
        if self.transactions is not None:
            await self.transactions.stop()
        await self.runtime.stop()
        await self.journal.stop(cleanly=self.failure is None)
        await self._end_tasks()
        await self.server.close_connections(self.settings.shutdown_grace_ms / 1000)
        await self.security.store.close()
        await self._stop_keys()
        if self._topics_open:
            self._topics_open = False
            await self.topics.close()
        self._lock.release()
