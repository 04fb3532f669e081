"""Work in hand ends before a share moves: within a bound, with heartbeats, in both kinds of members."""

from __future__ import annotations

import asyncio
import contextvars
import json
import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from ringleader.clients.group.callbacks.work import Work, WorkGate
from ringleader.clients.group.membership import GroupMember, SyncGroupMember
from ringleader.clients.model import Assigned, Lost, MemberProtocol, Revoked
from ringleader.testing.coordinator import Coordinator
from tests.support.member_script import MemberScript, TellLost, TellRevoked
from tests.support.sharding import PATIENCE_S, Diary, assign, member, settled, shards

WARNED = "pieces of work in hand have not ended"


def given_up(before: bytes, after: bytes) -> bytes | None:
    removed = sorted(set(json.loads(before)) - set(json.loads(after)))
    return json.dumps(removed).encode() if removed else None


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110 -- what it looks at tells nobody
            await asyncio.sleep(0.01)


# ---- what it rests on ----


def share(generation: int = 1) -> Assigned:
    return Assigned(generation, "m", "m", "p", b"")


class Elsewhere:
    """Code that is not a part of what runs here: a context of its own."""

    def __init__(self) -> None:
        self._context = contextvars.Context()

    def enter(self, gate: WorkGate) -> Work | None:
        return self._context.run(gate.enter)

    def exit(self, gate: WorkGate, work: Work | None) -> None:
        assert work is not None
        self._context.run(gate.exit, work)


def test_a_gate_that_is_closed_lets_nothing_in_and_tells_the_end() -> None:
    gate, idle, a, b, c = WorkGate(), list[str](), Elsewhere(), Elsewhere(), Elsewhere()
    assert a.enter(gate) is None
    gate.open(share(), gate.closings)
    first, second = a.enter(gate), b.enter(gate)
    assert first is not None
    assert first.assigned == share()
    assert gate.close(lambda: idle.append("idle")) == 2
    assert c.enter(gate) is None
    inner = a.enter(gate)
    assert inner is not None
    assert inner.assigned == share(), "inside of its own work"
    a.exit(gate, inner)
    a.exit(gate, first)
    assert a.enter(gate) is None
    assert (idle, gate.in_hand) == ([], 1)
    b.exit(gate, second)
    assert (idle, gate.in_hand) == (["idle"], 0)
    gate.open(share(2), gate.closings)
    again = a.enter(gate)
    assert again is not None
    assert again.assigned == share(2)
    a.exit(gate, again)
    assert idle == ["idle"]
    assert gate.close(lambda: idle.append("never")) == 0
    gate.open(share(3), gate.closings)
    last = a.enter(gate)
    assert last is not None
    a.exit(gate, last)
    assert idle == ["idle"]


def test_a_share_from_before_the_last_closing_opens_nothing() -> None:
    gate = WorkGate()
    closings = gate.closings
    gate.close()
    gate.open(share(), closings)
    assert gate.enter() is None


def test_what_outlives_the_work_it_began_in_is_no_part_of_it() -> None:
    """Else two tasks that were made there and take turns would hold up a revocation for ever."""
    gate = WorkGate()
    gate.open(share(), gate.closings)
    outer = gate.enter()
    assert outer is not None
    contexts = [contextvars.copy_context(), contextvars.copy_context()]
    one, two = (context.run(gate.enter) for context in contexts)
    assert gate.in_hand == 1
    assert one is not None
    assert two is not None
    gate.exit(outer)
    assert gate.close() == 1
    contexts[0].run(gate.exit, one)
    assert contexts[0].run(gate.enter) is None
    assert gate.in_hand == 1
    contexts[1].run(gate.exit, two)
    assert gate.in_hand == 0


@pytest.mark.parametrize(
    ("settings", "hold_ms", "work_ms"),
    [
        ({"rebalance_timeout_ms": 60_000}, 60_000, 59_000),
        ({"rebalance_timeout_ms": 60_000, "quiesce_timeout_ms": 2_000}, 2_000, 1_500),
        ({"rebalance_timeout_ms": 1_000, "quiesce_timeout_ms": 2_000}, 1_000, 750),
    ],
)
def test_the_bound(settings: dict[str, Any], hold_ms: int, work_ms: int) -> None:
    script = MemberScript(**settings).start().settle()
    began_ms = script.now_ms
    script.rejoin()
    assert script.last_reported(TellRevoked).work_until_ms == began_ms + work_ms
    script.wait(hold_ms - 1)
    assert not [one for one in script.reported if isinstance(one, TellLost)]
    script.wait(1)
    assert "did not end in time" in script.last_reported(TellLost).lost.reason


def test_leaving_in_a_hurry_bounds_work_in_hand_as_well() -> None:
    script = MemberScript(quiesce_timeout_ms=60_000).start().settle()
    began_ms = script.now_ms
    script.leave(timeout_ms=500)
    revoked_by_ms = began_ms + 375  # a quarter is for the coordinator's answer
    assert script.due_ms() == revoked_by_ms
    assert script.last_reported(TellRevoked).work_until_ms == revoked_by_ms - 93


# ---- members ----


async def test_on_revoked_comes_after_the_work_in_hand(coordinator: Coordinator) -> None:
    diary, may_end, entered = Diary(), asyncio.Event(), asyncio.Event()
    ended: list[int] = []

    async def work(one: GroupMember) -> None:
        async with one.working() as mine:
            entered.set()
            await may_end.wait()
            assert one.generation == mine.generation, "heartbeats have gone on"
            ended.append(mine.generation)

    async with member(coordinator, diary, session_timeout_ms=6_000) as one:
        tasks = [asyncio.create_task(work(one)) for _ in range(3)]
        await entered.wait()
        async with member(coordinator) as two:
            await until(lambda: one.assigned is None)
            late = asyncio.create_task(work(one))
            await asyncio.sleep(0.3)
            assert diary.of(Revoked) == []
            assert one.metrics().work_in_hand == 3
            with pytest.raises(TimeoutError):
                await two.wait_assigned(0.01)
            may_end.set()
            await asyncio.gather(*tasks)
            await diary.until(Revoked)
            assert ended == [1, 1, 1]
            await late
            assert ended[-1] > 1, "what came while the share was given up began under the next one"
    assert diary.of(Lost) == []


async def test_work_that_does_not_end(coordinator: Coordinator, caplog: pytest.LogCaptureFixture) -> None:
    diary, entered = Diary(), asyncio.Event()

    async def work(one: GroupMember) -> None:
        async with one.working():
            entered.set()
            await asyncio.Event().wait()

    # A second is left for on_revoked: a computer that is busy is late by less.
    async with member(coordinator, diary, quiesce_timeout_ms=4_000) as one:
        task = asyncio.create_task(work(one))
        await entered.wait()
        async with member(coordinator) as two:
            await settled(one, two)
        assert len(diary.of(Revoked)) >= 1, "on_revoked is called all the same"
        assert diary.of(Lost) == []
        assert any(f"1 of 1 {WARNED} within" in record.message for record in caplog.records)
        task.cancel()
        await asyncio.wait([task])
        assert one.metrics().work_in_hand == 0


async def test_tasks_inside_of_work_in_hand_are_a_part_of_it(coordinator: Coordinator) -> None:
    """They would wait for a share that comes when the block around them has ended, which waits for them."""
    diary, done = Diary(), list[int]()
    async with member(coordinator, diary, quiesce_timeout_ms=60_000) as one:

        async def piece(number: int) -> None:
            async with one.working() as assigned:
                await asyncio.to_thread(threaded, number)
                assert assigned.generation == 1
            done.append(number)

        def threaded(number: int) -> None:
            assert one._driver.gate.inside(), number

        async with asyncio.timeout(PATIENCE_S):
            async with one.working(), asyncio.TaskGroup() as group:
                await one.rejoin("while there is work in hand")
                await until(
                    lambda: (
                        one.metrics().phase == "giving up its assignment" and one._driver.gate.closings > 0
                    )
                )
                assert one.metrics().work_in_hand == 1
                for number in range(3):
                    group.create_task(piece(number))
            assert sorted(done) == [0, 1, 2]
            assert (await diary.until(Revoked)).generation == 1


@pytest.mark.parametrize("kind", ["asyncio", "synchronous"])
async def test_stop_has_one_deadline(coordinator: Coordinator, kind: str) -> None:
    """For a callback that does not end and a coordinator that does not answer together."""
    coordinator.faults.delay("LeaveGroup", 60)
    never = threading.Event()
    loop = asyncio.get_running_loop()
    if kind == "asyncio":

        async def hold(_revoked: Revoked) -> None:
            await asyncio.Event().wait()

        one = member(coordinator, on_revoked=hold)
        await one.start()
        await one.wait_assigned(PATIENCE_S)
        started_s = loop.time()
        await one.stop(timeout_s=3)
    else:
        two = sync_member(coordinator, on_revoked=lambda _revoked: never.wait(PATIENCE_S))
        two.start()
        await asyncio.to_thread(two.wait_assigned, PATIENCE_S)
        started_s = loop.time()
        await asyncio.to_thread(lambda: two.stop(timeout_s=3))
    assert loop.time() - started_s < 4.5
    never.set()


async def test_a_cooperative_member_lets_work_end_before_a_part_moves(coordinator: Coordinator) -> None:
    diary, may_end, entered = Diary(), asyncio.Event(), asyncio.Event()

    async def work(one: GroupMember) -> None:
        async with one.working():
            entered.set()
            await may_end.wait()

    async with member(coordinator, diary, given_up=given_up) as one:
        task = asyncio.create_task(work(one))
        await entered.wait()
        async with member(coordinator, given_up=given_up):
            # The machine is a moment ahead of the gate.
            await until(
                lambda: one.metrics().phase == "giving up its assignment" and one._driver.gate.closings > 0
            )
            assert one.assigned is not None, "it keeps the rest"
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2), one.working():
                    pytest.fail("no work begins during a revocation")
            assert diary.of(Revoked) == []
            may_end.set()
            await task
            assert (await diary.until(Revoked)).partial
            await diary.until(Assigned, 2)
            async with one.working() as mine:
                assert len(shards(mine)) == 6
    assert diary.of(Lost) == []


async def test_cancelling_leaves_no_count_behind(coordinator: Coordinator) -> None:
    """At every step: before there is a share, at the moment there is one, at work, and again and again."""
    one = member(coordinator)

    async def work() -> None:
        async with one.working():
            await asyncio.Event().wait()

    async with one:
        waiting = [asyncio.create_task(work()) for _ in range(20)]
        await asyncio.sleep(0)
        for task in waiting[:10]:
            task.cancel()
        await until(lambda: one.metrics().work_in_hand > 0)
        for task in waiting[10:]:
            task.cancel()
        await asyncio.wait(waiting)
        assert one.metrics().work_in_hand == 0
        for steps in range(6):
            task = asyncio.create_task(work())
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
        assert one.metrics().work_in_hand == 0
        with pytest.raises(KeyError):
            async with one.working():
                raise KeyError("work fails")
        assert one.metrics().work_in_hand == 0


async def test_leave_from_work_in_hand_does_not_wait_for_itself(coordinator: Coordinator) -> None:
    diary = Diary()
    one = member(coordinator, diary)
    await one.start()
    async with one.working(), one.working():
        await one.leave("done")
        assert not diary.of(Revoked)
    await one.stop()
    assert [type(line).__name__ for line in diary.lines] == ["Assigned", "Revoked"]
    with pytest.raises(Exception, match="has left"):
        async with one.working():
            pytest.fail("there is no share any more")


async def test_no_work_begins_inside_of_a_callback(coordinator: Coordinator) -> None:
    found: list[BaseException] = []
    held: list[GroupMember] = []

    async def enter(_assigned: Assigned) -> None:
        try:
            async with held[0].working():
                pytest.fail("it would wait for itself")
        except RuntimeError as error:
            found.append(error)

    held.append(member(coordinator, Diary(Assigned=enter)))
    async with held[0] as one:
        await one.wait_assigned(PATIENCE_S)
    assert "inside of a callback" in str(found[0])


def sync_member(where: Coordinator, **options: Any) -> SyncGroupMember:
    given: dict[str, Any] = {"protocol_type": "sharding", "protocols": [MemberProtocol("deal")]}
    given |= {"assign": assign, "session_timeout_ms": 6_000, "heartbeat_interval_ms": 50}
    return SyncGroupMember(where.bootstrap, "jobs", **(given | options))


def test_a_synchronous_member_lets_work_end(coordinator: Coordinator) -> None:
    reported: list[str] = []
    entered, may_end, revoked = threading.Event(), threading.Event(), threading.Event()

    def on_revoked(_revoked: Revoked) -> None:
        reported.append("revoked")
        revoked.set()

    with sync_member(coordinator, on_revoked=on_revoked) as one:

        def work() -> None:
            with one.working(), one.working():
                entered.set()
                assert may_end.wait(PATIENCE_S)
                reported.append("work ended")

        thread = threading.Thread(target=work)
        thread.start()
        assert entered.wait(PATIENCE_S)
        with sync_member(coordinator) as two:
            with pytest.raises(TimeoutError):
                two.wait_assigned(0.5)
            assert reported == []
            may_end.set()
            assert revoked.wait(PATIENCE_S)
            two.wait_assigned(PATIENCE_S)
            assert reported[:2] == ["work ended", "revoked"]
            with one.working() as mine:
                assert mine.generation >= 2
        thread.join()


def test_a_synchronous_cooperative_member_lets_work_end_before_a_part_moves(
    coordinator: Coordinator,
) -> None:
    reported: list[str] = []
    entered, may_end, revoked = threading.Event(), threading.Event(), threading.Event()

    def on_revoked(share: Revoked) -> None:
        reported.append(f"revoked {share.partial}")
        revoked.set()

    def work(one: SyncGroupMember) -> None:
        with one.working():
            entered.set()
            assert may_end.wait(PATIENCE_S)
            reported.append("work ended")

    with sync_member(coordinator, given_up=given_up, on_revoked=on_revoked) as one:
        thread = threading.Thread(target=work, args=(one,))
        thread.start()
        assert entered.wait(PATIENCE_S)
        with sync_member(coordinator, given_up=given_up):
            assert not revoked.wait(0.5)
            assert one.assigned is not None
            may_end.set()
            assert revoked.wait(PATIENCE_S)
            with one.working() as mine:
                assert mine.generation >= 2
        thread.join()
    assert reported[:2] == ["work ended", "revoked True"]


def test_a_synchronous_member_leaves_from_its_work(
    coordinator: Coordinator, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    one = sync_member(coordinator)
    one.start()
    with one.working():
        one.leave("done")
    one.stop()
    assert not [record for record in caplog.records if WARNED in record.message]
