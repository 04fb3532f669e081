"""The files that a directory would hold after the machine lost its power now, by the strictest reading of
`fsync`.

A file has the content of its last sync, a directory the names of its last sync; whatever was done since is
gone, and what was never synced was never there. (A disk may keep more; nothing may need that.)
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest


class SyncWatch:
    """Watches `os.fsync` (and `os.sync`) in this process, for files below `root`, which is durable itself."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._root = root
        self._lock = threading.Lock()
        self._contents: dict[int, bytes] = {}
        self._names: dict[int, dict[str, int]] = {}
        # Open, so that no inode number is given again.
        self._held: dict[int, int] = {}
        self.fails: Callable[[Path], bool] = lambda path: False
        """Which syncs fail with EIO."""
        self.synced: list[Path] = []
        """Every path for which a sync was asked, in order."""
        monkeypatch.setattr(os, "fsync", self._fsync)
        monkeypatch.setattr(os, "sync", self._sync_all)
        self._note(root)

    def _fsync(self, descriptor: int) -> None:
        path = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
        if not path.is_relative_to(self._root):
            return
        with self._lock:
            self.synced.append(path)
            if self.fails(path):
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            self._note(Path(f"/proc/self/fd/{descriptor}"))

    def _sync_all(self) -> None:
        with self._lock:
            for path in [self._root, *self._root.rglob("*")]:
                self._note(path)

    def _note(self, path: Path) -> None:
        inode = self._hold(path)
        if path.is_dir():
            names = self._names[inode] = {}
            for entry in path.iterdir():
                # Another thread may remove it just now.
                with contextlib.suppress(FileNotFoundError):
                    names[entry.name] = self._hold(entry)
        else:
            self._contents[inode] = path.read_bytes()

    def _hold(self, path: Path) -> int:
        descriptor = os.open(path, os.O_RDONLY)
        found = os.fstat(descriptor)
        if found.st_ino in self._held:
            os.close(descriptor)
        else:
            self._held[found.st_ino] = descriptor
            if stat.S_ISDIR(found.st_mode):
                self._names[found.st_ino] = {}
        return found.st_ino

    def after_power_cut(self, copy: Path) -> Path:
        """Makes what is left now, as a copy."""
        with self._lock:
            self._put(self._root.stat().st_ino, copy)
        return copy

    def _put(self, inode: int, path: Path) -> None:
        names = self._names.get(inode)
        if names is None:
            path.write_bytes(self._contents.get(inode, b""))
            return
        path.mkdir()
        for name, child in names.items():
            self._put(child, path / name)

    def close(self) -> None:
        """Let the files go."""
        for descriptor in self._held.values():
            os.close(descriptor)
