"""A recording as a file: lines of JSON, compressed by gzip.

The first line says what it is, and has the settings and the state of the machine at the beginning:

    {"ringleader-recording": 1, "version": "0.1.0", "group": "billing", "anonymous": false,
     "began_ms": ..., "settings": {...}, "state": {...}, "tickets": [...]}

Each further line is one call of the machine, in their order, and what came of it:

    {"do": "handle", "with": [request, {"ticket": 7}, now_ms],
     "tickets": [[7, 9, "app", "/10.0.0.7", "User:1", 7]], "ids": ["app-8f03..."], "gave": response,
     "next": 4711}

`do` is a method of the shard (`tap.CALLS`), `with` what it was given, values as in `plain`. `tickets` are
requests that are new: number, version of the API, client id, host, principal, number of the connection. `ids`
are member ids that were made up, `unix` and `others` the Unix time and the memory of other shards that were
reported to the machine since the call before. `gave` is its answer at once, or (`drain`) records, later
answers and journal; `raised` an exception; `next` when it wants to be called, where that has changed.

The last line says why it ends:

    {"end": "after 300 s", "calls": 41207}
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ringleader.coordinator.recording.tap import Line

MARK = "ringleader-recording"
FORMAT = 1
LINE_MAX_BYTES = 1 << 28
NUMBER_HEADER = "Ringleader-Recording"
"""Of the answer that a recording comes in: the number by which it is ended."""


class RecordingError(ValueError):
    """The file is no recording that can be read; the text is one sentence."""


def as_line(line: Line) -> bytes:
    """As it stands in the file."""
    return json.dumps(line, separators=(",", ":"), ensure_ascii=True).encode() + b"\n"


class RecordingFile:
    """Written line by line. The file is whole with `end` only."""

    def __init__(self, path: Path) -> None:
        """Raises OSError, also for a file that is there."""
        self._raw = path.open("xb")
        self._file = gzip.GzipFile(filename="", mode="wb", fileobj=self._raw, mtime=0)
        self.calls = -1

    def add(self, line: Line) -> None:
        """The next line; the first one is the state."""
        self._file.write(as_line(line))
        self.calls += 1

    def end(self, why: str) -> None:
        """There is no more."""
        self._file.write(as_line({"end": why, "calls": self.calls}))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._raw.close()


def read(path: Path) -> Iterator[Line]:
    """The lines, the first and the last one included. Raises RecordingError, as soon as it is seen."""
    try:
        with gzip.open(path, "rb") as file:
            yield from _checked(file, path)
    except gzip.BadGzipFile:
        raise RecordingError(f"{path} is no recording of ringleader record") from None
    except EOFError:
        raise RecordingError(f"{path} is cut off: its end is missing") from None
    except OSError as error:
        raise RecordingError(f"{path} cannot be read: {error.strerror or error}") from None
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError):
        raise RecordingError(f"{path} is damaged") from None


def _checked(file: Any, path: Path) -> Iterator[Line]:
    calls, ended = -1, False
    while raw := file.readline(LINE_MAX_BYTES):
        try:
            line = json.loads(raw)
        except ValueError:
            if calls < 0:
                raise RecordingError(f"{path} is no recording of ringleader record") from None
            raise
        if calls < 0:
            _check_first(line, path)
        if ended or not isinstance(line, dict):
            raise RecordingError(f"{path} is damaged: it goes on after its end")
        ended = "end" in line
        if ended and line.get("calls") != calls:
            raise RecordingError(f"{path} is damaged: it has {calls} calls, and says {line.get('calls')}")
        calls += 1
        yield line
    if not ended:
        raise RecordingError(f"{path} is cut off: its end is missing")


def _check_first(line: Any, path: Path) -> None:
    if not isinstance(line, dict) or MARK not in line:
        raise RecordingError(f"{path} is no recording of ringleader record")
    if line[MARK] != FORMAT:
        raise RecordingError(
            f"{path} has format {line[MARK]!r}, and this Ringleader reads {FORMAT}: replay it with the "
            f"version that wrote it, {line.get('version', 'which it does not name')}"
        )
