"""Values of the group machine as JSON, and back: the messages of Kafka, the machine's own records, and what
it has in memory.

    null, numbers, texts and lists are as in JSON
    {"b": "AAE="}                        bytes, in base64
    {"t": [...]}, {"s": [...]}           a tuple, a set
    {"f": [...]}                         a frozen set
    {"d": [[key, value], ...]}           a dict, in its order
    {"m": [[key, count], ...]}           a counter, likewise
    {"e": ["GroupState", "STABLE"]}      one of an enumeration
    {"c": "Member", "n": 3, ...}         an object with its fields; `n` only where it may be named again
    {"r": 3}                             the same object again
    {"ticket": 5}                        a request that waits

Only classes of a closed list are made: a file from a stranger runs no code.
"""

from __future__ import annotations

import base64
import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

from ringleader.coordinator.consumer_groups import group as consumer
from ringleader.coordinator.consumer_groups import member as described
from ringleader.coordinator.consumer_groups.topics import Topic
from ringleader.coordinator.deadlines import Deadline as AnyDeadline
from ringleader.coordinator.groups import deadlines, epoch_notes, group, member, patterns, progress, states
from ringleader.coordinator.groups.committed import Uncommitted
from ringleader.coordinator.journal import entries as journal
from ringleader.coordinator.machine import Notice
from ringleader.protocol import messages
from ringleader.protocol.errors import ErrorCode

NOT_KEPT = {"share", "written"}
"""Fields that belong to the shard, or are worked out of the others."""


class UnreadableError(ValueError):
    """The JSON is no value of this form; the text says why."""


def _classes() -> Iterator[type[Any]]:
    yield from (group.Group, member.Member, member.GivenOutId, deadlines.GroupDeadline, progress.Progress)
    yield from (journal.DepartedMember, journal.Present, journal.JournalEntry, journal.FirstCommit)
    yield from (journal.Seated, journal.Wait, journal.EpochEntry, epoch_notes.EpochProgress)
    yield from (epoch_notes.Had, epoch_notes.Notes)
    yield from (journal.Incident, Notice, Uncommitted)
    yield from (deadlines.MemberDeadline, deadlines.MemberDeadlines, consumer.ConsumerGroup, consumer.Regex)
    yield consumer.Dealt
    yield from (described.ConsumerMember, described.Subscription, described.ClassicMember, described.Current)
    yield from (Topic, consumer.Reader, patterns.PatternsAsked, patterns.Resolution)
    for one in vars(messages).values():
        if isinstance(one, type) and dataclasses.is_dataclass(one):
            yield one


CLASSES = {one.__name__: one for one in _classes()}
ENUMS: dict[str, type[Enum]] = {
    one.__name__: one
    for one in (
        deadlines.Kind,
        described.MemberState,
        states.GroupState,
        journal.Cause,
        journal.Departure,
        journal.Outcome,
        journal.IncidentKind,
    )
}


def fields_of(cls: type[Any]) -> tuple[str, ...]:
    """The names of the fields of a class of the list."""
    found = _FIELDS.get(cls)
    if found is None:
        if dataclasses.is_dataclass(cls):
            found = tuple(one.name for one in dataclasses.fields(cls) if one.name not in NOT_KEPT)
        else:
            found = tuple(getattr(cls, "_fields", None) or cls.__slots__)
        _FIELDS[cls] = found
    return found


_FIELDS: dict[type[Any], tuple[str, ...]] = {}


class Writer:
    """From values to JSON. Objects are numbered from the first one on, so that what is one object stays one.

    `hide_principal`: who asked is written as a number. `ticket`: the number of a request that waits."""

    def __init__(
        self, ticket: Callable[[Any], int], principal: Callable[[str], str], *, names_objects: bool = False
    ) -> None:
        self._ticket = ticket
        self.principal = principal
        self._names_objects = names_objects
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []
        """So that no object's identity becomes another's meanwhile."""

    def put(self, value: Any) -> Any:
        """The value as JSON."""
        kind = type(value)
        if value is None or kind in (bool, int, float, str):
            return value
        if isinstance(value, ErrorCode):
            return int(value)
        if isinstance(value, Enum):
            return {"e": [kind.__name__, value.name]}
        if isinstance(value, bytes | bytearray | memoryview):
            return {"b": base64.b64encode(value).decode()}
        if isinstance(value, range):
            return list(value)
        if kind.__name__ in CLASSES and CLASSES[kind.__name__] is kind:
            return self._object(value, kind)
        if isinstance(value, tuple):
            return {"t": [self.put(one) for one in value]}
        if isinstance(value, list):
            return [self.put(one) for one in value]
        if isinstance(value, set | frozenset):
            return {"f" if isinstance(value, frozenset) else "s": [self.put(one) for one in sorted(value)]}
        if isinstance(value, dict):
            tag = "m" if isinstance(value, Counter) else "d"
            return {tag: [[self.put(key), self.put(one)] for key, one in value.items()]}
        return {"ticket": self._ticket(value)}

    def _object(self, value: Any, kind: type[Any]) -> Any:
        written: dict[str, Any] = {"c": kind.__name__}
        if self._names_objects:
            number = self._numbers.get(id(value))
            if number is not None:
                return {"r": number}
            written["n"] = self._numbers[id(value)] = len(self._numbers)
            self._kept.append(value)
        for name in fields_of(kind):
            one = getattr(value, name)
            if name == "principal" and one:
                one = self.principal(one)
            elif name == "views" and isinstance(one, dict):
                one = {self.principal(principal): seen for principal, seen in one.items()}
            elif name == "principals":
                one = {member_id: self.principal(principal) for member_id, principal in one.items()}
            written[name] = self.put(one)
        return written

    def reference(self, value: Any) -> Any:
        """The name of an object that was put before; None: it was not."""
        number = self._numbers.get(id(value))
        return None if number is None else {"r": number}


class Reader:
    """From JSON to values. Raises UnreadableError for what is no such value."""

    def __init__(self, ticket: Callable[[int], Any], fill: Callable[[Any], None] | None = None) -> None:
        """`fill(object)`: gives an object what is not kept of it."""
        self._ticket = ticket
        self._fill = fill
        self._objects: dict[int, Any] = {}

    def get(self, written: Any) -> Any:
        """The value."""
        if isinstance(written, list):
            return [self.get(one) for one in written]
        if not isinstance(written, dict):
            return written
        if "c" in written:
            return self._object(written)
        if len(written) != 1:
            raise UnreadableError(f"no value has the fields {', '.join(map(str, written))[:100]}")
        [(tag, content)] = written.items()
        try:
            return self._tagged(tag, content)
        except (TypeError, ValueError, KeyError, AttributeError) as error:
            if isinstance(error, UnreadableError):
                raise
            raise UnreadableError(f"{tag!r} with {str(content)[:60]} is no value") from error

    def _tagged(self, tag: str, content: Any) -> Any:
        if tag == "b":
            return base64.b64decode(content, validate=True)
        if tag == "t":
            return tuple(self.get(one) for one in content)
        if tag == "s":
            return {self.get(one) for one in content}
        if tag == "f":
            return frozenset(self.get(one) for one in content)
        if tag == "m":
            return Counter({self.get(key): self.get(one) for key, one in content})
        if tag == "d":
            return {self.get(key): self.get(one) for key, one in content}
        if tag == "e":
            return ENUMS[content[0]][content[1]]
        if tag == "ticket":
            return self._ticket(content)
        if tag == "r":
            return self._objects[content]
        raise UnreadableError(f"{tag!r} is no kind of value")

    def _object(self, written: dict[str, Any]) -> Any:
        cls = CLASSES.get(written["c"]) if isinstance(written["c"], str) else None
        if cls is None:
            raise UnreadableError(f"{str(written['c'])[:60]!r} is no class of the group machine")
        names = fields_of(cls)
        if written.keys() - {"c", "n"} != set(names):
            raise UnreadableError(f"{cls.__name__} has other fields in this version of Ringleader")
        if issubclass(cls, tuple):
            return cls(*(self.get(written[name]) for name in names))
        made: Any = object.__new__(cls)
        if isinstance(number := written.get("n"), int):
            self._objects[number] = made
        for name in names:
            object.__setattr__(made, name, self.get(written[name]))
        if isinstance(made, described.ConsumerMember):
            made.written = b""
        if self._fill is not None and isinstance(made, AnyDeadline | group.Group):
            self._fill(made)
        return made
