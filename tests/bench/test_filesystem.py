"""Commits are not measured in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.filesystem import MemoryFileSystemError, file_system_of, refuse_memory

MOUNTS = """\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:20 / /dev/shm rw shared:2 - tmpfs tmpfs rw
24 22 0:30 / /mnt/with\\040space rw - ramfs none rw
25 22 0:31 / /var rw - xfs /dev/sdb rw
26 25 0:32 / /var rw - tmpfs late rw
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/x", "ext4"),
        ("/dev/shm/x/y", "tmpfs"),
        ("/dev/shmoo", "ext4"),
        ("/mnt/with space/x", "ramfs"),
        ("/var/lib", "tmpfs"),
        ("/", "ext4"),
    ],
)
def test_the_innermost_and_latest_mount_counts(path: str, kind: str) -> None:
    assert file_system_of(Path(path), MOUNTS) == kind


def test_memory_is_refused_by_name() -> None:
    with pytest.raises(MemoryFileSystemError, match="tmpfs"):
        refuse_memory(Path("/dev/shm/data"), MOUNTS)


def test_a_disk_is_named() -> None:
    assert refuse_memory(Path("/home/x"), MOUNTS) == "ext4"
