"""The cost of each test: seconds on the clock, and processor seconds of its process and all that it starts.

`pytest --costs FILE` writes them down as JSON, by node id; `python -m tools.minutes FILE` reads it.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.leftovers import children
from tests.support.second_try import bare

COSTS = "costs"
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--costs FILE`: where they go."""
    parser.addoption("--costs", metavar="FILE", help="write down the seconds of each test")


def pytest_configure(config: pytest.Config) -> None:
    """Workers measure, the process that reports writes."""
    path = config.getoption("--costs")
    if path is None:
        return
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Written(Path(path)), "written costs")
    if hasattr(config, "workerinput") or not config.getoption("numprocesses", None):
        config.pluginmanager.register(Measured(), "measured costs")


class Measured:
    """Adds to the last report of a test what passed since the last report of the test before."""

    def __init__(self) -> None:
        self._clock_s = time.monotonic()
        self._processor_s = processor_s()

    def pytest_collection_finish(self) -> None:
        """No test pays for the collection."""
        self._clock_s, self._processor_s = time.monotonic(), processor_s()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """The last report is the one of the teardown."""
        report = yield
        if call.when == "teardown":
            clock_s, used_s = time.monotonic(), processor_s()
            # Less than before: a process has ended that was left to somebody else to wait for.
            cost = (round(clock_s - self._clock_s, 3), round(max(used_s - self._processor_s, 0.0), 3))
            report.user_properties.append((COSTS, cost))
            self._clock_s, self._processor_s = clock_s, used_s
        return report


class Written:
    """Collects what workers report."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._costs: dict[str, Any] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Of one test."""
        if (cost := dict(report.user_properties).get(COSTS)) is not None and report.when == "teardown":
            self._costs[bare(report.nodeid)] = cost

    def pytest_sessionfinish(self) -> None:
        """All of the run."""
        lines = [f"{json.dumps(name)}: {json.dumps(cost)}" for name, cost in sorted(self._costs.items())]
        self._path.write_text("{\n" + ",\n".join(lines) + "\n}\n")


def processor_s() -> float:
    """Processor seconds so far of this process, of its children that have ended, and of those that run."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    running = sum(_used_s(pid) for pid in _descendants(os.getpid()))
    return time.process_time() + ended.ru_utime + ended.ru_stime + running


def _descendants(pid: int) -> Iterator[int]:
    with contextlib.suppress(OSError):  # it has just ended
        for child in children(pid):
            yield child
            yield from _descendants(child)


def _used_s(pid: int) -> float:
    """User and system time of a process and of its children that have ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / TICKS_PER_S
