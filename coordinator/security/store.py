"""Users, ACLs and quotas as they are kept: one small file, replaced as a whole, durable before anybody sees a
change."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal, get_args

from ringleader.coordinator.topics.disk import DamagedError, GroupCommit, SyncError, write_whole
from ringleader.protocol.errors import ErrorCode, KafkaError

FILE: Final = "security.json"
"""Its name in the data directory."""
FORMAT = 1
SECRET_BYTES = 32
MAX_BYTES = 16 * 1024 * 1024
"""Of all entries together, as JSON."""
OWNER_ONLY = 0o600
"""Who may read the file: it has what passwords can be guessed from."""

Section = Literal["users", "acls", "quotas"]
SECTIONS: tuple[Section, ...] = get_args(Section)

Changed = Mapping[str, Any]
"""Key -> JSON value as of now; None: gone."""


@dataclass(slots=True, eq=False)
class _Change:
    section: Section
    entries: Changed
    error: KafkaError | None = None


class SecurityStore:
    """The entries as of the last durable change. Changes that come together are one write.

    Values are JSON: what they mean is the business of who keeps them here.
    """

    def __init__(self, path: Path, on_failed: Callable[[Exception], None] | None = None) -> None:
        """`on_failed` is called once, after a failed sync; every change is refused from then on."""
        self._path = path
        self._on_failed = on_failed
        self._failure = ""
        self._sections: dict[Section, dict[str, Any]] = {name: {} for name in SECTIONS}
        self._bytes = 0
        self._observers: dict[Section, list[Callable[[Changed], None]]] = {name: [] for name in SECTIONS}
        self._commits = GroupCommit(self._commit)
        self.settle = self._commits.settle
        self.secret = b""
        """Random, made with the file: for what has to be the same after each start and be guessed by nobody.
        Never shown, logged or sent."""

    def __repr__(self) -> str:
        return f"SecurityStore({str(self._path)!r})"

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
            _size(key, value) for entries in self._sections.values() for key, value in entries.items()
        )

    def damaged(self, what: str) -> DamagedError:
        """To be raised by who cannot read an entry at the start."""
        return DamagedError(f"{self._path}: {what} cannot be read: put the last copy of the file back")

    def entries(self, section: Section) -> Mapping[str, Any]:
        """What is in a section now: to be read, and only before the next `await`."""
        return self._sections[section]

    def observe(self, section: Section, observer: Callable[[Changed], None]) -> None:
        """`observer` gets what changed from now on, when it is durable and before who changed it goes on."""
        self._observers[section].append(observer)

    async def change(self, section: Section, entries: Changed) -> None:
        """Set entries, all of them or none; None takes one out. Returns when that is durable; goes on when
        the caller is cancelled.

        Raises KafkaError: POLICY_VIOLATION for more than may be kept, KAFKA_STORAGE_ERROR.
        """
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
            more = sum(
                _size(key, value) - _size(key, present.get(key)) for key, value in change.entries.items()
            )
            if more > 0 and size + more > MAX_BYTES:
                text = f"all users, ACLs and quotas together have {MAX_BYTES:,} bytes at most"
                change.error = KafkaError(ErrorCode.POLICY_VIOLATION, text)
            else:
                staged.update(change.entries)
                size += more
        if self._failure:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, self._failure)
        if not any(changed.values()):
            return
        try:
            await asyncio.get_running_loop().run_in_executor(None, partial(self._write, changed))
        except OSError as error:
            if isinstance(error, SyncError):
                self._failure = str(error)
                if self._on_failed is not None:
                    self._on_failed(error)
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error
        self._bytes = size
        for section, entries in changed.items():
            self._sections[section] = _merged(self._sections[section], entries)
            for observer in self._observers[section]:
                observer(entries)

    def _write(self, changed: Mapping[Section, Changed]) -> None:
        """Perhaps on a thread; nothing changes the entries meanwhile."""
        document: dict[str, Any] = {"format": FORMAT, "secret": self.secret.hex()}
        for section in SECTIONS:
            document[section] = _merged(self._sections[section], changed.get(section, {}))
        write_whole(self._path, json.dumps(document, indent=0).encode(), mode=OWNER_ONLY)


def _merged(entries: Mapping[str, Any], changed: Changed) -> dict[str, Any]:
    return {key: value for key, value in {**entries, **changed}.items() if value is not None}


def _size(key: str, value: Any) -> int:
    return 0 if value is None else len(json.dumps({key: value}))


def _parse(path: Path, data: bytes) -> tuple[bytes, dict[Section, dict[str, Any]]]:
    try:
        document = json.loads(data)
        if document["format"] != FORMAT:
            raise DamagedError(f"{path} has format {document['format']!r}, this ringleader knows {FORMAT}")
        secret = bytes.fromhex(document["secret"])
        sections = {section: document[section] for section in SECTIONS}
    except (ValueError, KeyError, TypeError, RecursionError):
        raise DamagedError(f"{path} cannot be read: put the last copy of it back") from None
    if len(secret) != SECRET_BYTES or not all(isinstance(entries, dict) for entries in sections.values()):
        raise DamagedError(f"{path} cannot be read: put the last copy of it back")
    return secret, sections
