"""What holds for all tests: Spark finds a Java and is started once, and nothing is left running."""

from __future__ import annotations

import os
from collections.abc import Iterator

import psutil
import pytest
from hypothesis import settings

from tools.java_home import java_home

# A test is no stopwatch: on a busy machine any example may take long.
settings.register_profile("patient", deadline=None)
settings.load_profile("patient")

# Spark's JVM and its workers end when the process that started them does; so does Python's own tracker.
ENDS_WITH_ITS_PARENT = ("org.apache.spark", "pyspark", "multiprocessing")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests that need a Spark session run in one process, so that one session serves them."""
    spark = [item for item in items if item.get_closest_marker("spark")]
    for item in spark:
        item.add_marker(pytest.mark.xdist_group("spark"))
    if spark and (home := java_home()) is not None:
        # `make test` has seen to this; a plain `pytest` has not.
        os.environ["JAVA_HOME"] = str(home)


@pytest.fixture(scope="session", autouse=True)
def nothing_left_running() -> Iterator[None]:
    """Fails the run when a test leaves a process behind."""
    yield
    commands = [
        f"{child.pid}: {' '.join(child.cmdline())}"
        for child in psutil.Process().children(recursive=True)
        if child.status() != psutil.STATUS_ZOMBIE
    ]
    left = [command for command in commands if not any(word in command for word in ENDS_WITH_ITS_PARENT)]
    assert not left, "left running:\n" + "\n".join(left)
