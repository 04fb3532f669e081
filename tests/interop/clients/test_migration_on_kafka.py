"""Groups that change their protocol online, on Apache Kafka and on the daemon: the same answers, and clients
of four libraries that are rolled there and back while records are written."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from typing import Any, Literal

import pytest

from ringleader.clients.admin import Admin
from ringleader.clients.connection.cluster import Cluster
from ringleader.clients.connection.requests import plain
from ringleader.clients.errors import CoordinatorUnavailableError
from ringleader.protocol.embedded import Assignment, Subscription
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    LeaveGroupRequestMemberIdentity,
    ListGroupsRequest,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from tests.interop.clients.rolled import LIBRARIES, Seen, member
from tests.interop.clients.test_consumer_protocol_on_kafka import OPTIONS, PROPERTIES
from tests.interop.clients.test_group_consumer_on_kafka import PARTITIONS, Log
from tests.interop.kafka import KafkaBroker
from tests.support.consuming import PATIENCE_S, until
from tests.support.daemon import Daemon

PROTOCOLS: tuple[Literal["consumer", "classic"], ...] = ("consumer", "classic")

pytestmark = pytest.mark.xdist_group("kafka-migration")


@pytest.fixture(scope="module", params=["kafka", "ringleader"])
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KafkaBroker | Daemon]:
    """Its groups form at once."""
    directory, delay = tmp_path_factory.mktemp(request.param), "group.initial.rebalance.delay.ms"
    if request.param == "kafka":
        with KafkaBroker(directory / "broker", properties={**PROPERTIES, delay: "0"}) as running:
            yield running
    else:
        with Daemon(directory, options=[*OPTIONS, f"--{delay.replace('.', '-')}", "0"]) as running_daemon:
            yield running_daemon


@pytest.fixture
async def log(broker: KafkaBroker | Daemon, group: str) -> AsyncIterator[Log]:
    topic = re.sub(r"[^A-Za-z0-9._-]", "-", group)
    async with Admin(broker.bootstrap) as admin:
        await admin.create_topic(topic, PARTITIONS)
        yield Log(broker.bootstrap, topic)
        await admin.delete_topics([topic])


# ---- clients ----


async def settled(cluster: Cluster, group: str, *states: str) -> tuple[str, int]:
    """Wait until the group is in one of these states; its type, and the number of its members that speak the
    consumer protocol."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            with contextlib.suppress(CoordinatorUnavailableError):
                node = await cluster.coordinator(group)
                found = await cluster.send(node, plain(ListGroupsRequest()))
                (state, kind), *_ = [
                    *((one.group_state, one.group_type) for one in found.groups if one.group_id == group),
                    ("", ""),
                ]
                answer = await cluster.send(node, plain(HeartbeatRequest(group, 0, "nobody")))
                known = answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID
                if known and (not states or state in states):
                    described = await cluster.send(node, plain(ConsumerGroupDescribeRequest([group])))
                    return kind, sum(one.member_type == 1 for one in described.groups[0].members)
            await asyncio.sleep(0.05)


async def test_a_group_is_rolled_there_and_back_under_traffic(log: Log, group: str) -> None:
    """One member after the other is replaced by one of the other protocol; no record is lost or doubled."""
    seen: Seen = []
    where = log.bootstrap, group, log.topic, seen
    total = 0

    async def write() -> None:
        nonlocal total
        await log.write(200)
        total += 200

    async def all_read() -> None:
        await until(lambda: len(seen) >= total)

    async with Cluster(log.bootstrap) as cluster, contextlib.AsyncExitStack() as everything:
        stacks = {}
        for library in LIBRARIES:
            stacks[library] = await everything.enter_async_context(contextlib.AsyncExitStack())
            await stacks[library].enter_async_context(member(library, "classic", *where))
            await write()
        await all_read()
        for protocol in PROTOCOLS:
            for place, library in enumerate(LIBRARIES):
                await write()
                await stacks[library].aclose()
                await settled(cluster, group, "Stable")
                await stacks[library].enter_async_context(member(library, protocol, *where))
                await write()
                await all_read()
                modern = place + 1 if protocol == "consumer" else len(LIBRARIES) - place - 1
                wanted = "consumer" if modern else "classic", modern
                async with asyncio.timeout(PATIENCE_S):
                    while await settled(cluster, group, "Stable") != wanted:
                        pass
    counts = Counter(seen)
    each = total // PARTITIONS
    assert counts.keys() == {(number, offset) for number in range(PARTITIONS) for offset in range(each)}
    assert [place for place, count in counts.items() if count > 1] == []


# ---- the same answers ----


class Desk:
    """Requests as a client of either protocol sends them."""

    def __init__(self, cluster: Cluster, group: str, topic: str, topic_id: bytes) -> None:
        self.cluster, self.group = cluster, group
        self.topic, self.topic_id = topic, topic_id

    async def ask(self, request: Any) -> Any:
        return await self.cluster.send(await self.cluster.coordinator(self.group), plain(request))

    async def joins(self, member_id: str, owned: list[int] | None = None, **more: Any) -> Any:
        partitions = {self.topic: owned} if owned else {}
        metadata = more.pop("metadata", Subscription([self.topic], owned_partitions=partitions).encode())
        request = JoinGroupRequest(self.group, 10_000, 30_000, member_id, protocol_type="consumer")
        request.protocols = [JoinGroupRequestProtocol(one, metadata) for one in more.pop("names", ("range",))]
        for name, value in more.items():
            setattr(request, name, value)
        return await self.ask(request)

    async def syncs(self, member_id: str, generation: int, **more: Any) -> Any:
        request = SyncGroupRequest(self.group, generation, member_id, None, "consumer", "range")
        for name, value in more.items():
            setattr(request, name, value)
        return await self.ask(request)

    async def has(self, member_id: str, generation: int) -> list[int]:
        response = await self.syncs(member_id, generation)
        assert response.error_code == 0
        return sorted(Assignment.decode(response.assignment).partitions.get(self.topic, []))

    async def beats(self, member_id: str, generation: int, instance_id: str | None = None) -> int:
        request = HeartbeatRequest(self.group, generation, member_id, instance_id)
        return int((await self.ask(request)).error_code)

    async def leaves(self, member_id: str, instance_id: str | None = None) -> int:
        leaving = LeaveGroupRequestMemberIdentity(member_id, instance_id)
        response = await self.ask(LeaveGroupRequest(self.group, members=[leaving]))
        return int(response.members[0].error_code)

    async def modern(self, member_id: str, epoch: int, owned: list[int] | None = None, **more: Any) -> Any:
        request = ConsumerGroupHeartbeatRequest(self.group, member_id, epoch)
        if epoch == 0:
            request.rebalance_timeout_ms, request.topic_partitions = 30_000, []
            request.subscribed_topic_names = [self.topic]
        if owned is not None:
            topic = ConsumerGroupHeartbeatRequestTopicPartitions(self.topic_id, owned)
            request.topic_partitions = [topic] if owned else []
        for name, value in more.items():
            setattr(request, name, value)
        return await self.ask(request)

    async def classic_member(self) -> str:
        """A group of one classic member with all partitions, in generation 1; its id."""
        member_id = (await self.joins("")).member_id
        joined = await self.joins(member_id)
        assert (joined.error_code, joined.generation_id) == (0, 1)
        given = SyncGroupRequestAssignment(member_id, Assignment({self.topic: [0, 1, 2, 3]}).encode())
        assert (await self.syncs(member_id, 1, assignments=[given])).error_code == 0
        return str(member_id)


@pytest.fixture
async def desk(log: Log, group: str) -> AsyncIterator[Desk]:
    async with Cluster(log.bootstrap) as cluster:
        metadata = await cluster.metadata([log.topic])
        topic_id = metadata.topics[log.topic].id
        await settled(cluster, group)  # the first group makes the cluster create its topic for them
        first = Desk(cluster, f"{group}-first", log.topic, topic_id)
        await settled(cluster, first.group)
        async with asyncio.timeout(PATIENCE_S):  # until the coordinator knows the topic
            while len(given(await first.modern("a", 0)) or []) < PARTITIONS:
                await first.modern("a", -1)
        yield Desk(cluster, group, log.topic, topic_id)


def given(response: Any) -> list[int] | None:
    """The partitions that a heartbeat of the consumer protocol gives."""
    if response.assignment is None:
        return None
    return sorted(one for topic in response.assignment.topic_partitions for one in topic.partitions)


async def test_an_upgrade_step_by_step(desk: Desk) -> None:
    old = await desk.classic_member()
    new = await desk.modern("new", 0)
    assert (new.error_code, new.member_epoch, given(new)) == (0, 2, [])
    assert await desk.beats(old, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert (await desk.syncs(old, 1)).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    joined = await desk.joins(old, [0, 1, 2, 3])
    assert (joined.error_code, joined.generation_id, joined.leader, joined.members) == (0, 1, "", [])
    assert (joined.protocol_type, joined.protocol_name) == ("consumer", "range")
    kept = await desk.has(old, 1)
    assert len(kept) == 2
    assert await desk.beats(old, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert given(await desk.modern("new", 2)) is None
    assert (await desk.joins(old, kept)).generation_id == 2
    assert await desk.has(old, 2) == kept
    assert await desk.beats(old, 2) == 0
    assert sorted(kept + (given(await desk.modern("new", 2)) or [])) == [0, 1, 2, 3]
    # And back.
    assert (await desk.modern("new", -1)).error_code == 0
    assert await desk.beats(old, 2) == ErrorCode.REBALANCE_IN_PROGRESS
    joined = await desk.joins(old, kept)
    assert (joined.error_code, joined.generation_id, joined.leader) == (0, 3, old)


async def test_errors_in_a_mixed_group(desk: Desk) -> None:
    old = await desk.classic_member()
    await desk.modern("new", 0)
    generation = (await desk.joins(old)).generation_id
    assert generation == 2
    await desk.has(old, 2)
    fresh = await desk.joins("")
    assert (fresh.error_code, fresh.generation_id) == (ErrorCode.MEMBER_ID_REQUIRED, -1)
    assert fresh.member_id
    assert await desk.leaves(fresh.member_id) == ErrorCode.UNKNOWN_MEMBER_ID
    joins: list[tuple[dict[str, Any], ErrorCode]] = [
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"names": ("other",)}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"names": ()}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"metadata": b"\0"}, ErrorCode.UNKNOWN_SERVER_ERROR),
        ({"group_instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ]
    for more, error in joins:
        refused = await desk.joins("somebody", **more)
        assert (refused.error_code, refused.member_id) == (error, ""), more
    syncs: list[tuple[str, int, dict[str, Any], ErrorCode]] = [
        ("nobody", 2, {}, ErrorCode.UNKNOWN_MEMBER_ID),
        ("new", 2, {}, ErrorCode.UNKNOWN_MEMBER_ID),
        (old, 2, {"group_instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
        (old, 1, {"protocol_name": "x"}, ErrorCode.ILLEGAL_GENERATION),
        (old, 2, {"protocol_name": "x"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        (old, 2, {"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ]
    for member_id, number, more, error in syncs:
        assert (await desk.syncs(member_id, number, **more)).error_code == error, (member_id, more)
    assert await desk.beats("nobody", 2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert await desk.beats("new", 2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert await desk.beats(old, 1) == ErrorCode.ILLEGAL_GENERATION
    assert await desk.leaves("", "i") == ErrorCode.UNKNOWN_MEMBER_ID
    assert await desk.leaves("new") == 0


async def test_static_members_change_their_protocol_in_their_place(desk: Desk) -> None:
    old = await desk.classic_member()
    new = await desk.modern("new", 0, instance_id="i")
    assert new.member_epoch == 2
    assert (await desk.joins(old)).generation_id == 2
    kept = await desk.has(old, 2)
    had = given(await desk.modern("new", 2, instance_id="i")) or []
    assert sorted(kept + had) == [0, 1, 2, 3]
    assert (await desk.modern("newer", 0, instance_id="i")).error_code == ErrorCode.UNRELEASED_INSTANCE_ID
    assert (await desk.modern("new", -2, instance_id="i")).error_code == 0
    # All others are classic members, and nobody has to move: the group is a classic one, without a rebalance.
    back = await desk.joins("", group_instance_id="i")
    assert (back.error_code, back.generation_id) == (0, 2)
    assert await desk.has(back.member_id, 2) == had
    assert await desk.beats(old, 2) == 0
    assert (await settled(desk.cluster, desk.group))[0] == "classic"
    again = await desk.modern("newest", 0, instance_id="i")
    assert (again.error_code, given(again)) == (0, had)
    assert await desk.beats(back.member_id, 2, "i") == ErrorCode.FENCED_INSTANCE_ID
    assert await desk.beats(old, 2) == 0
