"""The cost of reading: GroupConsumer compared with aiokafka's consumer and confluent-kafka's `consume`.

Each reads the same topics of the same broker, in turn, in a process of its own on the load's CPU, with its
default settings, and looks at every record's value. The brokers are Ringleader and, where it can run, Apache
Kafka. Ours is measured in the two ways to look, by records and by the column of values, and with none; where
compiled code finds the records, also without it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.brokers import brokers
from bench.plan import KAFKA, RINGLEADER, Plan
from bench.processes import Pins, daemon, pinned, work_dir
from bench.report import Goal, median, print_goals, save, say, table
from ringleader.protocol import native
from ringleader.protocol.errors import ErrorCode, error_name
from ringleader.protocol.messages import (
    CreateTopicsRequest,
    CreateTopicsRequestCreatableTopic,
    ProduceRequest,
    ProduceRequestPartitionProduceData,
    ProduceRequestTopicProduceData,
)
from ringleader.protocol.records import Compression, Record, build_batch
from tests.support.rawclient import Address, RawConnection, address_of

RECORDS, VALUES, COUNTING = "GroupConsumer, records", "GroupConsumer, values", "GroupConsumer, counting only"
AIOKAFKA, CONFLUENT = "aiokafka", "confluent-kafka"
IN_PYTHON = ", in Python"
"""Behind a name: without the compiled code."""
SIZES = (1_000, 100)
CODECS = (Compression.NONE, Compression.LZ4, Compression.ZSTD)
MIXED = (*CODECS, Compression.SNAPPY, Compression.GZIP)
"""Of a topic whose producers have each its own codec: one batch after the other."""
PARTITIONS = 4
BATCH_RECORDS = 100
PATTERNS = 20
"""Different batches that a topic is filled with, over and over."""
AHEAD_BYTES, AHEAD_RECORDS = 64 * 2**20, PARTITIONS * 100_000
"""The most that any of the clients fetches ahead, by default."""
MANY_PARTITIONS = 100
LARGE_BATCH_RECORDS = 5_000
BUFFER_MAX_BYTES = 4 * 2**20
"""Of the readers whose memory is measured."""
PRODUCE_VERSION = 7
CREATE_TRIES = 100
AIOKAFKA_GOAL = 2.0
CONFLUENT_GOALS = {RECORDS: 1.2, VALUES: 1.5}
"""How many times the rivals' records per CPU second are wanted."""


class Progress:
    """The progress of a reader. The measurement begins when it has read a tenth: everything is loaded by
    then, and as much is fetched ahead as at the end."""

    def __init__(self, wanted: int) -> None:
        self._wanted = wanted
        self._count = 0
        self._began = 0
        self._start_s = self._start_cpu_s = 0.0
        self._memory_before = 0
        self.result: dict[str, float] = {}

    def ready(self) -> None:
        """It is connected."""
        self._memory_before = most_bytes()
        self._begin()

    def _begin(self) -> None:
        self._began = self._count
        self._start_s, self._start_cpu_s = time.perf_counter(), time.process_time()

    def add(self, count: int) -> bool:
        """Count records that were read and looked at; returns whether they are enough."""
        self._count += count
        if self._count >= self._wanted:
            counted = self._count - self._began
            self.result = {
                "per_s": counted / (time.perf_counter() - self._start_s),
                "per_cpu_s": counted / (time.process_time() - self._start_cpu_s),
                "memory_bytes": most_bytes() - self._memory_before,
            }
            return True
        if not self._began and self._count >= self._wanted // 10:
            self._begin()
        return False


def most_bytes() -> int:
    """The largest resident size of this process so far (that of `getrusage` may be the parent's)."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


async def read_ours(bootstrap: str, topic: str, progress: Progress, look: Callable[[Any], int]) -> None:
    """GroupConsumer; `look` tells how many bytes of values there are in a batch."""
    from ringleader.clients.consumer import GroupConsumer

    options: Any = {"buffer_max_bytes": BUFFER_MAX_BYTES} if topic.startswith("many") else {}
    group_id = f"ours-{os.getpid()}"
    async with GroupConsumer(
        bootstrap, group_id, [topic], auto_offset_reset="earliest", **options
    ) as consumer:
        await consumer.wait_assigned(30)
        progress.ready()
        async for batch in consumer:
            look(batch)
            if progress.add(len(batch)):
                return


def look_at_records(batch: Any) -> int:
    """At the value of each record."""
    total = 0
    for record in batch:
        total += len(record.value)
    return total


def look_at_values(batch: Any) -> int:
    """At each value."""
    return sum(map(len, batch.values))


async def read_aiokafka(bootstrap: str, topic: str, progress: Progress) -> None:
    """aiokafka's `getmany`."""
    import aiokafka

    consumer = aiokafka.AIOKafkaConsumer(
        topic,
        bootstrap_servers=bootstrap,
        group_id=f"aiokafka-{os.getpid()}",
        auto_offset_reset="earliest",
    )
    await consumer.start()
    progress.ready()
    try:
        while True:
            found = await consumer.getmany(timeout_ms=1_000)
            for records in found.values():
                total = 0
                for record in records:
                    total += len(record.value)
                if progress.add(len(records)):
                    return
    finally:
        await consumer.stop()


def read_confluent(bootstrap: str, topic: str, progress: Progress) -> None:
    """confluent-kafka's `consume`, in batches of as many as the others hand out."""
    import confluent_kafka

    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": f"confluent-{os.getpid()}",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([topic])
    progress.ready()
    try:
        while True:
            messages: Any = consumer.consume(num_messages=500, timeout=1)
            if not messages:
                continue
            total = 0
            for message in messages:
                total += len(message.value())
            if progress.add(len(messages)):
                return
    finally:
        consumer.close()


def read(name: str, bootstrap: str, topic: str, count: int) -> dict[str, float]:
    """Reads `count` records and reports what it took."""
    progress = Progress(count)
    looks = {RECORDS: look_at_records, VALUES: look_at_values, COUNTING: lambda _batch: 0}
    if name == CONFLUENT:
        read_confluent(bootstrap, topic, progress)
    elif name == AIOKAFKA:
        asyncio.run(read_aiokafka(bootstrap, topic, progress))
    else:
        asyncio.run(read_ours(bootstrap, topic, progress, looks[name]))
    return progress.result


READERS: tuple[str, ...] = (
    RECORDS,
    RECORDS + IN_PYTHON,
    VALUES,
    VALUES + IN_PYTHON,
    COUNTING,
    AIOKAFKA,
    CONFLUENT,
)
if native.compiled is None:
    READERS = tuple(name for name in READERS if not name.endswith(IN_PYTHON))


@dataclass(frozen=True, slots=True)
class Case:
    """A topic with records of about that size, half to one and a half times of it."""

    value_bytes: int
    codecs: tuple[Compression, ...]
    """Of its batches, in turn."""
    halved: bool
    """Whether compression makes half of a value, or hardly less than it is."""

    @property
    def codec(self) -> str:
        """Its codec's name, or that it has several."""
        return self.codecs[0].name.lower() if len(self.codecs) == 1 else "mixed"

    @property
    def topic(self) -> str:
        """Its name."""
        return f"bench-{self.value_bytes}-{self.codec}-{'halved' if self.halved else 'hard'}"

    @property
    def ahead(self) -> int:
        """How many more records than are read it has: so at the end of the measurement as much is fetched
        and not handed out as at its beginning, by each client."""
        return min(AHEAD_RECORDS, AHEAD_BYTES // self.value_bytes)

    def batches(self) -> list[bytes]:
        """Different batches for it."""
        draw = random.Random(self.value_bytes)
        made = []
        now_ms = _now_ms()
        for number in range(PATTERNS):
            sizes = [
                draw.randint(self.value_bytes // 2, self.value_bytes * 3 // 2) for _ in range(BATCH_RECORDS)
            ]
            records = [
                Record(i, now_ms + i, b"%d" % i, self._value(draw, size)) for i, size in enumerate(sizes)
            ]
            made.append(build_batch(records, compression=self.codecs[number % len(self.codecs)]))
        return made

    def _value(self, draw: random.Random, size: int) -> bytes:
        return (draw.randbytes(size // 2 + 1) * 2)[:size] if self.halved else draw.randbytes(size)


CASES = tuple(
    Case(size, codecs, halved)
    for size in SIZES
    for codecs in (*((codec,) for codec in CODECS), MIXED)
    for halved in (True, False)
    if halved or codecs != (Compression.NONE,)  # without a codec it makes no difference
)


def _now_ms() -> int:
    """The time of the records: those older than a week a broker deletes, some minutes into a run."""
    return time.time_ns() // 1_000_000


def _bootstrap(address: Address) -> str:
    return f"{address[0]}:{address[1]}"


def create(address: Address, topic: str, partitions: int) -> None:
    """A topic."""
    made = CreateTopicsRequestCreatableTopic(name=topic, num_partitions=partitions, replication_factor=1)
    with RawConnection(address) as connection:
        [answer] = connection.call(CreateTopicsRequest(topics=[made], timeout_ms=30_000), 4).topics
    if answer.error_code:
        raise RuntimeError(f"CreateTopics: {error_name(answer.error_code)}")


def fill(address: Address, topic: str, batches: Iterator[tuple[int, bytes]]) -> None:
    """Batches and the partitions they go to."""
    with RawConnection(address) as connection:
        for partition, batch in batches:
            part = ProduceRequestPartitionProduceData(index=partition, records=batch)
            data = ProduceRequestTopicProduceData(name=topic, partition_data=[part])
            request = ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[data])
            for _ in range(CREATE_TRIES):
                [answer] = connection.call(request, PRODUCE_VERSION).responses
                code = answer.partition_responses[0].error_code
                if code not in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                    break
                time.sleep(0.05)  # there is nothing to wait on: the topic has just been created
            if code:
                raise RuntimeError(f"Produce: {error_name(code)}")


def measure(name: str, bootstrap: str, topic: str, count: int, cpu: int) -> dict[str, float]:
    """One round of one reader, in a process of its own."""
    command = [
        sys.executable,
        "-m",
        "bench.consume",
        name.removesuffix(IN_PYTHON),
        bootstrap,
        topic,
        str(count),
    ]
    choice = {"RINGLEADER_NATIVE": "0"} if name.endswith(IN_PYTHON) else {}
    done = subprocess.run(
        pinned(cpu, command), stdout=subprocess.PIPE, text=True, check=True, env=os.environ | choice
    )
    result: dict[str, float] = json.loads(done.stdout)
    return result


@contextlib.contextmanager
def served(plan: Plan, cpu: int, directory: Path) -> Iterator[dict[str, Address]]:
    """The brokers by name."""
    names = [name for name in plan.brokers if name == KAFKA]
    with (
        daemon(directory / "ringleader", cpu) as server,
        brokers(names, directory, cpu, partitions=1, warmup_s=0) as peers,
    ):
        yield {
            RINGLEADER: address_of(server.bootstrap),
            **{name: peer.address for name, peer in peers.running.items()},
        }


def measure_case(case: Case, broker: str, address: Address, plan: Plan, cpu: int) -> dict[str, Any]:
    """All readers of one topic of one broker, in turn."""
    count = plan.consumed_records // BATCH_RECORDS * BATCH_RECORDS
    create(address, case.topic, PARTITIONS)
    batches = case.batches()
    held = count + min(count, case.ahead)
    dealt = ((n % PARTITIONS, batches[n % PATTERNS]) for n in range(held // BATCH_RECORDS))
    fill(address, case.topic, dealt)
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in READERS}
    for _ in range(plan.rounds):
        for name in READERS:
            rounds[name].append(measure(name, _bootstrap(address), case.topic, count, cpu))
    medians = {
        name: {key: median(one[key] for one in of) for key in ("per_s", "per_cpu_s")}
        for name, of in rounds.items()
    }
    say(f"  {broker}, {case.topic}: " + ", ".join(f"{n} {m['per_cpu_s']:,.0f}" for n, m in medians.items()))
    return {
        "broker": broker,
        "value_bytes": case.value_bytes,
        "codec": case.codec,
        "values": "halved" if case.halved else "hard",
        "medians": medians,
        "rounds": rounds,
    }


def measure_memory(address: Address, cpu: int) -> dict[str, float]:
    """By how many MiB the readers grow that read many partitions of large compressed batches."""
    now_ms = _now_ms()
    records = [Record(i, now_ms, b"k", os.urandom(100) * 4) for i in range(LARGE_BATCH_RECORDS)]
    batch = build_batch(records, compression=Compression.LZ4)
    create(address, "many", MANY_PARTITIONS)
    fill(address, "many", ((partition, batch) for partition in range(MANY_PARTITIONS)))
    count = MANY_PARTITIONS * LARGE_BATCH_RECORDS // 4
    bootstrap = _bootstrap(address)
    return {
        name: measure(name, bootstrap, "many", count, cpu)["memory_bytes"] / 2**20
        for name in (RECORDS, AIOKAFKA, CONFLUENT)
    }


def goals_of(results: list[dict[str, Any]]) -> list[Goal]:
    """Records per CPU second, for each broker, size and codec."""
    found = []
    for result in results:
        rates = {name: values["per_cpu_s"] for name, values in result["medians"].items()}
        case = f"{result['broker']}, {result['value_bytes']} bytes, {result['codec']}, {result['values']}"
        for way in (RECORDS, VALUES):
            for peer, bound in ((AIOKAFKA, AIOKAFKA_GOAL), (CONFLUENT, CONFLUENT_GOALS[way])):
                name = f"records per CPU second, {way.partition(', ')[2]}; {case}"
                found.append(Goal(name, peer, rates[way] / rates[peer], bound))
    return found


def run(plan: Plan) -> dict[str, Any]:
    """Runs it, prints the table, writes consume.json, returns its content."""
    pins = Pins.choose()
    say(f"consume: {plan.consumed_records:,} records, batches of {BATCH_RECORDS}; records per CPU second")
    results: list[dict[str, Any]] = []
    with work_dir(plan.data_dir) as directory, served(plan, pins.server, directory) as addresses:
        for case in CASES:
            for broker, address in addresses.items():
                results.append(measure_case(case, broker, address, plan, pins.load))
        memory = measure_memory(addresses[RINGLEADER], pins.load)
    goals = goals_of(results)
    table("Consuming (medians)", COLUMNS, rows_of(results))
    table("Memory, 100 partitions (MiB)", ["client", "growth"], [[n, f"{m:.0f}"] for n, m in memory.items()])
    print_goals(goals)
    whole = {"records": plan.consumed_records, "results": results, "memory_mib": memory}
    save(plan.out_dir, "consume", whole, goals)
    return whole


COLUMNS = ["client", "broker", "bytes", "codec", "values", "records/s", "per CPU second"]


def rows_of(results: list[dict[str, Any]]) -> Iterator[list[object]]:
    """The table's."""
    for result in results:
        for name, values in result["medians"].items():
            rates = [f"{values[key]:,.0f}" for key in ("per_s", "per_cpu_s")]
            case = [result[key] for key in ("broker", "value_bytes", "codec", "values")]
            yield [name, *case, *rates]


def main() -> None:
    """One reader: ``python -m bench.consume NAME BOOTSTRAP TOPIC COUNT``; prints what it took as JSON."""
    name, bootstrap, topic, count = sys.argv[1:]
    print(json.dumps(read(name, bootstrap, topic, int(count))))


if __name__ == "__main__":
    main()
