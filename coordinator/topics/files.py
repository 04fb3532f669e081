"""Small things with files: written whole or not at all, and names synced with their directory."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, data: bytes, *, sync: bool = True) -> None:
    """Replace a file: after a crash it has the old or the new content. Raises OSError.

    Without `sync` a crash of the machine may leave it empty or cut off.
    """
    fresh = path.with_name(path.name + ".new")
    with fresh.open("wb") as stream:
        stream.write(data)
        if sync:
            stream.flush()
            os.fsync(stream.fileno())
    fresh.replace(path)
    if sync:
        sync_directory(path.parent)


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_file(path: Path) -> None:
    """Make a file's content durable. Raises OSError."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def pwrite_all(descriptor: int, parts: list[bytes], position: int) -> None:
    """Write all parts one after the other from `position` on. Raises OSError."""
    for start in range(0, len(parts), IOV_MAX):
        some = parts[start : start + IOV_MAX]
        size = sum(map(len, some))
        written = os.pwritev(descriptor, some, position)
        if written != size:
            # A signal or a full disk: what is left goes piece by piece, so that the error shows.
            rest = memoryview(b"".join(some))[written:]
            while rest:
                count = os.pwrite(descriptor, rest, position + size - len(rest))
                rest = rest[count:]
        position += size


IOV_MAX = 512
"""Buffers per system call; Linux allows 1024."""


class FileCache:
    """Files open for writing, the least recently used one closed when there are too many. One thread only."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._open: dict[Path, int] = {}

    def get(self, path: Path) -> int:
        """A descriptor for writing; file and directory are made when missing. Raises OSError."""
        descriptor = self._open.pop(path, None)
        if descriptor is None:
            while len(self._open) >= self._limit:
                os.close(self._open.pop(next(iter(self._open))))
            descriptor = self._make(path)
        self._open[path] = descriptor
        return descriptor

    @staticmethod
    def _make(path: Path) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC
        try:
            return os.open(path, flags, 0o644)
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            return os.open(path, flags, 0o644)

    def close(self, path: Path) -> None:
        """Close one file, if it is open."""
        descriptor = self._open.pop(path, None)
        if descriptor is not None:
            os.close(descriptor)

    def close_below(self, directory: Path) -> None:
        """Close all files of a directory and what is below."""
        for path in [path for path in self._open if directory in path.parents]:
            self.close(path)

    def close_all(self) -> None:
        """Close everything."""
        for path in list(self._open):
            self.close(path)
