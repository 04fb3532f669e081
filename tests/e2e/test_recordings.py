"""A group is recorded while real clients come, leave and are killed; the file is played again as users do."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import command_line, run_here
from tests.support.daemon import Daemon
from tests.support.members import AiokafkaMember, Board, ConfluentMember, Stage

TOKEN = "a token for recordings"
GROUP = "billing of the north"
TOPIC = "orders-of-ada"
MEMBER = """
import asyncio, sys, aiokafka
async def run():
    consumer = aiokafka.AIOKafkaConsumer(sys.argv[2], bootstrap_servers=sys.argv[1], group_id=sys.argv[3],
        client_id="victim", session_timeout_ms=1000, heartbeat_interval_ms=200)
    await consumer.start()
    while not consumer.assignment():
        await consumer.getmany(timeout_ms=100)
    print("joined", flush=True)
    while True:
        await consumer.getmany(timeout_ms=100)
asyncio.run(run())
"""


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "recording.token"
    file.write_text(TOKEN)
    return file


@contextmanager
def _daemon(directory: Path, token_file: Path | None) -> Iterator[tuple[Daemon, str]]:
    options = ["--group-initial-rebalance-delay-ms", "0", "--group-min-session-timeout-ms", "500"]
    options += ["--http-listen", "127.0.0.1:0"]
    if token_file is not None:
        options += ["--http-recording-token-file", str(token_file)]
    with Daemon(directory / "daemon", topics=[f"{TOPIC}:4"], options=options, turn_ms=0) as daemon:
        found = re.search(r"health and metrics.*?(127\.0\.0\.1:\d+)", daemon.log())
        assert found, daemon.log()
        yield daemon, f"http://{found[1]}"


@contextmanager
def _recording(url: str, token_file: Path, file: Path, *more: str) -> Iterator[subprocess.Popen[str]]:
    command = command_line(
        "record", GROUP, "--http", url, "--token-file", str(token_file), "-o", str(file), *more
    )
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("Recording"), (line, process.communicate(timeout=30))
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def _rest(process: subprocess.Popen[str]) -> tuple[str, str]:
    """The rest of its output, until it ends."""
    assert process.stdout is not None
    assert process.stderr is not None
    output = process.stdout.read(), process.stderr.read()
    process.wait(30)
    return output


async def _live(daemon: Daemon, board: Board) -> None:
    """One joins and leaves, one is killed, and `first` has all again."""
    second = ConfluentMember(board, daemon.bootstrap, GROUP, TOPIC, "second")
    await second.join()
    await board.until(lambda now: len(now.owned.get("second") or ()) == 2)
    await second.leave()
    await board.until(lambda now: len(now.owned["first"] or ()) == 4)
    command = [sys.executable, "-c", MEMBER, daemon.bootstrap, TOPIC, GROUP]
    victim = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
    try:
        assert victim.stdout is not None
        assert await victim.stdout.readline() == b"joined\n"
        await board.until(lambda now: len(now.owned["first"] or ()) == 2)
    finally:
        victim.kill()
        await victim.wait()
    await board.until(lambda now: len(now.owned["first"] or ()) == 4)


async def _recorded(daemon: Daemon, url: str, token_file: Path, file: Path, *more: str) -> None:
    board = Board()
    async with Stage() as stage:
        await stage.enter(AiokafkaMember(board, daemon.bootstrap, GROUP, TOPIC, "first"))
        await board.until(lambda now: len(now.owned.get("first") or ()) == 4)
        command = command_line("record", GROUP, "--http", url, "--token-file", str(token_file))
        pipe = subprocess.PIPE
        recorder = await asyncio.create_subprocess_exec(
            *command, "-o", str(file), *more, stdout=pipe, stderr=pipe
        )
        try:
            assert recorder.stdout is not None
            assert (await recorder.stdout.readline()).startswith(b"Recording")
            await _live(daemon, board)
            # A question and its answer come after all that, in the recording, too.
            described = await asyncio.to_thread(run_here, daemon.bootstrap, "groups", "describe", GROUP)
            assert described.code == 0
            recorder.send_signal(signal.SIGINT)
            out, err = await recorder.communicate()
        finally:
            if recorder.returncode is None:
                recorder.kill()
        assert (recorder.returncode, err) == (0, b""), out
        assert b"by Ctrl-C" in out


@pytest.mark.parametrize("anonymous", [False, True])
async def test_what_real_clients_did_is_played_the_same(
    tmp_path: Path, token_file: Path, anonymous: bool
) -> None:
    file = tmp_path / "billing.recording.gz"
    with _daemon(tmp_path, token_file) as (daemon, url):
        await _recorded(daemon, url, token_file, file, *(["--anonymous"] if anonymous else []))
        assert "recording begins" in daemon.log()
        assert TOKEN not in daemon.log()

    done = run_here(None, "replay", str(file))
    assert (done.code, done.err) == (0, "")
    assert "the same answers, records and journal" in done.out
    explained = run_here(None, "replay", str(file), "--explain").out
    assert "session expired" in explained
    assert "member left" in explained
    text = gzip.decompress(file.read_bytes()).decode()
    for name in (GROUP, TOPIC, "victim"):
        assert (name in text) is not anonymous
    assert "User:ANONYMOUS" not in text
    _check_that_changes_are_noticed(file)


def _check_that_changes_are_noticed(file: Path) -> None:
    raw = file.read_bytes()
    lines = [json.loads(line) for line in gzip.decompress(raw).splitlines()]
    at = next(n for n, line in enumerate(lines) if line.get("do") == "drain" and line["gave"]["events"])
    lines[at]["gave"]["events"][0]["generation"] += 1
    done = _replayed(file, lines)
    assert done.code == 1
    assert f"Call {at:,} (drain) differs in the journal." in done.out
    assert f'"generation": {lines[at]["gave"]["events"][0]["generation"]}' in done.out
    file.write_bytes(raw)


def _replayed(file: Path, lines: list[Any]) -> Any:
    file.write_bytes(gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode()))
    return run_here(None, "replay", str(file))


def test_a_recording_ends_by_itself_and_when_the_daemon_goes(tmp_path: Path, token_file: Path) -> None:
    with _daemon(tmp_path, token_file) as (daemon, url):
        for number, (option, value) in enumerate((("--for", "300ms"), ("--max-bytes", "2000"))):
            file = tmp_path / f"{number}.gz"
            with _recording(url, token_file, file, option, value) as process:
                out, err = _rest(process)
            assert (process.returncode, err) == (0, "")
            assert "it ended after" in out
        file = tmp_path / "gone.gz"
        with _recording(url, token_file, file) as process:
            other = run_here(None, *_record(url, token_file, tmp_path / "other.gz"))
            assert other.code == 1
            assert "one at a time" in other.err
            daemon.kill()
            _, err = _rest(process)
        assert process.returncode == 1
        assert "The daemon went away" in err
        assert run_here(None, "replay", str(file)).code == 0
        daemon.start()


def _record(url: str, token_file: Path, file: Path) -> list[str]:
    return ["record", GROUP, "--http", url, "--token-file", str(token_file), "-o", str(file), "--for", "1s"]


def test_nobody_records_without_the_token(tmp_path: Path, token_file: Path) -> None:
    wrong = tmp_path / "wrong.token"
    wrong.write_text("another token than that")
    with _daemon(tmp_path / "on", token_file) as (_, url):
        done = run_here(None, *_record(url, wrong, tmp_path / "a.gz"))
        assert done.code == 1
        assert "http.recording.token.file" in done.err
    with _daemon(tmp_path / "off", None) as (_, url):
        done = run_here(None, *_record(url, token_file, tmp_path / "a.gz"))
        assert done.code == 1
        assert "nobody may record" in done.err
    assert not (tmp_path / "a.gz").exists()


def test_what_is_no_recording_is_said_in_one_sentence(tmp_path: Path, token_file: Path) -> None:
    file = tmp_path / "some.gz"
    with _daemon(tmp_path, token_file) as (_, url):
        assert run_here(None, *_record(url, token_file, file)).code == 0
    raw = file.read_bytes()
    lines = [json.loads(line) for line in gzip.decompress(raw).splitlines()]
    bad: dict[str, bytes] = {
        "cut off": raw[: len(raw) // 2],
        "cut off: its end is missing": _packed(lines[:-1]),
        "format 2": _packed([{**lines[0], "ringleader-recording": 2}, *lines[1:]]),
        "is no recording": b"orders,3\n",
        "is no recording of": _packed([{"some": "json"}]),
        "is damaged": _packed([*lines[:-1], {**lines[-1], "calls": 7_777}]),
        "other settings": _packed([{**lines[0], "settings": {}}, *lines[1:]]),
        "no class of the group machine": _packed(
            [lines[0], {"do": "handle", "with": [{"c": "Popen"}]}, {"end": "", "calls": 1}]
        ),
        "nothing that a shard is asked": _packed(
            [lines[0], {"do": "__init__", "with": []}, {"end": "", "calls": 1}]
        ),
    }
    for sentence, content in bad.items():
        file.write_bytes(content)
        done = run_here(None, "replay", str(file))
        assert (done.code, done.err.count("\n")) == (2, 1), (sentence, done)
        assert sentence in done.err
    assert run_here(None, "replay", str(tmp_path / "none.gz")).code == 2


def _packed(lines: list[Any]) -> bytes:
    return gzip.compress("".join(json.dumps(line) + "\n" for line in lines).encode())
