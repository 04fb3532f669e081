"""Long computations in a thread next to the event loop: heartbeats go on, and an unwanted result is not
waited for."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


async def aside(run: Callable[[], T], name: str = "ringleader computes") -> T:
    """The result, computed in a thread of its own, of that name. Other than with a thread of the loop's
    executor, the end of the loop does not wait for it."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def tell(set_it: Callable[[Any], None], result: Any) -> None:
        if not done.done():
            set_it(result)

    def compute() -> None:
        try:
            outcome: tuple[Callable[[Any], None], Any] = done.set_result, run()
        except StopIteration as error:  # no future takes it
            outcome = done.set_exception, RuntimeError(repr(error))
        except BaseException as error:
            outcome = done.set_exception, error
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(tell, *outcome)

    threading.Thread(target=compute, name=name, daemon=True).start()
    return await done
