"""Slow steps of authentications: addresses take turns."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Callable

import pytest

from ringleader.coordinator.server.slow_steps import SlowSteps
from tests.support.served import until


@pytest.fixture
async def steps() -> AsyncIterator[SlowSteps]:
    made = SlowSteps(threads=1)
    yield made
    made.close()


class Gate:
    """Steps that end when a test lets them, and the order in which they did."""

    def __init__(self) -> None:
        self.ended: list[str] = []
        self.go_on = threading.Event()

    def step(self, name: str) -> Callable[[], bytes]:
        def run() -> bytes:
            self.go_on.wait()
            self.ended.append(name)
            if name == "bad":
                raise ValueError(name)
            return name.encode()

        return run


async def test_a_client_from_elsewhere_waits_for_one_step_of_a_flood(steps: SlowSteps) -> None:
    gate = Gate()
    flood = [steps.add("1.1.1.1", gate.step(f"flood {number}")) for number in range(50)]
    alice = steps.add("2.2.2.2", gate.step("alice"))
    bob = [steps.add("3.3.3.3", gate.step(f"bob {number}")) for number in range(2)]
    gate.go_on.set()
    assert await alice == b"alice"
    await asyncio.gather(*bob)
    assert [await one for one in flood] == [f"flood {number}".encode() for number in range(50)]
    assert gate.ended[:7] == ["flood 0", "flood 1", "alice", "bob 0", "flood 2", "bob 1", "flood 3"]


async def test_what_nobody_waits_for_is_not_begun(steps: SlowSteps) -> None:
    gate = Gate()
    begun = steps.add("1.1.1.1", gate.step("begun"))
    given_up = [steps.add("1.1.1.1", gate.step("given up")) for _ in range(20)]
    last = steps.add("1.1.1.1", gate.step("last"))
    for one in (begun, *given_up):
        one.cancel()
    gate.go_on.set()
    assert await last == b"last"
    assert gate.ended == ["begun", "last"]


async def test_what_a_step_raises_is_its_own(steps: SlowSteps) -> None:
    gate = Gate()
    gate.go_on.set()
    bad, lost = steps.add("1.1.1.1", gate.step("bad")), steps.add("1.1.1.1", gate.step("bad"))
    lost.cancel()
    with pytest.raises(ValueError, match="bad"):
        await bad
    assert await steps.add("1.1.1.1", gate.step("good")) == b"good"


async def test_a_close_waits_for_nothing() -> None:
    gate = Gate()
    steps = SlowSteps(threads=1)
    outcomes = [steps.add(address, gate.step(address)) for address in ("1.1.1.1", "2.2.2.2")]
    steps.close()
    gate.go_on.set()
    await until(outcomes[0].done)
    assert gate.ended == ["1.1.1.1"]


def test_a_step_that_fails_as_its_loop_ends_is_not_reported(caplog: pytest.LogCaptureFixture) -> None:
    gate = Gate()

    async def serve() -> None:
        steps = SlowSteps(threads=1)
        before = set(threading.enumerate())
        outcome = steps.add("1.1.1.1", gate.step("bad"))
        (thread,) = set(threading.enumerate()) - before
        outcome.cancel()
        steps.close()
        gate.go_on.set()
        thread.join()

    loop = asyncio.new_event_loop()
    loop.run_until_complete(serve())
    loop.close()
    gc.collect()
    assert gate.ended == ["bad"]
    assert caplog.records == []
