"""Queries of the Spark source in the consumer protocol (KIP-848), on Apache Kafka and on the daemon.

Its coordinator lets a new classic group wait for more members longer than a test may take.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer

from ringleader.clients.admin import Admin
from ringleader.clients.descriptions import GroupDescription
from ringleader.clients.group.membership import Assigned, SyncGroupMember
from ringleader.clients.group.subscription import partitions_of, sync_consumer_member
from ringleader.spark_bridge.committing import plan_read
from ringleader.spark_bridge.errors import SourceError
from ringleader.spark_bridge.fetching import fetch
from tests.interop.clients.test_consumer_protocol_on_kafka import OPTIONS, PROPERTIES
from tests.interop.kafka import KafkaBroker
from tests.interop.secured import make_topics
from tests.spark_bridge.test_group import PARTITIONS, SparkLike, every_row
from tests.spark_bridge.test_spark_streams import source_workers, until
from tests.support.daemon import Daemon
from tests.support.spark_session import spark_session

pytestmark = [pytest.mark.timeout(300), pytest.mark.xdist_group("spark-consumer-protocol")]

PATIENCE_S = 60.0
CONSUMER = {"kafka.group.protocol": "consumer"}
ALONE = {"sharedGroup": "false"}


@pytest.fixture(scope="module", params=["kafka", "ringleader"])
def kafka(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaBroker | Daemon]:
    directory, delay = tmp_path_factory.mktemp(request.param), "group.initial.rebalance.delay.ms"
    if request.param == "kafka":
        with KafkaBroker(directory / "broker", properties=PROPERTIES | {delay: "600000"}) as broker:
            yield broker
    else:
        with Daemon(directory, options=[*OPTIONS, f"--{delay.replace('.', '-')}", "600000"]) as daemon:
            yield daemon
    fetch.close_clusters()


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with spark_session(tmp_path_factory.mktemp("spark")) as session:
        yield session


class Place:
    """A topic, and a group of the same name, of one test."""

    def __init__(self, bootstrap: str, name: str) -> None:
        self.bootstrap = bootstrap
        self.name = name
        asyncio.run(make_topics(bootstrap, {name: PARTITIONS}))

    def options(self, **more: str) -> dict[str, str]:
        """Of a query. Those that are empty are left out: they are for the classic protocol."""
        given = {"subscribe": self.name, "kafka.group.id": self.name, "startingOffsets": "earliest"}
        return given | {"kafka.heartbeat.interval.ms": ""} | more

    def query(self, **more: str) -> SparkLike:
        return SparkLike(self, **self.options(**more))

    def member(self, **options: Any) -> SyncGroupMember:
        return sync_consumer_member(
            self.bootstrap, self.name, [self.name], group_protocol="consumer", client_id="other", **options
        )

    def produce(self, start: int, count: int) -> None:
        async def send() -> None:
            async with AIOKafkaProducer(bootstrap_servers=self.bootstrap) as producer:
                for number in range(start, start + count):
                    await producer.send(self.name, b"v%d" % number, partition=number % PARTITIONS)

        asyncio.run(send())

    def group(self) -> GroupDescription:
        async def ask() -> GroupDescription:
            async with Admin(self.bootstrap) as admin:
                (found,) = await admin.describe_groups([self.name])
            return found

        return asyncio.run(ask())

    def committed(self) -> list[int]:
        async def ask() -> list[int]:
            async with Admin(self.bootstrap) as admin:
                offsets = await admin.group_offsets(self.name)
            return [at.offset for _, at in sorted(offsets.items())]

        return asyncio.run(ask())


@pytest.fixture
def place(kafka: KafkaBroker | Daemon, request: pytest.FixtureRequest) -> Place:
    return Place(kafka.bootstrap, re.sub(r"[^A-Za-z0-9._-]", "-", request.node.name)[:200])


# ---- called as Spark calls ----


@pytest.mark.parametrize("more", [{}, {"subscribePattern": "^alone-by-pattern$", "subscribe": ""}])
def test_available_now_in_an_empty_group_begins_at_once(
    kafka: KafkaBroker | Daemon, place: Place, more: dict[str, str]
) -> None:
    if more:
        place = Place(kafka.bootstrap, "alone-by-pattern")
    place.produce(0, 40)
    with place.query(**more) as query:
        query.reader.prepareForTriggerAvailableNow()
        assert query.plan()
        assert query.read() == every_row(0, 40)
        assert place.group().group_type == "consumer"
        assert not query.plan()
        assert place.committed() == [10] * PARTITIONS
        assert not place.group().members, "it leaves before it ends"


def test_a_query_that_wants_the_group_for_itself_begins_at_once_and_fails_when_it_is_not_alone(
    place: Place,
) -> None:
    place.produce(0, 40)
    with place.query(**ALONE) as query:
        assert query.plan()
        assert query.read() == every_row(0, 40)
        assert not query.plan()
        assert place.committed() == [10] * PARTITIONS
        with place.member(), pytest.raises(SourceError, match="other on /127"):
            until(lambda: bool(query.plan()), "the query fails")


def test_a_member_without_partitions_is_noticed_too(place: Place) -> None:
    """The query's own assignment does not change, only the epoch."""
    asyncio.run(make_topics(place.bootstrap, {f"{place.name}-2": 1}))
    other = sync_consumer_member(
        place.bootstrap, place.name, [f"{place.name}-2"], group_protocol="consumer", client_id="other"
    )
    with place.query(**ALONE) as query:
        assert not query.plan()
        with other, pytest.raises(SourceError, match="other on /127"):
            until(lambda: bool(query.plan()), "the query fails")


def test_new_partitions_are_read_soon(place: Place) -> None:
    place.produce(0, 40)
    with place.query(**ALONE) as query:
        assert query.plan()

        async def grow() -> None:
            async with Admin(place.bootstrap) as admin:
                await admin.create_partitions(place.name, PARTITIONS + 1)

        asyncio.run(grow())
        until(lambda: len(query.owned()) == PARTITIONS + 1, "the new partition is here")


def test_a_restart_repairs_the_commit_that_was_lost_and_keeps_a_reset(place: Place) -> None:
    place.produce(0, 40)
    with place.query(**ALONE) as query:
        assert query.plan()
        checkpoint = query.start
    assert place.committed() == [0] * PARTITIONS
    place.produce(40, 4)
    with place.query(**ALONE) as query:
        query.start = checkpoint
        assert query.plan()
        assert query.read() == every_row(40, 4)
        assert place.committed() == [10] * PARTITIONS
        assert not query.plan()
        checkpoint = query.start

    async def reset() -> None:
        async with Admin(place.bootstrap) as admin:
            await admin.set_group_offsets(place.name, {(place.name, 0): 10, (place.name, 1): 3})

    asyncio.run(reset())
    with place.query(**ALONE) as query:
        query.start = checkpoint
        assert query.plan()
        assert query.read() == [(0, 10), *((1, offset) for offset in range(3, 11))]


def test_what_moves_is_held_until_its_batch_is_committed(place: Place) -> None:
    place.produce(0, 40)
    assignments: list[Assigned] = []
    has_some = threading.Event()

    def assigned(found: Assigned) -> None:
        if partitions_of(found):
            assignments.append(found)
            has_some.set()

    with place.query(**CONSUMER) as query:
        assert query.plan()
        with place.member(on_assigned=assigned) as other:
            assert not has_some.wait(1.0), "partitions moved while a batch reads them"
            assert query.read() == every_row(0, 40)
            until(lambda: bool(query.plan()) or has_some.is_set(), "partitions have moved")
            assert place.committed() == [10] * PARTITIONS
            assert len(query.owned()) == len(partitions_of(assignments[-1])) == PARTITIONS // 2
            place.produce(40, 8)
            until(query.plan, "the rest is read on")
            mine = {partition for partition, _ in query.read()}
            assert mine == set(range(PARTITIONS)) - {number for _, number in partitions_of(assignments[-1])}
            other.commit(dict.fromkeys(partitions_of(assignments[-1]), 12))
        until(lambda: len(query.owned()) == PARTITIONS, "everything is back")
        until(lambda: place.committed() == [12] * PARTITIONS, "all committed")
        report = query.reader.reportLatestOffset()
        assert report is not None
        assert (report["refusedCommits"], report["lag"]) == (0, 0)


def test_a_query_of_two_members_and_a_second_one_share_a_group(place: Place) -> None:
    place.produce(0, 40)
    two = CONSUMER | {"members": "2", "kafka.group.remote.assignor": "range"}
    with place.query(**two) as one:
        assert one.plan()
        rows = Counter(one.read())
        until(lambda: len(place.group().members) == 2, "both members are in")
        with place.query(**CONSUMER) as another:
            deadline = time.monotonic() + PATIENCE_S
            total = 40
            while not another.owned():
                assert time.monotonic() < deadline
                if one.plan():
                    rows.update(one.read())
            place.produce(total, 40)
            for query in (one, another):
                query.plan()
                rows.update(query.read())
            until(lambda: not one.plan() and not another.plan(), "all is read")
            assert one.owned() | another.owned() == set(range(PARTITIONS))
            assert not one.owned() & another.owned()
    assert set(rows) == set(every_row(0, 80))


def test_a_batch_reads_commit_goes_into_a_group_that_is_left(place: Place) -> None:
    place.produce(0, 40)
    given = {"kafka.bootstrap.servers": place.bootstrap, "subscribe": place.name}
    given |= {"kafka.group.id": place.name, "startingOffsets": "committed"}
    with place.query(**ALONE) as query:
        assert query.plan()
        with pytest.raises(SourceError, match="has members, so nobody else can commit for it"):
            plan_read(given).commit()
    plan_read(given).commit()
    assert place.committed() == [10] * PARTITIONS


def test_a_group_with_classic_members_stays_classic(kafka: KafkaBroker | Daemon, place: Place) -> None:
    """A broker that made groups wait would keep this one for ten minutes: it is asked without members."""
    with place.query(**ALONE) as query:
        group = query.reader._live()._group
        assert group._offered()
        member = sync_consumer_member(place.bootstrap, place.name, [place.name], client_id="classic")
        with member:
            until(lambda: bool(place.group().members), "it is about to join")
            assert place.group().group_type == "classic"
            assert not group._offered()


# ---- through Spark ----


class Sink:
    """Keeps partition and offset of each row; waits before its first batch ends while `goes_on` is unset."""

    def __init__(self) -> None:
        self.seen: Counter[tuple[int, int]] = Counter()
        self.began, self.goes_on = threading.Event(), threading.Event()
        self.goes_on.set()

    def __call__(self, frame: Any, _batch_id: int) -> None:
        rows = frame.select("partition", "offset").collect()
        self.seen.update((row.partition, row.offset) for row in rows)
        self.began.set()
        assert self.goes_on.wait(PATIENCE_S)


def start(spark: Any, place: Place, sink: Sink, checkpoint: Path, available_now: bool, **more: str) -> Any:
    given = {name: value for name, value in place.options(**more).items() if value}
    frame = spark.readStream.format("ringleader").options(**given)
    frame = frame.option("kafka.bootstrap.servers", place.bootstrap).load()
    writer = frame.writeStream.option("checkpointLocation", str(checkpoint)).foreachBatch(sink)
    return (writer.trigger(availableNow=True) if available_now else writer).start()


@pytest.mark.spark
def test_available_now_again_and_again(spark: Any, place: Place, tmp_path: Path) -> None:
    for number in range(3):
        place.produce(40 * number, 40)
        sink = Sink()
        query = start(spark, place, sink, tmp_path, True)
        assert query.awaitTermination(PATIENCE_S), "it waits for more members"
        assert sorted(sink.seen) == every_row(40 * number, 40)
        assert place.committed() == [10 * (number + 1)] * PARTITIONS
        assert query.lastProgress["sources"][0]["numInputRows"] in (0, 40)
    assert place.group().group_type == "consumer"


@pytest.mark.spark
def test_a_batch_in_flight_is_committed_before_its_partitions_move(
    spark: Any, place: Place, tmp_path: Path
) -> None:
    place.produce(0, 40)
    sink, moved = Sink(), threading.Event()
    sink.goes_on.clear()
    query = start(spark, place, sink, tmp_path, False, **CONSUMER, members="1")
    try:
        assert sink.began.wait(PATIENCE_S)

        def assigned(found: Assigned) -> None:
            if partitions_of(found):
                moved.set()

        with place.member(on_assigned=assigned) as other:
            assert not moved.wait(1.0), "partitions moved while a batch reads them"
            sink.goes_on.set()
            assert moved.wait(PATIENCE_S)
            assert place.committed() == [10] * PARTITIONS
            theirs = partitions_of(other.wait_assigned(PATIENCE_S))
            place.produce(40, 40)
            until(lambda: sink.seen.total() == 60, "the other half is read on")
            other.commit(dict.fromkeys(theirs, 20))
        until(lambda: place.committed() == [20] * PARTITIONS, "all committed")
    finally:
        query.stop()
    assert set(sink.seen.values()) == {1}, "no record twice"


@pytest.mark.spark
def test_a_run_after_a_killed_one_reads_all_partitions(spark: Any, place: Place, tmp_path: Path) -> None:
    """Its member has them until its session ends: till then nothing to read does not mean all is read."""
    from pyspark.errors import StreamingQueryException

    place.produce(0, 40)
    sink = Sink()
    sink.goes_on.clear()
    query = start(spark, place, sink, tmp_path, True)
    assert sink.began.wait(PATIENCE_S)
    for worker in source_workers():
        worker.kill()
    sink.goes_on.set()
    with pytest.raises(StreamingQueryException):
        query.awaitTermination(PATIENCE_S)
    assert len(place.group().members) == 1, "the killed one counts as a member"
    place.produce(40, 40)
    again = Sink()
    query = start(spark, place, again, tmp_path, True)
    assert query.awaitTermination(PATIENCE_S)
    assert set(sink.seen + again.seen) == set(every_row(0, 80))
    assert place.committed() == [20] * PARTITIONS
