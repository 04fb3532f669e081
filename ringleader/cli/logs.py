"""Where log lines go and how they look: standard error, for people or as one JSON object each."""

from __future__ import annotations

import logging
import sys
from typing import Literal

import structlog
from structlog.typing import EventDict, Processor

from ringleader.host.printable import printable

LEVELS: dict[str, int] = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def set_up_logs(level: str, form: Literal["console", "json"]) -> None:
    """Send structured logs, and those of libraries, to standard error; standard output stays for answers."""
    renderer: Processor
    if form == "json":
        renderer = structlog.processors.JSONRenderer(sort_keys=False)
    else:
        renderer = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), sort_keys=False)
    for_form: list[Processor] = [] if form == "json" else [_for_people]
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.StackInfoRenderer(),
            structlog.processors.format_exc_info,
            *for_form,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(LEVELS[level]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
    logging.basicConfig(
        stream=sys.stderr, level=LEVELS[level], format="%(asctime)s %(levelname)s %(message)s"
    )


def _for_people(logger: object, method: str, event: EventDict) -> EventDict:
    """An event that comes with a sentence is shown as that sentence: its fields say the same again. Text that
    clients chose may hold control codes of a terminal."""
    for name in event.keys() - {"exception"}:
        event[name] = _shown(event[name])
    text = event.get("text")
    if not isinstance(text, str):
        return event
    kept = {name: event[name] for name in ("timestamp", "level", "exception") if name in event}
    return {**kept, "event": f"{event['event']}: {text}"}


def _shown(value: object) -> object:
    """White space is quoted by the renderer."""
    return (
        "".join(one if one in "\t\r\n" else printable(one) for one in value)
        if isinstance(value, str)
        else value
    )
