"""What goes in and out of a shard besides requests: tickets, appends, answers, notices."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, Protocol

from ringleader.coordinator.groups.journal import JournalEntry

Records = list[tuple[bytes, bytes | None]]
"""Key and value of records of one __consumer_offsets partition; a None value is a tombstone."""


class Ticket(Hashable, Protocol):
    """The caller's handle of one request in progress: opaque to the machine but for these fields.

    Compared and hashed by identity. `connection` is whatever stands for the connection; only compared by
    identity.
    """

    @property
    def api_version(self) -> int:
        """Version of the request."""

    @property
    def client_id(self) -> str | None:
        """Client id of the request header; becomes the prefix of member ids."""

    @property
    def client_host(self) -> str:
        """Address as DescribeGroups shows it: Java's form with a leading slash, `/127.0.0.1`."""

    @property
    def connection(self) -> object:
        """The connection that the request came over."""


@dataclass(slots=True)
class Append:
    """Records that belong together (written all or none).

    `position` is the shard's own increasing number, to be handed back to `Shard.appended` / `append_failed`.
    Appends must reach the log in the order of their positions.
    """

    position: int
    records: Records


@dataclass(slots=True)
class Answer:
    """An answer that is free to go now. `response` is a response message, or, for the parts of multi-group
    requests, the part that the method promises. None: close that ticket's connection without an answer."""

    ticket: Ticket
    response: Any


@dataclass(slots=True, frozen=True)
class Notice:
    """Something an operator may want to read in the log, once per event: `text` says it; ids as the client
    sent them."""

    group_id: str
    member_id: str
    text: str
    expected: bool = False
    """Whether it belongs to normal operation; else it is worth a warning."""


@dataclass(slots=True)
class Outbox:
    """Everything a shard wants done since the last `drain`."""

    appends: list[Append] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    journal: list[JournalEntry] = field(default_factory=list)
    notices: list[Notice] = field(default_factory=list)
