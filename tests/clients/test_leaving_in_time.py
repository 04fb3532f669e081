"""A member that is told to leave is gone in the time that it was given, wherever it stands, though nobody
answers any more: no coordinator, no application."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ringleader.clients.group.machine.phases import Phase
from ringleader.clients.group.subscription import partitions_given_up
from ringleader.clients.model import MemberProtocol
from ringleader.protocol.embedded import Assignment
from ringleader.protocol.errors import ErrorCode
from tests.support.consumer_protocol_script import ConsumerProtocolScript
from tests.support.member_script import MemberScript, Over, PrepareJoin, TellLost, TellRevoked

LEAVE_MS = 2_000
MOVING = [Assignment({"t": [0, 1]}).encode(), Assignment({"t": [0]}).encode()]


def nowhere() -> MemberScript:
    return MemberScript().start()


def joining() -> MemberScript:
    script = MemberScript().start()
    script.find()
    return script


def named() -> MemberScript:
    script = joining()
    script.join(ErrorCode.MEMBER_ID_REQUIRED, member_id="m-1")
    return script


def assigning() -> MemberScript:
    script = named()
    script.join()
    return script


def syncing() -> MemberScript:
    """Its heartbeat of the time in which it computed has no answer yet."""
    script = assigning()
    script.wait(3_000)
    assert script.wanted == ["Heartbeat"]
    script.compute({"m-1": b"all"})
    return script


def stable() -> MemberScript:
    return MemberScript().start().settle()


def beating() -> MemberScript:
    script = stable()
    script.wait(3_000)
    return script


def revoking() -> MemberScript:
    script = beating()
    script.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    return script


def revoking_a_part() -> MemberScript:
    protocols = [MemberProtocol("even", b"me")]
    script = MemberScript(protocols=protocols, given_up=partitions_given_up).start()
    script.find()
    for generation, share in enumerate(MOVING, 1):
        script.join(leader="other", generation_id=generation)
        script.sync(share=share)
        if generation < len(MOVING):
            script.rejoin()
    assert script.phase() is Phase.REVOKING
    return script


def joining_again() -> MemberScript:
    """With its share still in hand."""
    script = MemberScript(given_up=lambda _before, _after: None).start().settle()
    script.rejoin()
    assert script.wanted == ["JoinGroup"]
    return script


def syncing_again() -> MemberScript:
    """The same, with a heartbeat on its way."""
    script = joining_again()
    script.join(generation_id=2)
    script.wait(3_000)
    script.compute({"m-1": b"all"})
    assert script.wanted == ["Heartbeat", "SyncGroup"]
    return script


def preparing() -> MemberScript:
    script = MemberScript()
    script.machine.state.prepares = True
    script.start()
    script.find()
    assert script.last_reported(PrepareJoin)
    return script


def idle() -> MemberScript:
    script = MemberScript(max_poll_interval_ms=10_000).start().settle()
    while script.phase() is not Phase.LEAVING:
        script.wait(1_000)
        if "Heartbeat" in script.wanted:
            script.beat()
    return script


def resting() -> MemberScript:
    script = idle()
    script.left()
    assert script.phase() is Phase.RESTING
    return script


def entering() -> ConsumerProtocolScript:
    script = ConsumerProtocolScript()
    script.start()
    script.find()
    return script


def entered() -> ConsumerProtocolScript:
    return ConsumerProtocolScript().settled({"t": [0, 1]})


def unnamed() -> ConsumerProtocolScript:
    script = entering()
    script.beaten(1, {"t": [0]})
    assert "Metadata" in script.wanted
    return script


def giving_up_a_part() -> ConsumerProtocolScript:
    script = entered()
    script.wait(5_000)
    script.beaten(2, {"t": [0]})
    assert script.phase() is Phase.REVOKING
    return script


def away(begin: Callable[[], MemberScript]) -> MemberScript:
    """From there on without a coordinator."""
    script = begin()
    link = script.machine.state.link
    script.machine.coordinator_lost("the network is gone", link.found, script.now_ms)
    return script.look()


PLACES = [
    nowhere,
    joining,
    named,
    assigning,
    syncing,
    stable,
    beating,
    revoking,
    revoking_a_part,
    joining_again,
    syncing_again,
    preparing,
    idle,
    resting,
    entering,
    entered,
    unnamed,
    giving_up_a_part,
]


@pytest.mark.parametrize("coordinator", ["silent", "away"])
@pytest.mark.parametrize("begin", PLACES)
def test_it_is_gone_in_its_time(begin: Callable[[], MemberScript], coordinator: str) -> None:
    script = begin() if coordinator == "silent" else away(begin)
    held = script.machine.state.held is not None and script.phase() is not Phase.REVOKING
    script.leave(timeout_ms=LEAVE_MS)
    by_ms = script.now_ms + LEAVE_MS
    revokes = [action for action in script.reported if isinstance(action, TellRevoked)]
    if held:
        assert revokes, "the application may end its work"
        assert script.now_ms < revokes[-1].work_until_ms < by_ms
    sends = len(script.sends)
    while script.phase() is not Phase.LEFT and script.now_ms < by_ms:
        script.wait(100)
        if "FindCoordinator" in script.wanted:
            script.fail("FindCoordinator")
    assert script.phase() is Phase.LEFT
    assert script.kinds().count("Over") == 1
    assert script.last_reported(Over).error is None
    assert script.machine.state.held is None
    assert len(script.sends) - sends <= 3, (
        "a heartbeat, the goodbye, and the same at a coordinator found again"
    )
    assert script.machine.next_deadline() is None


@pytest.mark.parametrize("begin", [syncing, syncing_again])
def test_what_it_cut_off_itself_is_no_lost_coordinator(begin: Callable[[], MemberScript]) -> None:
    """LeaveGroup would wait behind the parked SyncGroup: their connection is closed, with the heartbeat."""
    script = begin()
    held = script.machine.state.held is not None
    script.leave()
    assert script.disconnects == 1
    script.fail("Heartbeat")
    if held:
        script.revoked()
    assert script.wanted[-1] == "LeaveGroup"
    script.left()
    assert script.last_reported(Over).error is None


def test_what_a_heartbeat_says_as_it_begins_to_leave_counts() -> None:
    """Its application is told that others may have its share before it works on."""
    script = beating()
    script.leave()
    script.beat(ErrorCode.UNKNOWN_MEMBER_ID)
    assert "does not know this member id" in script.last_reported(TellLost).lost.reason
    assert script.kinds()[-1] == "Over"


def test_the_epoch_that_a_heartbeat_brings_as_it_begins_to_leave_counts() -> None:
    """The coordinator takes the last commits of the present epoch only."""
    script = entered()
    script.wait(5_000)
    script.leave()
    script.beaten(2)
    assert script.machine.state.identity == (2, "me")


@pytest.mark.parametrize("code", [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR])
def test_the_goodbye_is_said_until_it_is_heard(code: ErrorCode) -> None:
    """Else the group waits for the member until its session is over."""
    script = stable()
    script.leave()
    script.revoked()
    for _ in range(3):
        script.left(code)
        assert script.kinds()[-1] != "Over"
        script.wait(1_000)
        if "FindCoordinator" in script.wanted:
            script.find()
        assert script.wanted == ["LeaveGroup"]
    script.left()
    assert script.last_reported(Over).error is None


@pytest.mark.parametrize("code", [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR])
def test_the_goodbye_of_the_consumer_protocol_is_said_until_it_is_heard(code: ErrorCode) -> None:
    script = entered()
    script.leave()
    script.revoked()
    for _ in range(3):
        script.beaten(code=code)
        assert script.kinds()[-1] != "Over"
        script.wait(1_000)
        if "FindCoordinator" in script.wanted:
            script.find()
        assert script.heartbeat().member_epoch == -1
    script.beaten(-1)
    assert script.last_reported(Over).error is None


def test_leaving_gives_a_rebalance_no_more_time() -> None:
    script = MemberScript(rebalance_timeout_ms=20_000).start().settle()
    script.wait(3_000)
    script.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    until_ms = script.machine.state.hold_until_ms
    script.leave(timeout_ms=60_000)
    while script.phase() is Phase.REVOKING:
        script.wait(script.due_ms() - script.now_ms)
        if "Heartbeat" in script.wanted:
            script.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    assert script.now_ms == until_ms
