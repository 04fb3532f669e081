"""The cost of writing: `Producer` compared with aiokafka's producer and confluent-kafka's `produce`.

Each writes the same records to the same broker, in turn, in a process of its own on the load's CPU, with its
default settings but for the codec, and looks at the outcome of every record. The brokers are Ringleader and,
where it can run, Apache Kafka. Measured are records per CPU second of that process, its threads included.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from bench.consume import create, served
from bench.plan import Plan, in_turn
from bench.processes import Pins, pinned, work_dir
from bench.report import Goal, median, print_goals, save, say, table
from ringleader.protocol.messages import DeleteTopicsRequest
from tests.support.rawclient import Address, RawConnection

OURS, AIOKAFKA, CONFLUENT = "Producer", "aiokafka", "confluent-kafka"
PRODUCERS = (OURS, AIOKAFKA, CONFLUENT)
PARTITIONS = 4
VALUES = 1_000
"""Different values that are written, over and over."""
KEYS = 5_000
AHEAD = 2_000
"""Records that are sent before the outcome of the first is looked at."""
AIOKAFKA_GOAL, CONFLUENT_GOAL = 3.0, 1.0
"""How many times the rivals' records per CPU second are wanted."""


class Case(NamedTuple):
    """Records whose values have half to one and a half times the stated size."""

    value_bytes: int
    codec: str
    keyed: bool
    """Whether each record has a key of up to 9 bytes; those without one fill a partition's batch after the
    other's."""

    @property
    def name(self) -> str:
        """For tables and topics."""
        return f"{self.value_bytes}-{self.codec}-{'keys' if self.keyed else 'no-keys'}"

    def values(self) -> list[bytes]:
        """Values that can be halved by compression."""
        draw = random.Random(self.value_bytes)
        sizes = [draw.randint(self.value_bytes // 2, self.value_bytes * 3 // 2) for _ in range(VALUES)]
        return [(draw.randbytes(size // 2 + 1) * 2)[:size] for size in sizes]

    def keys(self) -> Sequence[bytes | None]:
        """The keys of the records, over and over."""
        return [b"user-%d" % number for number in range(KEYS)] if self.keyed else [None]


CASES = (
    Case(100, "none", keyed=False),
    Case(100, "none", keyed=True),
    Case(100, "lz4", keyed=False),
    Case(1_000, "none", keyed=False),
    Case(1_000, "none", keyed=True),
    Case(1_000, "lz4", keyed=False),
)


class Spent:
    """The time and CPU time of a producer behind its first tenth: everything is loaded by then."""

    def __init__(self, case: Case, count: int) -> None:
        self._values, self._keys, self._count = case.values(), case.keys(), count
        self._start_s = self._start_cpu_s = 0.0

    def records(self) -> Iterator[tuple[bytes, bytes | None]]:
        """Values and keys; the measurement begins with that behind the first tenth."""
        values, keys = self._values, self._keys
        for number in range(self._count):
            if number == self._count // 10:
                self._start_s, self._start_cpu_s = time.perf_counter(), time.process_time()
            yield values[number % VALUES], keys[number % len(keys)]

    def result(self, confirmed: int) -> dict[str, float]:
        """The measured rates. Raises RuntimeError when not all records are confirmed."""
        seconds = time.perf_counter() - self._start_s
        cpu_seconds = time.process_time() - self._start_cpu_s
        if confirmed != self._count:
            raise RuntimeError(f"{confirmed} of {self._count} records were confirmed")
        measured = self._count - self._count // 10
        return {"per_s": measured / seconds, "per_cpu_s": measured / cpu_seconds}


class Outcomes:
    """Futures of records in the order of their sending."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[Any]] = deque()
        self.confirmed = 0

    def add(self, outcome: asyncio.Future[Any]) -> None:
        """Of one record; looks at those that are known."""
        waiting = self._waiting
        waiting.append(outcome)
        if len(waiting) > AHEAD:
            while waiting and waiting[0].done():
                self.confirmed += waiting.popleft().result().offset >= 0

    def all(self) -> int:
        """How many are confirmed, after a flush."""
        for outcome in self._waiting:
            self.confirmed += outcome.result().offset >= 0
        return self.confirmed


async def write_ours(bootstrap: str, topic: str, codec: Any, spent: Spent) -> int:
    """`Producer.send`."""
    from ringleader.clients.producer import Producer

    outcomes = Outcomes()
    async with Producer(bootstrap, compression_type=codec) as producer:
        for value, key in spent.records():
            outcomes.add(await producer.send(topic, value, key=key))
        await producer.flush()
    return outcomes.all()


async def write_aiokafka(bootstrap: str, topic: str, codec: str, spent: Spent) -> int:
    """aiokafka's `send`."""
    import aiokafka

    outcomes = Outcomes()
    kind = None if codec == "none" else codec
    producer = aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap, compression_type=kind)
    await producer.start()
    try:
        for value, key in spent.records():
            outcomes.add(await producer.send(topic, value, key=key))
        await producer.flush()
    finally:
        await producer.stop()
    return outcomes.all()


def write_confluent(bootstrap: str, topic: str, codec: str, spent: Spent) -> int:
    """confluent-kafka's `produce` with a callback."""
    import confluent_kafka

    confirmed = 0

    def done(error: Any, message: Any) -> None:
        nonlocal confirmed
        confirmed += error is None and message.offset() >= 0

    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "compression.type": codec})
    for value, key in spent.records():
        while True:
            try:
                producer.produce(topic, value, key, on_delivery=done)
                break
            except BufferError:
                producer.poll(0.1)
        producer.poll(0)
    producer.flush()
    return confirmed


def write(name: str, bootstrap: str, topic: str, case: Case, count: int) -> dict[str, float]:
    """Writes `count` records and reports what it took."""
    spent = Spent(case, count)
    if name == CONFLUENT:
        return spent.result(write_confluent(bootstrap, topic, case.codec, spent))
    writer = write_aiokafka if name == AIOKAFKA else write_ours
    return spent.result(asyncio.run(writer(bootstrap, topic, case.codec, spent)))


def measure(name: str, address: Address, case: Case, count: int, cpu: int) -> dict[str, float]:
    """One round of one producer, in a process of its own, into a topic that is deleted afterwards."""
    topic = f"bench-{case.name}-{name}"
    create(address, topic, PARTITIONS)
    words = [name, f"{address[0]}:{address[1]}", topic, str(CASES.index(case)), str(count)]
    command = pinned(cpu, [sys.executable, "-m", "bench.produce", *words])
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=os.environ)
    with RawConnection(address) as connection:
        connection.call(DeleteTopicsRequest(topic_names=[topic], timeout_ms=30_000), 3)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def measure_case(case: Case, broker: str, address: Address, plan: Plan, cpu: int) -> dict[str, Any]:
    """All producers of the same records, in turn."""
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in PRODUCERS}
    for number in range(plan.rounds):
        for name in in_turn(PRODUCERS, number):
            rounds[name].append(measure(name, address, case, plan.consumed_records, cpu))
    medians = {
        name: {key: median(one[key] for one in of) for key in ("per_s", "per_cpu_s")}
        for name, of in rounds.items()
    }
    say(f"  {broker}, {case.name}: " + ", ".join(f"{n} {m['per_cpu_s']:,.0f}" for n, m in medians.items()))
    return {"broker": broker, "case": case.name, "medians": medians, "rounds": rounds}


def goals_of(results: list[dict[str, Any]]) -> list[Goal]:
    """Records per CPU second, for each broker and case."""
    found = []
    for result in results:
        rates = {name: values["per_cpu_s"] for name, values in result["medians"].items()}
        for peer, bound in ((AIOKAFKA, AIOKAFKA_GOAL), (CONFLUENT, CONFLUENT_GOAL)):
            name = f"records written per CPU second; {result['broker']}, {result['case']}"
            found.append(Goal(name, peer, rates[OURS] / rates[peer], bound))
    return found


def run(plan: Plan) -> dict[str, Any]:
    """Runs it, prints the table, writes produce.json, returns its content."""
    pins = Pins.choose()
    say(f"produce: {plan.consumed_records:,} records; records per CPU second")
    results: list[dict[str, Any]] = []
    with work_dir(plan.data_dir) as directory, served(plan, pins.server, directory) as addresses:
        for case in CASES:
            for broker, address in addresses.items():
                results.append(measure_case(case, broker, address, plan, pins.load))
    goals = goals_of(results)
    table("Producing (medians)", COLUMNS, rows_of(results))
    print_goals(goals)
    whole = {"records": plan.consumed_records, "results": results}
    save(plan.out_dir, "produce", whole, goals)
    return whole


COLUMNS = ["client", "broker", "bytes, codec, keys", "records/s", "per CPU second"]


def rows_of(results: list[dict[str, Any]]) -> Iterator[list[object]]:
    """The table's."""
    for result in results:
        for name, values in result["medians"].items():
            rates = [f"{values[key]:,.0f}" for key in ("per_s", "per_cpu_s")]
            yield [name, result["broker"], result["case"], *rates]


def main() -> None:
    """One producer: ``python -m bench.produce NAME BOOTSTRAP TOPIC CASE COUNT``; prints what it took as
    JSON."""
    name, bootstrap, topic, case, count = sys.argv[1:]
    print(json.dumps(write(name, bootstrap, topic, CASES[int(case)], int(count))))


if __name__ == "__main__":
    main()
