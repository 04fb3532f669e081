"""Which topics there are: one small file, replaced as a whole, durable before anybody sees the change."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass, field
from pathlib import Path

from ringleader.coordinator.topics.files import write_whole
from ringleader.protocol.errors import ErrorCode, KafkaError

FORMAT = 1
MAX_NAME_LENGTH = 249
MAX_PARTITIONS = 10_000
"""Of one topic."""
MAX_ALL_PARTITIONS = 100_000
"""Of all topics together."""

_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """A topic. `id`: 16 random bytes, made with it; `configs`: what was set for it, nothing else."""

    name: str
    id: bytes
    partitions: int
    configs: Mapping[str, str] = field(default_factory=dict)
    internal: bool = False


class CatalogError(OSError):
    """The file cannot be read or is of another version; it is never overwritten then."""


def check_name(name: str) -> None:
    """Raises KafkaError (INVALID_TOPIC_EXCEPTION) for a name that no topic may have."""
    if not _NAME.fullmatch(name) or name in (".", ".."):
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            f"a topic's name is 1 to {MAX_NAME_LENGTH} ASCII letters, digits, '.', '_' and '-', "
            "and not '.' or '..'",
        )


def load(path: Path) -> dict[str, TopicInfo]:
    """The topics in the file, none if there is no file. Raises CatalogError, OSError."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    try:
        document = json.loads(data)
        if document["format"] != FORMAT:
            raise CatalogError(f"{path} has format {document['format']!r}, this version knows {FORMAT}")
        return {
            name: TopicInfo(name, bytes.fromhex(row["id"]), int(row["partitions"]), dict(row["configs"]))
            for name, row in document["topics"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CatalogError(f"{path} is not a list of topics: {error}") from None


def dump(topics: Mapping[str, TopicInfo]) -> bytes:
    """The file's content."""
    rows = {
        info.name: {"id": info.id.hex(), "partitions": info.partitions, "configs": dict(info.configs)}
        for info in topics.values()
    }
    return json.dumps({"format": FORMAT, "topics": rows}, indent=1).encode()


class Catalog:
    """The topics as of the last durable change. Changes that come together are one write."""

    def __init__(self, path: Path, executor: Executor) -> None:
        self._path = path
        self._executor = executor
        self._staged: dict[str, TopicInfo | None] = {}
        self._ticket: asyncio.Future[None] | None = None
        self._saver: asyncio.Task[None] | None = None
        self._busy: dict[str, asyncio.Future[None]] = {}
        self._reserved = 0
        self.topics: dict[str, TopicInfo] = {}
        self.by_id: dict[bytes, TopicInfo] = {}
        self.partitions = 0
        """Of all topics."""

    def adopt(self, topics: dict[str, TopicInfo]) -> None:
        """These are the topics now."""
        self.topics = topics
        self.by_id = {info.id: info for info in topics.values()}
        self.partitions = sum(info.partitions for info in topics.values())

    async def settled(self, name: str) -> None:
        """Wait until no change of this topic is on its way."""
        while name in self._busy:
            await asyncio.wait([self._busy[name]])

    def put(self, name: str, info: TopicInfo | None) -> Awaitable[None]:
        """Store a topic, or its deletion; `settled` must have been awaited just before.

        Goes on when the caller is cancelled. Raises KafkaError: KAFKA_STORAGE_ERROR, or POLICY_VIOLATION
        (at once) for too many partitions.
        """
        before = self.topics.get(name)
        more = (info.partitions if info else 0) - (before.partitions if before else 0)
        if more > 0 and self.partitions + self._reserved + more > MAX_ALL_PARTITIONS:
            raise KafkaError(
                ErrorCode.POLICY_VIOLATION, f"all topics have {MAX_ALL_PARTITIONS} partitions at most"
            )
        self._reserved += more
        loop = asyncio.get_running_loop()
        if self._ticket is None:
            self._ticket = loop.create_future()
            # Nobody may be left who asks.
            self._ticket.add_done_callback(lambda ticket: ticket.exception())
        self._staged[name] = info
        self._busy[name] = self._ticket
        if self._saver is None:
            self._saver = loop.create_task(self._save())
        return asyncio.shield(self._ticket)

    async def flush(self) -> None:
        """Wait until nothing is on its way."""
        if self._saver is not None:
            await asyncio.wait([self._saver])

    async def _save(self) -> None:
        loop = asyncio.get_running_loop()
        while self._ticket is not None:
            ticket, self._ticket = self._ticket, None
            staged, self._staged = self._staged, {}
            after = dict(self.topics)
            for name, info in staged.items():
                if info is None:
                    after.pop(name, None)
                else:
                    after[name] = info
            try:
                await loop.run_in_executor(self._executor, write_whole, self._path, dump(after))
            except OSError as error:
                failure: KafkaError | None = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error))
            else:
                failure = None
                self.adopt(after)
            self._reserved = sum(info.partitions for info in self._staged.values() if info)
            for name in staged:
                if self._busy.get(name) is ticket:
                    del self._busy[name]
            if failure is None:
                ticket.set_result(None)
            else:
                ticket.set_exception(failure)
        self._saver = None
