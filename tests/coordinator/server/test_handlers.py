"""The server's additions to the group machine: topic checks, several groups in a request, older forms."""

from __future__ import annotations

import asyncio

import pytest

from ringleader.coordinator.groups.routing import partition_for
from ringleader.coordinator.nodes import NodeAddress
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    SyncGroupRequest,
)
from tests.support.groupclient import form
from tests.support.memory_store import MemoryStorage
from tests.support.served import Client, serving

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


# ---- FindCoordinator ----


@pytest.mark.parametrize(("version", "key_type"), [(0, 0), (1, 0), (1, 1), (2, 0), (2, 1), (3, 0), (3, 1)])
async def test_this_node_coordinates_everything(version: int, key_type: int) -> None:
    async with serving() as served, served.connect() as client:
        request = FindCoordinatorRequest(key="group", key_type=key_type)
        answer = await client.call(request, version)
        assert (answer.error_code, answer.node_id) == (0, 7)
        assert (answer.host, answer.port) == ("advertised.example", 9_092)
        assert version == 0 or answer.error_message == "NONE"


async def test_several_coordinators_are_found_in_the_order_of_the_request() -> None:
    async with serving() as served, served.connect() as client:
        answer = await client.call(FindCoordinatorRequest(coordinator_keys=["b", "a", "b"]), 4)
        assert [one.key for one in answer.coordinators] == ["b", "a", "b"]
        assert {(one.node_id, one.port, one.error_code) for one in answer.coordinators} == {(7, 9_092, 0)}


class TwoNodes:
    """Node 3 has partition 0, nobody the others."""

    async def mapped(self) -> None:
        pass

    def through(self, _listener: str) -> TwoNodes:
        return self

    def owner(self, partition: int) -> NodeAddress | None:
        return self.nodes()[0] if partition == 0 else None

    def nodes(self) -> list[NodeAddress]:
        return [NodeAddress(3, "three.example", 9_093), NodeAddress(5, "five.example", 9_095)]


@pytest.mark.parametrize("version", [0, 3, 4])
async def test_of_several_nodes_the_owner_of_the_groups_partition_is_named(version: int) -> None:
    async with serving(directory=TwoNodes()) as served, served.connect() as client:

        async def find(key: str, key_type: int = 0) -> tuple[int, str, int, int]:
            request = FindCoordinatorRequest(key_type=key_type)
            if version < 4:
                request.key = key
                one = await client.call(request, version)
            else:
                request.coordinator_keys = [key]
                [one] = (await client.call(request, version)).coordinators
            return one.node_id, one.host, one.port, one.error_code

        assert partition_for("g12") != 0
        assert await find("g12") == (-1, "", -1, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        [mine] = [name for name in map("g{}".format, range(100)) if partition_for(name) == 0][:1]
        assert await find(mine) == (3, "three.example", 9_093, 0)
        if version:
            assert {await find(f"t{number}", 1) for number in range(9)} == {
                (3, "three.example", 9_093, 0),
                (5, "five.example", 9_095, 0),
            }


@pytest.mark.parametrize("version", [1, 4])
async def test_unknown_type_of_coordinator_is_refused(version: int) -> None:
    async with serving() as served, served.connect() as client:
        request = FindCoordinatorRequest(key_type=9)
        if version == 1:
            request.key = "k"
        else:
            request.coordinator_keys = ["k"]
        answer = await client.call(request, version)
        one = answer if version == 1 else answer.coordinators[0]
        assert (one.error_code, one.node_id, one.host, one.port) == (ErrorCode.INVALID_REQUEST, -1, "", -1)


# ---- groups ----


@pytest.mark.parametrize("version", range(5))
async def test_heartbeat_in_all_versions(version: int) -> None:
    async with serving() as served, served.connect() as client:
        member = await form(client, "group")
        for _ in range(2):
            assert (await client.call(member.heartbeat(), version)).error_code == 0
        stranger = HeartbeatRequest(group_id="group", generation_id=1, member_id="stranger")
        assert (await client.call(stranger, version)).error_code == ErrorCode.UNKNOWN_MEMBER_ID
        nobody = HeartbeatRequest(group_id="", generation_id=1, member_id="x")
        assert (await client.call(nobody, version)).error_code == ErrorCode.INVALID_GROUP_ID
        assert served.server.routes[12].requests == 4


async def test_sync_without_protocol_names_is_refused_from_v5_on() -> None:
    async with serving() as served, served.connect() as client:
        member = await form(client, "group")
        request = SyncGroupRequest(
            group_id="group", generation_id=member.generation, member_id=member.member_id
        )
        assert (await client.call(request, 5)).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
        request.protocol_type, request.protocol_name = "consumer", "range"
        assert (await client.call(request, 5)).error_code == 0
        assert (await client.call(request, 3)).assignment == b"mine"


async def test_groups_are_listed_described_and_deleted() -> None:
    async with serving() as served, served.connect() as client:
        member = await form(client, "full")
        await client.call(commit("empty", 1), 7)
        listed = await client.call(ListGroupsRequest(), 2)
        assert {one.group_id: one.protocol_type for one in listed.groups} == {"full": "consumer", "empty": ""}
        stable = await client.call(ListGroupsRequest(states_filter=["stable "]), 4)
        assert [(one.group_id, one.group_state) for one in stable.groups] == [("full", "Stable")]

        described = await client.call(DescribeGroupsRequest(groups=["full", "none"]), 5)
        full, none = described.groups
        assert (full.group_state, full.protocol_type, full.protocol_data) == ("Stable", "consumer", "range")
        [one] = full.members
        assert (one.member_id, one.client_id, one.client_host) == (
            member.member_id,
            "client",
            "/127.0.0.1",
        )
        assert (none.group_id, none.group_state, none.error_code) == ("none", "Dead", 0)

        names = ["full", "empty", "none", "empty"]
        deleted = await client.call(DeleteGroupsRequest(groups_names=names), 2)
        assert [(one.group_id, one.error_code) for one in deleted.results] == [
            ("full", ErrorCode.NON_EMPTY_GROUP),
            ("empty", ErrorCode.NONE),
            ("none", ErrorCode.GROUP_ID_NOT_FOUND),
        ]
        leave = LeaveGroupRequest(group_id="full", member_id=member.member_id)
        assert (await client.call(leave, 1)).error_code == 0
        deleted = await client.call(DeleteGroupsRequest(groups_names=["full"]), 1)
        assert deleted.results[0].error_code == 0
        assert (await client.call(ListGroupsRequest(), 3)).groups == []


# ---- OffsetCommit ----


def commit(group_id: str, offset: int, *where: tuple[str, int]) -> OffsetCommitRequest:
    """A commit without a member; of partition 0 of "orders" when no place is given."""
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for topic, partition in where or [("orders", 0)]:
        topics.setdefault(topic, []).append(
            OffsetCommitRequestPartition(
                partition_index=partition, committed_offset=offset, committed_metadata=""
            )
        )
    return OffsetCommitRequest(
        group_id=group_id,
        topics=[
            OffsetCommitRequestTopic(name=name, partitions=list(found)) for name, found in topics.items()
        ],
    )


@pytest.mark.parametrize("version", range(2, 10))
async def test_unknown_topics_and_partitions_are_refused_and_the_rest_is_committed(version: int) -> None:
    async with serving() as served, served.connect() as client:
        places = [("orders", 0), ("orders", 8), ("none", 0), ("orders", -1), ("orders", 7)]
        answer = await client.call(commit("group", 5, *places), version)
        found = {
            (topic.name, one.partition_index): one.error_code
            for topic in answer.topics
            for one in topic.partitions
        }
        assert found == dict(zip(places, [0, UNKNOWN, UNKNOWN, UNKNOWN, 0], strict=True))
        assert len({topic.name for topic in answer.topics}) == len(answer.topics)
        assert await offsets(client, "group") == {("orders", 0): 5, ("orders", 7): 5}


async def test_commit_of_nothing_that_exists_makes_no_group() -> None:
    async with serving() as served, served.connect() as client:
        answer = await client.call(commit("group", 5, ("none", 0)), 7)
        assert answer.topics[0].partitions[0].error_code == UNKNOWN
        assert (await client.call(ListGroupsRequest(), 3)).groups == []


# ---- OffsetFetch ----


async def offsets(client: Client, group_id: str) -> dict[tuple[str, int], int]:
    """Everything that a group has committed."""
    answer = await client.call(OffsetFetchRequest(group_id=group_id, topics=None), 6)
    assert answer.error_code == 0
    return {
        (topic.name, one.partition_index): one.committed_offset
        for topic in answer.topics
        for one in topic.partitions
    }


@pytest.mark.parametrize("version", range(1, 8))
async def test_offsets_of_one_group_in_the_older_forms(version: int) -> None:
    async with serving() as served, served.connect() as client:
        await client.call(commit("group", 5), 7)
        topics = [OffsetFetchRequestTopic(name="orders", partition_indexes=[0, 1])]
        request = OffsetFetchRequest(group_id="group", topics=topics, require_stable=version == 7)
        answer = await client.call(request, version)
        [topic] = answer.topics
        assert topic.name == "orders"
        assert [
            (one.partition_index, one.committed_offset, one.metadata, one.error_code)
            for one in topic.partitions
        ] == [(0, 5, "", 0), (1, -1, "", 0)]
        assert answer.error_code == 0


@pytest.mark.parametrize("version", [8, 9])
async def test_offsets_of_several_groups(version: int) -> None:
    async with serving() as served, served.connect() as client:
        await client.call(commit("one", 5), 7)
        await client.call(commit("two", 6, ("orders", 3)), 7)
        some = [OffsetFetchRequestTopics(name="orders", partition_indexes=[0])]
        groups = [
            OffsetFetchRequestGroup(group_id="two", topics=None),
            OffsetFetchRequestGroup(group_id="none", topics=None),
            OffsetFetchRequestGroup(group_id="one", topics=some),
        ]
        answer = await client.call(OffsetFetchRequest(groups=groups, require_stable=True), version)
        assert [(group.group_id, group.error_code) for group in answer.groups] == [
            ("two", 0),
            ("none", 0),
            ("one", 0),
        ]
        assert answer.groups[0].topics[0].partitions[0].committed_offset == 6
        assert answer.groups[1].topics == []
        assert answer.groups[2].topics[0].partitions[0].committed_offset == 5


async def test_fetch_of_several_groups_waits_for_each_groups_commits() -> None:
    storage = MemoryStorage()
    async with serving(storage) as served, served.connect() as client, served.connect() as reader:
        await client.call(commit("one", 5), 7)
        storage.hold()
        client.send(commit("two", 6), 7)
        groups = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in ("one", "two")]
        while storage.appends < 2:  # noqa: ASYNC110 - the store tells nobody
            await asyncio.sleep(0.001)
        reader.send(OffsetFetchRequest(groups=groups, require_stable=True), 8)
        async with served.connect() as other:
            seen = await other.call(OffsetFetchRequest(groups=groups[:1]), 8)
        assert seen.groups[0].topics[0].partitions[0].committed_offset == 5
        storage.resume()
        answer = (await reader.receive(OffsetFetchRequest, 8))[1]
        assert [group.topics[0].partitions[0].committed_offset for group in answer.groups] == [5, 6]


@pytest.mark.parametrize(("version", "place"), [(1, "partition"), (2, "top"), (7, "top"), (8, "group")])
async def test_error_of_a_fetch_stands_where_its_version_has_a_place(version: int, place: str) -> None:
    async with serving() as served, served.connect() as client:
        await served.runtime.stop()
        topics = [OffsetFetchRequestTopic(name="orders", partition_indexes=[0, 1])]
        groups = [OffsetFetchRequestGroup(group_id="group", topics=None)]
        request = (
            OffsetFetchRequest(groups=groups)
            if version >= 8
            else OffsetFetchRequest(group_id="group", topics=topics)
        )
        answer = await client.call(request, version)
        if place == "partition":
            found = {(one.error_code, one.committed_offset) for one in answer.topics[0].partitions}
            assert found == {(ErrorCode.NOT_COORDINATOR, -1)}
            assert len(answer.topics[0].partitions) == 2
        elif place == "top":
            assert (answer.error_code, answer.topics) == (ErrorCode.NOT_COORDINATOR, [])
        else:
            assert answer.groups[0].error_code == ErrorCode.NOT_COORDINATOR


# ---- OffsetDelete ----


def deletion(group_id: str, *where: tuple[str, int]) -> OffsetDeleteRequest:
    """OffsetDelete of some places."""
    return OffsetDeleteRequest(
        group_id=group_id,
        topics=[
            OffsetDeleteRequestTopic(
                name=topic, partitions=[OffsetDeleteRequestPartition(partition_index=partition)]
            )
            for topic, partition in where
        ],
    )


async def test_offsets_are_deleted_and_unknown_places_are_refused() -> None:
    async with serving() as served, served.connect() as client:
        await client.call(commit("group", 5, ("orders", 0), ("orders", 1)), 7)
        answer = await client.call(deletion("group", ("orders", 0), ("none", 0), ("orders", 99)), 0)
        found = [
            (topic.name, one.partition_index, one.error_code)
            for topic in answer.topics
            for one in topic.partitions
        ]
        assert sorted(found) == [("none", 0, UNKNOWN), ("orders", 0, 0), ("orders", 99, UNKNOWN)]
        assert await offsets(client, "group") == {("orders", 1): 5}


async def test_error_of_the_group_leaves_no_results() -> None:
    async with serving() as served, served.connect() as client:
        answer = await client.call(deletion("nobody", ("orders", 0), ("none", 0)), 0)
        assert (answer.error_code, answer.topics) == (ErrorCode.GROUP_ID_NOT_FOUND, [])
        answer = await client.call(deletion("", ("orders", 0)), 0)
        assert answer.error_code == ErrorCode.INVALID_GROUP_ID
