"""A member whose application makes no progress leaves, and comes back with it (KIP-62, KIP-345)."""

from __future__ import annotations

from typing import Any

import pytest

from ringleader.clients.group.machine.phases import Phase
from ringleader.clients.group.machine.poll_clock import PollClock
from ringleader.protocol.errors import ErrorCode
from tests.support.member_script import MemberScript, Over, TellAssigned, TellLost, TellRevoked
from tests.support.member_world import World

INTERVAL_MS = 5_000
REASON = "consumer poll timeout has expired: no progress for 5.0 s, max_poll_interval_ms is 5 s"


def polling(**settings: Any) -> MemberScript:
    return MemberScript(**({"max_poll_interval_ms": INTERVAL_MS} | settings)).start()


def pass_time(script: MemberScript, ms: int) -> None:
    """Time passes in which heartbeats are answered."""
    for _ in range(ms // 1_000):
        script.wait(1_000)
        if "Heartbeat" in script.wanted:
            script.beat()


def test_no_progress_leaves_with_a_reason_and_stays_out_until_there_is_some() -> None:
    script = polling().settle()
    pass_time(script, 4_000)
    assert script.phase() is Phase.STABLE
    pass_time(script, 1_000)
    assert script.last_reported(TellLost).lost.reason == REASON
    (leaving,) = script.request("LeaveGroup").members
    assert (leaving.member_id, leaving.reason) == ("m-1", REASON)
    script.left()
    assert script.phase() is Phase.RESTING
    assert (script.machine.next_deadline(), script.wanted) == (None, []), "nothing happens by itself"
    script.polled()
    join = script.request("JoinGroup")
    assert (join.member_id, join.reason) == ("", "the application makes progress again")
    script.settle(generation=3, member_id="m-2")
    assert script.last_reported(TellAssigned).assigned.generation == 3
    pass_time(script, 4_000)
    assert script.phase() is Phase.STABLE, "the interval begins anew"


def test_a_static_member_falls_silent_without_leaving() -> None:
    script = polling(group_instance_id="i").settle()
    pass_time(script, 5_000)
    assert script.last_reported(TellLost).lost.reason == REASON
    assert (script.wanted, script.machine.next_deadline()) == ([], None)
    script.polled()
    assert script.request("JoinGroup").member_id == "", "known by its instance id"


def test_progress_from_another_thread_needs_no_step_of_the_machine() -> None:
    script = polling().settle()
    for _ in range(5):
        script.wait(4_000)
        if "Heartbeat" in script.wanted:
            script.beat()
        script.machine.state.poll.polled(script.now_ms)
    assert script.phase() is Phase.STABLE
    assert script.machine.state.counters.poll_expirations == 0


def test_progress_that_comes_late_from_another_thread_begins_the_interval_again() -> None:
    script = polling(group_instance_id="i").settle()
    pass_time(script, 5_000)
    assert script.phase() is Phase.RESTING
    # It looked at the clock a moment before the interval was over.
    script.machine.state.poll.polled(script.now_ms - 1)
    script.machine.tick(script.now_ms)
    script.look().settle(generation=3, member_id="m-2")
    pass_time(script, 4_000)
    assert script.phase() is Phase.STABLE


def test_progress_that_is_told_late_does_not_end_the_next_membership() -> None:
    """A thread read its clock just before the interval was over, and came to tell only after that."""
    script = polling().settle()
    pass_time(script, 5_000)
    script.left()
    script.machine.polled(script.now_ms - 1)
    script.look()
    script.settle(generation=3, member_id="m-2")
    pass_time(script, 4_000)
    assert script.phase() is Phase.STABLE


def test_progress_while_the_leave_is_on_its_way_joins_after_it() -> None:
    script = polling().settle()
    pass_time(script, 5_000)
    script.polled()
    assert script.wanted == ["LeaveGroup"]
    script.left()
    assert script.wanted == ["JoinGroup"]


def test_leave_gets_no_answer_then_progress() -> None:
    script = polling().settle()
    pass_time(script, 5_000)
    script.fail("LeaveGroup")
    script.wait(200)
    script.find(port=9093)
    assert script.wanted == ["LeaveGroup"]
    script.wait(5_000)
    assert script.phase() is Phase.RESTING
    script.polled()
    assert script.wanted[-1] == "JoinGroup"


def test_a_revocation_that_takes_longer_than_the_interval_is_not_cut_off() -> None:
    """The application works for the member then: the clock stands still."""
    script = polling(rebalance_timeout_ms=60_000).settle()
    pass_time(script, 3_000)
    script.rejoin()
    for _ in range(10):
        script.wait(3_000)
        script.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    assert script.kinds() == ["TellAssigned", "TellRevoked"]
    script.revoked()
    assert script.wanted == ["JoinGroup"]
    script.settle(generation=2)
    pass_time(script, 1_000)
    assert script.phase() is Phase.STABLE
    pass_time(script, 1_000)
    assert script.last_reported(TellLost).lost.reason == REASON, "3 s before it and 2 s after it"


def test_a_long_wait_for_the_share_does_not_count() -> None:
    script = polling()
    script.find()
    script.wait(20_000)
    script.join(generation_id=1, member_id="m-1", leader="other")
    script.wait(20_000)
    script.sync()
    assert script.phase() is Phase.STABLE
    pass_time(script, 5_000)
    assert script.phase() is Phase.LEAVING


def test_rebalances_do_not_help_an_application_that_has_stopped() -> None:
    script = polling().settle()
    for generation in range(2, 6):
        pass_time(script, 1_000)
        script.rejoin()
        script.revoked()
        script.settle(generation=generation)
    assert script.phase() is Phase.STABLE
    pass_time(script, 1_000)
    assert script.phase() is Phase.LEAVING


def test_a_cooperative_member_that_stops_while_it_joins_closes_the_parked_join() -> None:
    script = polling(given_up=lambda _before, _after: None).settle()
    pass_time(script, 4_000)
    script.rejoin()
    assert script.wanted[-1] == "JoinGroup"
    script.wait(1_000)
    assert script.disconnects == 1
    assert script.request("LeaveGroup").members[0].reason == REASON
    script.left()
    assert script.phase() is Phase.RESTING


@pytest.mark.parametrize("left", [False, True])
def test_stopping_while_out_of_the_group(left: bool) -> None:
    script = polling().settle()
    pass_time(script, 5_000)
    if left:
        script.left()
    script.leave("done", silently=left)
    if not left:
        assert script.phase() is Phase.LEAVING
        script.left()
    assert script.last_reported(Over).error is None
    assert script.phase() is Phase.LEFT


def test_rejoin_while_out_of_the_group_waits_for_progress() -> None:
    script = polling().settle()
    pass_time(script, 5_000)
    script.left()
    script.rejoin("news")
    assert script.wanted == []
    script.polled()
    script.settle(generation=2)
    assert script.wanted == [], "that join said it all"
    assert not [report for report in script.reported if isinstance(report, TellRevoked)]


def test_without_an_interval_nobody_has_to_say_anything() -> None:
    script = MemberScript().start().settle()
    pass_time(script, 3_600_000)
    assert script.phase() is Phase.STABLE


def test_progress_from_before_the_clock_stood_still_takes_back_nothing_that_came_after_it() -> None:
    clock = PollClock(INTERVAL_MS)
    clock.let_run(True, 0)
    clock.polled(1_000)
    clock.let_run(False, 3_000)
    clock.let_run(True, 10_000)
    assert clock.idle_ms(10_000) == 2_000
    assert clock.due_ms() == 13_000


def test_the_clock_that_stands_still() -> None:
    clock = PollClock(100)
    assert (clock.due_ms(), clock.idle_ms(5)) == (None, 0)
    clock.let_run(True, 10)
    assert (clock.due_ms(), clock.idle_ms(50)) == (110, 40)
    clock.let_run(False, 50)
    assert (clock.due_ms(), clock.idle_ms(500)) == (None, 40)
    clock.let_run(True, 500)
    assert (clock.due_ms(), clock.idle_ms(530)) == (560, 70)
    clock.polled(540)
    assert (clock.due_ms(), clock.idle_ms(550), clock.expired(639), clock.expired(640)) == (
        640,
        10,
        False,
        True,
    )
    clock.let_run(False, 600)
    clock.polled(700)
    assert clock.idle_ms(800) == 0
    clock.let_run(True, 900)
    assert clock.due_ms() == 1_000


def test_a_member_that_stops_makes_room_and_comes_back(seed: int) -> None:
    """Members and the real group machine: the share of one that stops goes to others, its reason stands in
    the journal, and nothing spins."""
    world = World(seed)
    members = [world.add(max_poll_interval_ms=20_000) for _ in range(3)]
    world.run(60_000)
    world.check_calm()
    stopped = members[0]
    stopped.polls = False
    world.run(60_000)
    assert stopped.machine.state.phase is Phase.RESTING
    world.members.remove(stopped)
    world.check_calm()
    assert any("consumer poll timeout has expired" in reason for reason in stopped.lost)
    if stopped.versions["LeaveGroup"] >= 5:
        assert any("consumer poll timeout has expired" in line for line in world.journal)
    world.members.append(stopped)
    stopped.polls = True
    world.run(60_000)
    world.check_calm()


def test_of_the_time_before_a_restart_nothing_is_counted() -> None:
    clock = PollClock(10_000)
    clock.let_run(True, 0)
    clock.let_run(False, 6_000)
    clock.restart(7_000)
    clock.let_run(True, 8_000)
    assert (clock.idle_ms(9_000), clock.due_ms()) == (1_000, 18_000)
