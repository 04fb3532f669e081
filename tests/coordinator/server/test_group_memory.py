"""The memory of all groups has a bound together (`group.metadata.max.bytes`), and no client takes another
one's place in it."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from ringleader.coordinator.consumer_groups.topics import Topic
from ringleader.coordinator.groups.core import MEMORY_FULL
from ringleader.coordinator.groups.memory import LEAST_BYTES
from ringleader.coordinator.server.handlers import consumer_groups
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    ConsumerGroupHeartbeatRequest,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    LeaveGroupRequestMemberIdentity,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from tests.support.groupclient import JOIN_VERSION, form, join_request
from tests.support.served import serving

GROUPS = 400
OFFER_BYTES = 20_000
LIMIT_BYTES = 4_194_304


def large_join(group_id: str) -> JoinGroupRequest:
    """Of a member that offers much."""
    offer = JoinGroupRequestProtocol(name="range", metadata=bytes(OFFER_BYTES))
    return replace(join_request(group_id), protocols=[offer])


async def test_one_client_with_many_groups_is_refused_and_the_group_of_another_goes_on() -> None:
    async with (
        serving(group_metadata_max_bytes=LIMIT_BYTES) as served,
        served.connect() as hog,
        served.connect() as other,
    ):
        member = await form(other, "others")
        joined = {
            number: await hog.call(large_join(f"group-{number}"), JOIN_VERSION) for number in range(GROUPS)
        }
        codes = Counter(answer.error_code for answer in joined.values())
        assert set(codes) == {0, ErrorCode.GROUP_MAX_SIZE_REACHED}
        memory = served.runtime.memory
        assert LIMIT_BYTES - 2 * (OFFER_BYTES + LEAST_BYTES) < memory.counted <= LIMIT_BYTES
        [line] = [line for line in served.events(MEMORY_FULL) if line["level"] == "warning"]
        assert line["group_id"] == f"group-{codes[0]}"
        listed = {group.group_id for shard in served.runtime.shards for group in shard.figures()}
        assert len(listed) == 1 + codes[0], "a group that was refused is not made"

        assert (await other.call(member.heartbeat(), 3)).error_code == 0
        again = await other.call(join_request("others", member.member_id), JOIN_VERSION)
        assert again.error_code == 0
        assignment = bytes(LEAST_BYTES // 2)
        sync = SyncGroupRequest(
            "others",
            again.generation_id,
            member.member_id,
            assignments=[SyncGroupRequestAssignment(member.member_id, assignment)],
        )
        synced = await other.call(sync, 3)
        assert (synced.error_code, synced.assignment) == (0, assignment)

        for number in range(codes[0]):
            leaving = [LeaveGroupRequestMemberIdentity(member_id=joined[number].member_id)]
            await hog.call(LeaveGroupRequest(f"group-{number}", members=leaving), 3)
        assert memory.counted < LIMIT_BYTES // 10
        assert (await hog.call(large_join("later"), JOIN_VERSION)).error_code == 0


async def test_an_assignment_that_there_is_no_memory_for_is_refused_and_the_group_stays() -> None:
    async with serving(group_metadata_max_bytes=1_048_576) as served, served.connect() as client:
        member = await form(client, "group")
        before = served.runtime.memory.counted
        again = await client.call(join_request("group", member.member_id), JOIN_VERSION)
        assignments = [SyncGroupRequestAssignment(member.member_id, bytes(1_048_576))]
        sync = SyncGroupRequest("group", again.generation_id, member.member_id, assignments=assignments)
        assert (await client.call(sync, 3)).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
        assert served.runtime.memory.counted == before
        assert len(served.events(MEMORY_FULL)) == 1
        rejoined = await client.call(join_request("group", member.member_id), JOIN_VERSION)
        assert rejoined.error_code == 0


async def test_a_shard_that_goes_gives_back_what_its_groups_held() -> None:
    async with serving(acquired=range(50)) as served, served.connect() as client:
        await form(client, "stays")
        stays = served.runtime.memory.counted
        await form(client, "goes")
        both = served.runtime.memory.counted
        assert (stays, both) == (2 * LEAST_BYTES, 4 * LEAST_BYTES)
        partition = served.runtime.partition_of("goes")
        assert partition != served.runtime.partition_of("stays")
        for _ in range(2):
            await served.runtime.release(partition)
            assert served.runtime.memory.counted == stays
            await served.runtime.acquire(partition)
            assert served.runtime.memory.counted == both


async def test_groups_of_the_consumer_protocol_share_the_bound() -> None:
    """One client makes a group after the other, each with a large topic."""
    async with (
        serving(handlers=consumer_groups.register, group_metadata_max_bytes=LIMIT_BYTES) as served,
        served.connect() as hog,
        served.connect() as other,
    ):
        served.runtime.topics.put(Topic("large", b"l" * 16, 1_000))
        member = await form(other, "others")
        request = ConsumerGroupHeartbeatRequest("", "m", 0, rebalance_timeout_ms=30_000)
        request.subscribed_topic_names, request.topic_partitions = ["large"], []
        codes = Counter[int]()
        for number in range(GROUPS):
            answer = await hog.call(replace(request, group_id=f"group-{number}"), 1)
            codes[answer.error_code] += 1
        assert set(codes) == {0, ErrorCode.GROUP_MAX_SIZE_REACHED}
        memory = served.runtime.memory
        assert LIMIT_BYTES * 0.9 < memory.counted <= LIMIT_BYTES
        [line] = [line for line in served.events(MEMORY_FULL) if line["level"] == "warning"]
        assert line["group_id"] == f"group-{codes[0]}"
        assert (await other.call(member.heartbeat(), 3)).error_code == 0
        beat = ConsumerGroupHeartbeatRequest("group-0", "m", 2)
        assert (await hog.call(beat, 1)).error_code == 0
        leave = ConsumerGroupHeartbeatRequest("", "m", -1)
        for number in range(codes[0]):
            await hog.call(replace(leave, group_id=f"group-{number}"), 1)
        assert memory.counted < LIMIT_BYTES // 10
        assert (await hog.call(replace(request, group_id="later"), 1)).error_code == 0
