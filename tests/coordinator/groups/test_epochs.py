"""The journal of groups of the consumer protocol: one entry for each rebalance, who waited for whom, and what
was refused; none before its records are in the log."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ringleader.coordinator.consumer_groups.topics import Topic
from ringleader.coordinator.groups.reports import FINISH_TIMEOUT_MS
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.journal.entries import (
    Cause,
    Departure,
    EpochEntry,
    FirstCommit,
    Incident,
    IncidentKind,
    Outcome,
)
from ringleader.coordinator.journal.record import JournalRecords
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import ConsumerGroupHeartbeatRequest
from tests.coordinator.groups.mixed_desk import SETTINGS as MIXED
from tests.coordinator.groups.mixed_desk import MixedDesk
from tests.coordinator.groups.test_consumer import ORDERS, SESSION_MS, Desk, Ticket, partitions


@pytest.fixture
def desk() -> Desk:
    return Desk()


def entries(desk: Desk) -> list[dict[str, Any]]:
    """The records of the rebalances so far."""
    return [json.loads(JournalRecords().row(one)[2]) for one in desk.events if isinstance(one, EpochEntry)]


def incidents(desk: Desk, kind: IncidentKind) -> list[Incident]:
    return [one for one in desk.events if isinstance(one, Incident) and one.kind is kind]


def shared(desk: Desk) -> None:
    """A has 0 and 1, b has 2 and 3."""
    desk.beat("a", 0)
    desk.beat("b", 0)
    desk.beat("a", 2, [0, 1, 2, 3])
    desk.wait(4_000)
    desk.beat("a", 2, [0, 1])
    desk.wait(100)
    desk.beat("b", 3, [])


def test_the_first_member_is_a_rebalance_that_ends_at_once(desk: Desk) -> None:
    desk.beat("a", 0)
    [entry] = entries(desk)
    assert (entry["group_type"], entry["generation"], entry["outcome"]) == ("consumer", 2, "stable")
    assert (entry["cause"], entry["cause_member"], entry["joined"]) == ("member joined", "a", ["a"])
    assert entry["members"][0]["assigned"] == [["orders", [0, 1, 2, 3]]]
    assert entry["moves"] == [["orders", one, None, "a", None] for one in range(4)]


def test_a_second_member_waits_for_what_the_first_gives_up(desk: Desk) -> None:
    shared(desk)
    _, entry = entries(desk)
    assert (entry["generation"], entry["outcome"], entry["duration_ms"]) == (3, "stable", 4_100)
    assert entry["moves"] == [["orders", 2, "a", "b", 100], ["orders", 3, "a", "b", 100]]
    assert entry["unowned_ms"] == 200
    [[waiter, holder, places, since_ms, waited_ms]] = entry["waits"]
    assert (waiter, holder, places) == ("b", "a", [["orders", [2, 3]]])
    assert (since_ms, waited_ms) == (entry["began_ms"], 4_100)
    assert [one["assigned"] for one in entry["before"]] == [[["orders", [0, 1, 2, 3]]]]


def test_who_holds_up_others_is_told_while_it_lasts(desk: Desk) -> None:
    desk.beat("a", 0)
    desk.beat("b", 0)
    began_ms = desk.now_ms
    desk.beat("a", 2, [0, 1, 2, 3])
    desk.wait(FINISH_TIMEOUT_MS)
    [incident] = incidents(desk, IncidentKind.REVOCATION_AWAITED)
    assert (incident.member_id, incident.waiting, incident.since_ms) == ("a", ("b",), began_ms)
    assert incident.partitions == (("orders", 2, None, None), ("orders", 3, None, None))
    desk.wait(FINISH_TIMEOUT_MS)
    assert len(incidents(desk, IncidentKind.REVOCATION_AWAITED)) == 2


def test_a_member_that_leaves(desk: Desk) -> None:
    shared(desk)
    desk.beat("b", -1)
    desk.wait(300)
    desk.beat("a", 3, [0, 1])
    entry = entries(desk)[-1]
    assert (entry["cause"], entry["cause_member"]) == ("member left", "b")
    assert entry["left"]["b"]["why"] == "left"
    assert entry["moves"] == [["orders", 2, "b", "a", 300], ["orders", 3, "b", "a", 300]]


def test_a_session_that_ends_counts_from_the_last_heartbeat(desk: Desk) -> None:
    shared(desk)
    heard_ms = desk.now_ms
    desk.wait(SESSION_MS - 1_000)
    desk.beat("a", 3, [0, 1])
    desk.wait(1_000)
    desk.beat("a", 3, [0, 1])
    entry = entries(desk)[-1]
    assert (entry["cause"], entry["left"]["b"]["why"]) == ("session expired", "session expired")
    assert entry["left"]["b"]["last_heard_ms"] == heard_ms
    assert entry["left"]["b"]["silent_ms"] == SESSION_MS
    assert entry["moves"][0] == ["orders", 2, "b", "a", SESSION_MS]


def test_a_member_that_does_not_give_up_in_time(desk: Desk) -> None:
    desk.beat("a", 0)
    desk.beat("b", 0)
    desk.beat("a", 2, [0, 1, 2, 3])
    desk.wait(29_999)
    desk.beat("a", 2, [0, 1, 2, 3])
    desk.wait(1)
    superseded = entries(desk)[-1]
    assert superseded["outcome"] == "superseded"
    assert [one["member_id"] for one in superseded["members"]] == ["a", "b"]
    desk.beat("b", 3, [])
    last = entries(desk)[-1]
    assert (last["cause"], last["cause_member"]) == ("partitions not given up", "a")
    assert last["left"]["a"]["why"] == Departure.NOT_REVOKED
    assert [one[3] for one in last["moves"]] == ["b"] * 4


def test_partitions_that_are_added(desk: Desk) -> None:
    desk.beat("a", 0)
    desk.topics.put(Topic("orders", ORDERS.topic_id, 5))
    desk.beat("a", 2, [0, 1, 2, 3])
    entry = entries(desk)[-1]
    assert (entry["cause"], entry["cause_member"]) == ("topics changed", "")
    assert entry["moves"] == [["orders", 4, None, "a", None]]


def test_another_subscription(desk: Desk) -> None:
    desk.topics.put(Topic("audit", b"a" * 16, 1))
    desk.beat("a", 0)
    desk.beat("a", 2, subscribed_topic_names=["orders", "audit"])
    entry = entries(desk)[-1]
    assert (entry["cause"], entry["cause_member"]) == (Cause.MEMBER_CHANGED, "a")
    assert entry["members"][0]["topics"] == ["audit", "orders"]


def test_the_last_member_leaves_an_empty_group(desk: Desk) -> None:
    desk.beat("a", 0)
    desk.beat("a", -1)
    entry = entries(desk)[-1]
    assert (entry["outcome"], entry["members"], entry["generation"]) == (Outcome.EMPTY, [], 3)
    assert [one["member_id"] for one in entry["before"]] == ["a"]


def test_epochs_before_the_target_are_one_rebalance() -> None:
    desk = Desk(GroupSettings(group_consumer_assignment_interval_ms=1_000, group_consumer_max_size=9))
    desk.beat("a", 0)
    for one in "bcd":
        desk.beat(one, 0)
    desk.wait(1_000)
    desk.beat("a", 2, [0, 1, 2, 3])
    desk.beat("a", 2, [0])
    for one in "bcd":
        desk.beat(one, 2)
        desk.beat(one, 5, [])
    _, entry = entries(desk)
    assert (entry["generation"], entry["joined"], entry["leader_ms"]) == (5, ["b", "c", "d"], 1_000)


def test_a_static_member_goes_and_is_back(desk: Desk) -> None:
    desk.beat("a", 0, instance_id="i")
    went_ms = desk.now_ms
    desk.beat("a", -2, instance_id="i")
    [away] = incidents(desk, IncidentKind.STATIC_AWAY)
    assert (away.member_id, away.group_instance_id) == ("a", "i")
    desk.wait(2_000)
    desk.beat("a2", 0, instance_id="i")
    [back] = incidents(desk, IncidentKind.STATIC_RETURNED)
    assert (back.member_id, back.old_member_id, back.last_heard_ms) == ("a2", "a", went_ms)
    assert len(entries(desk)) == 1


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ErrorCode.UNRELEASED_INSTANCE_ID, IncidentKind.JOIN_REFUSED),
        (ErrorCode.FENCED_INSTANCE_ID, IncidentKind.INSTANCE_FENCED),
        (ErrorCode.FENCED_MEMBER_EPOCH, IncidentKind.EPOCH_REFUSED),
        (ErrorCode.STALE_MEMBER_EPOCH, IncidentKind.EPOCH_REFUSED),
        (ErrorCode.GROUP_MAX_SIZE_REACHED, IncidentKind.JOIN_REFUSED),
    ],
)
def test_refusals(desk: Desk, error: ErrorCode, kind: IncidentKind) -> None:
    desk.beat("a", 0, instance_id="i")
    if error is ErrorCode.UNRELEASED_INSTANCE_ID:
        desk.beat("b", 0, instance_id="i")
    elif error is ErrorCode.FENCED_INSTANCE_ID:
        desk.beat("b", 2, instance_id="i")
    elif error is ErrorCode.FENCED_MEMBER_EPOCH:
        desk.beat("a", 8)
    elif error is ErrorCode.STALE_MEMBER_EPOCH:
        desk.commit("a", 7, 0)
    else:
        for one in "bcd":
            desk.beat(one, 0)
    [incident] = incidents(desk, kind)
    assert incident.error == error


def test_nothing_is_told_before_it_is_in_the_log(desk: Desk) -> None:
    request = ConsumerGroupHeartbeatRequest("g", "a", 0, rebalance_timeout_ms=30_000, topic_partitions=[])
    request.subscribed_topic_names = ["orders"]
    desk.shard.handle(request, Ticket(), desk.now_ms)
    box = desk.shard.drain()
    assert not box.events
    desk.shard.durable(box.appends[-1].position, desk.now_ms)
    assert [type(one) for one in desk.shard.drain().events] == [EpochEntry]


def test_the_first_commit_after_a_rebalance(desk: Desk) -> None:
    desk.beat("a", 0)
    desk.wait(700)
    desk.commit("a", 2, 0)
    desk.commit("a", 2, 0)
    [first] = [one for one in desk.events if isinstance(one, FirstCommit)]
    assert (first.generation, first.member_id, first.after_ms) == (2, "a", 700)


def test_a_restart_goes_on_with_the_next_rebalance(desk: Desk) -> None:
    shared(desk)
    written = len(entries(desk))
    desk.restart()
    desk.beat("a", 3, [0, 1])
    assert len(entries(desk)) == written
    desk.beat("b", -1)
    desk.beat("a", 3, [0, 1])
    entry = entries(desk)[-1]
    assert (entry["cause"], [one["member_id"] for one in entry["before"]]) == ("member left", ["b", "a"])


def test_a_classic_group_goes_over_to_the_protocol_and_back() -> None:
    desk = MixedDesk(MIXED)
    ids = desk.classic_group("a", "b")
    desk.beat("new", 0)
    desk.events.clear()
    desk.beat("new", -1)
    [going] = entries(desk)
    assert (going["cause"], going["cause_member"], going["joined"]) == ("member joined", "new", ["new"])
    assert going["outcome"] == "superseded"
    assert [one["member_id"] for one in going["before"]] == [ids["a"], ids["b"]]
    assert going["moves"] == []


def test_a_static_member_that_did_not_leave_was_not_away() -> None:
    """It has been away before, under the same member id."""
    desk = MixedDesk(MIXED)
    desk.beat("other", 0)
    desk.beat("a", 0, instance_id="i")
    went_ms = desk.now_ms
    desk.beat("a", -2, instance_id="i")
    desk.wait(2_000)
    for _ in range(2):
        assert desk.joins("", group_instance_id="i").error_code == 0
        assert desk.beat("a", 0, instance_id="i").error_code == 0
    heard = [one.last_heard_ms for one in incidents(desk, IncidentKind.STATIC_RETURNED)]
    assert heard == [went_ms, -1, -1, -1]


def test_a_static_member_that_is_back_belongs_to_the_rebalance_again(desk: Desk) -> None:
    desk.beat("a", 0)
    desk.beat("b", 0, instance_id="i")
    desk.beat("b", -2, instance_id="i")
    desk.beat("b2", 0, instance_id="i")
    desk.beat("a", 2, [0, 1, 2, 3])
    desk.beat("a", 2, [0, 1])
    assert len(entries(desk)) == 1
    desk.beat("b2", 3, [], instance_id="i")
    _, entry = entries(desk)
    assert (entry["outcome"], [one[3] for one in entry["moves"]]) == ("stable", ["b2", "b2"])


def test_who_waits_for_several_waits_for_each_as_long_as_it_has_what_is_wanted(desk: Desk) -> None:
    desk.topics.put(Topic("orders", ORDERS.topic_id, 6))
    desk.beat("a", 0)
    desk.beat("b", 0)
    desk.beat("a", 2, [0, 1, 2, 3, 4, 5])
    kept = {"a": [0, 1, 2], "b": [3, 4, 5]}
    desk.beat("a", 2, kept["a"])
    desk.beat("b", 3, [])
    desk.beat("c", 0)
    had: list[int] = []
    for name, own in kept.items():
        left = partitions(desk.beat(name, 3, own)) or []
        desk.wait(1_000)
        desk.beat(name, 3, left)
        had = partitions(desk.beat("c", 4, had)) or had
    waits = entries(desk)[-1]["waits"]
    assert sorted((one[0], one[1], one[4]) for one in waits) == [("c", "a", 1_000), ("c", "b", 2_000)]


def test_who_left_before_the_target_came_has_not_joined() -> None:
    desk = Desk(GroupSettings(group_consumer_assignment_interval_ms=1_000))
    desk.beat("a", 0)
    desk.beat("b", 0)
    desk.beat("b", -1)
    desk.wait(1_000)
    desk.beat("a", 2, [0, 1, 2, 3])
    entry = entries(desk)[-1]
    assert (entry["joined"], list(entry["left"])) == ([], ["b"])


def test_what_an_earlier_life_of_the_group_gave_up_is_nobodys(desk: Desk) -> None:
    desk.beat("a", 0)
    desk.beat("a", -1)
    desk.wait(5_000)
    desk.beat("b", 0)
    assert entries(desk)[-1]["moves"] == [["orders", one, None, "b", None] for one in range(4)]


def test_what_a_member_gets_again_has_not_moved(desk: Desk) -> None:
    desk.beat("a", 0)
    desk.beat("b", 0)
    desk.beat("a", 2, [0, 1, 2, 3])
    desk.beat("a", 2, [0, 1])  # nobody has the others
    desk.beat("b", -1)
    assert desk.beat("a", 3, [0, 1]).member_epoch == 4
    last = entries(desk)[-1]
    assert (last["outcome"], last["cause"], last["moves"]) == ("stable", "member left", [])
