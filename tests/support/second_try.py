"""Second tries: for tests that are marked so, with the reason, and never unnoticed.

Other libraries' clients have timeouts of their own, which run by the clock: beside others, one may be late.
Its test says so, `@pytest.mark.second_try("why")`. When nothing else failed, the run ends with the exit code
`TRY_AGAIN`, and `pytest --second-try` runs these tests once more and says how each ended. No other test has a
second try, nor one that drew a seed, nor what was left behind.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from tests.support.seeds import draws

TRY_AGAIN = 10
"""The exit code of a run in which all that failed may be tried once more. The Makefile knows it, too."""

CACHED = "ringleader/second-try"
REASON = "second try"


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--second-try`: what the run before left to it."""
    parser.addoption("--second-try", action="store_true", help="once more, what the last run says may be")


def pytest_configure(config: pytest.Config) -> None:
    """Workers say of each failure whether there may be a second try; the process that reports adds up."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Tries(config), "second tries")


def bare(node_id: str) -> str:
    """Without the xdist group, which some reports carry."""
    return node_id.rpartition("@")[0] if "@" in node_id.rpartition("]")[2] else node_id


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The second try is of what the first one left to it, and of nothing else."""
    if not config.getoption("--second-try"):
        return
    assert config.cache is not None
    wanted = set(config.cache.get(CACHED, {}))
    config.hook.pytest_deselected(items=[item for item in items if bare(item.nodeid) not in wanted])
    items[:] = [item for item in items if bare(item.nodeid) in wanted]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Leftovers are found in the teardown: that fails."""
    report = yield
    mark = item.get_closest_marker("second_try")
    if report.failed and report.when != "teardown" and mark is not None and not draws(item):
        report.user_properties.append((REASON, str(mark.args[0])))
    return report


class Tries:
    """The failures of this run, and those that may be tried again."""

    def __init__(self, config: pytest.Config) -> None:
        self._second = bool(config.getoption("--second-try"))
        self._before: dict[str, str] = {}
        self._cache: pytest.Cache | None = getattr(config, "cache", None)
        """None: this run has none, so nothing is left to a second try."""
        if self._second and self._cache is not None:
            self._before = self._cache.get(CACHED, {})
        self._again: dict[str, str] = {}
        self._passed: set[str] = set()
        self._for_good = False

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be read has no second try."""
        self._for_good |= report.failed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A process that crashed in a test, too, is a report; without a reason."""
        name, reason = bare(report.nodeid), dict(report.user_properties).get(REASON)
        if report.passed and report.when == "call":
            self._passed.add(name)
        elif report.failed and isinstance(reason, str):
            self._again[name] = reason
        elif report.failed:
            self._for_good = True

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """The run's exit code."""
        cut_off = session.shouldfail or session.shouldstop
        if self._for_good or cut_off or self._second or session.exitstatus != pytest.ExitCode.TESTS_FAILED:
            self._again = {}
        if self._cache is None:
            self._again = {}
        else:
            self._cache.set(CACHED, self._again)
        if self._again:
            session.exitstatus = TRY_AGAIN

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """At the end, where it is read."""
        if self._again:
            terminalreporter.section("may be tried once more")
        for name, reason in sorted(self._again.items()):
            terminalreporter.write_line(f"{name}: {reason}")
        if self._before:
            terminalreporter.section("at the second try")
        for name, reason in sorted(self._before.items()):
            how = "passed" if name in self._passed else "did not pass"
            terminalreporter.write_line(f"{how}: {name}: {reason}")
