"""Times and lengths of time as they are typed."""

from __future__ import annotations

import time

import pytest

from ringleader.clients.times import duration_ms, time_ms

NOW_MS = 1_800_000_000_000


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("500ms", 500),
        ("90s", 90_000),
        ("30m", 1_800_000),
        ("1h", 3_600_000),
        ("7d", 604_800_000),
        ("P7D", 604_800_000),
        ("PT1H", 3_600_000),
        ("P1DT2H3M4.5S", 93_784_500),
        ("pt5m", 300_000),
    ],
)
def test_lengths(text: str, wanted: int) -> None:
    assert duration_ms(text) == wanted
    assert time_ms(f"-{text}", NOW_MS) == NOW_MS - wanted


@pytest.mark.parametrize(
    "text", ["", "1", "h", "1w", "1h30m", "P", "PT", "P1DT", "-1h", "1 h", "P1H", "9" * 30 + "d"]
)
def test_texts_that_are_no_length(text: str) -> None:
    with pytest.raises(ValueError, match="time"):
        duration_ms(text)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("1970-01-01", 0),
        ("2026-01-31T12:00:00Z", 1_769_860_800_000),
        ("2026-01-31T12:00:00.123", 1_769_860_800_123),
        ("2026-01-31T13:00+01:00", 1_769_860_800_000),
        ("2026-01-31", 1_769_817_600_000),
    ],
)
def test_times(text: str, wanted: int) -> None:
    assert time_ms(text, NOW_MS) == wanted


def test_times_without_a_zone_are_utc_wherever_they_are_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    try:
        assert time_ms("2026-01-31T12:00", NOW_MS) == 1_769_860_800_000
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("text", ["", "noon", "2026-13-01", "-noon", "1700000000000"])
def test_texts_that_are_no_time(text: str) -> None:
    with pytest.raises(ValueError, match="time"):
        time_ms(text, NOW_MS)
