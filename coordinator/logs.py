"""The coordinator's log lines: one event with fields. Where they go is the application's business."""

from __future__ import annotations

import logging
from typing import Any, cast

import structlog
from structlog.typing import FilteringBoundLogger

Log = FilteringBoundLogger

NAME = "ringleader"
"""Name of the standard library's logger that gets the lines when the application has not set up structlog."""

_NOT_FIELDS = ("event", "exc_info", "stack_info")
_TAKEN = {*vars(logging.makeLogRecord({})), "message", "asctime"}


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
    told = {key: event[key] for key in _NOT_FIELDS if key in event}
    told["event"] = f"{event['event']} " + " ".join(f"{key}={value!r}" for key, value in fields.items())
    # A field must not have the name of one of the record's own attributes.
    told.update({f"{key}_" if key in _TAKEN else key: value for key, value in fields.items()})
    return told
