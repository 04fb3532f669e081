"""Who may not is told as by Apache Kafka with its StandardAuthorizer: each API, whoever asks, all fields."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import Any

from ringleader.coordinator.node import Node
from ringleader.protocol import messages as kafka
from ringleader.protocol.schema import Message
from tests.interop.kafka import KafkaBroker
from tests.protocol.test_refusals import codes
from tests.support.asks_of_all import PRINCIPALS, asks
from tests.support.principals import ADMINISTRATOR, connected_as, guarded, prepare
from tests.support.served import Client, connected

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"

UNCOMPARED = {
    "throttle_time_ms",
    "node_id",
    "host",
    "port",
    "cluster_id",
    "controller_id",
    "brokers",
    "topic_id",
    "producer_id",
    "leader_id",
    "leader_epoch",
    "replica_nodes",
    "isr_nodes",
    "log_append_time_ms",
    "documentation",
    "synonyms",
    "configs",
}
"""Fields that say where something is, not whether one may."""

REFUSALS = {29, 30, 31, 53}
"""Their texts are compared, but for those in which Kafka prints the whole request."""
OWN = {"__ringleader_journal", "__transaction_state"}
"""Topics that only one of the two has."""

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

Connect = Callable[[str], contextlib.AbstractAsyncContextManager[Client]]


def plain(value: Any) -> Any:
    """A message as what is compared: lists without their order."""
    if dataclasses.is_dataclass(value):
        fields = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        if fields.get("error_code") not in REFUSALS or "needs" in (fields.get("error_message") or ""):
            fields.pop("error_message", None)
        return {name: plain(one) for name, one in fields.items() if name not in UNCOMPARED}
    if isinstance(value, list):
        return sorted((plain(one) for one in value if getattr(one, "name", "") not in OWN), key=repr)
    return int(value) if isinstance(value, int) else value


async def played(connect: Connect) -> dict[str, Any]:
    """What each principal is answered to everything."""
    found = {}
    for who in PRINCIPALS:
        async with connect(who) as client:
            for asked in asks():
                found[f"{who}: {asked.name}"] = plain(await client.call(asked.request, asked.version))
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


@contextlib.asynccontextmanager
async def on_node(directory: Path) -> AsyncIterator[Connect]:
    """One by itself, in this process."""
    async with Node(guarded(directory)) as node:
        async with connected(node.host, node.port) as administrator:
            await prepare(administrator)
        yield partial(connected_as, node)


@contextlib.asynccontextmanager
async def on_kafka(directory: Path) -> AsyncIterator[Connect]:
    """A broker whose super user comes through the listener that asks nobody."""
    users = " ".join(f'user_{who}="{who}"' for who in PRINCIPALS)
    broker = KafkaBroker(
        directory,
        listeners={"SASL": "SASL_PLAINTEXT"},
        properties={
            "authorizer.class.name": AUTHORIZER,
            "super.users": f"User:{ADMINISTRATOR}",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl.plain.sasl.jaas.config": f"{LOGIN} required {users};",
        },
    )
    with broker:
        host, port = broker.address("SASL").split(":")

        @contextlib.asynccontextmanager
        async def connect(who: str) -> AsyncIterator[Client]:
            if who == ADMINISTRATOR:
                async with connected(broker.host, broker.port) as client:
                    yield client
                return
            async with connected(host, int(port)) as client:
                hello = await client.call(kafka.SaslHandshakeRequest(mechanism="PLAIN"), 1)
                assert hello.error_code == 0
                login = kafka.SaslAuthenticateRequest(auth_bytes=f"\0{who}\0{who}".encode())
                assert (await client.call(login, 1)).error_code == 0
                yield client

        async with connected(broker.host, broker.port) as administrator:
            await prepare(administrator)
            await warmed_up(administrator)
        yield connect


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
    async with on_node(tmp_path / "node") as connect:
        ours = await played(connect)
    async with on_kafka(tmp_path / "kafka") as connect:
        theirs = await played(connect)
    differ = [name for name in ours if ours[name] != theirs[name]]
    assert not differ, "\n".join(f"{name}\n ours  {ours[name]}\n Kafka {theirs[name]}" for name in differ)
