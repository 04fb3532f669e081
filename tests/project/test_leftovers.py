"""Tests that leave something fail: who judges the tests is judged here."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ringleader.coordinator.node import Node
from ringleader.testing import Coordinator
from tests.support import command
from tests.support.cluster_nodes import Lines
from tests.support.daemon import TRACEBACK, Daemon, DaemonError
from tests.support.last_look import OPTIONS

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

async def test_timer():
    from ringleader.coordinator.run_queue import RunQueue
    asyncio.get_running_loop().call_later(60, RunQueue().add, iter(()))

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


def test_a_leftover_fails_the_test(tmp_path: Path) -> None:
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
    wanted = ["test_thread", "test_socket", "test_process", "test_task", "test_timer"]
    wanted += ["test_traceback", "test_not_left"]
    assert failed == wanted, done.stdout
    assert "10 passed" in done.stdout


def test_a_daemon_that_ends_by_itself_fails_the_test(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path).start()
    os.kill(daemon.pid, signal.SIGABRT)
    os.waitid(os.P_PID, daemon.pid, os.WEXITED | os.WNOWAIT)
    with pytest.raises(DaemonError, match="ended by itself, with exit code -6"):
        daemon.kill()


def test_a_daemon_that_logs_a_traceback_fails_the_test(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path).start()
    daemon.log_path.write_text(TRACEBACK)
    with pytest.raises(DaemonError, match="wrote what it must not"):
        daemon.stop()


def test_a_daemon_whose_end_is_waited_for_is_held_to_the_same(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path).start()
    daemon.log_path.write_text(TRACEBACK)
    os.kill(daemon.pid, signal.SIGTERM)
    with pytest.raises(DaemonError, match="wrote what it must not"):
        daemon.wait()


PLANTED = """
import asyncio, signal, socket, subprocess, sys, threading
from tests.support.last_look import looking

held = []

async def serve():
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    {leak}
    print("ready 127.0.0.1:1", flush=True)
    await stop.wait()

looking(lambda: asyncio.run(serve()))
"""

LEAKS = {
    "": "pass",
    "it ends in time": (
        "asyncio.get_running_loop().add_signal_handler("
        "signal.SIGTERM, lambda: (threading.Timer(0.2, int).start(), stop.set()))"
    ),
    "thread lazy": "threading.Thread(target=threading.Event().wait, daemon=True, name='lazy').start()",
    "socket:": "held.append(socket.socket())",
    "name='lazy'": "held.append(asyncio.create_task(asyncio.sleep(60), name='lazy'))",
    "process ": "held.append(subprocess.Popen(['sleep', '2']))",
    "was never awaited": "asyncio.sleep(60)",
    "ResourceWarning: unclosed <socket": "socket.socket()",
}


class Planted(Daemon):
    """A process that is no daemon, but starts and ends as one."""

    def __init__(self, directory: Path, leak: str) -> None:
        super().__init__(directory)
        self._leak = leak

    def command(self) -> list[str]:
        """With the leak in it."""
        return [sys.executable, *OPTIONS, "-c", PLANTED.format(leak=self._leak)]


@pytest.mark.parametrize("expected", LEAKS)
def test_a_leftover_of_a_daemon_fails_the_test(
    tmp_path: Path, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if expected == "thread lazy":
        monkeypatch.setenv("RINGLEADER_TESTS_GRACE_S", "0.1")
    daemon = Planted(tmp_path, LEAKS[expected]).start()
    if expected in ("", "it ends in time"):
        daemon.stop()
        return
    with pytest.raises(DaemonError, match="wrote what it must not") as error:
        daemon.stop()
    assert expected in str(error.value)


def test_a_command_that_ends_with_a_traceback_fails_the_test(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "command_line", lambda *_arguments: [sys.executable, "-c", "1 / 0"])
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        command.run_command("127.0.0.1:1", "topics", "list")


@pytest.mark.leaves("a node can serve no more: OSError('the disk is gone')")
def test_a_node_in_this_process_that_fails_fails_the_test() -> None:
    with Coordinator() as coordinator:

        async def fail() -> None:
            coordinator.node._stop_serving(OSError("the disk is gone"))

        coordinator.run(fail())


@pytest.mark.leaves("logged by a node: {'exc_info': 'Traceback")
def test_a_traceback_in_lines_that_are_kept_fails_the_test() -> None:
    lines = Lines()
    try:
        raise KeyError
    except KeyError:
        lines.log.exception("it failed")
    assert lines.of("it failed")


def test_a_coordinator_in_this_process_that_does_not_stop_cleanly_fails_the_test(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def stop(_self: Node) -> None:
        await stopped(_self)
        raise OSError("it did not stop")

    stopped = Node.stop
    coordinator = Coordinator().start()
    monkeypatch.setattr(Node, "stop", stop)
    with pytest.raises(OSError, match="it did not stop"):
        coordinator.stop()
    coordinator.stop()
    assert not coordinator.data_dir.name
