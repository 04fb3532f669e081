"""Files that outlive a power cut."""

from __future__ import annotations

import os
from pathlib import Path


def sync_path(path: Path) -> None:
    """Make a file's content durable, or the names in a directory. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
