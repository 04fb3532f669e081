"""Requests of classic members in a group of the consumer protocol: the checks, the steps, and the timers."""

from __future__ import annotations

from typing import Any

import pytest

from ringleader.coordinator.consumer_groups.topics import Topic
from ringleader.protocol.embedded import Subscription
from ringleader.protocol.errors import ErrorCode
from tests.coordinator.groups.mixed_desk import (
    REBALANCE_MS,
    SESSION_MS,
    SETTINGS,
    MixedDesk,
    behind,
    mixed_group,
    with_settings,
)
from tests.coordinator.groups.test_consumer import ORDERS, Ticket, partitions


@pytest.fixture
def desk() -> MixedDesk:
    return MixedDesk(SETTINGS)


@pytest.fixture
def mixed(desk: MixedDesk) -> tuple[MixedDesk, str]:
    """See `mixed_group`."""
    return desk, mixed_group(desk)


def described_members(desk: MixedDesk) -> list[str]:
    """The ids of the members, without a request of theirs."""
    described = desk.shard.describe_consumer("g", Ticket())
    assert described is not None
    return [one.member_id for one in described.members]


def test_a_new_classic_member_gets_an_id_that_is_not_remembered(mixed: tuple[MixedDesk, str]) -> None:
    desk, _ = mixed
    before = len(desk.log)
    given = desk.ask(desk.join_request(""), 9)
    assert (given.error_code, given.generation_id) == (ErrorCode.MEMBER_ID_REQUIRED, -1)
    assert len(desk.log) == before
    assert desk.leaves(given.member_id) == [ErrorCode.UNKNOWN_MEMBER_ID]
    joined = desk.joins(given.member_id)
    assert (joined.error_code, joined.generation_id) == (0, 3)
    assert desk.has(given.member_id, 3) == []
    assert desk.joins("", version=3).error_code == 0
    assert desk.joins("", group_instance_id="i").error_code == 0


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"names": ("other",)}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"names": ()}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"metadata": b"\0"}, ErrorCode.UNKNOWN_SERVER_ERROR),
        ({"group_instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"owned": [0]}, ErrorCode.UNKNOWN_MEMBER_ID),  # it was removed, and does not know
        ({"session_timeout_ms": 1}, ErrorCode.INVALID_SESSION_TIMEOUT),
    ],
)
def test_a_join_that_is_refused(mixed: tuple[MixedDesk, str], more: dict[str, Any], error: ErrorCode) -> None:
    desk, _ = mixed
    before = len(desk.log)
    assert desk.joins("somebody", **more).error_code == error
    assert len(desk.log) == before


def test_a_full_group_and_its_known_members() -> None:
    desk = with_settings(group_consumer_max_size=2)
    ids = desk.classic_group("a")
    assert desk.beat("new", 0).error_code == 0
    assert desk.joins("somebody").error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert desk.joins("").error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert desk.joins(ids["a"]).error_code == 0


def test_the_first_protocol_is_the_members_own(mixed: tuple[MixedDesk, str]) -> None:
    desk, member_id = mixed
    assert desk.joins(member_id, [0, 1], names=("range", "roundrobin")).protocol_name == "range"
    assert desk.joins("b", names=("x", "range")).protocol_name == "x"
    assert desk.joins("c", names=("roundrobin", "x")).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_checks_of_a_sync(mixed: tuple[MixedDesk, str]) -> None:
    desk, member_id = mixed
    for member, generation, more, error in (
        ("nobody", 2, {}, ErrorCode.UNKNOWN_MEMBER_ID),
        ("new", 2, {}, ErrorCode.UNKNOWN_MEMBER_ID),  # it is of the other protocol
        (member_id, 2, {"group_instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
        (member_id, 1, {"protocol_name": "x"}, ErrorCode.ILLEGAL_GENERATION),
        (member_id, 3, {}, ErrorCode.ILLEGAL_GENERATION),
        (member_id, 2, {"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (member_id, 2, {"protocol_name": "x"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ):
        assert desk.syncs(member, generation, **more).error_code == error
    done = desk.syncs(member_id, 2, protocol_type="consumer", protocol_name="range")
    assert (done.protocol_type, done.protocol_name) == ("consumer", "range")
    desk.topics.put(Topic("orders", ORDERS.topic_id, 6))
    assert desk.beat("new", 2).member_epoch == 3
    assert desk.syncs(member_id, 2).error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_an_assignment_is_in_the_version_of_the_members_metadata(mixed: tuple[MixedDesk, str]) -> None:
    desk, member_id = mixed
    for version in (0, 1, 3):
        metadata = Subscription(["orders"], owned_partitions={"orders": [0, 1]}).encode(version)
        generation = desk.joins(member_id, metadata=metadata).generation_id
        assert desk.syncs(member_id, generation).assignment[:2] == version.to_bytes(2, "big")


def test_checks_of_a_heartbeat(mixed: tuple[MixedDesk, str]) -> None:
    desk, member_id = mixed
    assert desk.beats("nobody", 2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert desk.beats("new", 2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert desk.beats(member_id, 2, "i") == ErrorCode.UNKNOWN_MEMBER_ID
    assert desk.beats(member_id, 1) == ErrorCode.ILLEGAL_GENERATION
    before = len(desk.log)
    assert desk.beats(member_id, 2) == 0
    assert len(desk.log) == before


def test_a_member_that_waits_is_asked_when_all_that_it_waits_for_is_free(desk: MixedDesk) -> None:
    desk.beat("new", 0)
    joined = desk.joins("a")
    assert (joined.generation_id, desk.has("a", 3)) == (3, [])
    assert desk.beats("a", 3) == 0
    kept = partitions(desk.beat("new", 2)) or []
    assert desk.beats("a", 3) == 0
    desk.beat("new", 2, kept)
    behind(desk, "a", 3)
    desk.joins("a")
    assert sorted(desk.has("a", 3) + kept) == [0, 1, 2, 3]


def test_whose_commit_counts(mixed: tuple[MixedDesk, str]) -> None:
    desk, member_id = mixed
    kept = desk.has(member_id, 2)
    other = min({0, 1, 2, 3}.difference(kept))
    for version in (2, 8, 9):
        assert desk.commit(member_id, 2, *kept, other, version=version) == [0, 0, 0]
    illegal = int(ErrorCode.ILLEGAL_GENERATION)
    assert desk.commit(member_id, 3, *kept) == [illegal, illegal]
    # Of an older generation: for what it has had since then (KIP-1251).
    assert desk.commit(member_id, 1, *kept, version=8) == [0, 0]
    assert desk.commit(member_id, 1, *kept, other, version=8) == [illegal, illegal, illegal]
    assert desk.commit(member_id, -1, kept[0]) == [illegal]
    assert desk.commit("", -1, kept[0]) == [ErrorCode.UNKNOWN_MEMBER_ID]


def test_a_member_changes_its_protocol_in_its_place(mixed: tuple[MixedDesk, str]) -> None:
    desk, member_id = mixed
    kept = desk.has(member_id, 2)
    changed = desk.beat(member_id, 0)
    assert (changed.error_code, partitions(changed)) == (0, kept)
    assert desk.beats(member_id, 2) == ErrorCode.UNKNOWN_MEMBER_ID
    back = desk.joins(member_id, kept)
    assert (back.error_code, back.generation_id) == (0, 2)
    assert desk.has(member_id, 2) == kept
    assert desk.listed() == [("g", "Stable", "consumer")]


def test_other_topics_begin_another_epoch(mixed: tuple[MixedDesk, str]) -> None:
    desk, member_id = mixed
    kept = desk.has(member_id, 2)
    joined = desk.joins(member_id, kept, topics=["other"])
    assert joined.generation_id == 2
    assert desk.has(member_id, 2) == []
    assert desk.joins(member_id, topics=["other"]).generation_id == 3
    assert partitions(desk.beat("new", 2)) == [0, 1, 2, 3]


def behind_the_interval(desk: MixedDesk) -> None:
    """From here on a target is computed a second after the last one."""
    desk.settings = SETTINGS.model_copy(update={"group_consumer_assignment_interval_ms": 1_000})
    desk.restart()


def test_a_member_is_asked_to_join_when_there_is_another_target(mixed: tuple[MixedDesk, str]) -> None:
    desk, member_id = mixed
    behind_the_interval(desk)
    assert desk.beat("other", 0).error_code == 0
    assert desk.beats(member_id, 2) == 0
    desk.wait(1_000)
    desk.beat("new", 2)
    behind(desk, member_id, 2)


def test_a_member_is_asked_to_join_while_it_has_partitions_to_give_up(mixed: tuple[MixedDesk, str]) -> None:
    desk, member_id = mixed
    kept = desk.has(member_id, 2)
    behind_the_interval(desk)
    assert desk.joins(member_id, kept, topics=["other"]).generation_id == 2
    behind(desk, member_id, 2)


# ---- timers of classic members ----


def test_the_session_of_a_classic_member_is_its_own(mixed: tuple[MixedDesk, str]) -> None:
    desk, member_id = mixed
    desk.wait(SESSION_MS - 1)
    assert desk.beats(member_id, 2) == 0
    desk.wait(SESSION_MS - 1)
    assert desk.beats(member_id, 2) == 0
    desk.wait(SESSION_MS)
    assert desk.beats(member_id, 2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert partitions(desk.beat("new", 2)) == [0, 1, 2, 3]


@pytest.mark.parametrize("request_of", ["JoinGroup", "SyncGroup", "Heartbeat"])
def test_each_request_of_a_classic_member_starts_its_session_afresh(
    mixed: tuple[MixedDesk, str], request_of: str
) -> None:
    desk, member_id = mixed
    kept = desk.has(member_id, 2)
    desk.wait(SESSION_MS - 1)
    if request_of == "JoinGroup":
        assert desk.joins(member_id, kept).error_code == 0
    elif request_of == "SyncGroup":
        assert desk.syncs(member_id, 2).error_code == 0
    else:
        assert desk.beats(member_id, 2) == 0
    desk.wait(SESSION_MS - 1)
    assert member_id in described_members(desk)
    desk.wait(1)
    assert member_id not in described_members(desk)


@pytest.mark.parametrize("how", ["loaded", "store is not full any more"])
@pytest.mark.parametrize("session_ms", [SESSION_MS, 10 * SESSION_MS])
def test_a_session_that_starts_afresh_is_as_long_as_its_member_asked_for(
    mixed: tuple[MixedDesk, str], how: str, session_ms: int
) -> None:
    """Shorter or longer than what the group gives a member of the consumer protocol."""
    desk, member_id = mixed
    generation = desk.joins(member_id, [0, 1], session_timeout_ms=session_ms).generation_id
    desk.syncs(member_id, generation)
    if how == "loaded":
        desk.restart()
    else:
        desk.shard.set_full(True, desk.now_ms)
        desk.wait(SESSION_MS - 1)
        desk.shard.set_full(False, desk.now_ms)
    left_ms = session_ms
    while left_ms > REBALANCE_MS:
        desk.wait(REBALANCE_MS)
        desk.beat("new", generation)
        left_ms -= REBALANCE_MS
    desk.wait(left_ms - 1)
    desk.beat("new", generation)
    assert member_id in described_members(desk)
    desk.wait(1)
    assert member_id not in described_members(desk)


def test_who_is_asked_to_join_again_has_its_rebalance_timeout_for_that(mixed: tuple[MixedDesk, str]) -> None:
    desk, member_id = mixed
    desk.topics.put(Topic("orders", ORDERS.topic_id, 6))
    desk.beat("new", 2)
    behind(desk, member_id, 2)
    for _ in range(5):  # further heartbeats do not give it more time
        desk.wait(REBALANCE_MS // 5 - 1)
        behind(desk, member_id, 2)
    desk.wait(5)
    assert desk.beats(member_id, 2) == ErrorCode.UNKNOWN_MEMBER_ID


def test_who_joined_again_in_time_is_not_removed(mixed: tuple[MixedDesk, str]) -> None:
    desk, member_id = mixed
    desk.topics.put(Topic("orders", ORDERS.topic_id, 6))
    desk.beat("new", 2)
    behind(desk, member_id, 2)
    kept = desk.joins(member_id, [0, 1, 2, 3]).generation_id
    desk.has(member_id, kept)
    for _ in range(4):
        desk.wait(SESSION_MS - 1)
        assert desk.beats(member_id, kept) == 0


def test_who_joined_has_its_rebalance_timeout_to_sync(mixed: tuple[MixedDesk, str]) -> None:
    desk, member_id = mixed
    generation = desk.joins(member_id, desk.has(member_id, 2)).generation_id
    for _ in range(3):
        desk.wait(REBALANCE_MS // 3 - 1)
        assert desk.beats(member_id, generation) == 0
    desk.wait(3)
    assert desk.beats(member_id, generation) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_member_that_became_one_of_the_consumer_protocol_owes_no_join(mixed: tuple[MixedDesk, str]) -> None:
    desk, member_id = mixed
    desk.topics.put(Topic("orders", ORDERS.topic_id, 6))
    desk.beat("new", 2)
    behind(desk, member_id, 2)
    assert desk.beat(member_id, 0).error_code == 0
    desk.wait(REBALANCE_MS)
    assert desk.beat(member_id, 3).error_code == 0


# ---- a full store ----


def test_a_full_store_refuses_before_anything_changes(mixed: tuple[MixedDesk, str]) -> None:
    desk, member_id = mixed
    desk.shard.set_full(True, desk.now_ms)
    before = len(desk.log)
    assert desk.joins(member_id).error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert desk.beats(member_id, 2) == 0
    assert len(desk.log) == before
