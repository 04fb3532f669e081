"""Rules for all tests: chance is fresh, nothing is left, Spark finds a Java and is started once."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator, Iterator
from typing import Any

import pytest

from tests.support.spark_session import spark_session
from tools import minutes
from tools.java_home import java_home

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell runs what it puts into the background so, and processes of the tests would inherit it: Ctrl-C is
    # a part of what is tested.
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = [
    "tests.support.both_ways",
    "tests.support.groups",
    "tests.support.leftovers",
    "tests.support.seeds",
    "tests.support.second_try",
    "tests.support.costs",
]


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One Spark session for all tests of a run that need a JVM."""
    with spark_session(tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """None of what is collected is garbage: looking for some took a quarter of the time of each process. And
    it stays: no look for garbage in a test goes through it again."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


STARTED_ONCE = frozenset(("daemon", "coordinator", "made", "rolled", "built"))
"""Fixtures of a module that take long to make: each process that runs some of its tests would make its
own."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """All tests that need a Spark session run in one process, so that one session serves them. Tests that
    took long in the last run that was kept begin first: else the other processes would wait for them."""
    from tests.support.second_try import bare  # pytest loads it first, to rewrite its assertions

    took_s = minutes.kept().long
    items.sort(key=lambda item: -took_s.get(bare(item.nodeid), 0.0))
    for item in items:
        if _of_its_module(item) & STARTED_ONCE and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(str(item.path.relative_to(config.rootpath))))
    spark = [item for item in items if item.get_closest_marker("spark")]
    for item in spark:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("spark"))
    if spark and (home := java_home()) is not None:
        # `make test` has seen to this; a plain `pytest` has not.
        os.environ["JAVA_HOME"] = str(home)


def _of_its_module(item: Any) -> set[str]:
    """The fixtures that it needs, of those that its module has one of for all its tests."""
    found = item._fixtureinfo.name2fixturedefs if hasattr(item, "_fixtureinfo") else {}
    return {
        name
        for name, [*_, used] in found.items()
        if used.scope == "module" and used.func.__module__ == item.module.__name__
    }
