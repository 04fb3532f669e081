"""`ringleader watch` of two nodes before an Apache Kafka: their groups, and what clients told either node."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import pytest

from ringleader import GroupConsumer
from ringleader.clients.admin import Admin
from ringleader.clients.connection.cluster import Cluster
from ringleader.insight.feed.watcher import Watcher
from ringleader.insight.history import HistoryError
from ringleader.insight.model import Confidence
from tests.chaos.targets import Node
from tests.interop.kafka import FEW_PARTITIONS, KafkaBroker
from tests.support.certificates import Certificates
from tests.support.command import command_line, environment
from tests.support.ports import free_ports

PATIENCE_S = 120.0
TOKEN = "correct-horse-battery"
POLL_MS = 2_000
OPTIONS = [
    *("--cluster-replication-factor", "1", "--group-initial-rebalance-delay-ms", "0"),
    # Clients tell a node of themselves ten times a second.
    *("--telemetry-enable", "--telemetry-interval-ms", "100"),
]


class Cast(NamedTuple):
    """A broker and two nodes. `token`: the file with that of the nodes' HTTP endpoints."""

    broker: KafkaBroker
    nodes: dict[int, Node]
    token: Path

    @property
    def bootstrap(self) -> str:
        """Of the nodes that run."""
        return ",".join(one.bootstrap for one in self.nodes.values() if one.running)


@pytest.fixture(scope="module")
def _cast(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cast]:
    directory = tmp_path_factory.mktemp("nodes")
    token = _token(directory)
    options = [*OPTIONS, "--http-listen", "127.0.0.1:0", "--http-token-file", str(token)]
    with _started(directory, token, {1: (Node, options), 2: (Node, options)}) as cast:
        asyncio.run(_make_topic(cast.bootstrap))
        yield cast


@contextmanager
def _started(directory: Path, token: Path, nodes: dict[int, tuple[type[Node], list[str]]]) -> Iterator[Cast]:
    """Nodes, with their options, before a broker of their own."""
    with ExitStack() as stack:
        broker = stack.enter_context(KafkaBroker(directory / "kafka", properties=FEW_PARTITIONS))
        cast = Cast(broker, {}, token)
        for number, (kind, options) in nodes.items():
            node = cast.nodes[number] = kind(directory / str(number), broker.bootstrap, number, options)
            stack.callback(_end, node)
            node.start()
        yield cast


@pytest.fixture
def cast(_cast: Cast) -> Cast:
    """Both nodes serve."""
    for node in _cast.nodes.values():
        if not node.running:
            node.start()
    return _cast


def _token(directory: Path) -> Path:
    token = directory / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    return token


def _end(node: Node) -> None:
    if node.running:
        node.kill()


async def _make_topic(bootstrap: str) -> None:
    async with Admin(bootstrap) as admin:
        await admin.create_topic("orders", 2)


def url_of(node: Node) -> str:
    """Of its HTTP endpoint, since its last start."""
    found = re.findall(r"health and metrics.*?(127\.0\.0\.1:\d+)", node.log())
    assert found, node.log()
    return f"http://{found[-1]}"


@contextmanager
def watching(cast: Cast, history: Path) -> Iterator[subprocess.Popen[str]]:
    """The command, since it watches."""
    arguments = ["--history", str(history), "--node-token-file", str(cast.token)]
    for node in cast.nodes.values():
        arguments += ["--node-http", url_of(node)]
    with watching_with(cast.bootstrap, *arguments) as watch:
        yield watch


@contextmanager
def watching_with(bootstrap: str, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """As `watching`, with these arguments."""
    watch = subprocess.Popen(
        command_line("watch", "--no-page", "--json", *arguments),
        env=environment(bootstrap),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert watch.stderr is not None
        first(watch.stderr, lambda line: "watching" in line)
        yield watch
    finally:
        watch.kill()
        watch.communicate()


def first(lines: IO[str] | None, found: Callable[[str], bool]) -> str:
    """The first line of which that is true."""
    assert lines is not None
    seen = []
    for line in lines:
        if found(line):
            return line
        seen.append(line)
    raise AssertionError("".join(seen))


@asynccontextmanager
async def slow_member(
    bootstrap: str, group: str, protocol: Literal["classic", "consumer"]
) -> AsyncIterator[None]:
    """A member whose application takes longer than its poll interval, until the end."""
    free = asyncio.Event()

    async def slow(_partitions: Any) -> None:
        await free.wait()

    async with GroupConsumer(
        bootstrap,
        group,
        ["orders"],
        group_protocol=protocol,
        client_id="busy",
        max_poll_interval_ms=POLL_MS,
        on_assigned=slow,
    ):
        try:
            yield
        finally:
            free.set()


async def certain_departure(watch: subprocess.Popen[str], group: str) -> dict[str, Any]:
    """The rebalance in which that slow member went, as soon as it is certain by its client's report."""

    def certain(line: str) -> bool:
        event = json.loads(line)
        left = event["left"].values() if event["type"] == "rebalance" and event["group"] == group else ()
        return any(one["confidence"] == "certain" for one in left)

    event: dict[str, Any] = json.loads(await asyncio.to_thread(first, watch.stdout, certain))
    [departure] = event["left"].values()
    assert departure["why"] == "poll interval exceeded"
    assert any("its client said" in text and "poll timeout" in text for text in departure["evidence"])
    return event


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_a_departure_is_certain_by_what_its_client_told_a_node(
    cast: Cast, tmp_path: Path, protocol: Literal["classic", "consumer"]
) -> None:
    """And not without it."""
    group = f"slow-{protocol}"
    with watching(cast, tmp_path / "told.sqlite") as watch:
        async with (
            Watcher(cast.bootstrap, tmp_path / "untold.sqlite") as untold,
            slow_member(cast.bootstrap, group, protocol),
        ):
            event = await certain_departure(watch, group)
            await untold.caught_up(PATIENCE_S)
            [known] = [one for one in untold.history.rebalances(group) if one.left]
    [member_id] = event["left"]
    # The node that coordinates may have been another one since just before.
    assert event["cause"] in ("poll interval exceeded", "coordinator changed")
    assert event["id"] == known.id
    assert known.left[member_id].confidence is not Confidence.CERTAIN


async def test_a_node_that_is_killed_is_said_and_who_coordinates_now(cast: Cast, tmp_path: Path) -> None:
    with watching(cast, tmp_path / "history.sqlite") as watch:
        async with GroupConsumer(cast.bootstrap, "moved", ["orders"], client_id="stays") as consumer:
            await consumer.wait_assigned(PATIENCE_S)
            async with Cluster(cast.bootstrap) as cluster:
                owner = (await cluster.coordinator("moved")).node_id
            heir = 3 - owner
            cast.nodes[owner].kill()
            away = url_of(cast.nodes[owner])
            line = await asyncio.to_thread(first, watch.stderr, lambda line: "cannot be read" in line)
            assert f"what clients told {away} cannot be read: " in line

            def coordinates(line: str) -> bool:
                return bool(json.loads(line)["type"] == "event" and f"Node {heir} coordinates now" in line)

            event = json.loads(await asyncio.to_thread(first, watch.stdout, coordinates))
            assert (event["kind"], event["group"]) == ("coordinator back", "")
        # The group goes on at the other node, and is watched.
        line = await asyncio.to_thread(
            first, watch.stdout, lambda line: '"moved"' in line and '"rebalance"' in line
        )
        assert json.loads(line)["cause"] != "coordinator changed"


class Elsewhere(Node):
    """A node at a second address of this machine, as on a machine of its own."""

    @property
    def bootstrap(self) -> str:
        """HOST:PORT for clients."""
        return f"127.0.0.2:{self.port}"


async def test_each_node_that_the_cluster_names_is_asked_over_tls(tmp_path: Path) -> None:
    """A token goes only to a host whose certificate was issued for it."""
    certificates = Certificates(tmp_path / "certificates")
    token = _token(tmp_path)
    keys = tmp_path / "keys.pem"
    keys.write_bytes(certificates.issued("node", "127.0.0.2").read_bytes())

    def options(listen: str, certificate: Path) -> list[str]:
        tls = ("--http-ssl-keystore-location", str(certificate))
        return [*OPTIONS, "--http-listen", listen, "--http-token-file", str(token), *tls]

    [port] = free_ports(1)
    nodes: dict[int, tuple[type[Node], list[str]]] = {
        1: (Node, options(f"127.0.0.1:{port}", certificates.server)),
        2: (Elsewhere, options(f"127.0.0.2:{port}", keys)),
    }
    with ExitStack() as stack:
        cast = stack.enter_context(_started(tmp_path, token, nodes))
        here, there = cast.nodes.values()
        await _make_topic(here.bootstrap)
        watch = stack.enter_context(
            watching_with(
                here.bootstrap,
                *("--history", str(tmp_path / "history.sqlite"), "--node-http", f"https://*:{port}"),
                *("--node-token-file", str(token), "--node-authority", str(certificates.authority)),
            )
        )
        keys.write_bytes(certificates.issued("stranger", "127.0.0.9").read_bytes())
        line = await asyncio.to_thread(first, watch.stderr, lambda line: "cannot be read" in line)
        assert f"what clients told https://127.0.0.2:{port} cannot be read: " in line
        assert "certificate is not valid for '127.0.0.2'" in line
        keys.write_bytes(certificates.issued("node", "127.0.0.2").read_bytes())
        line = await asyncio.to_thread(first, watch.stderr, lambda line: "can be read again" in line)
        assert f"https://127.0.0.2:{port}" in line
        async with slow_member(there.bootstrap, "secured", "consumer"):
            event = await certain_departure(watch, "secured")
        assert event["group"] == "secured"


async def test_groups_of_nodes_and_of_their_brokers_are_two_histories(cast: Cast, tmp_path: Path) -> None:
    notices: list[str] = []
    async with Watcher(cast.bootstrap, tmp_path / "nodes.sqlite", on_notice=notices.append) as watcher:
        await watcher.caught_up(PATIENCE_S)
        assert "__ringleader_nodes" not in {one.group for one in watcher.history.groups()}
    assert notices == []
    with pytest.raises(HistoryError, match="is the history of the groups in __ringleader_groups, and not"):
        await Watcher(cast.broker.bootstrap, tmp_path / "nodes.sqlite").start()
    async with Watcher(
        cast.broker.bootstrap, tmp_path / "brokers.sqlite", on_notice=notices.append
    ) as watcher:
        await watcher.caught_up(PATIENCE_S)
        assert "__ringleader_nodes" in {one.group for one in watcher.history.groups()}
    assert [one.partition(" are not watched")[0] for one in notices] == [
        "groups of Ringleader's nodes (__ringleader_groups)"
    ]
