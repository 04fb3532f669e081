"""A reader who types what a page says, from beginning to end, and compares what comes with what it shows.

Only the port of ``127.0.0.1:9092`` is another one, that is free; and the daemon does not wait for more
members before a group's first rebalance. Every page has a directory, an environment and daemons of its own.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

from tests.docs.environment import Environment, bash
from tests.docs.fences import ROOT, Fence
from tests.docs.process import Process, missing, pattern, same
from tests.docs.surroundings import whole
from tests.support.ports import free_address

SHOWN = re.compile(r"(127\.0\.0\.1|localhost):9092")
HTTP = "127.0.0.1:9464"
"""Health and metrics, as pages have it; here a port that is free."""
LAKE = "/srv/lake"
"""A directory that several machines see; here one of the page's."""
GOES_ON = ("until shown", "beside")
NO_PORT = 1
"""Nobody listens there: a page that has not started a daemon finds none."""


class Reader:
    """One page's."""

    def __init__(self, directory: Path, environment: Environment, spark: Process | None = None) -> None:
        self._directory = directory
        self._environment = environment
        self._spark = spark
        self._port = NO_PORT
        self._http = free_address()
        self._daemon: Process | None = None
        self._beside: list[Process] = []
        # A reader is in the folder of the sources.
        (directory / "docs").symlink_to(ROOT / "docs")

    def read(self, fences: list[Fence]) -> None:
        """All of a page."""
        for fence, following in pairwise([*fences, None]):
            assert fence is not None
            shown = following.text if following is not None and following.shows else None
            try:
                self._do(fence, shown)
            except AssertionError as error:
                raise AssertionError(f"{fence.where}: {error}") from error

    def close(self) -> None:
        """The end of the page: everything ends, and the daemon in peace."""
        for process in reversed(self._beside):
            process.interrupt()
        self._beside.clear()
        self._stop_daemon()

    def kill(self) -> None:
        """Nothing is left, after a failure."""
        for process in [*self._beside, *([self._daemon] if self._daemon else [])]:
            process.kill()

    def _do(self, fence: Fence, shown: str | None) -> None:
        if fence.shows or fence.how.startswith("not: "):
            return
        if fence.how.startswith("file "):
            (self._directory / fence.how.removeprefix("file ")).write_text(self._ours(fence.text))
        elif fence.how == "log":
            self._look_into_log(fence.text)
        elif fence.language == "sh":
            self._type_all(fence, shown)
        elif fence.language == "console":
            self._type_and_compare(fence)
        elif fence.how == "spark":
            self._spark_shell(fence, shown)
        else:
            assert fence.language == "python", f"what is {fence.language!r} {fence.how!r} for?"
            self._program(fence, shown)

    # ---- the shell ----

    def _type_all(self, fence: Fence, shown: str | None) -> None:
        lines: list[str] = []
        if fence.how in GOES_ON:
            self._goes_on(fence.how, [bash(), "-c", f"exec {self._ours(fence.text)}"], shown)
            return
        for command in commands(fence.text):
            lines += self._type(command)
        if shown is not None:
            self._compare(shown, lines, fence.how)

    def _type_and_compare(self, fence: Fence) -> None:
        for command, shown in dialogue(fence.text):
            self._compare(shown, self._type(command))

    def _type(self, command: str) -> list[str]:
        """One command: its lines."""
        words = shlex.split(command, comments=True)
        if words[:2] == ["pip", "install"]:
            self._environment.pip_install(words[2:])
            return []
        if words[:2] == ["ringleader", "serve"]:
            return self._serve(command)
        process = self._start([bash(), "-c", self._ours(command)])
        code = process.end()
        assert code == 0, f"{command}: exit code {code}\n{process.output()}"
        return process.lines

    def _serve(self, command: str) -> list[str]:
        """A daemon. One that was there has been stopped, for it has the port."""
        self._stop_daemon()
        given = SHOWN.sub(r"\1:0", command).replace(HTTP, self._http)
        more = {"RINGLEADER_GROUP_INITIAL_REBALANCE_DELAY_MS": "0"}
        if "--listeners" not in command:
            more["RINGLEADER_LISTEN"] = "127.0.0.1:0"
        daemon = self._start([bash(), "-c", f"exec {given}"], **more)
        self._daemon = daemon
        assert daemon.until(lambda: bool(daemon.lines)), daemon.output()
        host, _, port = daemon.lines[0].rpartition(":")
        assert host == "ready 127.0.0.1", daemon.output()
        self._port = int(port)
        return daemon.lines

    def _stop_daemon(self) -> None:
        daemon, self._daemon = self._daemon, None
        self._port = NO_PORT
        if daemon is not None:
            assert daemon.interrupt() == 0, daemon.output()
            assert "Traceback" not in daemon.output(), daemon.output()

    def _look_into_log(self, text: str) -> None:
        daemon = self._daemon
        assert daemon is not None, "the page has started no daemon"
        wanted = re.compile(pattern(text))
        assert daemon.until(lambda: any(map(wanted.search, daemon.errors))), (
            f"not in the log: {text}\n{daemon.output()}"
        )

    # ---- programs ----

    def _program(self, fence: Fence, shown: str | None) -> None:
        file = self._directory / f"line_{fence.line}.py"
        file.write_text(self._ours(program(fence)))
        command = [str(self._environment.python), file.name]
        if fence.how in GOES_ON:
            self._goes_on(fence.how, command, shown)
            return
        process = self._start(command)
        code = process.end()
        assert code == 0, f"exit code {code}\n{process.output()}"
        assert not process.errors, process.output()
        self._compare(shown or "", process.lines, fence.how)

    def _spark_shell(self, fence: Fence, shown: str | None) -> None:
        assert self._environment.has("pyspark"), "the page has not installed PySpark"
        assert self._spark is not None
        lines = ask(self._spark, self._ours(fence.text))
        self._compare(shown or "", lines)

    # ---- what comes ----

    def _goes_on(self, how: str, command: list[str], shown: str | None) -> None:
        assert shown is not None, "what does it show?"
        process = self._start(command)
        self._beside.append(process)
        self._await(process, shown)
        if how == "until shown":
            self._beside.remove(process)
            process.interrupt()

    def _start(self, command: list[str], **more: str) -> Process:
        variables = self._environment.variables(self._directory)
        variables["RINGLEADER_BOOTSTRAP_SERVER"] = f"127.0.0.1:{self._port}"
        variables["RINGLEADER_HTTP"] = f"http://{self._http}"
        return Process(command, self._directory, variables | more)

    def _ours(self, text: str) -> str:
        ours = SHOWN.sub(rf"\1:{self._port}", text).replace(HTTP, self._http)
        return ours.replace(LAKE, str(self._directory / "lake"))

    def _theirs(self, lines: list[str]) -> list[str]:
        lake = str(self._directory / "lake")
        return [
            line.replace(self._http, HTTP).replace(f":{self._port}", ":9092").replace(lake, LAKE)
            for line in lines
        ]

    def _compare(self, shown: str, lines: list[str], how: str = "") -> None:
        found = self._theirs(lines)
        if how == "in any order":
            shown, found = "\n".join(sorted(shown.splitlines())), sorted(found)
        assert same(shown, found), "the page shows\n" + shown + "\nand what came is\n" + "\n".join(found)

    def _await(self, process: Process, shown: str) -> None:
        if not process.until(lambda: not missing(shown, self._theirs(process.lines))):
            raise AssertionError(f"did not come: {missing(shown, process.lines)}\n{process.output()}")


@contextmanager
def reading(directory: Path, ours: Path, spark: Process | None = None) -> Iterator[Reader]:
    """A reader in that directory. `ours` is what the wheel installs."""
    reader = Reader(directory, Environment(directory / "env", ours), spark)
    try:
        yield reader
        reader.close()
    finally:
        reader.kill()


DONE = "--- done ---"


def ask(spark: Process, code: str) -> list[str]:
    """The output of the PySpark shell for it."""
    before = len(spark.lines)
    spark.type(json.dumps(code))
    assert spark.until(lambda: DONE in spark.lines[before:]), spark.output()
    lines = spark.lines[before : spark.lines.index(DONE, before)]
    assert "Traceback (most recent call last):" not in lines, "\n".join(lines)
    return lines


def program(fence: Fence) -> str:
    """The program that is run for a Python fence."""
    if fence.how.startswith("inside "):
        return whole(fence.how.removeprefix("inside "), fence.text)
    return fence.text


def commands(text: str) -> list[str]:
    """One by one, as they are typed."""
    whole_lines = text.replace("\\\n", " ").splitlines()
    return [line.strip() for line in whole_lines if line.strip() and not line.startswith("#")]


def dialogue(text: str) -> list[tuple[str, str]]:
    """Of a console: each command, and what it shows."""
    found: list[tuple[str, str]] = []
    for line in text.splitlines(keepends=True):
        if line.startswith("$ "):
            found.append((line.removeprefix("$ ").strip(), ""))
        else:
            command, shown = found.pop()
            found.append((command, shown + line))
    return found
