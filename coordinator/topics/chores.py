"""What the writing thread does besides appending. All run there, in their order among the appends."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from ringleader.coordinator.topics.files import FileCache
from ringleader.coordinator.topics.segment import Segment


def nothing(files: FileCache) -> None:
    """What was given to the thread before is done."""


def make(path: Path, files: FileCache) -> None:
    """Make an empty file. Raises OSError."""
    files.get(path)


def cut(segment: Segment, gone: bool, files: FileCache) -> None:
    """Remove a file with its index, or what is behind its end. Raises OSError."""
    files.close(segment.path)
    if gone:
        segment.path.unlink(missing_ok=True)
        segment.index_path.unlink(missing_ok=True)
    else:
        os.truncate(segment.path, segment.size_bytes)


def remove_below(directory: Path, files: FileCache) -> None:
    """Remove a deleted topic's files."""
    files.close_below(directory)
    shutil.rmtree(directory, ignore_errors=True)
