"""The C programs do what they say: answers counted once, errors seen, syncs counted. Needs a C compiler."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.build import LOAD_SOURCES, NoCompilerError, compiler, preload, program
from bench.commits import SyncCounts
from bench.frames import Frame, deal, write_frames
from bench.processes import yardstick
from tests.support.rawclient import RawConnection, hand_frame

HEARTBEAT = hand_frame(12, 4, b"\x02g\0\0\0\1\x02m\0\0", flexible=True)


def run(name: str, **options: object) -> dict[str, Any]:
    command = [str(program(name))]
    for key, value in options.items():
        command += [f"--{key.replace('_', '-')}", str(value)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


class Scripted:
    """A server that answers heartbeats with error codes from a list, in turn, and keeps the requests."""

    def __init__(self, codes: list[int]) -> None:
        self.requests: list[bytes] = []
        self._codes = codes
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        connection, _ = self._listener.accept()
        # The load program ends in the middle of whatever is under way.
        with connection, connection.makefile("rb") as stream, contextlib.suppress(ConnectionError):
            while len(size := stream.read(4)) == 4:
                request = stream.read(struct.unpack(">i", size)[0])
                code = self._codes[len(self.requests) % len(self._codes)]
                self.requests.append(request)
                connection.sendall(struct.pack(">i4sBihB", 12, request[4:8], 0, 0, code, 0))

    def close(self) -> None:
        """Waits until the client has gone."""
        self._thread.join()
        self._listener.close()


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    server = Scripted([0, 0, 25])
    yield server
    server.close()


def test_yardstick_echoes_correlation_ids_in_the_size_of_a_heartbeat_answer() -> None:
    with yardstick(min(os.sched_getaffinity(0))) as (port, _), RawConnection(("127.0.0.1", port)) as client:
        client.send_bytes(b"".join(hand_frame(12, 4, b"x" * n, correlation_id=n) for n in (7, 8, 9)))
        answers = [client.receive_frame() for _ in range(3)]
    assert answers == [struct.pack(">i", number) + bytes(8) for number in (7, 8, 9)]


@pytest.mark.parametrize("depth", [1, 16])
def test_load_counts_every_answer(depth: int, tmp_path: Path) -> None:
    frames = write_frames(tmp_path / "frames", deal([Frame(HEARTBEAT)] * 5, 3))
    with yardstick(min(os.sched_getaffinity(0))) as (port, pid):
        result = run(
            "load",
            port=port,
            frames=frames,
            depth=depth,
            warmup=0.05,
            seconds=0.2,
            error_at=13,
            server_pid=pid,
        )
    assert result["connections"] == 3
    assert result["errors"] == {}
    answers, bytes_ = result["answers"], result["answer_bytes"]
    assert isinstance(answers, int)
    assert answers > 0
    assert bytes_ == 16 * answers
    assert result["p50_us"] <= result["p99_us"] <= result["max_us"] * 1.02


def test_load_at_a_rate_sends_that_many(tmp_path: Path) -> None:
    frames = write_frames(tmp_path / "frames", [[Frame(HEARTBEAT)]] * 2)
    with yardstick(min(os.sched_getaffinity(0))) as (port, _):
        result = run("load", port=port, frames=frames, depth=50, rate=500, warmup=0, seconds=0.4, error_at=13)
    answers = result["answers"]
    assert isinstance(answers, int)
    assert 0 < answers <= 201


def test_load_reports_error_codes_and_counts_up(scripted: Scripted, tmp_path: Path) -> None:
    counter_at = 8 + 4 + 2 + 3
    body = struct.pack(">q", 0)
    frames = write_frames(tmp_path / "frames", [[Frame(hand_frame(12, 0, body), counter_at)]])
    result = run("load", port=scripted.port, frames=frames, depth=1, warmup=0, seconds=0.2, error_at=13)
    scripted.close()
    errors = result["errors"]
    assert isinstance(errors, dict)
    assert list(errors) == ["25"]
    numbers = [struct.unpack(">q", request[-8:])[0] for request in scripted.requests]
    assert numbers == list(range(1, len(numbers) + 1))


def test_members_notice_answers_that_make_no_sense() -> None:
    with (
        yardstick(min(os.sched_getaffinity(0))) as (port, _),
        pytest.raises(subprocess.CalledProcessError) as caught,
    ):
        run("members", port=port, group="group", members=3)
    assert "an answer ends early" in caught.value.stderr


def test_sync_calls_of_another_process_are_counted(tmp_path: Path) -> None:
    counts = SyncCounts(tmp_path / "counts")
    code = (
        "import os, sqlite3, sys\n"
        "base = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "base.execute('PRAGMA journal_mode = WAL')\n"
        "base.execute('PRAGMA synchronous = FULL')\n"
        "base.execute('CREATE TABLE t (x)')\n"
        "print(flush=True); input()\n"
        "for number in range(10): base.execute('INSERT INTO t VALUES (1)')\n"
        "print(flush=True); input()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "base")],
        env=counts.environ(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        before = counts.read()
        process.stdin.write("\n")
        process.stdin.flush()
        process.stdout.readline()
        after = counts.read()
        process.kill()
    assert sum(after.values()) - sum(before.values()) == 10


def test_a_missing_compiler_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(NoCompilerError, match=r"no-such-compiler.*small C programs"):
        compiler()


def test_libraries_are_built_once(tmp_path: Path) -> None:
    first = preload(LOAD_SOURCES / "synccount.c")
    stamp = first.stat().st_mtime_ns
    assert preload(LOAD_SOURCES / "synccount.c") == first
    assert first.stat().st_mtime_ns == stamp
