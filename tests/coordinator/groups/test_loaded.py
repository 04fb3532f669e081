"""Groups whose records a coordinator wrote that evaluates regular expressions."""

from __future__ import annotations

import pytest

from ringleader.coordinator.consumer_groups import records
from ringleader.coordinator.consumer_groups.group import ConsumerGroup, Regex
from ringleader.coordinator.consumer_groups.member import Subscription
from tests.coordinator.groups.test_consumer import Desk, Ticket

PATTERN = "ord.*"
FOUND = Regex(frozenset({"orders"}), 1, 1)
TOMBSTONE = (records.key(records.REGEX, "g", PATTERN), None)


@pytest.fixture
def desk() -> Desk:
    """Members a and b subscribe by the same expression."""
    desk = Desk()
    group = ConsumerGroup("g", epoch=3, assignment_epoch=3)
    for member_id in "ab":
        group.subscribe(member_id, Subscription(rebalance_timeout_ms=30_000, topic_regex=PATTERN))
    group.resolve(PATTERN, FOUND)
    desk.log += records.all_records(group)
    desk.restart()
    return desk


def test_an_expression_goes_with_the_last_member_that_asks_for_it(desk: Desk) -> None:
    start = len(desk.log)
    assert desk.beat("a", -1).error_code == 0
    assert TOMBSTONE not in desk.log[start:]
    assert desk.beat("b", -1).error_code == 0
    assert TOMBSTONE in desk.log[start:]


def test_another_expression_is_another_subscription(desk: Desk) -> None:
    epochs = []
    for pattern in (PATTERN, ""):
        joined = desk.beat("a", 0, subscribed_topic_names=[], subscribed_topic_regex=pattern)
        assert joined.error_code == 0
        described = desk.shard.describe_consumer("g", Ticket())
        assert described is not None
        epochs.append(described.group_epoch)
    assert epochs[1] == epochs[0] + 1


def test_a_group_of_which_an_expression_alone_is_left_is_there() -> None:
    desk = Desk()
    desk.log.append(records.regex("g", PATTERN, FOUND))
    desk.restart()
    assert desk.listed() == [("g", "Empty", "consumer")]
