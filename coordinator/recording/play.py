"""The same machine at work on what was recorded: does it answer, store and conclude the same?"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ringleader.coordinator.groups import offset_deletion
from ringleader.coordinator.groups.commit import at_once, prepare
from ringleader.coordinator.groups.shard import Shard
from ringleader.coordinator.recording import state
from ringleader.coordinator.recording.plain import Reader, UnreadableError, Writer
from ringleader.coordinator.recording.tap import CALLS, Line, outbox

OUTCOMES = ("gave", "raised", "ids", "next")
"""Of a line: what came of the call."""
BROKEN = (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, RecursionError)
"""Errors that an invalid file leads to."""
NO_ID = "no-id-left"
"""The member id for a machine that asks for more of them than it did when it was recorded."""


@dataclass(eq=False, slots=True)
class Recorded:
    """The ticket of a request that was recorded."""

    number: int
    api_version: int
    client_id: str | None
    client_host: str
    principal: str
    connection: int


@dataclass(frozen=True, slots=True)
class Difference:
    """The first place where the machine did something else."""

    what: str
    """The outcome that differs: its answer, a record, an event, when it wants to be called next."""
    expected: Any
    actual: Any


@dataclass(slots=True)
class Played:
    """The machine's work on one line."""

    difference: Difference | None
    outcome: Line = field(default_factory=dict)
    """As a line of a recording has it."""
    events: list[Any] = field(default_factory=list)
    """Journal entries and the like."""


class Player:
    """One machine, from its state at the beginning on. Raises UnreadableError for lines that are none."""

    def __init__(self, first: Line) -> None:
        self._tickets: dict[int, Recorded] = {}
        self._ids: deque[str] = deque()
        self._made_ids: list[str] = []
        self._writer = Writer(lambda ticket: int(ticket.number), lambda principal: principal)
        self._reader = Reader(self._ticket)
        self.next_ms: int | None = None
        try:
            self._meet(first["tickets"])
            self.shard: Shard = state.shard_of(first["state"], first["settings"], self._id, self._ticket)
            self.next_ms = self.shard.next_deadline()
        except BROKEN as error:
            raise UnreadableError(f"its state cannot be read: {_why(error)}") from error

    def _ticket(self, number: int) -> Recorded:
        found = self._tickets.get(number)
        if found is None:
            raise UnreadableError(f"request {number!r} is not told of")
        return found

    def _meet(self, tickets: list[list[Any]]) -> None:
        for one in tickets:
            self._tickets[one[0]] = Recorded(*one)

    def _id(self, prefix: str) -> str:
        made = self._ids.popleft() if self._ids else f"{prefix}-{NO_ID}"
        self._made_ids.append(made)
        return made

    def step(self, line: Line) -> Played:
        """Do what the line says, and compare."""
        try:
            method, given = self._call_of(line)
        except BROKEN as error:
            raise UnreadableError(_why(error)) from error
        actual: Line = {}
        events: list[Any] = []
        try:
            gave = method(*given)
        except Exception as error:
            actual["raised"] = type(error).__name__
        else:
            if line["do"] == "drain":
                actual["gave"] = outbox(gave, self._writer)
                events = gave.events
                for answer in gave.answers:
                    self._tickets.pop(answer.ticket.number, None)
            elif gave is not None:
                actual["gave"] = self._writer.put(gave)
        if self._made_ids:
            actual["ids"], self._made_ids = self._made_ids, []
        self._ids.clear()
        due_ms = self.shard.next_deadline()
        if due_ms != self.next_ms:
            actual["next"] = self.next_ms = due_ms
        return Played(_difference(line, actual), actual, events)

    def _call_of(self, line: Line) -> tuple[Callable[..., Any], list[Any]]:
        name = line["do"]
        if name not in CALLS:
            raise UnreadableError(f"{str(name)[:60]!r} is nothing that a shard is asked")
        self._meet(line.get("tickets", ()))
        if "unix" in line:
            state.set_unix(self.shard, line["unix"])
        if "others" in line:
            state.set_others(self.shard, line["others"])
        if "configs" in line:
            configs = self.shard._core.configs
            configs.apply({**dict.fromkeys(configs.all()), **line["configs"]})
        if "topics" in line:
            version, changed, deleted = line["topics"]
            state.set_topics(self.shard, version, map(self._reader.get, changed), deleted)
        self._ids.extend(line.get("ids", ()))
        given = [self._reader.get(one) for one in line["with"]]
        if name == "commit":
            given[0] = at_once(prepare(given[0], self.shard._core.settings))
        elif name == "delete_offsets":
            prepared = offset_deletion.PreparedDeletion(given[0])
            prepared.keys, prepared.response = given[1], given[2]
            given[:3] = [prepared]
        return getattr(self.shard, name), given


def _why(error: Exception) -> str:
    return f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)


def _difference(line: Line, actual: Line) -> Difference | None:
    for name in OUTCOMES:
        expected, found = line.get(name), actual.get(name)
        if expected == found:
            continue
        if isinstance(expected, dict) and isinstance(found, dict) and "appends" in expected:
            return next(_of_boxes(expected, found), Difference(_NAMES[name], expected, found))
        return Difference(_NAMES[name], expected, found)
    return None


_NAMES = {
    "gave": "the answer",
    "raised": "an exception",
    "ids": "member ids",
    "next": "when to be called next",
    "appends": "records",
    "answers": "answers",
    "events": "the journal",
}


def _of_boxes(expected: Line, found: Line) -> Iterator[Difference]:
    for name in ("answers", "appends", "events"):
        recorded, played = expected.get(name) or [], found.get(name) or []
        for index in range(max(len(recorded), len(played))):
            one = recorded[index] if index < len(recorded) else None
            other = played[index] if index < len(played) else None
            if one != other:
                yield Difference(_NAMES[name], one, other)
