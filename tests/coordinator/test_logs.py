"""Log lines go where the application wants them, and nowhere by themselves."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
import structlog

from ringleader.coordinator.logs import NAME, get_log


@pytest.fixture
def unconfigured() -> Iterator[None]:
    """structlog as it is before anybody set it up; put back afterwards."""
    before = structlog.get_config() if structlog.is_configured() else None
    structlog.reset_defaults()
    yield
    structlog.reset_defaults()
    if before is not None:
        structlog.configure(**before)


@pytest.mark.leaves("RuntimeError: a bug")
def test_library_logs_through_the_standard_library(
    unconfigured: None, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    log = get_log()
    with caplog.at_level(logging.INFO, NAME):
        log.info("listening", address="127.0.0.1:9092", name="a taken name")
        log.debug("not asked for")
        try:
            raise RuntimeError("a bug")
        except RuntimeError:
            log.exception("handler failed", peer="127.0.0.1:1")
    first, second = caplog.records
    assert first.getMessage() == "listening address='127.0.0.1:9092' name='a taken name'"
    assert vars(first)["address"] == "127.0.0.1:9092"
    assert first.name == NAME
    assert second.exc_info
    assert second.levelname == "ERROR"
    assert capsys.readouterr().out == ""


def test_application_with_structlog_gets_the_lines_there(unconfigured: None) -> None:
    with structlog.testing.capture_logs() as lines:
        structlog.configure(processors=structlog.get_config()["processors"])
        get_log().warning("connection closed", reason="unknown API 9999")
    assert lines == [{"event": "connection closed", "reason": "unknown API 9999", "log_level": "warning"}]
