"""Handlers without a connection: those that give way to others are run to their end in one go."""

from __future__ import annotations

from collections.abc import Generator

from ringleader.coordinator.run_queue import whole
from ringleader.coordinator.server.call import Call, Message, NoAnswer
from ringleader.coordinator.server.services import Handler


def handled(handler: Handler, call: Call, request: Message) -> Message | NoAnswer | None:
    """The handler's immediate answer; None: it will answer `call`."""
    response = handler(call, request)
    return whole(response) if isinstance(response, Generator) else response
