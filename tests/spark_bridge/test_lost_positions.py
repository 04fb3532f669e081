"""A position that the log has no more, with failOnDataLoss=false: the group is given the position where the
query goes on, wherever that came from."""

from __future__ import annotations

from typing import Any

from tests.spark_bridge.fakes import World

KEPT: dict[str, Any] = {"failOnDataLoss": "false"}


def test_a_position_of_the_group_beyond_the_log_is_corrected_in_the_group() -> None:
    world = World(10, offsets={0: 300}, **KEPT)
    world.assign(0)
    assert world.plan() == {0: (0, 10)}
    assert world.committed() == {0: 0}


def test_a_position_of_the_group_before_the_log_is_corrected_in_the_group() -> None:
    world = World(10, offsets={0: 3}, **KEPT)
    world.log.start["t", 0] = 5
    world.assign(0)
    assert world.plan() == {0: (5, 10)}
    assert world.committed() == {0: 5}


def test_a_position_of_the_checkpoint_is_corrected_in_the_group() -> None:
    world = World(10, **KEPT)
    world.assign(0)
    world.plan()
    world.plan()
    world.offsets.clear()
    world.log.end["t", 0] = 4
    world.restart(0)
    assert world.plan() == {0: (0, 4)}
    assert world.committed() == {0: 0}


def test_the_end_of_a_batch_whose_commit_was_lost_is_corrected_in_the_group() -> None:
    world = World(10, **KEPT)
    world.assign(0)
    world.plan()
    world.log.end["t", 0] = 4
    world.restart(0)
    assert world.plan() == {0: (0, 4)}
    assert world.committed() == {0: 0}
    world.restart(0)
    assert world.plan() is None
    assert world.committed() == {0: 4}


def test_a_position_at_the_very_end_is_none_that_is_lost() -> None:
    world = World(10, offsets={0: 10})
    world.assign(0)
    assert world.plan() is None
    assert world.committed() == {0: 10}
