"""Cooperative members (KIP-429): they go on with what they keep while the group rebalances."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from ringleader.clients.admin import Admin
from ringleader.clients.errors import CommitFailedError, MembershipError
from ringleader.clients.group.membership import GroupMember
from ringleader.clients.group.subscription import consumer_member, partitions_given_up, partitions_of
from ringleader.clients.model import (
    Assigned,
    Lost,
    MemberProtocol,
    OffsetAndMetadata,
    Revoked,
    TopicPartition,
)
from ringleader.protocol.embedded import Assignment
from ringleader.protocol.errors import ErrorCode
from ringleader.testing.coordinator import Coordinator
from tests.support.sharding import PATIENCE_S, Diary

QUICK: dict[str, Any] = {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 50}


def consumer(where: Coordinator, diary: Diary, name: str = "a", **options: Any) -> GroupMember:
    given: dict[str, Any] = {"assignors": ["cooperative-sticky"], "client_id": name}
    return consumer_member(
        where.bootstrap,
        "g",
        ["t"],
        on_assigned=diary.note,
        on_revoked=diary.note,
        on_lost=diary.note,
        on_failed=diary.note,
        **(QUICK | given | options),
    )


def moved(diary: Diary) -> list[list[TopicPartition]]:
    return [partitions_of(Assigned(0, "", "", "", one.assignment)) for one in diary.of(Revoked)]


async def until_shares(*members: GroupMember, sizes: list[int]) -> list[list[TopicPartition]]:
    """All of them in one generation, with shares of these sizes."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            held = [one.assigned for one in members]
            found = [partitions_of(one) for one in held if one is not None]
            if [len(one) for one in found] == sizes and len({one.generation for one in held if one}) == 1:
                return found
            await asyncio.sleep(0.01)


async def test_only_what_moves_is_given_up(coordinator: Coordinator) -> None:
    first, second = Diary(), Diary()
    async with consumer(coordinator, first) as one:
        await until_shares(one, sizes=[4])
        async with consumer(coordinator, second, "b") as two:
            shares = await until_shares(one, two, sizes=[2, 2])
            assert sorted(shares[0] + shares[1]) == [("t", p) for p in range(4)]
            assert moved(first) == [shares[1]]
            assert all(revoked.partial for revoked in first.of(Revoked))
            assert second.of(Revoked) == []
            whole = [("t", p) for p in range(4)]
            assigned = [partitions_of(share) for share in first.of(Assigned)]
            assert assigned[0] == whole
            assert set(map(tuple, assigned[1:])) == {tuple(shares[0])}
        await until_shares(one, sizes=[4])
        assert moved(first) == [shares[1]]
        assert first.of(Lost) == second.of(Lost) == []
        # Leaving gives up the whole share.
        assert moved(second) == [shares[1]]
        assert not second.of(Revoked)[0].partial


async def test_what_stays_is_worked_on_and_committed_while_the_rest_is_given_up(
    coordinator: Coordinator,
) -> None:
    may_end = asyncio.Event()

    async def give_up(_revoked: Revoked) -> None:
        await may_end.wait()

    first, second = Diary(Revoked=give_up), Diary()
    async with consumer(coordinator, first) as one, Admin(coordinator.bootstrap) as admin:
        await until_shares(one, sizes=[4])
        async with consumer(coordinator, second, "b") as two:
            await first.until(Revoked)
            assert one.assigned is not None
            assert len(moved(first)[0]) == 2
            staying = sorted({("t", p) for p in range(4)} - set(moved(first)[0]))
            await one.commit(dict.fromkeys(moved(first)[0] + staying, 7))
            assert await admin.group_offsets("g") == {("t", p): OffsetAndMetadata(7) for p in range(4)}
            (described,) = await admin.describe_groups(["g"])
            assert described.state == "Stable"
            may_end.set()
            shares = await until_shares(one, two, sizes=[2, 2])
            assert shares == [staying, moved(first)[0]]


async def test_commits_are_made_while_the_join_is_parked(coordinator: Coordinator) -> None:
    """The other member is slow to rejoin: the group prepares for as long."""
    settled, may_end = asyncio.Event(), asyncio.Event()

    async def slowly(_revoked: Revoked) -> None:
        if settled.is_set():
            await may_end.wait()

    first, second = Diary(), Diary(Revoked=slowly)
    async with consumer(coordinator, first) as one:
        await until_shares(one, sizes=[4])
        two = consumer(coordinator, second, "b")
        two.machine.state.protocols = tuple(replace(one, eager=True) for one in two.machine.state.protocols)
        async with two:
            await until_shares(one, two, sizes=[2, 2])
            before, revocations = one.assigned, len(second.of(Revoked))
            settled.set()
            await one.rejoin("to see the other one wait")
            await second.until(Revoked, revocations + 1)
            assert one.assigned is before
            await one.commit({("t", 0): 3})
            assert await one.committed([("t", 0)]) == {("t", 0): OffsetAndMetadata(3)}
            may_end.set()
            await until_shares(one, two, sizes=[2, 2])


async def test_a_part_that_is_not_given_up_in_time_is_lost(coordinator: Coordinator) -> None:
    never = asyncio.Event()

    async def hold(_revoked: Revoked) -> None:
        if not never.is_set():
            never.set()
            await asyncio.Event().wait()

    first = Diary(Revoked=hold)
    async with consumer(coordinator, first, rebalance_timeout_ms=1_000) as one:
        await until_shares(one, sizes=[4])
        async with consumer(coordinator, Diary(), "b") as two:
            lost = await first.until(Lost)
            assert lost.partial
            assert partitions_of(Assigned(0, "", "", "", lost.assignment)) == moved(first)[0]
            await until_shares(one, two, sizes=[2, 2])


async def test_leaving_while_a_part_is_given_up_gives_up_the_rest(coordinator: Coordinator) -> None:
    may_end = asyncio.Event()

    async def give_up(revoked: Revoked) -> None:
        if revoked.partial:
            await may_end.wait()

    first = Diary(Revoked=give_up)
    one = consumer(coordinator, first)
    await one.start()
    await until_shares(one, sizes=[4])
    async with consumer(coordinator, Diary(), "b") as two:
        await first.until(Revoked)
        leaving = asyncio.ensure_future(one.leave("enough"))
        await asyncio.sleep(0)
        may_end.set()
        await leaving
        part, whole = first.of(Revoked)
        assert part.partial
        assert not whole.partial
        await until_shares(two, sizes=[4])


async def test_the_group_decides_whether_a_member_is_cooperative(coordinator: Coordinator) -> None:
    """By the assignor that it settles on: a member that offers both kinds is not eager for that."""
    first = Diary()
    both = ["cooperative-sticky", "range"]
    async with consumer(coordinator, first, assignors=both) as one:
        await until_shares(one, sizes=[4])
        async with consumer(coordinator, Diary(), "b", assignors=both) as two:
            await until_shares(one, two, sizes=[2, 2])
            assert [revoked.partial for revoked in first.of(Revoked)] == [True]
        async with consumer(coordinator, Diary(), "c", assignors=["range"]) as three:
            await until_shares(one, three, sizes=[2, 2])
            assert not first.of(Revoked)[-1].partial
    assert not first.of(Lost)


@pytest.mark.parametrize("assignor", ["sticky", "weighted"])
async def test_shares_are_kept_over_rebalances(coordinator: Coordinator, assignor: str) -> None:
    async with (
        consumer(coordinator, Diary(), assignors=[assignor]) as one,
        consumer(coordinator, Diary(), "b", assignors=[assignor]) as two,
    ):
        before = await until_shares(one, two, sizes=[2, 2])
        async with consumer(coordinator, Diary(), "c", assignors=[assignor]) as three:
            during = await until_shares(three, sizes=[1])
        shares = await until_shares(one, two, sizes=[2, 2])
        kept = [len(set(now) & set(then)) for now, then in zip(shares, before, strict=True)]
        assert kept == [2, 2]
        assert during[0][0] in before[0] + before[1]


async def test_weights_decide(coordinator: Coordinator) -> None:
    async with (
        consumer(coordinator, Diary(), assignors=["weighted"], weight=3) as one,
        consumer(coordinator, Diary(), "b", assignors=["weighted"], weight=1) as two,
    ):
        await until_shares(one, two, sizes=[3, 1])


def test_what_is_given_up() -> None:
    before, after = Assignment({"t": [0, 1], "u": [2]}).encode(), Assignment({"t": [1], "v": [0]}).encode()
    assert partitions_given_up(before, after) == Assignment({"t": [0], "u": [2]}).encode()
    assert partitions_given_up(before, before) is None
    assert partitions_given_up(b"", after) is None
    assert partitions_given_up(before, b"\x00") == before


async def test_a_share_lasts_through_generations_until_a_part_of_it_goes(coordinator: Coordinator) -> None:
    place: TopicPartition = ("t", 0)

    async def commit_then(revoked: Revoked) -> None:
        if revoked.partial:
            await one.commit({place: 3}, generation=share.generation)
            one.store({place: 4}, generation=share.generation)

    first = Diary(Revoked=commit_then)
    async with consumer(coordinator, first, auto_commit_interval_ms=3_600_000) as one:
        share = await first.until(Assigned)
        await one.rejoin("to have another generation")
        again = await first.until(Assigned, 2)
        assert again.generation == share.generation + 1
        await one.commit({place: 1}, generation=share.generation)
        one.store({place: 2}, generation=share.generation)
        async with consumer(coordinator, Diary(), "b") as two:
            await until_shares(one, two, sizes=[2, 2])
            assert (await two.committed([place]))[place].offset == 4
            with pytest.raises(CommitFailedError, match=f"generation {share.generation} is over"):
                await one.commit({place: 5}, generation=share.generation)
            with pytest.raises(CommitFailedError, match=f"generation {share.generation} is over"):
                one.store({place: 5}, generation=share.generation)


@pytest.mark.parametrize("code", [ErrorCode.ILLEGAL_GENERATION, ErrorCode.REBALANCE_IN_PROGRESS])
async def test_a_commit_that_a_rebalance_overtakes_is_made_in_the_next_generation(
    coordinator: Coordinator, code: ErrorCode
) -> None:
    """The group may be a generation ahead of what its member has heard."""
    diary = Diary()
    async with consumer(coordinator, diary) as one:
        await diary.until(Assigned)
        held_up = coordinator.faults.delay("JoinGroup", 0.5)
        coordinator.faults.error("OffsetCommit", code)
        await one.rejoin("so that a JoinGroup is on its way")
        async with asyncio.timeout(PATIENCE_S):
            while not held_up.hits:  # noqa: ASYNC110 -- it is counted in another thread
                await asyncio.sleep(0.01)
        await one.commit({("t", 0): 7})
        assert (await one.committed([("t", 0)]))[("t", 0)].offset == 7
        assert diary.of(Lost) == diary.of(Revoked) == []


async def test_what_was_asked_for_before_a_part_moved_is_not_made_after_it(coordinator: Coordinator) -> None:
    """Its new owner may have committed by then."""
    late: list[asyncio.Task[None]] = []

    async def commit_all(revoked: Revoked) -> None:
        if not revoked.partial:
            return  # at the end nobody would wait for it
        late.append(asyncio.create_task(one.commit({("t", p): 1 for p in range(4)})))
        await asyncio.sleep(0)

    first, second = Diary(Revoked=commit_all), Diary()
    options: dict[str, Any] = {"auto_commit_timeout_ms": 50}
    async with consumer(coordinator, first, **options) as one, Admin(coordinator.bootstrap) as admin:
        await until_shares(one, sizes=[4])
        coordinator.faults.error("OffsetCommit", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, times=10_000)
        async with consumer(coordinator, second, "b") as two:
            shares = await until_shares(one, two, sizes=[2, 2])
            coordinator.faults.clear()
            await two.commit(dict.fromkeys(shares[1], 9))
            with pytest.raises(CommitFailedError, match="is over"):
                await late[0]
            assert await admin.group_offsets("g") == dict.fromkeys(shares[1], OffsetAndMetadata(9))
            await one.commit(dict.fromkeys(shares[0], 2))


async def test_a_given_up_that_raises_ends_the_membership(coordinator: Coordinator) -> None:
    def given_up(_before: bytes, _after: bytes) -> bytes | None:
        raise ZeroDivisionError

    diary = Diary()
    wrong = GroupMember(
        coordinator.bootstrap,
        "g",
        protocols=[MemberProtocol("p")],
        assign=lambda _protocol, members: {one.member_id: b"all" for one in members},
        given_up=given_up,
        on_lost=diary.note,
        on_failed=diary.note,
        **QUICK,
    )
    async with wrong, Admin(coordinator.bootstrap) as admin:
        await wrong.wait_assigned(PATIENCE_S)
        await wrong.rejoin("to be given a share again")
        failure = await diary.until(MembershipError)
        assert "given_up callback failed: ZeroDivisionError()" in str(failure)
        assert isinstance(failure.__cause__, ZeroDivisionError)
        assert diary.of(Lost)
        with pytest.raises(MembershipError, match="given_up"):
            await wrong.wait_assigned(PATIENCE_S)
        (described,) = await admin.describe_groups(["g"])
        assert not described.members
