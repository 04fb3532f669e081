"""A client beyond a quota is answered and held up as by Apache Kafka; the throttle times are the same
ones."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from ringleader.coordinator.config import Settings
from ringleader.coordinator.node import Node
from ringleader.protocol import messages as kafka
from tests.interop.kafka import KafkaBroker
from tests.support.quota_scripts import altering
from tests.support.served import Client, connected
from tests.support.topiclog import batch

TOPIC = "orders"
QUOTAS: dict[str, dict[str, float | None]] = {
    "produces": {"producer_byte_rate": 500.0},
    "fetches": {"consumer_byte_rate": 1_500.0},
    "asks": {"request_percentage": 1e-6},
    "creates": {"controller_mutation_rate": 0.001},
}
"""By client id; `probe-...` has the same."""
SILENCE_S = 0.4
"""So long nothing has to come for who is muted, whose throttle is far longer."""

BATCH = batch(100, size=100)
PRODUCE = kafka.ProduceRequest(
    acks=-1,
    timeout_ms=10_000,
    topic_data=[
        kafka.ProduceRequestTopicProduceData(
            TOPIC, partition_data=[kafka.ProduceRequestPartitionProduceData(0, BATCH)]
        )
    ],
)
FETCH = kafka.FetchRequest(
    max_wait_ms=0,
    max_bytes=1_000_000,
    session_epoch=-1,
    topics=[kafka.FetchRequestFetchTopic(topic=TOPIC, partitions=[kafka.FetchRequestFetchPartition(0)])],
)
FETCH.topics[0].partitions[0].partition_max_bytes = len(BATCH)


def create(name: str, partitions: int = 5) -> kafka.CreateTopicsRequest:
    topic = kafka.CreateTopicsRequestCreatableTopic(name, partitions, 1)
    return kafka.CreateTopicsRequest(topics=[topic], timeout_ms=10_000)


@contextlib.asynccontextmanager
async def two(host: str, port: int) -> AsyncIterator[tuple[Client, Client]]:
    async with connected(host, port) as client, connected(host, port) as other:
        yield client, other


async def muted(client: Client, other: Client, client_id: str) -> str:
    """The handling of the next request on a connection that was just throttled."""
    client.send(kafka.ApiVersionsRequest("test", "1"), 3, client_id)
    answering = asyncio.ensure_future(client.frame())
    await asyncio.wait([answering], timeout=SILENCE_S)
    assert (await other.call(kafka.MetadataRequest(topics=[]), 9, "another")).throttle_time_ms == 0
    state = "answered" if answering.done() else "muted"
    answering.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await answering
    return state


async def _until_throttled(host: str, port: int, request: Any, version: int, client_id: str) -> None:
    """A broker learns of quotas from its controller, some time after they are set."""
    async with asyncio.timeout(60):
        while True:
            async with connected(host, port) as probe:
                if (await probe.call(request, version, client_id)).throttle_time_ms:
                    return


async def played(host: str, port: int) -> dict[str, Any]:
    """The answers that each of the clients gets."""
    found: dict[str, Any] = {}
    async with connected(host, port) as admin:
        made = await admin.call(create(TOPIC, 1), 7, "admin")
        assert made.topics[0].error_code == 0
        async with asyncio.timeout(60):
            while (await admin.call(PRODUCE, 9, "admin")).responses[0].partition_responses[0].error_code:
                pass
        entries = [
            ({"client-id": f"{prefix}{name}"}, values)
            for name, values in QUOTAS.items()
            for prefix in ("", "probe-")
        ]
        await admin.call(altering(*entries), 1, "admin")  # type: ignore[arg-type]
    await _until_throttled(host, port, PRODUCE, 9, "probe-produces")
    await _until_throttled(host, port, kafka.MetadataRequest(topics=[]), 9, "probe-asks")
    async with two(host, port) as (client, other):
        answer = await client.call(PRODUCE, 9, "produces")
        code = answer.responses[0].partition_responses[0].error_code
        found["Produce"] = (code, answer.throttle_time_ms, await muted(client, other, "produces"))
    async with two(host, port) as (client, other):
        client.send(_without_answer(), 9, "produces")
        found["Produce without acks"] = await muted(client, other, "produces")
    async with two(host, port) as (client, other):
        first = await client.call(FETCH, 12, "fetches")
        found["Fetch"] = (len(first.responses[0].partitions[0].records), first.throttle_time_ms)
        second = await client.call(FETCH, 12, "fetches")
        found["Fetch again"] = (second.error_code, second.session_id, len(second.responses))
        found["Fetch is throttled"] = second.throttle_time_ms > 0
        found["then"] = await muted(client, other, "fetches") if second.throttle_time_ms > 1_000 else "muted"
    for request, version in (
        (kafka.MetadataRequest(topics=[]), 9),
        (kafka.FindCoordinatorRequest(coordinator_keys=["g"]), 4),
        (kafka.HeartbeatRequest(group_id="g", generation_id=1, member_id="m"), 4),
        (kafka.DescribeClientQuotasRequest(), 1),
        (kafka.ApiVersionsRequest("test", "1"), 3),
    ):
        async with two(host, port) as (client, other):
            answer = await client.call(request, version, "asks")
            found[type(request).__name__] = (answer.throttle_time_ms, await muted(client, other, "asks"))
    async with two(host, port) as (client, other):
        first = await client.call(create("new-1"), 7, "creates")
        found["create"] = (first.topics[0].error_code, first.throttle_time_ms)
        second = await client.call(create("new-2"), 7, "creates")
        [one] = second.topics
        found["create again"] = (one.error_code, one.error_message, second.throttle_time_ms > 1_000_000)
        found["create again, then"] = await muted(client, other, "creates")
    async with two(host, port) as (client, other):
        older = await client.call(create("new-3"), 5, "creates")
        found["create, older"] = (older.topics[0].error_code, older.throttle_time_ms > 1_000_000)
        found["create, older, then"] = await muted(client, other, "creates")
    async with two(host, port) as (client, other):
        deletion = kafka.DeleteTopicsRequest(topics=[kafka.DeleteTopicsRequestDeleteTopicState("new-1")])
        deletion.timeout_ms = 10_000
        refused = await client.call(deletion, 6, "creates")
        [one] = refused.responses
        found["delete"] = (one.name, one.error_code, one.error_message, refused.throttle_time_ms > 1_000_000)
    async with two(host, port) as (client, other):
        grown = kafka.CreatePartitionsRequestCreatePartitionsTopic("new-1", 9, None)
        refused = await client.call(kafka.CreatePartitionsRequest([grown], 10_000), 3, "creates")
        [one] = refused.results
        found["grow"] = (one.error_code, one.error_message, refused.throttle_time_ms > 1_000_000)
    async with two(host, port) as (client, other):
        same = await client.call(create("new-1"), 7, "creates")
        found["exists"] = (same.topics[0].error_code, same.throttle_time_ms)
    return found


def _without_answer() -> kafka.ProduceRequest:
    return kafka.ProduceRequest(acks=0, timeout_ms=10_000, topic_data=PRODUCE.topic_data)


async def test_throttling_is_kafkas(tmp_path: Path) -> None:
    with KafkaBroker(tmp_path / "kafka") as broker:
        theirs = await played(broker.host, broker.port)
    async with Node(Settings(listen="127.0.0.1:0", data_dir=tmp_path / "node")) as node:
        ours = await played(node.host, node.port)
    differ = [name for name in ours if ours[name] != theirs[name]]
    assert not differ, "\n".join(f"{name}\n ours  {ours[name]}\n Kafka {theirs[name]}" for name in differ)
