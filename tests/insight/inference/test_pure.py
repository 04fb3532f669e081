"""Inference has no I/O: the modules for that are not even loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest

IO = ("sqlite3", "socket", "selectors", "asyncio", "threading", "subprocess")


@pytest.mark.parametrize(
    "room", ["ringleader.insight.inference.engine", "ringleader.insight.inference.journal"]
)
def test_importing_inference_loads_no_io(room: str) -> None:
    code = f"import sys, {room}; print(*(name for name in {IO!r} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
