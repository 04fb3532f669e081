"""Where callbacks run: in order, cancellable, and never able to hang the end."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from ringleader.clients.group.callbacks.callers import Job, LoopCaller, LoopEndedError, ThreadCaller

PATIENCE_S = 20.0


class Ends:
    """The outcomes of jobs; `done` may come from any thread."""

    def __init__(self) -> None:
        self.results: dict[str, Any] = {}
        self._changed = threading.Condition()

    def job(self, name: str, run: Callable[[], Any]) -> Job:
        def done(result: Any, error: BaseException | None) -> None:
            with self._changed:
                self.results[name] = result if error is None else error
                self._changed.notify_all()

        return Job(name, run, done)

    def wait(self, name: str) -> Any:
        with self._changed:
            assert self._changed.wait_for(lambda: name in self.results, PATIENCE_S), name
            return self.results[name]


async def test_the_loop_runs_functions_and_coroutines_in_order() -> None:
    ends, order, caller = Ends(), [], LoopCaller(lambda: None)

    async def slow() -> str:
        await asyncio.sleep(0.02)
        order.append("slow")
        return "was awaited"

    def raises() -> None:
        order.append("raises")
        raise KeyError("x")

    caller.post(ends.job("a", slow))
    caller.post(ends.job("b", raises))
    caller.post(ends.job("c", lambda: caller.inside()))
    await caller.close(PATIENCE_S)
    assert order == ["slow", "raises"]
    assert (ends.results["a"], ends.results["c"]) == ("was awaited", True)
    assert isinstance(ends.results["b"], KeyError)
    assert caller.inside() is False


async def test_the_loop_cancels_what_runs_and_what_waits() -> None:
    ends, caller = Ends(), LoopCaller(lambda: None)
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def forever() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    running, waiting = ends.job("running", forever), ends.job("waiting", lambda: "ran")
    caller.post(running)
    caller.post(waiting)
    caller.post(ends.job("next", lambda: "ran"))
    await started.wait()
    caller.cancel(waiting)
    caller.cancel(running)
    await caller.close(PATIENCE_S)
    assert cancelled.is_set()
    assert ends.results == {"next": "ran"}, "nobody hears of cancelled jobs any more"


async def test_a_callback_that_does_not_end_is_cancelled_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    ends, caller = Ends(), LoopCaller(lambda: None)
    caller.post(ends.job("stuck", asyncio.Event().wait))
    await caller.close(0.05)
    assert isinstance(ends.results["stuck"], LoopEndedError)
    assert "does not end" in caplog.text


@pytest.mark.leaves("LoopCaller._work")
def test_a_loop_that_has_ended() -> None:
    ends, ended = Ends(), []

    async def application() -> LoopCaller:
        caller = LoopCaller(lambda: ended.append("gone"))
        await asyncio.sleep(0)
        return caller

    caller = asyncio.run(application())
    assert ended == ["gone"]
    assert caller.alive() is False
    job = ends.job("late", lambda: "ran")
    caller.post(job)
    assert isinstance(ends.results["late"], LoopEndedError)
    caller.cancel(job)
    caller.call(ended.append, "never")
    assert ended == ["gone"]


def test_a_thread_runs_jobs_in_order() -> None:
    ends, caller = Ends(), ThreadCaller()

    def raises() -> None:
        raise KeyError("x")

    caller.post(ends.job("a", raises))
    caller.post(ends.job("b", caller.inside))
    assert ends.wait("b") is True
    assert isinstance(ends.wait("a"), KeyError)
    assert caller.inside() is False
    assert caller.alive()
    caller.close(PATIENCE_S)


@pytest.mark.parametrize("end", ["result", "error", "cancelled"])
def test_a_future_ends_its_job(end: str) -> None:
    ends, caller, future = Ends(), ThreadCaller(), Future[str]()
    caller.post(ends.job("future", lambda: future))
    caller.post(ends.job("next", lambda: "ran"))
    assert ends.wait("next") == "ran", "a future does not block the thread"
    assert "future" not in ends.results
    if end == "result":
        future.set_result("given up")
        assert ends.wait("future") == "given up"
    elif end == "error":
        future.set_exception(KeyError("x"))
        assert isinstance(ends.wait("future"), KeyError)
    else:
        future.cancel()
        assert isinstance(ends.wait("future"), LoopEndedError)
    caller.close(PATIENCE_S)


def test_a_cancelled_future_and_a_cancelled_job() -> None:
    ends, caller, future = Ends(), ThreadCaller(), Future[str]()
    release = threading.Event()
    running, waiting = ends.job("running", lambda: future), ends.job("waiting", lambda: "ran")
    caller.post(running)
    caller.post(ends.job("gate", lambda: release.wait(PATIENCE_S)))
    caller.post(waiting)
    caller.cancel(waiting)
    release.set()
    ends.wait("gate")
    caller.cancel(running)
    caller.close(PATIENCE_S)
    assert future.cancelled()
    assert set(ends.results) == {"gate"}


def test_a_thread_that_does_not_end_is_left_behind(caplog: pytest.LogCaptureFixture) -> None:
    ends, caller, release = Ends(), ThreadCaller(), threading.Event()
    caller.post(ends.job("stuck", lambda: release.wait(PATIENCE_S)))
    with caplog.at_level(logging.WARNING):
        caller.close(0.05)
    assert "left behind" in caplog.text
    release.set()
    assert ends.wait("stuck") is True


def test_a_callback_that_exits_does_not_take_the_next_ones_with_it() -> None:
    ends, caller = Ends(), ThreadCaller()
    caller.post(ends.job("exits", sys.exit))
    caller.post(ends.job("next", lambda: "runs"))
    assert isinstance(ends.wait("exits"), SystemExit)
    assert ends.wait("next") == "runs"
    caller.close(PATIENCE_S)
