"""Users, ACLs, quotas and the configurations of groups as they are kept: of a node by itself in one small
file, replaced as a whole. (That of several nodes is a topic: `storage.kafka.security`.)"""

from __future__ import annotations

import asyncio
import json
import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, get_args

from ringleader.coordinator.topics.disk import DamagedError, GroupCommit, SyncError, write_whole
from ringleader.protocol import json_text
from ringleader.protocol.errors import ErrorCode, KafkaError

FILE: Final = "security.json"
"""Its name in the data directory."""
FORMAT = 1
SECRET_BYTES = 32
MAX_BYTES = 16 * 1024 * 1024
"""Of all entries together, as JSON."""

Section = Literal["users", "acls", "quotas", "groups"]
SECTIONS: tuple[Section, ...] = get_args(Section)
OLD: tuple[Section, ...] = ("users", "acls", "quotas")
"""Those that were there from the beginning."""

Changed = Mapping[str, Any]
"""Key -> its current JSON value; None: deleted."""


@dataclass(slots=True, eq=False)
class _Change:
    section: Section
    entries: Changed
    error: KafkaError | None = None


class SecurityStore(ABC):
    """The entries as of the last durable change.

    Values are JSON: only the code that keeps them here knows what they mean.
    """

    def __init__(self, on_failed: Callable[[Exception], None] | None = None) -> None:
        """`on_failed` is called once, when what is kept cannot be trusted any more; every change is refused
        from then on."""
        self._on_failed = on_failed
        self._failure = ""
        self._sections: dict[Section, dict[str, Any]] = {name: {} for name in SECTIONS}
        self._bytes = 0
        self._observers: dict[Section, list[Callable[[Changed], None]]] = {name: [] for name in SECTIONS}
        self.secret = b""
        """Random, and the same after each start: for what has to be guessed by nobody. Never shown, logged or
        sent."""

    @abstractmethod
    async def start(self) -> None:
        """Read what is kept, or begin to keep. Raises what makes a start fail with a sentence."""

    @abstractmethod
    async def close(self) -> None:
        """Wait until nothing is on its way; no change comes after it."""

    def damaged(self, what: str) -> DamagedError:
        """To be raised by a reader that cannot read an entry."""
        return DamagedError(f"{self}: {what} cannot be read: {self.repair}")

    repair: ClassVar[str]
    """The advice for an operator in that case."""

    def entries(self, section: Section) -> Mapping[str, Any]:
        """The current entries of a section: to be read, and only before the next `await`."""
        return self._sections[section]

    def observe(self, section: Section, observer: Callable[[Changed], None]) -> None:
        """`observer` gets what changed from now on, when it is durable and before who changed it goes on.
        An exception is of an entry that cannot be read, and ends the node."""
        self._observers[section].append(observer)

    @abstractmethod
    async def change(self, section: Section, entries: Changed) -> None:
        """Set entries, all of them or none; None takes one out. Returns when that is durable; goes on when
        the caller is cancelled.

        Raises KafkaError: POLICY_VIOLATION for more than may be kept, KAFKA_STORAGE_ERROR; of several nodes
        also REQUEST_TIMED_OUT, when nobody knows whether it was made.
        """

    def _fail(self, error: Exception) -> None:
        if not self._failure:
            self._failure = str(error)
            if self._on_failed is not None:
                self._on_failed(error)

    def _apply(self, changed: Mapping[Section, Changed]) -> None:
        """These changes are durable."""
        for section, entries in changed.items():
            self._sections[section] = merged(self._sections[section], entries)
            for observer in self._observers[section]:
                observer(entries)


class FileStore(SecurityStore):
    """In a file. Changes that come together are one write."""

    repair = "put the last copy of the file back"

    def __init__(self, path: Path, on_failed: Callable[[Exception], None] | None = None) -> None:
        super().__init__(on_failed)
        self._path = path
        self._commits = GroupCommit(self._commit)

    def __str__(self) -> str:
        return str(self._path)

    def __repr__(self) -> str:
        return f"FileStore({str(self._path)!r})"

    async def start(self) -> None:
        """See `open`."""
        await asyncio.to_thread(self.open)

    async def close(self) -> None:
        """See `SecurityStore`."""
        await self._commits.settle()

    def open(self) -> None:
        """Read the file, or make it. Raises OSError: DamagedError for one that cannot be read or is of
        another version, SyncError."""
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            self.secret = secrets.token_bytes(SECRET_BYTES)
            self._write({})
            return
        self.secret, self._sections = _parse(self._path, data)
        self._bytes = sum(
            size_of(key, value) for entries in self._sections.values() for key, value in entries.items()
        )

    async def change(self, section: Section, entries: Changed) -> None:
        """See `SecurityStore`."""
        change = _Change(section, entries)
        await self._commits.add(change)
        if change.error is not None:
            raise change.error

    async def _commit(self, changes: list[_Change]) -> None:
        changed: dict[Section, dict[str, Any]] = {}
        size = self._bytes
        for change in changes:
            staged = changed.setdefault(change.section, {})
            present = {**self._sections[change.section], **staged}
            try:
                size = larger(size, present, change.entries)
            except KafkaError as error:
                change.error = error
            else:
                staged.update(change.entries)
        if self._failure:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self._failure)
        if not any(changed.values()):
            return
        try:
            await asyncio.get_running_loop().run_in_executor(None, partial(self._write, changed))
        except OSError as error:
            if isinstance(error, SyncError):
                self._fail(error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        self._bytes = size
        self._apply(changed)

    def _write(self, changed: Mapping[Section, Changed]) -> None:
        """Perhaps on a thread; nothing changes the entries meanwhile."""
        document: dict[str, Any] = {"format": FORMAT, "secret": self.secret.hex()}
        for section in SECTIONS:
            document[section] = merged(self._sections[section], changed.get(section, {}))
        write_whole(self._path, json.dumps(document, indent=0).encode())


def merged(entries: Mapping[str, Any], changed: Changed) -> dict[str, Any]:
    """A section after a change."""
    return {key: value for key, value in {**entries, **changed}.items() if value is not None}


def larger(size: int, before: Mapping[str, Any], entries: Changed) -> int:
    """The size of all sections, `size` until now, with these changes to one that was so `before`. Raises
    KafkaError (POLICY_VIOLATION): too large."""
    more = sum(size_of(key, value) - size_of(key, before.get(key)) for key, value in entries.items())
    if more > 0 and size + more > MAX_BYTES:
        text = (
            f"all users, ACLs, quotas and configurations of groups together have {MAX_BYTES:,} bytes at most"
        )
        raise KafkaError(ErrorCode.POLICY_VIOLATION, text)
    return size + more


def size_of(key: str, value: Any) -> int:
    """The size of an entry, in characters of JSON; 0 of a deleted one."""
    return 0 if value is None else len(json.dumps({key: value}))


def _parse(path: Path, data: bytes) -> tuple[bytes, dict[Section, dict[str, Any]]]:
    try:
        document = json_text.loads(data)
        if document["format"] != FORMAT:
            raise DamagedError(f"{path} has format {document['format']!r}, this ringleader knows {FORMAT}")
        secret = bytes.fromhex(document["secret"])
        sections = {
            section: document[section] for section in SECTIONS if section in document or section in OLD
        }
        sections |= {section: {} for section in SECTIONS if section not in sections}
    except (ValueError, KeyError, TypeError):
        raise DamagedError(f"{path} cannot be read: put the last copy of it back") from None
    if len(secret) != SECRET_BYTES or not all(isinstance(entries, dict) for entries in sections.values()):
        raise DamagedError(f"{path} cannot be read: put the last copy of it back")
    return secret, sections
