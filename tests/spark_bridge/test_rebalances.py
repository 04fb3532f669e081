"""The log lines of rebalances."""

from __future__ import annotations

import logging

import pytest

from ringleader.spark_bridge.group.rebalances import Rebalances, listed

T = [("t", number) for number in range(4)]


def share(*numbers: int) -> frozenset[tuple[str, int]]:
    return frozenset(("t", number) for number in numbers)


@pytest.fixture(autouse=True)
def everything(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ringleader.spark")


def test_one_line_when_the_last_member_has_its_share(caplog: pytest.LogCaptureFixture) -> None:
    rebalances = Rebalances("g", 2)
    rebalances.assigned(0, 3, "cooperative-sticky", True, share(0, 1))
    assert caplog.messages == []
    rebalances.assigned(1, 3, "cooperative-sticky", False, share(2))
    assert caplog.messages == [
        "group g, generation 3 (cooperative-sticky): owns t-0,1,2 as 2 members (t-0,1 | t-2); came: t-0,1,2; "
        "went: nothing"
    ]


def test_what_went_why_and_how_long_the_batch_in_flight_took(caplog: pytest.LogCaptureFixture) -> None:
    rebalances = Rebalances("g", 1)
    rebalances.assigned(0, 1, "range", True, share(0, 1, 2))
    caplog.clear()
    rebalances.revoked("the group is rebalancing")
    rebalances.revoked("the group is rebalancing")
    rebalances.waited(0.2)
    rebalances.waited(1.25)
    rebalances.waited(0.1)
    rebalances.assigned(0, 2, "range", True, share(1, 3))
    assert caplog.messages == [
        "group g, generation 2 (range, led by this query): owns t-1,3; came: t-3; went: t-0,2 after 1.2 s "
        "for the batch in flight (the group is rebalancing)"
    ]
    rebalances.assigned(0, 3, "range", True, share(1, 3))
    assert caplog.messages[-1].endswith("came: nothing; went: nothing")


def test_a_partition_that_moves_between_members_of_the_query_neither_came_nor_went(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rebalances = Rebalances("g", 2)
    rebalances.assigned(0, 1, "cooperative-sticky", False, share(0, 1))
    rebalances.assigned(1, 1, "cooperative-sticky", False, share())
    rebalances.assigned(0, 2, "cooperative-sticky", False, share(0))
    rebalances.assigned(1, 2, "cooperative-sticky", False, share(1))
    assert caplog.messages[-1].endswith("(t-0 | t-1); came: nothing; went: nothing")


def test_a_loss_is_a_warning_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    rebalances = Rebalances("g", 1)
    rebalances.assigned(0, 1, "range", False, share(0, 1))
    rebalances.lost(0, T[:2], "removed: silent for 10.2 s, session timeout 10 s")
    assert caplog.records[-1].levelno == logging.WARNING
    assert "group g took t-0,1 away without waiting for the batch in flight: removed: silent" in caplog.text


def test_partitions_are_listed_by_topic() -> None:
    assert listed([("b", 1), ("a", 10), ("a", 2)]) == "a-2,10 b-1"
    assert listed([]) == "nothing"
