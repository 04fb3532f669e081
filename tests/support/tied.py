"""Processes that end with this one, however it ends: a watcher kills them when it is gone.

A `finally` is passed over by SIGKILL, by SIGTERM and by a second Ctrl-C. PR_SET_PDEATHSIG goes by the thread
that started a process, and brokers of one cluster are started by threads that end before them.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import subprocess
import sys
import threading
from typing import TypeVar

Process = TypeVar("Process", bound="subprocess.Popen[str] | subprocess.Popen[bytes]")

WATCHER = "ends what was tied"
"""Stands in the watcher's command line."""

_CODE = f"""# {WATCHER}
import os, selectors, signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
looks = selectors.DefaultSelector()
looks.register(0, selectors.EVENT_READ)
tied, rest = {{}}, b""
while True:
    ready = [key.fd for key, _ in looks.select()]
    for fd in ready:
        if fd:
            looks.unregister(fd)
            os.close(fd)
            del tied[fd]
    if 0 not in ready:
        continue
    came = os.read(0, 65536)
    if not came:
        break
    *lines, rest = (rest + came).split(b"\\n")
    for line in lines:
        try:
            fd = os.pidfd_open(int(line))
        except ProcessLookupError:
            continue
        tied[fd] = int(line)
        looks.register(fd, selectors.EVENT_READ)
for fd, pid in tied.items():
    try:
        leads = os.getpgid(pid) == pid
        signal.pidfd_send_signal(fd, signal.SIGKILL)
        if leads:
            os.killpg(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
"""

_lock = threading.Lock()
_watcher: subprocess.Popen[bytes] | None = None
_of = 0
"""The process whose watcher that is: a fork has none of its own."""


def tied(process: Process) -> Process:
    """The same process; it is killed, with the group that it leads, when this one is gone. Linux only, as
    `pidfd_open` is; elsewhere nothing is tied."""
    global _watcher, _of
    if not hasattr(os, "pidfd_open"):
        return process
    with _lock:
        if _watcher is None or _of != os.getpid():
            command = [sys.executable, "-S", "-c", _CODE]
            _watcher = subprocess.Popen(command, stdin=subprocess.PIPE, bufsize=0, start_new_session=True)
            _of = os.getpid()
            atexit.register(_end)
        assert _watcher.stdin is not None
        with contextlib.suppress(OSError):  # somebody has killed the watcher: nothing is tied any more
            _watcher.stdin.write(b"%d\n" % process.pid)
    return process


def _end() -> None:
    """This process ends in good order: so does the watcher, and what is still there is killed."""
    if _watcher is not None and _of == os.getpid() and _watcher.stdin is not None:
        _watcher.stdin.close()
        _watcher.wait()
