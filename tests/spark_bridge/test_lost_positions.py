"""A position that the log has no more, with failOnDataLoss=false: the group is given the position where the
query goes on, wherever that came from."""

from __future__ import annotations

from typing import Any

import pytest

from ringleader.spark_bridge.errors import DataLossError
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


def test_a_topic_made_again_while_another_member_had_its_partition_is_no_loss() -> None:
    world = World(10)
    world.assign(0)
    world.plan()
    world.plan()
    world.assign()
    world.log.ids["t"], world.log.end["t", 0] = b"2" * 16, 5
    world.reset(0, 3)
    world.assign(0)
    assert world.plan() == {0: (3, 5)}


def test_a_topic_made_again_that_is_longer_than_the_former_one_is_noticed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """By its id: offsets are no help. A broker that is late tells of the former one once more."""
    world = World(10)
    world.assign(0)
    world.plan()
    world.log.ids["t"], world.log.end["t", 0] = b"2" * 16, 30
    with pytest.raises(DataLossError, match="topic of t-0, read up to offset 10, was deleted and made again"):
        world.plan()
    world = World(10, **KEPT)
    world.assign(0)
    world.plan()
    world.log.ids["t"], world.log.end["t", 0] = b"2" * 16, 30
    assert world.plan() == {0: (0, 30)}
    world.log.ids["t"] = b"1" * 16
    assert world.plan() is None
    world.log.ids["t"] = b"2" * 16
    world.log.end["t", 0] = 31
    assert world.plan() == {0: (30, 31)}
    assert caplog.text.count("was deleted and made again") == 1


def test_a_loss_is_logged_once_though_the_log_stays_empty(caplog: pytest.LogCaptureFixture) -> None:
    world = World(10, **KEPT)
    world.assign(0)
    world.plan()
    world.plan()
    world.log.start["t", 0] = world.log.end["t", 0] = 4
    for _ in range(3):
        assert world.plan() is None
    assert caplog.text.count("t-0 should go on at offset 10") == 1
