"""A principal without the right is refused as by Apache Kafka with its StandardAuthorizer: each API, each
principal, all fields.

By a daemon, where principals come through SASL_SSL, each by a mechanism of its own; and by a node before a
cluster, which passes on what it does not answer itself."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

from ringleader.coordinator.cluster.node import ClusterNode
from ringleader.coordinator.config import Settings
from ringleader.coordinator.node import Node
from ringleader.coordinator.security.directory import Security
from ringleader.coordinator.security.scram import MECHANISMS
from ringleader.protocol import messages as kafka
from ringleader.protocol.schema import Message
from tests.interop.kafka import KAFKAS_PARTITIONS, KafkaBroker
from tests.interop.secured import guarded_broker
from tests.protocol.test_refusals import codes
from tests.support.certificates import Certificates
from tests.support.command import run_here
from tests.support.comparable import plain
from tests.support.entrance import (
    LISTENER,
    OFFERED,
    PROTOCOL,
    Entrance,
    password_of,
)
from tests.support.principals import ADMINISTRATOR, connected_as, guarded, prepare
from tests.support.registered import credential
from tests.support.requests_of_all import PRINCIPALS, all_requests
from tests.support.served import Client, connected

CLUSTER = "kafka-cluster"
_creation = kafka.CreateAclsRequestAclCreation
ODD = [
    _creation(2, "odd", 3, "User:o", "*", 3, 3),
    _creation(2, "odd", 3, "User:o", "*", 3, 3),
    _creation(2, "odd", 3, "User:o", "nowhere", 2, 2),
    _creation(2, "", 3, "User:o", "*", 3, 3),
    _creation(4, CLUSTER, 3, "User:o", "*", 3, 3),
    _creation(4, "another", 3, "User:o", "*", 5, 3),
    _creation(4, CLUSTER, 4, "User:o", "*", 5, 3),
    _creation(5, "odd", 4, "User:o", "*", 4, 3),
    _creation(6, "token", 3, "User:o", "*", 8, 3),
    _creation(7, "User:p", 3, "User:o", "*", 13, 3),
    _creation(2, "odd", 3, "nobody", "*", 3, 3),
    _creation(2, "odd", 3, "Team:o", "*", 3, 3),
    _creation(2, "odd", 3, "User:", "*", 3, 3),
    _creation(2, "odd", 3, "User:CN=o,O=p:q", "*", 15, 3),
    _creation(1, "odd", 3, "User:o", "*", 3, 3),
    _creation(2, "odd", 1, "User:o", "*", 3, 3),
    _creation(2, "odd", 2, "User:o", "*", 3, 3),
    _creation(2, "odd", 3, "User:o", "*", 1, 3),
    _creation(2, "odd", 3, "User:o", "*", 3, 1),
    _creation(2, "odd", 3, "User:o", "", 3, 3),
]
ANY = (1, None, 1, None, None, 1, 1)
_filter = kafka.DeleteAclsRequestDeleteAclsFilter
FILTERS = [
    _filter(2, "odd", 2),
    _filter(1, None, 1, "User:o", None, 1, 3),
    _filter(2, "nothing", 3, None, None, 1, 1),
]
FILTERS[0].principal_filter = FILTERS[0].host_filter = None
FILTERS[0].operation = FILTERS[0].permission_type = 1
UNREADABLE = [
    kafka.CreateAclsRequest(creations=[_creation(0, "odd", 3, "User:o", "*", 3, 3)]),
    kafka.CreateAclsRequest(creations=[_creation(2, "odd", 3, "User:o", "*", 99, 3)]),
    kafka.CreateAclsRequest(creations=[_creation(2, "odd", 3, "User:o", "*", 0, 3)]),
    kafka.CreateAclsRequest(creations=[_creation(2, "odd", 3, "User:o", "*", 3, 0)]),
    kafka.CreateAclsRequest(creations=[_creation(2, "odd", 0, "User:o", "*", 3, 3)]),
    kafka.CreateAclsRequest(creations=[_creation(9, "odd", 3, "User:o", "*", 3, 3)]),
    kafka.DescribeAclsRequest(1, None, 0, None, None, 1, 1),
    kafka.DescribeAclsRequest(1, None, 1, None, None, 77, 1),
    kafka.DeleteAclsRequest(filters=[_filter(1, None, 1, None, None, 1, 9)]),
]

EXPLAINED = {f"{ADMINISTRATOR}: DeleteGroups v{version}": "simple-group-end" for version in (0, 2)}
"""By name in docs/kafka-differences.md."""

TELEMETRY = {71, 72}
"""Kafka has these with a plugin alone."""

Connect = Callable[[str], contextlib.AbstractAsyncContextManager[Client]]


async def played(connect: Connect) -> dict[str, Any]:
    """The answers to everything for each principal."""
    found = {}
    for principal in (*PRINCIPALS, ADMINISTRATOR):
        async with connect(principal) as client:
            versions = await client.call(kafka.ApiVersionsRequest("test", "1"), 3)
            served = {one.api_key for one in versions.api_keys}
            for case in all_requests():
                if case.request.API_KEY not in served - TELEMETRY:
                    continue  # the consumer protocol, on several nodes
                if principal == ADMINISTRATOR and case.label == "that creates":
                    continue  # Kafka's controller does it later
                found[f"{principal}: {case.name}"] = plain(await client.call(case.request, case.version))
    async with connect(ADMINISTRATOR) as client:
        for creation in ODD:
            request = kafka.CreateAclsRequest(creations=[creation])
            answer = await client.call(request, 3)
            found[f"{creation}"] = [(one.error_code, one.error_message) for one in answer.results]
        found["what was made"] = plain(await client.call(kafka.DescribeAclsRequest(*ANY), 3))
        answer = await client.call(kafka.DeleteAclsRequest(filters=FILTERS), 3)
        found["what was deleted"] = plain(answer)
        found["what is left"] = plain(await client.call(kafka.DescribeAclsRequest(*ANY), 3))
    for unreadable in UNREADABLE:
        async with connect(ADMINISTRATOR) as client:
            try:
                found[f"{unreadable}"] = plain(await client.call(unreadable, 3))
            except asyncio.IncompleteReadError:
                found[f"{unreadable}"] = "closed"
    return found


async def register(security: Security) -> None:
    """The principals as users."""
    for name in PRINCIPALS:
        known = {one.name: credential(one, password_of(name)) for one in MECHANISMS.values()}
        await security.users.change({name: known})


@contextlib.asynccontextmanager
async def on_node(directory: Path) -> AsyncIterator[Connect]:
    """One by itself, in this process. Its super user comes through the listener that asks nobody."""
    certificates = Certificates(directory / "certificates")
    settings = guarded(
        directory / "data",
        listeners=f"PLAINTEXT://127.0.0.1:0,{LISTENER}://127.0.0.1:0",
        listener_security_protocol_map=f"PLAINTEXT:PLAINTEXT,{LISTENER}:{PROTOCOL}",
        sasl_enabled_mechanisms=OFFERED,
        ssl_keystore_location=certificates.server,
    )
    async with Node(settings) as node:
        await register(node.security)
        entrance = Entrance(*node.listeners[1].address, certificates.client_tls())
        async with connected(node.host, node.port) as administrator:
            await prepare(administrator)
        yield _connect(node.host, node.port, entrance)


@contextlib.asynccontextmanager
async def on_node_before_kafka(directory: Path) -> AsyncIterator[Connect]:
    """One of several, in this process. Its broker asks nobody anything."""
    with KafkaBroker(directory / "broker", properties=KAFKAS_PARTITIONS) as broker:
        settings = Settings(
            listen="127.0.0.1:0",
            node_id=1,
            cluster=broker.bootstrap,
            cluster_replication_factor=1,
            group_initial_rebalance_delay_ms=0,
            authorizer="acl",
            super_users=f"User:{ADMINISTRATOR}",
        )
        async with ClusterNode(settings) as node:
            assert node.security is not None
            await register(node.security)
            async with connected(node.host, node.port) as administrator:
                await prepare(administrator)
                await warmed_up(administrator)
            yield partial(connected_as, node)


@contextlib.asynccontextmanager
async def on_kafka(directory: Path) -> AsyncIterator[Connect]:
    """A broker whose super user comes through the listener that asks nobody."""
    certificates = Certificates(directory / "certificates")
    with guarded_broker(directory / "broker", certificates, KAFKAS_PARTITIONS) as broker:
        _, _, port = broker.address(LISTENER).partition(":")
        entrance = Entrance(broker.host, int(port), certificates.client_tls())
        async with connected(broker.host, broker.port) as administrator:
            await prepare(administrator)
            await warmed_up(administrator)
        yield _connect(broker.host, broker.port, entrance)


def _connect(host: str, port: int, entrance: Entrance) -> Connect:
    def connect(principal: str) -> contextlib.AbstractAsyncContextManager[Client]:
        return connected(host, port) if principal == ADMINISTRATOR else entrance.connected(principal)

    return connect


async def warmed_up(client: Client) -> None:
    """Coordinators of groups and transactions answer: their topics are made at the first request."""
    for kind in (0, 1):
        find = kafka.FindCoordinatorRequest(coordinator_keys=["t-mine"], key_type=kind)
        await _until_none(client, find, 4)
    await _until_none(client, kafka.DescribeGroupsRequest(groups=["g-mine", "g-seen", "g-other", "g-old"]), 5)
    init = kafka.InitProducerIdRequest(transactional_id="t-admin", transaction_timeout_ms=10_000)
    await _until_none(client, init, 4)


async def _until_none(client: Client, request: Message, version: int) -> None:
    async with asyncio.timeout(60):
        while set(codes(await client.call(request, version))) != {0}:  # noqa: ASYNC110 -- it asks
            await asyncio.sleep(0.1)


async def test_each_principal_is_answered_as_by_kafka(tmp_path: Path) -> None:
    async with on_kafka(tmp_path / "kafka") as connect:
        theirs = await played(connect)
    differ = []
    for title, world in (("daemon", on_node), ("node", on_node_before_kafka)):
        async with world(tmp_path / title) as connect:
            ours = await played(connect)
        assert len(ours) > 1_000
        differ += [
            f"{name}\n {title} {ours[name]}\n Kafka {theirs[name]}"
            for name in ours
            if ours[name] != theirs[name] and name not in EXPLAINED
        ]
    assert not differ, "\n".join(differ)


async def test_our_command_works_on_kafka(tmp_path: Path) -> None:
    words = ("User:alice", "READ", "WRITE", "--topic", "orders-", "--prefixed")
    certificates = Certificates(tmp_path / "certificates")
    with guarded_broker(tmp_path / "broker", certificates) as broker:

        async def run(*arguments: str) -> str:
            done = await asyncio.to_thread(run_here, broker.bootstrap, "acls", *arguments)
            assert (done.code, done.err) == (0, "")
            return done.out

        async def until_listed(count: int) -> Any:
            """The broker hears of changes from its controller."""
            async with asyncio.timeout(60):
                while len(found := json.loads(await run("list", "--json"))) != count:
                    pass
            return found

        await run("add", *words)
        found = await until_listed(2)
        assert {(one["operation"], one["pattern_type"]) for one in found} == {
            ("READ", "PREFIXED"),
            ("WRITE", "PREFIXED"),
        }
        await run("remove", *words)
        await until_listed(0)
