"""The end of each partition at the last look: a start misses it when files are gone.

It is reported to an operator, and keeps offsets from beginning again. Nothing else depends on it: a file that
is missing, damaged or older than the records says less, and is no error. For worker threads."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from pathlib import Path

from ringleader.coordinator.topics.disk import write_whole
from ringleader.protocol import json_text

Ends = Mapping[str, Mapping[str, int]]
"""By a topic's id (hexadecimal) and a partition's number: the offset behind its last record."""


def load(path: Path) -> Ends:
    """The known ends; none if that cannot be read."""
    with contextlib.suppress(OSError, ValueError, AttributeError, TypeError, OverflowError):
        return {
            topic: {number: int(end) for number, end in ends.items() if number.isdigit()}
            for topic, ends in json_text.loads(path.read_bytes()).items()
        }
    return {}


def save(path: Path, ends: Ends) -> None:
    """Replace the file, if that can be done now."""
    with contextlib.suppress(OSError):
        write_whole(path, json.dumps(ends).encode(), sync=False)
