"""The requests, answers and observations of a process of the run, written down by itself: one JSON object a
line.

A call is two lines, ``{"t": 12.3, "did": "asks", "call": 7, "what": "commit", "bound_s": 30, ...}`` and
``{"t": 12.4, "did": "ok", "call": 7, ...}``; its end is "ok", "failed" (it had no effect, and will have none)
or "unknown" (it may have had one). A call without an end was under way when the process ended. Other lines
say what the process saw. ``t`` is in seconds of the machine's monotonic clock, which all processes share. All
lines: docs/architecture.md.
"""

from __future__ import annotations

import itertools
import json
import math
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

OK, FAILED, UNKNOWN, OPEN = "ok", "failed", "unknown", "open"
_ENDS = (OK, FAILED, UNKNOWN)


class History:
    """An append-only file of what this process did. From any thread."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("a", encoding="utf-8")
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)

    def saw(self, did: str, **fields: Any) -> None:
        """Write one line."""
        self._write({"t": time.monotonic(), "did": did, **fields})

    def begin(self, what: str, bound_s: float, **fields: Any) -> OpenCall:
        """A call begins: it has to end within `bound_s`, whatever happens."""
        number = next(self._numbers)
        self.saw("asks", call=number, what=what, bound_s=bound_s, **fields)
        return OpenCall(self, number)

    def _write(self, line: dict[str, Any]) -> None:
        text = json.dumps(line, separators=(",", ":")) + "\n"
        with self._lock:
            self._file.write(text)
            self._file.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()


@dataclass(frozen=True, slots=True)
class OpenCall:
    """A call that has begun; one of these ends it."""

    history: History
    number: int

    def ok(self, **fields: Any) -> None:
        """It was acknowledged."""
        self.history.saw(OK, call=self.number, **fields)

    def failed(self, why: str) -> None:
        """It was refused, and has no effect."""
        self.history.saw(FAILED, call=self.number, why=why)

    def unknown(self, why: str) -> None:
        """It may have had its effect, or not."""
        self.history.saw(UNKNOWN, call=self.number, why=why)


@dataclass(frozen=True, slots=True)
class Call:
    """A call with its end. `ended_s` is infinite if it had none."""

    client: str
    what: str
    began_s: float
    ended_s: float
    end: str
    bound_s: float
    request: dict[str, Any] = field(default_factory=dict)
    answer: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Process:
    """The history of one process: its calls in the order of their beginnings, and its other lines."""

    client: str
    calls: list[Call]
    lines: list[dict[str, Any]]
    last_s: float
    """When it wrote its last line."""


def process(client: str, lines: Iterable[dict[str, Any]]) -> Process:
    """Its lines, with the ends of calls put to their beginnings."""
    begun: dict[int, dict[str, Any]] = {}
    ended: dict[int, dict[str, Any]] = {}
    others = []
    last_s = -math.inf
    for line in lines:
        last_s = max(last_s, line["t"])
        if line["did"] == "asks":
            begun[line["call"]] = line
        elif line["did"] in _ENDS:
            ended[line["call"]] = line
        else:
            others.append(line)
    calls = []
    for number, line in begun.items():
        end = ended.get(number)
        calls.append(
            Call(
                client,
                line["what"],
                line["t"],
                math.inf if end is None else end["t"],
                OPEN if end is None else end["did"],
                line["bound_s"],
                line,
                end or {},
            )
        )
    return Process(client, calls, others, last_s)


class Tail:
    """The lines that a process has written since the last look."""

    def __init__(self, path: Path) -> None:
        self._path, self._at = path, 0

    def new(self) -> list[dict[str, Any]]:
        """The lines that are whole by now."""
        if not self._path.exists():
            return []
        with self._path.open("rb") as file:
            file.seek(self._at)
            whole, _, _rest = file.read().rpartition(b"\n")
        self._at += len(whole) + 1 if whole else 0
        return [json.loads(line) for line in whole.splitlines()]


def read(path: Path) -> Process:
    """The history in a file. A last line that was cut off is left out."""
    whole, _, _cut_off = path.read_text(encoding="utf-8").rpartition("\n")
    return process(path.stem, map(json.loads, whole.splitlines()))
