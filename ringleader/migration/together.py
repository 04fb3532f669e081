"""Several things at once, some at a time; the first that fails ends all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

K = TypeVar("K")
T = TypeVar("T")


async def together(keys: Iterable[K], do: Callable[[K], Awaitable[T]], at_once: int) -> dict[K, T]:
    """The result of each key. Raises the first error, when all others have ended."""
    free = asyncio.Semaphore(at_once)

    async def one(key: K) -> T:
        async with free:
            return await do(key)

    try:
        async with asyncio.TaskGroup() as group:
            tasks = {key: group.create_task(one(key)) for key in keys}
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from None
    return {key: task.result() for key, task in tasks.items()}
