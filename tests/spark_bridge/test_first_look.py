"""Where a query begins is seen once, for all there is then, and the checkpoint holds it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer

from ringleader.clients.admin import Admin
from ringleader.spark_bridge.errors import SourceError
from ringleader.testing.coordinator import Coordinator
from tests.spark_bridge.fakes import World
from tests.spark_bridge.test_spark_streams import Query, produce, source_workers, until

T1, T2 = ("t", 1), ("t", 2)


def begin(*ends: int, **options: str) -> World:
    """A query that owns the first partition, and whose first batch has no rows."""
    options["startingOffsets"] = "latest"
    world = World(*ends, offsets=None, **options)
    world.assign(0)
    assert world.plan() == {}
    assert world.read() == {}
    return world


def test_a_partition_that_comes_before_the_first_rows_is_read_from_its_beginning() -> None:
    world = begin(10)
    world.log.end[T1], world.log.start[T1] = 6, 0
    world.restart(0, 1)
    assert world.plan() == {1: (0, 6)}
    world.log.end[T2], world.log.start[T2] = 3, 0
    world.assign(0, 1, 2)
    assert world.plan() == {2: (0, 3)}
    world.restart(0, 1, 2)
    assert world.plan() is None


@pytest.mark.parametrize("restarted", [True, False])
def test_a_partition_of_others_that_never_committed_starts_where_the_query_began(restarted: bool) -> None:
    world = begin(10, 10)
    world.produce(1, 5)
    if restarted:
        world.restart(0, 1)
    else:
        world.assign(0, 1)
    assert world.plan() == {1: (10, 15)}
    assert world.committed() == {0: 10, 1: 10}


def test_the_first_rows_come_with_where_the_query_began_in_the_rest() -> None:
    world = World(10, 10, startingOffsets='{"t":{"0":4,"1":6}}')
    world.assign(0)
    assert world.plan() == {0: (4, 10)}
    world.restart(0, 1, startingOffsets="latest")
    assert world.plan() == {1: (6, 10)}


def test_a_query_without_partitions_of_its_own_sees_where_it_begins() -> None:
    world = World(10, startingOffsets="latest")
    world.assign()
    assert world.plan() == {}
    world.produce(0, 2)
    world.restart(0)
    assert world.plan() == {0: (10, 12)}


def test_what_others_have_committed_is_no_place_to_begin() -> None:
    world = World(10, 10, offsets={1: 7}, startingOffsets='{"t":{"0":10}}')
    world.assign(0)
    assert world.plan() == {}
    del world.offsets[T1]
    world.restart(0, 1)
    assert world.plan() == {1: (0, 10)}


def test_json_names_what_others_have_as_well() -> None:
    world = World(10, 10, startingOffsets='{"t":{"0":4}}')
    world.assign(0)
    with pytest.raises(SourceError, match="t-1 is missing"):
        world.plan()


def test_the_first_look_waits_for_the_groups_offsets() -> None:
    world = World(10, startingOffsets="latest")
    world.group.away = 1
    world.assign(0)
    assert world.plan() is None
    assert world.plan() == {}


def test_at_earliest_there_is_nothing_to_remember() -> None:
    world = World(0, 10)
    world.assign(0)
    assert world.plan() is None
    world.produce(0, 1)
    assert world.plan() == {0: (0, 1)}
    world.log.start[T1] = 4
    world.restart(0, 1)
    assert world.plan() == {1: (4, 10)}


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("startingOffsets", '{"t":{"0":4}}'),
        ("startingOffsetsByTimestamp", '{"t":{"0":4}}'),
        ("", "earliest"),
        ("", "latest"),
    ],
)
def test_a_start_for_each_partition_that_a_checkpoint_makes_vain_is_reported(
    name: str, given: str, caplog: pytest.LogCaptureFixture
) -> None:
    options = {name or "startingOffsets": given}
    world = World(10, offsets=None, **options)
    world.assign(0)
    world.plan()
    assert "is ignored" not in caplog.text
    world.restart(0)
    world.produce(0, 1)
    assert world.plan() is not None
    lines = [line for line in caplog.messages if "is ignored" in line]
    assert [line.split()[0] for line in lines] == ([name] if name else [])


def test_available_now_remembers_and_ends() -> None:
    world = World(10, 10, startingOffsets="latest")
    world.driver.prepare_available_now()
    world.assign(0)
    assert world.plan() == {}
    assert world.plan() is None
    world.produce(1, 5)
    world.restart(0, 1)
    assert world.plan() == {1: (10, 15)}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"subscribe": "t"}, {"subscribe": "u,t"}),
        ({"subscribe": "", "subscribePattern": "t"}, {"subscribePattern": "t|u"}),
    ],
)
def test_a_topic_that_joins_the_subscription_starts_where_the_option_says(
    before: dict[str, str], after: dict[str, str]
) -> None:
    world = begin(10, **before)
    added = ("u", 5)
    world.log.end[added], world.log.start[added] = 7, 0
    world.log.end[T1], world.log.start[T1] = 3, 0
    world.restart(**after)
    world.group.give([("t", 0), T1, added])
    assert world.plan() == {1: (0, 3)}
    world.log.end[added] = 9
    world.restart()
    world.group.give([("t", 0), T1, added])
    assert world.plan() == {5: (7, 9)}


def test_a_topic_that_was_made_again_is_newer_than_the_query() -> None:
    world = begin(10, 10)
    del world.log.end[T1]
    world.produce(0, 1)
    world.restart(0)
    assert world.plan() == {0: (10, 11)}
    world.log.end[T1], world.log.start[T1] = 4, 0
    world.restart(0, 1)
    assert world.plan() == {1: (0, 4)}


# -- in Spark


@pytest.fixture
def coordinator() -> Iterator[Coordinator]:
    with Coordinator() as found:
        yield found


async def _grow(coordinator: Coordinator, total: int) -> None:
    async with Admin(coordinator.bootstrap) as admin:
        await admin.create_partitions("t", total)


def write(coordinator: Coordinator, topic: str, partition: int, count: int) -> None:
    async def send() -> None:
        async with AIOKafkaProducer(bootstrap_servers=coordinator.bootstrap) as producer:
            for number in range(count):
                await producer.send(topic, b"v%d" % number, partition=partition)

    asyncio.run(send())


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_a_query_killed_before_its_first_rows_loses_none(
    spark: Any, coordinator: Coordinator, tmp_path: Path
) -> None:
    from pyspark.errors import StreamingQueryException

    coordinator.create_topic("t", 4)
    produce(coordinator, 0, 40)
    mortal = {"kafka.session.timeout.ms": "6000", "kafka.heartbeat.interval.ms": "1000"}
    options = {"startingOffsets": "latest", **mortal}
    with Query(spark, coordinator, "g", tmp_path, **options) as query:
        until((tmp_path / "commits" / "0").exists, "the batch without rows that Spark runs first")
        until(lambda: len(source_workers()) == 1, "one process: that of the one query that runs")
        source_workers()[0].kill()
        with pytest.raises(StreamingQueryException):
            query.handle.awaitTermination(60)
        assert query.rows.seen == Counter()
    asyncio.run(_grow(coordinator, 5))
    produce(coordinator, 40, 8)
    write(coordinator, "t", 4, 6)
    with Query(spark, coordinator, "g", tmp_path, **options) as again:
        again.handle.processAllAvailable()
        old = {(partition, 10 + number) for partition in range(4) for number in range(2)}
        assert again.rows.seen == Counter(old | {(4, number) for number in range(6)})


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_what_a_restart_gains_starts_where_the_query_began_or_where_the_option_says(
    spark: Any, coordinator: Coordinator, tmp_path: Path
) -> None:
    coordinator.create_topic("t", 2)
    for partition in range(2):
        write(coordinator, "t", partition, 10)
    options = {"subscribe": "t", "startingOffsets": "latest"}
    with Query(spark, coordinator, "g", tmp_path, **options):
        until((tmp_path / "commits" / "0").exists, "the batch without rows that Spark runs first")

    async def forget() -> None:
        async with Admin(coordinator.bootstrap) as admin:
            await admin.delete_group_offsets("g", [("t", 1)])

    until(lambda: not source_workers(), "the query's process gone")
    asyncio.run(forget())
    asyncio.run(_grow(coordinator, 3))
    coordinator.create_topic("added", 1)
    write(coordinator, "added", 0, 10)
    write(coordinator, "t", 1, 3)
    write(coordinator, "t", 2, 3)
    with Query(spark, coordinator, "g", tmp_path, **options | {"subscribe": "t,added"}) as query:
        query.handle.processAllAvailable()
        known, new = [(1, 10), (1, 11), (1, 12)], [(2, 0), (2, 1), (2, 2)]
        assert query.rows.seen == Counter([*known, *new])
        write(coordinator, "added", 0, 1)
        query.handle.processAllAvailable()
        assert query.rows.seen == Counter([*known, *new, (0, 10)])
