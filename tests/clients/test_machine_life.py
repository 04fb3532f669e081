"""A member's life by script: rebalances, heartbeats, answers that come too late, leaving."""

from __future__ import annotations

from itertools import pairwise

import pytest

from ringleader.clients.errors import (
    FencedInstanceIdError,
    MembershipError,
)
from ringleader.clients.group.machine.phases import Phase
from ringleader.clients.model import MemberProtocol
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import HeartbeatResponse, JoinGroupResponse
from tests.support.member_script import (
    CancelRevoked,
    ComputeAssignment,
    MemberScript,
    Over,
    TellAssigned,
    TellLost,
    TellRevoked,
)


def test_rebalance_revoke_then_rejoin() -> None:
    """Heartbeats go on while on_revoked holds the rejoin."""
    script = MemberScript().start().settle()
    script.wait(3_000)
    script.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    revoked = script.last_reported(TellRevoked).revoked
    assert (revoked.generation, revoked.assignment) == (1, b"share 1")
    assert revoked.reason == "the group is rebalancing"
    for _ in range(5):
        assert script.wanted == []
        script.wait(3_000)
        script.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    script.revoked()
    join = script.request("JoinGroup")
    assert (join.member_id, join.reason) == ("m-1", "the group is rebalancing")
    script.settle(2)
    assert script.last_reported(TellAssigned).assigned.generation == 2
    assert script.kinds() == ["TellAssigned", "TellRevoked", "TellAssigned"]


@pytest.mark.parametrize("late_ms", [0, 2_000])
def test_the_hold_ends_before_the_coordinator_stops_waiting(late_ms: int) -> None:
    script = MemberScript(rebalance_timeout_ms=20_000).start().settle()
    script.wait(3_000)
    sent_ms = script.now_ms
    script.wait(late_ms)
    script.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    while script.machine.state.phase is Phase.REVOKING:
        script.wait(100)
        if "Heartbeat" in script.wanted:
            script.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    # It may have begun one heartbeat interval earlier, and a tenth (1 s at most) is for getting there.
    assert script.now_ms - sent_ms <= 20_000 - 3_000 - 1_000
    assert [type(action) for action in script.reported[-2:]] == [CancelRevoked, TellLost]
    assert "on_revoked" in script.last_reported(TellLost).lost.reason
    assert script.wanted == ["JoinGroup"]
    script.revoked()  # It ends after all: too late to matter.
    assert script.wanted == ["JoinGroup"]


def test_a_join_is_all_that_was_asked_for_before_it() -> None:
    script = MemberScript().start()
    script.rejoin("news")
    script.settle()
    script.wait(1)
    assert (script.phase(), script.kinds()) == (Phase.STABLE, ["TellAssigned"])


def test_a_rebalance_timeout_shorter_than_the_heartbeat_interval_still_lets_on_revoked_run() -> None:
    script = MemberScript(rebalance_timeout_ms=2_000).start().settle()
    script.wait(3_000)
    script.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    script.wait(499)
    assert script.machine.state.phase is Phase.REVOKING
    script.revoked()
    assert script.kinds() == ["TellAssigned", "TellRevoked"]


def test_removed_while_on_revoked_runs() -> None:
    script = MemberScript().start().settle()
    script.wait(3_000)
    script.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    script.wait(3_000)
    script.beat(ErrorCode.UNKNOWN_MEMBER_ID)
    assert script.kinds()[-2:] == ["CancelRevoked", "TellLost"]
    assert script.request("JoinGroup").member_id == ""


def test_silent_for_longer_than_the_session() -> None:
    script = MemberScript().start().settle()
    script.wait(3_000)
    script.fail("Heartbeat")
    for _ in range(10):
        script.wait(1_000)
        if "FindCoordinator" in script.wanted:
            script.fail("FindCoordinator")
    script.wait(1_500)
    script.find()
    script.beat(ErrorCode.UNKNOWN_MEMBER_ID)
    lost = script.last_reported(TellLost).lost
    assert lost.generation == 1
    assert lost.reason == "removed: silent for 14.5 s, session timeout 10 s"
    assert script.request("JoinGroup").member_id == ""


def test_the_session_goes_on_from_when_a_heartbeat_was_sent() -> None:
    script = MemberScript().start().settle()
    script.wait(3_000)
    script.wait(2_500)
    script.beat()  # the coordinator may have had it 2.5 s ago
    script.wait(7_500)
    script.beat(ErrorCode.UNKNOWN_MEMBER_ID)
    lost = script.last_reported(TellLost).lost
    assert lost.reason == "removed: silent for 10.0 s, session timeout 10 s"


def test_removed_without_having_been_silent() -> None:
    script = MemberScript().start().settle()
    script.wait(3_000)
    script.beat(ErrorCode.UNKNOWN_MEMBER_ID)
    assert "does not know this member id" in script.last_reported(TellLost).lost.reason


def test_illegal_generation_keeps_the_id() -> None:
    script = MemberScript().start().settle(5)
    script.wait(3_000)
    script.beat(ErrorCode.ILLEGAL_GENERATION)
    assert "generation 5 is over" in script.last_reported(TellLost).lost.reason
    assert script.machine.state.generation == -1
    assert script.request("JoinGroup").member_id == "m-1"


@pytest.mark.parametrize("code", [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR])
def test_heartbeats_follow_the_coordinator(code: ErrorCode) -> None:
    """The share stays; only the way to the coordinator is looked for."""
    script = MemberScript().start().settle()
    script.wait(3_000)
    script.beat(code)
    script.wait(200)
    script.find(port=9999)
    assert script.wanted == ["Heartbeat"], "the one that got no answer is repeated at once"
    node = script.sends[0].node
    assert node is not None
    assert node.port == 9999
    script.beat()
    assert script.machine.state.phase is Phase.STABLE
    assert script.kinds() == ["TellAssigned"]


def test_a_restarted_coordinator_costs_no_rebalance() -> None:
    script = MemberScript().start().settle()
    for _ in range(3):
        script.wait(3_000)
        script.fail("Heartbeat")
        script.wait(1_200)
        script.find()
        script.beat()
    assert script.kinds() == ["TellAssigned"]
    assert any("found the coordinator again after" in line for line in script.logged)


def test_fenced_instance_id_ends_the_membership() -> None:
    script = MemberScript(group_instance_id="i").start().settle()
    script.wait(3_000)
    assert script.request("Heartbeat").group_instance_id == "i"
    script.beat(ErrorCode.FENCED_INSTANCE_ID)
    assert script.kinds() == ["TellAssigned", "TellLost", "Over"]
    assert isinstance(script.machine.state.error, FencedInstanceIdError)


def test_a_heartbeat_without_answer_is_repeated_on_a_new_connection_within_the_session() -> None:
    script = MemberScript().start().settle()
    script.wait(3_000)
    assert script.sends[0].timeout_ms == 3_333
    script.wait(20_000)
    assert script.wanted == ["Heartbeat"], "one at a time"


# ---- answers of an earlier life (K6) ----


def test_refusals_of_an_earlier_life_do_not_make_a_later_one_wait() -> None:
    script = MemberScript().start().settle()
    for generation in range(2, 9):
        script.wait(3_000)
        script.beat(ErrorCode.UNKNOWN_MEMBER_ID)
        began_ms = script.now_ms
        script.settle(generation)
        assert script.now_ms == began_ms, "every life begins at once"


def test_a_coordinator_that_takes_every_join_and_no_sync_is_not_hammered() -> None:
    script = MemberScript().start()
    script.find()
    joins = 0
    end_ms = script.now_ms + 10_000
    while script.now_ms < end_ms:
        if "JoinGroup" in script.wanted:
            joins += 1
            script.join(generation_id=joins, leader="other")
            script.sync(ErrorCode.REBALANCE_IN_PROGRESS)
        else:
            script.wait(10)
    assert joins <= 10_000 // 80, "three at once, and then one after each wait of 100 ms"


def test_errors_for_an_old_generation_change_nothing() -> None:
    script = MemberScript().start().settle()
    script.wait(3_000)
    old = script.sends[0]
    script.rejoin()
    script.revoked()
    script.sends.remove(old)
    script.settle(2)

    script.machine.answer(
        old.ticket, HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID), script.now_ms
    )
    script.machine.fail(old.ticket, "closed", script.now_ms)
    for code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID):
        script.machine.offsets_refused("OffsetCommit", code, (1, "m-1"), script.now_ms)
        script.machine.offsets_refused("OffsetCommit", code, (2, "m-0"), script.now_ms)
    script.look()
    assert script.machine.state.phase is Phase.STABLE
    assert script.machine.state.generation == 2


def test_the_end_of_an_old_connection_is_not_the_end_of_the_new_one() -> None:
    script = MemberScript().start().settle()
    found = script.machine.state.link.found
    script.machine.coordinator_lost("commit: reset", found, script.now_ms)
    script.look()
    script.wait(200)
    script.find()
    script.machine.coordinator_lost("another commit: reset", found, script.now_ms)
    assert script.machine.state.link.coordinator is not None


def test_commit_errors_of_the_present_generation_count() -> None:
    script = MemberScript().start().settle()
    script.machine.offsets_refused("OffsetCommit", ErrorCode.ILLEGAL_GENERATION, (1, "m-1"), script.now_ms)
    script.look()
    assert script.kinds() == ["TellAssigned", "TellLost"]
    assert script.wanted == ["JoinGroup"]


def test_a_join_answer_after_leaving_is_ignored() -> None:
    script = MemberScript().start()
    script.find()
    join = script.sends[0]
    script.leave(silently=True)
    script.machine.answer(join.ticket, JoinGroupResponse(member_id="m", leader="m"), script.now_ms)
    assert script.machine.state.phase is Phase.LEFT


# ---- rejoining at will ----


def test_rejoin_asks_for_the_metadata_again() -> None:
    metadata = iter([b"one", b"two", b"three"])
    script = MemberScript(protocols=[MemberProtocol("even", lambda: next(metadata))]).start()
    script.settle()
    script.rejoin("more cores")
    assert script.last_reported(TellRevoked).revoked.reason == "more cores"
    script.revoked()
    join = script.request("JoinGroup")
    assert (join.reason, join.protocols[0].metadata) == ("more cores", b"three")


@pytest.mark.parametrize("at", ["JoinGroup", "SyncGroup"])
def test_rejoin_during_a_rebalance_comes_after_it(at: str) -> None:
    script = MemberScript().start()
    script.find()
    if at == "JoinGroup":
        script.rejoin("news")
    script.join(leader="other")
    if at == "SyncGroup":
        script.rejoin("news")
    assert script.wanted == ["SyncGroup"]
    script.sync()
    assert script.kinds() == ["TellAssigned", "TellRevoked"]
    script.revoked()
    assert script.wanted == ["JoinGroup"]


def test_a_metadata_callback_that_fails_ends_the_membership() -> None:
    def broken() -> bytes:
        raise OSError("no disk")

    script = MemberScript(protocols=[MemberProtocol("even", broken)]).start()
    script.find()
    assert "no disk" in str(script.last_reported(Over).error)


# ---- leaving ----


def test_leave_gives_up_the_share_first() -> None:
    script = MemberScript().start().settle()
    script.leave("x" * 300, timeout_ms=5_000)
    assert script.kinds() == ["TellAssigned", "TellRevoked"]
    assert script.wanted == []
    script.revoked()
    me = script.request("LeaveGroup").members[0]
    assert (me.member_id, me.reason) == ("m-1", "x" * 255)
    assert script.request("LeaveGroup", 2).member_id == "m-1"
    script.left()
    assert script.last_reported(Over).error is None
    assert script.machine.state.phase is Phase.LEFT


def test_leave_does_not_wait_longer_than_told() -> None:
    script = MemberScript().start().settle()
    script.leave(timeout_ms=2_000)
    script.wait(1_499)
    assert script.wanted == []
    script.wait(1)
    assert script.wanted == ["LeaveGroup"]
    assert script.kinds()[-2:] == ["CancelRevoked", "TellLost"]
    script.wait(499)
    assert script.phase() is Phase.LEAVING
    script.wait(1)
    assert script.phase() is Phase.LEFT


def test_leaving_while_the_join_is_parked_closes_the_connection_first() -> None:
    """The coordinator answers one request at a time on a connection."""
    script = MemberScript().start()
    script.find()
    script.join(ErrorCode.MEMBER_ID_REQUIRED, member_id="m-1")
    script.leave()
    assert script.disconnects == 1
    assert script.request("LeaveGroup").members[0].member_id == "m-1"


def test_leaving_without_a_member_id_needs_no_words() -> None:
    script = MemberScript().start()
    script.leave()
    assert script.kinds() == ["Over"]


def test_leaving_before_the_member_id_has_come_waits_for_it() -> None:
    """Otherwise the group would wait for the owner of that id, until a session is over."""
    script = MemberScript().start()
    script.find()
    script.leave()
    assert (script.wanted, script.kinds(), script.disconnects) == (["JoinGroup"], [], 0)
    script.join(ErrorCode.MEMBER_ID_REQUIRED, member_id="m-9")
    assert script.request("LeaveGroup").members[0].member_id == "m-9"
    script.left()
    assert script.kinds() == ["Over"]


@pytest.mark.parametrize("way", ["silence", "connection lost", "refused", "silently"])
def test_leaving_before_the_member_id_has_come_does_not_wait_for_long(way: str) -> None:
    script = MemberScript(group_instance_id="i" if way == "silently" else None).start()
    script.find()
    script.leave(silently=way == "silently")
    if way == "silence":
        script.wait(999)
        assert script.kinds() == []
        script.wait(1)
    elif way == "connection lost":
        script.fail("JoinGroup")
    elif way == "refused":
        script.join(ErrorCode.GROUP_MAX_SIZE_REACHED, member_id="")
    assert script.kinds() == ["Over"]


def test_a_static_member_goes_silently() -> None:
    script = MemberScript(group_instance_id="i").start().settle()
    script.leave(silently=True)
    script.revoked()
    assert script.kinds() == ["TellAssigned", "TellRevoked", "Over"]
    assert script.wanted == []


def test_leave_finds_a_moved_coordinator_within_its_time() -> None:
    script = MemberScript().start().settle()
    script.leave()
    script.revoked()
    script.left(ErrorCode.NOT_COORDINATOR)
    script.wait(200)
    script.find()
    script.left()
    assert script.last_reported(Over).error is None


def test_leave_gives_up_without_an_answer() -> None:
    script = MemberScript(leave_timeout_ms=2_000).start().settle()
    script.leave()
    script.revoked()
    script.wait(2_000)
    assert script.machine.state.phase is Phase.LEFT
    assert any("without an answer" in line for line in script.logged)


def test_leaving_in_a_hurry_waits_less_for_the_answer() -> None:
    script = MemberScript().start().settle()
    script.leave(timeout_ms=0)
    script.wait(0)
    assert script.wanted == ["LeaveGroup"]
    script.wait(1_000)
    assert script.machine.state.phase is Phase.LEFT


def test_handle_multiple_members_leave_group_response() -> None:
    script = MemberScript().start().settle()
    script.leave()
    script.revoked()
    script.left(members=2)
    assert script.machine.state.phase is Phase.LEFT
    assert any("not about this member alone" in line for line in script.logged)


def test_removed_while_leaving_is_left() -> None:
    script = MemberScript().start().settle()
    script.leave(timeout_ms=60_000)
    script.wait(3_000)
    script.beat(ErrorCode.UNKNOWN_MEMBER_ID)
    assert script.machine.state.phase is Phase.LEFT


def test_leave_twice_and_after_the_end() -> None:
    script = MemberScript().start().settle()
    script.leave("one")
    script.leave("two")
    script.revoked()
    assert script.request("LeaveGroup").members[0].reason == "one"
    script.left()
    script.leave("three")
    script.rejoin()
    script.wait(60_000)
    assert script.wanted == []
    assert script.kinds().count("Over") == 1


def test_leave_before_start() -> None:
    script = MemberScript()
    script.leave()
    assert script.kinds() == ["Over"]


def test_start_twice() -> None:
    script = MemberScript().start()
    with pytest.raises(MembershipError, match="started before"):
        script.machine.start(script.now_ms)


def test_a_commit_refused_while_the_join_is_on_its_way_says_nothing_about_the_share() -> None:
    """The rebalance was over for the coordinator, and JoinGroup's answer still on its way."""
    script = MemberScript(given_up=lambda _before, _after: None).start().settle()
    script.rejoin()
    script.machine.offsets_refused("OffsetCommit", ErrorCode.ILLEGAL_GENERATION, (1, "m-1"), script.now_ms)
    script.look()
    assert script.wanted == ["JoinGroup"]
    script.join(generation_id=2, member_id="m-1", leader="other")
    script.sync()
    assert script.kinds() == ["TellAssigned", "TellAssigned"]


def test_a_cooperative_member_asks_soon_whether_another_rebalance_follows() -> None:
    """Else what was given up in the first one has no owner for a heartbeat interval of everybody."""
    script = MemberScript(given_up=lambda _before, _after: None).start().settle()
    times = []
    for _ in range(12):
        while "Heartbeat" not in script.wanted:
            script.wait(1)
        times.append(script.now_ms)
        script.beat()
    gaps = [after - before for before, after in pairwise(times)]
    assert gaps == [20, 40, 80, 160, 320, 640, 1_280, 2_560, 3_000, 3_000, 3_000]
    eager = MemberScript().start().settle()
    eager.wait(2_999)
    assert eager.wanted == []


def test_an_assignment_of_an_overtaken_round_is_not_sent_for_the_present_one() -> None:
    script = MemberScript().start()
    script.find()
    script.join()
    old = script.last_reported(ComputeAssignment)
    script.wait(3_000)
    script.beat(ErrorCode.ILLEGAL_GENERATION)
    script.join(generation_id=2)
    script.machine.computed(old.round, {"m-1": b"old"}, script.now_ms)
    script.machine.compute_failed(old.round, KeyError("old"), script.now_ms)
    script.look()
    assert script.wanted == []
    script.compute({"m-1": b"new"})
    sync = script.request("SyncGroup")
    assert (sync.generation_id, [one.assignment for one in sync.assignments]) == (2, [b"new"])
