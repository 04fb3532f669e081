"""How long ago the next record of a group was written, from end offsets that were seen."""

from __future__ import annotations

from ringleader.insight.model import Lag
from ringleader.insight.web.lags import POINTS_MAX, Lags


def _row(at_s: int, end: int, committed: int | None, partition: int = 0) -> Lag:
    return Lag("orders", "orders", partition, at_s * 1000, end, committed)


def _lags(*rows: Lag) -> Lags:
    lags = Lags()
    lags.add("orders", rows)
    return lags


def test_a_group_that_has_read_everything_is_not_behind() -> None:
    found = _lags(_row(0, 100, 100), _row(10, 200, 200)).of("orders", 20_000)
    assert found is not None
    assert (found.records, found.behind_ms, found.at_least) == (0, 0, False)


def test_the_next_record_was_written_when_the_end_went_past_it() -> None:
    # 100 records in 10 s: the one at 150 was written after 15 of 20 s.
    found = _lags(_row(0, 0, 0), _row(10, 100, 100), _row(20, 200, 150)).of("orders", 20_000)
    assert found is not None
    assert (found.records, found.behind_ms) == (50, 5_000)


def test_behind_for_longer_than_is_remembered_is_at_least_that_long() -> None:
    found = _lags(_row(10, 500, 20), _row(20, 600, 20)).of("orders", 25_000)
    assert found is not None
    assert (found.records, found.behind_ms, found.at_least) == (580, 15_000, True)


def test_the_partition_that_is_furthest_behind_counts_and_records_add_up() -> None:
    rows = [_row(0, 0, 0), _row(0, 0, 0, 1), _row(10, 100, 90), _row(10, 100, 20, 1), _row(10, 7, None, 2)]
    found = _lags(*rows).of("orders", 10_000)
    assert found is not None
    assert (found.records, found.behind_ms) == (90, 8_000)


def test_a_topic_that_was_made_again_begins_again() -> None:
    found = _lags(_row(0, 1_000, 1_000), _row(10, 5, 5)).of("orders", 10_000)
    assert found is not None
    assert (found.records, found.behind_ms) == (0, 0)


def test_what_is_remembered_is_bounded_and_reaches_further_back() -> None:
    lags = _lags(*(_row(second, second * 10, 55) for second in range(POINTS_MAX * 20)))
    end_s = POINTS_MAX * 20 - 1
    found = lags.of("orders", end_s * 1000)
    assert found is not None
    assert abs(found.behind_ms - (end_s - 5.5) * 1000) <= 40_000
    assert not found.at_least


def test_nothing_committed_is_nothing_measured() -> None:
    assert _lags(_row(0, 10, None)).of("orders", 0) is None
    assert Lags().of("orders", 0) is None
    lags = _lags(_row(0, 10, 5))
    lags.forget("orders")
    assert lags.of("orders", 0) is None
