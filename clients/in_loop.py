"""A client for asyncio: it belongs to one event loop of one process, and refuses to be used elsewhere."""

from __future__ import annotations

import asyncio
import os
import threading
from abc import ABC, abstractmethod
from types import TracebackType
from typing import ClassVar, Self

from ringleader.clients.errors import ClientError

START_TIMEOUT_S = 10.0
STOP_TIMEOUT_S = 30.0


class Here:
    """This process. To ask the system would take as long as all else that is done for a record."""

    process = os.getpid()

    @classmethod
    def forked(cls) -> None:
        """It is a copy of another one."""
        cls.process = os.getpid()


os.register_at_fork(after_in_child=Here.forked)


class InLoop(ABC):
    """A context manager: starts once, and stops at the end."""

    _kind: ClassVar[str]
    """The word for it in errors."""
    _closed_error: ClassVar[type[ClientError]]

    def __init__(self, name: str) -> None:
        """`name` begins the sentences of errors."""
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = self._thread = 0
        """The process, the thread and the loop of `start`."""
        self._stopping = False

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or self._at_home():
            await self.stop()

    @abstractmethod
    async def start(self, *, timeout_s: float = START_TIMEOUT_S) -> None:
        """Connect, and begin."""

    @abstractmethod
    async def stop(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """End, with all connections."""

    @abstractmethod
    def _is_started(self) -> bool:
        """Whether `start` has succeeded."""

    def _check_new(self) -> None:
        if self._loop is not None:
            self._check_process()
            raise self._started_before()

    def _begin_here(self) -> asyncio.AbstractEventLoop:
        """It belongs to this loop and process from now on."""
        self._loop, self._process, self._thread = (
            asyncio.get_running_loop(),
            Here.process,
            threading.get_ident(),
        )
        return self._loop

    def _is_here(self) -> bool:
        """Whether its loop runs the caller, without asking the system: false where that is not sure."""
        loop = self._loop
        return (
            loop is not None
            and self._thread == threading.get_ident()
            and self._process == Here.process
            and loop.is_running()
        )

    def _at_home(self) -> bool:
        """Whether this is the process that started it."""
        return self._process in (0, Here.process)

    def _check_process(self) -> None:
        if not self._at_home():
            raise self._closed_error(
                f"{self._name}: this {self._kind} runs in process {self._process}, and this is process "
                f"{Here.process}, a copy of it (fork): make a new {self._kind} here"
            )

    def _started_before(self) -> ClientError:
        return self._closed_error(f"{self._name}: this {self._kind} was started before")

    def _closed(self) -> ClientError:
        why = "has been stopped" if self._is_started() else "was not started"
        return self._closed_error(f"{self._name}: this {self._kind} {why}")
