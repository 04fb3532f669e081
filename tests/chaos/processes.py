"""The processes of a run: each has its history and its log, and none outlives the `with` block."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

from tests.chaos.history import Process, read
from tests.support.tied import tied

ROOT = Path(__file__).resolve().parents[2]
STOP_TIMEOUT_S = 60.0
"""A library may have to give up a request before it leaves."""


class Processes:
    """By name. `directory`: where NAME.jsonl and NAME.log go."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self.complaints: list[str] = []
        """Which of them failed, and how."""
        self.stopped: set[str] = set()
        """Processes that have ended."""

    def start(
        self, name: str, module: str, *arguments: str, environ: Mapping[str, str] | None = None
    ) -> None:
        """Start ``python -m module``, with its name and its history's path as arguments."""
        with (self._directory / f"{name}.log").open("a") as log:
            self._running[name] = process = subprocess.Popen(
                [
                    *(sys.executable, "-m", module, "--name", name),
                    *("--history", str(self.history(name)), *arguments),
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=ROOT,
                env={**os.environ, **(environ or {})},
                start_new_session=True,  # Ctrl-C is for the director; Spark's JVM ends with its script
            )
        tied(process)

    def history(self, name: str) -> Path:
        """Of that process."""
        return self._directory / f"{name}.jsonl"

    def read(self, name: str) -> Process:
        """The lines that it has written down so far."""
        path = self.history(name)
        path.touch()
        return read(path)

    def check(self) -> None:
        """A process that has ended by itself is in `complaints` from now on."""
        for name, process in list(self._running.items()):
            if process.poll() is not None:
                self._complain(name, f"ended by itself with exit code {process.returncode}")

    def forget(self, name: str) -> bool:
        """Whether it has ended by itself; that is no failure then."""
        process = self._running.get(name)
        if process is None or process.poll() is None:
            return False
        self._kill(self._running.pop(name))
        self.stopped.add(name)
        return True

    def stop(self, names: Collection[str]) -> None:
        """SIGTERM to all of these, and wait for them; any that does not end in time is killed."""
        self.check()
        there = [name for name in names if name in self._running]
        for name in there:
            self._running[name].terminate()
        for name in there:
            process = self._running[name]
            try:
                process.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self._complain(name, f"did not stop within {STOP_TIMEOUT_S:.0f} s")
                continue
            if process.returncode:
                self._complain(name, f"stopped with exit code {process.returncode}")
            self._running.pop(name, None)
            self.stopped.add(name)

    @property
    def pids(self) -> dict[str, int]:
        """Of those that run; each is a process group of its own, too."""
        return {name: process.pid for name, process in self._running.items()}

    def kill(self, name: str) -> None:
        """SIGKILL, which is no complaint."""
        self._kill(self._running.pop(name))
        self.stopped.add(name)

    def _complain(self, name: str, how: str) -> None:
        self._kill(self._running.pop(name))
        self.stopped.add(name)
        lines = (self._directory / f"{name}.log").read_text(errors="replace").splitlines()
        self.complaints.append(f"{name} {how}" + (f"; its log ends: {lines[-1]}" if lines else ""))

    @staticmethod
    def _kill(process: subprocess.Popen[bytes]) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def __enter__(self) -> Processes:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running.values():
            self._kill(process)
