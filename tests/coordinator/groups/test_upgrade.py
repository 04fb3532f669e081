"""A member of the consumer protocol joins a classic group, which becomes one of that protocol."""

from __future__ import annotations

from typing import Any

import pytest

from ringleader.protocol.embedded import Assignment, Subscription
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from tests.coordinator.groups.mixed_desk import (
    SETTINGS,
    MixedDesk,
    behind,
    with_settings,
)
from tests.coordinator.groups.test_consumer import Ticket, partitions


@pytest.fixture
def desk() -> MixedDesk:
    return MixedDesk(SETTINGS)


def test_a_consumer_member_joins_a_classic_group_and_partitions_move_one_by_one(desk: MixedDesk) -> None:
    ids = desk.classic_group("a", "b")
    start = len(desk.log)
    new = desk.beat("new", 0)
    assert (new.error_code, new.member_epoch, partitions(new)) == (0, 2, [])
    assert desk.kinds(start)[:9] == ["2-", "5", "5", "3", "7", "7", "6", "8", "8"]
    assert desk.listed() == [("g", "Reconciling", "consumer")]
    # a had 0 and 2, b had 1 and 3: one of the two gives one up.
    for name, had in (("a", [0, 2]), ("b", [1, 3])):
        behind(desk, ids[name], 1)
        joined = desk.joins(ids[name], had)
        assert (joined.error_code, joined.leader, joined.members) == (0, "", [])
        assert joined.protocol_name == "range"
        kept = desk.has(ids[name], joined.generation_id)
        assert set(kept) <= set(had)
        if joined.generation_id == 1:  # it has to give one up, and says so when it joins again
            assert len(kept) == 1
            behind(desk, ids[name], 1)
            joined = desk.joins(ids[name], kept)
        assert joined.generation_id == 2
        assert desk.has(ids[name], 2) == kept
        assert desk.beats(ids[name], 2) == 0
    assert len(partitions(desk.beat("new", 2)) or []) == 1
    assert desk.listed() == [("g", "Stable", "consumer")]


def test_members_keep_what_they_offered_and_what_they_have_over_a_restart(desk: MixedDesk) -> None:
    ids = desk.classic_group("a", "static-b", names=("cooperative-sticky", "range"))
    desk.beat("new", 0)
    desk.restart()
    described = desk.shard.describe_consumer("g", Ticket())
    assert described is not None
    found = {one.member_id: one for one in described.members}
    assert [found[ids[name]].member_type for name in ("a", "static-b")] == [0, 0]
    assert found[ids["static-b"]].instance_id == "static-b"
    assert found["new"].member_type == 1
    assert found[ids["a"]].subscribed_topic_names == ["orders"]
    behind(desk, ids["a"], 1)
    joined = desk.joins(ids["a"], [], names=("cooperative-sticky", "range"))
    assert (joined.generation_id, joined.protocol_name) == (2, "cooperative-sticky")


def test_who_waits_in_a_rebalance_is_asked_to_join_again(desk: MixedDesk) -> None:
    ids = desk.classic_group("a", "b")
    joining = desk.send(desk.join_request(ids["a"], names=("range", "x")), 9)
    assert joining not in desk.answers
    assert desk.beat("new", 0).error_code == 0
    answer = desk.answers.pop(joining)
    assert (answer.error_code, answer.member_id) == (ErrorCode.REBALANCE_IN_PROGRESS, ids["a"])
    assert desk.joins(ids["a"]).error_code == 0


def test_who_waits_for_the_leaders_assignment_is_asked_to_join_again(desk: MixedDesk) -> None:
    ids = desk.classic_group("a", "b")
    leads = [desk.send(desk.join_request(ids[name], names=("range", "x")), 9) for name in ("a", "b")]
    generations = [desk.answers.pop(one).generation_id for one in leads]
    assert generations == [2, 2]
    request = SyncGroupRequest("g", 2, ids["b"], protocol_type="consumer", protocol_name="range")
    syncing = desk.send(request, 5)
    assert desk.beat("new", 0).member_epoch == 3
    assert desk.answers.pop(syncing).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    behind(desk, ids["a"], 2)
    # The last synced assignment counts, though the members are a generation further.
    joined = desk.joins(ids["a"], [0, 2])
    assert set(desk.has(ids["a"], joined.generation_id)) <= {0, 2}


def test_what_a_member_reported_and_did_not_get_again_is_not_free_yet(desk: MixedDesk) -> None:
    """A cooperative member that has not synced yet may still read it."""
    ids = desk.classic_group("a", "b", share={"a": [0, 1, 2, 3], "b": []})
    joining = [
        desk.send(desk.join_request(ids[name], some), 9) for name, some in (("a", [0, 1, 2, 3]), ("b", []))
    ]
    assert [desk.answers.pop(one).generation_id for one in joining] == [2, 2]
    given = [SyncGroupRequestAssignment(ids["a"], Assignment({"orders": [0, 1]}).encode())]
    desk.syncs(ids["a"], 2, assignments=given)
    for _ in range(2):  # so it is after a load
        assert partitions(desk.beat("new", 0)) == []
        desk.restart()
    assert desk.joins(ids["a"], [0, 1, 2, 3]).generation_id == 2
    assert desk.has(ids["a"], 2) == [0, 1]
    assert partitions(desk.beat("new", 3)) is None
    assert desk.joins(ids["a"], [0, 1]).generation_id == 3
    assert len(partitions(desk.beat("new", 3)) or []) == 1


def test_what_a_member_reported_and_another_got_is_not_free_yet(desk: MixedDesk) -> None:
    """So it is when a downgraded group, whose assignments are targets, is upgraded before its rebalance."""
    ids = desk.classic_group("a", "b", share={"a": [0, 1, 2, 3], "b": []})
    desk.beat("new", 0, instance_id="i", subscribed_topic_names=["other"])
    assert desk.joins(ids["a"], [0, 1, 2, 3]).generation_id == 1
    assert desk.joins(ids["b"]).generation_id == 2
    assert desk.beat("new", -1, instance_id="i").error_code == 0
    assert desk.listed()[0][2] == "classic"
    assert partitions(desk.beat("newer", 0, subscribed_topic_names=["other"])) == []
    generation = desk.joins(ids["b"]).generation_id
    assert desk.has(ids["b"], generation) == []
    assert desk.beats(ids["b"], generation) == 0
    generation = desk.joins(ids["a"], [0, 1]).generation_id
    assert desk.has(ids["a"], generation) == [0, 1]
    behind(desk, ids["b"], generation)
    assert desk.has(ids["b"], desk.joins(ids["b"]).generation_id) == [2, 3]


def test_what_a_member_reported_and_is_to_have_is_its_own_whoever_reports_it_later(desk: MixedDesk) -> None:
    ids = desk.classic_group("a", "b", share={"a": [0, 1, 2, 3], "b": []})
    joining = []
    for name, owned, generation in (("a", [0, 1, 2, 3], 1), ("b", [0], 2)):
        subscription = Subscription(["orders"], owned_partitions={"orders": owned}, generation=generation)
        joining.append(desk.send(desk.join_request(ids[name], metadata=subscription.encode()), 9))
    assert [desk.answers.pop(one).generation_id for one in joining] == [2, 2]
    assert desk.beat("new", 0, subscribed_topic_names=["other"]).error_code == 0
    described = desk.shard.describe_consumer("g", Ticket())
    assert described is not None
    found = {one.member_id: one.assignment.topic_partitions for one in described.members}
    assert [one.partitions for one in found[ids["a"]]] == [[0, 1, 2, 3]]
    assert found[ids["b"]] == []


def test_a_static_member_upgrades_a_group_in_which_partitions_are_nobodys(desk: MixedDesk) -> None:
    """It changes nothing, but a new target is due."""
    ids = desk.classic_group("a", "static-b", share={"a": [0, 1], "static-b": [2]})
    assert len(partitions(desk.beat("new", 0, instance_id="static-b")) or []) == 2
    behind(desk, ids["a"], 1)


def test_a_static_member_upgrades_a_group_in_a_rebalance(desk: MixedDesk) -> None:
    ids = desk.classic_group("a", "static-b")
    joining = desk.send(desk.join_request(ids["a"], [0, 2], topics=["orders", "other"]), 9)
    assert desk.beat("new", 0, instance_id="static-b").member_epoch == 2
    assert desk.answers.pop(joining).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    behind(desk, ids["a"], 1)


def test_the_first_join_phase_may_be_going_on(desk: MixedDesk) -> None:
    given = desk.ask(desk.join_request(""), 9)
    assert given.error_code == ErrorCode.MEMBER_ID_REQUIRED
    joining = desk.send(desk.join_request(given.member_id), 9)
    new = desk.beat("new", 0)
    assert (new.error_code, len(partitions(new) or [])) == (0, 2)
    assert desk.answers.pop(joining).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    joined = desk.joins(given.member_id)
    assert len(desk.has(given.member_id, joined.generation_id)) == 2


def test_an_id_that_was_given_out_before_is_welcome_after(desk: MixedDesk) -> None:
    desk.classic_group("a")
    given = desk.ask(desk.join_request(""), 9)
    desk.beat("new", 0)
    assert desk.joins(given.member_id).error_code == 0


def test_generations_of_a_life_that_ended_are_not_epochs_of_the_next(desk: MixedDesk) -> None:
    ids = desk.classic_group("a")
    desk.restart()
    assert desk.beats(ids["a"], 1) == 0
    assert desk.beat("new", 0).member_epoch == desk.settings.generation_block + 1


def refused_upgrade(desk: MixedDesk) -> str:
    """The error text of a member of the consumer protocol that a classic group does not take in."""
    before = len(desk.log)
    refused = desk.beat("new", 0)
    assert refused.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert len(desk.log) == before
    assert desk.listed()[0][2] == "classic"
    start = "Cannot upgrade classic group g to consumer group because "
    text = refused.error_message or ""
    assert text.startswith(start)
    return text.removeprefix(start)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"group_consumer_migration_policy": "disabled"}, "online upgrade is disabled."),
        ({"group_consumer_migration_policy": "downgrade"}, "online upgrade is disabled."),
        ({"group_consumer_max_size": 1}, "the group size exceeds the consumer group maximum size."),
        ({"group_max_record_bytes": 1}, "the group takes more bytes than group.max.record.bytes."),
    ],
)
def test_settings_that_keep_a_group_classic(desk: MixedDesk, settings: dict[str, Any], text: str) -> None:
    ids = desk.classic_group("a", "b")
    desk.settings = SETTINGS.model_copy(update=settings)
    desk.restart()
    assert refused_upgrade(desk) == text
    assert [desk.beats(one, 1) for one in ids.values()] == [0, 0]


def test_an_upgrade_is_for_consumers(desk: MixedDesk) -> None:
    desk.classic_group("a", protocol_type="connect")
    assert refused_upgrade(desk) == "the group does not use the consumer embedded protocol."


def test_an_upgrade_needs_subscriptions_that_can_be_read(desk: MixedDesk) -> None:
    desk.classic_group("a", metadata=b"\0\1\0\0")
    assert refused_upgrade(desk) == "the embedded consumer protocol is malformed."


@pytest.mark.parametrize(
    ("assignment", "text"),
    [
        (Assignment({"orders": [0]}, b"mine").encode(), "an unsupported custom assignor is in use."),
        (Assignment({"orders": [0]}).encode()[:-1], "the embedded consumer protocol is malformed."),
    ],
)
def test_assignments_that_cannot_be_taken_over(desk: MixedDesk, assignment: bytes, text: str) -> None:
    ids = desk.classic_group("a")
    joined = desk.joins(ids["a"])
    given = [SyncGroupRequestAssignment(ids["a"], assignment)]
    assert desk.syncs(ids["a"], joined.generation_id, assignments=given).error_code == 0
    assert refused_upgrade(desk).startswith(text)
    given = [SyncGroupRequestAssignment(ids["a"], Assignment({"orders": [0]}, b"").encode())]
    joined = desk.joins(ids["a"])
    assert desk.syncs(ids["a"], joined.generation_id, assignments=given).error_code == 0
    assert desk.beat("new", 0).error_code == 0


def test_a_partition_that_the_leader_gave_to_two_members(desk: MixedDesk) -> None:
    ids = desk.classic_group("a", "b", share={"a": [0, 1], "b": [1, 2]})
    before = len(desk.log)
    assert desk.beat("new", 0).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert len(desk.log) == before
    assert [desk.beats(one, 1) for one in ids.values()] == [0, 0]


def test_a_refused_newcomer_leaves_an_empty_classic_group_as_it_is(desk: MixedDesk) -> None:
    ids = desk.classic_group("a")
    assert desk.leaves(ids["a"]) == [0]
    refused = desk.beat("new", 0, subscribed_topic_names=["x" * (SETTINGS.member_max_metadata_bytes)])
    assert refused.error_code == ErrorCode.INVALID_REQUEST
    assert desk.listed() == [("g", "Empty", "classic")]


def test_a_newcomer_for_whom_there_is_no_room_upgrades_nothing() -> None:
    desk = with_settings(group_consumer_max_size=2)
    ids = desk.classic_group("a", "b")
    assert desk.beat("new", 0).error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert desk.listed() == [("g", "Stable", "classic")]
    assert desk.beats(ids["a"], 1) == 0


def test_a_full_store_keeps_a_group_classic() -> None:
    desk = MixedDesk(SETTINGS)
    desk.classic_group("a")
    desk.shard.set_full(True, desk.now_ms)
    assert desk.beat("new", 0).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert desk.listed() == [("g", "Stable", "classic")]
