"""Requests that fall into parts: several groups, or entries that the server refuses itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ringleader.coordinator.server.call import Call, Message


class Part:
    """The ticket of one part of a call. See `Ticket` for the fields."""

    __slots__ = ("_done", "api_version", "client_host", "client_id", "connection")

    def __init__(self, call: Call, done: Callable[[Any], None]) -> None:
        self.api_version = call.api_version
        self.client_id = call.client_id
        self.client_host = call.client_host
        self.connection = call.connection
        self._done = done

    def answer(self, response: Any) -> None:
        """The part's answer; None closes the call's connection."""
        self._done(response)


class Gather:
    """Collects the parts of an answer, in the order of the request."""

    def __init__(self, call: Call, finish: Callable[[list[Any]], Message]) -> None:
        self._call = call
        self._finish = finish
        self._results: list[Any] = []
        self._missing: dict[Part, Callable[[], None]] = {}

    def add(self, ask: Callable[[Part], Any | None], closed: Callable[[Part], None]) -> None:
        """Ask for the next part: `ask` returns it, or None when the given ticket is answered later.
        `closed(ticket)` is called if the peer goes away before."""
        number = len(self._results)
        self._results.append(None)
        part = Part(self._call, lambda result: self._arrived(part, number, result))
        result = ask(part)
        if result is None:
            self._missing[part] = lambda: closed(part)
        else:
            self._results[number] = result

    def answer(self) -> Message | None:
        """After the last `add`: the answer, or None when the call is parked."""
        if not self._missing:
            return self._finish(self._results)
        self._call.on_closed = self._closed
        return None

    def _arrived(self, part: Part, number: int, result: Any) -> None:
        if self._missing.pop(part, None) is None:
            return
        if result is None:
            self._call.answer(None)
            return
        self._results[number] = result
        if not self._missing:
            self._call.answer(self._finish(self._results))

    def _closed(self) -> None:
        missing, self._missing = self._missing, {}
        for forget in missing.values():
            forget()
