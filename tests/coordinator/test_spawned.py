"""Work that a node begins on the side, and its end."""

from __future__ import annotations

import asyncio
import inspect

from ringleader.testing import Coordinator


def test_work_that_is_cancelled_before_its_first_step_is_no_coroutine_that_nobody_awaits() -> None:
    with Coordinator() as coordinator:
        work = asyncio.sleep(60)

        async def begin_and_cancel() -> None:
            node = coordinator.node
            before = set(node._tasks)
            node._spawn(None, work)
            (task,) = node._tasks - before
            task.cancel()
            await asyncio.wait([task])

        coordinator.run(begin_and_cancel())
    assert inspect.getcoroutinestate(work) == inspect.CORO_CLOSED
