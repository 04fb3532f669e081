"""A file that one process holds; the operating system drops it when the process ends, however it ends.

In a directory that was open to others once, somebody may have put another thing in its place: what is no
plain file of this user is neither followed, written nor held.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from pathlib import Path

OWNER_ONLY = 0o600
"""Another user of the machine who could open it could hold it."""


class HeldError(Exception):
    """Another process has it."""

    def __init__(self, pid: int | None) -> None:
        super().__init__(f"process {pid or '?'}")
        self.pid = pid
        """None: the file does not have it."""


class ForeignFileError(OSError):
    """There is something else in its place; the text is one sentence that says what to do."""


class LockFile:
    """Of one process at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor = -1

    def acquire(self) -> None:
        """Raises `HeldError` when another has it, in this process or another; OSError, `ForeignFileError`
        among them."""
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK  # a pipe is not waited for
            descriptor = os.open(self._path, flags, OWNER_ONLY)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.EACCES):
                self._check(os.lstat(self._path))
            raise
        try:
            self._check(os.fstat(descriptor))
            os.fchmod(descriptor, OWNER_ONLY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                holder = os.read(descriptor, 32).decode(errors="replace").strip()
                raise HeldError(int(holder) if holder.isdecimal() else None) from None
            os.ftruncate(descriptor, 0)
            os.write(descriptor, b"%d\n" % os.getpid())
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor

    def _check(self, found: os.stat_result) -> None:
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            kind = "a symbolic link" if stat.S_ISLNK(found.st_mode) else "no file of its own"
            raise ForeignFileError(f"{self._path} is {kind}, and nothing of ours: look at it and delete it")
        if found.st_uid != os.geteuid():
            raise ForeignFileError(
                f"{self._path} belongs to another user (uid {found.st_uid}), who can hold it: start as that "
                "user, or delete it when nothing of that user runs here"
            )

    def release(self) -> None:
        """May be called when it is not held."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
