"""Records with schemas of a registry: confluent-kafka's serializers write and we read, and the reverse."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, NamedTuple

import pytest
from confluent_kafka.schema_registry import (
    AsyncSchemaRegistryClient,
    SchemaRegistryClient,
    SchemaRegistryError,
)
from confluent_kafka.schema_registry.avro import (
    AsyncAvroDeserializer,
    AsyncAvroSerializer,
    AvroDeserializer,
    AvroSerializer,
)
from confluent_kafka.schema_registry.json_schema import (
    AsyncJSONDeserializer,
    AsyncJSONSerializer,
    JSONDeserializer,
    JSONSerializer,
)
from confluent_kafka.schema_registry.protobuf import (
    AsyncProtobufDeserializer,
    AsyncProtobufSerializer,
    ProtobufDeserializer,
    ProtobufSerializer,
)
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from ringleader import (
    DeserializerUnavailableError,
    Producer,
    RecordDeserializationError,
    SendTimeoutError,
    SerializationError,
)
from ringleader.clients.schemas import registered
from ringleader.testing.coordinator import Coordinator
from tests.clients.test_bad_records import KINDS, Reads
from tests.clients.test_with_context import SOON, Sends, read_all
from tests.support.consuming import PATIENCE_S
from tests.support.schema_registry import Fault, SchemaRegistry

AVRO = json.dumps({"type": "record", "name": "Order", "fields": [{"name": "books", "type": "long"}]})
JSON = json.dumps(
    {"title": "Order", "type": "object", "properties": {"books": {"type": "integer"}}, "required": ["books"]}
)
Build = Callable[[AsyncSchemaRegistryClient], Awaitable[Any]]


def order_type() -> Any:
    """A message of Protocol Buffers, without their compiler."""
    field = descriptor_pb2.FieldDescriptorProto(
        name="books",
        number=1,
        type=descriptor_pb2.FieldDescriptorProto.TYPE_INT64,
        label=descriptor_pb2.FieldDescriptorProto.LABEL_OPTIONAL,
    )
    message = descriptor_pb2.DescriptorProto(name="Order", field=[field])
    file = descriptor_pb2.FileDescriptorProto(name="order.proto", syntax="proto3", message_type=[message])
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("Order"))


Order = order_type()


class Kind(NamedTuple):
    """A format: what is written, how we do, and how they do."""

    given: Any
    write: Build
    read: Build
    their_write: Callable[[SchemaRegistryClient], Any]
    their_read: Callable[[SchemaRegistryClient], Any]


FORMATS = {
    "avro": Kind(
        {"books": 10},
        lambda registry: AsyncAvroSerializer(registry, AVRO),
        AsyncAvroDeserializer,
        lambda registry: AvroSerializer(registry, AVRO),
        AvroDeserializer,
    ),
    "json": Kind(
        {"books": 10},
        lambda registry: AsyncJSONSerializer(JSON, registry),
        lambda registry: AsyncJSONDeserializer(None, schema_registry_client=registry),
        lambda registry: JSONSerializer(JSON, registry),
        lambda registry: JSONDeserializer(None, schema_registry_client=registry),
    ),
    "protobuf": Kind(
        Order(books=10),
        lambda registry: AsyncProtobufSerializer(Order, registry, {"use.deprecated.format": False}),
        lambda registry: AsyncProtobufDeserializer(
            Order, {"use.deprecated.format": False}, schema_registry_client=registry
        ),
        lambda registry: ProtobufSerializer(Order, registry, {"use.deprecated.format": False}),
        lambda registry: ProtobufDeserializer(
            Order, {"use.deprecated.format": False}, schema_registry_client=registry
        ),
    ),
}


@pytest.fixture
def registry() -> Iterator[SchemaRegistry]:
    with SchemaRegistry() as registry:
        yield registry


def theirs(registry: SchemaRegistry, form: Kind, given: Any) -> bytes:
    """As confluent-kafka's blocking serializer writes it."""
    with SchemaRegistryClient({"url": registry.url}) as client:
        context = SerializationContext("t", MessageField.VALUE)
        data: bytes = form.their_write(client)(given, context)
        return data


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kind", KINDS)
async def test_their_records_are_read(
    coordinator: Coordinator, registry: SchemaRegistry, kind: str, form: str
) -> None:
    data = theirs(registry, FORMATS[form], FORMATS[form].given)
    assert data[:5] == b"\0\0\0\0\1"
    for partition in range(4):
        coordinator.produce("t", data, data, data, partition=partition)
    registry.requests.clear()
    read = registered({"url": registry.url}, FORMATS[form].read)
    reads = Reads(kind, coordinator, value_deserializer=read)
    await reads.call("start")
    try:
        found: list[Any] = []
        while len(found) < (12 if reads.in_group else 3):
            batches = await reads.call("getmany", timeout_s=PATIENCE_S)
            found += [value for batch in batches for value in batch.values]
        assert all(value == FORMATS[form].given for value in found)
    finally:
        await reads.call("stop")
    assert 1 <= registry.requests["GET /schemas/ids/1"] <= 4  # once, but partitions ask side by side


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("kind", ["Producer", "SyncProducer"])
async def test_our_records_are_read_by_theirs(
    coordinator: Coordinator, registry: SchemaRegistry, kind: str, form: str
) -> None:
    one = registered({"url": registry.url}, FORMATS[form].write)
    sends = Sends(kind, coordinator, value_serializer=one)
    await sends.call("start")
    for _ in range(5):
        await sends.call("send_and_wait", "t", FORMATS[form].given, partition=0)
    await sends.call("stop")
    assert registry.requests["POST /subjects/t-value/versions"] == 1
    with SchemaRegistryClient({"url": registry.url}) as client:
        read = FORMATS[form].their_read(client)
        for _, value, _ in await read_all(coordinator, 5):
            assert read(value, SerializationContext("t", MessageField.VALUE)) == FORMATS[form].given


async def test_keys_have_a_subject_of_their_own(coordinator: Coordinator, registry: SchemaRegistry) -> None:
    one = registered({"url": registry.url}, FORMATS["avro"].write)
    async with Producer(coordinator.bootstrap, key_serializer=one) as producer:
        await producer.send_and_wait("t", b"v", key={"books": 1}, partition=0)
    assert registry.subjects == {"t-key": [1]}


@pytest.mark.parametrize("fault", ["away", "refuses", "breaks", "is slow", "proxy"])
@pytest.mark.parametrize("kind", ["GroupConsumer", "SyncGroupConsumer"])
async def test_a_registry_that_cannot_answer_is_asked_again(
    coordinator: Coordinator, registry: SchemaRegistry, kind: str, fault: Any
) -> None:
    coordinator.produce("t", theirs(registry, FORMATS["avro"], {"books": 10}), partition=0)
    away = {"url": registry.url}
    if fault == "away":
        registry.close()
    else:
        registry.fault = fault
    limit_s = 0.2 if fault == "is slow" else 10.0
    one = registered(away, AsyncAvroDeserializer, timeout_s=limit_s)
    reads = Reads(kind, coordinator, value_deserializer=one)
    await reads.call("start")
    try:
        for _ in range(2):
            with pytest.raises(DeserializerUnavailableError):
                await reads.ask()
        if fault not in ("away", "is slow"):
            registry.fault = ""
            assert await reads.ask() == [0]
    finally:
        await reads.call("stop")


@pytest.mark.parametrize("data", [b"\0\0\0\0\x63later", b"\1\0\0\0\1", b"", b"\0\0\0\0\1"], ids=repr)
async def test_a_record_without_a_schema_is_refused(
    coordinator: Coordinator, registry: SchemaRegistry, data: bytes
) -> None:
    """Of a schema that the registry does not have, without its bytes, or cut off."""
    theirs(registry, FORMATS["avro"], {"books": 10})
    coordinator.produce("t", data, partition=0)
    one = registered({"url": registry.url}, AsyncAvroDeserializer)
    reads = Reads("GroupConsumer", coordinator, value_deserializer=one)
    await reads.call("start")
    try:
        with pytest.raises(RecordDeserializationError) as raised:
            await reads.ask()
        if data[4:5] == b"\x63":
            assert isinstance(raised.value.__cause__, SchemaRegistryError)
    finally:
        await reads.call("stop")


@pytest.mark.parametrize("fault", ["refuses", "breaks", "is slow", "proxy"])
async def test_a_producer_waits_for_a_registry_as_long_as_it_may(
    coordinator: Coordinator, registry: SchemaRegistry, fault: Fault
) -> None:
    registry.fault = fault
    one = registered({"url": registry.url}, FORMATS["avro"].write, timeout_s=0.1)
    async with Producer(coordinator.bootstrap, value_serializer=one, max_block_ms=300, **SOON) as producer:
        with pytest.raises(SendTimeoutError, match="max_block_ms"):
            await producer.send("t", {"books": 10})
    assert registry.schemas == []


async def test_a_record_that_does_not_fit_its_schema_is_refused(
    coordinator: Coordinator, registry: SchemaRegistry
) -> None:
    one = registered({"url": registry.url}, FORMATS["avro"].write)
    async with Producer(coordinator.bootstrap, value_serializer=one) as producer:
        with pytest.raises(SerializationError):
            await producer.send("t", {"books": "ten"})
        await producer.send_and_wait("t", {"books": 10})


@pytest.mark.parametrize("kind", ["GroupConsumer", "SyncGroupConsumer", "Producer", "SyncProducer"])
async def test_connections_end_with_the_client(
    coordinator: Coordinator, registry: SchemaRegistry, kind: str
) -> None:
    made: list[AsyncSchemaRegistryClient] = []

    async def build(client: AsyncSchemaRegistryClient) -> Any:
        made.append(client)
        return await (FORMATS["avro"].write if kind.endswith("Producer") else AsyncAvroDeserializer)(client)

    one = registered({"url": registry.url}, build)
    if kind.endswith("Producer"):
        sends = Sends(kind, coordinator, value_serializer=one)
        await sends.call("start")
        await sends.call("send_and_wait", "t", {"books": 10})
        await sends.call("stop")
    else:
        coordinator.produce("t", theirs(registry, FORMATS["avro"], {"books": 10}), partition=0)
        reads = Reads(kind, coordinator, value_deserializer=one)
        await reads.call("start")
        assert await reads.ask() == [0]
        await reads.call("stop")
    [client] = made
    assert client._rest_client.session.is_closed


async def test_a_client_that_begins_again_opens_the_registry_again(
    coordinator: Coordinator, registry: SchemaRegistry
) -> None:
    one = registered({"url": registry.url}, FORMATS["avro"].write)
    for topic in ("t", "u"):
        async with Producer(coordinator.bootstrap, value_serializer=one) as producer:
            await producer.send_and_wait(topic, {"books": 10}, partition=0)
    assert registry.subjects == {"t-value": [1], "u-value": [1]}
