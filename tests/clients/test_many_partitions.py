"""More partitions than one request may name: clients ask in several, and an outcome is that of all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import pytest

from ringleader import GroupMetadata, Producer
from ringleader.clients.admin import Admin
from ringleader.clients.blocking.endpoint import Endpoint
from ringleader.clients.connection.requests import in_parts
from ringleader.clients.errors import BrokerError
from ringleader.clients.group.subscription import consumer_member
from ringleader.clients.model import OffsetAndMetadata
from ringleader.clients.offsets.requests import COMMIT_BYTES, in_commits
from ringleader.spark_bridge.network.clusters import SourceCluster
from ringleader.spark_bridge.network.coordinator import GroupCoordinator
from ringleader.testing.coordinator import Coordinator
from tests.support.consuming import PATIENCE_S

TOPICS = {"a": 10_000, "b": 10_000, "c": 1_000}
MANY = [(topic, number) for topic, count in TOPICS.items() for number in range(count)]
"""A node closes the connection over a request with more than 20,000 entries."""
NAMES = [f"absent-{number}" for number in range(len(MANY))]
PATIENCE_MS = int(PATIENCE_S * 1000)


@pytest.fixture(scope="module")
def coordinator() -> Iterator[Coordinator]:
    with Coordinator(topics=TOPICS, offsets_topic_num_partitions=5) as found:
        yield found


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_a_member_commits_them(
    coordinator: Coordinator, protocol: Literal["classic", "consumer"]
) -> None:
    wanted = {tp: OffsetAndMetadata(number) for number, tp in enumerate(MANY)}
    async with consumer_member(
        coordinator.bootstrap, f"of-{protocol}", list(TOPICS), group_protocol=protocol
    ) as member:
        await member.wait_assigned(PATIENCE_S)
        await member.commit(wanted, timeout_s=PATIENCE_S)
        assert await member.committed(MANY, timeout_s=PATIENCE_S) == wanted
        wanted[MANY[-1]] = OffsetAndMetadata(0, "m" * 5_000)
        with pytest.raises(BrokerError, match="c-999: OFFSET_METADATA_TOO_LARGE"):
            await member.commit(wanted, timeout_s=PATIENCE_S)


async def test_an_admin_sets_shows_and_deletes_them(coordinator: Coordinator) -> None:
    async with Admin(coordinator.bootstrap, timeout_ms=PATIENCE_MS) as admin:
        await admin.set_group_offsets("set", dict.fromkeys(MANY, 3))
        found = await admin.group_offsets("set", MANY)
        assert {tp: one.offset for tp, one in found.items()} == dict.fromkeys(MANY, 3)
        assert await admin.group_offsets("set", [(name, 0) for name in NAMES]) == {}
        await admin.delete_group_offsets("set", MANY)
        assert await admin.group_offsets("set") == {}


async def test_a_client_looks_for_as_many_topics(coordinator: Coordinator) -> None:
    async with Admin(coordinator.bootstrap, timeout_ms=PATIENCE_MS) as admin:
        known = (await admin._metadata([*NAMES, *TOPICS])).topics
        assert {name: len(known[name].partitions) for name in TOPICS} == TOPICS
        assert len(known) == len(NAMES) + len(TOPICS)


async def test_a_transaction_takes_their_offsets(coordinator: Coordinator) -> None:
    async with (
        Producer(coordinator.bootstrap, transactional_id="x") as producer,
        Admin(coordinator.bootstrap, timeout_ms=PATIENCE_MS) as admin,
    ):
        async with producer.transaction():
            offsets = dict.fromkeys(MANY, 4)
            await producer.send_offsets_to_transaction(offsets, GroupMetadata("in-transaction"))
        found = await admin.group_offsets("in-transaction", MANY)  # waits for the end of the transaction
        assert {tp: one.offset for tp, one in found.items()} == offsets


def test_spark_commits_and_lists_them(coordinator: Coordinator) -> None:
    host, port = coordinator.bootstrap.split(":")
    endpoint = Endpoint(((host, int(port)),))
    with GroupCoordinator(endpoint, "of-spark", PATIENCE_S) as group:
        group.commit(dict.fromkeys(MANY, 5))
        assert {tp: one.offset for tp, one in group.fetch(MANY).items()} == dict.fromkeys(MANY, 5)
    cluster = SourceCluster(endpoint)
    try:
        assert len(cluster.refresh([*NAMES, *TOPICS])) == len(NAMES)
        assert cluster.partitions(TOPICS) == MANY
    finally:
        cluster.close()


def test_a_commit_is_no_larger_than_a_broker_writes_at_once() -> None:
    offsets = {("t" * 249, number): OffsetAndMetadata(number, "ü" * 2_000) for number in range(400)}
    parts = list(in_commits("g" * 100, offsets))
    assert {tp: one for part in parts for tp, one in part.items()} == offsets
    sizes = [len(part) * (4_000 + 249 + 100) for part in parts]
    assert COMMIT_BYTES * 0.9 < max(sizes) <= COMMIT_BYTES
    assert list(in_commits("g", {("t", 0): 7})) == [{("t", 0): 7}]
    assert list(in_commits("g", {})) == []
    alone = {("t", 0): OffsetAndMetadata(0, "m" * COMMIT_BYTES)}  # which a broker refuses
    assert list(in_commits("g", alone)) == [alone]


def test_what_is_asked_in_parts_is_asked_at_least_once() -> None:
    assert list(in_parts([])) == [[]]
    assert list(in_parts(range(4), 2)) == [[0, 1], [2, 3]]
    assert list(in_parts(range(5), 2)) == [[0, 1], [2, 3], [4]]
