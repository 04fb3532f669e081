"""Requests that nodes which ask the ACLs forward to Apache Kafka: a real client does all that it may, exactly
once, and nothing else."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition

from ringleader.clients.admin import Admin
from ringleader.coordinator.security.acls import Operation, ResourceType
from tests.interop.cluster.test_nodes_security import (
    OTHER,
    PASSWORD,
    Nodes,
    allow,
    as_user,
    secured,
    set_password,
)
from tests.interop.kafka_cluster import KafkaCluster

WAIT_S = 60.0
GROUP = "team"
READ, WRITE, DESCRIBE, CREATE = Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.CREATE
TOPIC, ID = ResourceType.TOPIC, ResourceType.TRANSACTIONAL_ID


def login(nodes: Nodes, **more: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": nodes.bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": OTHER,
        "sasl.password": PASSWORD,
        **more,
    }


def copied(nodes: Nodes, count: int) -> list[bytes]:
    """The records that a reader of committed records sees in `out`, when `in` was copied there in
    transactions of ten."""
    reader = Consumer(
        login(nodes, **{"group.id": GROUP, "auto.offset.reset": "earliest", "enable.auto.commit": False})
    )
    reader.subscribe(["in"])
    writer = Producer(login(nodes, **{"transactional.id": "copier"}))
    writer.init_transactions(WAIT_S)
    for start in range(0, count, 10):
        records = reader.consume(10, WAIT_S)
        writer.begin_transaction()
        for record in records:
            writer.produce("out", record.value())
        writer.send_offsets_to_transaction(
            reader.position(reader.assignment()), reader.consumer_group_metadata(), WAIT_S
        )
        if start == 10:
            writer.abort_transaction(WAIT_S)
        else:
            writer.commit_transaction(WAIT_S)
    reader.close()
    reader = Consumer(login(nodes, **{"group.id": GROUP, "isolation.level": "read_committed"}))
    reader.assign([TopicPartition("out", 0, 0)])
    found = [record.value() or b"" for record in reader.consume(count - 10, WAIT_S)]
    reader.close()
    return found


def refusals(nodes: Nodes) -> dict[str, int]:
    """The errors of the requests that the client has no right to."""
    found = {}
    failed: list[Any] = []
    producer = Producer(login(nodes))
    producer.produce("secret", b"x", on_delivery=lambda error, _: failed.append(error))
    producer.flush(WAIT_S)
    found["produce"] = failed[0].code()
    found["topics"] = len(producer.list_topics(timeout=WAIT_S).topics)
    named = producer.list_topics("secret", WAIT_S).topics["secret"]
    found["metadata"] = named.error.code()
    another = Producer(login(nodes, **{"transactional.id": "another"}))
    with pytest.raises(KafkaException) as refused:
        another.init_transactions(WAIT_S)
    found["transaction"] = refused.value.args[0].code()
    return found


@pytest.mark.timeout(300)
async def test_a_client_copies_exactly_once_and_sees_nothing_else(
    tmp_path: Path, one_broker: KafkaCluster
) -> None:
    async with secured(tmp_path, one_broker, "acls") as nodes:
        await set_password(nodes.bootstrap, OTHER)
        async with as_user(nodes.bootstrap) as admin:
            for topic in ("in", "out", "secret"):
                await admin.create_topic(topic, 1)
        await allow(
            nodes.bootstrap,
            (READ, TOPIC, "in"),
            (WRITE, TOPIC, "out"),
            (READ, TOPIC, "out"),
            (READ, ResourceType.GROUP, GROUP),
            (WRITE, ID, "copier"),
        )
        async with Admin(one_broker.bootstrap) as there:  # the brokers know all of it, and ask nobody
            assert {"in", "out", "secret"} <= {topic.name for topic in await there.list_topics()}
        values = [b"%03d" % number for number in range(50)]

        def fill() -> None:
            producer = Producer({"bootstrap.servers": one_broker.bootstrap})
            for value in values:
                producer.produce("in", value)
            assert producer.flush(WAIT_S) == 0

        await asyncio.to_thread(fill)
        found = await asyncio.to_thread(copied, nodes, len(values))
        assert found == values[:10] + values[20:]
        assert await asyncio.to_thread(refusals, nodes) == {
            "produce": KafkaError.TOPIC_AUTHORIZATION_FAILED,
            "topics": 2,
            "metadata": KafkaError.TOPIC_AUTHORIZATION_FAILED,
            "transaction": KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        }
        for node in nodes.by_id.values():
            assert "not forwarded" not in node.log()
