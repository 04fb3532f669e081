"""The data directory of a daemon that does not run: what it holds, read and left as it is."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from ringleader.coordinator.config import Settings
from ringleader.coordinator.groups.records import UNCOMMITTED_OFFSET, Key, decode_key
from ringleader.coordinator.identity import IDENTITY_FILE, Identity
from ringleader.coordinator.node import GROUPS_FILE, STORES, TOPICS_DIRECTORY
from ringleader.coordinator.storage.base import Record
from ringleader.coordinator.storage.lock import DirectoryLock
from ringleader.coordinator.storage.sqlite import SqliteStorage
from ringleader.coordinator.topics import Topics
from ringleader.coordinator.topics.catalog import TopicInfo
from ringleader.coordinator.topics.configs import KEYS
from ringleader.coordinator.topics.partition import Partition
from ringleader.migration.security import Kept, kept
from ringleader.protocol.wire import INT64_MAX

SHOWN = 5


class SourceError(Exception):
    """The data cannot be taken over; the text says what to do."""


@dataclass(slots=True)
class Source:
    """An opened directory."""

    settings: Settings
    topics: Topics
    rows: dict[int, list[tuple[Key | None, Record]]]
    """Of the groups, by partition of the groups' topic."""
    security: Kept

    def infos(self) -> list[TopicInfo]:
        """The topics that go along, by name. Not the journal: it tells of this daemon's groups only, and on
        the cluster would look like one that is written to."""
        return [info for info in self.topics.all() if not info.is_internal]

    def topic_configs(self, info: TopicInfo) -> dict[str, str]:
        """The configuration of a topic, with the daemon's own settings where they are not the defaults."""
        found = {}
        for name, key in KEYS.items():
            field = (key.broker_key or "").replace(".", "_")
            if field and (value := getattr(self.settings, field)) != Settings.model_fields[field].default:
                found[name] = str(value)
        return found | dict(info.configs)

    def partition(self, topic: str, number: int) -> Partition:
        """One partition."""
        return self.topics.partition(topic, number)


@asynccontextmanager
async def opened(directory: Path, settings: Settings) -> AsyncIterator[Source]:
    """The directory, which is this process's alone meanwhile. `settings`: those of the daemon.

    Raises SourceError, `StorageError` (LOCKED: the daemon runs), OSError, MalformedError.
    """
    if not (directory / IDENTITY_FILE).exists():
        raise SourceError(f"{directory} is not the data directory of a daemon: it has no {IDENTITY_FILE}")
    lock = DirectoryLock(directory)
    lock.acquire()
    try:
        Identity.find(directory, STORES)
        # Records that are too old are deleted by the daemon, or by the cluster, not here.
        lasting = settings.model_copy(update={"log_retention_check_interval_ms": INT64_MAX // 1_000_000})
        topics = Topics(directory / TOPICS_DIRECTORY, lasting, lambda: int(time.time() * 1000))
        security = await kept(directory)
        await topics.open()
        try:
            yield Source(settings, topics, await _rows(directory, settings, topics), security)
        finally:
            await topics.close()
    finally:
        lock.release()


async def _rows(
    directory: Path, settings: Settings, topics: Topics
) -> dict[int, list[tuple[Key | None, Record]]]:
    partitions = settings.offsets_topic_num_partitions
    storage = SqliteStorage(directory / GROUPS_FILE, partitions=partitions)
    await storage.start()
    try:
        rows = {
            partition: [
                (decode_key(key), (key, value))
                async for chunk in storage.replay(partition)
                for _, _, key, value in chunk
            ]
            for partition in range(partitions)
        }
    finally:
        await storage.close()
    open_in = {f"{topic}-{number}" for topic, number, _, _ in topics.open_transactions()}
    pending = (
        key for of in rows.values() for key, _ in of if key is not None and key[0] == UNCOMMITTED_OFFSET
    )
    open_in |= {f"group {key[1]}" for key in pending}
    if open_in:
        more = f" and {len(open_in) - SHOWN} more" if len(open_in) > SHOWN else ""
        raise SourceError(
            f"there are open transactions in {', '.join(sorted(open_in)[:SHOWN])}{more}: start the daemon "
            "again until they have ended, by their producers or after transaction.timeout.ms"
        )
    return rows
