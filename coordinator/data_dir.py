"""The data directory is for its owner alone: records, offsets and users are in it, and the lock."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ringleader.coordinator.identity import IdentityError, make_directory
from ringleader.coordinator.logs import Log

OWNER_ONLY = 0o700


def claim(path: Path, log: Log) -> None:
    """Make the directory, or close it to other users of the machine; one log line when that changes
    something, or cannot be done. Raises OSError: `IdentityError` for the directory of another user in which
    anybody may write."""
    make_directory(path, OWNER_ONLY)
    found = path.stat()
    mode = stat.S_IMODE(found.st_mode)
    if found.st_uid == os.geteuid():
        if mode & 0o077:
            path.chmod(OWNER_ONLY)
            log.warning(
                "data directory was open to other users of the machine", was=f"{mode:04o}", now="0700"
            )
    elif mode & stat.S_IWOTH:
        raise IdentityError(
            f"{path} belongs to another user (uid {found.st_uid}), and anybody may write there: give a "
            f"directory below it as data.dir, such as {path / 'ringleader'}: it is made for its owner alone"
        )
    elif mode & stat.S_IROTH or mode & stat.S_IXOTH:
        # Of a container's volume, whose group is ours: it cannot be closed, but its files are.
        log.warning(
            "data directory belongs to another user and is open to others; the files in it are not",
            mode=f"{mode:04o}",
            uid=found.st_uid,
        )
