"""Records per second that a consumer group's only member reads: GroupConsumer beside aiokafka's consumer.

Both read the same topic of the same daemon, in turn, each in a process of its own on the load's CPU, and do
nothing with the records but count them.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from typing import Any

from bench.plan import TOPIC, Plan
from bench.processes import Pins, daemon, pinned, work_dir
from bench.report import Goal, median, print_goals, save, say, table
from ringleader.protocol.messages import (
    ProduceRequest,
    ProduceRequestPartitionProduceData,
    ProduceRequestTopicProduceData,
)
from ringleader.protocol.records import Compression, Record, build_batch
from tests.support.rawclient import Address, RawConnection, address_of

OURS, AIOKAFKA = "GroupConsumer", "aiokafka"
VALUE_BYTES = 1_000
PARTITIONS = 4
BATCH_RECORDS = 100
PRODUCE_VERSION = 7
GOAL = 1.0
"""How many times aiokafka's rate is wanted."""


async def read_ours(bootstrap: str, count: int) -> float:
    """Seconds from the first batch to the last record."""
    from ringleader.clients.consumer import GroupConsumer

    consumer = GroupConsumer(
        bootstrap, f"ours-{os.getpid()}", [TOPIC], auto_offset_reset="earliest", max_poll_records=500
    )
    async with consumer:
        total, start_s = 0, 0.0
        async for batch in consumer:
            start_s = start_s or time.perf_counter()
            total += len(batch)
            if total >= count:
                return time.perf_counter() - start_s
    raise RuntimeError("the consumer ended")


async def read_aiokafka(bootstrap: str, count: int) -> float:
    """The same with aiokafka."""
    import aiokafka

    consumer = aiokafka.AIOKafkaConsumer(
        TOPIC,
        bootstrap_servers=bootstrap,
        group_id=f"aiokafka-{os.getpid()}",
        auto_offset_reset="earliest",
        max_poll_records=500,
    )
    await consumer.start()
    try:
        total, start_s = 0, 0.0
        while total < count:
            found = await consumer.getmany(timeout_ms=1_000)
            if found:
                start_s = start_s or time.perf_counter()
                total += sum(map(len, found.values()))
        return time.perf_counter() - start_s
    finally:
        await consumer.stop()


READERS = {OURS: read_ours, AIOKAFKA: read_aiokafka}


def fill(address: Address, count: int, compression: Compression) -> None:
    """So many records, dealt out to the partitions."""
    records = [Record(i, 1_000, b"%d" % i, os.urandom(VALUE_BYTES // 2) * 2) for i in range(BATCH_RECORDS)]
    batch = build_batch(records, compression=compression)
    with RawConnection(address) as connection:
        for number in range(count // BATCH_RECORDS):
            part = ProduceRequestPartitionProduceData(index=number % PARTITIONS, records=batch)
            topic = ProduceRequestTopicProduceData(name=TOPIC, partition_data=[part])
            request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic])
            [answer] = connection.call(request, PRODUCE_VERSION).responses
            if answer.partition_responses[0].error_code:
                raise RuntimeError(f"Produce: error {answer.partition_responses[0].error_code}")


def measure(name: str, bootstrap: str, count: int, cpu: int) -> dict[str, Any]:
    """One round of one reader, in a process of its own."""
    command = [sys.executable, "-m", "bench.consume", name, bootstrap, str(count)]
    done = subprocess.run(pinned(cpu, command), stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    result["per_s"] = count / result["seconds"]
    result["per_cpu_s"] = count / result["cpu_s"]
    return result


def run(plan: Plan) -> dict[str, Any]:
    """Runs it, prints the table, writes consume.json, returns its content."""
    pins = Pins.choose()
    count = plan.consumed_records // BATCH_RECORDS * BATCH_RECORDS
    say(f"consume: {count:,} records of {VALUE_BYTES} bytes batches of {BATCH_RECORDS}")
    results: dict[str, Any] = {}
    goals: list[Goal] = []
    for codec in (Compression.NONE, Compression.LZ4):
        rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in READERS}
        with (
            work_dir(plan.data_dir) as directory,
            daemon(directory, pins.server, topics=[f"{TOPIC}:{PARTITIONS}"]) as server,
        ):
            fill(address_of(server.bootstrap), count, codec)
            for number in range(plan.rounds):
                for name in READERS:
                    measured = measure(name, server.bootstrap, count, pins.load)
                    rounds[name].append(measured)
                    say(f"  {codec.name.lower()}, round {number + 1}, {name}: {measured['per_s']:,.0f}/s")
        medians = {
            name: {key: median(one[key] for one in of) for key in ("per_s", "per_cpu_s")}
            for name, of in rounds.items()
        }
        ratio = medians[OURS]["per_s"] / medians[AIOKAFKA]["per_s"]
        goals.append(Goal(f"records per second, {codec.name.lower()}", AIOKAFKA, ratio, GOAL))
        results[codec.name.lower()] = {"medians": medians, "rounds": rounds}
    rows = [
        [f"{name}, {codec}", *(float(values[key]) for key in ("per_s", "per_cpu_s"))]
        for codec, result in results.items()
        for name, values in result["medians"].items()
    ]
    table("Consuming (medians)", ["client", "records/s", "per CPU second"], rows)
    print_goals(goals)
    whole = {"records": count, "value_bytes": VALUE_BYTES, "results": results}
    save(plan.out_dir, "consume", whole, goals)
    return whole


def main() -> None:
    """One reader: ``python -m bench.consume NAME BOOTSTRAP COUNT``; prints what it took as JSON."""
    name, bootstrap, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    cpu_s = time.process_time()
    seconds = asyncio.run(READERS[name](bootstrap, count))
    print(json.dumps({"seconds": seconds, "cpu_s": time.process_time() - cpu_s}))


if __name__ == "__main__":
    main()
