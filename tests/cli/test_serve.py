"""``ringleader serve`` as a process: the ready line, log lines, signals, what it says when it cannot."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.daemon import Daemon


def _serve(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ringleader", "serve", *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_one_ready_line_and_a_clean_stop(tmp_path: Path, number: signal.Signals) -> None:
    daemon = Daemon(tmp_path, topics=["orders:3"]).start()
    process = daemon.process
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=10):
        process.send_signal(number)
        # The ready line was read by start(): nothing else ever comes on standard output.
        rest, _ = process.communicate(timeout=30)
    assert (process.returncode, rest) == (0, "")
    daemon.kill()  # ended: only its log is looked at


def test_log_lines_are_json_when_asked(tmp_path: Path) -> None:
    with Daemon(tmp_path, topics=["orders:3"], options=["--log-format", "json"]) as daemon:
        daemon.stop()
    lines = [json.loads(line) for line in daemon.log().splitlines()]
    assert lines
    assert all({"event", "level", "timestamp"} <= line.keys() for line in lines)


def test_a_taken_port_is_one_sentence(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = _serve("--listen", f"127.0.0.1:{port}", "--data-dir", str(tmp_path), "--log-level", "error")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("ringleader: ")
    assert str(port) in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_data_directory_that_is_a_file_is_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("not a directory")
    done = _serve("--listen", "127.0.0.1:0", "--data-dir", str(file), "--log-level", "error")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("ringleader: ")
    assert done.stderr.count("\n") == 1


def test_starts_again_where_it_stopped(tmp_path: Path) -> None:
    with Daemon(tmp_path, topics=["orders:3"]) as daemon:
        port = daemon.port
        daemon.stop()
        daemon.start()
        assert daemon.port == port
        assert daemon.restart() > 0
        assert daemon.port == port
