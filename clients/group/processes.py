"""The fate of running members at the end of their process, and in a copy of it (fork)."""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from typing import Protocol

AT_EXIT_S = 1.0
"""The time that the end of the process waits for members that were not stopped."""


class Running(Protocol):
    """A member with a thread of its own."""

    ended: threading.Event

    def abandon(self, reason: str) -> None:
        """Begin to leave, without waiting for the application."""

    def orphan(self) -> None:
        """This is a copy of the process, without the thread."""


_running: weakref.WeakSet[Running] = weakref.WeakSet()


def began(member: Running) -> None:
    """Its thread runs."""
    _running.add(member)


def ended(member: Running) -> None:
    """Its thread has come to its end."""
    _running.discard(member)


def _leave() -> None:
    members = list(_running)
    for member in members:
        member.abandon("the process has ended")
    deadline_s = time.monotonic() + AT_EXIT_S
    for member in members:
        member.ended.wait(max(0.0, deadline_s - time.monotonic()))


def _orphan() -> None:
    for member in list(_running):
        member.orphan()
    _running.clear()


# Exit handlers run while threads that are daemons still do.
atexit.register(_leave)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_orphan)
