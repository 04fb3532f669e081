"""Static members in Java (KIP-345): what a restart, a double and a departure mean for the group."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.interop.clients.java_clients import JavaAdmin, JavaClients, JavaError
from tests.interop.clients.team import ALL, GROUP, TOPIC, MakeMember, balanced, produce
from tests.interop.clients.watch import WatchBoard, described, read_by_all, rebalances
from tests.support.daemon import Daemon
from tests.support.members import Stage


async def by_instance(daemon: Daemon) -> dict[str | None, tuple[str, tuple[int, ...]]]:
    """Instance id -> member id and partitions, as the coordinator describes them."""
    group = await described(daemon.bootstrap, GROUP)
    return {
        one.group_instance_id: (one.member_id, tuple(one.assignment.get(TOPIC, ()))) for one in group.members
    }


@pytest.mark.parametrize("role", ["leader", "follower"])
@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
async def test_a_restart_costs_no_rebalance(
    daemon: Daemon, java_clients: JavaClients, member: MakeMember, assignor: str, role: str
) -> None:
    board = WatchBoard()
    async with Stage() as stage:
        first = member(board, "a", assignor, group_instance_id="one")
        await stage.enter(first)
        await board.until_owned({"a": ALL})
        second = member(board, "b", assignor, group_instance_id="two")
        await stage.enter(second)
        await board.until(lambda now: balanced(now, 2))
        leaves, stays = (first, second) if role == "leader" else (second, first)
        instance, other = ("one", "two") if role == "leader" else ("two", "one")
        before, rounds = await by_instance(daemon), rebalances(daemon, GROUP)
        identity = await stays.call("metadata")
        generation = identity["generation"]
        # The first to come leads, and goes on leading.
        assert f"leader {before['one'][0]}" in daemon.log().splitlines()[-1]
        await stage.exit(leaves)
        assert await by_instance(daemon) == before
        again = member(board, "again", assignor, group_instance_id=instance)
        await stage.enter(again)
        assigned = await board.until_happens("again", "assigned")
        assert (assigned.generation, assigned.partitions) == (generation, before[instance][1])
        after = await by_instance(daemon)
        assert after[other] == before[other]
        assert after[instance] == (assigned.member_id, before[instance][1])
        assert assigned.member_id != before[instance][0]
        # Both work, and commit.
        produced = await produce(java_clients, daemon)
        await board.until_read(len(produced))
        for one in (stays, again):
            await one.commit()
        assert await stays.call("metadata") == identity
        assert rebalances(daemon, GROUP) == rounds
    assert read_by_all(board) == sorted(produced)


async def test_a_restart_finds_its_place_after_a_crash_of_the_daemon_and_keeps_it(
    daemon: Daemon, java_clients: JavaClients, member: MakeMember
) -> None:
    board = WatchBoard()
    async with Stage() as stage:
        first = member(board, "a", group_instance_id="one", metadata_recovery_strategy="none")
        await stage.enter(first)
        await board.until_owned({"a": ALL})
        second = member(board, "b", group_instance_id="two", metadata_recovery_strategy="none")
        await stage.enter(second)
        await board.until(lambda now: balanced(now, 2))
        before, rounds = await by_instance(daemon), rebalances(daemon, GROUP)
        identity = await second.call("metadata")
        await stage.exit(first)
        await asyncio.to_thread(daemon.restart)
        again = member(board, "again", group_instance_id="one", metadata_recovery_strategy="none")
        await stage.enter(again)
        assigned = await board.until_happens("again", "assigned")
        assert (assigned.generation, assigned.partitions) == (identity["generation"], before["one"][1])
        # Nor does a crash forget that it has come back under another member id.
        identities = [await one.call("metadata") for one in (second, again)]
        after = await by_instance(daemon)
        await asyncio.to_thread(daemon.restart)
        produced = await produce(java_clients, daemon)
        await board.until_read(len(produced))
        for one in (second, again):
            await one.commit()
        assert [await one.call("metadata") for one in (second, again)] == identities
        assert await by_instance(daemon) == after
        assert after["two"] == before["two"]
        assert rebalances(daemon, GROUP) == rounds
    assert read_by_all(board) == sorted(produced)


async def test_the_older_of_two_with_one_instance_id_is_fenced(daemon: Daemon, member: MakeMember) -> None:
    board = WatchBoard()
    async with Stage() as stage:
        await stage.enter(member(board, "a", group_instance_id="one", ends_with="FencedInstanceIdException"))
        await stage.enter(member(board, "b", group_instance_id="two"))
        await board.until(lambda now: balanced(now, 2))
        before, rounds = board.owned["a"], rebalances(daemon, GROUP)
        await stage.enter(member(board, "double", group_instance_id="one"))
        assert (await board.until_happens("double", "assigned")).partitions == before
        assert (await board.until_happens("a", "failed")).error == "FencedInstanceIdException"
        assert set(await by_instance(daemon)) == {"one", "two"}
        assert rebalances(daemon, GROUP) == rounds
        assert not board.of("b", "revoked", "lost")


async def test_one_that_leaves_for_good_is_gone_at_once(daemon: Daemon, member: MakeMember) -> None:
    board = WatchBoard()
    async with Stage() as stage:
        first = member(board, "a", group_instance_id="one")
        await stage.enter(first)
        await stage.enter(member(board, "b", group_instance_id="two"))
        await board.until(lambda now: balanced(now, 2))
        rounds = rebalances(daemon, GROUP)
        await first.leave("LEAVE_GROUP")
        await board.until(lambda now: now.owned["b"] == ALL)
        assert set(await by_instance(daemon)) == {"two"}
        assert len(rebalances(daemon, GROUP)) == len(rounds) + 1


async def test_one_that_stays_away_longer_than_its_session_is_replaced(
    daemon: Daemon, member: MakeMember
) -> None:
    board = WatchBoard()
    async with Stage() as stage:
        first = member(board, "a", group_instance_id="one", session_timeout_ms=1_000)
        await stage.enter(first)
        await stage.enter(member(board, "b", group_instance_id="two"))
        await board.until(lambda now: balanced(now, 2))
        rounds = rebalances(daemon, GROUP)
        await stage.exit(first)
        assert set(await by_instance(daemon)) == {"one", "two"}
        await board.until(lambda now: now.owned["b"] == ALL)
        assert set(await by_instance(daemon)) == {"two"}
        assert len(rebalances(daemon, GROUP)) == len(rounds) + 1


async def test_a_restart_that_changes_the_elected_assignor_costs_one_rebalance(
    daemon: Daemon, member: MakeMember
) -> None:
    board = WatchBoard()
    async with Stage() as stage:
        await stage.enter(member(board, "a", "range,roundrobin", group_instance_id="one"))
        await board.until_owned({"a": ALL})
        second = member(board, "b", "range,roundrobin", group_instance_id="two")
        await stage.enter(second)
        await board.until_owned({"a": (0, 1, 2), "b": (3, 4, 5)})
        rounds = rebalances(daemon, GROUP)
        await stage.exit(second)
        await stage.enter(member(board, "again", "roundrobin", group_instance_id="two"))
        await board.until_owned({"a": (0, 2, 4), "again": (1, 3, 5)})
        assert (await described(daemon.bootstrap, GROUP)).protocol == "roundrobin"
        assert len(rebalances(daemon, GROUP)) == len(rounds) + 1


async def test_a_crashed_process_started_again_costs_no_rebalance(
    daemon: Daemon, member: MakeMember, tmp_path: Path
) -> None:
    board = WatchBoard()
    async with Stage() as stage:
        with JavaClients(tmp_path / "victim.log") as victims:
            await member(board, "a", java=victims, group_instance_id="one").join()
            await board.until_owned({"a": ALL})
            await stage.enter(member(board, "b", group_instance_id="two"))
            await board.until(lambda now: balanced(now, 2))
            before, rounds = await by_instance(daemon), rebalances(daemon, GROUP)
            await asyncio.to_thread(victims.kill)
        board.owns("a", None)
        await stage.enter(member(board, "again", group_instance_id="one"))
        await board.until(lambda now: balanced(now, 2))
        after = await by_instance(daemon)
        assert after["two"] == before["two"]
        assert after["one"][1] == before["one"][1]
        assert rebalances(daemon, GROUP) == rounds


async def test_an_operator_removes_one_that_is_away(
    daemon: Daemon, java_clients: JavaClients, member: MakeMember
) -> None:
    board = WatchBoard()
    async with Stage() as stage, JavaAdmin(java_clients, daemon.bootstrap) as admin:
        first = member(board, "a", group_instance_id="one")
        await stage.enter(first)
        await stage.enter(member(board, "b", group_instance_id="two"))
        await board.until(lambda now: balanced(now, 2))
        rounds = rebalances(daemon, GROUP)
        await stage.exit(first)
        await admin.remove(GROUP, "one", "its machine is sold")
        await board.until(lambda now: now.owned["b"] == ALL)
        assert set(await by_instance(daemon)) == {"two"}
        assert len(rebalances(daemon, GROUP)) == len(rounds) + 1
        assert "its machine is sold" in daemon.log()
        with pytest.raises(JavaError) as error:
            await admin.remove(GROUP, "one", "to be sure")
        assert error.value.error == "UnknownMemberIdException"
