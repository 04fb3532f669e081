"""Which topics there are, and which producer ids were given out: small files, replaced as a whole, durable
before any client sees the change."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ringleader.coordinator.topics.configs import validate
from ringleader.coordinator.topics.disk import (
    DamagedError,
    Disk,
    GroupCommit,
    read_number,
    write_number,
    write_whole,
)
from ringleader.protocol import json_text
from ringleader.protocol.errors import ErrorCode, KafkaError
from ringleader.protocol.wire import INT64_MAX

FORMAT = 1
MAX_PARTITIONS = 10_000
"""Of one topic."""
MAX_ALL_PARTITIONS = 100_000
"""Of all topics together."""
MAX_CONFIG_BYTES = 16 * 1024 * 1024
"""Of all topics' configurations together: keys and values that were set."""
PRODUCER_ID_BLOCK = 1_000
"""Producer ids per reservation; a crash skips what is left of one."""
BELIEVED_PRODUCER_IDS = 1 << 62
"""Records are proof that a producer id was given out if it is below this. A client may write any id into its
batch, and no node gives out that many."""
LEAST_LEFT_PRODUCER_IDS = 1 << 40
"""A file that leaves fewer ids than this followed such a client; see `ProducerIds.adopt`."""

INTERNAL = frozenset(("__consumer_offsets", "__ringleader_journal"))
"""Topics that are for reading: Metadata says so, and clients write nothing to them."""

_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """A topic. `id`: 16 random bytes, made with it; `configs`: what was set for it, nothing else."""

    name: str
    id: bytes
    partitions: int
    configs: Mapping[str, str] = field(default_factory=dict)
    deleting: bool = False
    """Its deletion was decided: clients see it no more, and its name is not free yet."""

    @property
    def is_internal(self) -> bool:
        """Whether clients only read it."""
        return self.name in INTERNAL

    @property
    def config_bytes(self) -> int:
        """See `MAX_CONFIG_BYTES`."""
        return sum(len(key) + len(value.encode()) for key, value in self.configs.items())


def check_name(name: str) -> None:
    """Raises KafkaError (INVALID_TOPIC_EXCEPTION) for a name that no topic may have."""
    if not _NAME.fullmatch(name) or name in (".", ".."):
        raise KafkaError(
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            "a topic's name is 1 to 249 ASCII letters, digits, '.', '_' and '-', and not '.' or '..'",
        )


def refuse_internal(name: str, doing: str) -> None:
    """Raises KafkaError (INVALID_TOPIC_EXCEPTION) for a topic that is for reading."""
    if name in INTERNAL:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot {doing} internal topic {name}.")


def load(path: Path) -> dict[str, TopicInfo] | None:
    """The topics in the file, None if there is no file. Raises OSError (DamagedError among them)."""
    try:
        document = json_text.loads(path.read_bytes())
        if document["format"] != FORMAT:
            raise DamagedError(f"{path} has format {document['format']!r}, this version knows {FORMAT}")
        return {name: _info(name, row) for name, row in document["topics"].items()}
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise DamagedError(f"{path} is not a list of topics: {error}") from None


def save(path: Path, topics: Mapping[str, TopicInfo | None]) -> None:
    """Replace the file, durably; None: there is no such topic. Raises OSError."""
    rows = {name: _row(info) for name, info in topics.items() if info is not None}
    write_whole(path, json.dumps({"format": FORMAT, "topics": rows}, indent=1).encode())


def _info(name: str, row: dict[str, Any]) -> TopicInfo:
    deleting, configs = bool(row.get("deleting")), dict(row["configs"])
    return TopicInfo(name, bytes.fromhex(row["id"]), int(row["partitions"]), configs, deleting)


def _row(info: TopicInfo) -> dict[str, object]:
    row = {"id": info.id.hex(), "partitions": info.partitions, "configs": dict(info.configs)}
    return {**row, "deleting": True} if info.deleting else row


@dataclass(slots=True, eq=False)
class _Change:
    name: str
    make: Callable[[TopicInfo | None], TopicInfo | None]
    """Gets the topic as it is (None: there is none) and returns what it shall be; raises KafkaError."""
    info: TopicInfo | None = None
    error: Exception | None = None


class Catalog:
    """The topics as of the last durable change. Changes that come together are one write.

    Changes go on when the caller is cancelled. They raise KafkaError: KAFKA_STORAGE_ERROR, and
    POLICY_VIOLATION for more partitions or configurations than all topics together may have.
    """

    def __init__(self, path: Path, disk: Disk) -> None:
        self._path = path
        self._disk = disk
        self._all: dict[str, TopicInfo] = {}
        self._commits = GroupCommit(self._commit)
        self._config_bytes = 0
        self.topics: dict[str, TopicInfo] = {}
        """Those that are not being deleted."""
        self.by_id: dict[bytes, TopicInfo] = {}
        self.partitions = 0
        """Of all topics."""
        self.settle = self._commits.settle
        self._served: set[str] = set()
        self.on_change: Callable[[str, TopicInfo | None], None] = lambda name, info: None
        """Called with each topic that is as it was not before; None: there is no such topic."""

    def serve(self, info: TopicInfo) -> None:
        """There is this topic too, whose records are somewhere else; it hides one of that name."""
        self._served.add(info.name)
        self.topics[info.name] = self.by_id[info.id] = info
        self.on_change(info.name, info)

    def adopt(self, changed: Mapping[str, TopicInfo | None]) -> None:
        """These are so now; None: gone."""
        for name, info in changed.items():
            before = self._all.pop(name, None)
            if before is not None:
                self.topics.pop(name, None)
                self.by_id.pop(before.id, None)
                self.partitions -= before.partitions
                self._config_bytes -= before.config_bytes
            if info is not None:
                self._all[name] = info
                self.partitions += info.partitions
                self._config_bytes += info.config_bytes
                if not info.deleting:
                    self.topics[name] = self.by_id[info.id] = info
            self.on_change(name, self.topics.get(name))

    def deleting(self) -> list[TopicInfo]:
        """Topics whose deletion was decided and is not finished."""
        return [info for info in self._all.values() if info.deleting]

    async def create(
        self, name: str, partitions: int, configs: Mapping[str, str | None], validate_only: bool
    ) -> TopicInfo:
        """A new topic. Raises INVALID_TOPIC_EXCEPTION, TOPIC_ALREADY_EXISTS (also while one of that name is
        being deleted), INVALID_PARTITIONS, INVALID_CONFIG."""

        def make(present: TopicInfo | None) -> TopicInfo:
            if present is not None or name in self._served:
                state = "is being deleted" if present is not None and present.deleting else "already exists"
                raise KafkaError(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' {state}.")
            if not 1 <= partitions <= MAX_PARTITIONS:
                text = f"a topic has 1 to {MAX_PARTITIONS} partitions"
                raise KafkaError(ErrorCode.INVALID_PARTITIONS, text)
            return TopicInfo(name, os.urandom(16), partitions, validate(configs))

        check_name(name)
        return await self._put(name, make, validate_only)

    async def change(
        self, name: str, change: Callable[[TopicInfo], TopicInfo], *, validate_only: bool = False
    ) -> TopicInfo:
        """Make something else of a topic. Raises UNKNOWN_TOPIC_OR_PARTITION."""

        def make(present: TopicInfo | None) -> TopicInfo:
            if present is None or present.deleting:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Topic '{name}' does not exist.")
            return change(present)

        return await self._put(name, make, validate_only)

    async def remove(self, name: str) -> None:
        """There is no such topic any more: the name is free again."""
        await self._commits.add(_Change(name, lambda present: None))

    async def _put(
        self, name: str, make: Callable[[TopicInfo | None], TopicInfo], validate_only: bool
    ) -> TopicInfo:
        if validate_only:
            return make(self._all.get(name))
        change = _Change(name, make)
        await self._commits.add(change)
        if change.info is None:
            assert change.error is not None
            raise change.error
        return change.info

    async def _commit(self, changes: list[_Change]) -> None:
        changed: dict[str, TopicInfo | None] = {}
        partitions, config_bytes = self.partitions, self._config_bytes
        for change in changes:
            before = changed[change.name] if change.name in changed else self._all.get(change.name)
            try:
                after = change.make(before)
                more = (after.partitions if after else 0) - (before.partitions if before else 0)
                longer = (after.config_bytes if after else 0) - (before.config_bytes if before else 0)
                if more > 0 and partitions + more > MAX_ALL_PARTITIONS:
                    text = f"all topics have {MAX_ALL_PARTITIONS} partitions at most"
                    raise KafkaError(ErrorCode.POLICY_VIOLATION, text)
                if longer > 0 and config_bytes + longer > MAX_CONFIG_BYTES:
                    text = f"all topics' configurations have {MAX_CONFIG_BYTES} bytes at most"
                    raise KafkaError(ErrorCode.POLICY_VIOLATION, text)
            except Exception as error:
                change.error = error
            else:
                change.info = changed[change.name] = after
                partitions += more
                config_bytes += longer
        if changed:
            await self._disk.store(self._write, changed)
            self.adopt(changed)

    def _write(self, changed: Mapping[str, TopicInfo | None]) -> None:
        """On a thread; nothing changes `_all` meanwhile."""
        save(self._path, {**self._all, **changed})


class ProducerIds:
    """Producer ids that are never given out twice: reserved in blocks before the first is used. The file has
    the first one that is not reserved."""

    def __init__(self, path: Path, disk: Disk) -> None:
        self._path = path
        self._disk = disk
        self._reservations = GroupCommit(self._reserve)
        self._next = 0
        self._end = 0
        self.settle = self._reservations.settle

    @property
    def unused(self) -> int:
        """No id from this one on was given out."""
        return self._next

    def adopt(self, known: Iterable[int]) -> int | None:
        """Go on after the file and after these ids, which records have; there is a file from here on. Raises
        OSError (DamagedError among them).

        Returns the file's number if no node can have come so far. Earlier versions believed every id in a
        record, so one batch with the largest id left none to give out. Then ids go on at
        `BELIEVED_PRODUCER_IDS`, far above all that were given out before, and far below all that came after.
        """
        believed = max((one for one in known if one < BELIEVED_PRODUCER_IDS), default=-1) + 1
        stored = read_number(self._path)
        if stored is None:
            write_number(self._path, believed)
        wrong = stored if stored is not None and stored > INT64_MAX - LEAST_LEFT_PRODUCER_IDS else None
        self._next = self._end = BELIEVED_PRODUCER_IDS if wrong is not None else max(stored or 0, believed)
        return wrong

    async def take(self) -> int:
        """A fresh id. Raises KafkaError (KAFKA_STORAGE_ERROR) when none can be reserved."""
        while self._next == self._end:
            await self._reservations.add(None)
        self._disk.check()
        self._next += 1
        return self._next - 1

    async def _reserve(self, requests: list[None]) -> None:
        if self._next == self._end:
            await self._disk.store(write_number, self._path, self._end + PRODUCER_ID_BLOCK)
            self._end += PRODUCER_ID_BLOCK
