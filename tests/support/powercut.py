"""A power cut for a directory: what a killed process did to it and did not sync is taken back.

Of a file its content is kept as of its last sync, of a directory the names in it as of its own last sync:
what a disk may leave at worst. With a source of randomness some of the rest is kept, too, for each file and
each directory as far as one moment after its sync. See tests/support/undo_unsynced.c for how it is known.
"""

from __future__ import annotations

import os
import shutil
import struct
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from random import Random

from bench.build import preload

_SOURCE = Path(__file__).with_name("undo_unsynced.c")
_HEAD = struct.Struct("=7q")


def library() -> Path:
    """The library that is preloaded. Needs a C compiler: raises `NoCompilerError`."""
    return preload(_SOURCE).resolve()


def watching(root: Path, journal: Path) -> dict[str, str]:
    """The environment in which a process keeps in `journal`, a directory that exists beside `root`, what it
    takes to undo what it does below `root` (which need not exist)."""
    return {
        **os.environ,
        "LD_PRELOAD": str(library()),
        "RINGLEADER_UNDO_ROOT": str(root.resolve()),
        "RINGLEADER_UNDO_JOURNAL": str(journal.resolve()),
    }


@dataclass(slots=True)
class _Change:
    kind: str
    inode: int
    at: int
    size: int
    name: Path
    second: Path
    saved: bytes


def cut_power(root: Path, journal: Path, draw: Random | None = None) -> int:
    """Takes back what was not synced, and empties the journal; the process must be dead. Without `draw` all
    of it, else as much as that says. Returns how many changes that undid."""
    changes = _read(journal / "journal")
    unsynced = _unsynced(changes)
    for numbers in unsynced.values():
        if draw is not None:
            del numbers[: draw.randint(0, len(numbers))]
    lost = sorted((number for numbers in unsynced.values() for number in numbers), reverse=True)
    files = _files(root, journal)
    for number in lost:
        if changes[number].kind in "WT" and changes[number].inode in files:
            _restore_content(files[changes[number].inode], changes[number])
    for number in lost:
        if changes[number].kind not in "WT":
            _restore_name(changes[number], journal)
    for path in journal.iterdir():
        path.unlink()
    return len(lost)


def _read(path: Path) -> list[_Change]:
    """All entries; a last one that is not whole had no effect yet."""
    data, changes, at = path.read_bytes() if path.exists() else b"", list[_Change](), 0
    while at + _HEAD.size <= len(data):
        kind, inode, first, size, *lengths = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        parts = []
        for length in lengths:
            parts.append(data[at : at + length])
            at += length
        if at > len(data):
            break
        name, second = (Path(os.fsdecode(part)) for part in parts[:2])
        changes.append(_Change(chr(kind), inode, first, size, name, second, parts[2]))
    return changes


def _unsynced(changes: list[_Change]) -> dict[object, list[int]]:
    """For each file and each directory the numbers of its changes that no sync covers, in order."""
    found: dict[object, list[int]] = defaultdict(list)
    for number, change in enumerate(changes):
        if change.kind in "WT":
            found[change.inode].append(number)
        elif change.kind != "S":
            found[change.name.parent].append(number)
        elif not change.inode:
            found.clear()
        else:
            found.pop(change.name if change.at else change.inode, None)
    return found


def _files(root: Path, journal: Path) -> dict[int, Path]:
    paths = [path for top in (root, journal) for path in top.rglob("*")]
    return {path.stat().st_ino: path for path in paths if path.is_file()}


def _restore_content(path: Path, change: _Change) -> None:
    with path.open("r+b") as file:
        file.seek(change.at)
        file.write(change.saved)
        file.truncate(change.size)


def _restore_name(change: _Change, journal: Path) -> None:
    path, kept = change.name, journal / f"kept-{change.at}"
    if not path.parent.is_dir():
        return  # its removal was synced
    if change.kind == "C":
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    elif change.kind == "D":
        path.mkdir(exist_ok=True)
    elif change.kind == "U":
        if not path.exists():
            os.link(kept, path)
    elif not path.exists():  # else the cut came before the renaming
        change.second.rename(path)
        if change.at >= 0:
            os.link(kept, change.second)
