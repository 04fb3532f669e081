"""How a member of the consumer protocol (KIP-848) ends, by script: errors without a cure, leaving, and the
end of its time."""

from __future__ import annotations

import pytest

from ringleader.clients.errors import (
    FencedInstanceIdError,
    GroupAuthorizationError,
    GroupMaxSizeReachedError,
    InconsistentGroupProtocolError,
    MembershipError,
    MembershipUnsupportedError,
    UnexpectedAnswerError,
    UnreleasedInstanceIdError,
    UnsupportedVersionError,
)
from ringleader.clients.group.machine.phases import Phase
from ringleader.protocol.errors import ErrorCode
from tests.support.consumer_protocol_script import (
    INTERVAL_MS,
    ConsumerProtocolScript,
    owned,
    places,
)
from tests.support.member_script import Over, TellLost, TellRevoked

FATAL = {
    ErrorCode.GROUP_AUTHORIZATION_FAILED: GroupAuthorizationError,
    ErrorCode.INVALID_REQUEST: UnexpectedAnswerError,
    ErrorCode.GROUP_MAX_SIZE_REACHED: GroupMaxSizeReachedError,
    ErrorCode.UNSUPPORTED_ASSIGNOR: MembershipUnsupportedError,
    ErrorCode.UNSUPPORTED_VERSION: MembershipUnsupportedError,
    ErrorCode.UNRELEASED_INSTANCE_ID: UnreleasedInstanceIdError,
    ErrorCode.FENCED_INSTANCE_ID: FencedInstanceIdError,
    ErrorCode.GROUP_ID_NOT_FOUND: InconsistentGroupProtocolError,
    ErrorCode.INCONSISTENT_GROUP_PROTOCOL: InconsistentGroupProtocolError,
}


@pytest.mark.parametrize(("code", "kind"), FATAL.items(), ids=lambda value: getattr(value, "name", ""))
def test_answers_that_end_the_membership(code: ErrorCode, kind: type[MembershipError]) -> None:
    script = ConsumerProtocolScript().start()
    script.find()
    script.beaten(code=code, message="as the broker says it")
    error = script.last_reported(Over).error
    assert type(error) is kind
    assert error.code == code
    assert "group 'g'" in str(error)
    assert "as the broker says it" in str(error)
    if code in (ErrorCode.UNSUPPORTED_VERSION, ErrorCode.GROUP_ID_NOT_FOUND):
        assert 'group_protocol="classic"' in str(error)
    assert script.machine.next_deadline() is None


def test_a_broker_without_the_protocol() -> None:
    script = ConsumerProtocolScript().start()
    script.find()
    why = UnsupportedVersionError("127.0.0.1:9092 does not serve ConsumerGroupHeartbeat")
    script.machine.refuse(script.sends[0].ticket, why, script.now_ms)
    script.look()
    error = script.last_reported(Over).error
    assert type(error) is MembershipUnsupportedError
    assert 'use group_protocol="classic"' in str(error)
    assert "does not serve ConsumerGroupHeartbeat" in str(error)


def test_topics_without_the_right_to_see_them_are_told_and_tried_again() -> None:
    script = ConsumerProtocolScript().start()
    script.find()
    for _ in range(4):
        script.beaten(code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, message="t")
        assert "TOPIC_AUTHORIZATION_FAILED (t)" in script.machine.state.link.trouble
        assert script.wanted == []
        script.wait(1_500)
    assert len([one for one in script.logged if "TOPIC_AUTHORIZATION_FAILED" in one]) == 1
    script.beaten(1, {})
    assert script.machine.state.link.trouble == ""


# ---- leaving ----


def test_a_member_gives_up_its_share_and_leaves() -> None:
    script = ConsumerProtocolScript().settled({"t": [0]})
    script.leave("done")
    revoked = script.last_reported(TellRevoked).revoked
    assert (places(revoked), revoked.partial) == ([("t", 0)], False)
    assert script.wanted == []
    script.revoked()
    last = script.heartbeat()
    assert (last.member_id, last.member_epoch, last.topic_partitions) == ("me", -1, None)
    script.beaten()
    assert script.last_reported(Over).error is None
    assert script.phase() is Phase.LEFT
    assert script.machine.next_deadline() is None


def test_leaving_in_the_middle_of_a_revocation_gives_up_the_rest_too() -> None:
    script = ConsumerProtocolScript().settled({"t": [0, 1]})
    script.wait(INTERVAL_MS)
    script.beaten(1, {"t": [0]})
    script.leave()
    script.revoked()
    assert places(script.last_reported(TellRevoked).revoked) == [("t", 0)]
    assert owned(script.heartbeat()) == {"t": [0]}  # others need not wait for the rest
    script.beaten(2)
    script.revoked()
    assert script.heartbeat().member_epoch == -1


def test_a_member_whose_join_is_on_its_way_leaves_behind_it() -> None:
    script = ConsumerProtocolScript().start()
    script.find()
    script.leave()
    assert script.disconnects == 0
    assert [script._find("ConsumerGroupHeartbeat"), script.phase()] == [script.sends[0], Phase.LEAVING]
    script.sends.pop(0)
    assert script.heartbeat().member_epoch == -1
    script.beaten(code=ErrorCode.UNKNOWN_MEMBER_ID)
    assert script.phase() is Phase.LEFT


def test_what_was_asked_before_leaving_does_not_matter_any_more() -> None:
    script = ConsumerProtocolScript().start()
    script.find()
    script.leave()
    script.beaten(code=ErrorCode.GROUP_MAX_SIZE_REACHED)
    assert script.heartbeat().member_epoch == -1
    script.beaten(code=ErrorCode.UNKNOWN_MEMBER_ID)
    assert script.last_reported(Over).error is None


def test_a_member_that_was_removed_has_nothing_to_leave() -> None:
    script = ConsumerProtocolScript().settled({"t": [0]})
    script.wait(INTERVAL_MS)
    for _ in range(4):
        script.beaten(code=ErrorCode.UNKNOWN_MEMBER_ID)
    script.leave()
    assert script.wanted == []
    assert script.phase() is Phase.LEFT


def test_a_member_that_never_asked_to_join_just_ends() -> None:
    script = ConsumerProtocolScript().start()
    script.leave()
    assert script.phase() is Phase.LEFT


def test_leaving_finds_the_coordinator_again_and_gives_up_in_time() -> None:
    script = ConsumerProtocolScript().settled({"t": [0]})
    script.leave(timeout_ms=5_000)
    script.revoked()
    script.beaten(code=ErrorCode.NOT_COORDINATOR)
    script.wait(100)
    script.find()
    assert script.heartbeat().member_epoch == -1
    script.beaten(code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    script.wait(1_000)
    assert script.heartbeat().member_epoch == -1
    script.wait(5_000)
    assert script.phase() is Phase.LEFT


@pytest.mark.parametrize(("silently", "epoch"), [(True, -2), (False, -1)])
def test_a_static_member_leaves_for_good_or_to_be_back(silently: bool, epoch: int) -> None:
    script = ConsumerProtocolScript(group_instance_id="i").settled({"t": [0]})
    script.wait(INTERVAL_MS)
    assert script.heartbeat().instance_id == "i"
    script.beaten()
    script.leave(silently=silently)
    script.revoked()
    assert (script.heartbeat().member_epoch, script.heartbeat().instance_id) == (epoch, "i")
    script.beaten()
    assert script.phase() is Phase.LEFT


@pytest.mark.parametrize(("instance", "epoch"), [(None, -1), ("i", -2)])
def test_no_progress_leaves_and_progress_joins_again(instance: str | None, epoch: int) -> None:
    script = ConsumerProtocolScript(max_poll_interval_ms=22_000, group_instance_id=instance)
    script.settled({"t": [0]})
    while not script.machine.state.rest_reason:
        script.wait(script.due_ms() - script.now_ms)
        if not script.machine.state.rest_reason:
            script.beaten()
    assert "consumer poll timeout has expired" in script.last_reported(TellLost).lost.reason
    assert script.heartbeat().member_epoch == epoch
    script.beaten()
    assert script.phase() is Phase.RESTING
    assert script.machine.next_deadline() is None
    script.polled()
    assert (script.heartbeat().member_epoch, script.heartbeat().member_id) == (0, "me")


def test_the_time_to_give_up_runs_from_the_request_whose_answer_is_late() -> None:
    """The coordinator's own time runs since it answered: nobody knows when that was, but it was later."""
    script = ConsumerProtocolScript(rebalance_timeout_ms=20_000).settled({"t": [0, 1]})
    script.wait(INTERVAL_MS)
    sent_ms = script.now_ms
    script.wait(5_000)
    script.beaten(1, {"t": [0]})
    while script.phase() is Phase.REVOKING:
        script.wait(script.due_ms() - script.now_ms)
        if script.phase() is Phase.REVOKING:
            script.beaten(1)
    assert 18_000 <= script.now_ms - sent_ms < 20_000


def test_the_session_goes_on_from_when_a_heartbeat_was_sent_though_its_answer_is_late() -> None:
    script = ConsumerProtocolScript().settled({"t": [0]})
    script.wait(INTERVAL_MS)
    script.wait(2_000)
    script.beaten()
    script.wait(INTERVAL_MS)
    script.beaten(code=ErrorCode.FENCED_MEMBER_EPOCH)
    seconds = (2_000 + INTERVAL_MS) / 1_000
    assert f"{seconds:.1f} s after the last contact" in script.last_reported(TellLost).lost.reason
