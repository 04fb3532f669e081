"""Where a partition starts, and what a replayed batch reads: the whole table of cases."""

from __future__ import annotations

import pytest

from ringleader.spark_bridge.batch.resume import Finished, Reason, commit_after_replay, replay, resume
from ringleader.spark_bridge.values import Committed, CommitToken, OffsetRange, ReplayPolicy
from tests.spark_bridge.fakes import World

LAST = OffsetRange(100, 150)
BATCH = Finished(LAST, CommitToken("us", 7))
OURS, LATER, OTHERS = CommitToken("us", 6), CommitToken("us", 7), CommitToken("them", 6)


@pytest.mark.parametrize(
    ("committed", "finished", "remembered", "expected"),
    [
        # Nobody has set the offset since: the commit of the batch was lost.
        (Committed(100, OURS), BATCH, None, (150, True, Reason.REPAIRED)),
        (Committed(149, OURS), BATCH, 150, (150, True, Reason.REPAIRED)),
        (None, BATCH, 150, (150, True, Reason.REPAIRED)),
        # Somebody has: a tool without metadata, another query, this query after it had seen a reset.
        (Committed(100), BATCH, 150, (100, True, Reason.RESET)),
        (Committed(120, OTHERS), BATCH, 150, (120, True, Reason.RESET)),
        (Committed(120, LATER), BATCH, 150, (120, False, Reason.RESET)),
        (Committed(99), BATCH, 150, (99, True, Reason.RESET)),
        (Committed(0, OURS), BATCH, 150, (0, False, Reason.RESET)),
        (Committed(150, LATER), BATCH, 150, (150, False, Reason.COMMITTED)),
        (Committed(150), BATCH, 150, (150, True, Reason.COMMITTED)),
        (Committed(900, OTHERS), BATCH, 150, (900, True, Reason.COMMITTED)),
        (Committed(7), None, 150, (7, True, Reason.COMMITTED)),
        (Committed(7, OURS), None, 150, (7, False, Reason.COMMITTED)),
        (None, None, 40, (40, True, Reason.REMEMBERED)),
        (None, None, 0, (0, True, Reason.REMEMBERED)),
        (None, None, None, (None, True, Reason.STARTING)),
    ],
)
def test_where_a_gained_partition_starts(
    committed: Committed | None,
    finished: Finished | None,
    remembered: int | None,
    expected: tuple[int | None, bool, Reason],
) -> None:
    assert resume(committed, finished, remembered, "us") == expected


@pytest.mark.parametrize(
    ("owned", "committed", "read", "commit"),
    [
        (True, None, LAST, True),
        (True, 100, LAST, True),
        (True, 120, OffsetRange(120, 150), True),
        (True, 150, None, False),
        (True, 180, None, False),
        (True, 20, LAST, False),
        (False, 100, LAST, False),
        (False, 120, OffsetRange(120, 150), False),
        (False, 150, None, False),
        (False, None, LAST, False),
    ],
)
def test_a_clipped_replay_leaves_what_others_have_finished(
    owned: bool, committed: int | None, read: OffsetRange | None, commit: bool
) -> None:
    assert replay(LAST, committed, ReplayPolicy.CLIP) == read
    assert replay(LAST, committed, ReplayPolicy.EXACT) == LAST
    assert commit_after_replay(LAST, owned, committed) is commit


def test_the_numbers_of_commits_of_another_query_do_not_count() -> None:
    world = World(10, offsets={0: 5})
    world.tokens["t", 0] = 5, CommitToken("another", 50)
    world.assign(0)
    assert world.plan() == {0: (5, 10)}
    assert world.start["n"] == 1


def test_batches_of_another_query_do_not_count_among_those_of_this_one() -> None:
    world = World(10)
    world.offsets["t", 0], world.tokens["t", 0] = 4, (4, CommitToken("another query", 99))
    world.assign(0)
    assert world.plan() == {0: (4, 10)}
    assert world.start["n"] == 1


def test_available_now_reads_nothing_of_partitions_that_came_after_its_start() -> None:
    world = World(10)
    world.driver.prepare_available_now()
    world.log.end["t", 1] = 5
    world.assign(0, 1)
    assert world.plan() == {0: (0, 10)}
    assert world.plan() is None
    assert world.committed()[0] == 10
