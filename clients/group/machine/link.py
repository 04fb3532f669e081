"""The machine's link to its coordinator: where it is, what is on its way, when to try again."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ringleader.clients.connection.backoff import Backoff
from ringleader.clients.connection.requests import Request
from ringleader.clients.group.machine.actions import Action, Say, Send
from ringleader.clients.group.settings import MemberSettings
from ringleader.clients.model import Node

Handle = Callable[[Any, "Pending", int], None]
"""Called with the response, the request and the time."""
ANY_BROKER = ("FindCoordinator", "Metadata")


@dataclass(slots=True)
class Pending:
    """A request on its way: its name, the identity it was sent under, and when."""

    name: str
    handle: Handle
    identity: tuple[int, str]
    """Generation and member id."""
    sent_ms: int
    found: int
    """The value of `Link.found` when it was sent."""
    unanswered: Callable[[str, int], None] | None
    """Called with the cause and the time if no answer comes; None: the coordinator is taken as lost."""
    optional: bool
    """Whether the member goes on without it where the request cannot be sent at all."""


class Link:
    """State of the way to the coordinator. Adds its actions to the list that it is given."""

    def __init__(self, settings: MemberSettings, random: Callable[[], float], actions: list[Action]) -> None:
        self.coordinator: Node | None = None
        self.found = 0
        """How often the coordinator was found: tells the end of an old connection from the present one's."""
        self.not_before_ms = 0
        """Nothing is asked again before that time."""
        self.trouble = ""
        """The newest failure in words; empty when all is well."""
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, random)
        self._actions = actions
        self._pending: dict[int, Pending] = {}
        self._tickets = 0
        self._lost_ms: int | None = None

    def send(self, pending: Pending, request: Request, timeout_ms: int) -> None:
        """Send to the coordinator, or to any broker if the name is in `ANY_BROKER`."""
        self._tickets += 1
        self._pending[self._tickets] = pending
        node = None if pending.name in ANY_BROKER else self.coordinator
        self._actions.append(Send(self._tickets, node, request, timeout_ms))

    def take(self, ticket: int) -> Pending | None:
        """The request with that ticket, which is not waited for any more; None: it was not."""
        return self._pending.pop(ticket, None)

    def waits_for(self, name: str) -> bool:
        """Whether such a request is on its way."""
        return any(pending.name == name for pending in self._pending.values())

    def forget(self, *names: str) -> None:
        """Answers to such requests do not matter any more."""
        self._pending = {t: pending for t, pending in self._pending.items() if pending.name not in names}

    def forget_all(self) -> None:
        """No answer matters any more."""
        self._pending = {}

    def retry_later(self, why: str, now_ms: int) -> None:
        """It did not work: wait a little longer each time."""
        self.trouble = why
        self.not_before_ms = now_ms + self._backoff.next_ms()

    def well(self) -> None:
        """The coordinator did what it was asked."""
        self._backoff.reset()
        self.not_before_ms = 0
        self.trouble = ""

    def arrived(self, node: Node, now_ms: int) -> None:
        """This is the coordinator. The backoff stays as it is until the coordinator has done something."""
        self.coordinator = node
        self.found += 1
        again = "" if self._lost_ms is None else f" again after {(now_ms - self._lost_ms) / 1000:.1f} s"
        self._lost_ms = None
        self._actions.append(Say(logging.INFO, f"found the coordinator{again}: {node}"))

    def lost(self, why: str, found: int, now_ms: int) -> bool:
        """The coordinator of that `found` does not answer, or is none any more. False: old news."""
        if self.coordinator is None or found != self.found:
            return False
        self.coordinator = None
        self._lost_ms = now_ms
        self._actions.append(Say(logging.WARNING, f"lost the coordinator: {why}"))
        self.retry_later(why, now_ms)
        return True
