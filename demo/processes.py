"""The processes of the demo: start, stop, kill, and say why one ended."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

from demo.plan import ROOT, Places
from tests.support.tied import tied

STOP_TIMEOUT_S = 20.0
LOG_TAIL_LINES = 25


class ProcessError(Exception):
    """A process ended that should not have; the text ends with what it last wrote."""


class Cast:
    """Processes by name. Every one has its log, and none outlives the `with` block."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._running: dict[str, subprocess.Popen[str]] = {}
        self._may_end: set[str] = set()

    def start(
        self, name: str, module: str, *arguments: str, stdout: int | None = None
    ) -> subprocess.Popen[str]:
        """Start ``python -m module``; standard error goes to its log, and standard output too unless said."""
        with self._places.log(name).open("a") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", module, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log if stdout is None else stdout,
                stderr=log,
                text=True,
                cwd=ROOT,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
                # Ctrl-C reaches the director only, and Spark's JVM can be ended with its script.
                start_new_session=True,
            )
        tied(process)
        self._running[name] = process
        return process

    def signal(self, name: str, number: signal.Signals) -> None:
        """Send a signal to that process; from now on it may end."""
        self._may_end.add(name)
        self._running[name].send_signal(number)

    def expect_end(self, name: str) -> None:
        """This process ends by itself when its work is done."""
        self._may_end.add(name)

    def ended(self, name: str) -> bool:
        """Whether it has ended."""
        return self._running[name].poll() is not None

    def check(self) -> None:
        """Raise ProcessError when a process has ended that should not have, or failed."""
        for name, process in self._running.items():
            code = process.poll()
            if code is None or (name in self._may_end and code in (0, -signal.SIGKILL, -signal.SIGTERM)):
                continue
            raise ProcessError(f"{name} ended with exit code {code}. Its log ends:\n{self.tail(name)}")

    def tail(self, name: str) -> str:
        """The last lines of its log."""
        return tail(self._places.log(name))

    def stop(self, *names: str) -> None:
        """SIGTERM to all of these, then wait for them; any that does not end in time is killed."""
        there = [self._running[name] for name in names if name in self._running]
        self._may_end.update(names)
        for process in there:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in there:
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._kill(process)

    @staticmethod
    def _kill(process: subprocess.Popen[str]) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()

    def __enter__(self) -> Cast:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running.values():
            self._kill(process)


def tail(path: Path, lines: int = LOG_TAIL_LINES) -> str:
    """The last lines of a file; empty when there is none."""
    if not path.exists():
        return ""
    return "\n".join(path.read_text(errors="replace").splitlines()[-lines:])
