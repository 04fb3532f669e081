"""An event that a client can repeat is logged once in a while for each place of the program."""

from __future__ import annotations

import pytest

from ringleader.coordinator.logs import LOG_INTERVAL_S, Failures, get_log


@pytest.mark.leaves("here")
@pytest.mark.leaves("there")
def test_a_failure_that_is_repeated_is_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    now_ms = 0
    failures = Failures(get_log(), lambda: now_ms)

    def fail(where: int) -> None:
        try:
            if where:
                raise ValueError("there")
            raise ValueError("here")
        except ValueError:
            failures.tell("handler failed", api="Fetch")

    for _ in range(100):
        fail(0)
        fail(1)
    assert [record.getMessage() for record in caplog.records] == [
        "handler failed api='Fetch' left_out_before=0"
    ] * 2
    assert all(record.exc_info for record in caplog.records)
    caplog.clear()
    now_ms = round(LOG_INTERVAL_S * 1000)
    fail(0)
    assert [record.getMessage() for record in caplog.records] == [
        "handler failed api='Fetch' left_out_before=99"
    ]
