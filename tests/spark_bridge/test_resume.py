"""Where a partition starts, and what a replayed batch reads: the whole table of cases."""

from __future__ import annotations

import pytest

from ringleader.spark_bridge.sharing.offsets import OffsetRange
from ringleader.spark_bridge.sharing.resume import Reason, ReplayPolicy, commit_after_replay, replay, resume

LAST = OffsetRange(100, 150)


@pytest.mark.parametrize(
    ("committed", "finished", "remembered", "expected"),
    [
        (100, LAST, None, (150, True, Reason.REPAIRED)),
        (149, LAST, 150, (150, True, Reason.REPAIRED)),
        (150, LAST, 150, (150, False, Reason.COMMITTED)),
        (900, LAST, 150, (900, False, Reason.COMMITTED)),
        (99, LAST, 150, (99, False, Reason.RESET)),
        (0, LAST, 150, (0, False, Reason.RESET)),
        (7, None, 150, (7, False, Reason.COMMITTED)),
        (None, LAST, 150, (150, True, Reason.REPAIRED)),
        (None, None, 40, (40, True, Reason.REMEMBERED)),
        (None, None, 0, (0, True, Reason.REMEMBERED)),
        (None, None, None, (None, True, Reason.STARTING)),
    ],
)
def test_where_a_gained_partition_starts(
    committed: int | None,
    finished: OffsetRange | None,
    remembered: int | None,
    expected: tuple[int | None, bool, Reason],
) -> None:
    assert resume(committed, finished, remembered) == expected


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
