"""The topics that a member subscribes to: names, the current matches of a pattern, or a regular expression
that the coordinator matches."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Sequence

from ringleader.clients.checks import wire_text
from ringleader.clients.connection.overview import Overview, in_trouble
from ringleader.clients.model import SubscriptionPattern, TopicPattern

SHOWN = 3
"""The count of changes that a text names."""


def in_words(changes: Sequence[str]) -> str:
    """Changes in one line."""
    rest = len(changes) - SHOWN
    return "; ".join(changes[:SHOWN]) + (f"; and {rest} more" if rest > 0 else "")


class Choice:
    """The subscription of one member. `names` are those of the last look, `announced` those of the last join.

    Exactly one of topics and pattern; the pattern (Python's `re`) has to match the whole name.
    `by_coordinator`: it may be a `SubscriptionPattern`, which the group's coordinator matches. Raises
    ValueError.
    """

    def __init__(
        self, topics: Iterable[str] | None, pattern: TopicPattern | None, *, by_coordinator: bool = False
    ) -> None:
        self._lock = threading.Lock()
        self._pattern: re.Pattern[str] | None = None
        self.by_coordinator = by_coordinator
        self.regex: str | None = None
        """The expression that the coordinator matches; there are no names then."""
        self.names: tuple[str, ...] = ()
        self.announced: tuple[str, ...] = ()
        self.known = False
        """Whether there is anything to announce yet."""
        self.change(topics, pattern)

    def change(self, topics: Iterable[str] | None, pattern: TopicPattern | None) -> None:
        """Subscribe to something else from the next join on. From any thread. Raises ValueError."""
        if (topics is None) == (pattern is None):
            raise ValueError("either topics or a pattern is needed")
        regex = pattern.pattern if isinstance(pattern, SubscriptionPattern) else None
        if regex is not None and not self.by_coordinator:
            raise ValueError(
                "a SubscriptionPattern is matched by the coordinator of the consumer protocol: it needs "
                'group_protocol="consumer"; without that give the text or a compiled pattern'
            )
        compiled = None
        if pattern is not None and not isinstance(pattern, SubscriptionPattern):
            compiled = _compiled(pattern)
        listed = [topics] if isinstance(topics, str) else list(topics or ())
        if wrong := [name for name in listed if not isinstance(name, str) or not name]:
            raise ValueError(f"topics are names, not {wrong[0]!r}")
        for name in listed:
            wire_text("the name of a topic", name)
        names = tuple(sorted(set(listed)))
        if pattern is None and not names:
            raise ValueError("no topics to subscribe to")
        with self._lock:
            self._pattern, self.regex, self.names, self.known = compiled, regex, names, compiled is None

    @property
    def by_pattern(self) -> bool:
        """Whether this client looks which topics match."""
        return self._pattern is not None

    @property
    def by_name(self) -> bool:
        """Whether the names were given, so that no other topic can come."""
        return self._pattern is None and self.regex is None

    def announce(self) -> tuple[str, ...]:
        """The names, which a join announces to the group."""
        self.announced = self.names
        return self.names

    def look(self, seen: Overview) -> bool:
        """Take over what matches in an overview of all topics; says whether something is gone.

        The cluster's own topics never match. A topic that is in trouble for the moment stays what it was.
        """
        pattern = self._pattern
        if pattern is None:
            return False
        match, before = pattern.fullmatch, set(self.names)
        found = {
            name
            for name, topic in seen.topics.items()
            if not topic.internal
            and (not topic.error_code or (name in before and in_trouble(topic)))
            and match(name)
        }
        with self._lock:
            if self._pattern is not pattern:
                return False  # another subscription, which this says nothing about
            self.names, self.known = tuple(sorted(found)), True
        return not before <= found

    def changes(self) -> list[str]:
        """How the names differ from what was announced, in words."""
        if self._pattern is None or self.names == self.announced:
            return []
        now, before, pattern = set(self.names), set(self.announced), repr(self._pattern.pattern)
        return [f"new topic {name} matches {pattern}" for name in sorted(now - before)] + [
            f"topic {name}, which matched {pattern}, is gone" for name in sorted(before - now)
        ]


def _compiled(pattern: str | re.Pattern[str]) -> re.Pattern[str]:
    try:
        found = re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"{pattern!r} is no regular expression: {error}") from error
    if not isinstance(found.pattern, str):
        raise ValueError(f"a pattern of topic names is a text, not {found.pattern!r}")
    return found
