"""Reading the departures and computing the delay table, on a few lines of the same form."""

from __future__ import annotations

from pathlib import Path

import pytest

from demo import flights

HEAD = "year,month,day,dep_time,sched_dep_time,dep_delay,carrier,tailnum"
LINES = ["2013,1,1,517,515,2,UA,N14228", "2013,1,1,554,600,-6,UA,", "2013,1,2,NA,1630,NA,AA,N3FJAA"]


@pytest.fixture
def small(tmp_path: Path) -> Path:
    path = tmp_path / "flights.csv"
    path.write_text("\n".join([HEAD, *LINES]) + "\n")
    return path


def test_numbers_are_numbers_and_missing_values_are_null(small: Path) -> None:
    first, second, third = flights.rows(small)
    assert (first["dep_delay"], first["carrier"]) == (2, "UA")
    assert (second["dep_delay"], second["tailnum"]) == (-6, "")
    assert (third["dep_time"], third["dep_delay"]) == (None, None)


def test_a_data_set_that_is_not_whole_is_refused(small: Path) -> None:
    with pytest.raises(flights.DataError, match="expected 336776 rows, 8255 cancelled; got 3, 1"):
        flights.check(flights.delay_table(small))


def test_table_by_carrier(small: Path) -> None:
    assert flights.delay_table(small) == {"AA": flights.Delays(1, 1, None), "UA": flights.Delays(2, 0, -2.0)}
