"""The state with which a transaction coordinator goes on after a restart, and how long it waits."""

from __future__ import annotations

from ringleader.coordinator.transactions.states import State
from ringleader.protocol.errors import ErrorCode
from tests.support.transactions import World

A0, A1, OFFSETS = ("a", 0), ("a", 1), ("__consumer_offsets", 7)
CONCURRENT = ErrorCode.CONCURRENT_TRANSACTIONS


def test_open_transactions_go_on_after_a_restart() -> None:
    world = World()
    for name in ("empty", "open", "decided", "aborted", "complete"):
        producer = world.init(name, timeout_ms=5_000)
        if name != "empty":
            world.add(producer, A0, OFFSETS, name=name)
        if name in ("decided", "aborted", "complete"):
            world.end(producer, name != "aborted", name=name)
        if name == "complete":
            world.finishes = world.finishes[-1:]
            world.finish()
    world.now_ms += 2_000
    after = world.restarted()
    assert {found[0]: found[3] for found in after.finishes} == {"decided": True, "aborted": False}
    assert {found[4] for found in after.finishes} == {frozenset({A0, OFFSETS})}
    assert [after.state(name) for name in ("empty", "open", "complete")] == [
        State.EMPTY,
        State.ONGOING,
        State.COMPLETE_COMMIT,
    ]
    assert after.init("decided") == CONCURRENT
    assert set(after.machine.open()) == {
        (producer_id, partition) for producer_id in (102, 103, 104) for partition in (A0, OFFSETS)
    }
    assert after.pass_ms(2_999) == []
    assert after.pass_ms(1) == ["open"]
    for found in after.finishes:
        after.finished(found)
    assert after.init("decided") == (103, 1)


def test_time_that_passed_while_nobody_was_there_counts() -> None:
    world = World()
    world.add(world.init(timeout_ms=5_000), A0)
    world.now_ms += 3_600_000
    assert world.restarted().pass_ms(0) == ["t"]


def test_after_a_restart_the_time_still_counts_from_the_first_partition() -> None:
    world = World()
    producer = world.init(timeout_ms=5_000)
    world.pass_ms(1_000)
    world.add(producer, A0)
    world.pass_ms(3_000)
    world.add(producer, A1)
    after = world.restarted()
    assert after.pass_ms(1_999) == []
    assert after.pass_ms(1) == ["t"]


def test_a_clock_that_was_set_back_gives_nobody_more_than_the_whole_time() -> None:
    world = World()
    world.add(world.init(timeout_ms=5_000), A0)
    world.now_ms -= 3_600_000
    after = world.restarted()
    assert after.pass_ms(4_999) == []
    assert after.pass_ms(1) == ["t"]
