"""A member's link to its coordinator: what it remembers of failures and answers."""

from __future__ import annotations

from ringleader.clients.group.machine import holding
from ringleader.clients.group.machine.actions import Action, Say
from ringleader.clients.group.machine.link import Link
from ringleader.clients.group.settings import MemberSettings
from ringleader.clients.model import Node
from ringleader.protocol.errors import ErrorCode
from tests.support.member_script import MemberScript


def link(actions: list[Action]) -> Link:
    settings = MemberSettings(group_id="g", protocol_type="work", session_timeout_ms=10_000)
    return Link(settings, lambda: 0.5, actions)


def test_a_coordinator_that_did_its_work_has_no_failures_to_its_account() -> None:
    one = link([])
    one.retry_later("away", 0)
    first_ms = one.not_before_ms
    one.retry_later("away", 0)
    assert one.not_before_ms > first_ms
    one.well()
    assert (one.not_before_ms, one.trouble) == (0, "")
    one.retry_later("away", 0)
    assert one.not_before_ms == first_ms


def test_how_long_there_was_no_coordinator_is_said_when_it_was_lost() -> None:
    actions, node = list[Action](), Node(1, "h", 9092)
    one = link(actions)
    one.arrived(node, 0)
    one.lost("it hung up", one.found, 1_000)
    one.arrived(node, 3_000)
    one.arrived(node, 9_000)
    found = [action.text for action in actions if isinstance(action, Say) and "found" in action.text]
    assert ["again after 2.0 s" in text for text in found] == [False, True, False]
    assert "again" not in found[-1]


def test_an_answer_to_an_older_request_takes_nothing_from_the_session() -> None:
    state = MemberScript().start().settle().machine.state
    state.contact(5_000)
    state.contact(3_000)
    assert state.contact_ms == 5_000


def test_what_was_being_given_up_when_all_was_lost_is_not_owned_again() -> None:
    """Else a commit that was asked for before it counts for partitions of other members."""
    script = MemberScript().start().settle()
    holding.revoke(script.machine.state, "it moves", script.now_ms + 5_000, script.now_ms, b"a part")
    script.look().wait(3_000)
    script.beat(ErrorCode.UNKNOWN_MEMBER_ID)
    script.settle(generation=2, member_id="m-2")
    assert script.machine.state.owned == (b"share 2", b"")
