"""Nodes that authenticate and authorize clients, before Apache Kafka: a change at one node counts at all,
outlives them, and is not lost with a broker."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import aiokafka
import confluent_kafka
import kafka as kafka_python
import pytest

from ringleader.clients.admin import Admin
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.requests import plain
from ringleader.clients.connection.security import SaslScram
from ringleader.clients.errors import AuthenticationError, ClientError, RetriableError
from ringleader.coordinator.security.acls import Operation, PatternType, Permission, ResourceType
from ringleader.protocol.messages import CreateAclsRequest, CreateAclsRequestAclCreation
from tests.chaos.targets import Node
from tests.interop.clients.java_clients import JavaClients
from tests.interop.clients.test_java_console import Console
from tests.interop.kafka_cluster import KafkaCluster
from tests.support.command import run_here
from tests.support.consuming import PATIENCE_S, consumer

ADMIN, OTHER = "admin", "alice"
PASSWORD = "open sesame"
AGAIN_S = 0.1
"""Between two looks whether something counts already."""
FLAGS = ("groups-topic", "security-topic", "group-id", "transactional-id-prefix")
LIBRARIES = ("confluent-kafka", "aiokafka", "kafka-python")


@pytest.fixture(scope="module")
def java_clients(tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaClients]:
    """Kafka's tools in a JVM."""
    with JavaClients(tmp_path_factory.mktemp("java") / "java.log") as running:
        yield running


class SecuredNode(Node):
    """A node whose only listener authenticates."""

    def command(self) -> list[str]:
        """Of the next start."""
        command = super().command()
        at = command.index("--listen")
        command[at : at + 2] = ["--listeners", f"SASL_PLAINTEXT://{self.bootstrap}"]
        return command


class Nodes:
    """Several of them, and the way to where they keep users."""

    def __init__(self, directory: Path, brokers: KafkaCluster, name: str) -> None:
        self.brokers = brokers.bootstrap
        self.topic = f"__{name}-security-topic"
        replicas = ("--cluster-replication-factor", str(len(brokers.brokers)))
        self.where = ["--cluster", self.brokers, "--cluster-security-topic", self.topic, *replicas]
        names = [word for flag in FLAGS for word in (f"--cluster-{flag}", f"__{name}-{flag}")]
        options = [
            *(*names, *replicas, "--offsets-topic-num-partitions", "4"),
            *("--authorizer", "acl", "--super-users", f"User:{ADMIN}"),
            *("--group-initial-rebalance-delay-ms", "0"),
        ]
        self.by_id = {
            node_id: SecuredNode(directory / f"node-{node_id}", self.brokers, node_id, options)
            for node_id in (1, 2)
        }
        password = directory / "password"
        password.write_text(PASSWORD)
        self._first = ["users", "add", ADMIN, "--password-file", str(password), *self.where]

    async def begin(self) -> None:
        """The first user is made before a node runs, as an operator has to."""
        done = await asyncio.to_thread(run_here, None, *self._first)
        assert (done.code, done.err) == (0, "")
        await self.start()

    async def start(self) -> None:
        """All of them."""
        await asyncio.gather(*(asyncio.to_thread(node.start) for node in self.by_id.values()))

    async def stop(self) -> None:
        """All of them."""
        await asyncio.gather(*(asyncio.to_thread(node.stop) for node in self.by_id.values()))

    @property
    def bootstrap(self) -> str:
        """Of those that run."""
        return ",".join(node.bootstrap for node in self.by_id.values() if node.running)

    async def users(self) -> list[str]:
        """As the cluster has them."""
        listed = await asyncio.to_thread(run_here, None, "users", "list", "--json", *self.where)
        assert (listed.code, listed.err) == (0, "")
        return [one["user"] for one in json.loads(listed.out)]


@asynccontextmanager
async def secured(directory: Path, brokers: KafkaCluster, name: str) -> AsyncIterator[Nodes]:
    nodes = Nodes(directory, brokers, name)
    with ExitStack() as stack:
        for node in nodes.by_id.values():
            node.directory.mkdir()
            node.tracebacks_expected = False
            stack.callback(node.kill)
        await nodes.begin()
        yield nodes


def as_user(bootstrap: str, user: str = ADMIN, password: str = PASSWORD) -> Admin:
    return Admin(bootstrap, sasl=SaslScram(user, password))


async def set_password(bootstrap: str, user: str, password: str = PASSWORD) -> None:
    async with as_user(bootstrap) as admin:
        await admin.set_scram_user(user, password)


async def lets_in(bootstrap: str, user: str, password: str = PASSWORD) -> bool:
    try:
        async with as_user(bootstrap, user, password) as admin:
            await admin.list_topics()
    except AuthenticationError:
        return False
    return True


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            if await holds():
                return
            await asyncio.sleep(AGAIN_S)


async def allow(bootstrap: str, *what: tuple[Operation, ResourceType, str]) -> None:
    creations = [
        CreateAclsRequestAclCreation(
            kind, name, PatternType.LITERAL, f"User:{OTHER}", "*", operation, Permission.ALLOW
        )
        for operation, kind, name in what
    ]
    async with Cluster(bootstrap, sasl=SaslScram(ADMIN, PASSWORD)) as cluster:
        made = await cluster.send(None, plain(CreateAclsRequest(creations)))
    assert [result.error_code for result in made.results] == [0] * len(what)


async def ready(nodes: Nodes, topic: str, *groups: str) -> None:
    """A topic with a record, and somebody who may read it in these groups: each made at another node."""
    one, two = (node.bootstrap for node in nodes.by_id.values())
    async with as_user(one) as admin:
        await admin.create_topic(topic, 1)
    login = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": ADMIN,
        "sasl.password": PASSWORD,
        "bootstrap.servers": two,
    }
    producer = confluent_kafka.Producer(login)
    producer.produce(topic, b"a record")
    assert await asyncio.to_thread(producer.flush, PATIENCE_S) == 0
    await set_password(one, OTHER)
    await until(lambda: lets_in(two, OTHER))
    reads = [(Operation.READ, ResourceType.GROUP, group) for group in groups]
    await allow(two, (Operation.READ, ResourceType.TOPIC, topic), *reads)

    async def seen() -> bool:
        async with as_user(one, OTHER) as admin:
            return topic in {found.name for found in await admin.list_topics()}

    await until(seen)


async def read_with(library: str, bootstrap: str, topic: str, group: str) -> Any:
    """The first record's value, after it was committed."""
    if library == "aiokafka":
        reader = aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="SCRAM-SHA-512",
            sasl_plain_username=OTHER,
            sasl_plain_password=PASSWORD,
        )
        await reader.start()
        try:
            record = await asyncio.wait_for(reader.getone(), PATIENCE_S)
            await reader.commit()
            return record.value
        finally:
            await reader.stop()
    return await asyncio.to_thread(_read_blocking, library, bootstrap, topic, group)


def _read_blocking(library: str, bootstrap: str, topic: str, group: str) -> Any:
    if library == "kafka-python":
        with kafka_python.KafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            consumer_timeout_ms=int(PATIENCE_S * 1000),
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="SCRAM-SHA-512",
            sasl_plain_username=OTHER,
            sasl_plain_password=PASSWORD,
        ) as reader:
            value = next(reader).value
            reader.commit()
            return value
    confluent = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": OTHER,
            "sasl.password": PASSWORD,
        }
    )
    try:
        confluent.subscribe([topic])
        record = confluent.poll(PATIENCE_S)
        assert record is not None
        assert record.error() is None, record.error()
        confluent.commit(asynchronous=False)
        return record.value()
    finally:
        confluent.close()


@pytest.mark.timeout(300)
async def test_users_and_acls_are_of_all_nodes_and_outlive_them(
    one_broker: KafkaCluster, tmp_path: Path
) -> None:
    topic = "guarded"
    async with secured(tmp_path, one_broker, topic) as nodes:
        await ready(nodes, topic, *LIBRARIES)
        for library in LIBRARIES:
            assert await read_with(library, nodes.bootstrap, topic, library) == b"a record"
        await nodes.stop()
        await nodes.start()
        async with as_user(nodes.bootstrap, OTHER) as alice:
            for library in LIBRARIES:
                assert (await alice.group_offsets(library))[topic, 0].offset == 1
            with pytest.raises(ClientError):
                await alice.group_offsets("another")
            with pytest.raises(ClientError):
                await alice.set_scram_user("eve", PASSWORD)
        assert not await lets_in(nodes.bootstrap, OTHER, "another password")
        async with as_user(nodes.bootstrap) as admin:
            listed = {found.name for found in await admin.list_topics(internal=True)}
            assert topic in listed
            assert nodes.topic not in listed
        assert await nodes.users() == [ADMIN, OTHER]
        for node in nodes.by_id.values():
            assert "[error" not in node.log()
            assert PASSWORD not in node.log()


JAAS = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.mark.timeout(300)
async def test_kafkas_own_tools_work_at_any_node(
    one_broker: KafkaCluster, java_clients: JavaClients, tmp_path: Path
) -> None:
    login = tmp_path / "admin.properties"
    login.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n"
        f'sasl.jaas.config={JAAS} required username="{ADMIN}" password="{PASSWORD}";\n'
    )
    async with secured(tmp_path, one_broker, "tools") as nodes:
        here, there = (Console(node.bootstrap, java_clients) for node in nodes.by_id.values())
        as_admin = f"--command-config {login}"
        for console in (here, there):
            await console.open()
        user = "--entity-type users --entity-name bob"
        credentials = "SCRAM-SHA-256=[iterations=8192,password=bobs-own]"
        await here.lines(f"kafka-configs {as_admin} --alter {user} --add-config {credentials}")
        await there.lines(f"kafka-configs {as_admin} --alter {user} --add-config consumer_byte_rate=1000000")
        await here.lines(
            f"kafka-acls {as_admin} --add --allow-principal User:bob --operation Read --group team"
        )

        async def printed(console: Console) -> bool:
            described = " ".join(await console.lines(f"kafka-configs {as_admin} --describe {user}"))
            acls = " ".join(await console.lines(f"kafka-acls {as_admin} --list"))
            return (
                "SCRAM-SHA-256=iterations=8192" in described
                and "consumer_byte_rate=1000000" in described
                and "(principal=User:bob, host=*, operation=READ, permissionType=ALLOW)" in acls
            )

        for console in (here, there):
            await until(partial(printed, console))


async def test_nodes_that_change_a_user_at_once_agree(one_broker: KafkaCluster, tmp_path: Path) -> None:
    async with secured(tmp_path, one_broker, "at-once") as nodes:
        places = [node.bootstrap for node in nodes.by_id.values()]
        passwords = [f"password {number}" for number in range(6)]
        await asyncio.gather(
            *(set_password(places[n % 2], OTHER, password) for n, password in enumerate(passwords))
        )
        await set_password(places[0], "last")
        await until(lambda: lets_in(places[1], "last"))
        let_in = [[one for one in passwords if await lets_in(place, OTHER, one)] for place in places]
        assert let_in[0] == let_in[1]
        assert len(let_in[0]) == 1


async def until_made(bootstrap: str, user: str) -> None:
    """Asks again while the error says that this helps."""

    async def made() -> bool:
        try:
            await set_password(bootstrap, user)
        except RetriableError:
            return False
        return True

    await until(made)


@pytest.mark.timeout(300)
async def test_no_user_is_lost_with_a_broker(three_brokers: KafkaCluster, tmp_path: Path) -> None:
    async with secured(tmp_path, three_brokers, "durable") as nodes:
        one, two = (node.bootstrap for node in nodes.by_id.values())
        async with Cluster(nodes.brokers) as cluster:
            found = await cluster.metadata([nodes.topic])
        [partition] = found.topics[nodes.topic].partitions
        names = [f"user-{number:02}" for number in range(20)]
        for number, name in enumerate(names):
            if number == 5:
                await asyncio.to_thread(three_brokers.kill, partition.leader)
            await until_made(one, name)
        await until(lambda: lets_in(two, names[-1]))
        for name in names:
            assert await lets_in(two, name), name
        await asyncio.to_thread(three_brokers.restart, partition.leader)
        assert await nodes.users() == [ADMIN, *names]
        await nodes.stop()
        await nodes.start()
        assert await lets_in(one, names[5])


@pytest.mark.timeout(300)
async def test_a_group_goes_on_when_its_node_is_killed(one_broker: KafkaCluster, tmp_path: Path) -> None:
    topic = "moves"
    async with secured(tmp_path, one_broker, topic) as nodes:
        await ready(nodes, topic, "billing")
        sasl = SaslScram(OTHER, PASSWORD)
        async with consumer(nodes.bootstrap, topics=[topic], group="billing", sasl=sasl) as reader:
            async with asyncio.timeout(PATIENCE_S):
                while not await reader.getmany(100):
                    pass
            await reader.commit()
            async with Cluster(nodes.bootstrap, sasl=sasl) as cluster:
                owner = (await cluster.coordinator("billing")).node_id
            await asyncio.to_thread(nodes.by_id[owner].kill)
            joined = reader.metrics().member.rebalances

            async def committed() -> bool:
                try:
                    await reader.commit({(topic, 0): 1})
                except ClientError:
                    return False
                return True

            await until(committed)
            assert reader.metrics().member.rebalances == joined
        async with as_user(nodes.bootstrap, OTHER) as alice:
            assert (await alice.group_offsets("billing"))[topic, 0].offset == 1
