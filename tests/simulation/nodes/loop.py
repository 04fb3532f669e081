"""The event loop of one simulated process: no sockets, no clock of its own, and it stops between any two
steps."""

from __future__ import annotations

import asyncio
import sys
from asyncio import events
from collections import deque
from collections.abc import Callable, Coroutine
from heapq import heappop
from itertools import count
from typing import Any

_STEPS_TO_END = 20_000


class NumberedTask(asyncio.Task[Any]):
    """Its place in a set of tasks is the same in each run."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any], number: int, **more: Any) -> None:
        self._number = number
        super().__init__(coroutine, **more)

    def __hash__(self) -> int:
        return self._number


class NodeLoop(asyncio.BaseEventLoop):
    """Its owner calls `step`. `clock()` is the time of all loops, in seconds."""

    _ready: deque[asyncio.Handle]
    _scheduled: list[Any]
    """Timers, a heap."""
    _asyncgen_firstiter_hook: Any
    _asyncgen_finalizer_hook: Any

    def __init__(self, clock: Callable[[], float], wrong: Callable[[str], None]) -> None:
        """`wrong(what)` gets exceptions that nobody awaits."""
        super().__init__()
        numbers = count()
        self.set_task_factory(
            lambda loop, coroutine, **more: NumberedTask(coroutine, next(numbers), loop=loop, **more)
        )
        self._clock = clock
        self.sealed = False
        """The process is dead: what its tasks do while they end is nobody's business."""
        self.set_exception_handler(lambda _, context: self._exception(context, wrong))

    def _exception(self, context: dict[str, Any], wrong: Callable[[str], None]) -> None:
        if not self.sealed:
            wrong(f"{context.get('message')}: {context.get('exception')!r}")

    def time(self) -> float:
        """See `AbstractEventLoop.time`."""
        return self._clock()

    def _write_to_self(self) -> None:
        """Nobody sleeps in a selector."""

    @property
    def busy(self) -> bool:
        """Whether there is a step to do now."""
        return bool(self._ready)

    def due_s(self) -> float | None:
        """When the next timer is due."""
        while self._scheduled and self._scheduled[0].cancelled():
            heappop(self._scheduled)._scheduled = False
        return self._scheduled[0].when() if self._scheduled else None

    def ring(self) -> None:
        """Timers that are due have their turn after all that is there."""
        while (due_s := self.due_s()) is not None and due_s <= self._clock():
            timer = heappop(self._scheduled)
            timer._scheduled = False
            self._ready.append(timer)

    def step(self) -> None:
        """One callback."""
        handle = self._ready.popleft()
        if handle.cancelled():
            return
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(
            firstiter=self._asyncgen_firstiter_hook, finalizer=self._asyncgen_finalizer_hook
        )
        events._set_running_loop(self)
        try:
            handle._run()
        finally:
            events._set_running_loop(None)
            sys.set_asyncgen_hooks(*hooks)

    def start(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Begin something."""
        return self.create_task(coroutine)

    def bury(self) -> None:
        """The process is dead. Its tasks end, in a world that hears nothing of it."""
        self.sealed = True
        tasks = sorted(asyncio.all_tasks(self), key=lambda task: (len(task.get_name()), task.get_name()))
        for task in tasks:
            task.cancel()
        for _ in range(_STEPS_TO_END):
            if not self._ready:
                left = sorted(asyncio.all_tasks(self), key=lambda task: task.get_name())
                if not left:
                    break
                for task in left:
                    task.cancel()
            self.step()
        self._scheduled.clear()
        self._ready.clear()
        self.close()
