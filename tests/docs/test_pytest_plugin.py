"""The fixtures in an environment of its own, with the wheel installed: as applications have them."""

from __future__ import annotations

from pathlib import Path

from tests.docs.environment import Environment
from tests.docs.process import Process

TEST = """
import asyncio, sys
from ringleader import Admin

async def listed(bootstrap):
    async with Admin(bootstrap) as admin:
        return await admin.list_topics()

def test_asserts_of_the_library_are_not_rewritten(ringleader_coordinator):
    assert asyncio.run(listed(ringleader_coordinator.bootstrap)) == []
    ours = {name for name in sys.modules if name.partition(".")[0] == "ringleader"}
    rewritten = {name for name in ours if "rewrite" in type(sys.modules[name].__loader__).__module__}
    assert len(ours) > 50
    assert rewritten <= {"ringleader", "ringleader.pytest_plugin"}   # loaded before anybody could say so
    assert "rewrite" in type(sys.modules[__name__].__loader__).__module__
"""


def test_pytest_leaves_the_library_as_it_is(ours: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path / "env", ours)
    environment.pip_install([".", "pytest"])
    (tmp_path / "test_one.py").write_text(TEST)
    command = [str(environment.python), "-m", "pytest", "-q", "test_one.py"]
    process = Process(command, tmp_path, environment.variables(tmp_path))
    assert process.end() == 0, process.output()
