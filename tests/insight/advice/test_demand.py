"""Members that a group would use, by the lag of its partitions."""

from __future__ import annotations

import pytest

from ringleader.insight.advice.demand import demand
from ringleader.insight.model import Lag


def behind(*lags: int | None, topic: str = "t", at_ms: int = 1_000) -> list[Lag]:
    """One partition for each; None: it has committed nothing."""
    return [
        Lag("g", topic, number, at_ms, 500_000, None if lag is None else 500_000 - lag)
        for number, lag in enumerate(lags)
    ]


@pytest.mark.parametrize(
    ("lags", "members", "lag"),
    [
        ((0, 0, 0), 0, 0),
        ((1, 0, 0), 1, 1),
        ((100_000, 0, 0), 1, 100_000),  # by its lag alone it would be 1,000
        ((99, 1, 0), 1, 100),
        ((99, 2, 0), 2, 101),
        ((100, 100, 1), 3, 201),
        ((60, 60, 60), 2, 180),
        ((None, None, 0), 1, 0),
        ((None, 100, 100), 2, 200),
        ((-5, 0, 0), 0, 0),  # the topic was made anew
    ],
)
def test_each_partition_that_is_far_behind_takes_one_member(
    lags: tuple[int | None, ...], members: int, lag: int
) -> None:
    found = demand(behind(*lags), 100)
    assert (found.members, found.lag, found.at_ms) == (members, lag, 1_000)


def test_only_the_newest_measurement_counts() -> None:
    rows = [*behind(900, 900), *behind(0, 20, at_ms=2_000)]
    assert demand(rows, 10) == (1, 20, 2_000)


def test_topics_may_be_chosen() -> None:
    rows = [*behind(50, 50), *behind(10, topic="u")]
    assert demand(rows, 10).members == 3
    assert demand(rows, 10, frozenset({"u"})) == (1, 10, 1_000)
    assert demand(rows, 10, frozenset({"v"})) == (0, 0, None)


def test_an_empty_partition_without_a_commit_needs_nobody() -> None:
    assert demand([Lag("g", "t", 0, 1, 0, None)], 10) == (0, 0, 1)
