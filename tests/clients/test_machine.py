"""The member machine by script: each test is one conversation, on a clock of its own."""

from __future__ import annotations

from typing import Any

import pytest

from ringleader.clients.errors import (
    AssignmentFailedError,
    FencedInstanceIdError,
    GroupAuthorizationError,
    GroupMaxSizeReachedError,
    InconsistentGroupProtocolError,
    InvalidGroupIdError,
    InvalidSessionTimeoutError,
    MembershipError,
    MembershipUnsupportedError,
    UnexpectedAnswerError,
    UnsupportedVersionError,
)
from ringleader.clients.group.machine.classic import classic
from ringleader.clients.group.machine.phases import Phase
from ringleader.clients.group.settings import MemberSettings
from ringleader.clients.group.subscription import partitions_given_up
from ringleader.clients.model import MemberInfo, MemberProtocol
from ringleader.protocol.embedded import Assignment
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    DescribeGroupsResponse,
    DescribeGroupsResponseDescribedGroup,
    DescribeGroupsResponseDescribedGroupMember,
)
from tests.support.member_script import (
    ComputeAssignment,
    MemberScript,
    Over,
    TellAssigned,
    TellLost,
    TellRevoked,
)


def test_a_member_finds_joins_leads_syncs_and_beats() -> None:
    script = MemberScript().start()
    assert script.wanted == ["FindCoordinator"]
    assert script.request("FindCoordinator").coordinator_keys == ["g"]
    assert script.request("FindCoordinator", 3).key == "g"
    script.find()
    first = script.request("JoinGroup")
    assert (first.member_id, first.protocol_type, first.session_timeout_ms) == ("", "work", 10_000)
    assert [(p.name, p.metadata) for p in first.protocols] == [("even", b"me")]
    script.join(ErrorCode.MEMBER_ID_REQUIRED, member_id="m-1")
    assert script.request("JoinGroup").member_id == "m-1"
    script.join(members=["m-1", "m-2"])
    lead = script.last_reported(ComputeAssignment)
    assert lead.protocol == "even"
    assert lead.members == [MemberInfo("m-1", None, b""), MemberInfo("m-2", None, b"")]
    script.compute({"m-2": b"all"})
    sync = script.request("SyncGroup")
    assert [(a.member_id, a.assignment) for a in sync.assignments] == [("m-1", b""), ("m-2", b"all")]
    assert (sync.generation_id, sync.protocol_type, sync.protocol_name) == (1, "work", "even")
    script.sync(share=b"")
    assigned = script.last_reported(TellAssigned).assigned
    assert assigned.is_leader
    assert (assigned.generation, assigned.member_id, assigned.assignment) == (1, "m-1", b"")
    assert script.wanted == []
    script.wait(3_000)
    beat = script.request("Heartbeat")
    assert (beat.generation_id, beat.member_id) == (1, "m-1")


def test_join_group_request_with_member_id_required() -> None:
    """An id is kept over a lost connection in join and in sync."""
    script = MemberScript().start()
    script.find()
    script.join(ErrorCode.MEMBER_ID_REQUIRED, member_id="m-7")
    script.fail("JoinGroup")
    assert script.machine.state.phase is Phase.UNJOINED
    script.wait(1_000)
    script.find()
    assert script.request("JoinGroup").member_id == "m-7"
    script.join(member_id="m-7", leader="other")
    script.fail("SyncGroup")
    script.wait(1_000)
    script.find()
    assert script.request("JoinGroup").member_id == "m-7"
    assert script.request("JoinGroup").reason == "SyncGroup got no answer"


@pytest.mark.parametrize(
    ("rebalance_ms", "expected_ms"), [(300_000, 305_000), (1_000, 30_000), (2**31 - 1, 2**31 - 1)]
)
def test_join_group_request_timeout(rebalance_ms: int, expected_ms: int) -> None:
    script = MemberScript(rebalance_timeout_ms=rebalance_ms).start()
    script.find()
    assert script.sends[0].timeout_ms == expected_ms
    script.join(leader="other")
    assert script.sends[0].timeout_ms == expected_ms


def test_coordinator_discovery_exponential_backoff() -> None:
    script = MemberScript().start()
    waits = []
    for _ in range(6):
        script.find(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        began_ms = script.now_ms
        script.wait(script.due_ms() - began_ms)
        waits.append(script.now_ms - began_ms)
    assert waits == [100, 200, 400, 800, 1_000, 1_000]
    assert "names no coordinator" in script.machine.state.link.trouble
    script.find()
    script.join()
    assert script.machine.state.link.trouble == ""


def test_no_broker_answers_is_retried_for_ever() -> None:
    script = MemberScript().start()
    for _ in range(50):
        script.fail("FindCoordinator", "refused")
        script.wait(1_500)
    assert script.wanted == ["FindCoordinator"]
    assert "refused" in script.machine.state.link.trouble


def test_jitter_comes_from_outside() -> None:
    def first_wait(chance: float) -> int:
        script = MemberScript()
        script.machine.state.link._backoff._random = lambda: chance
        script.start()
        script.find(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        return script.due_ms() - script.now_ms

    assert [first_wait(0.0), first_wait(0.5), first_wait(1.0)] == [80, 100, 120]


FATAL = {
    ErrorCode.INVALID_SESSION_TIMEOUT: InvalidSessionTimeoutError,
    ErrorCode.INVALID_GROUP_ID: InvalidGroupIdError,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: GroupAuthorizationError,
    ErrorCode.GROUP_MAX_SIZE_REACHED: GroupMaxSizeReachedError,
    ErrorCode.FENCED_INSTANCE_ID: FencedInstanceIdError,
    ErrorCode.UNSUPPORTED_VERSION: MembershipUnsupportedError,
    ErrorCode.UNKNOWN_SERVER_ERROR: UnexpectedAnswerError,
    9999: UnexpectedAnswerError,
}


@pytest.mark.parametrize(("code", "kind"), FATAL.items(), ids=lambda value: getattr(value, "name", ""))
def test_join_answers_that_end_the_membership(code: int, kind: type[MembershipError]) -> None:
    script = MemberScript().start()
    script.find()
    script.join(code)
    error = script.last_reported(Over).error
    assert type(error) is kind
    assert error.code == code
    assert "group 'g'" in str(error)
    assert script.machine.state.phase is Phase.FAILED
    script.wait(60_000)
    assert script.wanted == []


def described(protocol_type: str = "work", protocol: str = "odd", clients: int = 1) -> DescribeGroupsResponse:
    members = [
        DescribeGroupsResponseDescribedGroupMember(client_id=f"c{n}", client_host="/h")
        for n in range(clients)
    ]
    group = DescribeGroupsResponseDescribedGroup(
        group_id="g", protocol_type=protocol_type, protocol_data=protocol, members=members
    )
    return DescribeGroupsResponse(groups=[group])


@pytest.mark.parametrize(
    ("settings", "group", "sentence"),
    [
        (
            {},
            described(),
            "group 'g' uses odd (client c0 at h); this member offers even: pass protocols=['odd'] with what "
            "all of them offer",
        ),
        (
            {},
            described(protocol="", clients=5),
            "group 'g' knows none of them (clients c0 at h, c1 at h, c2 at h and 2 more); this member offers "
            "even: pass protocols=['...'] with what all of them offer",
        ),
        (
            {},
            described("connect"),
            "group 'g' is a group of type 'connect', and this member's type is 'work': choose another group "
            "id",
        ),
        (
            {"protocol_type": "consumer"},
            described("consumer", "range"),
            "group 'g' uses range (client c0 at h); this member offers even: pass assignors=['range'] with "
            "what all of them offer",
        ),
        (
            {"protocol_type": "consumer"},
            described("consumer", "theirs"),
            "group 'g' uses theirs (client c0 at h); this member offers even: there is no assignor 'theirs' "
            "here: configure one of even in the others",
        ),
        (
            {},
            described(clients=0),
            "group 'g': its members have another protocol type, or no protocol in common with this one "
            "(INCONSISTENT_GROUP_PROTOCOL to JoinGroup)",
        ),
    ],
)
def test_a_group_with_other_protocols_is_looked_at(
    settings: dict[str, Any], group: DescribeGroupsResponse, sentence: str
) -> None:
    script = MemberScript(**settings).start()
    script.find()
    script.join(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    assert script.request("DescribeGroups").groups == ["g"]
    script.answer("DescribeGroups", group)
    error = script.last_reported(Over).error
    assert (type(error), str(error)) == (InconsistentGroupProtocolError, sentence)
    assert error.code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_group_that_cannot_be_looked_at() -> None:
    for end in ("fail", "leave"):
        script = MemberScript().start()
        script.find()
        script.join(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
        script.fail("DescribeGroups") if end == "fail" else script.leave()
        error = script.last_reported(Over).error
        assert (type(error) is InconsistentGroupProtocolError) == (end == "fail")
        script.wait(60_000)
        assert script.machine.state.phase is (Phase.FAILED if end == "fail" else Phase.LEFT)


def cooperative_script() -> MemberScript:
    """It holds partitions 0 to 3 of a cooperative generation, and joins again."""
    protocols = [MemberProtocol("cooperative-sticky"), MemberProtocol("range", eager=True)]
    script = MemberScript(protocols=protocols, given_up=partitions_given_up).start()
    script.find()
    follow(script, "cooperative-sticky", [0, 1, 2, 3], generation_id=1)
    script.wait(script.machine.state.settings.heartbeat_interval_ms)
    script.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    script.reported.clear()
    return script


def follow(script: MemberScript, protocol: str, partitions: list[int], generation_id: int = 2) -> None:
    script.join(protocol_name=protocol, leader="other", member_id="m-1", generation_id=generation_id)
    script.sync(share=Assignment({"t": partitions}).encode(), protocol_name=protocol)


def test_what_an_eager_leader_took_is_lost() -> None:
    """It cannot be asked: others may have begun. The rest goes on, and is given up at the next rebalance."""
    script = cooperative_script()
    follow(script, "range", [2, 3, 4])
    lost, assigned = script.last_reported(TellLost).lost, script.last_reported(TellAssigned).assigned
    assert script.kinds() == ["TellLost", "TellAssigned"]
    assert (lost.partial, Assignment.decode(lost.assignment).partitions) == (True, {"t": [0, 1]})
    assert "the group has gone over to range, which does not ask" in lost.reason
    assert Assignment.decode(assigned.assignment).partitions == {"t": [2, 3, 4]}
    script.rejoin()
    revoked = script.last_reported(TellRevoked).revoked
    assert (revoked.partial, revoked.assignment) == (False, assigned.assignment)


def test_what_an_eager_leader_leaves_goes_on() -> None:
    script = cooperative_script()
    follow(script, "range", [0, 1, 2, 3])
    assert script.kinds() == ["TellAssigned"]


def test_a_cooperative_leader_asks() -> None:
    script = cooperative_script()
    follow(script, "cooperative-sticky", [2, 3])
    revoked = script.last_reported(TellRevoked).revoked
    assert (revoked.partial, Assignment.decode(revoked.assignment).partitions) == (True, {"t": [0, 1]})


@pytest.mark.parametrize("code", [ErrorCode.GROUP_AUTHORIZATION_FAILED, ErrorCode.INVALID_GROUP_ID])
def test_find_coordinator_answers_that_end_the_membership(code: ErrorCode) -> None:
    script = MemberScript().start()
    script.find(code)
    assert type(script.last_reported(Over).error) is FATAL[code]


def test_an_impossible_request_ends_the_membership() -> None:
    script = MemberScript(group_instance_id="i").start()
    script.find()
    error = UnsupportedVersionError("JoinGroup v4 cannot say group_instance_id", 35)
    script.machine.refuse(script.sends[0].ticket, error, script.now_ms)
    script.look()
    over = script.last_reported(Over).error
    assert isinstance(over, MembershipUnsupportedError)
    assert "group_instance_id" in str(over)


@pytest.mark.parametrize(
    "fields",
    [{"protocol_type": "consumer"}, {"protocol_name": "odd"}, {"protocol_name": None}, {"protocol_name": ""}],
)
def test_join_group_protocol_type_and_name(fields: dict[str, Any]) -> None:
    """KIP-559: what the group settled on has to be what this member offered."""
    script = MemberScript().start()
    script.find()
    script.join(**fields)
    assert isinstance(script.last_reported(Over).error, InconsistentGroupProtocolError)


@pytest.mark.parametrize("fields", [{"protocol_type": "consumer"}, {"protocol_name": "odd"}])
def test_sync_group_protocol_type_and_name(fields: dict[str, Any]) -> None:
    script = MemberScript().start()
    script.find()
    script.join(leader="other")
    script.sync(**fields)
    assert isinstance(script.last_reported(Over).error, InconsistentGroupProtocolError)


def test_old_brokers_leave_out_the_protocol_type() -> None:
    script = MemberScript().start()
    script.find()
    script.join(leader="other", protocol_type=None)
    script.sync(protocol_type=None, protocol_name=None)
    assert script.kinds() == ["TellAssigned"]


def test_skip_assignment_leads_without_assigning() -> None:
    """KIP-814: a static leader that came back."""
    script = MemberScript().start()
    script.find()
    script.join(skip_assignment=True, members=["m-1", "m-2"])
    assert script.request("SyncGroup").assignments == []
    script.sync()
    assert script.last_reported(TellAssigned).assigned.is_leader


@pytest.mark.parametrize(
    ("code", "member_id"),
    [
        (ErrorCode.UNKNOWN_MEMBER_ID, ""),
        (ErrorCode.ILLEGAL_GENERATION, "m-1"),
        (ErrorCode.REBALANCE_IN_PROGRESS, "m-1"),
    ],
)
def test_sync_answers_that_lead_to_a_rejoin(code: ErrorCode, member_id: str) -> None:
    script = MemberScript().start()
    script.find()
    script.join(leader="other")
    script.sync(code)
    assert script.request("JoinGroup").member_id == member_id
    assert script.request("JoinGroup").reason == f"SyncGroup was answered {code.name}"
    assert script.kinds() == []


@pytest.mark.parametrize("code", [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR])
def test_sync_answers_that_lead_to_another_coordinator(code: ErrorCode) -> None:
    script = MemberScript().start()
    script.find()
    script.join(leader="other")
    script.sync(code)
    assert script.machine.state.link.coordinator is None
    script.wait(200)
    script.find(port=9999)
    assert script.coordinator().port == 9999
    assert script.request("JoinGroup").member_id == "m-1"


def test_unexpected_error_on_sync_group() -> None:
    script = MemberScript().start()
    script.find()
    script.join(leader="other")
    script.sync(ErrorCode.UNKNOWN_SERVER_ERROR)
    assert isinstance(script.last_reported(Over).error, UnexpectedAnswerError)


def test_a_loading_coordinator_is_asked_again() -> None:
    script = MemberScript().start()
    script.find()
    script.join(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert script.wanted == []
    assert script.machine.state.link.coordinator is not None
    script.wait(150)
    assert script.wanted == ["JoinGroup"]


def test_a_coordinator_that_keeps_refusing_is_not_hammered() -> None:
    script = MemberScript().start()
    script.find()
    for _ in range(3):
        script.join(ErrorCode.UNKNOWN_MEMBER_ID)
        assert script.wanted == ["JoinGroup"]
    script.join(ErrorCode.UNKNOWN_MEMBER_ID)
    assert script.wanted == []
    script.wait(150)
    assert script.wanted == ["JoinGroup"]


def test_heartbeat_sent_when_completing_rebalance() -> None:
    """While the leader computes, its session goes on; REBALANCE_IN_PROGRESS is not acted upon then."""
    script = MemberScript().start()
    script.find()
    script.join()
    script.wait(3_000)
    script.beat(ErrorCode.REBALANCE_IN_PROGRESS)
    assert script.machine.state.phase is Phase.ASSIGNING
    script.wait(3_000)
    script.beat()
    script.compute({"m-1": b"x"})
    assert script.wanted == ["SyncGroup"]
    script.wait(60_000)
    assert script.wanted == ["SyncGroup"], "no heartbeat waits behind a parked request"


# ---- leading ----


def test_compute_failed_leaves_the_group_to_another_leader() -> None:
    script = MemberScript().start()
    script.find()
    script.join()
    script.machine.compute_failed(script.last_reported(ComputeAssignment).round, KeyError("x"), script.now_ms)
    script.look()
    assert script.request("LeaveGroup").members[0].reason == "its assign callback failed"
    script.left()
    error = script.last_reported(Over).error
    assert isinstance(error, AssignmentFailedError)
    assert isinstance(error.__cause__, KeyError)


def test_shares_for_strangers_are_refused() -> None:
    script = MemberScript().start()
    script.find()
    script.join()
    script.compute({"m-1": b"", "m-99": b""})
    script.left()
    assert "m-99" in str(script.last_reported(Over).error)


def test_an_assignment_of_an_overtaken_round_is_dropped() -> None:
    script = MemberScript().start()
    script.find()
    script.join()
    old = script.last_reported(ComputeAssignment)
    script.wait(3_000)
    script.beat(ErrorCode.ILLEGAL_GENERATION)
    script.machine.computed(old.round, {"m-1": b"old"}, script.now_ms)
    script.machine.compute_failed(old.round, KeyError("old"), script.now_ms)
    script.look()
    assert script.wanted == ["JoinGroup"]
    assert script.machine.state.error is None


def test_a_leader_without_coordinator_syncs_when_it_is_found_again() -> None:
    script = MemberScript().start()
    script.find()
    script.join()
    script.wait(3_000)
    script.fail("Heartbeat")
    script.compute({"m-1": b"x"})
    script.wait(500)
    script.find()
    assert script.wanted == ["SyncGroup"]


# ---- settings ----


@pytest.mark.parametrize(
    "wrong",
    [
        {"group_id": ""},
        {"protocol_type": ""},
        {"group_instance_id": ""},
        {"group_instance_id": "x" * 250},
        {"heartbeat_interval_ms": 10_000},
        {"heartbeat_interval_ms": 0},
        {"rebalance_timeout_ms": 0},
    ],
)
def test_settings_that_cannot_work(wrong: dict[str, Any]) -> None:
    given: dict[str, Any] = {"group_id": "g", "session_timeout_ms": 10_000}
    with pytest.raises(ValueError, match=r"group_id|protocol_type|instance|interval|rebalance"):
        MemberSettings(**(given | wrong))


@pytest.mark.parametrize("protocols", [[], [MemberProtocol("a"), MemberProtocol("a", b"x")]])
def test_protocols_that_cannot_work(protocols: list[MemberProtocol]) -> None:
    with pytest.raises(ValueError, match="protocol"):
        classic(MemberSettings(group_id="g"), protocols, lambda: 0.5)
