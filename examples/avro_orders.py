"""Orders in Avro, with the schema in a Confluent Schema Registry.

    pip install '.[schemas]'
    python avro_orders.py 127.0.0.1:9092 http://127.0.0.1:8081

The serializer registers the schema when it writes the first order; the deserializer asks for it once. While
the registry is away the consumer stays where it is, and goes on when the registry is back.
"""

import asyncio
import contextlib
import json
import sys

from confluent_kafka.schema_registry.avro import AsyncAvroDeserializer, AsyncAvroSerializer

from ringleader import GroupConsumer, Producer, RetriableError
from ringleader.clients.schemas import registered

FIELDS = [{"name": "item", "type": "string"}, {"name": "count", "type": "int"}]
SCHEMA = json.dumps({"type": "record", "name": "Order", "fields": FIELDS})


async def write(bootstrap, registry):
    serializer = registered(registry, lambda client: AsyncAvroSerializer(client, SCHEMA))
    async with Producer(bootstrap, value_serializer=serializer) as producer:
        for item, count in [("book", 10), ("lamp", 1)]:
            await producer.send_and_wait("avro-orders", {"item": item, "count": count})


async def main(bootstrap, url):
    registry = {"url": url}
    await write(bootstrap, registry)
    async with GroupConsumer(
        bootstrap,
        "avro",
        ["avro-orders"],
        auto_offset_reset="earliest",
        value_deserializer=registered(registry, AsyncAvroDeserializer),
    ) as consumer:
        while True:
            try:
                async for batch in consumer:
                    for order in batch.values:
                        print(order["count"], order["item"])
            except RetriableError as error:
                print("again:", error)
                await asyncio.sleep(1)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(*sys.argv[1:]))
