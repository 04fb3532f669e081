"""A power cut for one directory: what a killed daemon had written but not synced is taken back.

See tests/support/undo_unsynced.c for how the old content is kept.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

from bench.build import preload

_SOURCE = Path(__file__).with_name("undo_unsynced.c")
_ENTRY = struct.Struct("=qqq")


def watching(prefix: Path) -> dict[str, str]:
    """The environment in which a process keeps what its files under `prefix` were at their last sync.

    Watched are all files whose path begins with `prefix`. Needs a C compiler: raises `NoCompilerError`.
    """
    library = str(preload(_SOURCE).resolve())
    real = prefix.parent.resolve() / prefix.name
    return {**os.environ, "LD_PRELOAD": library, "RINGLEADER_UNDO_PREFIX": str(real)}


def cut_power(prefix: Path) -> int:
    """Takes back what was not synced; the process must be dead. Returns how many writes that undid."""
    undone = 0
    for log in sorted(prefix.parent.glob(f"{prefix.name}*.undo")):
        entries = _entries(log.read_bytes())
        target = log.with_suffix("")
        log.unlink()
        if entries and target.exists():
            _take_back(target, entries)
            undone += len(entries)
    return undone


def _entries(data: bytes) -> list[tuple[int, int, bytes]]:
    """Offset, size of the file before, old bytes; a last entry that is not whole had no effect yet."""
    entries = []
    at = 0
    while at + _ENTRY.size <= len(data):
        offset, length, size = _ENTRY.unpack_from(data, at)
        at += _ENTRY.size
        if at + length > len(data):
            break
        entries.append((offset, size, data[at : at + length]))
        at += length
    return entries


def _take_back(target: Path, entries: list[tuple[int, int, bytes]]) -> None:
    with target.open("r+b") as file:
        for offset, size, old in reversed(entries):
            file.seek(offset)
            file.write(old)
            file.truncate(size)
