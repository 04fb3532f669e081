"""Fixtures that the pages share."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.environment import Environment, build_wheel
from tests.docs.fences import ROOT
from tests.docs.process import Process
from tests.docs.reading import DONE
from tests.interop.maven import kept


@pytest.fixture(scope="session")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the wheel of this tree installs. The first process of the run that needs it builds
    it for all."""
    base = tmp_path_factory.getbasetemp()
    run = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base

    def make(fresh: Path) -> None:
        fresh.mkdir()
        build_wheel(fresh)

    return kept(run / "wheel", make) / "site"


@pytest.fixture(scope="module")
def spark(ours: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A PySpark shell for all pages: one JVM, which takes seconds to start."""
    directory = tmp_path_factory.mktemp("shell")
    environment = Environment(directory / "env", ours)
    environment.pip_install([".[spark]"])
    variables = environment.variables(directory)
    if "JAVA_HOME" in os.environ:
        variables["JAVA_HOME"] = os.environ["JAVA_HOME"]
    command = [str(environment.python), str(ROOT / "tests/docs/spark_shell.py")]
    shell = Process([*command, str(ROOT / "tests/support/spark_session.py")], directory, variables)
    try:
        assert shell.until(lambda: DONE in shell.lines), shell.output()
        yield shell
        assert shell.end() == 0, shell.output()
    finally:
        shell.kill()
