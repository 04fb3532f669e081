"""One request in progress: its context for a handler, and the way of its answer back."""

from __future__ import annotations

from collections.abc import Callable
from sys import intern
from typing import Any, Final, Protocol

from ringleader.coordinator.security.listeners import Listener
from ringleader.coordinator.security.principal import Principal
from ringleader.protocol.refusals import refusal

Message = Any
"""A request or response class of `ringleader.protocol.messages`."""


HELD_ENTRY_BYTES = 200
"""Memory for an entry of a request or an answer while it is worked on, besides its contents."""


class NoAnswer:
    """The type of `NO_ANSWER`."""

    def __repr__(self) -> str:
        return "NO_ANSWER"


NO_ANSWER: Final = NoAnswer()
"""A handler returns it, or gives it to `Call.answer`, when the request has no response (Produce, acks=0)."""


class Companion(Protocol):
    """A thing that lives as long as a connection."""

    def close(self) -> None:
        """The connection is gone."""


class Answerable(Protocol):
    """Where the answers and closings of a call go: the connection it came over."""

    principal: Principal
    """The caller."""
    listener: Listener
    """The one that accepted the connection."""
    companion: Any = None
    """A `Companion` that handlers keep for this connection; None: they keep none."""

    def call_answered(self, call: Call, response: Message | NoAnswer) -> None:
        """The response of the call this connection waits for."""

    def call_takes(self, call: Call) -> None:
        """The `answer_bytes` of the call have changed."""

    def call_finished(self, call: Call, *frame: bytes | memoryview) -> None:
        """The whole response frame, in pieces, of the call this connection waits for."""

    def call_refused(self, call: Call, reason: str) -> None:
        """Close the connection, and log `reason`."""

    def authenticates_again(self, call: Call, request: Message) -> bool:
        """A SaslHandshake came after authentication. Whether this connection may authenticate again: then it
        answers the call later, or closes."""
        return False


class Call:
    """One request in progress; also the ticket that the group machine keeps (compared by identity).

    A handler returns the response, or `NO_ANSWER`, or None: then the connection waits ("parked": later
    requests of this connection wait, as in Kafka) until `answer`, `refuse` or `close` is called, on the
    loop's thread.
    """

    __slots__ = (
        "answer_bytes",
        "api_key",
        "api_version",
        "client_host",
        "client_id",
        "connection",
        "correlation_id",
        "done",
        "on_closed",
        "request",
        "withheld",
    )

    def __init__(
        self,
        connection: Answerable,
        api_key: int,
        api_version: int,
        correlation_id: int,
        client_id: str | None,
        client_host: str,
        request: Message = None,
    ) -> None:
        self.connection = connection
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.client_host = client_host
        """Java's form with a leading slash, `/127.0.0.1`."""
        self.request = request
        """The message: a refusal takes its form."""
        self.done = False
        """Answered, closed, or its connection is gone: an answer from now on is dropped."""
        self.answer_bytes = 0
        """Memory for the answer while it is made; see `takes`."""
        self.on_closed: Callable[[], object] | None = None
        """Set where the call is parked: called once when the peer goes away (or the server closes the
        connection) before the answer."""
        self.withheld: Callable[[], Message] | None = None
        """Gives the answer in place of one that a quota withholds; None: an empty one."""

    @property
    def principal(self) -> str:
        """The principal as text: one object for each, as groups keep it for each of their members."""
        return intern(str(self.connection.principal))

    def takes(self, more_bytes: int) -> None:
        """The answer that is being made takes `more_bytes` of memory, fewer if negative: they are counted
        against `queued.max.request.bytes` until it is on its way. Where there is no room for them
        connections are closed; if this one is, the call is `done`."""
        self.answer_bytes += more_bytes
        if not self.done:
            self.connection.call_takes(self)

    def answer(self, response: Message | NoAnswer | None) -> None:
        """Answer a parked call. None closes the connection without an answer. Ignored when `done`."""
        if self.done:
            return
        self.done = True
        self.on_closed = None
        if response is None:
            self.connection.call_refused(self, "replaced by a newer request of the same member")
        else:
            self.connection.call_answered(self, response)

    def finish(self, *frame: bytes | memoryview) -> None:
        """Answer a parked call with the whole response frame, in pieces that do not change any more. Ignored
        when `done`."""
        if not self.done:
            self.done = True
            self.on_closed = None
            self.connection.call_finished(self, *frame)

    def refuse(self, error_code: int) -> None:
        """Answer a parked call with an error, in the form that its API has for one. Ignored when `done`."""
        if not self.done:
            self.answer(refusal(self.request, self.api_version, error_code))

    def close(self, reason: str) -> None:
        """Close the connection instead of answering; `reason` goes to the log. Ignored when `done`."""
        if self.done:
            return
        self.done = True
        self.on_closed = None
        self.connection.call_refused(self, reason)

    def dropped(self) -> None:
        """The connection is gone (called by the connection only)."""
        if self.done:
            return
        self.done = True
        callback, self.on_closed = self.on_closed, None
        if callback is not None:
            callback()
