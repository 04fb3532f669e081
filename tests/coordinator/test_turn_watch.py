"""The reports of turns that hold the loop."""

from __future__ import annotations

import asyncio
import gc
import time
from pathlib import Path

import pytest

from ringleader.coordinator.turn_watch import LongTurn, TurnWatch
from tests.support.daemon import Daemon, DaemonError

MOST_MS = 30


def hold(ms: float) -> None:
    """Take so much CPU time."""
    stop_s = time.thread_time() + ms / 1000
    while time.thread_time() < stop_s:
        pass


def turns(*, hold_ms: float = 0, wait_s: float = 0, garbage: int = 0) -> list[LongTurn]:
    """The report of a turn that does this."""
    found: list[LongTurn] = []
    watch = TurnWatch(MOST_MS, found.append)

    def work() -> None:
        hold(hold_ms)
        time.sleep(wait_s)
        for _ in range(garbage):
            gc.collect()

    async def main() -> None:
        await asyncio.sleep(0)
        found.clear()
        asyncio.get_running_loop().call_soon(work)
        await asyncio.sleep(0.01)

    with watch, asyncio.Runner(loop_factory=watch.new_loop) as runner:
        runner.run(main())
    return found


def test_a_long_turn_is_reported_with_what_ran() -> None:
    [found] = turns(hold_ms=20 * MOST_MS)
    assert found.cpu_ms >= 20 * MOST_MS
    assert "hold" in found.running
    assert "test_turn_watch.py" in found.running


def test_time_that_is_not_the_loops_own_work_does_not_count() -> None:
    assert turns(wait_s=4 * MOST_MS / 1000) == []


def test_the_garbage_collector_does_not_count() -> None:
    junk = [[number] for number in range(300_000)]
    assert turns(garbage=10) == []
    assert junk


def test_a_daemon_that_holds_its_loop_fails_its_test(tmp_path: Path) -> None:
    """With a bar that no daemon keeps: it imports more than that at its start."""
    daemon = Daemon(tmp_path, turn_ms=1).start()
    with pytest.raises(DaemonError, match="held its loop"):
        daemon.stop()
