"""The scheduler of the loop: one budget of time for each turn, a fair share for each owner, and order."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from ringleader.coordinator import run_queue
from ringleader.coordinator.run_queue import ACTIVE_MAX, AT_A_TIME, SLICE_ELEMENTS, TURN_S, RunQueue, Slices


class Time:
    """The clock of the scheduler: it moves when work says so."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> Time:
    """The scheduler's own clock."""
    time = Time()
    monkeypatch.setattr(run_queue, "perf_counter", time)
    return time


async def test_work_is_done_at_once_while_the_turn_has_time_left_and_keeps_its_order(
    time: Time,
) -> None:
    queue, done = RunQueue(), list[int]()

    def work(number: int) -> None:
        def go() -> None:
            done.append(number)
            time.now_s += TURN_S * 0.6

        queue.at_once(go, "one")

    for number in range(6):
        work(number)
    assert done == [0, 1]
    await asyncio.sleep(0)
    assert done == [0, 1, 2, 3]
    work(6)
    await asyncio.sleep(0)
    assert done == [0, 1, 2, 3, 4, 5]
    await asyncio.sleep(0)
    assert done == [0, 1, 2, 3, 4, 5, 6]


async def test_an_owner_with_much_work_does_not_hold_up_the_others(time: Time) -> None:
    queue, done = RunQueue(), list[str]()

    def work(owner: str) -> None:
        def go() -> None:
            done.append(owner)
            time.now_s += TURN_S / 2

        queue.at_once(go, owner)

    for _ in range(20):
        work("many")
    work("few")
    for _ in range(3):
        await asyncio.sleep(0)
    assert "few" in done
    assert done.count("many") <= 8


async def test_work_that_fails_does_not_stop_the_rest(time: Time) -> None:
    failures: list[str] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda loop, context: failures.append(context["message"])
    )
    queue, done = RunQueue(), list[int]()

    def long() -> None:
        time.now_s += TURN_S

    def fail() -> None:
        raise RuntimeError("broken")

    queue.at_once(long, "one")
    queue.at_once(fail, "one")
    queue.at_once(lambda: done.append(1), "one")
    for _ in range(5):
        await asyncio.sleep(0)
    assert done == [1]
    assert len(failures) == 1


async def test_jobs_and_coroutines_share_the_turns(time: Time) -> None:
    queue, done = RunQueue(), list[str]()

    def job(name: str) -> Slices:
        for _ in range(3):
            done.append(name)
            time.now_s += TURN_S
            yield

    async def entries() -> None:
        async for entry in queue.each(range(2 * SLICE_ELEMENTS)):
            if not entry % SLICE_ELEMENTS:
                done.append("entries")

    await asyncio.gather(queue.run(job("a")), queue.run(job("b")), entries())
    assert sorted(done) == ["a"] * 3 + ["b"] * 3 + ["entries"] * 2
    assert done[:3] != ["a"] * 3


async def test_not_more_than_some_jobs_are_in_progress() -> None:
    queue, begun = RunQueue(), set[int]()
    open_jobs = asyncio.Event()

    def job(number: int) -> Iterator[None]:
        begun.add(number)
        while not open_jobs.is_set():
            yield

    jobs = [asyncio.ensure_future(queue.run(job(number))) for number in range(ACTIVE_MAX + 2)]  # type: ignore[arg-type]
    for _ in range(5):
        await asyncio.sleep(0)
    assert begun == set(range(ACTIVE_MAX))
    open_jobs.set()
    await asyncio.gather(*jobs)
    assert len(begun) == ACTIVE_MAX + 2


async def test_coroutines_begin_some_at_a_time_and_give_their_results_in_order() -> None:
    queue, most, running = RunQueue(), 0, 0

    async def work(number: int) -> int:
        nonlocal most, running
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return number

    assert await queue.gather(map(work, range(3 * AT_A_TIME + 1))) == list(range(3 * AT_A_TIME + 1))
    assert most == AT_A_TIME
