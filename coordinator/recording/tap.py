"""Listens to a shard machine: what it is asked from now on, and what it gives back, line by line.

Costs nothing without listeners: the machine's methods are wrapped only as long as there is one."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from ringleader.coordinator.consumer_groups.records import renamed
from ringleader.coordinator.consumer_groups.topics import Topic
from ringleader.coordinator.groups.shard import Shard
from ringleader.coordinator.recording import state
from ringleader.coordinator.recording.plain import Writer

CALLS = (
    "handle",
    "commit",
    "delete_offsets",
    "heartbeat",
    "stay",
    "commit_one",
    "fetch_offsets",
    "describe",
    "describe_consumer",
    "keep_alive",
    "list_groups",
    "delete_group",
    "topic_deleted",
    "end_transaction",
    "expire_member",
    "resolved",
    "ticket_closed",
    "tick",
    "durable",
    "drain",
    "set_full",
    "set_wall_clock",
    "abandon",
    "finish_journal",
)
"""Everything that a runtime asks of a shard that serves, but for what only looks."""
ENDS = ("unload", "give_back")
"""The calls that end its life."""
HIDDEN = "User:"
"""Stands for a principal, followed by a number."""

Line = dict[str, Any]


class Principals:
    """Principals, as text: numbers in place of names, unless they are to be shown."""

    def __init__(self, *, shown: bool) -> None:
        self._shown = shown
        self._numbers: dict[str, str] = {}

    def __call__(self, principal: str) -> str:
        if self._shown or not principal:
            return principal
        return self._numbers.setdefault(principal, f"{HIDDEN}{len(self._numbers) + 1}")


class Tickets:
    """Numbers of requests, and of their connections as far as the machine can tell them apart: while one
    of their requests waits."""

    def __init__(self, principals: Principals) -> None:
        self._principals = principals
        self._numbers: dict[Any, int] = {}
        """Of those that wait."""
        self._connections: dict[int, list[int]] = {}
        """By identity of a connection: its number, and how many of its requests wait."""
        self._count = 0
        self.fresh: list[list[Any]] = []
        """Those that no line has named yet."""

    def number(self, ticket: Any) -> int:
        """Of a request, which the next line names if it is a new one."""
        found = self._numbers.get(ticket)
        if found is not None:
            return found
        self._count += 1
        self._numbers[ticket] = self._count
        connection = self._connections.setdefault(id(ticket.connection), [self._count, 0])
        connection[1] += 1
        principal = self._principals(ticket.principal)
        about = ticket.api_version, ticket.client_id, ticket.client_host, principal, connection[0]
        self.fresh.append([self._count, *about])
        return self._count

    def done(self, ticket: Any) -> None:
        """It was answered. (One whose connection is gone may still be, when its records are durable.)"""
        if self._numbers.pop(ticket, None) is None:
            return
        connection = self._connections[id(ticket.connection)]
        connection[1] -= 1
        if not connection[1]:
            del self._connections[id(ticket.connection)]


class Tap:
    """Listens to one shard from `begin` to `end`."""

    def __init__(
        self,
        shard: Shard,
        put: Callable[[Line], None],
        on_over: Callable[[str], None] | None = None,
        *,
        principals: bool = False,
    ) -> None:
        """`put` takes the lines; `on_over(why)` is called when the shard's life ends. `principals`: they
        stand there by name."""
        self.shard = shard
        self._put = put
        self._on_over = on_over
        self._principals = Principals(shown=principals)
        self._tickets = Tickets(self._principals)
        self._writer = Writer(self._tickets.number, self._principals)
        self._inside = False
        self._ids: list[str] = []
        self._unix: list[Any] = []
        self._others = 0
        self._topics: dict[str, Topic] = {}
        self._topics_version = self._configs_version = 0
        self._next: int | None = None
        self._make_id = shard._core.ids
        self._wrapped: dict[str, tuple[Any, Any]] = {}
        """By name: what stands there now, and what stood there as the object's own (None: nothing)."""

    def begin(self) -> Line:
        """Listen from now on; what the machine has in memory. Only of a shard that `is_quiet`."""
        shard = self.shard
        self._next = shard.next_deadline()
        writer = Writer(self._tickets.number, self._principals, names_objects=True)
        found = state.state_of(shard, writer)
        self._unix, self._others = found["unix"], found["others"]
        self._configs_version = shard._core.configs.version
        self._topics, self._topics_version = state.topics_of(shard), shard._core.topics.version
        first = {"settings": state.settings_of(shard), "state": found, "tickets": self._tickets.fresh}
        self._tickets.fresh = []
        for name in CALLS:
            self._wrap(name, self._listening(name, getattr(shard, name)))
        for name in ENDS:
            self._wrap(name, self._ending(name, getattr(shard, name)))
        shard._core.ids = self._fresh_id
        return first

    def end(self) -> None:
        """Listen no more. May be called twice."""
        own = vars(self.shard)
        for name, (wrapper, former) in self._wrapped.items():
            if own.get(name) is not wrapper:
                continue  # another core came, which has its own
            if former is None:
                delattr(self.shard, name)
            else:
                setattr(self.shard, name, former)
        if self._wrapped and self.shard._core.ids == self._fresh_id:
            self.shard._core.ids = self._make_id
        self._wrapped.clear()

    def _wrap(self, name: str, wrapper: Any) -> None:
        self._wrapped[name] = wrapper, vars(self.shard).get(name)
        setattr(self.shard, name, wrapper)

    def _fresh_id(self, prefix: str) -> str:
        made = self._make_id(prefix)
        self._ids.append(made)
        return made

    def _ending(self, name: str, method: Any) -> Any:
        def ended() -> Any:
            listening = bool(self._wrapped)
            self.end()
            if listening and self._on_over is not None:
                self._on_over("the shard was given up" if name == "unload" else "the shard's life ended")
            return method()

        return ended

    def _listening(self, name: str, method: Any) -> Any:
        signature = inspect.signature(method)

        def called(*args: Any, **named: Any) -> Any:
            if self._inside or not self._wrapped:
                return method(*args, **named)
            given = signature.bind(*args, **named).args if named else args
            self._inside = True
            try:
                return self._call(name, method, given)
            finally:
                self._inside = False

        return called

    def _call(self, name: str, method: Any, given: tuple[Any, ...]) -> Any:
        line: Line = {"do": name, "with": [self._writer.put(one) for one in arguments(name, given)]}
        self._tell_of_others(line)
        if self._tickets.fresh:
            line["tickets"], self._tickets.fresh = self._tickets.fresh, []
        try:
            gave = method(*given)
        except Exception as error:
            line["raised"] = type(error).__name__
            self._finish(line)
            raise
        if name == "drain":
            line["gave"] = outbox(gave, self._writer)
            for answer in gave.answers:
                self._tickets.done(answer.ticket)
        elif gave is not None:
            line["gave"] = self._writer.put(gave)
            # `commit_one` says by True that it takes the commit: the answer is yet to come.
            over = gave if name == "abandon" else () if name == "commit_one" and gave else given
            for one in over:
                if hasattr(one, "connection"):
                    self._tickets.done(one)
        self._finish(line)
        return gave

    def _tell_of_others(self, line: Line) -> None:
        """Add what has changed outside of the machine since its last call."""
        unix, others = state.unix_of(self.shard), state.others_bytes(self.shard)
        if unix != self._unix:
            line["unix"] = unix
        if others != self._others:
            line["others"] = self._others = others
        configs = self.shard._core.configs
        if configs.version != self._configs_version:
            self._configs_version = configs.version
            line["configs"] = {group_id: dict(values) for group_id, values in configs.all().items()}
        version = self.shard._core.topics.version
        if version != self._topics_version:
            before, self._topics = self._topics, state.topics_of(self.shard)
            self._topics_version = version
            changed = [self._writer.put(one) for one in self._topics.values() if before.get(one.name) != one]
            line["topics"] = [version, changed, [name for name in before if name not in self._topics]]

    def _finish(self, line: Line) -> None:
        if self._ids:
            line["ids"], self._ids = self._ids, []
        self._unix = state.unix_of(self.shard)
        # Looking for the next deadline throws away what is over: from here on the machine is as it is for
        # who looks once, and who looks ten times.
        due_ms = self.shard.next_deadline()
        if due_ms != self._next:
            line["next"] = self._next = due_ms
        self._put(line)


def arguments(name: str, given: tuple[Any, ...]) -> tuple[Any, ...]:
    """The arguments of a call, in values that can be written."""
    if name == "commit":
        return (given[0].request, *given[1:])
    if name == "delete_offsets":
        prepared = given[0]
        return (prepared.group_id, prepared.keys, prepared.response, *given[1:])
    return given


def outbox(box: Any, writer: Writer) -> Line:
    """A machine's outbox, as JSON."""
    return {
        "appends": [
            [
                one.position,
                [
                    [writer.put(key), writer.put(renamed(key, value, writer.principal))]
                    for key, value in one.records
                ],
            ]
            for one in box.appends
        ],
        "answers": [[writer.put(one.ticket), writer.put(one.response)] for one in box.answers],
        "events": [writer.put(one) for one in box.events],
    }
