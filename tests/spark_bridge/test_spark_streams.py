"""Streaming queries as members: they share a group, commit, leave, come back, and lose nothing."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.errors import CommitFailedError

from ringleader.clients.admin import Admin
from ringleader.testing.coordinator import Coordinator

pytestmark = [pytest.mark.spark, pytest.mark.xdist_group("spark")]

PARTITIONS = 4
PATIENCE_S = 60.0
# The offsets that aiokafka reports.
EAGER = {"kafka.partition.assignment.strategy": "range,roundrobin"}


@pytest.fixture
def coordinator() -> Iterator[Coordinator]:
    with Coordinator() as found:
        yield found


class Rows:
    """A sink that keeps (partition, offset) of every row, by batch id."""

    def __init__(self) -> None:
        self.batches: dict[int, list[tuple[int, int]]] = {}
        self.fail_at: int | None = None
        self.cut_off: list[tuple[int, int]] = []

    def __call__(self, frame: Any, batch_id: int) -> None:
        found = [(row.partition, row.offset) for row in frame.select("partition", "offset").collect()]
        if batch_id == self.fail_at:
            self.cut_off = found
            raise RuntimeError("the sink is full")
        self.batches.setdefault(batch_id, []).extend(found)

    @property
    def seen(self) -> Counter[tuple[int, int]]:
        return Counter(row for rows in self.batches.values() for row in rows)


class Query:
    """One streaming query; stopped at the end of its block."""

    def __init__(
        self, spark: Any, coordinator: Coordinator, group: str, checkpoint: Path, **options: str
    ) -> None:
        self.rows = Rows()
        triggers = {name: True for name in ("availableNow", "once") if options.pop(name, "") == "true"}
        reader = spark.readStream.format("ringleader").option(
            "kafka.bootstrap.servers", coordinator.bootstrap
        )
        reader = reader.option("kafka.group.id", group)
        if "subscribePattern" not in options:
            reader = reader.option("subscribe", "t")
        # Far beyond these tests, so that only a LeaveGroup removes a member in time.
        patient = {"kafka.session.timeout.ms": "600000", "startingOffsets": "earliest", "members": "1"}
        reader = reader.options(**patient | options)
        self.frame = reader.load()
        writer = self.frame.writeStream.option("checkpointLocation", str(checkpoint)).foreachBatch(self.rows)
        self._writer = writer.trigger(**triggers) if triggers else writer
        self.handle: Any = None

    def __enter__(self) -> Query:
        self.handle = self._writer.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.handle.stop()


def until(reached: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not reached():
        assert time.monotonic() < deadline, f"not in time: {what}"
        time.sleep(0.05)


def produce(coordinator: Coordinator, start: int, count: int) -> None:
    """Records ``start`` to ``start + count``, dealt out to the partitions in turn."""

    async def send() -> None:
        async with AIOKafkaProducer(bootstrap_servers=coordinator.bootstrap) as producer:
            for number in range(start, start + count):
                await producer.send("t", b"v%d" % number, partition=number % PARTITIONS)

    asyncio.run(send())


def every_row(count: int) -> Counter[tuple[int, int]]:
    return Counter((number % PARTITIONS, number // PARTITIONS) for number in range(count))


def lag(coordinator: Coordinator, group: str) -> int | None:
    """Rows that the group has not committed; None while a partition has no offset."""

    async def ask() -> int | None:
        async with Admin(coordinator.bootstrap) as admin:
            offsets = await admin.group_offsets(group)
            ends = await admin.end_offsets([("t", number) for number in range(PARTITIONS)])
        if len(offsets) < PARTITIONS:
            return None
        return sum(end - offsets[tp].offset for tp, end in ends.items())

    return asyncio.run(ask())


def members(coordinator: Coordinator, group: str) -> int:
    async def ask() -> int:
        async with Admin(coordinator.bootstrap) as admin:
            (found,) = await admin.describe_groups([group])
        return len(found.members)

    return asyncio.run(ask())


def source_workers() -> list[psutil.Process]:
    """The processes that Spark made for the sources of queries."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if any("python_streaming_source_runner" in word for word in process.cmdline()):
                found.append(process)
    return found


def test_a_query_commits_leaves_at_once_and_resumes(
    spark: Any, coordinator: Coordinator, tmp_path: Path
) -> None:
    coordinator.create_topic("t", PARTITIONS)
    produce(coordinator, 0, 400)
    with Query(spark, coordinator, "g", tmp_path, maxOffsetsPerTrigger="300") as query:
        query.handle.processAllAvailable()
        assert query.rows.seen == every_row(400)
        assert len(query.rows.batches) == 2
        until(lambda: lag(coordinator, "g") == 0, "the group's offsets at the log's end, with the query idle")
        assert members(coordinator, "g") == 1
        (source,) = query.handle.lastProgress["sources"]
        reported = source["latestOffset"]
        report = json.loads(reported) if isinstance(reported, str) else reported
        assert report["ends"] == {"t": dict.fromkeys("0123", 100)}
    until(lambda: members(coordinator, "g") == 0, "the member gone after stop")

    produce(coordinator, 400, 100)
    with Query(spark, coordinator, "g", tmp_path) as query:
        query.handle.processAllAvailable()
        assert query.rows.seen == every_row(500) - every_row(400)
        until(lambda: lag(coordinator, "g") == 0, "the offsets of the second run")


def test_available_now_reads_what_is_there_commits_and_ends(
    spark: Any, coordinator: Coordinator, tmp_path: Path
) -> None:
    coordinator.create_topic("t", PARTITIONS)
    produce(coordinator, 0, 200)
    with Query(spark, coordinator, "g", tmp_path, availableNow="true", maxOffsetsPerTrigger="100") as query:
        assert query.handle.awaitTermination(PATIENCE_S)
        assert query.rows.seen == every_row(200)
    until(lambda: members(coordinator, "g") == 0, "the member gone at the end")
    assert lag(coordinator, "g") == 0
    produce(coordinator, 200, 40)
    with Query(spark, coordinator, "g", tmp_path, availableNow="true") as query:
        assert query.handle.awaitTermination(PATIENCE_S)
        assert query.rows.seen == every_row(240) - every_row(200)


def test_alone_a_batch_that_failed_runs_again_with_the_same_rows(
    spark: Any, coordinator: Coordinator, tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException

    coordinator.create_topic("t", PARTITIONS)
    produce(coordinator, 0, 200)
    alone = {"replayPolicy": "exact", "sharedGroup": "false", "members": "2"}
    query = Query(spark, coordinator, "g", tmp_path, maxOffsetsPerTrigger="80", **alone)
    query.rows.fail_at = 1
    with query, pytest.raises(StreamingQueryException, match="the sink is full"):
        query.handle.processAllAvailable()
    assert query.rows.batches.keys() == {0}
    until(lambda: members(coordinator, "g") == 0, "the member gone after the failure")
    produce(coordinator, 200, 40)
    with Query(spark, coordinator, "g", tmp_path, **alone) as again:
        again.handle.processAllAvailable()
        assert sorted(again.rows.batches[1]) == sorted(query.rows.cut_off)
        assert len(query.rows.cut_off) == 80
        assert query.rows.seen + again.rows.seen == every_row(240)
        until(lambda: lag(coordinator, "g") == 0, "everything committed")


def test_a_killed_worker_fails_the_query_and_costs_no_record(
    spark: Any, coordinator: Coordinator, tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException

    coordinator.create_topic("t", PARTITIONS)
    produce(coordinator, 0, 200)
    # The least that a coordinator allows by default: so long the group waits for the killed member.
    mortal = {"kafka.session.timeout.ms": "6000", "kafka.heartbeat.interval.ms": "1000"}
    with Query(spark, coordinator, "g", tmp_path, **mortal) as query:
        query.handle.processAllAvailable()
        # The query of the test before has stopped, but its process may take a moment to go.
        until(lambda: len(source_workers()) == 1, "one process: that of the one query that runs")
        source_workers()[0].kill()
        with pytest.raises(StreamingQueryException):
            query.handle.awaitTermination(PATIENCE_S)
    produce(coordinator, 200, 100)
    with Query(spark, coordinator, "g", tmp_path, **mortal) as again:
        again.handle.processAllAvailable()
        assert (query.rows.seen + again.rows.seen).keys() == every_row(300).keys()
        assert members(coordinator, "g") == 1


def test_two_queries_and_a_plain_member_share_a_group(
    spark: Any, coordinator: Coordinator, tmp_path: Path
) -> None:
    coordinator.create_topic("t", PARTITIONS)
    plain = PlainMember(coordinator, "g")
    total = 0
    with (
        Query(spark, coordinator, "g", tmp_path / "one", **EAGER) as one,
        Query(spark, coordinator, "g", tmp_path / "two", **EAGER) as two,
    ):
        with plain:
            until(lambda: members(coordinator, "g") == 3, "three members")
            while min(len(one.rows.seen), len(two.rows.seen), len(plain.seen)) == 0:
                produce(coordinator, total, 40)
                total += 40
                time.sleep(0.2)
                assert total < 40 * 5 * PATIENCE_S, "a member gets no records"
        until(lambda: members(coordinator, "g") == 2, "the plain member gone")
        produce(coordinator, total, 400)
        total += 400
        two.handle.stop()
        until(lambda: members(coordinator, "g") == 1, "the second query gone")
        produce(coordinator, total, 400)
        total += 400
        until(lambda: lag(coordinator, "g") == 0, "all processed by who is left")
    everything = one.rows.seen + two.rows.seen + plain.seen
    assert everything.keys() == every_row(total).keys()
    # Twice only what a stop cut off: one batch of the second query at most.
    assert everything.total() - total <= 400


class PlainMember:
    """An aiokafka consumer in a thread of its own; commits what it has seen."""

    def __init__(self, coordinator: Coordinator, group: str) -> None:
        self.seen: Counter[tuple[int, int]] = Counter()
        self._coordinator = coordinator
        self._group = group
        self._stop = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._consume()))

    def __enter__(self) -> PlainMember:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._stop.set()
        self._thread.join(PATIENCE_S)

    async def _consume(self) -> None:
        consumer = AIOKafkaConsumer(
            "t",
            bootstrap_servers=self._coordinator.bootstrap,
            group_id=self._group,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            partition_assignment_strategy=[RoundRobinPartitionAssignor],
        )
        async with consumer:
            while not self._stop.is_set():
                found = await consumer.getmany(timeout_ms=100)
                done: dict[TopicPartition, int] = {}
                for place, records in found.items():
                    self.seen.update((place.partition, record.offset) for record in records)
                    done[place] = records[-1].offset + 1
                if done:
                    # A rebalance may have come between; then these records come twice.
                    with contextlib.suppress(CommitFailedError):
                        await consumer.commit(done)
