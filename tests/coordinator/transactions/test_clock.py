"""A clock that jumps for a moment makes no transactional id expire, and aborts no transaction."""

from __future__ import annotations

import pytest

from ringleader.coordinator.transactions.machine import TransactionShard
from ringleader.coordinator.transactions.settings import TransactionSettings
from tests.support.topiclog import START_MS

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
STEP_MS = 5_000


def shard_with_an_id() -> TransactionShard:
    """Loaded at 0, with one idle transactional id from then."""
    shard = TransactionShard(TransactionSettings())
    shard.loaded(0, START_MS)
    shard.init_producer_id("t", 1_000, None, 1, object(), 0)
    shard.durable(max(one.position for one in shard.drain().appends), 0)
    return shard


def live(shard: TransactionShard, begin_ms: int, end_ms: int, ahead_ms: int = 0) -> None:
    """Time passes; the wall clock is ahead by so much."""
    for now_ms in range(begin_ms, end_ms, STEP_MS):
        shard.set_wall_clock(now_ms, START_MS + now_ms + ahead_ms)
        shard.tick(now_ms)
        for one in shard.drain().appends:
            shard.durable(one.position, now_ms)


@pytest.mark.parametrize("ahead_ms", [8 * DAY_MS, -8 * DAY_MS, 10_000 * DAY_MS])
def test_a_moment_of_another_time_forgets_nothing(ahead_ms: int) -> None:
    shard = shard_with_an_id()
    live(shard, 0, HOUR_MS)
    live(shard, HOUR_MS, HOUR_MS + STEP_MS, ahead_ms)  # the cleanup is due
    live(shard, HOUR_MS + STEP_MS, 3 * HOUR_MS)
    assert shard.find("t") is not None


def test_an_id_used_while_the_clock_was_behind_is_as_young_as_it_is() -> None:
    shard = TransactionShard(TransactionSettings())
    shard.loaded(0, START_MS)
    live(shard, 0, STEP_MS)
    shard.set_wall_clock(STEP_MS, START_MS - 8 * DAY_MS)
    shard.init_producer_id("t", 1_000, None, 1, object(), STEP_MS)
    live(shard, 2 * STEP_MS, 3 * HOUR_MS)
    assert shard.find("t") is not None


def test_unused_transactional_ids_are_forgotten() -> None:
    shard = shard_with_an_id()
    live(shard, 0, HOUR_MS)
    live(shard, HOUR_MS, 3 * HOUR_MS, 8 * DAY_MS)  # the clock stays there
    assert shard.find("t") is None
