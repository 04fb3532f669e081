"""Clients that hang up while their JoinGroup waits."""

from __future__ import annotations

from ringleader.protocol.messages import (
    JoinGroupRequest,
    LeaveGroupRequest,
    LeaveGroupRequestMemberIdentity,
    OffsetFetchRequest,
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)
from tests.support.groupclient import JOIN_VERSION, Member, form, join_request
from tests.support.served import Client, Served, serving, until

JOIN_GROUP = JoinGroupRequest.API_KEY


async def two_members(served: Served, first: Client, second: Client) -> tuple[Member, Member]:
    """The first one leads."""
    leader = await form(first, "g")
    second.send(join_request("g"), JOIN_VERSION)
    await until(lambda: served.server.routes[JOIN_GROUP].requests == 2)
    again = await first.call(join_request("g", leader.member_id), JOIN_VERSION)
    joined = (await second.receive(JoinGroupRequest, JOIN_VERSION))[1]
    leader = Member("g", leader.member_id, again.generation_id)
    follower = Member("g", joined.member_id, joined.generation_id)
    for client, member in ((first, leader), (second, follower)):
        shares = [SyncGroupRequestAssignment(m.member_id, b"s") for m in (leader, follower)]
        request = SyncGroupRequest(
            group_id="g",
            generation_id=member.generation,
            member_id=member.member_id,
            assignments=shares if member is leader else [],
        )
        assert (await client.call(request, 3)).error_code == 0
    return leader, follower


async def test_a_goodbye_behind_a_join_that_waits_counts() -> None:
    async with serving() as served, served.connect() as second:
        async with served.connect() as first:
            leader, follower = await two_members(served, first, second)
            first.send(join_request("g", leader.member_id), JOIN_VERSION)
            goodbye = LeaveGroupRequestMemberIdentity(member_id=leader.member_id)
            first.send(LeaveGroupRequest(group_id="g", members=[goodbye]), 3)
            await until(lambda: served.server.routes[JOIN_GROUP].requests == 4)
        await until(lambda: len(served.server.connections) == 1)
        alone = await second.call(join_request("g", follower.member_id), JOIN_VERSION)
        assert (alone.generation_id, alone.leader) == (leader.generation + 1, follower.member_id)
        assert [one.member_id for one in alone.members] == [follower.member_id]


async def test_anything_else_behind_it_is_dropped() -> None:
    async with serving() as served, served.connect() as second:
        async with served.connect() as first:
            leader, follower = await two_members(served, first, second)
            first.send(join_request("g", leader.member_id), JOIN_VERSION)
            first.send(leader.commit(5), 8)
            first.send(LeaveGroupRequest(group_id="g", members=[]), 3)
            await until(lambda: served.server.routes[JOIN_GROUP].requests == 4)
        await until(lambda: len(served.server.connections) == 1)
        both = await second.call(join_request("g", follower.member_id), JOIN_VERSION)
        assert both.leader == leader.member_id
        found = await second.call(OffsetFetchRequest(group_id="g", topics=None), 7)
        assert found.topics == []
        assert [line for line in served.log if line.get("level") == "error"] == []
