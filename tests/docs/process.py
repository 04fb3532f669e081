"""A process that a reader starts, and its output."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

PATIENCE_S = 60.0


class Process:
    """A command in a session of its own; its lines are gathered as they come."""

    def __init__(self, command: Sequence[str], directory: Path, variables: Mapping[str, str]) -> None:
        self.lines: list[str] = []
        self.errors: list[str] = []
        self._news = threading.Condition()
        self._open = 2
        self._child = subprocess.Popen(
            command,
            cwd=directory,
            env=dict(variables),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self._child.stdout is not None
        assert self._child.stderr is not None
        self._threads = [
            threading.Thread(target=self._gather, args=(self._child.stdout, self.lines)),
            threading.Thread(target=self._gather, args=(self._child.stderr, self.errors)),
        ]
        for thread in self._threads:
            thread.start()

    def _gather(self, stream: IO[str], lines: list[str]) -> None:
        with stream:
            for line in stream:
                with self._news:
                    lines.append(line.rstrip())
                    self._news.notify_all()
        with self._news:
            self._open -= 1
            self._news.notify_all()

    def type(self, line: str) -> None:
        """A line of input."""
        assert self._child.stdin is not None
        self._child.stdin.write(line + "\n")
        self._child.stdin.flush()

    def until(self, condition: Callable[[], bool]) -> bool:
        """Wait until it holds, or until no more lines can come: whether it holds."""
        with self._news:
            if not self._news.wait_for(lambda: condition() or not self._open, PATIENCE_S):
                return False
            return condition()

    def end(self) -> int:
        """Wait for its end: the exit code."""
        self._close_input()
        try:
            return self._child.wait(PATIENCE_S)
        finally:
            self.kill()

    def interrupt(self) -> int:
        """Ctrl-C, and wait for its end: the exit code."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGINT)
        return self.end()

    def kill(self) -> None:
        """Nothing of it is left."""
        self._close_input()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)
        self._child.wait()
        for thread in self._threads:
            thread.join()

    def _close_input(self) -> None:
        assert self._child.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._child.stdin.close()

    def output(self) -> str:
        """All that it has printed."""
        return "\n".join([*self.lines, *self.errors])


# ---- what a page shows ----


def pattern(line: str) -> str:
    """A regular expression for a line of a page: ``...``, ids and times may differ, columns be wider."""
    text = re.escape(" ".join(line.split()))
    text = text.replace(re.escape("..."), ".*").replace("\\ ", " +")
    text = re.sub(r"\\-[0-9a-f]{8}(\\-[0-9a-f]{4,12}){0,4}(?![0-9a-z])", r"\\-[0-9a-f\\-]+", text)
    return re.sub(r"[0-9]+( \+ms\b)|(?<=(?:join|sync) \+)[0-9]+|(?<=leader \+)[0-9]+", r"[0-9]+\1", text)


def same(shown: str, lines: Sequence[str]) -> bool:
    """Whether these lines are what is shown. A line ``...`` stands for any."""
    wanted = "".join(
        r"(?:.*\n)*?" if line.strip() == "..." else rf" *{pattern(line)} *\n" for line in shown.splitlines()
    )
    return re.fullmatch(wanted, "".join(f"{line}\n" for line in lines)) is not None


def missing(shown: str, lines: Sequence[str]) -> list[str]:
    """Lines that are shown and have not come, each for itself: partitions come in any order."""
    left = list(lines)
    found = []
    for line in shown.splitlines():
        match = next((one for one in left if re.fullmatch(f" *{pattern(line)} *", one)), None)
        if match is None:
            found.append(line)
        else:
            left.remove(match)
    return [line for line in found if line.strip() != "..."]
