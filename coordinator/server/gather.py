"""Requests that fall into parts: several groups, several shards, or entries too many for one turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ringleader.coordinator.server.call import Call, Message


class Part:
    """The ticket of one part of a call. See `Ticket` for the fields."""

    __slots__ = ("_done", "_refused", "api_version", "client_host", "client_id", "connection", "principal")

    def __init__(self, call: Call, done: Callable[[Any], None], refused: Callable[[int], Any]) -> None:
        self.api_version = call.api_version
        self.client_id = call.client_id
        self.client_host = call.client_host
        self.connection = call.connection
        self.principal = call.principal
        self._done = done
        self._refused = refused

    def answer(self, response: Any) -> None:
        """The part's answer; None closes the call's connection."""
        self._done(response)

    def refuse(self, error_code: int) -> None:
        """Answer with an error, in the form of this part."""
        self._done(self._refused(error_code))


class Gather:
    """Collects the parts of an answer, in the order of the request. Loop turns may pass between the parts."""

    def __init__(self, call: Call, finish: Callable[[list[Any]], Message]) -> None:
        self._call = call
        self._finish = finish
        self._results: list[Any] = []
        self._missing: dict[Part, Callable[[Part], object]] = {}
        self._complete = False
        call.on_closed = self._closed

    def add(
        self,
        ask: Callable[[Part], Any | None],
        refused: Callable[[int], Any],
        closed: Callable[[Part], object] = lambda part: None,
        on_result: Callable[[Any], object] = lambda result: None,
    ) -> None:
        """Ask for the next part: `ask` returns it, or None when the given ticket is answered later.
        `refused(error code)` builds the part that says so. `closed(ticket)` is called if the peer goes away
        before, `on_result(part)` when it is there, now or later."""
        number = len(self._results)
        self._results.append(None)
        part = Part(self._call, lambda result: self._arrived(part, number, result, on_result), refused)
        self._missing[part] = closed
        result = ask(part)
        if result is not None and self._missing.pop(part, None) is not None:
            self._results[number] = result
            on_result(result)

    def answer(self) -> Message | None:
        """After the last `add`: the answer, or None when the call is parked."""
        self._complete = True
        if self._missing:
            return None
        self._call.on_closed = None
        return self._finish(self._results)

    def _arrived(self, part: Part, number: int, result: Any, on_result: Callable[[Any], object]) -> None:
        if self._missing.pop(part, None) is None:
            return
        if result is None:
            self._call.answer(None)
            return
        self._results[number] = result
        on_result(result)
        if self._complete and not self._missing:
            self._call.answer(self._finish(self._results))

    def _closed(self) -> None:
        missing, self._missing = self._missing, {}
        for part, forget in missing.items():
            forget(part)
