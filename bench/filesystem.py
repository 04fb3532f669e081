"""Where a path really lies: a commit that is "durable" in memory would be a lie."""

from __future__ import annotations

from pathlib import Path

MEMORY_FILE_SYSTEMS = frozenset({"tmpfs", "ramfs", "devtmpfs", "hugetlbfs"})


class MemoryFileSystemError(Exception):
    """The data directory lies in memory; the text names the file system."""


def file_system_of(path: Path, mounts: str | None = None) -> str:
    """The type of the file system that holds `path` (which exists), as /proc/self/mountinfo names it."""
    text = Path("/proc/self/mountinfo").read_text() if mounts is None else mounts
    real = path.resolve()
    best, kind = -1, "unknown"
    for line in text.splitlines():
        before, _, after = line.partition(" - ")
        mount = Path(before.split()[4].encode().decode("unicode_escape"))  # spaces are written as \040
        if (real == mount or mount in real.parents) and len(mount.parts) >= best:
            best, kind = (
                len(mount.parts),
                after.split()[0],
            )  # a later mount on the same place hides the former
    return kind


def refuse_memory(path: Path, mounts: str | None = None) -> str:
    """`file_system_of`; raises `MemoryFileSystemError` when that is memory."""
    kind = file_system_of(path, mounts)
    if kind in MEMORY_FILE_SYSTEMS:
        raise MemoryFileSystemError(
            f"{path} lies on {kind}, a file system in memory: synced commits cannot be measured there. "
            "Choose another directory with --data-dir."
        )
    return kind
