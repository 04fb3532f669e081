"""Regular expressions over the names of topics (`SubscribedTopicRegex`, KIP-848), in the syntax of RE2, which
Kafka's RE2/J has too: matched in linear time, so that no expression of a client can stop the process.

`google-re2` reads them (`pip install 'ringleader[regex]'`). Without it a subset is read by `automaton`, and
all else refused. Nothing here is ever matched by Python's `re`, for which short expressions take years.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from importlib import import_module
from typing import Any, Final, Protocol

from ringleader.coordinator.consumer_groups.automaton import Automaton, OutsideError, PatternError

re2: Any
try:
    re2 = import_module("re2")
except ImportError:
    re2 = None

LENGTH_MAX: Final = 2_048
"""Bytes of an expression. Compiling one takes a few milliseconds then."""
UNICODE_CLASSES_MAX: Final = 16
"""Classes of Unicode (`\\pL`) in it: each has hundreds of ranges."""
COMPILED_MAX_BYTES: Final = 128 * 1024
"""Memory for one that is compiled, RE2's caches included."""
PATTERNS_MAX: Final = 100
"""Expressions of one group."""
REASONS: Final = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "no argument for repetition operator": "missing argument to repetition operator",
    "invalid repetition size": "invalid repeat count",
    "trailing \\": "trailing backslash at end of expression",
    "invalid named capture group": "invalid named capture",
}
"""In RE2's words, and in RE2/J's: members get the texts that Kafka sends."""
SLICE_COST: Final = 5_000
"""Instructions times names that are matched in one go: a few milliseconds at the worst."""


class Pattern(Protocol):
    """An expression that is compiled."""

    size: int
    """Instructions or states: a measure of its cost."""

    def matches(self, text: str) -> bool:
        """Whether the whole text is matched."""


class _Engine:
    def __init__(self, text: str) -> None:
        options: Any = re2.Options()
        options.max_mem = COMPILED_MAX_BYTES
        options.never_capture = True
        options.log_errors = False
        try:
            compiled = re2.compile(text, options)
        except re2.error as error:
            [raw] = error.args
            reason = raw.decode(errors="replace").partition(": ")[0]
            raise PatternError(REASONS.get(reason, reason)) from error
        self.size: int = max(1, compiled.programsize)
        self._full = compiled.fullmatch

    def matches(self, text: str) -> bool:
        return self._full(text) is not None


def compiled(text: str) -> Pattern:
    """Raises `PatternError`."""
    if len(text.encode()) > LENGTH_MAX:
        raise PatternError(f"it is longer than {LENGTH_MAX:,} bytes")
    if text.count("\\p") + text.count("\\P") > UNICODE_CLASSES_MAX:
        raise PatternError(f"it has more than {UNICODE_CLASSES_MAX} classes of Unicode")
    if re2 is not None:
        return _Engine(text)
    try:
        return Automaton(text)
    except OutsideError as error:
        hint = "without google-re2 on the server (pip install 'ringleader[regex]')"
        raise PatternError(f"{error} {hint}") from error


def search(texts: Iterable[str], names: Sequence[str]) -> Generator[None, None, dict[str, list[str]]]:
    """By expression, the names that it matches, in their order. Expressions that cannot be compiled here (the
    log of another coordinator may have them) are left out. Each step takes a few milliseconds at most."""
    found: dict[str, list[str]] = {}
    for text in texts:
        try:
            pattern = compiled(text)
        except PatternError:
            continue
        yield
        at_once = max(1, SLICE_COST // pattern.size)
        found[text] = []
        for start in range(0, len(names), at_once):
            found[text] += filter(pattern.matches, names[start : start + at_once])
            yield
    return found
