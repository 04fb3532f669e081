"""``ringleader serve --ui``: a page beside the daemon, as a process that ends with it, however it ends."""

from __future__ import annotations

import http.client
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from tests.support.daemon import Daemon

TIMEOUT_S = 60


def _free_address() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


def _status(address: str, path: str) -> int | None:
    """None: nobody answers."""
    connection = http.client.HTTPConnection(address, timeout=TIMEOUT_S)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    except OSError:
        return None
    finally:
        connection.close()


def _until(status: int | None, address: str, path: str = "/health") -> None:
    deadline_s = time.monotonic() + TIMEOUT_S
    while _status(address, path) != status:
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_page_is_there_with_the_daemon_and_goes_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "user"))
    address = _free_address()
    with Daemon(tmp_path / "data", topics=["orders:3"], options=["--ui", address]) as daemon:
        _until(200, address)
        [beside] = psutil.Process(daemon.process.pid).children()
        assert beside.nice() > psutil.Process(daemon.process.pid).nice()
        if number is signal.SIGKILL:
            daemon.kill()
        else:
            daemon.stop()
        psutil.wait_procs([beside], timeout=TIMEOUT_S)
        _until(None, address)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (
            ["--ui", "0.0.0.0:8088"],
            "--ui: 0.0.0.0 can be reached from other machines",
        ),
        (["--ui", "here:port"], "--ui: not an address of the form HOST:PORT"),
        (["--ui-token-file", "token"], "--ui-token-file: there is no page to use it"),
        (["--ui", "127.0.0.1:8088", "--ui-token-file", "nothing"], "the token file nothing cannot be read"),
        (["--ui", "127.0.0.1:8088", "--ui-certificate", "nothing"], "the page's certificate: No such file"),
        (["--ui", "127.0.0.1:8088", "--ui-config", "nothing"], "The settings file nothing cannot be read"),
        (["--ui-client-authority", "some"], "--ui-client-authority: there is no page to use it"),
    ],
)
def test_what_the_page_cannot_be_served_with_is_said_before_anything_starts(
    tmp_path: Path, arguments: list[str], says: str
) -> None:
    command = [sys.executable, "-m", "ringleader", "serve", "--data-dir", str(tmp_path / "data"), *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S, cwd=tmp_path
    )
    assert done.returncode == 2
    assert says in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "data").exists()
