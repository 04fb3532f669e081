"""Makes `tests/insight/inference/recorded.jsonl.gz`: what a real Apache Kafka writes into
`__consumer_offsets` while real members come and go, each in a way that is written down beside it.

    python -m tests.interop.insight.record tests/insight/inference/recorded.jsonl.gz

Takes about five minutes. A line each: `{"did": what, "group": ..., "at_ms": ...}` for what was done to a
group, and `{"record": [partition, offset, timestamp, key, value]}` (base64) in the order of time. Timeouts
are short: sessions of 5 s, poll intervals of 12 s, a commit every second.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import aiokafka
import confluent_kafka
from confluent_kafka import ConsumerGroupState, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

from tests.interop.kafka import FAST_START, KafkaBroker, command
from tests.support.tied import tied

SESSION_MS = 5_000
POLL_INTERVAL_MS = 12_000
COMMIT_MS = 1_000
OFFSETS_PARTITIONS = 3
QUIET_S = 3.0
"""The quiet time between two actions."""

PROPERTIES = {
    "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
    "group.consumer.session.timeout.ms": "5000",
    "group.consumer.min.session.timeout.ms": "1000",
    "group.consumer.heartbeat.interval.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "200",
    "group.share.session.timeout.ms": "5000",
    "group.share.min.session.timeout.ms": "1000",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "200",
}


# ---- a member, in a process of its own ----


def confluent_member(config: dict[str, Any], topics: list[str], slow_after_s: float) -> None:
    """librdkafka; `slow_after_s`: then it is busy for two poll intervals, once."""
    consumer = confluent_kafka.Consumer(config)
    consumer.subscribe(topics)
    running = True

    def stop(*_: object) -> None:
        nonlocal running
        running = False

    signal.signal(signal.SIGTERM, stop)
    began = time.monotonic()
    while running:
        consumer.poll(0.1)
        if slow_after_s and time.monotonic() - began > slow_after_s:
            slow_after_s = 0
            time.sleep(2 * POLL_INTERVAL_MS / 1000)
    consumer.close()


async def aiokafka_member(config: dict[str, Any], topics: list[str], slow_after_s: float) -> None:
    """aiokafka. SIGUSR1: it subscribes to another topic, too."""
    consumer = aiokafka.AIOKafkaConsumer(*topics, **config)
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, ended.set)
    loop.add_signal_handler(signal.SIGUSR1, lambda: consumer.subscribe([*topics, "payments"]))
    await consumer.start()
    began = time.monotonic()
    while not ended.is_set():
        await consumer.getmany(timeout_ms=100)
        if slow_after_s and time.monotonic() - began > slow_after_s:
            slow_after_s = 0
            await asyncio.sleep(2 * POLL_INTERVAL_MS / 1000)
    await consumer.stop()


class Member:
    """A member as a process."""

    def __init__(self, recorder: Recorder, library: str, group: str, name: str, **options: Any) -> None:
        topics = options.pop("topics", ["orders"])
        slow_after_s = options.pop("slow_after_s", 0)
        dotted = library == "confluent"
        config: dict[str, Any] = {
            "bootstrap.servers": recorder.bootstrap,
            "group.id": group,
            "client.id": name,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": COMMIT_MS,
        }
        if options.get("group_protocol") != "consumer":
            config |= {"session.timeout.ms": SESSION_MS, "heartbeat.interval.ms": 300}
        config |= {"max.poll.interval.ms": POLL_INTERVAL_MS}
        config |= {key.replace("_", "."): value for key, value in options.items()}
        if not dotted:
            config = {key.replace(".", "_"): value for key, value in config.items()}
        arguments = [library, json.dumps(config), json.dumps(topics), str(slow_after_s)]
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.interop.insight.record", "member", *arguments],
            stdin=subprocess.DEVNULL,
        )
        tied(self._process)

    def send(self, how: signal.Signals) -> None:
        """A signal."""
        self._process.send_signal(how)

    async def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        """Stop it and wait for its end."""
        self._process.send_signal(how)
        await asyncio.to_thread(self._process.wait)


class JavaMember(Member):
    """A console tool of Kafka's own as a member."""

    def __init__(self, recorder: Recorder, main_class: str, *arguments: str) -> None:
        where = ["--bootstrap-server", recorder.bootstrap, "--topic", "orders"]
        self._process = subprocess.Popen(
            command(main_class, *where, *arguments, jvm=("-Xmx96m", *FAST_START)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        tied(self._process)


# ---- what is done ----


class Recorder:
    """The actions, and the records that were written meanwhile."""

    def __init__(self, broker: KafkaBroker) -> None:
        self.broker = broker
        self.bootstrap = broker.bootstrap
        self.lines: list[tuple[int, dict[str, Any]]] = []
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap})

    async def does(self, group: str, what: str, done: Awaitable[Any] | None = None) -> Any:
        """Note that it is done, do it, and let its consequences come."""
        self.lines.append((now_ms(), {"did": what, "group": group}))
        result = await done if done is not None else None
        await asyncio.sleep(QUIET_S)
        return result

    async def joins(self, group: str, what: str, members: int) -> None:
        """Note it, and wait until the group is at rest with `members` members."""
        self.lines.append((now_ms(), {"did": what, "group": group}))
        while True:
            described = self.admin.describe_consumer_groups([group], request_timeout=10)[group]
            with contextlib.suppress(confluent_kafka.KafkaException):
                found = await asyncio.wrap_future(described)
                if len(found.members) == members and found.state is ConsumerGroupState.STABLE:
                    break
            await asyncio.sleep(0.3)
        await asyncio.sleep(2 * QUIET_S)

    async def topics(self) -> None:
        """Note which topics there are."""
        pending = self.admin.describe_topics(confluent_kafka.TopicCollection(["orders", "payments"]))
        found = {name: await asyncio.wrap_future(one) for name, one in pending.items()}
        topics = {name: [len(one.partitions), _uuid(one.topic_id)] for name, one in found.items()}
        self.lines.append((now_ms(), {"topics": topics}))

    def read(self) -> None:
        """All of `__consumer_offsets`."""
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "recorder",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_uncommitted",
            }
        )
        consumer.assign([TopicPartition("__consumer_offsets", n, 0) for n in range(OFFSETS_PARTITIONS)])
        ends = 0
        while ends < OFFSETS_PARTITIONS:
            message = consumer.poll(10)
            assert message is not None
            error = message.error()
            if error is not None:
                assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF
                ends += 1
                continue
            texts = [None if raw is None else base64.b64encode(raw).decode() for raw in
                     (message.key(), message.value())]  # fmt: skip
            at_ms = message.timestamp()[1]
            self.lines.append((at_ms, {"record": [message.partition(), message.offset(), at_ms, *texts]}))
        consumer.close()

    def write(self, path: Path) -> None:
        """In the order of time."""
        self.lines.sort(key=lambda line: line[0])
        with gzip.GzipFile(path, "wb", mtime=0) as file:
            for at_ms, line in self.lines:
                file.write(json.dumps({"at_ms": at_ms, **line}, sort_keys=True).encode() + b"\n")


def _uuid(given: Any) -> str:
    halves = given.get_most_significant_bits(), given.get_least_significant_bits()
    return b"".join((half & (2**64 - 1)).to_bytes(8, "big") for half in halves).hex()


def now_ms() -> int:
    """Unix time."""
    return time.time_ns() // 1_000_000


@contextlib.asynccontextmanager
async def traffic(bootstrap: str) -> AsyncIterator[None]:
    """Records come into all partitions, some a second."""
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})

    async def run() -> None:
        while True:
            for topic, partitions in (("orders", 4), ("payments", 2)):
                for partition in range(partitions):
                    producer.produce(topic, b"x" * 20, partition=partition)
            producer.poll(0)
            await asyncio.sleep(0.2)

    task = asyncio.create_task(run())
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        producer.flush(5)


async def coming_and_going(recorder: Recorder, library: str, group: str, **options: Any) -> None:
    """Join, join, clean stop, SIGKILL, SIGSTOP past the session, all gone."""
    a = Member(recorder, library, group, "a", **options)
    await recorder.joins(group, "a joins", 1)
    b = Member(recorder, library, group, "b", **options)
    await recorder.joins(group, "b joins", 2)
    await recorder.does(group, "b stops", b.end())
    c = Member(recorder, library, group, "c", **options)
    await recorder.joins(group, "c joins", 2)
    await recorder.does(group, "c is killed", c.end(signal.SIGKILL))
    await asyncio.sleep(SESSION_MS / 1000)
    d = Member(recorder, library, group, "d", **options)
    await recorder.joins(group, "d joins", 2)
    d.send(signal.SIGSTOP)
    await recorder.does(group, "d is frozen")
    await asyncio.sleep(SESSION_MS / 1000)
    d.send(signal.SIGCONT)
    await recorder.joins(group, "d goes on", 2)
    await d.end(signal.SIGKILL)
    e = Member(recorder, library, group, "d", **options)
    await recorder.does(group, "d is killed and started again at once")
    await asyncio.sleep(SESSION_MS / 1000)
    await recorder.does(group, "nothing")
    await recorder.does(group, "d stops", e.end())
    await recorder.does(group, "a stops", a.end())


async def slow(recorder: Recorder, library: str, group: str, **options: Any) -> None:
    """A member whose application is busy for longer than its poll interval."""
    a = Member(recorder, library, group, "a", **options)
    await recorder.joins(group, "a joins", 1)
    b = Member(recorder, library, group, "b", slow_after_s=12, **options)
    await recorder.joins(group, "b joins, and is soon busy for two poll intervals", 2)
    await asyncio.sleep(8 + 2 * POLL_INTERVAL_MS / 1000)
    await recorder.joins(group, "b is back", 2)
    await b.end(signal.SIGKILL)
    await a.end(signal.SIGKILL)


async def static(recorder: Recorder, group: str, **options: Any) -> None:
    """Static members: restarted, doubled, gone."""
    a = Member(recorder, "confluent", group, "a", group_instance_id="i-a", **options)
    await recorder.joins(group, "a joins", 1)
    b = Member(recorder, "confluent", group, "b", group_instance_id="i-b", **options)
    await recorder.joins(group, "b joins", 2)
    await b.end(signal.SIGKILL)
    b = Member(recorder, "confluent", group, "b", group_instance_id="i-b", **options)
    await recorder.does(group, "b is killed and started again at once")
    await recorder.does(group, "nothing")
    twin = Member(recorder, "confluent", group, "b2", group_instance_id="i-b", **options)
    await recorder.does(group, "another process takes b's instance id")
    await recorder.does(group, "nothing")
    await b.end(signal.SIGKILL)
    await twin.end(signal.SIGKILL)
    await recorder.does(group, "both are killed")
    await asyncio.sleep(SESSION_MS / 1000)
    await a.end(signal.SIGKILL)


async def subscriptions(recorder: Recorder, group: str) -> None:
    """A subscription changes; a member of another application joins."""
    a = Member(recorder, "aiokafka", group, "a")
    await recorder.joins(group, "a joins", 1)
    b = Member(recorder, "aiokafka", group, "b")
    await recorder.joins(group, "b joins", 2)
    b.send(signal.SIGUSR1)
    await recorder.does(group, "b subscribes to payments, too")
    await recorder.does(group, "nothing")
    c = Member(recorder, "aiokafka", group, "c", topics=["payments"])
    await recorder.joins(group, "c of another application joins", 3)
    for member in (a, b, c):
        await member.end(signal.SIGKILL)


async def java_members(recorder: Recorder, group: str, *arguments: str) -> None:
    """Kafka's own console consumer."""
    main_class = "org.apache.kafka.tools.consumer.ConsoleConsumer"
    timing = [f"session.timeout.ms={SESSION_MS}", "heartbeat.interval.ms=300",
    f"max.poll.interval.ms={POLL_INTERVAL_MS}", "auto.commit.interval.ms=1000"]  # fmt: skip
    if "group.protocol=consumer" in arguments:
        timing = [f"max.poll.interval.ms={POLL_INTERVAL_MS}", "auto.commit.interval.ms=1000"]
    flags = [word for one in timing for word in ("--command-property", one)]
    a = JavaMember(recorder, main_class, "--group", group, *flags, *arguments)
    await recorder.joins(group, "a joins", 1)
    b = JavaMember(recorder, main_class, "--group", group, *flags, *arguments)
    await recorder.joins(group, "b joins", 2)
    await recorder.does(group, "b stops", b.end())
    c = JavaMember(recorder, main_class, "--group", group, *flags, *arguments)
    await recorder.joins(group, "c joins", 2)
    await recorder.does(group, "c is killed", c.end(signal.SIGKILL))
    await asyncio.sleep(SESSION_MS / 1000)
    await recorder.does(group, "a stops", a.end())


async def share(recorder: Recorder, group: str) -> None:
    """A share group of Kafka's own console consumers."""
    main_class = "org.apache.kafka.tools.consumer.ConsoleShareConsumer"
    a = JavaMember(recorder, main_class, "--group", group)
    await recorder.does(group, "a joins")
    await asyncio.sleep(15)
    b = JavaMember(recorder, main_class, "--group", group)
    await recorder.does(group, "b joins")
    await asyncio.sleep(15)
    await recorder.does(group, "b stops", b.end())
    await recorder.does(group, "a is killed", a.end(signal.SIGKILL))
    await asyncio.sleep(SESSION_MS / 1000)


async def topics_change(recorder: Recorder) -> None:
    """Partitions are added; offsets are reset and deleted; the group is deleted; the broker restarts."""
    a = Member(recorder, "confluent", "changing", "a", topic_metadata_refresh_interval_ms=500)
    b = Member(recorder, "aiokafka", "changing-py", "b", metadata_max_age_ms=500)
    await recorder.joins("changing", "a joins", 1)
    await recorder.topics()
    more = recorder.admin.create_partitions([NewPartitions("orders", 6)])["orders"]
    await recorder.does("changing", "partitions are added", asyncio.wrap_future(more))
    await recorder.topics()
    await recorder.does("changing", "nothing")
    await asyncio.to_thread(recorder.broker.stop)
    await asyncio.to_thread(recorder.broker.start)
    recorder.admin = AdminClient({"bootstrap.servers": recorder.bootstrap})
    await recorder.does("changing", "the broker is stopped and started")
    await recorder.does("changing", "nothing")
    await recorder.does("changing", "a stops", a.end())
    await b.end()
    back = confluent_kafka.ConsumerGroupTopicPartitions(
        "changing", [TopicPartition("orders", n, 1) for n in range(4)]
    )
    reset = recorder.admin.alter_consumer_group_offsets([back], request_timeout=60)["changing"]
    await recorder.does("changing", "offsets are reset", asyncio.wrap_future(reset))
    deleted = recorder.admin.delete_consumer_groups(["changing"], request_timeout=60)["changing"]
    await recorder.does("changing", "the group is deleted", asyncio.wrap_future(deleted))


async def record(path: Path) -> None:
    """All of it, several groups at once."""
    with tempfile.TemporaryDirectory() as directory:
        broker = KafkaBroker(Path(directory) / "kafka", properties=PROPERTIES)
        with broker:
            recorder = Recorder(broker)
            made = recorder.admin.create_topics([NewTopic("orders", 4), NewTopic("payments", 2)])
            for one in made.values():
                await asyncio.wrap_future(one)
            await asyncio.sleep(QUIET_S)
            await recorder.topics()
            async with traffic(recorder.bootstrap):
                batches: list[list[Callable[[], Awaitable[None]]]] = [
                    [
                        lambda: coming_and_going(recorder, "confluent", "librdkafka"),
                        lambda: coming_and_going(recorder, "aiokafka", "aiokafka"),
                        lambda: slow(recorder, "confluent", "slow-librdkafka"),
                        lambda: slow(recorder, "aiokafka", "slow-aiokafka"),
                    ],
                    [
                        lambda: coming_and_going(
                            recorder,
                            "confluent",
                            "cooperative",
                            partition_assignment_strategy="cooperative-sticky",
                        ),
                        lambda: coming_and_going(
                            recorder, "confluent", "consumer-protocol", group_protocol="consumer"
                        ),
                        lambda: slow(
                            recorder, "confluent", "slow-consumer-protocol", group_protocol="consumer"
                        ),
                        lambda: static(recorder, "static"),
                        lambda: static(recorder, "static-consumer-protocol", group_protocol="consumer"),
                        lambda: subscriptions(recorder, "subscriptions"),
                    ],
                    [
                        lambda: java_members(recorder, "java"),
                        lambda: share(recorder, "share"),
                    ],
                    [lambda: topics_change(recorder)],
                ]
                for batch in batches:
                    await asyncio.gather(*(one() for one in batch))
            recorder.read()
            recorder.write(path)


if __name__ == "__main__":
    if sys.argv[1] == "member":
        library, config, topics, slow_after_s = sys.argv[2:]
        if library == "aiokafka":
            asyncio.run(aiokafka_member(json.loads(config), json.loads(topics), float(slow_after_s)))
        else:
            confluent_member(json.loads(config), json.loads(topics), float(slow_after_s))
    else:
        asyncio.run(record(Path(sys.argv[1])))
