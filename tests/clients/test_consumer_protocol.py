"""The member machine of the consumer protocol (KIP-848) by script: each test is one conversation."""

from __future__ import annotations

import pytest

from ringleader.clients.errors import InvalidRegularExpressionError
from ringleader.clients.group.machine.consumer_protocol import ConsumerProtocol
from ringleader.clients.group.machine.phases import Phase
from ringleader.clients.offsets.requests import offset_fetch
from ringleader.clients.offsets.verdicts import Verdict, judge_fetch
from ringleader.protocol.errors import ErrorCode
from tests.support.consumer_protocol_script import (
    INTERVAL_MS,
    ConsumerProtocolScript,
    owned,
    places,
)
from tests.support.member_script import CancelRevoked, TellAssigned, TellLost, TellRevoked


def test_a_member_joins_with_all_it_has_to_say_and_is_assigned_by_name() -> None:
    script = ConsumerProtocolScript(["t", "u"], server_assignor="range", rack="r1").start()
    script.find()
    first = script.heartbeat()
    assert (first.group_id, first.member_id, first.member_epoch) == ("g", "me", 0)
    assert (first.rebalance_timeout_ms, first.server_assignor, first.rack_id) == (300_000, "range", "r1")
    assert first.subscribed_topic_names == ["t", "u"]
    assert first.topic_partitions == []
    assert first.instance_id is None
    script.beaten(3, {"t": [0, 1]})
    request = script.request("Metadata", 12)
    assert [(one.topic_id[:1], one.name) for one in request.topics] == [(b"t", None)]
    assert not request.allow_auto_topic_creation
    assert script.kinds() == []
    script.name("t")
    assigned = script.last_reported(TellAssigned).assigned
    assert (assigned.generation, assigned.member_id, assigned.is_leader) == (3, "me", False)
    assert places(assigned) == [("t", 0), ("t", 1)]
    assert script.machine.state.holds(3)


def test_a_heartbeat_tells_what_is_owned_and_then_only_what_has_changed() -> None:
    script = ConsumerProtocolScript().start()
    script.find()
    script.beaten(1, {"t": [0, 1]})
    script.name("t")
    request = script.heartbeat()
    assert (request.member_epoch, owned(request)) == (1, {"t": [0, 1]})
    assert request.subscribed_topic_names is None
    assert (request.rebalance_timeout_ms, request.server_assignor, request.rack_id) == (-1, None, None)
    script.beaten(1)
    script.calm()
    script.wait(INTERVAL_MS - 1)
    assert script.wanted == []
    script.wait(1)
    assert owned(script.heartbeat()) is None
    assert script.heartbeat().subscribed_topic_names is None
    script.beaten(2)
    assert script.machine.state.generation == 2
    assert script.machine.state.holds(1)
    assert script.kinds() == ["TellAssigned"]


def test_an_expression_is_told_once_and_taken_back_when_it_is_over() -> None:
    script = ConsumerProtocolScript([], regex="t.*").start()
    script.find()
    first = script.heartbeat()
    assert (first.subscribed_topic_names, first.subscribed_topic_regex) == ([], "t.*")
    script.beaten(1, {"t": [0]})
    script.name("t")
    assert script.heartbeat().subscribed_topic_regex is None
    script.beaten(1)
    for names, regex, expected in (([], "u.*", "u.*"), (["t"], None, ""), ([], "t", "t")):
        script.topics, script.regex = names, regex
        script.rejoin("another subscription")
        request = script.heartbeat()
        assert request.subscribed_topic_regex == expected
        assert (request.subscribed_topic_names or []) == names
        script.beaten(1)


def test_an_expression_that_may_be_known_is_taken_back_by_whatever_says_all() -> None:
    """A heartbeat that was lost may have told of it, and so may the former life of a static member."""
    script = ConsumerProtocolScript([], regex="t.*").start()
    script.find()
    script.fail("ConsumerGroupHeartbeat")
    script.topics, script.regex = ["t"], None
    script.wait(1_000)
    script.find()
    assert script.heartbeat().subscribed_topic_regex == ""
    static = ConsumerProtocolScript(group_instance_id="i").start()
    static.find()
    assert static.heartbeat().subscribed_topic_regex == ""
    assert static.heartbeat(0).subscribed_topic_regex is None
    dynamic = ConsumerProtocolScript().start()
    dynamic.find()
    assert dynamic.heartbeat().subscribed_topic_regex is None


def test_a_refused_expression_ends_the_membership() -> None:
    script = ConsumerProtocolScript([], regex="(").start()
    script.find()
    script.beaten(code=ErrorCode.INVALID_REGULAR_EXPRESSION, message="no ) for the (")
    error = script.machine.state.error
    assert isinstance(error, InvalidRegularExpressionError)
    assert error.code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert "SubscriptionPattern '('" in str(error)
    assert str(error).endswith("no ) for the (")


def test_after_news_it_asks_soon_whether_there_is_more() -> None:
    """A partition that others have to give up first is not assigned yet, and nobody owns it until it is."""

    def pace() -> list[int]:
        waits: list[int] = []
        while not waits or waits[-1] < INTERVAL_MS:
            waits.append(script.due_ms() - script.now_ms)
            script.wait(waits[-1])
            script.beaten(2)
        return waits

    script = ConsumerProtocolScript().start()
    script.find()
    script.beaten(1, {"t": [0]})
    script.name("t")
    script.beaten(2)
    after_join = pace()
    assert after_join == [20, 40, 80, 160, 320, 640, 1_280, 2_560, INTERVAL_MS]
    script.wait(INTERVAL_MS)
    script.beaten(2, {"t": [0, 1]})
    script.beaten(2)
    assert pace() == after_join


def test_an_empty_first_assignment_is_one_after_a_heartbeat_interval() -> None:
    """A group that is about to give it something mostly does so within that time."""
    script = ConsumerProtocolScript().start()
    script.find()
    script.beaten(1, {})
    began_ms = script.now_ms
    while script.kinds() == []:
        script.wait(script.due_ms() - script.now_ms)
        script.beaten(1)
    assert INTERVAL_MS <= script.now_ms - began_ms < 2 * INTERVAL_MS
    assert script.assigned() == []


def test_partitions_that_come_a_moment_after_the_join_are_the_first_assignment() -> None:
    script = ConsumerProtocolScript().start()
    script.find()
    script.beaten(1, {})
    script.wait(100)
    script.beaten(2, {"t": [0]})
    script.name("t")
    assert script.kinds() == ["TellAssigned"]
    assert script.assigned() == [("t", 0)]


def test_partitions_that_move_are_revoked_first_with_heartbeats_going_on() -> None:
    script = ConsumerProtocolScript().settled({"t": [0, 1, 2]})
    script.wait(INTERVAL_MS)
    script.beaten(1, {"t": [0]})
    revoked = script.last_reported(TellRevoked).revoked
    assert places(revoked) == [("t", 1), ("t", 2)]
    assert revoked.partial
    assert revoked.generation == 1
    assert script.wanted == []
    script.wait(INTERVAL_MS)
    assert owned(script.heartbeat()) is None  # nothing is given up yet
    script.beaten(1)
    script.revoked()
    assert script.assigned() == [("t", 0)]
    given_up = script.heartbeat()
    assert (given_up.member_epoch, owned(given_up)) == (1, {"t": [0]})
    script.beaten(2)
    assert script.kinds() == ["TellAssigned", "TellRevoked", "TellAssigned"]
    assert script.machine.state.holds(1)
    assert script.machine.state.shrinks == 1


def test_what_was_in_hand_before_a_revocation_is_of_an_earlier_epoch() -> None:
    script = ConsumerProtocolScript().settled({"t": [0, 1]})
    script.wait(INTERVAL_MS)
    script.beaten(2)
    assert script.machine.state.holds(1)
    assert script.machine.state.held is not None
    assert script.machine.state.held.generation == 2
    script.wait(INTERVAL_MS)
    script.beaten(2, {"t": [0]})
    script.revoked()
    assert not script.machine.state.holds(1)
    assert script.machine.state.holds(2)


def test_the_end_of_a_revocation_is_told_right_after_the_heartbeat_that_is_on_its_way() -> None:
    script = ConsumerProtocolScript().settled({"t": [0, 1]})
    script.wait(INTERVAL_MS)
    script.beaten(1, {"t": [0]})
    script.wait(INTERVAL_MS)
    script.revoked()
    assert owned(script.heartbeat()) is None
    script.beaten(1)
    assert owned(script.heartbeat()) == {"t": [0]}


def test_new_partitions_come_after_revoked_ones_go() -> None:
    script = ConsumerProtocolScript().settled({"t": [0]})
    script.wait(INTERVAL_MS)
    script.beaten(2, {"t": [1]})
    assert places(script.last_reported(TellRevoked).revoked) == [("t", 0)]
    assert script.assigned() == [("t", 0)]
    script.revoked()
    assert script.assigned() == [("t", 1)]
    assert owned(script.heartbeat()) == {"t": [1]}
    assert script.kinds() == ["TellAssigned", "TellRevoked", "TellAssigned"]


def test_growth_asks_for_the_names_of_new_topics_only() -> None:
    script = ConsumerProtocolScript(["t", "u"]).settled({"t": [0]})
    script.wait(INTERVAL_MS)
    script.beaten(2, {"t": [0, 1], "u": [0]})
    assert [one.topic_id[:1] for one in script.request("Metadata", 12).topics] == [b"u"]
    assert script.assigned() == [("t", 0), ("t", 1)]  # what has a name does not wait
    script.beaten(2)
    script.name("u")
    assert script.assigned() == [("t", 0), ("t", 1), ("u", 0)]
    assert owned(script.heartbeat()) == {"t": [0, 1], "u": [0]}


def test_names_of_topics_that_are_being_given_up_are_kept() -> None:
    """While its application gives up `t`, the member hears that `v` goes, too, and what the new topic is
    called. It can still say what it has; and `t` is taken again without asking for its name once more."""
    script = ConsumerProtocolScript().settled({"t": [0], "v": [0]})
    script.wait(INTERVAL_MS)
    script.beaten(2, {"u": [0], "v": [0]})
    script.wait(10)
    script.beaten(3, {"u": [0]})
    script.name("u")
    script.revoked()
    assert script.last_reported(TellRevoked).revoked.assignment
    assert places(script.last_reported(TellRevoked).revoked) == [("v", 0)]
    script.wait(10)
    script.beaten(4, {"u": [0], "t": [0], "v": [0]})
    script.revoked()
    script.wait(INTERVAL_MS)
    script.beaten(4)
    assert "Metadata" not in script.wanted
    assert script.assigned() == [("t", 0), ("u", 0), ("v", 0)]


def test_a_topic_without_a_name_waits_and_is_asked_for_again() -> None:
    script = ConsumerProtocolScript().start()
    script.find()
    script.beaten(1, {"t": [0]})
    for wait_ms in (100, 200, 400, 800):
        script.name(unknown=["t"])
        assert "Metadata" not in script.wanted
        script.wait(wait_ms)
    script.fail("Metadata")
    assert script.machine.state.link.coordinator is not None
    script.wait(1_000)
    assert script.logged.count("1 assigned topics have no name yet: they wait") == 1
    script.name("t")
    script.beaten(1)
    assert script.assigned() == [("t", 0)]
    script.wait(20_000)
    assert script.wanted == ["ConsumerGroupHeartbeat"]
    script.beaten(2, {"t": [0], "u": [0]})  # the next one is asked for as often as the first
    for wait_ms in (100, 200):
        script.name(unknown=["u"])
        assert "Metadata" not in script.wanted
        script.wait(wait_ms)
    assert "Metadata" in script.wanted


def test_nothing_is_taken_while_a_heartbeat_may_say_that_it_is_not_here() -> None:
    """The coordinator gives away at once what a member is assigned and says not to own."""
    script = ConsumerProtocolScript().start()
    script.find()
    script.beaten(1, {"t": [0, 1]})
    script.wait(10)
    script.fail("ConsumerGroupHeartbeat")
    script.wait(1_000)
    script.find()
    assert owned(script.heartbeat()) == {}
    script.name("t")
    assert script.kinds() == []
    script.beaten(2, {"t": [1]})  # 0 is another member's by now
    assert script.assigned() == [("t", 1)]
    assert script.kinds() == ["TellAssigned"]


def test_a_topic_that_was_deleted_and_created_again_is_another_one() -> None:
    """Its offsets begin again: the partition of the old one is given up, though the name stays."""
    script = ConsumerProtocolScript().settled({"t": [0]})
    script.wait(INTERVAL_MS)
    other = b"another id of t-"
    rules = script.machine.state.rules
    assert isinstance(rules, ConsumerProtocol)
    rules.known_names[other] = "t"
    script.beaten(2, {other.decode(): [0]})
    assert places(script.last_reported(TellRevoked).revoked) == [("t", 0)]
    script.revoked()
    assert script.assigned() == [("t", 0)]
    assert script.kinds() == ["TellAssigned", "TellRevoked", "TellAssigned"]


def test_after_a_heartbeat_without_an_answer_everything_is_told_again() -> None:
    """The coordinator takes the epoch before only together with what is owned."""
    script = ConsumerProtocolScript().settled({"t": [0]})
    script.wait(INTERVAL_MS)
    script.fail("ConsumerGroupHeartbeat")
    script.wait(1_000)
    script.find()
    again = script.heartbeat()
    assert (again.member_epoch, owned(again)) == (1, {"t": [0]})
    assert (again.subscribed_topic_names, again.rebalance_timeout_ms) == (["t"], 300_000)
    script.beaten(2)
    assert script.kinds() == ["TellAssigned"]


def test_a_join_without_an_answer_is_a_join_again_as_the_same_member() -> None:
    script = ConsumerProtocolScript().start()
    script.find()
    script.fail("ConsumerGroupHeartbeat")
    script.wait(1_000)
    script.find()
    again = script.heartbeat()
    assert (again.member_id, again.member_epoch, again.topic_partitions) == ("me", 0, [])


@pytest.mark.parametrize("code", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE])
def test_a_coordinator_that_has_moved_is_looked_for_and_the_share_stays(code: int) -> None:
    script = ConsumerProtocolScript().settled({"t": [0]})
    script.wait(INTERVAL_MS)
    script.beaten(code=code)
    script.wait(1_000)
    script.find(port=9093)
    assert owned(script.heartbeat()) == {"t": [0]}
    assert script.machine.state.held is not None
    assert script.coordinator().port == 9093


def test_a_loading_coordinator_is_asked_again_later() -> None:
    script = ConsumerProtocolScript().start()
    script.find()
    script.beaten(code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert script.wanted == []
    script.wait(100)
    script.beaten(1, {"t": [0]})
    script.name("t")
    script.beaten(code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    script.wait(100)
    assert owned(script.heartbeat()) == {"t": [0]}


FENCING = [ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_ID_NOT_FOUND]


@pytest.mark.parametrize("code", FENCING)
def test_a_fenced_member_loses_its_share_and_joins_again_with_its_id(code: ErrorCode) -> None:
    script = ConsumerProtocolScript().settled({"t": [0]})
    script.wait(INTERVAL_MS)
    script.beaten(code=code)
    lost = script.last_reported(TellLost).lost
    assert (places(lost), lost.partial) == ([("t", 0)], False)
    assert code.name in lost.reason
    again = script.heartbeat()
    assert (again.member_id, again.member_epoch, again.topic_partitions) == ("me", 0, [])
    assert again.subscribed_topic_names == ["t"]
    assert not script.machine.state.holds(1)
    script.beaten(5, {"t": [0]})
    assert script.assigned() == [("t", 0)]
    assert not script.machine.state.holds(1)
    assert script.machine.state.holds(5)


def test_a_fenced_member_takes_nothing_before_it_is_assigned_something() -> None:
    script = ConsumerProtocolScript().settled({"t": [0]})
    script.wait(INTERVAL_MS)
    script.beaten(code=ErrorCode.FENCED_MEMBER_EPOCH)
    kinds = script.kinds()
    script.beaten(5)
    assert script.kinds() == kinds
    script.wait(10)
    assert owned(script.heartbeat()) in (None, {})
    script.beaten(5, {"t": [1]})
    assert script.assigned() == [("t", 1)]


def test_a_member_that_is_fenced_again_and_again_waits_in_between() -> None:
    script = ConsumerProtocolScript().settled({"t": [0]})
    script.wait(INTERVAL_MS)
    for _ in range(3):
        script.beaten(code=ErrorCode.UNKNOWN_MEMBER_ID)
        assert script.heartbeat().member_epoch == 0
    script.beaten(code=ErrorCode.UNKNOWN_MEMBER_ID)
    assert script.wanted == []
    script.wait(100)
    assert script.heartbeat().member_epoch == 0


def test_a_revocation_under_way_ends_when_the_member_is_fenced() -> None:
    script = ConsumerProtocolScript().settled({"t": [0, 1]})
    script.wait(INTERVAL_MS)
    script.beaten(1, {"t": [0]})
    script.wait(INTERVAL_MS)
    script.beaten(code=ErrorCode.FENCED_MEMBER_EPOCH)
    assert script.kinds()[-3:] == ["TellRevoked", "CancelRevoked", "TellLost"]
    assert places(script.last_reported(TellLost).lost) == [("t", 0), ("t", 1)]
    script.revoked()  # too late
    assert script.heartbeat().member_epoch == 0


def test_a_revocation_that_takes_too_long_goes_on_without_its_end() -> None:
    script = ConsumerProtocolScript(rebalance_timeout_ms=20_000).settled({"t": [0, 1]})
    script.wait(INTERVAL_MS)
    began_ms = script.now_ms
    script.beaten(1, {"t": [0]})
    while script.phase() is Phase.REVOKING:
        script.wait(script.due_ms() - script.now_ms)
        if script.phase() is Phase.REVOKING:
            assert owned(script.heartbeat()) is None
            script.beaten(1)
    assert 18_000 <= script.now_ms - began_ms < 20_000
    lost = script.last_reported(TellLost).lost
    assert (places(lost), lost.partial) == ([("t", 1)], True)
    assert [one for one in script.reported if isinstance(one, CancelRevoked)]
    assert script.assigned() == [("t", 0)]
    assert owned(script.heartbeat()) == {"t": [0]}


def test_other_topics_are_told_at_once() -> None:
    script = ConsumerProtocolScript(["t"]).settled({"t": [0]})
    script.topics = ["t", "u"]
    script.rejoin()
    assert script.heartbeat().subscribed_topic_names == ["t", "u"]
    script.topics = ["u"]
    script.rejoin()
    script.beaten(2)
    assert script.heartbeat().subscribed_topic_names == ["u"]
    script.beaten(3)
    assert script.wanted == []
    assert script.kinds() == ["TellAssigned"]


def test_a_rejoin_asks_at_once_what_is_new_and_soon_again() -> None:
    """The coordinator may hear of new partitions a little later than the member."""
    script = ConsumerProtocolScript(["t"]).settled({"t": [0]})
    script.calm()
    script.rejoin()
    request = script.heartbeat()
    assert (request.member_epoch, request.subscribed_topic_names, owned(request)) == (1, None, None)
    script.beaten(1)
    assert script.due_ms() - script.now_ms == 10
    script.rejoin()
    script.rejoin()
    script.beaten(2, {"t": [0, 1]})
    assert places(script.last_reported(TellAssigned).assigned) == [("t", 0), ("t", 1)]


def test_a_stale_epoch_in_a_commit_brings_a_heartbeat_and_costs_nothing() -> None:
    script = ConsumerProtocolScript().settled({"t": [0]})
    script.machine.offsets_refused("OffsetCommit", ErrorCode.STALE_MEMBER_EPOCH, (1, "me"), script.now_ms)
    script.look()
    assert script.heartbeat().member_epoch == 1
    script.beaten(2)
    assert script.machine.state.holds(1)


def test_offset_fetch_asks_in_the_present_epoch_once_there_is_one() -> None:
    script = ConsumerProtocolScript().start()
    script.find()
    joining = script.machine.state.rules.fetches_offsets_as()
    script.beaten(3, {"t": [0]})
    assert [joining, script.machine.state.rules.fetches_offsets_as()] == [None, (3, "me")]
    body = offset_fetch("g", [("t", 0)], member=(3, "me")).build(9).groups[0]
    assert (body.member_epoch, body.member_id) == (3, "me")
    assert judge_fetch(ErrorCode.STALE_MEMBER_EPOCH, {})[0] is Verdict.MEMBERSHIP


def test_a_commit_of_an_unknown_member_is_the_end_of_the_share() -> None:
    script = ConsumerProtocolScript().settled({"t": [0]})
    script.machine.offsets_refused("OffsetCommit", ErrorCode.UNKNOWN_MEMBER_ID, (0, "me"), script.now_ms)
    assert script.machine.state.held is not None  # of an earlier epoch
    script.machine.offsets_refused("OffsetCommit", ErrorCode.UNKNOWN_MEMBER_ID, (1, "me"), script.now_ms)
    script.look()
    assert script.kinds()[-1] == "TellLost"
    again = script.heartbeat()
    assert (again.member_epoch, again.topic_partitions, again.subscribed_topic_names) == (0, [], ["t"])
