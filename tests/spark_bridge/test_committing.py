"""A batch read's explicit commit, against a coordinator on loopback."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from kafka import KafkaProducer

from ringleader.clients.blocking.endpoint import Endpoint
from ringleader.clients.group.membership import SyncGroupMember
from ringleader.clients.group.subscription import sync_consumer_member
from ringleader.spark_bridge.batch_reader import RingleaderBatchReader
from ringleader.spark_bridge.committing import PlannedRead, plan_read
from ringleader.spark_bridge.errors import SourceError
from ringleader.spark_bridge.fetching import fetch
from ringleader.spark_bridge.network.coordinator import GroupCoordinator
from ringleader.spark_bridge.options import OptionsError, batch_options
from ringleader.testing.coordinator import Coordinator

PARTITIONS = 2


@pytest.fixture
def coordinator() -> Iterator[Coordinator]:
    with Coordinator(topics={"t": PARTITIONS, "empty": 1}) as found:
        yield found
    fetch.close_clusters()


def produce(coordinator: Coordinator, count: int) -> None:
    producer = KafkaProducer(bootstrap_servers=coordinator.bootstrap)
    for number in range(count):
        producer.send("t", b"%d" % number, partition=number % PARTITIONS)
    producer.flush()
    producer.close()


def given(coordinator: Coordinator, **options: str) -> dict[str, str]:
    return {
        "kafka.bootstrap.servers": coordinator.bootstrap,
        "kafka.group.id": "g",
        "subscribe": "t,empty",
        "startingOffsets": "committed",
    } | options


def read(options: dict[str, str]) -> list[tuple[int, int]]:
    reader = RingleaderBatchReader(options)
    rows: list[tuple[int, int]] = []
    for task in reader.partitions():
        for arrow in reader.read(task):
            rows += zip(arrow["partition"].to_pylist(), arrow["offset"].to_pylist(), strict=True)
    return sorted(rows)


def group_offsets(coordinator: Coordinator) -> GroupCoordinator:
    host, port = coordinator.bootstrap.split(":")
    return GroupCoordinator(Endpoint(((host, int(port)),)), "g", 10)


def test_reads_follow_one_another_by_commits(coordinator: Coordinator) -> None:
    produce(coordinator, 10)
    first = plan_read(given(coordinator))
    assert first.rows == 10
    produce(coordinator, 4)
    # The ranges are fixed: what came since is not in them.
    assert read(dict(first.options)) == [(p, n) for p in (0, 1) for n in range(5)]
    first.commit()
    with group_offsets(coordinator) as group:
        offsets = {tp: found.offset for tp, found in group.fetch([("t", 0), ("t", 1), ("empty", 0)]).items()}
        assert offsets == {("t", 0): 5, ("t", 1): 5, ("empty", 0): 0}
    assert read(given(coordinator)) == [(p, n) for p in (0, 1) for n in (5, 6)]
    second = plan_read(given(coordinator))
    second.commit()
    assert plan_read(given(coordinator)).rows == 0
    assert read(dict(plan_read(given(coordinator)).options)) == []


def test_nothing_is_committed_when_somebody_else_went_on(coordinator: Coordinator) -> None:
    produce(coordinator, 4)
    ours, theirs = plan_read(given(coordinator)), plan_read(given(coordinator, subscribe="t"))
    theirs.commit()
    with pytest.raises(SourceError, match="changed meanwhile for t-0, t-1; nothing is committed"):
        ours.commit()


def test_a_plan_shows_no_password() -> None:
    security = {"kafka.sasl.password": "hush", "kafka.sasl.username": "u"}
    parsed = batch_options(
        {"kafka.bootstrap.servers": "x:1", "subscribe": "t", "kafka.security.protocol": "SASL_SSL"}
        | {"kafka.sasl.mechanism": "PLAIN"}
        | security
    )
    planned = PlannedRead("g", {}, security, {}, parsed.coordinators, 1.0)
    assert "hush" not in repr(planned)
    assert planned.options == security


def test_a_group_with_members_takes_no_commit_from_outside(coordinator: Coordinator) -> None:
    produce(coordinator, 4)
    planned = plan_read(given(coordinator))
    member: SyncGroupMember = sync_consumer_member(coordinator.bootstrap, "g", ["t"])
    member.start()
    try:
        member.wait_assigned(10)
        with pytest.raises(SourceError, match="group g has members, so nobody else can commit for it"):
            planned.commit()
    finally:
        member.leave("done")


def test_a_plan_needs_a_group_and_something_to_read(coordinator: Coordinator) -> None:
    without = {name: value for name, value in given(coordinator).items() if name != "kafka.group.id"}
    with pytest.raises(OptionsError, match=r"plan_read needs kafka\.group\.id"):
        plan_read(without | {"startingOffsets": "earliest"})
    bare = {name: value for name, value in given(coordinator).items() if name != "subscribe"}
    with pytest.raises(SourceError, match="no partition of topics like x"):
        plan_read(bare | {"subscribePattern": "x.*"})


def test_a_coordinator_that_cannot_be_had_is_a_sentence() -> None:
    with (
        GroupCoordinator(Endpoint((("127.0.0.1", 1),)), "g", 0.05) as group,
        pytest.raises(SourceError, match=r"coordinator of group g could not be had .*cannot connect"),
    ):
        group.fetch([("t", 0)])
