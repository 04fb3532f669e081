"""The common part of all shard machines: how a machine talks to its runtime, and which of its words wait for
the log.

A shard is one partition of a log (`__consumer_offsets`, `__transaction_state`) as a deterministic machine.
One rule holds for its durable state: it changes at once, by one function of a record's content, the same live
and at load. Every answer and event, reads and errors included, carries the log position that it depends on,
and leaves when that position is durable. So nothing is visible that could be lost. There is no undo: when an
append fails, the shard's life ends, and the next one is loaded from the log.

Where another process may have taken the log over unnoticed, memory may be out of date, though all of it is
durable. There the rule is stricter (confirmed ownership): an answer waits for an append that was handed over
after the answer was made, one that is due anyway, or a read barrier. If it is durable, no other process
owned the log by then (Raft's ReadIndex); if it is fenced, the shard's life ends and nothing was answered. The
exceptions are listed in `groups.core`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from ringleader.coordinator.enums import at_hand

Records = list[tuple[bytes, bytes | None]]
"""Key and value of records of one partition; a None value is a tombstone."""

NOTHING = 0
"""The position of an answer that depends on no append."""


@at_hand
class Phase(Enum):
    """The phase of a shard's life."""

    LOADING = "loading"
    SERVING = "serving"
    UNLOADED = "unloaded"


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
    def principal(self) -> str:
        """The caller's principal, for the journal: text without a meaning here; "": none."""

    @property
    def connection(self) -> object:
        """The connection that the request came over."""


@dataclass(slots=True)
class Append:
    """Records that belong together (written all or none). `position` is the shard's own increasing number,
    to be handed back to `Machine.durable`. Appends must reach the log in the order of their positions."""

    position: int
    records: Records


@dataclass(slots=True)
class Answer:
    """An answer that is free to go now. `response` is a response message, or, for the parts of requests that
    go to several shards, the part that the method promises. None: close that ticket's connection without an
    answer."""

    ticket: Any
    response: Any


@dataclass(slots=True, frozen=True)
class Notice:
    """Something an operator may want to read in the log, once per event: `text` says it; `subject` is the
    group id or transactional id, `member_id` as the client sent it."""

    subject: str
    member_id: str
    text: str
    expected: bool = False
    """Whether it belongs to normal operation; else it is worth a warning."""


@dataclass(slots=True)
class Drained:
    """The content of a machine's outbox since the last `drain`."""

    appends: list[Append] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    events: list[Any] = field(default_factory=list)
    """Notices, journal entries and transactions to be finished, in the order in which they became certain."""


class Machine(Protocol):
    """A shard, as its runtime calls it.

    Every call that takes `now_ms` gets the same monotonic clock; calls never go back in time. After any call
    the runtime looks at `dirty`; if it is set, it calls `drain` once per loop turn. It keeps one timer for
    `next_deadline`. A machine is never entered twice at once. An exception that leaves any of these methods
    ends the shard's life; one that leaves a client's request does so only if `changes` grew before."""

    @property
    def changes(self) -> int:
        """Grows before anything changes in memory, is emitted or is answered: if an exception left a request
        and this is what it was, all is as it was. It may grow for nothing."""

    @property
    def dirty(self) -> bool:
        """Whether `drain` has anything. Cheap: look at it after every call."""

    def replay(self, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Records of the log, in order, while loading. Unknown key types are skipped, as Kafka's loader does.
        Raises `MalformedError` for a record that cannot be read."""

    def loaded(self, now_ms: int, wall_ms: int) -> None:
        """All records were replayed: start to serve. `wall_ms`: Unix time."""

    def set_wall_clock(self, now_ms: int, wall_ms: int) -> None:
        """The present Unix time, reported every few seconds. Timers never use it."""

    def set_full(self, full: bool, now_ms: int) -> None:
        """Whether the store is full: while it is, every request that would write is refused before it changes
        anything. A shard that is loaded meanwhile gets this call before `loaded`, and writes nothing there
        either."""

    def abandon(self) -> list[Any]:
        """The log is late: the tickets whose answers wait for it. The caller refuses them; no write is taken
        back."""

    def unload(self) -> None:
        """The partition moves away: every call from here on is answered NOT_COORDINATOR. The caller refuses
        the requests that wait."""

    def tick(self, now_ms: int) -> None:
        """Do some of the work that is due, a few milliseconds of it. When there is more, `next_deadline` is
        not after `now_ms`: call it again, with other work in between."""

    def next_deadline(self) -> int | None:
        """When to call `tick` next (may be early, never late; may be in the past); None: nothing to wait
        for."""

    def drain(self) -> Drained:
        """Hand over the content of the outbox."""

    def durable(self, position: int, now_ms: int) -> None:
        """All appends up to and including `position` are durable: the answers that depended on them are in
        the next `drain`."""


class Outbox:
    """The answers, events and records of a machine: records go at once, all else when the position that it
    depends on is durable."""

    __slots__ = (
        "_content",
        "_in_flight",
        "_read_barrier",
        "_taken",
        "_waiting",
        "changes",
        "confirms",
        "dirty",
        "durable",
        "emitted",
        "newest",
    )

    def __init__(self, read_barrier: Records | None = None) -> None:
        """`read_barrier`: records that change nothing; their append confirms that the log is still ours.
        None: no other process can own it."""
        self.dirty = False
        self.changes = 0
        """Number of calls that handed something over; see `Machine.changes`."""
        self.emitted = NOTHING
        """Position of the last append."""
        self.durable = NOTHING
        """The durable position: all appends up to here are in the log for good."""
        self.newest: Append | None = None
        """The last append, if it has not been handed over: until then its records may change."""
        self.confirms = read_barrier is not None
        """Whether answers and events wait for confirmed ownership."""
        self._read_barrier: Records = read_barrier or []
        self._content = Drained()
        self._taken = NOTHING
        """Position of the last append that was handed over."""
        self._in_flight: deque[int] = deque()
        self._waiting: dict[int, list[Answer | Callable[[int], Any]]] = {}

    def emit(self, records: Records) -> int:
        """Records for the log, all or none; their position."""
        self.changes += 1
        self.emitted += 1
        self.newest = Append(self.emitted, records)
        self._content.appends.append(self.newest)
        self._in_flight.append(self.emitted)
        self.dirty = True
        return self.emitted

    def answer(self, ticket: Any, response: Any, position: int = NOTHING) -> None:
        """An answer that leaves when `position` is durable, and ownership is confirmed. A ticket that is gone
        (None) needs none."""
        if ticket is None:
            return
        self.changes += 1
        if self.confirms:
            position = self.confirmed(position)
        if position <= self.durable:
            self._content.answers.append(Answer(ticket, response))
            self.dirty = True
        else:
            self._waiting.setdefault(position, []).append(Answer(ticket, response))

    def report(self, event: Callable[[int], Any], position: int, now_ms: int) -> None:
        """An event that counts when `position` is durable, and ownership is confirmed; `event(now_ms)` is
        called then."""
        self.changes += 1
        if self.confirms:
            position = self.confirmed(position)
        if position <= self.durable:
            self._content.events.append(event(now_ms))
            self.dirty = True
        else:
            self._waiting.setdefault(position, []).append(event)

    def confirmed(self, position: int) -> int:
        """The position to wait for instead of `position`: that of an append which is handed over from now on.
        One serves all answers until the next `take`."""
        if position > self._taken:
            return position
        return self.emitted if self.emitted > self._taken else self.emit([*self._read_barrier])

    def advance(self, position: int, now_ms: int) -> None:
        """Advance the durable position."""
        self.durable = max(self.durable, position)
        in_flight = self._in_flight
        while in_flight and in_flight[0] <= position:
            for one in self._waiting.pop(in_flight.popleft(), ()):
                if isinstance(one, Answer):
                    self._content.answers.append(one)
                else:
                    self._content.events.append(one(now_ms))
                self.dirty = True

    def abandon(self) -> list[Any]:
        """See `Machine.abandon`."""
        tickets = []
        for position, waiting in self._waiting.items():
            tickets += [one.ticket for one in waiting if isinstance(one, Answer)]
            self._waiting[position] = [one for one in waiting if not isinstance(one, Answer)]
        return tickets

    def take(self) -> Drained:
        """Everything since the last call."""
        content, self._content = self._content, Drained()
        self._taken = self.emitted
        self.newest = None
        self.dirty = False
        return content

    def clear(self) -> None:
        """Forget everything that was not taken. No later answer waits for it."""
        self.take()
        self.durable = self.emitted
        self._in_flight.clear()
        self._waiting.clear()
