"""The coordinator's log lines: one event with fields. Where they go is the application's business."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Hashable
from typing import Any, cast

import structlog
from structlog.typing import FilteringBoundLogger

from ringleader.coordinator.clock import Clock

Log = FilteringBoundLogger

NAME = "ringleader"
"""Name of the standard library's logger that gets the lines when the application has not set up structlog."""

_NOT_FIELDS = ("event", "exc_info", "stack_info")
_TAKEN = {*vars(logging.makeLogRecord({})), "message", "asctime"}


LOG_INTERVAL_S = 5.0
"""Of `Seldom`."""


class Seldom:
    """Tells of what may happen very often: one line of a kind in `LOG_INTERVAL_S`, with the number of those
    that were left out before. For few kinds."""

    def __init__(self, line: Callable[..., object], now_ms: Clock) -> None:
        """`line` takes the fields of a line, and `left_out_before`."""
        self._line = line
        self._now_ms = now_ms
        self._logged: dict[Hashable, tuple[int, int]] = {}
        """When the last line of a kind was written, and how many were left out since."""

    def tell(self, kind: Hashable, **fields: object) -> None:
        """One happened."""
        now_ms = self._now_ms()
        logged_ms, left_out = self._logged.get(kind, (None, 0))
        if logged_ms is not None and now_ms - logged_ms < LOG_INTERVAL_S * 1000:
            self._logged[kind] = logged_ms, left_out + 1
            return
        self._line(**fields, left_out_before=left_out)
        self._logged[kind] = now_ms, 0


def get_log() -> Log:
    """The application's structlog if it has one (`ringleader serve` has); else the logger "ringleader" of
    the standard library, the fields as `extra`: a coordinator inside somebody's tests prints nothing by
    itself."""
    if structlog.is_configured():
        return cast(Log, structlog.get_logger(NAME))
    return cast(
        Log,
        structlog.wrap_logger(
            logging.getLogger(NAME),
            wrapper_class=structlog.stdlib.BoundLogger,
            processors=[structlog.stdlib.filter_by_level, _readable, structlog.stdlib.render_to_log_kwargs],
        ),
    )


def _readable(logger: Any, method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Handlers that know nothing of `extra` show the message only, so the fields are in it too."""
    fields = {key: value for key, value in event.items() if key not in _NOT_FIELDS}
    if not fields:
        return event
    readable = {key: event[key] for key in _NOT_FIELDS if key in event}
    readable["event"] = f"{event['event']} " + " ".join(f"{key}={value!r}" for key, value in fields.items())
    # A field must not have the name of one of the record's own attributes.
    readable.update({f"{key}_" if key in _TAKEN else key: value for key, value in fields.items()})
    return readable


class Failures:
    """Exceptions that requests led to. A client may repeat its request as fast as it can, so each place of
    the program that raises has one line, with its traceback, in `LOG_INTERVAL_S`."""

    def __init__(self, log: Log, now_ms: Callable[[], int]) -> None:
        self._lines = Seldom(log.exception, now_ms)

    def tell(self, event: str, **fields: object) -> None:
        """The exception that is being handled."""
        self._lines.tell(_raised_at(sys.exception()), event=event, **fields)


def _raised_at(error: BaseException | None) -> tuple[str, int]:
    trace = None if error is None else error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return ("", 0) if trace is None else (trace.tb_frame.f_code.co_filename, trace.tb_lineno)
