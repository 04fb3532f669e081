"""Java consumers in groups: who owns what, and what a change of members or of the daemon costs."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from tests.interop.clients.java_clients import JavaClients, JavaMember
from tests.interop.clients.team import ALL, EACH, GROUP, PARTITIONS, TOPIC, MakeMember, balanced, produce
from tests.interop.clients.watch import WatchBoard, described, read_by_all, rebalances, shares
from tests.support.daemon import Daemon
from tests.support.members import Stage


@pytest.mark.parametrize(
    ("assignor", "two", "three"),
    [
        ("range", {"a": (0, 1, 2), "b": (3, 4, 5)}, {"a": (0, 1), "b": (2, 3), "c": (4, 5)}),
        ("roundrobin", {"a": (0, 2, 4), "b": (1, 3, 5)}, {"a": (0, 3), "b": (1, 4), "c": (2, 5)}),
    ],
)
async def test_eager_members_come_and_go(
    daemon: Daemon,
    java_clients: JavaClients,
    member: MakeMember,
    assignor: str,
    two: dict[str, tuple[int, ...]],
    three: dict[str, tuple[int, ...]],
) -> None:
    board = WatchBoard()
    async with Stage() as stage:
        first = member(board, "a", assignor)
        await stage.enter(first)
        await board.until_owned({"a": ALL})
        await stage.enter(member(board, "b", assignor))
        await board.until_owned(two)
        await stage.enter(member(board, "c", assignor))
        await board.until_owned(three)
        produced = await produce(java_clients, daemon)
        await board.until_read(len(produced))
        assert read_by_all(board) == sorted(produced)
        assert {name: {p for p, _ in got} for name, got in board.got.items()} == {
            name: set(owned) for name, owned in three.items()
        }
        group = await described(daemon.bootstrap, GROUP)
        assert (group.state, group.protocol, group.protocol_type) == ("Stable", assignor, "consumer")
        found = {one.client_id: tuple(one.assignment[TOPIC]) for one in group.members}
        assert found == three
        await stage.exit(first)
        await board.until(lambda now: [len(now.owned[name] or ()) for name in ("a", "b", "c")] == [0, 3, 3])
        # Nobody was thrown out on the way: each change of members took one rebalance.
        assert not [event for event in board.events if event.kind == "lost"]
        assert len(rebalances(daemon, GROUP)) == 4


async def test_cooperative_members_keep_what_stays(
    daemon: Daemon, java_clients: JavaClients, member: MakeMember
) -> None:
    board = WatchBoard()
    async with Stage() as stage:
        first = member(board, "a", "cooperative-sticky")
        await stage.enter(first)
        await board.until_owned({"a": ALL})
        second = member(board, "b", "cooperative-sticky")
        await stage.enter(second)
        await board.until(lambda now: balanced(now, 2))
        of_a, of_b = board.owned["a"], board.owned["b"]
        assert of_a is not None
        assert of_b is not None
        # Exactly what went to the newcomer was taken away, in one go, and nothing was ever lost.
        assert [event.partitions for event in board.of("a", "revoked")] == [of_b]
        await stage.enter(member(board, "c", "cooperative-sticky"))
        await board.until(lambda now: balanced(now, 3))
        for name, had in (("a", of_a), ("b", of_b)):
            has = set(board.owned[name] or ())
            assert has < set(had)
            taken = [set(event.partitions) for event in board.of(name, "revoked")]
            assert taken[-1] == set(had) - has
        produced = await produce(java_clients, daemon)
        await board.until_read(len(produced))
        assert read_by_all(board) == sorted(produced)
        before = {name: set(board.owned[name] or ()) for name in "bc"}
        taken_before = {name: len(board.of(name, "revoked")) for name in "bc"}
        await stage.exit(first)
        await board.until(lambda now: now.owned["a"] is None and balanced(now, 2))
        for name in "bc":
            assert set(board.owned[name] or ()) > before[name]
            assert len(board.of(name, "revoked")) == taken_before[name]
        assert not [event for event in board.events if event.kind == "lost"]


async def test_a_group_moves_from_range_to_cooperative_without_a_stop(
    daemon: Daemon, member: MakeMember
) -> None:
    """The rolling upgrade of KIP-429: every member gets both assignors, then loses the old one."""
    board = WatchBoard()
    steps = {
        "old": ("range", "range"),
        "both": ("cooperative-sticky,range", "cooperative-sticky"),
        "new": ("cooperative-sticky", "cooperative-sticky"),
    }
    async with Stage() as stage:
        present: list[JavaMember] = []
        protocol = "range"
        for step, (assignors, after) in steps.items():
            for number in (1, 2):
                present.append(member(board, f"{step}-{number}", assignors))
                await stage.enter(present[-1])
                if len(present) > 2:
                    await board.until(lambda now: balanced(now, 3))
                    # The old assignor is elected as long as one member knows no other.
                    assert (await described(daemon.bootstrap, GROUP)).protocol == protocol
                    await stage.exit(present.pop(0))
            await board.until(lambda now: balanced(now, 2))
            protocol = after
            group = await described(daemon.bootstrap, GROUP)
            assert (group.state, group.protocol) == ("Stable", protocol)
        assert not [event for event in board.events if event.kind == "lost"]


async def test_a_commit_in_the_revoke_callback_counts(
    daemon: Daemon, java_clients: JavaClients, member: MakeMember
) -> None:
    board = WatchBoard()
    produced = await produce(java_clients, daemon)
    async with Stage() as stage:
        await stage.enter(member(board, "a", commit_on_revoke=True))
        await board.until_read(len(produced))
        second = member(board, "b")
        await stage.enter(second)
        await board.until_owned({"a": (0, 1, 2), "b": (3, 4, 5)})
        (committed,) = board.of("a", "committed")
        assert committed.error == ""
        assert await second.committed(ALL) == [EACH] * PARTITIONS
        # So b has nothing to read again.
        more = await produce(java_clients, daemon, 1)
        await board.until_read(len(produced) + len(more))
    assert read_by_all(board) == sorted(produced + more)


async def test_seek_and_resume_from_what_was_committed(
    daemon: Daemon, java_clients: JavaClients, member: MakeMember
) -> None:
    board = WatchBoard()
    produced = await produce(java_clients, daemon)
    first = member(board, "a")
    await first.join()
    await board.until_read(len(produced))
    await first.commit({0: 3, 1: EACH})
    await first.call("seek", to=[TOPIC, 0, 1])
    again = [(0, offset) for offset in range(1, EACH)]
    await board.until_read(len(produced) + len(again))
    assert board.got["a"][len(produced) :] == again
    await first.leave()
    second = member(board, "b")
    await second.join()
    rest = sorted(place for place in produced if place not in [(0, 0), (0, 1), (0, 2)] and place[0] != 1)
    await board.until(lambda now: len(now.got.get("b", ())) >= len(rest))
    assert sorted(board.got["b"]) == rest
    await second.leave()


async def test_others_take_over_from_a_killed_process(
    daemon: Daemon, java_clients: JavaClients, member: MakeMember, tmp_path: Path
) -> None:
    board = WatchBoard()
    with JavaClients(tmp_path / "victim.log") as victims:
        async with Stage() as stage:
            await stage.enter(member(board, "a", session_timeout_ms=1_000))
            await board.until_owned({"a": ALL})
            await member(board, "b", java=victims, session_timeout_ms=1_000).join()
            await board.until_owned({"a": (0, 1, 2), "b": (3, 4, 5)})
            before = rebalances(daemon, GROUP)
            await asyncio.to_thread(victims.kill)
            await board.until(lambda now: now.owned["a"] == ALL)
            await described(daemon.bootstrap, GROUP)
            after = rebalances(daemon, GROUP)
            assert len(after) == len(before) + 1
            assert "session expired" in daemon.log()


@pytest.mark.parametrize("end", ["kill", "stop"])
@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
async def test_a_restart_of_the_daemon_goes_unnoticed(
    daemon: Daemon, java_clients: JavaClients, member: MakeMember, assignor: str, end: str
) -> None:
    """A client that finds no broker any more forgets its metadata by default (KIP-899) and then takes it for
    changed, with Apache Kafka's broker too: the next test. Here it keeps them."""
    board = WatchBoard()
    async with Stage() as stage:
        members = [member(board, name, assignor, metadata_recovery_strategy="none") for name in ("a", "b")]
        for one in members:
            await stage.enter(one)
        await board.until(lambda now: balanced(now, 2))
        group = await described(daemon.bootstrap, GROUP)
        identities = [await one.call("metadata") for one in members]
        events, rounds = list(board.events), rebalances(daemon, GROUP)
        await asyncio.to_thread(daemon.kill if end == "kill" else daemon.stop)
        await asyncio.to_thread(daemon.start)
        # They consume and commit as if nothing had been.
        produced = await produce(java_clients, daemon)
        await board.until_read(len(produced))
        for one in members:
            await one.commit()
        assert [await one.call("metadata") for one in members] == identities
        assert shares(await described(daemon.bootstrap, GROUP)) == shares(group)
        assert board.events == events
        assert rebalances(daemon, GROUP) == rounds
    assert read_by_all(board) == sorted(produced)


async def test_a_client_that_forgot_its_metadata_asks_for_the_only_rebalance_after_a_restart(
    daemon: Daemon, java_clients: JavaClients, member: MakeMember
) -> None:
    board = WatchBoard()
    async with Stage() as stage:
        for name in ("a", "b"):
            await stage.enter(member(board, name, "cooperative-sticky"))
        await board.until(lambda now: balanced(now, 2))
        group = await described(daemon.bootstrap, GROUP)
        events, rounds = list(board.events), rebalances(daemon, GROUP)
        await asyncio.to_thread(daemon.restart)
        produced = await produce(java_clients, daemon)
        await board.until_read(len(produced))
        # The members and their shares stay. The leader says why, unless it first said so to the old daemon.
        assert shares(await described(daemon.bootstrap, GROUP)) == shares(group)
        new = rebalances(daemon, GROUP)[len(rounds) :]
        reasons = re.findall("cached metadata has changed|failed due to DisconnectException", daemon.log())
        assert len(new) == len(reasons) <= 1
        assert not [event for event in board.events[len(events) :] if event.partitions]
    assert read_by_all(board) == sorted(produced)
