"""`ringleader.bootstrap.servers`: the query's group on one cluster, its records on another."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ringleader.clients.admin import Admin
from ringleader.spark_bridge.batch_reader import RingleaderBatchReader
from ringleader.spark_bridge.committing import plan_read
from ringleader.spark_bridge.fetching import fetch
from ringleader.spark_bridge.options import OptionsError, stream_options
from ringleader.spark_bridge.options.sink import sink_options
from ringleader.spark_bridge.reader import RingleaderStreamReader
from ringleader.testing.coordinator import Coordinator

RECORDS = {"ApiVersions", "Metadata", "Fetch", "ListOffsets"}
GIVEN = {"kafka.bootstrap.servers": "h:1", "kafka.group.id": "g", "subscribe": "t"}


@pytest.fixture
def coordinator() -> Iterator[Coordinator]:
    """The coordinator of the group."""
    with Coordinator(topics={"t": 2}) as found:
        yield found
    fetch.close_clusters()


@pytest.fixture
def log() -> Iterator[Coordinator]:
    """Where the records are."""
    with Coordinator(topics={"t": 2}) as found:
        for partition in (0, 1):
            found.produce("t", *[b"%d" % number for number in range(50)], partition=partition)
        yield found


def options(coordinator: Coordinator, log: Coordinator, **more: str) -> dict[str, str]:
    given = {"kafka.bootstrap.servers": log.bootstrap, "ringleader.bootstrap.servers": coordinator.bootstrap}
    return GIVEN | given | {"startingOffsets": "earliest"} | more


def requested_apis(where: Coordinator) -> set[str]:
    return {one.api for one in where.faults.seen()}


def committed(where: Coordinator) -> dict[int, int]:
    async def ask() -> dict[int, int]:
        async with Admin(where.bootstrap) as admin:
            return {tp[1]: place.offset for tp, place in (await admin.group_offsets("g")).items()}

    return asyncio.run(ask())


@pytest.mark.spark
@pytest.mark.xdist_group("spark")
def test_a_query_commits_to_the_one_and_reads_from_the_other(
    spark: Any, tmp_path: Path, coordinator: Coordinator, log: Coordinator
) -> None:
    read: list[tuple[int, int]] = []

    def batch(frame: Any, _number: int) -> None:
        read.extend((row.partition, row.offset) for row in frame.collect())

    stream = spark.readStream.format("ringleader").options(**options(coordinator, log, sharedGroup="false"))
    writer = stream.load().writeStream.foreachBatch(batch).option("checkpointLocation", str(tmp_path))
    query = writer.trigger(availableNow=True).start()
    try:
        assert query.awaitTermination(60)
    finally:
        query.stop()
    assert sorted(read) == [(partition, number) for partition in (0, 1) for number in range(50)]
    assert requested_apis(log) <= RECORDS
    assert {"JoinGroup", "OffsetCommit", "DescribeGroups"} <= requested_apis(coordinator)
    assert not requested_apis(coordinator) & {"Fetch", "ListOffsets"}
    assert committed(coordinator) == {0: 50, 1: 50}


def test_assigned_partitions_are_committed_where_the_group_is(
    coordinator: Coordinator, log: Coordinator
) -> None:
    given = options(coordinator, log, assign='{"t":[1]}')
    del given["subscribe"]
    reader = RingleaderStreamReader(given)
    try:
        end = reader.latestOffset(reader.initialOffset(), reader.getDefaultReadLimit())
        reader.latestOffset(end, reader.getDefaultReadLimit())
    finally:
        reader.stop()
    assert committed(coordinator) == {1: 50}
    assert requested_apis(log) <= RECORDS


def test_a_batch_read_begins_and_commits_where_the_group_is(
    coordinator: Coordinator, log: Coordinator
) -> None:
    given = options(coordinator, log, startingOffsets="committed")
    first = plan_read(given)
    first.commit()
    log.produce("t", b"new")
    reader = RingleaderBatchReader(given)
    rows = [
        (partition, offset)
        for task in reader.partitions()
        for arrow in reader.read(task)
        for partition, offset in zip(arrow["partition"].to_pylist(), arrow["offset"].to_pylist(), strict=True)
    ]
    assert rows == [(0, 50)]
    assert requested_apis(log) <= RECORDS
    assert not requested_apis(coordinator) & (RECORDS - {"ApiVersions"})
    assert committed(coordinator) == {0: 50, 1: 50}


def test_each_side_has_its_own_security_protocol() -> None:
    login = {"kafka.sasl.mechanism": "PLAIN", "kafka.sasl.username": "ann", "kafka.sasl.password": "s3cret"}
    secured = GIVEN | login | {"kafka.security.protocol": "SASL_SSL", "ringleader.bootstrap.servers": "n:2"}
    same = stream_options(secured)
    assert same.coordinators.servers == (("n", 2),)
    assert same.coordinators.security == same.endpoint.security
    plain = stream_options(secured | {"ringleader.security.protocol": "plaintext"})
    assert plain.coordinators.security == ()
    assert dict(plain.endpoint.security)["security.protocol"] == "SASL_SSL"
    other_way = stream_options(
        secured | {"kafka.security.protocol": "PLAINTEXT", "ringleader.security.protocol": "SASL_PLAINTEXT"}
    )
    assert other_way.endpoint.security == ()
    assert dict(other_way.coordinators.security)["sasl.username"] == "ann"
    assert "s3cret" not in repr(other_way)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"ringleader.bootstrap.servers": "nowhere:x"}, "'ringleader.bootstrap.servers' with value"),
        ({"ringleader.security.protocol": "SSL"}, "needs ringleader.bootstrap.servers"),
        (
            {"ringleader.security.protocol": "SASL_SSL", "ringleader.bootstrap.servers": "n:2"},
            "ringleader.security.protocol: sasl.mechanism is not set",
        ),
        ({"ringleader.bootstrap.server": "n:2"}, "Did you mean 'ringleader.bootstrap.servers'"),
    ],
)
def test_wrong_options(given: dict[str, str], expected: str) -> None:
    with pytest.raises(OptionsError, match=expected):
        stream_options(GIVEN | given)


def test_a_sink_has_no_group_to_coordinate() -> None:
    with pytest.raises(OptionsError, match="a sink is in no group"):
        sink_options({"kafka.bootstrap.servers": "h:1", "ringleader.bootstrap.servers": "n:2"})
