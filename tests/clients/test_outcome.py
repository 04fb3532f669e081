"""The outcomes of a batch's records: each as a future of its own, by compiled code and without it."""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import sys
from typing import Any

import pytest

from ringleader import DeliveryTimeoutError
from ringleader.clients.produce import outcome as installed
from ringleader.protocol import native

COUNT = 4
LATE = DeliveryTimeoutError("too late")


@pytest.fixture(params=["installed", "python"])
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The module with the outcomes."""
    if request.param == "installed":
        return installed
    monkeypatch.setattr(native, "compiled", None)
    found = importlib.util.spec_from_file_location("outcome_in_python", installed.__file__)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    found.loader.exec_module(module)
    return module


def batch(kind: Any) -> tuple[Any, list[Any]]:
    """The fate of a batch of records with the times 1000 to 1003, and their outcomes."""
    fate = kind.Fate(asyncio.get_running_loop(), "t", 7)
    fate.times_ms = [1_000 + number for number in range(COUNT)]
    return fate, [kind.Outcome(fate.batch, number) for number in range(COUNT)]


async def test_all_are_known_when_their_batch_is(kind: Any) -> None:
    fate, outcomes = batch(kind)
    for found in outcomes:
        assert not found.done()
        assert not found.cancelled()
        with pytest.raises(asyncio.InvalidStateError):
            found.result()
        with pytest.raises(asyncio.InvalidStateError):
            found.exception()
    fate.end(0, COUNT, 50, -1, None)
    for number, found in enumerate(outcomes):
        assert found.done()
        assert found.result() == ("t", 7, 50 + number, 1_000 + number)
        assert found.result().offset == 50 + number
        assert found.exception() is None
        assert not found.cancel()
        assert await found is not None
    assert repr(outcomes[0]) == "<Outcome known>"


async def test_a_place_that_nobody_knows_and_the_broker_s_time(kind: Any) -> None:
    fate, outcomes = batch(kind)
    fate.end(0, COUNT, -1, 0, None)
    assert [tuple(found.result()) for found in outcomes] == [("t", 7, -1, 0)] * COUNT


async def test_all_fail_with_their_batch(kind: Any) -> None:
    fate, outcomes = batch(kind)
    waiting = asyncio.ensure_future(outcomes[0])
    reported: list[Any] = []
    waiting.add_done_callback(reported.append)
    fate.end(0, COUNT, -1, -1, LATE)
    for found in outcomes:
        assert found.done()
        assert found.exception() is LATE
        with pytest.raises(DeliveryTimeoutError, match="too late"):
            found.result()
        with pytest.raises(DeliveryTimeoutError, match="too late"):
            await found
    await asyncio.sleep(0)
    assert reported == [waiting]


async def test_a_cancelled_outcome_stays_that_and_the_others_are_known(kind: Any) -> None:
    fate, outcomes = batch(kind)
    assert outcomes[1].cancel()
    assert outcomes[1].done()
    fate.end(0, COUNT, 50, -1, None)
    assert outcomes[1].cancelled()
    with pytest.raises(asyncio.CancelledError):
        outcomes[1].result()
    with pytest.raises(asyncio.CancelledError):
        await outcomes[1]
    assert [outcomes[number].result().offset for number in (0, 2, 3)] == [50, 52, 53]
    assert all(found.done() for found in outcomes)
    assert outcomes[0].exception() is None


async def test_halves_of_a_batch_end_by_themselves(kind: Any) -> None:
    fate, outcomes = batch(kind)
    fate.end(2, 2, 90, -1, None)
    assert [found.done() for found in outcomes] == [False, False, True, True]
    assert [tuple(found.result()) for found in outcomes[2:]] == [("t", 7, 90, 1_002), ("t", 7, 91, 1_003)]
    with pytest.raises(asyncio.InvalidStateError):
        outcomes[0].result()
    fate.end(0, 2, -1, -1, LATE)
    assert [found.exception() for found in outcomes] == [LATE, LATE, None, None]


async def test_it_goes_where_a_future_goes(kind: Any) -> None:
    fate, outcomes = batch(kind)
    assert asyncio.isfuture(outcomes[0])
    assert outcomes[0].get_loop() is asyncio.get_running_loop()

    async def awaited(found: Any) -> Any:
        return await found

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(outcomes[0]), 0.001)
    _, pending = await asyncio.wait(outcomes, timeout=0)
    assert pending == set(outcomes)
    reported: list[Any] = []
    outcomes[3].add_done_callback(reported.append)
    outcomes[2].add_done_callback(reported.append)
    assert outcomes[2].remove_done_callback(reported.append) == 1
    assert outcomes[1].remove_done_callback(reported.append) == 0
    waiting = [
        asyncio.gather(*outcomes),
        asyncio.create_task(awaited(outcomes[0])),
        asyncio.create_task(asyncio.wait_for(outcomes[1], 60)),
        asyncio.create_task(asyncio.wait(outcomes)),
    ]
    await asyncio.sleep(0)
    fate.end(0, COUNT, 50, -1, None)
    all_of, first, second, (done, pending) = await asyncio.gather(*waiting)
    assert [found.offset for found in all_of] == [50, 51, 52, 53]
    assert (first.offset, second.offset) == (50, 51)
    assert (done, pending) == (set(outcomes), set())
    assert reported == [outcomes[3]]
    later: list[Any] = []
    outcomes[2].add_done_callback(later.append)
    await asyncio.sleep(0)
    assert later == [outcomes[2]]


async def test_a_task_that_waits_and_is_cancelled_cancels_the_outcome(kind: Any) -> None:
    fate, outcomes = batch(kind)
    waiting = asyncio.ensure_future(asyncio.gather(outcomes[0]))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    fate.end(0, COUNT, 50, -1, None)
    assert outcomes[0].cancelled()
    both: list[Any] = await asyncio.gather(*outcomes[:2], return_exceptions=True)
    cancelled, found = both
    assert isinstance(cancelled, asyncio.CancelledError)
    assert found.offset == 51
    assert not hasattr(found, "__wrapped__")


@pytest.mark.skipif(native.compiled is None, reason="no compiled code here")
async def test_the_garbage_collector_has_nothing_to_look_at() -> None:
    fate, outcomes = batch(installed)
    assert not any(map(gc.is_tracked, outcomes))
    fate.end(0, COUNT, 50, -1, None)
    assert not gc.is_tracked(outcomes[0].result())
