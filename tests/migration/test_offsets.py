"""From an offset of the daemon's log to that of the cluster's: the same record is read next."""

from __future__ import annotations

from bisect import bisect_left

from hypothesis import given
from hypothesis import strategies as st

from ringleader.migration.offsets import OffsetMap

RUNS = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 5)), max_size=20)
"""Gap, then records."""


@given(runs=RUNS, tail=st.integers(0, 5), base=st.integers(0, 50), start=st.integers(0, 50))
def test_the_next_record_to_read_is_the_same(
    runs: list[tuple[int, int]], tail: int, base: int, start: int
) -> None:
    there: list[int] = []
    offsets, at = OffsetMap(base), start
    for gap, count in runs:
        offsets.add(at + gap, count)
        there += range(at + gap, at + gap + count)
        at += gap + count
    offsets.finish(at + tail)
    assert (offsets.start, offsets.count, offsets.end) == (base, len(there), base + len(there))
    for offset in range(max(0, start - 2), at + tail + 3):
        assert offsets.translate(offset) == base + bisect_left(there, offset)
    same = all(offsets.translate(one) == one for one in there) and at + tail == offsets.end
    assert offsets.shifted == (not same)


def test_a_log_without_gaps_is_one_run() -> None:
    offsets = OffsetMap()
    for number in range(1_000):
        offsets.add(number * 3, 3)
    offsets.finish(3_000)
    assert len(offsets._sources) == 1
    assert not offsets.shifted
