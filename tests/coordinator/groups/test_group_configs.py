"""Configurations of single groups: which are refused in which words, and what they do."""

from __future__ import annotations

import pytest

from ringleader.coordinator.consumer_groups.topics import Topic
from ringleader.coordinator.groups.configs import GroupConfigs, check
from ringleader.coordinator.groups.settings import GroupSettings
from ringleader.coordinator.groups.shard import Shard
from ringleader.protocol.errors import ErrorCode, KafkaError
from tests.coordinator.groups.test_consumer import ORDERS, Desk

SESSION, HEARTBEAT, ASSIGNMENT = (
    "consumer.session.timeout.ms",
    "consumer.heartbeat.interval.ms",
    "consumer.assignment.interval.ms",
)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"consumer.nothing": "1"}, "Unknown group config name: consumer.nothing"),
        ({SESSION: "long"}, f"Invalid value long for configuration {SESSION}: Not a number of type INT"),
        ({SESSION: None}, f"Invalid value None for configuration {SESSION}: Not a number of type INT"),
        (
            {SESSION: "44999"},
            f"{SESSION} must be greater than or equal to group.consumer.min.session.timeout.ms",
        ),
        (
            {SESSION: "60001"},
            f"{SESSION} must be less than or equal to group.consumer.max.session.timeout.ms",
        ),
        (
            {HEARTBEAT: "4999"},
            f"{HEARTBEAT} must be greater than or equal to group.consumer.min.heartbeat.interval.ms",
        ),
        (
            {HEARTBEAT: "15001"},
            f"{HEARTBEAT} must be less than or equal to group.consumer.max.heartbeat.interval.ms",
        ),
        (
            {ASSIGNMENT: "-1"},
            f"{ASSIGNMENT} must be greater than or equal to group.consumer.min.assignment.interval.ms",
        ),
    ],
)
def test_what_is_refused(values: dict[str, str | None], text: str) -> None:
    with pytest.raises(KafkaError) as raised:
        check(values, GroupSettings())
    assert (raised.value.code, raised.value.detail) == (ErrorCode.INVALID_CONFIG, text)


def test_a_session_is_longer_than_the_time_between_heartbeats() -> None:
    settings = GroupSettings(group_consumer_max_heartbeat_interval_ms=100_000)
    assert check({HEARTBEAT: "44999"}, settings) == {HEARTBEAT: 44_999}
    with pytest.raises(KafkaError, match=r"must be greater than consumer\.heartbeat"):
        check({HEARTBEAT: "45000"}, settings)
    assert check({HEARTBEAT: "45000", SESSION: "60000"}, settings) == {HEARTBEAT: 45_000, SESSION: 60_000}


class ConfiguredDesk(Desk):
    """With configurations of groups."""

    def _load(self) -> Shard:
        self.configs = getattr(self, "configs", None) or GroupConfigs()
        shard = Shard(0, self.settings, str, topics=self.topics, configs=self.configs)
        shard.replay(self.log)
        shard.loaded(self.now_ms, self.now_ms)
        return shard


def test_a_change_counts_from_the_next_heartbeat_on_for_this_group_alone() -> None:
    desk = ConfiguredDesk(GroupSettings())
    joined = desk.beat("a", 0)
    assert joined.heartbeat_interval_ms == 5_000
    desk.configs.apply({"g": {HEARTBEAT: 7_000, SESSION: 60_000}, "h": {HEARTBEAT: 9_000}})
    assert desk.beat("a", joined.member_epoch).heartbeat_interval_ms == 7_000
    desk.wait(59_999)
    assert desk.beat("a", joined.member_epoch).error_code == 0
    desk.wait(60_000)
    assert desk.beat("a", joined.member_epoch).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    desk.configs.apply({"g": None})
    joined = desk.beat("a", 0)
    assert joined.heartbeat_interval_ms == 5_000
    desk.restart()
    desk.wait(45_000)
    assert desk.beat("a", joined.member_epoch).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_changes_of_one_group_may_be_computed_at_once() -> None:
    for interval_ms, more in (("0", 1), ("15000", 0)):
        desk = ConfiguredDesk(GroupSettings())
        desk.configs.apply({"g": {ASSIGNMENT: int(interval_ms)}})
        first = desk.beat("a", 0)
        desk.topics.put(Topic("orders", ORDERS.topic_id, 5))
        second = desk.beat("a", first.member_epoch)
        assert second.member_epoch == first.member_epoch + more
