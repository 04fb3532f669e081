"""Tests that leave something fail: who judges the tests is judged here."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.daemon import TRACEBACK, Daemon, DaemonError

TESTS = """
import asyncio, logging, socket, subprocess, threading
import pytest

held = []

def test_thread():
    held.append(threading.Event())
    threading.Thread(target=held[-1].wait, daemon=True).start()

def test_socket():
    held.append(socket.socket())

def test_process():
    held.append(subprocess.Popen(["sleep", "60"]))

async def test_task():
    held.append(asyncio.create_task(asyncio.sleep(60)))

def test_traceback():
    try:
        1 / 0
    except ZeroDivisionError:
        logging.getLogger("ringleader").exception("failed")

def test_nothing():
    logging.getLogger("ringleader").error("no traceback")

@pytest.mark.leaves("ZeroDivisionError")
def test_traceback_on_purpose():
    test_traceback()

@pytest.mark.leaves("ZeroDivisionError")
def test_not_left():
    pass

def test_the_end():
    held[2].kill()
    held[2].wait()
"""


def test_what_is_left_fails_the_test(tmp_path: Path) -> None:
    file = tmp_path / "test_these.py"
    file.write_text(TESTS)
    options = ["-p", "tests.support.leftovers", "-p", "no:randomly", "-p", "no:cacheprovider", "-q"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "-o", "asyncio_mode=auto", str(file)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | {"RINGLEADER_TESTS_GRACE_S": "0.1"},
    )
    failed = re.findall(r"ERROR at teardown of (\w+)", done.stdout)
    wanted = ["test_thread", "test_socket", "test_process", "test_task", "test_traceback", "test_not_left"]
    assert failed == wanted, done.stdout
    assert "9 passed" in done.stdout


def test_a_daemon_that_ends_by_itself_fails_the_test(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path).start()
    os.kill(daemon.pid, signal.SIGABRT)
    os.waitid(os.P_PID, daemon.pid, os.WEXITED | os.WNOWAIT)
    with pytest.raises(DaemonError, match="ended by itself, with exit code -6"):
        daemon.kill()


def test_a_daemon_that_logs_a_traceback_fails_the_test(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path).start()
    daemon.log_path.write_text(TRACEBACK)
    with pytest.raises(DaemonError, match="logged a traceback"):
        daemon.stop()
