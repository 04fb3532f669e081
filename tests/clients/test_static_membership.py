"""GroupMember with a group instance id against the real daemon (KIP-345)."""

from __future__ import annotations

from ringleader.clients.errors import FencedInstanceIdError
from ringleader.clients.model import OffsetAndMetadata
from ringleader.testing.coordinator import Coordinator
from tests.support.sharding import PATIENCE_S, SHARDS, Diary, member, settled, shards


async def test_static_members_restart_without_a_rebalance(coordinator: Coordinator) -> None:
    one = member(coordinator, group_instance_id="i-1")
    await one.start()
    await one.wait_assigned(PATIENCE_S)
    async with member(coordinator, group_instance_id="i-2") as two:
        before = await settled(one, two)
        while len(shards(before[1])) != SHARDS // 2:
            before = await settled(one, two)
        assert one.is_leader
        await one.stop()
        async with member(coordinator, group_instance_id="i-1") as again:
            share = await again.wait_assigned(PATIENCE_S)
            assert share.generation == before[0].generation
            assert share.assignment == before[0].assignment
            assert share.member_id != before[0].member_id
            assert again.is_leader
            assert two.assigned == before[1]
            await again.commit({("t", 0): 7})
            assert await two.committed([("t", 0)]) == {("t", 0): OffsetAndMetadata(7)}


async def test_a_second_member_of_the_same_instance_fences_the_first(coordinator: Coordinator) -> None:
    diary = Diary()
    async with member(coordinator, diary, group_instance_id="i-1") as one:
        await one.wait_assigned(PATIENCE_S)
        async with member(coordinator, group_instance_id="i-1") as two:
            await two.wait_assigned(PATIENCE_S)
            await diary.until(FencedInstanceIdError)
            assert isinstance(one.error, FencedInstanceIdError)
