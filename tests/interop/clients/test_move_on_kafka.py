"""`ringleader advise --protocol consumer` on Apache Kafka and on the daemon: groups of real clients move, or
do not, as it says."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer

from ringleader.clients.admin import Admin
from ringleader.clients.connection.cluster import Cluster
from ringleader.protocol.embedded import Assignment
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import SyncGroupRequestAssignment
from tests.interop.clients.rolled import Seen, member
from tests.interop.clients.test_consumer_protocol_on_kafka import OPTIONS, PROPERTIES
from tests.interop.clients.test_group_consumer_on_kafka import PARTITIONS, Log
from tests.interop.clients.test_migration_on_kafka import Desk, settled
from tests.interop.kafka import KafkaBroker
from tests.support.command import run_command
from tests.support.consuming import until
from tests.support.daemon import Daemon

DELAY, SESSION_MIN = "group.initial.rebalance.delay.ms", "group.consumer.min.session.timeout.ms"

pytestmark = pytest.mark.xdist_group("kafka-move")


@contextlib.contextmanager
def running(kind: str, directory: Path, **more: str) -> Iterator[KafkaBroker | Daemon]:
    """Its groups form at once. `more`: settings, with `_` for `.`."""
    settings = {DELAY: "0", SESSION_MIN: PROPERTIES[SESSION_MIN]}
    settings |= {name.replace("_", "."): value for name, value in more.items()}
    if kind == "kafka":
        with KafkaBroker(directory / "broker", properties=PROPERTIES | settings) as broker:
            yield broker
    else:
        given = [(f"--{name.replace('.', '-')}", value) for name, value in settings.items()]
        with Daemon(directory, options=[*OPTIONS, *(part for pair in given for part in pair)]) as daemon:
            yield daemon


@pytest.fixture(scope="module", params=["kafka", "ringleader"])
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaBroker | Daemon]:
    with running(request.param, tmp_path_factory.mktemp(request.param)) as found:
        yield found


@pytest.fixture
async def log(broker: KafkaBroker | Daemon, group: str) -> AsyncIterator[Log]:
    topic = re.sub(r"[^A-Za-z0-9._-]", "-", group)
    async with Admin(broker.bootstrap) as admin:
        await admin.create_topic(topic, PARTITIONS)
        yield Log(broker.bootstrap, topic)
        await admin.delete_topics([topic])


def advised(bootstrap: str, history: Path, *arguments: str) -> list[dict[str, Any]]:
    done = run_command(
        bootstrap,
        *("advise", "--protocol", "consumer", "--json", "--history", str(history)),
        *("--bootstrap-server", bootstrap, *arguments),
    )
    assert done.code == 0, done.err
    found: list[dict[str, Any]] = json.loads(done.out)["groups"]
    return found


def points(move: dict[str, Any]) -> set[tuple[str, str]]:
    return {(one["about"], one["weight"]) for one in move["points"]}


async def test_a_group_that_can_move_is_rolled_in_fact(
    broker: KafkaBroker | Daemon, log: Log, group: str, tmp_path: Path
) -> None:
    """librdkafka and aiokafka, both in the classic protocol; then librdkafka's place is taken by one of the
    other."""
    seen: Seen = []
    where = log.bootstrap, group, log.topic, seen
    history = tmp_path / "history.sqlite"

    async def move() -> dict[str, Any]:
        (found,) = await asyncio.to_thread(advised, log.bootstrap, history, group)
        return found

    async with Cluster(log.bootstrap) as cluster, contextlib.AsyncExitStack() as stays:
        await stays.enter_async_context(member("aiokafka", "classic", *where))
        async with contextlib.AsyncExitStack() as goes:
            await goes.enter_async_context(member("librdkafka", "classic", *where))
            await log.write(100)
            await until(lambda: len(seen) >= 100)
            await settled(cluster, group, "Stable")
            before = await move()
        await settled(cluster, group, "Stable")
        await stays.enter_async_context(member("librdkafka", "consumer", *where))
        await log.write(100)
        await until(lambda: len(seen) >= 200)
        assert await settled(cluster, group, "Stable") == ("consumer", 1)
        after = await move()
    assert before["way"] == "online"
    libraries = {one["text"].split(",")[0] for one in before["points"] if one["about"] == "clients"}
    assert {one.split(" by ")[0] for one in libraries} == {"1 member"}
    assert any(one.startswith("1 member by aiokafka ") for one in libraries)
    assert "1 member by librdkafka" in libraries
    (timeouts,) = [one for one in before["points"] if one["about"] == "timeouts"]
    # The broker's are 3 s; members ask for 10 s, which a configuration of the group may give them.
    assert "Members ask for 10 s" in timeouts["text"]
    assert ("consumer.session.timeout.ms", "10000") in {
        (one["setting"], one["value"]) for one in timeouts["changes"]
    }
    assert before["saving"]["policy"] == "the consumer protocol"
    assert after["way"] == "speaks it"
    assert "1 member of it is still to move" in after["text"]
    assert any(one["about"] == "clients" and "aiokafka" in one["text"] for one in after["points"])


async def test_user_data_of_an_assignor_keeps_a_group_as_it_is(log: Log, group: str, tmp_path: Path) -> None:
    async with Admin(log.bootstrap) as admin, Cluster(log.bootstrap) as cluster:
        (topic,) = await admin.describe_topics([log.topic])
        await settled(cluster, group)  # the first group makes the cluster create its topic for them
        desk = Desk(cluster, group, log.topic, topic.id)
        member_id = (await desk.joins("")).member_id
        joined = await desk.joins(member_id)
        given = SyncGroupRequestAssignment(member_id, Assignment({log.topic: [0]}, b"its own").encode())
        assert (await desk.syncs(member_id, joined.generation_id, assignments=[given])).error_code == 0
        (move,) = await asyncio.to_thread(advised, log.bootstrap, tmp_path / "h.sqlite", group)
        assert move["way"] == "without members"
        assert ("user data", "stops an online move") in points(move)
        assert (await desk.modern("new", 0)).error_code == ErrorCode.GROUP_ID_NOT_FOUND
        assert await desk.leaves(member_id) == 0
        assert (await desk.modern("new", 0)).error_code == 0
        (after,) = await asyncio.to_thread(advised, log.bootstrap, tmp_path / "h.sqlite", group)
        assert after["way"] == "speaks it"


@pytest.mark.parametrize("kind", ["kafka", "ringleader"])
async def test_all_groups_where_the_policy_forbids_it(kind: str, tmp_path: Path) -> None:
    with running(kind, tmp_path, group_consumer_migration_policy="disabled") as broker:
        async with Admin(broker.bootstrap) as admin:
            await admin.create_topic("orders", 2)
            await admin.set_group_offsets("by-hand", {("orders", 0): 1})
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "billing"})
        consumer.subscribe(["orders"])
        await until(lambda: consumer.poll(0.1) is None and bool(consumer.assignment()))
        try:
            found = await asyncio.to_thread(advised, broker.bootstrap, tmp_path / "h.sqlite")
        finally:
            consumer.close()
    moves = {one["group"]: one for one in found}
    assert moves["billing"]["way"] == "without members"
    assert ("cluster", "stops an online move") in points(moves["billing"])
    assert moves["by-hand"]["way"] == "without members"
    assert ("type", "changes") in points(moves["by-hand"])
