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
