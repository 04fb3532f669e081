"""The power cut of the crash tests: what was synced stays, what was not goes. Needs a C compiler."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.powercut import cut_power, watching

# Each line is a step of a process that then kills itself.
_SCRIPT = """
import os, signal, sys
path = sys.argv[1]
fd = os.open(path, os.O_RDWR | os.O_CREAT)
os.write(fd, b"synced")
{steps}
os.kill(os.getpid(), signal.SIGKILL)
"""


def after_cut(tmp_path: Path, *steps: str, name: str = "state.db") -> bytes:
    path = tmp_path / name
    code = _SCRIPT.format(steps="\n".join(steps))
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], env=watching(tmp_path / "state"), check=False, timeout=60
    )
    assert done.returncode == -9
    cut_power(tmp_path / "state")
    return path.read_bytes()


def test_what_was_synced_stays(tmp_path: Path) -> None:
    assert after_cut(tmp_path, "os.fdatasync(fd)") == b"synced"


def test_what_was_appended_after_the_sync_goes(tmp_path: Path) -> None:
    assert after_cut(tmp_path, "os.fsync(fd)", "os.write(fd, b'lost')", "os.write(fd, b'too')") == b"synced"


def test_what_was_overwritten_comes_back(tmp_path: Path) -> None:
    steps = [
        "os.fsync(fd)",
        "os.pwrite(fd, b'LOST', 1)",
        "os.pwrite(fd, b'!!', 2)",
        "os.pwrite(fd, b'??', 5)",
    ]
    assert after_cut(tmp_path, *steps) == b"synced"


def test_what_was_cut_off_comes_back(tmp_path: Path) -> None:
    assert after_cut(tmp_path, "os.fsync(fd)", "os.ftruncate(fd, 2)", "os.pwrite(fd, b'x', 9)") == b"synced"


def test_never_synced_means_empty(tmp_path: Path) -> None:
    assert after_cut(tmp_path) == b""


def test_a_sync_through_another_descriptor_counts(tmp_path: Path) -> None:
    assert after_cut(tmp_path, "os.fsync(os.open(path, os.O_RDONLY))") == b"synced"


def test_other_files_are_left_alone(tmp_path: Path) -> None:
    assert after_cut(tmp_path, name="topic.log") == b"synced"
