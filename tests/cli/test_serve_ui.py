"""``ringleader serve --ui``: a page beside the daemon, as a process that ends with it, however it ends."""

from __future__ import annotations

import http.client
import json
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.support.command import run_here
from tests.support.daemon import Daemon
from tests.support.ports import free_address

TIMEOUT_S = 60


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
    address = free_address()
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


def test_offsets_are_reset_on_the_page_of_a_daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "user"))
    address, token = free_address(), tmp_path / "token"
    token.write_text("correct-horse-battery")
    bearer = {"Authorization": "Bearer correct-horse-battery"}

    def api(path: str, body: Any = None) -> Any:
        headers = bearer | ({"Content-Type": "application/json"} if body is not None else {})
        sent = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"http://{address}/api/{path}", sent, headers)
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            return json.loads(answer.read())

    options = ["--ui", address, "--ui-reset-token-file", str(token)]
    with Daemon(tmp_path / "data", topics=["orders:1"], options=options) as daemon:
        for arguments in (
            ("produce", "orders", "--value", "a"),
            ("groups", "reset", "billing", "--topic", "orders", "--to-latest", "--execute"),
        ):
            assert run_here(daemon.bootstrap, *arguments).code == 0
        _until(200, address)
        plan = api("reset?group=billing&topic=orders&to=to-earliest")
        assert [(one["committed"], one["offset"], one["repeated"]) for one in plan["offsets"]] == [(1, 0, 1)]
        assert api("reset", {"plan": plan["plan"]})["offsets"] == plan["offsets"]
        done = run_here(daemon.bootstrap, "groups", "describe", "billing", "--json")
        assert json.loads(done.out)["offsets"][0]["committed"] == 0
        line = "holder of the token of resets, from 127.0.0.1, group billing, orders-0 1 -> 0: done"
        assert line in daemon.log()
        deadline_s = time.monotonic() + TIMEOUT_S
        while not any("From the page" in one["text"] for one in api("events?group=billing")["events"]):
            assert time.monotonic() < deadline_s
            time.sleep(0.05)


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
        (["--ui", "127.0.0.1:8088", "--ui-reset-token-file", "nothing"], "token file nothing cannot be read"),
        (["--ui-reset-token-file", "some"], "--ui-reset-token-file: there is no page to use it"),
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
