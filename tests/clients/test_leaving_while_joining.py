"""A cooperative member that leaves while it joins again: its partitions stay its own while it works."""

from __future__ import annotations

import pytest

from ringleader.clients.group.machine.phases import Phase
from ringleader.clients.group.subscription import partitions_given_up
from ringleader.clients.model import MemberProtocol
from ringleader.protocol.embedded import Assignment
from ringleader.protocol.errors import ErrorCode
from tests.support.member_script import MemberScript, Over, TellLost, TellRevoked

SHARE = Assignment({"t": [0, 1]}).encode()
COOPERATIVE, EAGER = "cooperative-sticky", "range"


def joining_again() -> MemberScript:
    """It holds a share of generation 14, and joined 15: that is superseded before it has its share of it. Its
    JoinGroup for generation 16 is parked."""
    protocols = [MemberProtocol(COOPERATIVE), MemberProtocol(EAGER, eager=True)]
    script = MemberScript(protocols=protocols, given_up=partitions_given_up).start()
    script.find()
    script.join(ErrorCode.MEMBER_ID_REQUIRED, member_id="m-1")
    script.join(protocol_name=COOPERATIVE, leader="other", generation_id=14)
    script.sync(share=SHARE, protocol_name=COOPERATIVE)
    script.rejoin()
    script.join(protocol_name=COOPERATIVE, leader="other", generation_id=15)
    script.sync(ErrorCode.REBALANCE_IN_PROGRESS)
    assert (script.wanted, script.machine.state.generation) == (["JoinGroup"], 15)
    script.reported.clear()
    return script


def test_work_in_hand_ends_though_two_generations_are_superseded() -> None:
    """The coordinator counts a JoinGroup whose connection was cut: heartbeats as of 15 would be answered
    ILLEGAL_GENERATION, and the member would leave at once, its application still at work."""
    script = joining_again()
    script.leave(timeout_ms=30_000)
    assert script.last_reported(TellRevoked).revoked.assignment == SHARE
    script.wait(5_000)
    assert (script.wanted, script.disconnects) == (["JoinGroup"], 0), "a heartbeat would wait behind it"
    script.join(protocol_name=COOPERATIVE, leader="other", generation_id=16)
    script.wait(script.machine.state.settings.heartbeat_interval_ms)
    assert script.wanted == ["Heartbeat"], "it gives its share up: it asks for none"
    assert script.request("Heartbeat").generation_id == 16
    script.beat()
    assert script.kinds() == ["TellRevoked"]
    script.revoked()
    assert script.request("LeaveGroup").members[0].member_id == "m-1"
    script.left()
    assert script.kinds() == ["TellRevoked", "Over"]
    assert script.last_reported(Over).error is None


def test_work_that_ends_first_does_not_wait_for_the_join() -> None:
    script = joining_again()
    script.leave()
    script.revoked()
    assert script.disconnects == 1, "LeaveGroup would wait behind the parked JoinGroup"
    assert script.wanted[-1] == "LeaveGroup"
    script.join(protocol_name=COOPERATIVE, leader="other", generation_id=16)
    script.left()
    assert (script.phase(), script.kinds()) == (Phase.LEFT, ["TellRevoked", "Over"])


def test_the_bound_for_work_in_hand_holds_while_the_join_is_parked() -> None:
    script = joining_again()
    script.leave(timeout_ms=4_000)
    script.wait(3_000)
    assert "did not end in time" in script.last_reported(TellLost).lost.reason
    assert script.disconnects == 1
    assert script.wanted[-1] == "LeaveGroup"


def test_a_join_without_an_answer_ends_no_work() -> None:
    script = joining_again()
    script.leave(timeout_ms=30_000)
    script.fail("JoinGroup")
    assert script.phase() is Phase.REVOKING
    script.wait(1_000)
    script.find()
    assert script.wanted == ["Heartbeat"]
    assert script.kinds() == ["TellRevoked"]


@pytest.mark.parametrize("code", [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.REBALANCE_IN_PROGRESS])
def test_a_refused_join_ends_no_work(code: ErrorCode) -> None:
    script = joining_again()
    script.leave(timeout_ms=30_000)
    script.join(code)
    script.wait(5_000)
    assert (script.phase(), script.wanted, script.kinds()) == (
        Phase.REVOKING,
        ["Heartbeat"],
        ["TellRevoked"],
    )


def test_a_removed_member_is_told_that_others_may_have_its_share() -> None:
    script = joining_again()
    script.leave(timeout_ms=30_000)
    script.join(ErrorCode.UNKNOWN_MEMBER_ID)
    assert script.kinds()[:3] == ["TellRevoked", "CancelRevoked", "TellLost"]


def test_a_group_that_goes_over_to_an_eager_assignor_takes_the_share_without_asking() -> None:
    script = joining_again()
    script.leave(timeout_ms=30_000)
    script.join(protocol_name=EAGER, leader="other", generation_id=16)
    assert f"gone over to {EAGER}" in script.last_reported(TellLost).lost.reason
    assert script.wanted == ["LeaveGroup"]


def test_a_commit_refused_while_the_answer_is_on_its_way_says_nothing_about_the_share() -> None:
    script = joining_again()
    script.leave(timeout_ms=30_000)
    script.machine.offsets_refused("OffsetCommit", ErrorCode.ILLEGAL_GENERATION, (15, "m-1"), script.now_ms)
    script.look()
    assert (script.wanted, script.kinds()) == (["JoinGroup"], ["TellRevoked"])
    assert script.machine.state.enters, "what is committed meanwhile goes over another connection"
