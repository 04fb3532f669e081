"""The membership behind a query, against a running coordinator and without a JVM."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator
from typing import Protocol

import pytest
from kafka import KafkaProducer

from ringleader.clients.admin import Admin
from ringleader.clients.group.subscription import sync_consumer_member
from ringleader.spark_bridge.batch_reader import RingleaderBatchReader
from ringleader.spark_bridge.errors import SourceError
from ringleader.spark_bridge.fetching import fetch
from ringleader.spark_bridge.group.membership import CommitRefusedError, GroupUnavailableError, MemberCommit
from ringleader.spark_bridge.reader import RingleaderStreamReader
from ringleader.testing.coordinator import Coordinator

PARTITIONS = 4
EAGER = {"kafka.partition.assignment.strategy": "range,roundrobin"}


@pytest.fixture
def coordinator() -> Iterator[Coordinator]:
    with Coordinator(topics={"t": PARTITIONS}) as found:
        yield found
    fetch.close_clusters()


@pytest.fixture
def classic_only() -> Iterator[Coordinator]:
    """Without the consumer protocol."""
    with Coordinator(topics={"t": PARTITIONS}, group_coordinator_rebalance_protocols="classic") as found:
        yield found
    fetch.close_clusters()


class Broker(Protocol):
    """Any that a query can be pointed at."""

    @property
    def bootstrap(self) -> str: ...


class SparkLike:
    """One query's reader, called as Spark calls it; the checkpoint is ``start``."""

    def __init__(self, coordinator: Broker, **options: str) -> None:
        given = {"kafka.bootstrap.servers": coordinator.bootstrap, "subscribe": "t", "kafka.group.id": "g"}
        given |= {"startingOffsets": "earliest", "members": "1", "kafka.heartbeat.interval.ms": "50"}
        self.reader = RingleaderStreamReader(
            {name: value for name, value in (given | options).items() if value}
        )
        self.start = self.reader.initialOffset()

    def __enter__(self) -> SparkLike:
        return self

    def __exit__(self, *_error: object) -> None:
        self.reader.stop()

    def plan(self) -> bool:
        """One trigger; whether there is a new batch."""
        end = self.reader.latestOffset(self.start, self.reader.getDefaultReadLimit())
        planned, self.start = end is not self.start, end
        return planned

    def read(self) -> list[tuple[int, int]]:
        """(partition, offset) of the rows of the batch that ends at ``start``."""
        rows: list[tuple[int, int]] = []
        for task in self.reader.partitions({}, self.start):
            for arrow in self.reader.read(task):
                rows += zip(arrow["partition"].to_pylist(), arrow["offset"].to_pylist(), strict=True)
        return sorted(rows)

    def owned(self) -> set[int]:
        """The partitions of the present share, after one trigger."""
        self.plan()
        return {number for _, number in self.reader._driver._ownership.owned()}


def produce(coordinator: Coordinator, count: int) -> None:
    with_producer = KafkaProducer(bootstrap_servers=coordinator.bootstrap)
    for number in range(count):
        with_producer.send("t", b"%d" % number, partition=number % PARTITIONS)
    with_producer.flush()
    with_producer.close()


def committed(coordinator: Coordinator) -> dict[int, int]:
    async def ask() -> dict[int, int]:
        async with Admin(coordinator.bootstrap) as admin:
            return {tp[1]: place.offset for tp, place in (await admin.group_offsets("g")).items()}

    return asyncio.run(ask())


def group_type(coordinator: Coordinator) -> str:
    async def ask() -> str:
        async with Admin(coordinator.bootstrap) as admin:
            (found,) = await admin.describe_groups(["g"])
        return found.group_type

    return asyncio.run(ask())


def member_count(coordinator: Coordinator) -> int:
    async def ask() -> int:
        async with Admin(coordinator.bootstrap) as admin:
            (found,) = await admin.describe_groups(["g"])
        return len(found.members)

    return asyncio.run(ask())


def every_row(start: int, count: int) -> list[tuple[int, int]]:
    return sorted((number % PARTITIONS, number // PARTITIONS) for number in range(start, start + count))


def test_a_batch_from_join_to_commit_to_leave(coordinator: Coordinator) -> None:
    produce(coordinator, 40)
    with SparkLike(coordinator) as query:
        assert query.plan()
        assert query.read() == every_row(0, 40)
        assert committed(coordinator) == dict.fromkeys(range(PARTITIONS), 0)
        assert not query.plan()
        assert committed(coordinator) == dict.fromkeys(range(PARTITIONS), 10)
        assert member_count(coordinator) == 1
    assert member_count(coordinator) == 0


def test_a_restart_repairs_the_commit_that_was_lost(coordinator: Coordinator) -> None:
    produce(coordinator, 40)
    with SparkLike(coordinator) as query:
        query.plan()
        checkpoint = query.start
    produce(coordinator, 4)
    with SparkLike(coordinator) as query:
        query.start = checkpoint
        assert query.plan()
        assert query.read() == every_row(40, 4)
        assert committed(coordinator) == dict.fromkeys(range(PARTITIONS), 10)


def test_an_eager_query_holds_the_group_until_its_batch_is_committed(coordinator: Coordinator) -> None:
    produce(coordinator, 40)
    joined = threading.Event()
    other = sync_consumer_member(
        coordinator.bootstrap, "g", ["t"], on_assigned=lambda _: joined.set(), heartbeat_interval_ms=50
    )
    with SparkLike(coordinator, **EAGER) as query:
        assert query.plan()
        with other:
            assert not joined.wait(0.5), "the group went on while a batch was in flight"
            assert query.read() == every_row(0, 40)
            query.plan()
            assert joined.wait(10)
            assert committed(coordinator) == dict.fromkeys(range(PARTITIONS), 10)
            assert len(query.owned()) == PARTITIONS // 2
        while len(query.owned()) < PARTITIONS:
            pass


def test_two_queries_share_the_partitions(coordinator: Coordinator) -> None:
    produce(coordinator, 40)
    with SparkLike(coordinator) as one, SparkLike(coordinator) as two:
        assert one.plan()
        seen = one.read()
        starter = threading.Thread(target=two.plan)
        starter.start()
        while len(one.owned()) == PARTITIONS:
            seen += one.read()
        starter.join()
        # Partitions that one query gives up come to the other by one more rebalance.
        while one.owned() | two.owned() != set(range(PARTITIONS)):
            pass
        assert not one.owned() & two.owned()
        produce(coordinator, 8)
        assert one.plan()
        assert two.plan()
        seen += one.read() + two.read()
    assert sorted(set(seen)) == every_row(0, 40) + every_row(40, 8) or sorted(set(seen)) == every_row(0, 48)


def test_commits_say_whether_to_try_again(coordinator: Coordinator) -> None:
    produce(coordinator, 4)
    with SparkLike(coordinator) as query:
        assert query.plan()
        group = query.reader._driver._group
        (refused,) = group.commit([MemberCommit(0, 99, {("t", 0): 1})])
        assert isinstance(refused, CommitRefusedError)
        assert "generation 99 is over" in str(refused)
    (away,) = group.commit([MemberCommit(0, 1, {("t", 0): 1})])
    assert isinstance(away, GroupUnavailableError)


def test_a_coordinator_that_restarts_costs_no_record(coordinator: Coordinator) -> None:
    produce(coordinator, 40)
    with SparkLike(coordinator) as query:
        assert query.plan()
        seen = query.read()
        coordinator.restart()
        produce(coordinator, 8)
        while not query.plan():
            pass
        seen += query.read()
    assert seen == every_row(0, 40) + every_row(40, 8)


def test_a_batch_read_starts_at_a_group_s_offsets(coordinator: Coordinator) -> None:
    produce(coordinator, 40)
    with SparkLike(coordinator) as query:
        query.plan()
        query.plan()
    produce(coordinator, 8)
    options = {"kafka.bootstrap.servers": coordinator.bootstrap, "subscribe": "t", "kafka.group.id": "g"}
    reader = RingleaderBatchReader(options | {"startingOffsets": "committed"})
    offsets = [arrow["offset"].to_pylist() for task in reader.partitions() for arrow in reader.read(task)]
    assert offsets == [[10, 11]] * PARTITIONS
    assert member_count(coordinator) == 0


def test_a_query_that_is_alone_takes_the_classic_protocol_where_there_is_no_other(
    classic_only: Coordinator, caplog: pytest.LogCaptureFixture
) -> None:
    produce(classic_only, 40)
    with SparkLike(classic_only, **{"kafka.heartbeat.interval.ms": ""}) as query:
        query.reader.prepareForTriggerAvailableNow()
        assert query.plan()
        assert query.read() == every_row(0, 40)
        assert group_type(classic_only) == "classic"
        assert not query.plan()
    assert committed(classic_only) == dict.fromkeys(range(PARTITIONS), 10)
    ours = [record for record in caplog.records if not record.name.startswith("kafka.")]  # kafka-python's
    assert not [record for record in ours if record.levelno >= logging.WARNING]


def test_the_consumer_protocol_where_it_is_not_served_is_refused_with_a_sentence(
    classic_only: Coordinator,
) -> None:
    wanted = {"kafka.group.protocol": "consumer", "kafka.heartbeat.interval.ms": ""}
    with (
        SparkLike(classic_only, **wanted) as query,
        pytest.raises(SourceError, match=r"KIP-848.*Set kafka\.group\.protocol=classic"),
    ):
        query.plan()


def assigned(coordinator: Coordinator, *partitions: int, **options: str) -> SparkLike:
    given = {"members": "", "subscribe": "", "assign": f'{{"t":{list(partitions)}}}'}
    return SparkLike(coordinator, **given | options)


def test_assigned_partitions_are_read_and_committed_without_a_member(coordinator: Coordinator) -> None:
    produce(coordinator, 40)
    with assigned(coordinator, 0, 2) as query:
        assert query.plan()
        assert query.read() == [row for row in every_row(0, 40) if row[0] in (0, 2)]
        assert committed(coordinator) == {0: 0, 2: 0}
        assert member_count(coordinator) == 0
        checkpoint = query.start
    produce(coordinator, 4)
    with assigned(coordinator, 0, 2) as query:
        query.start = checkpoint
        assert query.plan(), "the commit that was lost is repaired"
        assert query.read() == [(0, 10), (2, 10)]
        assert committed(coordinator) == {0: 10, 2: 10}
        query.plan()
        report = query.reader.reportLatestOffset()
        assert report is not None
        assert report["members"] == {"assign": ["t-0", "t-2"]}
        assert report["source"] == "ringleader[t-0, t-2, group g]"
    assert committed(coordinator) == {0: 11, 2: 11}


def test_assigned_partitions_are_read_up_to_what_is_there_now(coordinator: Coordinator) -> None:
    produce(coordinator, 40)
    with assigned(coordinator, 1) as query:
        query.reader.prepareForTriggerAvailableNow()
        assert query.plan()
        produce(coordinator, 40)
        assert query.read() == [(1, offset) for offset in range(10)]
        assert not query.plan()
    assert committed(coordinator) == {1: 10}


def test_assigned_partitions_of_a_group_with_members_are_a_sentence(coordinator: Coordinator) -> None:
    produce(coordinator, 40)
    other = sync_consumer_member(coordinator.bootstrap, "g", ["t"], client_id="other")
    with assigned(coordinator, 0) as query:
        with other:
            other.wait_assigned(10)
            expected = r"group g has members \(other on /127.*take 'subscribe' to read beside them"
            with pytest.raises(SourceError, match=expected):
                query.plan()
        assert query.plan()
        with sync_consumer_member(coordinator.bootstrap, "g", ["t"]) as other:
            other.wait_assigned(10)
            with pytest.raises(SourceError, match="group g has members, so nobody else can commit for it"):
                query.plan()


def test_assigned_partitions_that_do_not_exist_are_a_sentence(coordinator: Coordinator) -> None:
    with (
        assigned(coordinator, 0, PARTITIONS) as query,
        pytest.raises(SourceError, match=f"assign names t-{PARTITIONS}, which does not exist"),
    ):
        query.plan()
    with (
        assigned(coordinator, 0, assign='{"nosuch":[0]}') as query,
        pytest.raises(SourceError, match=r"no such topic: nosuch.*option 'assign'"),
    ):
        query.plan()


def test_assigned_partitions_wait_for_a_coordinator_that_is_away(coordinator: Coordinator) -> None:
    produce(coordinator, 40)
    with assigned(coordinator, 0) as query:
        assert query.plan()
        coordinator.restart()
        produce(coordinator, 4)
        while not query.plan():
            pass
        assert query.read() == [(0, 10)]
    assert committed(coordinator) == {0: 10}
