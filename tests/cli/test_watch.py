"""``ringleader watch``: what happens is printed as it happens, and is in the history."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import confluent_kafka
import pytest

from ringleader.cli.lines import AsJson
from ringleader.cli.watch_page import PAGE_ADDRESS
from ringleader.insight.history import History
from ringleader.insight.model import Cause, Confidence, Kind, Rebalance
from ringleader.testing.coordinator import Coordinator
from tests.support.command import PATIENCE_S, command_line, environment, run_here
from tests.support.daemon import Daemon
from tests.support.ports import free_address

TOPIC = "orders"


@pytest.fixture
def coordinator() -> Iterator[Coordinator]:
    with Coordinator(topics={TOPIC: 6}) as started:
        yield started


class Running:
    """The command, and what it printed."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.rest = ""
        """The lines of both outputs that nobody had read when it ended."""

    def says(self, text: str) -> str:
        """The next line of complaints and notes that has this in it."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if text in line:
                return line
        raise AssertionError(f"it never said {text!r}")

    def until(self, wanted: Callable[[str], bool]) -> str:
        """The next line of output that is wanted."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if wanted(line):
                return line
        raise AssertionError("it ended before that")


@contextmanager
def running(env: Mapping[str, str], *arguments: str) -> Iterator[Running]:
    """A command that goes on until it is ended: with Ctrl-C, in order."""
    process = subprocess.Popen(
        command_line(*arguments), env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    one = Running(process)
    try:
        yield one
        process.send_signal(signal.SIGINT)
        one.rest = "".join(process.communicate(timeout=PATIENCE_S))
        assert process.returncode == 0, one.rest
        assert "Traceback" not in one.rest
    finally:
        process.kill()
        process.communicate()


@contextmanager
def watching(coordinator: Coordinator | Daemon, history: Path, *arguments: str) -> Iterator[Running]:
    """The command over a history in that file."""
    with running(environment(coordinator.bootstrap), "watch", "--history", str(history), *arguments) as one:
        yield one


class Member:
    """A member of a group until the block ends; it polls on a thread of its own."""

    def __init__(
        self, coordinator: Coordinator | Daemon, group: str, client_id: str, protocol: str = "classic"
    ) -> None:
        config: dict[str, str | int] = {
            "bootstrap.servers": coordinator.bootstrap,
            "group.id": group,
            "client.id": client_id,
            "group.protocol": protocol,
        }
        if protocol == "classic":
            config["heartbeat.interval.ms"] = 100
        self._consumer = confluent_kafka.Consumer(config)
        self._leaving = False
        self._thread = Thread(target=self._run)

    def __enter__(self) -> None:
        self._consumer.subscribe([TOPIC])
        self._thread.start()

    def __exit__(self, *_error: object) -> None:
        self._leaving = True
        self._thread.join()
        self._consumer.close()

    def _run(self) -> None:
        while not self._leaving:
            self._consumer.poll(0.05)


def health(url: str, status: int) -> Any:
    """The page's health, once it answers with that status."""
    deadline_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s:
        try:
            with urllib.request.urlopen(f"{url}health", timeout=PATIENCE_S) as answer:
                found, body = answer.status, answer.read()
        except urllib.error.HTTPError as error:
            found, body = error.code, error.read()
        if found == status:
            return json.loads(body)
        time.sleep(0.05)  # of another process
    raise AssertionError(f"/health is {found}: {body!r}")


def test_rebalances_as_lines_and_as_a_history_until_ctrl_c(coordinator: Coordinator, tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    with (
        Member(coordinator, "before", "early"),
        watching(coordinator, path, "--no-page", "--group", "billing", "--group", "before") as watch,
    ):
        note = watch.says("watching ")
        assert f"of {coordinator.bootstrap}; the history is in {path}" in note
        with Member(coordinator, "billing", "anna"), Member(coordinator, "unseen", "nobody"):
            line = watch.until(lambda line: "billing" in line)
            assert "billing: member joined: anna@127.0.0.1; members 0 -> 1; 6 partitions moved" in line
        line = watch.until(lambda line: "members 1 -> 0" in line)
        assert "billing: member left: anna@127.0.0.1" in line
        assert "unseen" not in line
    with History.open(path, read_only=True) as history:
        assert {one.group for one in history.groups()} == {"before", "billing", "unseen"}


def test_groups_of_the_consumer_protocol_are_known_from_the_journal(tmp_path: Path) -> None:
    options = "--group-consumer-heartbeat-interval-ms", "100"
    path = tmp_path / "h.sqlite"
    with (
        Daemon(tmp_path / "data", topics=[f"{TOPIC}:6"], options=options) as daemon,
        watching(daemon, path, "--no-page") as watch,
    ):
        watch.says("watching ")
        with Member(daemon, "billing", "anna", protocol="consumer"):
            line = watch.until(lambda line: "members 0 -> 1" in line)
            assert "billing: member joined: anna@127.0.0.1" in line
            with Member(daemon, "billing", "bert", protocol="consumer"):
                line = watch.until(lambda line: "members 1 -> 2" in line)
                assert "billing: member joined: bert@127.0.0.1" in line
                assert "3 partitions moved" in line
            line = watch.until(lambda line: "members 2 -> 1" in line)
            assert "billing: member left: bert@127.0.0.1" in line
        watch.until(lambda line: "members 1 -> 0" in line)
    with History.open(path, read_only=True) as history:
        recorded = [one for one in history.rebalances("billing") if one.id.startswith("journal-")]
        assert [one.kind for one in recorded] == [Kind.CONSUMER] * len(recorded)
        assert {one.confidence for one in recorded} == {Confidence.EXACT}
        [shared] = [one for one in recorded if len(one.members) == 2 and one.outcome == "stable"]
        assert [len(one.assigned) for one in shared.members] == [3, 3]
    for command in ("history billing", "explain billing bert", "owners orders:3 --group billing"):
        done = run_here(None, *command.split(), "--history", str(path))
        assert (done.code, done.err) == (0, ""), command
    assert "member left" in run_here(None, "history", "billing", "--history", str(path)).out


def test_json_and_a_page_and_what_was_there_before(coordinator: Coordinator, tmp_path: Path) -> None:
    page = free_address()
    with (
        Member(coordinator, "billing", "anna"),
        watching(coordinator, tmp_path / "h", "--json", "--page", page) as watch,
    ):
        assert f"http://{page}/" in watch.says("the page is at")
        watch.says("watching ")
        with Member(coordinator, "billing", "bert"):
            rebalance: dict[str, Any] = json.loads(
                watch.until(lambda line: '"bert' in line and '"joined"' in line)
            )
            assert rebalance["type"] == "rebalance"
            assert rebalance["group"] == "billing"
            assert rebalance["confidence"] == "exact"
            assert rebalance["at"].endswith("Z")
            assert (rebalance["format"], rebalance["revises"]) == (1, False)
            # The other command has the same fields.
            done = run_here(None, "history", "billing", "--json", "--history", str(tmp_path / "h"))
            found = json.loads(done.out)
            [same] = [one for one in found["rebalances"] if one["id"] == rebalance["id"]]
            assert found["format"] == same["format"] == 1
            assert {*rebalance} == {*same, "revises"}
            assert {one["client_id"] for one in rebalance["members"]} == {"anna", "bert"}
            with urllib.request.urlopen(f"http://{page}/api/groups", timeout=PATIENCE_S) as answer:
                assert b"billing" in answer.read()


def test_a_verdict_given_again_says_that_it_revises() -> None:
    first = Rebalance("offsets-1-2", "orders", Kind.CLASSIC, 3, 1_000, Cause.UNKNOWN, Confidence.UNKNOWN)
    before = replace(first, id="offsets-1-1")
    show = AsJson()
    show.knows([before.id])
    shown = [json.loads(show(one)) for one in (first, replace(first, cause=Cause.SESSION_EXPIRED), before)]
    assert [one["revises"] for one in shown] == [False, True, True]
    assert shown[1]["cause"] == "session expired"


def test_a_cluster_that_goes_away_is_said_and_waited_for(tmp_path: Path) -> None:
    with (
        Daemon(tmp_path / "data", topics=[f"{TOPIC}:6"]) as daemon,
        watching(daemon, tmp_path / "h", "--page", free_address()) as watch,
    ):
        url = watch.says("the page is at").split()[-1]
        watch.says("watching 0 groups")
        health(url, 200)
        daemon.kill()
        watch.says("the cluster does not answer")
        away = health(url, 503)
        assert daemon.bootstrap in away["cluster"]
        assert "the cluster does not answer" in away["why"]
        assert away["away"]["since_ms"] > 0
        daemon.start()
        watch.says("the cluster answers again, after")
        assert health(url, 200)["away"] is None
        with Member(daemon, "billing", "anna"):
            watch.until(lambda line: "billing: member joined: anna" in line)


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--keep", "soon"], 2, "--keep: a length of time is 1h"),
        (["--keep", "0s"], 2, "--keep: a history reaches back some time"),
        (["--max-size", "big"], 2, "--max-size: a size is 1g"),
        (["--max-size", "10k"], 2, "--max-size: give it at least 1m"),
        (["--page", "8088"], 2, "--page: "),
        (["--page", "0.0.0.0:8088"], 2, "--page: 0.0.0.0 can be reached from other machines"),
        (["--bootstrap-server", "nowhere:port"], 2, "--bootstrap-server: "),
        (["--history", "/dev/null/h"], 1, "cannot be opened"),
    ],
)
def test_what_cannot_be_is_one_sentence(
    coordinator: Coordinator, arguments: list[str], code: int, says: str
) -> None:
    done = run_here(coordinator.bootstrap, "watch", *arguments)
    assert done.code == code
    assert says in done.err
    assert "Traceback" not in done.err


def test_a_second_watcher_is_told_who_writes(coordinator: Coordinator, tmp_path: Path) -> None:
    path = tmp_path / "h.sqlite"
    with History.open(path):
        done = run_here(coordinator.bootstrap, "watch", "--no-page", "--history", str(path))
    assert done.code == 1
    assert f"process {os.getpid()} writes {path} already" in done.err


def test_what_looks_back_asks_the_cluster_that_was_watched_last(
    coordinator: Coordinator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.delenv("RINGLEADER_BOOTSTRAP_SERVER", raising=False)
    process = subprocess.Popen(
        command_line("watch", "--no-page", "--bootstrap-server", coordinator.bootstrap),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    watch = Running(process)
    try:
        watch.says("watching ")
        with Member(coordinator, "billing", "anna"):
            watch.until(lambda line: "member joined" in line)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE_S) == 0
    finally:
        process.kill()
        process.communicate()
    done = run_here(None, "history", "billing")
    assert (done.code, done.err) == (0, "")
    assert "member joined" in done.out


def test_a_cluster_that_does_not_answer_is_named_with_the_option(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    nobody = free_address()
    done = run_here(nobody, "history", "billing")
    assert done.code == 1
    assert f"The cluster asked is {nobody}; -b HOST:PORT names another." in " ".join(done.err.split())


def test_a_page_whose_usual_port_is_taken_is_at_another(coordinator: Coordinator, tmp_path: Path) -> None:
    with socket.socket() as taken:
        host, port = PAGE_ADDRESS.split(":")
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with suppress(OSError):  # another one may have it: taken it is
            taken.bind((host, int(port)))
            taken.listen()
        with watching(coordinator, tmp_path / "h") as watch:
            line = watch.says("the page is at")
            assert f"{PAGE_ADDRESS} cannot be listened on" in line
            with urllib.request.urlopen(line.split()[-1], timeout=PATIENCE_S) as answer:
                assert answer.status == 200
