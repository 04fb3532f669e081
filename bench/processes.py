"""The processes of a benchmark: daemon, yardstick server and load programs, each on its own CPU."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.build import OUT, program
from tests.support.daemon import Daemon
from tests.support.tied import tied

# Settings of the daemon in every benchmark: none is switched off for speed; the delay is zero as the brokers'
# yardsticks were measured that way, and idle members must outlive the run.
DAEMON_OPTIONS = ("--group-initial-rebalance-delay-ms", "0")


@dataclass(frozen=True, slots=True)
class Pins:
    """One CPU for the server and another for the load; the same one twice on a machine with a single CPU."""

    server: int
    load: int

    @classmethod
    def choose(cls) -> Pins:
        """The first two CPUs that this process may use."""
        allowed = sorted(os.sched_getaffinity(0))
        return cls(allowed[0], allowed[1] if len(allowed) > 1 else allowed[0])

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """This thread and what it starts stay off the server's CPU meanwhile: they read what brokers log."""
        before = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {self.load})
        try:
            yield
        finally:
            os.sched_setaffinity(0, before)


def pinned(cpu: int, command: Sequence[str]) -> list[str]:
    """`command` as one that runs on `cpu` only."""
    code = "import os, sys; os.sched_setaffinity(0, {int(sys.argv[1])}); os.execvp(sys.argv[2], sys.argv[2:])"
    return [sys.executable, "-S", "-c", code, str(cpu), *command]


@contextlib.contextmanager
def yardstick(cpu: int) -> Iterator[tuple[int, int]]:
    """The C server on `cpu`: its port and process id."""
    command = pinned(cpu, [str(program("server"))])
    process = tied(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    try:
        assert process.stdout is not None
        word, _, address = process.stdout.readline().strip().partition(" ")
        if word != "ready":
            raise RuntimeError("the yardstick server did not start")
        yield int(address.rpartition(":")[2]), process.pid
    finally:
        process.terminate()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


@contextlib.contextmanager
def work_dir(parent: Path | None = None) -> Iterator[Path]:
    """A directory for one benchmark's data in `parent` (bench/out when None), removed afterwards."""
    place = OUT if parent is None else parent
    place.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="data-", dir=place) as name:
        yield Path(name)


@contextlib.contextmanager
def daemon(
    directory: Path,
    cpu: int | None,
    *,
    topics: Sequence[str] = (),
    options: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    beside: str = "",
) -> Iterator[Daemon]:
    """`ringleader serve` in `directory`, on `cpu` when one is given; killed at the end. `beside`: see
    `Daemon`."""
    words = [*DAEMON_OPTIONS, *options]
    one = Daemon(directory, topics=topics, options=words, environ=environ, beside=beside, plain=True)
    one.start(wrapper=[] if cpu is None else pinned(cpu, []))
    try:
        yield one
    finally:
        one.kill()


def run_load(cpu: int, name: str, options: Mapping[str, Any], command: Sequence[str] = ()) -> dict[str, Any]:
    """Runs a load program to its end and returns what it measured."""
    process = start_load(cpu, name, options, command)
    return finish_load(process)


def start_load(
    cpu: int, name: str, options: Mapping[str, Any], command: Sequence[str] = ()
) -> subprocess.Popen[str]:
    """Starts a load program on `cpu`, the one in C unless there is another `command`; `finish_load` takes its
    result."""
    command = list(command) or [str(program(name))]
    for key, value in options.items():
        command += [f"--{key.replace('_', '-')}", str(value)]
    return tied(
        subprocess.Popen(pinned(cpu, command), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    )


def finish_load(process: subprocess.Popen[str]) -> dict[str, Any]:
    """The measurements of a load program. Raises `RuntimeError` when it failed."""
    printed, complaint = process.communicate()
    if process.returncode != 0:
        raise RuntimeError(f"the load program failed: {complaint.strip()}")
    result: dict[str, Any] = json.loads(printed)
    return result


def resident_bytes(pid: int) -> int:
    """Resident memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"process {pid} has no resident memory")


def cpu_seconds(pid: int) -> float:
    """User and system time of a process, its threads included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
