"""Computations beside the loop."""

from __future__ import annotations

import asyncio
import threading

import pytest

from ringleader.clients.connection.aside import aside


async def test_results_and_errors() -> None:
    assert await aside(lambda: threading.current_thread() is not threading.main_thread())

    def fail() -> None:
        raise KeyError("x")

    with pytest.raises(KeyError, match="x"):
        await aside(fail)


@pytest.mark.leaves("aside()")
def test_nobody_wants_the_result_any_more() -> None:
    """Cancelled, or the loop is gone: the thread ends by itself, without a word."""
    may_end, threads = threading.Event(), []

    def compute() -> None:
        threads.append(threading.current_thread())
        may_end.wait()

    async def give_up() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await aside(compute)
        may_end.set()
        await asyncio.to_thread(threads[0].join)
        may_end.clear()
        asyncio.ensure_future(aside(compute))  # noqa: RUF006
        while len(threads) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.001)

    asyncio.run(give_up())
    may_end.set()
    threads[1].join()
    assert not any(thread.is_alive() for thread in threads)
