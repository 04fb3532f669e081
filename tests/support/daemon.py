"""The daemon as a process of its own: started, killed, started again on the same port and directory.

For tests that need a real process (crashes, signals, other programs). Tests that only need a coordinator to
talk to use ``ringleader.testing.coordinator``, which is ready much sooner.

It fails the test when it writes a traceback or a warning of Python's, ends by itself, does not stop cleanly
on request, or leaves a task, thread, socket or process at its end.
"""

from __future__ import annotations

import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from ringleader.coordinator import turn_watch
from tests.support import last_look
from tests.support.last_look import LEFT, OPTIONS
from tests.support.ports import free_ports
from tests.support.tied import tied

READY_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0
SIGNALLED = (-signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT)
TRACEBACK = "Traceback (most recent call last)"
WRONG = (TRACEBACK, "ResourceWarning: ", "RuntimeWarning: ", "Task was destroyed but it is pending", LEFT)
"""Texts that no daemon writes."""


class DaemonError(Exception):
    """The daemon did not do what a test asked of it, or more; the text ends with its log."""


class Daemon:
    """``ringleader serve`` on a free loopback port, with its state and its log under `directory`.

    All its starts listen on the same free port, so that clients find it again.
    """

    def __init__(
        self,
        directory: Path,
        *,
        topics: Sequence[str] = (),
        options: Sequence[str] = (),
        environ: Mapping[str, str] | None = None,
        listener: str = "",
        beside: str = "",
        turn_ms: int = 0,
        plain: bool = False,
    ) -> None:
        """`beside`: NAME://HOST:PORT of a second listener. `turn_ms`: no turn of its loop may take more CPU
        time. `plain`: exactly the command that users run, whatever it leaves at its end."""
        self.directory = directory
        self.data_dir = directory / "data"
        self.log_path = directory / "daemon.log"
        self._log_start = len(self.log())
        [self.port] = free_ports(1)
        self.tracebacks_expected = False
        """Whether it may log tracebacks, because the test breaks it on purpose."""
        self._topics = topics
        self._options = options
        self._environ = environ
        self._listener = listener
        """Its name, if it is not the plaintext one."""
        self._beside = beside
        self._plain = plain
        if turn_ms:
            self._options = [*options, "--debug-turn-ms", str(turn_ms)]
        self._process: subprocess.Popen[str] | None = None

    @property
    def bootstrap(self) -> str:
        """HOST:PORT for clients."""
        return f"127.0.0.1:{self.port}"

    @property
    def process(self) -> subprocess.Popen[str]:
        """The running process."""
        assert self._process is not None, "the daemon is not running"
        return self._process

    @property
    def running(self) -> bool:
        """Whether it was started, and neither stopped nor killed by the test."""
        return self._process is not None

    @property
    def pid(self) -> int:
        """The process id."""
        return self.process.pid

    def log(self) -> str:
        """Everything that it has written to standard error, over all its starts."""
        return self.log_path.read_text() if self.log_path.exists() else ""

    def command(self) -> list[str]:
        """The command line of the next start."""
        how = ("-m", "ringleader") if self._plain else (*OPTIONS, last_look.__file__)
        command = [sys.executable, *how, "serve"]
        where = f"{self._listener or 'PLAINTEXT'}://{self.bootstrap}"
        named = f"{where},{self._beside}" if self._beside else where
        several = self._listener or self._beside
        command += ["--listeners", named] if several else ["--listen", self.bootstrap]
        command += ["--data-dir", str(self.data_dir)]
        for topic in self._topics:
            command += ["--topic", topic]
        return command + list(self._options)

    def start(self, *, wrapper: Sequence[str] = ()) -> Daemon:
        """Start it and wait for its ready line; `wrapper` goes before the command (``strace -c``...)."""
        assert self._process is None, "the daemon is running"
        self.directory.mkdir(parents=True, exist_ok=True)
        with self.log_path.open("a") as log:
            self._process = subprocess.Popen(
                [*wrapper, *self.command()],
                stdout=subprocess.PIPE,
                stderr=log,
                stdin=subprocess.DEVNULL,
                text=True,
                env=None if self._environ is None else dict(self._environ),
            )
        tied(self._process)
        try:
            line = self._read_line(READY_TIMEOUT_S)
            if not line.startswith("ready "):
                raise DaemonError(f"expected the ready line, got {line!r}\n{self.log()}")
        except BaseException:
            self._process.kill()
            self._process.wait()
            self._end(signal.SIGKILL)
            raise
        return self

    def _read_line(self, timeout_s: float) -> str:
        stdout = self.process.stdout
        assert stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            if not selector.select(timeout_s):
                raise DaemonError(f"not ready within {timeout_s} s\n{self.log()}")
        line = stdout.readline()
        if not line:
            raise DaemonError(f"ended with exit code {self.process.wait()}\n{self.log()}")
        return line

    def kill(self) -> None:
        """SIGKILL, and wait until it is gone. Does nothing when it is not running."""
        self._end(signal.SIGKILL)
        self._check_log()

    def stop(self) -> None:
        """SIGTERM, and wait for a clean stop. Does nothing when it is not running."""
        if (code := self._end(signal.SIGTERM)) != 0:
            raise DaemonError(f"stopped with exit code {code}\n{self.log()}")
        self._check_log()

    def wait(self) -> int:
        """Wait until it ends by itself, as the test wants it to; returns the exit code."""
        try:
            code = self.process.wait(STOP_TIMEOUT_S)
        finally:
            self._end(signal.SIGKILL)
        self._check_log()
        return code

    def _end(self, number: signal.Signals) -> int:
        if self._process is None:
            return 0
        process, self._process = self._process, None
        noticed = process.returncode is not None  # a test has waited for its end
        if not noticed and (code := process.poll()) is not None and code not in SIGNALLED:
            self._close(process)
            raise DaemonError(f"had ended by itself, with exit code {code}\n{self.log()}")
        process.send_signal(number)
        try:
            return process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise DaemonError(f"did not stop within {STOP_TIMEOUT_S} s\n{self.log()}") from None
        finally:
            self._close(process)

    def _close(self, process: subprocess.Popen[str]) -> None:
        if process.stdout is not None:
            process.stdout.close()

    def _check_log(self) -> None:
        log = self.log()[self._log_start :]
        if not self.tracebacks_expected and (wrong := [text for text in WRONG if text in log]):
            raise DaemonError(f"wrote what it must not ({', '.join(wrong)}):\n{log}")
        if long := [line for line in log.splitlines() if turn_watch.EVENT in line]:
            raise DaemonError("held its loop:\n" + "\n".join(long))

    def restart(self) -> float:
        """Kill it and start it again in place; returns the seconds from the start to its ready line."""
        self.kill()
        began = time.monotonic()
        self.start()
        return time.monotonic() - began

    def __enter__(self) -> Daemon:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.stop()
        else:
            self._end(signal.SIGKILL)
