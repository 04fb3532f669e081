"""Groups that lived on Apache Kafka's own coordinator go over to Ringleader, and back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator

import confluent_kafka
import pytest

from ringleader.clients.admin import Admin
from ringleader.clients.model import OffsetAndMetadata
from ringleader.testing.coordinator import Coordinator
from tests.interop.kafka_cluster import KafkaCluster
from tests.support.command import Done, run_command, run_here
from tests.support.consuming import PATIENCE_S, consumer

TOPIC = "moving"
RECORDS = 300


@pytest.fixture
def daemon() -> Iterator[Coordinator]:
    with Coordinator(topics={TOPIC: 3}) as started:
        yield started


def take(source: str, target: str, *arguments: str) -> Done:
    servers = ("--from-bootstrap-server", source, "--to-bootstrap-server", target)
    return run_here(None, "groups", "import", *servers, *arguments)


def on_kafka(bootstrap: str, count: int) -> list[str]:
    """The next `count` records that a consumer of librdkafka in the group reads; it commits them."""
    options = {"bootstrap.servers": bootstrap, "group.id": "billing", "auto.offset.reset": "earliest"}
    one = confluent_kafka.Consumer(options | {"enable.auto.commit": False})
    one.subscribe([TOPIC])
    found: list[str] = []
    while len(found) < count:
        for message in one.consume(count - len(found), timeout=PATIENCE_S):
            assert message.error() is None
            found.append((message.value() or b"").decode())
    one.commit(asynchronous=False)
    one.close()
    return found


async def on_ringleader(records: str, coordinators: str, count: int) -> list[str]:
    """The same with a consumer whose group is on Ringleader, and whose records come from Kafka."""
    found: list[str] = []
    async with consumer(records, group="billing", topics=[TOPIC], coordinator_bootstrap=coordinators) as one:
        async with asyncio.timeout(PATIENCE_S):
            while len(found) < count:
                for batch in await one.getmany(count - len(found)):
                    found += [(record.value or b"").decode() for record in batch]
        await one.commit()
    return found


def test_a_group_moves_to_ringleader_and_back_and_reads_every_record_once(
    one_broker: KafkaCluster, daemon: Coordinator
) -> None:
    kafka = one_broker.bootstrap
    assert run_command(kafka, "topics", "create", TOPIC, "--partitions", "3").code == 0
    lines = "\n".join(json.dumps({"key": str(n), "value": str(n)}) for n in range(RECORDS))
    assert run_command(kafka, "produce", TOPIC, "--format", "json", stdin=lines).code == 0

    read = on_kafka(kafka, 100)
    moved = take(kafka, daemon.bootstrap, "--group", "billing")
    assert (moved.code, moved.err) == (0, "")
    read += asyncio.run(on_ringleader(kafka, daemon.bootstrap, 100))
    assert not {"Fetch", "ListOffsets"} & {one.api for one in daemon.faults.seen()}

    back = take(daemon.bootstrap, kafka, "--group", "billing", "--overwrite")
    assert (back.code, back.err) == (0, "")
    read += on_kafka(kafka, 100)
    assert sorted(map(int, read)) == list(range(RECORDS))


def test_metadata_leader_epochs_and_members_on_kafka(one_broker: KafkaCluster, daemon: Coordinator) -> None:
    kafka = one_broker.bootstrap
    assert run_command(kafka, "topics", "create", "other", "--partitions", "1").code == 0
    daemon.create_topic("other", 1)
    position = {("other", 0): OffsetAndMetadata(0, "all of it", 0)}

    async def commit() -> None:
        async with Admin(daemon.bootstrap) as admin:
            await admin.set_group_offsets("audit", position)

    async def committed() -> dict[tuple[str, int], OffsetAndMetadata]:
        async with Admin(kafka) as admin:
            return await admin.group_offsets("audit")

    asyncio.run(commit())
    member = confluent_kafka.Consumer({"bootstrap.servers": kafka, "group.id": "audit", "client.id": "ann"})
    member.subscribe(["other"])
    while not member.assignment():
        member.poll(0.1)
    refused = take(daemon.bootstrap, kafka, "--group", "audit")
    assert refused.code == 1
    assert "There are members at the target in audit (1 member (ann on 127.0.0.1))" in refused.err
    assert asyncio.run(committed()) == {}
    member.close()
    assert take(daemon.bootstrap, kafka, "--group", "audit").code == 0
    assert asyncio.run(committed()) == position
