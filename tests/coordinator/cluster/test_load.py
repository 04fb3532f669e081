"""The cost of a partition, smoothed, and when the controller looks at it."""

from __future__ import annotations

from dataclasses import replace

from ringleader.coordinator.cluster.load import (
    LOOK_INTERVAL_S,
    SMOOTHED_OVER,
    STANDSTILL,
    STANDSTILL_S,
    Load,
)
from ringleader.coordinator.cluster.map import ClusterMap

AT_REST = ClusterMap(1, 1, (), (1,))
MOVING = replace(AT_REST, moving={0: 2})


def test_records_count_per_second_and_from_the_second_measurement_on() -> None:
    load = Load(0.25)
    load.measure({1: (10, 5_000)})
    assert load.by_partition == {1: 10}
    load.measure({1: (10, 5_100)})
    assert load.by_partition == {1: 10 + 400 / SMOOTHED_OVER}
    load.measure({2: (3, 70)})
    assert load.by_partition == {2: 3}


def test_planned_moves_stand_still_when_no_map_came_for_a_while() -> None:
    load = Load(0.25)
    load.look(MOVING, 1.0)
    load.follow(100.0)
    assert load.look(MOVING, 100.0 + STANDSTILL_S - 1) == ""
    assert load.look(AT_REST, 100.0 + STANDSTILL_S) == ""
    assert load.look(MOVING, 100.0 + STANDSTILL_S) == STANDSTILL
    assert load.look(MOVING, 100.0 + STANDSTILL_S) == ""


def test_load_is_looked_at_now_and_then() -> None:
    load = Load(0.25)
    looks = [load.look(AT_REST, 1_000 + second * LOOK_INTERVAL_S / 2) for second in range(5)]
    assert [bool(one) for one in looks] == [False, False, True, False, True]
