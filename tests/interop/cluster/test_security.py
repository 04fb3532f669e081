"""Nodes before a broker that asks who they are: each way to be let in, sessions that end, and what is said by
those that are not let in."""

from __future__ import annotations

import asyncio
import json
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import admin as librdkafka

from ringleader.clients.admin import Admin
from ringleader.clients.model import OffsetAndMetadata
from ringleader.testing.coordinator import Coordinator
from tests.chaos import asking
from tests.chaos.targets import Node
from tests.interop.secured import LIFETIME_MS, PASSWORD, USER, Secured, secured_broker
from tests.support.certificates import Certificates
from tests.support.command import run_here
from tests.support.consuming import PATIENCE_S, consumer
from tests.support.daemon import Daemon

TOPIC, PARTITIONS = "orders", 8
PLACE = ("moved", 0)
NAMES = ("--cluster-groups-topic", "--cluster-group-id", "--cluster-transactional-id-prefix")
REFUSED_S = 20.0
"""A daemon that is not let in says so well before it would give up an absent cluster."""

pytestmark = pytest.mark.xdist_group("secured-cluster")


class Ways:
    """Into the broker, as files of properties."""

    def __init__(self, secured: Secured, directory: Path) -> None:
        self._secured, self._directory = secured, directory
        self._certificates = secured.certificates

    def sasl(
        self, mechanism: str, listener: str = "SECURE", user: str = USER, password: str = PASSWORD
    ) -> tuple[str, Path]:
        """Its address there, and the file."""
        kind = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
        return self._way(
            f"{mechanism}-{listener}-{user}",
            listener,
            {
                "security.protocol": "SASL_SSL" if listener == "SECURE" else "SASL_PLAINTEXT",
                "sasl.mechanism": mechanism,
                "sasl.jaas.config": f"org.apache.kafka.common.security.{kind}LoginModule required "
                f'username="{user}" password="{password}";',
                **self._trust(),
            },
        )

    def certificate(self) -> tuple[str, Path]:
        """With a certificate of the client's own."""
        own = {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self._certificates.issued("node"))}
        return self._way("mutual", "MUTUAL", {"security.protocol": "SSL", **self._trust(), **own})

    def stranger(self) -> tuple[str, Path]:
        """TLS, and nothing to show."""
        return self._way("stranger", "MUTUAL", {"security.protocol": "SSL", **self._trust()})

    def trusting_nobody(self) -> tuple[str, Path]:
        """The broker's authority is none of those that this machine trusts."""
        return self._way("nobody", "MUTUAL", {"security.protocol": "SSL"})

    def open(self) -> tuple[str, Path]:
        """As if the broker asked nothing."""
        return self._way("open", "SECURE", {})

    def _trust(self) -> dict[str, str]:
        return {"ssl.truststore.type": "PEM", "ssl.truststore.location": str(self._certificates.authority)}

    def _way(self, name: str, listener: str, properties: dict[str, str]) -> tuple[str, Path]:
        path = self._directory / f"{name}.properties"
        path.write_text("\n".join(f"{key}={value}" for key, value in properties.items()) + "\n")
        return self._secured.broker.address(listener), path


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    directory = tmp_path_factory.mktemp("secured")
    certificates = Certificates(directory / "certificates")
    with secured_broker(directory / "broker", certificates) as broker:
        yield Secured(broker, certificates)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The data that a stopped daemon has left."""
    directory = tmp_path / "daemon" / "data"
    with Coordinator(data_dir=directory, topics={"moved": 1}) as daemon:
        asyncio.run(commit(daemon.bootstrap, "lived-alone"))
    return directory


@pytest.fixture
def ways(secured: Secured, tmp_path: Path) -> Ways:
    return Ways(secured, tmp_path)


def options(name: str, properties: Path, partitions: int = 4) -> list[str]:
    """Of nodes with a groups' topic and a name of their own."""
    given = [
        *("--cluster-properties", str(properties), "--cluster-replication-factor", "1"),
        *("--offsets-topic-num-partitions", str(partitions), "--group-initial-rebalance-delay-ms", "0"),
    ]
    return given + [word for flag in NAMES for word in (flag, f"__{name}")]


@contextmanager
def serving(
    directory: Path, name: str, *ways: tuple[str, Path], more: tuple[str, ...] = ()
) -> Iterator[dict[int, Daemon]]:
    """A node for each way, ids from 1."""
    nodes: dict[int, Daemon] = {
        node_id: Node(directory / f"{name}-{node_id}", address, node_id, [*options(name, properties), *more])
        for node_id, (address, properties) in enumerate(ways, 1)
    }
    with ExitStack() as stack:
        for node in nodes.values():
            node.tracebacks_expected = False
            stack.callback(node.kill)
        for node in nodes.values():
            node.start()
        yield nodes


async def commit(where: str, group: str) -> None:
    async with Admin(where) as admin:
        await admin.set_group_offsets(group, {PLACE: 0})


def bootstrap(nodes: dict[int, Daemon]) -> str:
    return ",".join(node.bootstrap for node in nodes.values() if node.running)


async def make(secured: Secured, topic: str) -> None:
    async with Admin(secured.broker.bootstrap) as admin:
        await admin.create_topic(topic, PARTITIONS)


def produce(nodes: dict[int, Daemon], topic: str, first: int, count: int) -> None:
    """Numbered records, all acknowledged."""
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap(nodes), "enable.idempotence": True})
    for number in range(first, first + count):
        producer.produce(topic, str(number), partition=number % PARTITIONS)
    assert producer.flush(PATIENCE_S) == 0


async def works(nodes: dict[int, Daemon], topic: str, group: str, turns: int) -> None:
    """Records through the nodes, and a group there, whose owner dies after each turn."""
    found: list[int] = []
    async with consumer(bootstrap(nodes), topics=[topic], group=group) as one:
        for turn in range(turns + 1):
            await asyncio.to_thread(produce, nodes, topic, turn * 100, 100)
            async with asyncio.timeout(2 * PATIENCE_S):
                while len(found) < (turn + 1) * 100:
                    found += [
                        int(record.value or b"") for batch in await one.getmany(100) for record in batch
                    ]
                await one.commit()
            if turn < turns:
                owner = await asyncio.to_thread(asking.coordinator, bootstrap(nodes), group)
                assert owner is not None
                await asyncio.to_thread(nodes[owner].kill)
    assert sorted(found) == list(range((turns + 1) * 100))
    async with Admin(bootstrap(nodes)) as admin:
        committed = await admin.group_offsets(group)
    assert sum(place.offset for place in committed.values()) == (turns + 1) * 100


@pytest.mark.timeout(300)
async def test_nodes_that_are_let_in_each_in_another_way(
    secured: Secured, ways: Ways, tmp_path: Path
) -> None:
    """One owner after the other dies, until each has had the group or the last one has."""
    everybody = [
        ways.sasl("SCRAM-SHA-256"),
        ways.sasl("SCRAM-SHA-512"),
        ways.sasl("PLAIN"),
        ways.certificate(),
    ]
    await make(secured, TOPIC)
    with serving(tmp_path, "ways", *everybody) as nodes:
        for address, properties in everybody:
            where = ("--cluster", address, "--cluster-group-id", "__ways")
            listed = await asyncio.to_thread(
                run_here, None, "nodes", "list", *where, "--command-config", str(properties), "--json"
            )
            assert (listed.code, listed.err) == (0, "")
            assert [row["node"] for row in json.loads(listed.out)] == [1, 2, 3, 4]
        await works(nodes, TOPIC, "let-in", turns=3)


async def test_sessions_of_nodes_are_renewed(secured: Secured, ways: Ways, tmp_path: Path) -> None:
    """The broker ends connections whose session is over: of the nodes' group, of the groups' log, of what is
    passed on."""
    await make(secured, "brief")
    brief = ways.sasl("SCRAM-SHA-512", "BRIEF")
    with serving(tmp_path, "brief", brief, brief, more=("--log-level", "debug")) as nodes:
        began_s = time.monotonic()
        found = 0
        async with consumer(bootstrap(nodes), topics=["brief"], group="brief") as one:
            await one.wait_assigned(PATIENCE_S)
            joined = one.metrics().member.rebalances
            async with asyncio.timeout(2 * PATIENCE_S):
                while time.monotonic() < began_s + 3 * LIFETIME_MS / 1000:
                    await asyncio.to_thread(produce, nodes, "brief", found, 10)
                    wanted = found + 10
                    while found < wanted:
                        found += sum(len(batch) for batch in await one.getmany(100))
                    await one.commit()
            assert one.metrics().member.rebalances == joined
        for node in nodes.values():
            log = node.log()
            assert log.count("authenticated again") > 10
            assert "[warning" not in log
            assert "[error" not in log


def known(secured: Secured, user: str, yes: bool) -> None:
    """Whether SCRAM-SHA-512 knows that user."""
    admin: Any = librdkafka
    mechanism = admin.ScramMechanism.SCRAM_SHA_512
    change = (
        admin.UserScramCredentialUpsertion(
            user, admin.ScramCredentialInfo(mechanism, 4_096), PASSWORD.encode()
        )
        if yes
        else admin.UserScramCredentialDeletion(user, mechanism)
    )
    client = admin.AdminClient({"bootstrap.servers": secured.broker.bootstrap})
    for done in client.alter_user_scram_credentials([change], request_timeout=PATIENCE_S).values():
        done.result(PATIENCE_S)


async def test_a_node_that_is_not_let_in_any_more_ends(secured: Secured, ways: Ways, tmp_path: Path) -> None:
    await asyncio.to_thread(known, secured, "bob", True)
    patient = ("--storage-timeout-ms", "600000")
    with serving(tmp_path, "bob", ways.sasl("SCRAM-SHA-512", "BRIEF", "bob"), more=patient) as nodes:
        await asyncio.to_thread(known, secured, "bob", False)
        assert await asyncio.to_thread(nodes[1].wait) == 1
        line = nodes[1].log().splitlines()[-1]
        assert line.startswith("ringleader: It stops (")
        assert "refused user 'bob'" in line


WRONG: dict[str, tuple[Callable[[Ways], tuple[str, Path]], str]] = {
    "password": (lambda ways: ways.sasl("SCRAM-SHA-512", password="wrong"), "refused user 'alice'"),
    "plain password": (lambda ways: ways.sasl("PLAIN", password="wrong"), "refused user 'alice'"),
    "no certificate": (lambda ways: ways.stranger(), "asks for a client certificate"),
    "nobody is trusted": (lambda ways: ways.trusting_nobody(), "is not trusted"),
    "no TLS": (lambda ways: ways.open(), "speaks TLS"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_daemon_that_is_not_let_in_says_so(ways: Ways, data: Path, tmp_path: Path, wrong: str) -> None:
    make_way, why = WRONG[wrong]
    address, properties = make_way(ways)
    server = ("--bootstrap-server", address, "--command-config", str(properties))
    for command in (
        ["nodes", "list", "--cluster", address, "--command-config", str(properties)],
        ["migrate", "--from", str(data), "--cluster", address, *options("x", properties)[:2]],
        ["groups", "list", *server],
    ):
        done = run_here(None, *command)
        assert done.code == 1, command
        assert why in done.err
        assert done.err.count("\n") == 1
        assert "wrong" not in done.err
    node = Node(tmp_path, address, 1, options("x", properties))
    done_node = subprocess.run(
        node.command(),
        capture_output=True,
        text=True,
        timeout=REFUSED_S,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert (done_node.returncode, done_node.stdout) == (1, "")
    lines = [line for line in done_node.stderr.splitlines() if line.startswith("ringleader: ")]
    assert len(lines) == 1, done_node.stderr
    assert why in lines[0]
    assert "Traceback" not in done_node.stderr
    assert "wrong" not in done_node.stderr


def test_a_daemon_and_groups_move_in(secured: Secured, ways: Ways, data: Path, tmp_path: Path) -> None:
    """`ringleader migrate` and `ringleader groups import` with the properties that nodes have."""
    address, properties = ways.sasl("SCRAM-SHA-256")
    done = run_here(
        None,
        *("migrate", "--from", str(data), "--cluster", address),
        *("--cluster-properties", str(properties)),
        *("--cluster-groups-topic", "__moved", "--cluster-replication-factor", "1"),
    )
    assert done.code == 0, done.err
    asyncio.run(commit(secured.broker.bootstrap, "lived-on-kafka"))
    moved = [
        word for word in options("moved", properties) if word not in ("--offsets-topic-num-partitions", "4")
    ]
    node = Node(tmp_path / "node", address, 1, moved)
    with node:
        taken = run_here(
            None,
            *("groups", "import", "--group", "lived-on-kafka"),
            *("--from-bootstrap-server", address, "--from-command-config", str(properties)),
            *("--to-bootstrap-server", node.bootstrap),
        )
        assert (taken.code, taken.err) == (0, "")

        async def committed() -> list[dict[tuple[str, int], OffsetAndMetadata]]:
            async with Admin(node.bootstrap) as admin:
                return [dict(await admin.group_offsets(name)) for name in ("lived-alone", "lived-on-kafka")]

        assert [one[PLACE].offset for one in asyncio.run(committed())] == [0, 0]
