"""GroupMember on an Apache Kafka broker: what it promises holds there as it does on our own coordinator."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import pytest

from ringleader.clients.errors import (
    BrokerError,
    CommitFailedError,
    FencedInstanceIdError,
    InconsistentGroupProtocolError,
    InvalidSessionTimeoutError,
    MembershipError,
    MembershipOverError,
    RetriableError,
)
from ringleader.clients.group.membership import GroupMember, SyncGroupMember
from ringleader.clients.group.subscription import consumer_member, partitions_of
from ringleader.clients.model import Assigned, Lost, MemberProtocol, OffsetAndMetadata, Revoked
from tests.interop.clients.team import PARTITIONS, TOPIC
from tests.interop.clients.watch import described
from tests.interop.secured import Door, Secured
from tests.support.sharding import PATIENCE_S, SHARDS, Diary, assign, member, settled, shards


def at(door: Door, group: str, diary: Diary | None = None, **options: Any) -> GroupMember:
    return member(door.bootstrap, diary, group=group, **door.security, **options)


async def share_of(one: GroupMember, fits: Callable[[Assigned], bool]) -> Assigned:
    """Its share, when there is one that fits."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            share = await one.wait_assigned()
            if fits(share):
                return share
            await asyncio.sleep(0.01)


def dealt(shares: list[Assigned]) -> list[int]:
    return sorted(shard for share in shares for shard in shards(share))


async def test_members_come_and_go(door: Door, group: str) -> None:
    diary = Diary()
    async with at(door, group, diary) as one:
        assert shards(await one.wait_assigned(PATIENCE_S)) == list(range(SHARDS))
        async with at(door, group) as two, at(door, group) as three:
            shares = await settled(one, two, three)
            assert dealt(shares) == list(range(SHARDS))
            assert [len(shards(share)) for share in shares] == [4, 4, 4]
            assert sum(share.is_leader for share in shares) == 1
            assert diary.of(Revoked)
            await three.leave("enough")
            await share_of(two, lambda share: len(shards(share)) == SHARDS // 2)
            assert dealt(await settled(one, two)) == list(range(SHARDS))
        await share_of(one, lambda share: len(shards(share)) == SHARDS)
        assert diary.of(Lost) == []


async def test_a_killed_member_is_missed_after_its_session(door: Door, group: str, secured: Secured) -> None:
    command = [sys.executable, "-m", "tests.interop.clients.sharder", secured.broker.bootstrap, group]
    async with at(door, group) as one:
        await one.wait_assigned(PATIENCE_S)
        victim = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
        try:
            assert victim.stdout is not None
            async with asyncio.timeout(PATIENCE_S):
                assert (await victim.stdout.readline()).split()[0] == b"owns"
            assert len(shards(await one.wait_assigned(PATIENCE_S))) == SHARDS // 2
        finally:
            victim.kill()
            await victim.communicate()
        await share_of(one, lambda share: len(shards(share)) == SHARDS)


async def test_a_static_member_is_back_without_a_rebalance(door: Door, group: str) -> None:
    diary = Diary()
    async with at(door, group, diary, group_instance_id="first") as one:
        await one.wait_assigned(PATIENCE_S)
        async with at(door, group, group_instance_id="second") as two:
            before = await settled(one, two)
        fenced = Diary()
        async with at(door, group, fenced, group_instance_id="second") as two:
            back = await two.wait_assigned(PATIENCE_S)
            assert (back.generation, shards(back)) == (before[1].generation, shards(before[1]))
            assert back.member_id != before[1].member_id
            assert one.assigned == before[0]
            assert len(diary.of(Revoked)) == 1
            async with at(door, group, group_instance_id="second") as usurper:
                await usurper.wait_assigned(PATIENCE_S)
                await fenced.until(FencedInstanceIdError)
                with pytest.raises(FencedInstanceIdError, match="group instance id"):
                    await two.wait_assigned(PATIENCE_S)
            await usurper.leave("for good")


async def test_cooperative_members_keep_what_stays(door: Door, group: str, secured: Secured) -> None:
    diary = Diary()
    options: dict[str, Any] = {"assignors": ["cooperative-sticky"], "heartbeat_interval_ms": 100}
    options |= {"session_timeout_ms": 6_000, **door.security}
    callbacks: dict[str, Any] = {"on_assigned": diary.note, "on_revoked": diary.note, "on_lost": diary.note}
    async with consumer_member(door.bootstrap, group, [TOPIC], **options, **callbacks) as one:
        had = partitions_of(await one.wait_assigned(PATIENCE_S))
        assert len(had) == PARTITIONS
        async with consumer_member(door.bootstrap, group, [TOPIC], **options) as two:
            await share_of(two, lambda share: len(partitions_of(share)) == PARTITIONS // 2)
            revoked = await diary.until(Revoked)
            assert revoked.partial
            has = partitions_of(await one.wait_assigned(PATIENCE_S))
            assert sorted(has + partitions_of(await two.wait_assigned())) == had
            assert set(has) < set(had)
            found = await described(secured.broker.bootstrap, group)
            assert (found.protocol_type, found.protocol) == ("consumer", "cooperative-sticky")
        assert diary.of(Lost) == []


async def test_commits(door: Door, group: str) -> None:
    async with at(door, group) as one:
        share = await one.wait_assigned(PATIENCE_S)
        await one.commit({("t", 0): 5, ("t", 1): OffsetAndMetadata(7, "half way", 3)})
        everything = {("t", 0): OffsetAndMetadata(5), ("t", 1): OffsetAndMetadata(7, "half way", 3)}
        assert await one.committed() == everything
        await asyncio.gather(*(one.commit({("t", 2): n}) for n in range(50)))
        assert (await one.committed([("t", 2), ("t", 3)])) == {("t", 2): OffsetAndMetadata(49)}
        with pytest.raises(BrokerError, match=r"t-3: OFFSET_METADATA_TOO_LARGE"):
            await one.commit({("t", 3): OffsetAndMetadata(1, "x" * 5_000)})
        with pytest.raises(RetriableError, match=r"nowhere-0: UNKNOWN_TOPIC_OR_PARTITION"):
            await one.commit({("nowhere", 0): 1}, timeout_s=0.3)
        async with at(door, group) as two:
            await settled(one, two)
            with pytest.raises(CommitFailedError, match="generation"):
                await one.commit({("t", 0): 6}, generation=share.generation)
    with pytest.raises(MembershipOverError):
        await one.commit({("t", 0): 6})


async def test_a_share_is_given_up_before_another_has_it(door: Door, group: str) -> None:
    order: list[str] = []

    async def give_up(revoked: Revoked) -> None:
        await one.commit({("t", 0): 1_000 + revoked.generation})
        await asyncio.sleep(0.3)
        order.append("given up")

    diary = Diary(Revoked=give_up)
    async with at(door, group, diary) as one:
        first = await one.wait_assigned(PATIENCE_S)
        async with at(door, group) as two:
            await two.wait_assigned(PATIENCE_S)
            order.append("assigned")
            assert await two.committed([("t", 0)]) == {("t", 0): OffsetAndMetadata(1_000 + first.generation)}
        assert order[:2] == ["given up", "assigned"]


async def test_a_coordinator_that_restarts_costs_no_rebalance(secured: Secured, group: str) -> None:
    doors = [secured.plain(), secured.secure()]
    diaries = [Diary(), Diary()]
    pairs = zip(doors, diaries, strict=True)
    one, two = (at(door, group, diary, session_timeout_ms=30_000) for door, diary in pairs)
    async with one, two:
        before = await settled(one, two)
        await one.commit({("t", 0): 1})
        counts = [len(diary.lines) for diary in diaries]
        await asyncio.to_thread(secured.broker.stop)
        await asyncio.to_thread(secured.broker.start)
        for member in (one, two):
            await member.commit({("t", 0): 2}, timeout_s=60)
        assert [one.assigned, two.assigned] == before
        assert [len(diary.lines) for diary in diaries] == counts


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"session_timeout_ms": 3_600_000}, InvalidSessionTimeoutError),
        ({"protocol_type": "another"}, InconsistentGroupProtocolError),
        ({"protocols": [MemberProtocol("unknown")]}, InconsistentGroupProtocolError),
    ],
)
async def test_what_no_retry_cures_is_raised(
    door: Door, group: str, options: dict[str, Any], error: type[MembershipError]
) -> None:
    errors: list[MembershipError] = []
    async with at(door, group) as first:
        await first.wait_assigned(PATIENCE_S)
        wrong = member(
            door.bootstrap, on_failed=errors.append, **({"group": group} | door.security | options)
        )
        async with wrong:
            with pytest.raises(error):
                await wrong.wait_assigned(PATIENCE_S)
        assert [type(one) for one in errors] == [error]
        assert first.assigned is not None


def test_without_an_event_loop(door: Door, group: str) -> None:
    given: dict[str, Any] = {"protocol_type": "sharding", "protocols": [MemberProtocol("deal")]}
    with SyncGroupMember(door.bootstrap, group, assign=assign, **given, **door.security) as one:
        assert len(shards(one.wait_assigned(PATIENCE_S))) == SHARDS
        one.commit({("t", 0): 3})
        assert one.committed() == {("t", 0): OffsetAndMetadata(3)}


async def test_a_member_that_rejoins_tells_what_is_new(door: Door, group: str) -> None:
    metadata = [b"a"]
    protocols = [MemberProtocol("deal", lambda: metadata[0])]
    seen: list[bytes] = []

    def watching(protocol: str, members: list[Any]) -> dict[str, bytes]:
        seen.extend(one.metadata for one in members)
        return assign(protocol, members)

    async with at(door, group, protocols=protocols, assign=watching) as one:
        before = await one.wait_assigned(PATIENCE_S)
        metadata[0] = b"b"
        await one.rejoin("news")
        await share_of(one, lambda share: share.generation != before.generation)
        assert seen == [b"a", b"b"]
