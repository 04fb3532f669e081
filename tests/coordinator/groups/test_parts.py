"""The parts of the machine by themselves: routing, states, vote, deadlines, journal, member bookkeeping."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ringleader.coordinator.deadlines import NEVER, DeadlineHeap
from ringleader.coordinator.groups.deadlines import GroupDeadline, Kind
from ringleader.coordinator.groups.group import Group
from ringleader.coordinator.groups.member import Member
from ringleader.coordinator.groups.routing import java_string_hash, partition_for
from ringleader.coordinator.groups.states import (
    CAN_REBALANCE,
    TRANSITIONS,
    GroupState,
    IllegalTransitionError,
)
from ringleader.coordinator.groups.vote import Protocols, elect, subscribed_topics
from ringleader.coordinator.journal.entries import Cause, Departure, JournalEntry, Outcome, printable
from ringleader.protocol.embedded import Subscription

# ---- routing (P1) ----


@pytest.mark.parametrize(
    ("key", "java_hash", "partition"),
    [
        ("", 0, 0),
        ("a", 97, 47),
        ("foo", 101574, 24),
        ("grp", 102629, 29),
        ("test", 3556498, 48),
        ("orders", -1008770331, 31),
        ("my-group", -1906497762, 12),
        ("group-id", 506313513, 13),
        ("consumer-group-1", 147483020, 20),
        ("café", 3045921, 21),
        ("😀", 1772899, 49),
        ("polygenelubricants", -2147483648, 0),
    ],
)
def test_partition_of_a_group_as_every_broker_computes_it(key: str, java_hash: int, partition: int) -> None:
    assert java_string_hash(key) == java_hash
    assert partition_for(key) == partition


# ---- states (S1 S2 S3) ----


def test_states_that_a_rebalance_starts_from_are_those_that_lead_to_preparing() -> None:
    assert {state for state in GroupState if GroupState.PREPARING in TRANSITIONS[state]} == set(CAN_REBALANCE)


@pytest.mark.parametrize("old", GroupState)
@pytest.mark.parametrize("new", GroupState)
def test_only_transitions_of_the_table_are_made(old: GroupState, new: GroupState) -> None:
    group = Group("g")
    group.state = old
    if new in TRANSITIONS[old]:
        group.transition(new, 5)
        assert (group.state, group.previous, group.state_since_ms) == (new, old, 5)
        return
    with pytest.raises(IllegalTransitionError, match=r"'g'"):
        group.transition(new, 5)


# ---- vote (S4 S6 S7) ----


def _offer(*names: str) -> Protocols:
    return tuple((name, b"") for name in names)


def _elect(*offers: Protocols) -> str:
    supporters: dict[str, int] = {}
    for offer in offers:
        for name, _ in offer:
            supporters[name] = supporters.get(name, 0) + 1
    return elect(offers, supporters, len(offers), offers[0])


def test_first_choices_among_the_common_protocols_count() -> None:
    assert _elect(_offer("x", "a", "b"), _offer("b", "a"), _offer("b", "a")) == "b"
    assert _elect(_offer("only", "a"), _offer("a")) == "a"


def test_equal_votes_go_to_the_leaders_preference() -> None:
    assert _elect(_offer("a", "b"), _offer("b", "a")) == "a"
    assert _elect(_offer("b", "a"), _offer("a", "b")) == "b"


def test_a_vote_without_a_common_protocol_or_members_is_a_bug() -> None:
    with pytest.raises(ValueError, match="no protocol"):
        _elect(_offer("a"), _offer("b"))
    with pytest.raises(ValueError, match="no protocol"):
        elect((), {}, 0, ())


@given(st.lists(st.permutations(["a", "b", "c"]), min_size=1, max_size=7))
def test_the_winner_has_the_most_first_choices(offers: list[list[str]]) -> None:
    winner = _elect(*[_offer(*names) for names in offers])
    first = [names[0] for names in offers]
    assert first.count(winner) == max(first.count(name) for name in "abc")


@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_topics_are_read_from_every_version_of_a_subscription(version: int) -> None:
    metadata = [Subscription(["t", "u"]).encode(version), Subscription(["ü"]).encode(version)]
    assert subscribed_topics(metadata) == frozenset({"t", "u", "ü"})


@given(st.binary(max_size=30))
def test_unreadable_subscriptions_are_unknown_and_never_fail(raw: bytes) -> None:
    assert subscribed_topics([raw]) is None or raw[2:6] >= b"\0\0\0\0"
    assert subscribed_topics([b"\0\0\x7f\xff\xff\xff"]) is None


# ---- deadlines ----


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.one_of(st.none(), st.integers(0, 50)), st.integers(0, 5)), max_size=80
    )
)
def test_deadlines_fire_once_at_their_time_however_they_are_moved(
    acts: list[tuple[int, int | None, int]],
) -> None:
    heap = DeadlineHeap[GroupDeadline]()
    deadlines = [GroupDeadline(None, Kind.JOIN) for _ in range(5)]
    expected: dict[int, int] = {}
    now_ms = 0
    for which, delay_ms, passes_ms in acts:
        if delay_ms is None:
            heap.cancel(deadlines[which])
            expected.pop(which, None)
        else:
            heap.arm(deadlines[which], now_ms + delay_ms)
            expected[which] = now_ms + delay_ms
        due = heap.next_ms()
        assert (due is None) == (not expected)
        assert due is None or due <= min(expected.values())
        now_ms += passes_ms
        fired = {deadlines.index(one) for one in heap.due(now_ms)}
        assert fired == {one for one, due_ms in expected.items() if due_ms <= now_ms}
        for one in fired:
            del expected[one]


def test_a_deadline_moved_later_by_a_store_fires_later() -> None:
    heap, deadline = DeadlineHeap[GroupDeadline](), GroupDeadline(None, Kind.MEMBER)
    heap.arm(deadline, 10)
    deadline.due_ms = 25
    assert not list(heap.due(24))
    assert len(heap) == 1  # pushed again once, not at every move
    assert list(heap.due(25)) == [deadline]
    assert deadline.due_ms == NEVER
    assert heap.next_ms() is None


def test_equal_deadlines_fire_in_the_order_of_arming() -> None:
    heap = DeadlineHeap[GroupDeadline]()
    deadlines = [GroupDeadline(None, Kind.MEMBER) for _ in range(20)]
    for deadline in deadlines:
        heap.arm(deadline, 7)
    assert list(heap.due(7)) == deadlines


def test_many_cancelled_deadlines_do_not_pile_up() -> None:
    heap = DeadlineHeap[GroupDeadline]()
    keep = GroupDeadline(None, Kind.JOIN)
    heap.arm(keep, 1_000)
    for _ in range(10_000):
        cancelled = GroupDeadline(None, Kind.MEMBER)
        heap.arm(cancelled, 500)
        heap.cancel(cancelled)
    assert len(heap) < 3_000
    assert list(heap.due(1_000)) == [keep]


# ---- members (S9 S12 S15 S16) ----


def _member(group: Group, member_id: str, *names: str, instance: str | None = None) -> Member:
    return Member(group.group_id, member_id, instance, "c", "/h", 10, 20, _offer(*names))


def test_counts_follow_members_that_come_change_and_go() -> None:
    group = Group("g")
    a, b = _member(group, "a", "x", "y"), _member(group, "b", "y")
    group.add(a, "consumer")
    group.add(b, "other")
    assert (group.leader, group.protocol_type, group.supporters) == ("a", "consumer", {"x": 1, "y": 2})
    group.set_awaiting_join(a, True)
    group.set_awaiting_join(a, True)
    assert group.awaiting_joins == 1
    group.update(b, _offer("y", "z"), 1, 2)
    assert group.supporters == {"x": 1, "y": 2, "z": 1}
    group.remove(a)
    assert (group.leader, group.awaiting_joins, group.supporters) == ("b", 0, {"y": 1, "z": 1})
    group.remove(b)
    assert (group.leader, group.supporters, group.rebalance_timeout_ms) == (None, {}, 0)


def test_the_member_is_checked_before_its_request() -> None:
    group = Group("g")
    group.add(_member(group, "a", "x", instance="i"), "consumer")
    codes = [
        group.check_member("a", None),
        group.check_member("a", "i"),
        group.check_member("b", "i"),
        group.check_member("a", "j"),
        group.check_member("b", None),
    ]
    assert codes == [0, 0, 82, 25, 25]


# ---- journal ----


def _entry() -> JournalEntry:
    return JournalEntry(
        group_id="g",
        generation=4,
        cause=Cause.MEMBER_LEFT,
        cause_member="b-1",
        reason="bye\x1b[31m\n",
        outcome=Outcome.STABLE,
        protocol_type="consumer",
        protocol="range",
        leader="a-1",
        members_before=("a-1", "b-1", "c-1"),
        members_after=("a-1", "d-1"),
        joined=("d-1",),
        left={"b-1": Departure.LEFT, "c-1": Departure.NOT_REJOINED},
        duration_ms=60,
        join_ms=50,
        join_last_member="c-1",
        leader_ms=8,
        sync_ms=2,
        synced=2,
    )


def test_an_entry_reads_as_one_line_and_client_text_cannot_break_it() -> None:
    assert _entry().render() == (
        "group 'g' generation 4 stable; after 60 ms (join 50 for c-1, leader 8, sync 2); "
        "because member left (b-1): 'bye\\x1b[31m\\n'; members 3 -> 2; joined d-1; "
        "left: b-1; did not rejoin in time: c-1; leader a-1, protocol range"
    )


def test_an_entry_is_plain_data() -> None:
    plain = json.loads(json.dumps(asdict(_entry())))
    assert plain["cause"] == "member left"
    assert plain["left"] == {"b-1": "left", "c-1": "did not rejoin in time"}
    assert plain["join_ms"] + plain["leader_ms"] + plain["sync_ms"] == plain["duration_ms"]


def test_long_text_is_cut() -> None:
    assert printable("x" * 300) == "x" * 255 + "…"


# ---- documentation ----


def test_the_documentation_has_the_tables_of_the_code() -> None:
    text = (Path(__file__).parents[3] / "docs" / "group-machine.md").read_text()
    for old, targets in TRANSITIONS.items():
        for new, when in targets.items():
            assert f"| {old.value} | {new.value} | {when} |" in text
    assert text.count("| Dead |") == sum(GroupState.DEAD in targets for targets in TRANSITIONS.values())
    for cause in Cause:
        assert f"| {cause.value} |" in text
