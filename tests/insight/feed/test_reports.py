"""Reports of clients to nodes are read over HTTP, and taken as evidence where there is no journal."""

from __future__ import annotations

import asyncio
import http.server
import json
import re
import ssl
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from ringleader import GroupConsumer
from ringleader.insight.feed import watcher as watcher_module
from ringleader.insight.feed.polls import Polls
from ringleader.insight.feed.reports import Reports, node_url
from ringleader.insight.feed.watcher import Watcher
from ringleader.insight.inference.facts import ClientReport
from ringleader.insight.model import Confidence, Departure, DepartureFinding
from tests.support.daemon import Daemon

PATIENCE_S = 60.0
TOKEN = "correct-horse-battery"


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """As a node: clients tell it of themselves ten times a second, and its journal is not looked at."""
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "token").chmod(0o600)
    options = ["--group-initial-rebalance-delay-ms", "0", "--telemetry-interval-ms", "100"]
    options += ["--telemetry-enable", "--http-listen", "127.0.0.1:0"]
    options += ["--http-token-file", str(tmp_path / "token")]
    with Daemon(tmp_path / "data", topics=["orders:2"], options=options) as running:
        yield running


def url_of(daemon: Daemon) -> str:
    found = re.search(r"health and metrics.*?(127\.0\.0\.1:\d+)", daemon.log())
    assert found, daemon.log()
    return f"http://{found[1]}"


async def read_until(reports: Reports) -> list[ClientReport]:
    """The next that come."""
    async with asyncio.timeout(PATIENCE_S):
        while not (found := await reports.read()):
            pass
        return found


async def test_reports_are_read_once_and_in_the_order_of_time(daemon: Daemon) -> None:
    notices: list[str] = []
    reports = Reports([url_of(daemon)], notices.append, token=TOKEN)
    async with GroupConsumer(daemon.bootstrap, "billing", ["orders"], client_id="teller") as consumer:
        await consumer.wait_assigned(PATIENCE_S)
        first = await read_until(reports)
        assert {(one.group, one.client_id, one.host) for one in first} == {
            ("billing", "teller", "/127.0.0.1")
        }
        assert first[0].values
        assert len(first[0].instance_id) == 32
        later = await read_until(reports)
        times = [one.at_ms for one in (*first, *later)]
        assert times == sorted({*times})
    last = await read_until(reports)
    assert last[-1].at_ms > times[-1]
    assert await reports.read() == []
    assert notices == []


async def test_a_departure_is_explained_by_what_its_client_told_a_node(
    daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher_module, "JOURNAL_TOPIC", "__of_no_daemon")
    monkeypatch.setattr(watcher_module, "REPORTS_EVERY_S", 0.1)
    free = asyncio.Event()

    async def slow(_partitions: Any) -> None:
        await free.wait()

    reports = Reports([url_of(daemon)], pytest.fail, token=TOKEN)
    async with (
        Watcher(daemon.bootstrap, tmp_path / "history.sqlite", reports=reports) as watcher,
        GroupConsumer(
            daemon.bootstrap,
            "billing",
            ["orders"],
            client_id="busy",
            max_poll_interval_ms=1_000,
            on_assigned=slow,
        ),
    ):
        assert not watcher.exact
        async with asyncio.timeout(PATIENCE_S):
            while (departure := _busy(watcher)) is None:
                await watcher.caught_up(PATIENCE_S)
        free.set()
        assert departure.confidence is Confidence.CERTAIN
        assert any("its client said" in text for text in departure.evidence), departure.evidence
        assert watcher.history.reports("billing")


async def test_each_host_that_the_cluster_names_is_asked_where_it_has_nodes(
    daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher_module, "JOURNAL_TOPIC", "__of_no_daemon")
    monkeypatch.setattr(watcher_module, "REPORTS_EVERY_S", 0.1)
    notices: list[str] = []
    every = url_of(daemon).replace("127.0.0.1", "*")
    async with Watcher(
        daemon.bootstrap,
        tmp_path / "brokers.sqlite",
        reports=Reports([every], notices.append),
        on_notice=notices.append,
    ) as watcher:
        await watcher.caught_up(PATIENCE_S)
        assert notices == ["nobody is asked what clients told: these are no nodes of Ringleader"]
    monkeypatch.setattr(Polls, "of_nodes", True)
    reports = Reports([every], pytest.fail)
    reports._headers = {"Authorization": f"Bearer {TOKEN}"}  # which it refuses to send over http
    async with (
        Watcher(daemon.bootstrap, tmp_path / "nodes.sqlite", reports=reports) as watcher,
        GroupConsumer(daemon.bootstrap, "billing", ["orders"], client_id="teller"),
    ):
        async with asyncio.timeout(PATIENCE_S):
            while not watcher.history.reports("billing"):
                await watcher.caught_up(PATIENCE_S)


async def test_a_cluster_with_a_journal_needs_no_nodes(daemon: Daemon, tmp_path: Path) -> None:
    notices: list[str] = []
    reports = Reports(["http://127.0.0.1:1"], notices.append)
    given = (daemon.bootstrap, tmp_path / "h.sqlite")
    async with Watcher(*given, reports=reports, on_notice=notices.append) as watcher:
        await watcher.caught_up(PATIENCE_S)
        assert notices == ["nodes are not asked what clients told: it stands in the cluster's journal"]


def _busy(watcher: Watcher) -> DepartureFinding | None:
    for one in watcher.history.rebalances("billing"):
        for departure in one.left.values():
            if (
                departure.why is Departure.POLL_INTERVAL_EXCEEDED
                and departure.confidence is Confidence.CERTAIN
            ):
                return departure
    return None


class _Node:
    """A server that answers what it is told to."""

    def __init__(self) -> None:
        self.answers: list[tuple[int, bytes]] = []
        self.requests: list[str] = []
        node = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                node.requests.append(self.path)
                status, body = node.answers.pop(0)
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def node() -> Iterator[_Node]:
    made = _Node()
    thread = threading.Thread(target=made.server.serve_forever)
    thread.start()
    yield made
    made.server.shutdown()
    made.server.server_close()
    thread.join()


def answer(last: int, *, more: bool = False) -> tuple[int, bytes]:
    return 200, json.dumps({"reports": [], "last": last, "more": more}).encode()


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ((401, b""), "HTTP Error 401"),
        ((307, b""), "HTTP Error 307"),
        ((200, b"{"), "the answer is of another kind"),
        ((200, b'{"reports": [{}], "last": 1, "more": false}'), "the answer is of another kind (KeyError"),
        ((200, b" " * 1_001), "the answer has more than 1000 bytes"),
    ],
)
async def test_a_node_that_answers_wrongly_is_said_once_and_asked_again(
    node: _Node, monkeypatch: pytest.MonkeyPatch, wrong: tuple[int, bytes], why: str
) -> None:
    monkeypatch.setattr("ringleader.insight.feed.reports.ANSWER_MAX_BYTES", 1_000)
    notices: list[str] = []
    reports = Reports([node.url], notices.append)
    node.answers = [answer(5, more=True), answer(7), wrong, wrong, answer(7), wrong]
    for _ in range(5):
        assert await reports.read() == []
    assert node.requests == [f"/clients?after={number}" for number in (0, 5, 7, 7, 7, 7)]
    assert [one.partition(" cannot be read: ")[2][: len(why)] for one in notices] == [why, "", why]
    assert notices[1] == f"what clients told {node.url} can be read again"


async def test_hosts_that_the_cluster_names_are_asked_while_it_does(node: _Node) -> None:
    notices: list[str] = []
    port = node.server.server_address[1]
    reports = Reports([f"http://*:{port}"], notices.append)
    assert reports.wants_hosts
    assert await reports.read() == []
    node.answers = [answer(5), answer(7), answer(8)]
    for hosts in (["127.0.0.1"], ["127.0.0.1", "localhost@127.0.0.1", "a/b", ""], [], ["127.0.0.1"]):
        reports.know(hosts)
        assert await reports.read() == []
    # It goes on where it was when the node is there again.
    assert node.requests == [f"/clients?after={number}" for number in (0, 5, 7)]
    assert [one.partition(" of a node is no name")[0] for one in notices] == [
        "''",
        "'a/b'",
        "'localhost@127.0.0.1'",
    ]


async def test_no_more_nodes_are_asked_than_there_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ringleader.insight.feed.reports.NODES_MAX", 2)
    notices: list[str] = []
    reports = Reports(["http://a:1", "https://*:2"], notices.append)
    reports.know(["b", "c", "::1", "d"])
    assert reports._urls == {"http://a:1", "https://[::1]:2"}
    assert notices == ["2 nodes at most are asked what clients told, not https://b:2"]


def test_a_token_goes_to_named_hosts_or_to_those_with_a_certificate_of_a_chosen_authority() -> None:
    context = ssl.create_default_context()
    for url, given, good in (
        ("http://node:1", None, True),
        ("https://*:1", context, True),
        ("https://*:1", None, False),
        ("http://*:1", context, False),
    ):
        with nullcontext() if good else pytest.raises(ValueError, match="any host could get the token"):
            Reports([url], pytest.fail, token=TOKEN, context=given)
    Reports(["http://*:1"], pytest.fail)


@pytest.mark.parametrize(
    "text",
    ["node:9644", "ftp://node:9644", "http://node", "http://node:x", "http://node:1/m", "http://a@b:1"],
)
def test_what_is_no_address_of_a_node_is_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match="give a node as http://HOST:PORT, or https, not"):
        node_url(text)
