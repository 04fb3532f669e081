"""The last member of the consumer protocol goes, or comes back as a classic one."""

from __future__ import annotations

from typing import Any

import pytest

from ringleader.coordinator.consumer_groups.topics import Topic
from ringleader.coordinator.groups import records
from ringleader.coordinator.journal.entries import JournalEntry
from ringleader.protocol.embedded import Assignment
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    SyncGroupRequestAssignment,
)
from tests.coordinator.groups.mixed_desk import (
    REBALANCE_MS,
    SESSION_MS,
    SETTINGS,
    MixedDesk,
    mixed_group,
)
from tests.coordinator.groups.test_consumer import ORDERS, Ticket, partitions


@pytest.fixture
def desk() -> MixedDesk:
    return MixedDesk(SETTINGS)


@pytest.fixture
def mixed(desk: MixedDesk) -> tuple[MixedDesk, str]:
    """See `mixed_group`."""
    return desk, mixed_group(desk)


def test_when_the_last_consumer_member_leaves_the_group_is_a_classic_one(
    mixed: tuple[MixedDesk, str],
) -> None:
    desk, member_id = mixed
    kept = desk.has(member_id, 2)
    start = len(desk.log)
    assert desk.beat("new", -1).error_code == 0
    assert desk.kinds(start) == ["8-", "8-", "7-", "7-", "6-", "5-", "5-", "3-", "2"]
    assert desk.listed() == [("g", "PreparingRebalance", "classic")]
    value = records.decode_group_value(desk.log[-1][1] or b"")
    assert (value.generation, value.protocol, value.leader) == (2, "range", None)
    [stored] = value.members
    assert (stored.session_timeout, stored.rebalance_timeout) == (SESSION_MS, REBALANCE_MS)
    assert Assignment.decode(stored.assignment).partitions == {"orders": kept}
    assert desk.beats(member_id, 2) == ErrorCode.REBALANCE_IN_PROGRESS
    joined = desk.joins(member_id, kept)
    assert (joined.generation_id, joined.leader) == (3, member_id)
    given = [SyncGroupRequestAssignment(member_id, Assignment({"orders": [0, 1, 2, 3]}).encode())]
    assert desk.syncs(member_id, 3, assignments=given).error_code == 0
    assert desk.listed() == [("g", "Stable", "classic")]
    desk.restart()
    assert desk.beats(member_id, 3) == 0
    assert desk.listed() == [("g", "Stable", "classic")]


def test_a_group_that_was_downgraded_before_a_restart_rebalances_after_it(
    mixed: tuple[MixedDesk, str],
) -> None:
    """Else nobody would read what the member had that is gone."""
    desk, member_id = mixed
    desk.beat("new", -1)
    desk.restart()
    assert desk.listed() == [("g", "PreparingRebalance", "classic")]
    assert desk.beats(member_id, 2) == ErrorCode.REBALANCE_IN_PROGRESS
    assert desk.beat("new", 0).error_code == 0
    assert desk.listed()[0][2] == "consumer"


def test_what_a_member_had_before_an_upgrade_is_its_own_after_a_downgrade_and_another_upgrade(
    desk: MixedDesk,
) -> None:
    """It has sent nothing in between, so it still reads all."""
    member_id = desk.classic_group("a")["a"]
    assert partitions(desk.beat("new", 0)) == []
    assert desk.beat("new", -1).error_code == 0
    joined = desk.beat("newer", 0)
    assert partitions(joined) == []
    assert desk.beats(member_id, 1) == ErrorCode.ILLEGAL_GENERATION
    assert desk.joins(member_id).error_code == 0
    assert len(partitions(desk.beat("newer", joined.member_epoch)) or []) == 2


def test_a_downgraded_group_keeps_all_that_its_members_offer(desk: MixedDesk) -> None:
    desk.beat("new", 0)
    for name, names in (("a", ("x", "range")), ("b", ("y", "range", "x")), ("c", ("range", "x"))):
        joined = desk.joins(name, names=names)
        desk.syncs(name, joined.generation_id)
    desk.beat("new", -1)
    described = desk.shard.describe("g", 5, Ticket())
    assert described is not None
    assert [one.member_id for one in described.members] == ["a", "b", "c"]
    assert desk.joins("d", names=("y",)).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    waiting = [desk.send(desk.join_request(one, names=("x", "range")), 9) for one in ("a", "b", "c")]
    assert {desk.answers.pop(one).protocol_name for one in waiting} == {"x"}


@pytest.mark.parametrize("how", ["session", "revocation", "admin"])
def test_a_consumer_member_that_is_removed_downgrades_too(mixed: tuple[MixedDesk, str], how: str) -> None:
    desk, member_id = mixed
    if how == "session":
        for _ in range(5):
            assert desk.beats(member_id, 2) == 0
            desk.wait(SESSION_MS - 1_000)
    elif how == "revocation":
        joined = desk.joins("b")
        desk.has("b", joined.generation_id)
        desk.joins("c")
        desk.has("c", 4)
        assert len(partitions(desk.beat("new", 2)) or []) == 1
        for _ in range(4):
            desk.wait(REBALANCE_MS // 4)
            desk.beat("new", 2)
            for one in (member_id, "b", "c"):
                desk.send(desk.join_request(one), 9)
    else:
        assert desk.leaves("new") == [0]
    assert desk.listed()[0][2] == "classic"


def test_an_empty_group_stays_what_it_was(mixed: tuple[MixedDesk, str]) -> None:
    desk, member_id = mixed
    assert desk.leaves(member_id, "new", "new", "nobody") == [0, 0, 0, ErrorCode.UNKNOWN_MEMBER_ID]
    assert desk.listed() == [("g", "Empty", "consumer")]


def test_one_of_several_consumer_members_leaves(mixed: tuple[MixedDesk, str]) -> None:
    desk, member_id = mixed
    desk.beat("other", 0)
    assert desk.beat("new", -1).error_code == 0
    assert desk.listed()[0][2] == "consumer"
    assert desk.leaves("other") == [0]
    assert desk.listed()[0][2] == "classic"
    assert desk.beats(member_id, 2) == ErrorCode.ILLEGAL_GENERATION
    assert desk.joins(member_id).error_code == 0


@pytest.mark.parametrize("policy", ["disabled", "upgrade"])
def test_a_policy_without_downgrade(mixed: tuple[MixedDesk, str], policy: str) -> None:
    desk, member_id = mixed
    desk.settings = SETTINGS.model_copy(update={"group_consumer_migration_policy": policy})
    desk.restart()
    kept = desk.has(member_id, 2)
    assert desk.beat("new", -1).error_code == 0
    assert desk.listed()[0][2] == "consumer"
    # A group of classic members alone in the consumer protocol goes on, and sees what changes.
    assert desk.beats(member_id, 2) == ErrorCode.REBALANCE_IN_PROGRESS
    assert desk.joins(member_id, kept).generation_id == 3
    assert desk.has(member_id, 3) == [0, 1, 2, 3]
    assert desk.beats(member_id, 3) == 0
    desk.topics.put(Topic("other", b"x" * 16, 4))
    assert desk.beats(member_id, 3) == 0
    desk.topics.put(Topic("orders", ORDERS.topic_id, 5))
    assert desk.beats(member_id, 3) == ErrorCode.REBALANCE_IN_PROGRESS
    assert desk.joins(member_id, [0, 1, 2, 3]).generation_id == 4
    assert desk.has(member_id, 4) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("settings", [{"group_max_size": 1}, {"group_max_record_bytes": 1}])
def test_a_group_that_is_too_large_to_be_a_classic_one(
    mixed: tuple[MixedDesk, str], settings: dict[str, Any]
) -> None:
    desk, _ = mixed
    desk.joins("b")
    desk.settings = SETTINGS.model_copy(update=settings)
    desk.restart()
    assert desk.beat("new", -1).error_code == 0
    assert desk.listed()[0][2] == "consumer"


# ---- static members ----


def test_a_static_member_comes_back_with_the_other_protocol_and_goes_on(desk: MixedDesk) -> None:
    ids = desk.classic_group("a", "static-b")
    back = desk.beat("new", 0, instance_id="static-b")
    assert (back.error_code, partitions(back)) == (0, [1, 3])
    assert desk.beats(ids["static-b"], 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert desk.beats(ids["static-b"], 1, "static-b") == ErrorCode.FENCED_INSTANCE_ID
    assert desk.beats(ids["a"], 1) == 0
    assert desk.listed() == [("g", "Stable", "consumer")]
    # And back: nobody has to move, so there is no rebalance, and the group is a classic one.
    assert desk.beat("new", -2, instance_id="static-b").error_code == 0
    joined = desk.joins("", group_instance_id="static-b")
    assert (joined.error_code, joined.generation_id) == (0, 1)
    # It leads, so that somebody watches the topics, and assigns nothing (KIP-814).
    assert (joined.leader, joined.skip_assignment) == (joined.member_id, True)
    assert {one.member_id for one in joined.members} == {ids["a"], joined.member_id}
    assert desk.listed() == [("g", "Stable", "classic")]
    assert desk.has(joined.member_id, 1) == [1, 3]
    assert desk.beats(ids["a"], 1) == 0
    assert desk.beats(joined.member_id, 1) == 0
    desk.restart()
    assert desk.beats(joined.member_id, 1, "static-b") == 0


def test_a_static_member_need_not_have_left_to_come_back_as_a_classic_one(
    mixed: tuple[MixedDesk, str],
) -> None:
    desk, _ = mixed
    desk.beat("c", 0, instance_id="i")
    joined = desk.joins("", group_instance_id="i")
    assert joined.error_code == 0
    assert desk.beat("c", 3, instance_id="i").error_code == ErrorCode.FENCED_INSTANCE_ID
    assert desk.joins("c", group_instance_id="i").error_code == ErrorCode.FENCED_INSTANCE_ID
    again = desk.joins("", group_instance_id="i")
    assert again.member_id != joined.member_id
    assert desk.listed()[0][2] == "consumer"


def test_a_static_member_that_comes_back_with_other_topics_begins_a_rebalance(desk: MixedDesk) -> None:
    ids = desk.classic_group("a", "static-b")
    desk.beat("new", 0, instance_id="static-b")
    joined = desk.joins("", group_instance_id="static-b", topics=["orders", "other"])
    assert (joined.error_code, joined.generation_id) == (0, 0)
    assert desk.listed() == [("g", "PreparingRebalance", "classic")]
    assert desk.beats(ids["a"], 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert desk.syncs(joined.member_id, 0).error_code == ErrorCode.ILLEGAL_GENERATION


def test_a_static_member_that_comes_back_while_others_move_begins_a_rebalance(desk: MixedDesk) -> None:
    """Else one member would get what another has not given up."""
    ids = desk.classic_group("a", "static-b", share={"a": [0, 1, 2, 3], "static-b": []})
    topics = ["orders", "other"]
    assert desk.beat("new", 0, instance_id="static-b", subscribed_topic_names=topics).member_epoch == 2
    assert desk.joins("", group_instance_id="static-b", topics=topics).generation_id == 2
    assert desk.listed() == [("g", "PreparingRebalance", "classic")]
    assert desk.beats(ids["a"], 1) == ErrorCode.ILLEGAL_GENERATION


def test_a_static_member_alone_and_without_topics_comes_back_as_a_classic_one(desk: MixedDesk) -> None:
    """Its group has no epoch yet."""
    desk.beat("new", 0, instance_id="i", subscribed_topic_names=[])
    assert desk.joins("", group_instance_id="i", topics=[]).error_code == 0
    assert desk.listed() == [("g", "Stable", "classic")]


def test_an_operator_removes_a_static_member_by_its_instance_id(mixed: tuple[MixedDesk, str]) -> None:
    desk, _ = mixed
    desk.joins("", group_instance_id="i")
    assert desk.leaves("", instance_id="j") == [ErrorCode.UNKNOWN_MEMBER_ID]
    assert desk.leaves("c", instance_id="i") == [ErrorCode.FENCED_INSTANCE_ID]
    assert desk.leaves("", instance_id="i") == [0]


def test_a_group_as_large_as_a_classic_one_may_be_is_downgraded(mixed: tuple[MixedDesk, str]) -> None:
    desk, _ = mixed
    desk.settings = SETTINGS.model_copy(update={"group_max_size": 1})
    desk.restart()
    assert desk.beat("new", -1).error_code == 0
    assert desk.listed()[0][2] == "classic"


def test_who_says_no_rebalance_timeout_keeps_its_own_or_has_its_session(mixed: tuple[MixedDesk, str]) -> None:
    desk, member_id = mixed
    assert desk.joins(member_id, [0, 1], rebalance_timeout_ms=-1).error_code == 0
    assert desk.joins("b", rebalance_timeout_ms=-1).error_code == 0
    desk.beat("new", -1)
    value = records.decode_group_value(desk.log[-1][1] or b"")
    found = {one.member_id: one.rebalance_timeout for one in value.members}
    assert found == {member_id: REBALANCE_MS, "b": SESSION_MS}


def test_a_dynamic_member_that_becomes_a_classic_one_downgrades_nothing(desk: MixedDesk) -> None:
    desk.beat("m", 0)
    assert desk.joins("m", [0, 1, 2, 3]).error_code == 0
    assert desk.listed()[0][2] == "consumer"


def test_who_left_before_the_group_was_upgraded_has_not_left_the_one_that_it_becomes_again(
    desk: MixedDesk,
) -> None:
    ids = desk.classic_group("a", "b")
    desk.leaves(ids["b"])
    desk.beat("new", 0)
    desk.events.clear()
    desk.beat("new", -1)
    joined = desk.joins(ids["a"])
    assert desk.syncs(ids["a"], joined.generation_id).error_code == 0
    [entry] = [one for one in desk.events if isinstance(one, JournalEntry)]
    assert (entry.members_before, entry.left) == ((ids["a"],), {})
