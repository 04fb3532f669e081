"""Partitions as Kafka's tools name them: ``TOPIC``, or ``TOPIC:0,1``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ringleader.cli.common import WRONG_INPUT, fail

if TYPE_CHECKING:
    from ringleader.clients.offsets.reset_plan import Scope


def parse_scope(texts: list[str]) -> Scope:
    """The topics and partitions of the texts. Ends the command for another form."""
    found: Scope = {}
    for text in texts:
        topic, colon, listed = text.partition(":")
        parts = [part.strip() for part in listed.split(",")]
        if not topic or (colon and not all(part.isascii() and part.isdecimal() for part in parts)):
            fail(f"--topic: give it as TOPIC or TOPIC:0,1, not {text!r}.", WRONG_INPUT)
        before = found.get(topic, set())
        found[topic] = None if not colon or before is None else before | {int(part) for part in parts}
    return found
