"""aiokafka, kafka-python and confluent-kafka as members: what a restart, a kill or a rebalance costs them."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import aiokafka
import pytest

from tests.interop.clients.python_members import (
    LIBRARIES,
    PATIENT_MS,
    WatchedConfluent,
    WatchedKafkaPython,
    WatchedMember,
)
from tests.interop.clients.team import ALL, EACH, GROUP, PARTITIONS, TOPIC, balanced
from tests.interop.clients.watch import WatchBoard, described, read_by_all, rebalances, shares
from tests.support.daemon import Daemon
from tests.support.members import Stage

ROOT = Path(__file__).resolve().parents[3]

each_library = pytest.mark.parametrize("library", LIBRARIES, ids=[one.library for one in LIBRARIES])
Library = type[WatchedMember]


async def produce(daemon: Daemon, each: int = EACH) -> list[tuple[int, int]]:
    """A few records into every partition; their places."""
    async with aiokafka.AIOKafkaProducer(bootstrap_servers=daemon.bootstrap) as producer:
        sent = [await producer.send(TOPIC, b"x", partition=n % PARTITIONS) for n in range(each * PARTITIONS)]
        return [(one.partition, one.offset) for one in await asyncio.gather(*sent)]


@each_library
async def test_a_static_member_comes_back_without_a_rebalance(daemon: Daemon, library: Library) -> None:
    board = WatchBoard()

    def member(name: str, instance: str) -> WatchedMember:
        static: dict[str, Any] = {library.static_option: instance}
        return library(board, daemon.bootstrap, GROUP, TOPIC, name, **static)

    async with Stage() as stage:
        first, second = member("a", "one"), member("b", "two")
        await stage.enter(first)
        await board.until_owned({"a": ALL})
        await stage.enter(second)
        await board.until(lambda now: balanced(now, 2))
        group, rounds = await described(daemon.bootstrap, GROUP), rebalances(daemon, GROUP)
        events = [event for event in board.events if event.name == "b"]
        # The leader goes and comes, then the other one.
        for leaves, name, instance in ((first, "a-again", "one"), (second, "b-again", "two")):
            await stage.exit(leaves)
            again = member(name, instance)
            await stage.enter(again)
            await board.until(lambda now: balanced(now, 2))
        after = await described(daemon.bootstrap, GROUP)
        assert rebalances(daemon, GROUP) == rounds
        produced = await produce(daemon)
        await board.until_read(len(produced))
    assert {one.group_instance_id: one.assignment for one in after.members} == {
        one.group_instance_id: one.assignment for one in group.members
    }
    assert not {one.member_id for one in after.members} & {one.member_id for one in group.members}
    assert [event for event in board.events if event.name == "b"][: len(events)] == events
    assert read_by_all(board) == sorted(produced)


@each_library
async def test_a_commit_in_the_revoke_callback_counts(daemon: Daemon, library: Library) -> None:
    board = WatchBoard()
    produced = await produce(daemon)
    async with Stage() as stage:
        await stage.enter(library(board, daemon.bootstrap, GROUP, TOPIC, "a", commits=True))
        await board.until_read(len(produced))
        second = library(board, daemon.bootstrap, GROUP, TOPIC, "b")
        await stage.enter(second)
        await board.until(lambda now: balanced(now, 2))
        assert {event.error for event in board.of("a", "committed")} == {""}
        assert await second.committed(ALL) == [EACH] * PARTITIONS
        # So the newcomer has nothing to read again.
        more = await produce(daemon, 1)
        await board.until_read(len(produced) + len(more))
    assert read_by_all(board) == sorted(produced + more)


@each_library
async def test_seek_and_resume_from_what_was_committed(daemon: Daemon, library: Library) -> None:
    board = WatchBoard()
    produced = await produce(daemon)
    async with Stage() as stage:
        first = library(board, daemon.bootstrap, GROUP, TOPIC, "a")
        await stage.enter(first)
        await board.until_read(len(produced))
        await first.commit({0: 3, 1: EACH})
        await first.seek(0, 1)
        again = [(0, offset) for offset in range(1, EACH)]
        await board.until_read(len(produced) + len(again))
        assert board.got["a"][len(produced) :] == again
        await stage.exit(first)
        await stage.enter(library(board, daemon.bootstrap, GROUP, TOPIC, "b"))
        skipped = {(0, 0), (0, 1), (0, 2)} | {(1, offset) for offset in range(EACH)}
        rest = sorted(set(produced) - skipped)
        await board.until(lambda now: len(now.got.get("b", ())) >= len(rest))
    assert sorted(board.got["b"]) == rest


@pytest.mark.parametrize("library", [WatchedKafkaPython, WatchedConfluent], ids=lambda one: one.library)
async def test_cooperative_members_keep_what_stays(
    daemon: Daemon, library: type[WatchedKafkaPython | WatchedConfluent]
) -> None:
    board = WatchBoard()

    def member(name: str) -> WatchedMember:
        return library(board, daemon.bootstrap, GROUP, TOPIC, name, **library.cooperative)

    async with Stage() as stage:
        first = member("a")
        await stage.enter(first)
        await board.until_owned({"a": ALL})
        await stage.enter(member("b"))
        await board.until(lambda now: balanced(now, 2))
        assert [set(event.partitions) for event in board.of("a", "revoked")] == [set(board.owned["b"] or ())]
        before = {name: set(board.owned[name] or ()) for name in "ab"}
        await stage.enter(member("c"))
        await board.until(lambda now: balanced(now, 3))
        for name in "ab":
            assert set(board.owned[name] or ()) < before[name]
        before = {name: set(board.owned[name] or ()) for name in "bc"}
        revoked = {name: len(board.of(name, "revoked")) for name in "bc"}
        await stage.exit(first)
        await board.until(lambda now: now.owned["a"] is None and balanced(now, 2))
        for name in "bc":
            assert set(board.owned[name] or ()) > before[name]
            assert len(board.of(name, "revoked")) == revoked[name]
        assert not [event for event in board.events if event.kind == "lost"]


@each_library
async def test_others_take_over_from_a_killed_process(daemon: Daemon, library: Library) -> None:
    board = WatchBoard()
    session_ms = 1_000
    command = [sys.executable, "-m", "tests.interop.clients.victim", library.library, daemon.bootstrap]
    command += [GROUP, TOPIC, str(session_ms)]
    async with Stage() as stage:
        await stage.enter(library(board, daemon.bootstrap, GROUP, TOPIC, "a", session_ms=session_ms))
        await board.until_owned({"a": ALL})
        victim = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE, cwd=ROOT)
        try:
            assert victim.stdout is not None
            line = await victim.stdout.readline()
            await board.until(lambda now: len(now.owned["a"] or ()) == PARTITIONS // 2)
            assert sorted([*map(int, line.split()[1:]), *(board.owned["a"] or ())]) == list(ALL)
            assert len((await described(daemon.bootstrap, GROUP)).members) == 2
        finally:
            victim.kill()
            await victim.wait()
        await board.until(lambda now: now.owned["a"] == ALL)
        assert len((await described(daemon.bootstrap, GROUP)).members) == 1
        assert "session expired" in daemon.log()


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.usefixtures("sockets_forgotten")
@pytest.mark.parametrize("end", ["kill", "stop"])
async def test_a_restart_of_the_daemon_goes_unnoticed(daemon: Daemon, end: str) -> None:
    """A member of each library in one group."""
    board = WatchBoard()
    async with Stage() as stage:
        members = [
            one(board, daemon.bootstrap, GROUP, TOPIC, one.library, session_ms=PATIENT_MS)
            for one in LIBRARIES
        ]
        for member in members:
            await stage.enter(member)
        await board.until(lambda now: balanced(now, 3))
        group, rounds = await described(daemon.bootstrap, GROUP), rebalances(daemon, GROUP)
        ids, events = [await one.member_id() for one in members], list(board.events)
        await asyncio.to_thread(daemon.kill if end == "kill" else daemon.stop)
        await asyncio.to_thread(daemon.start)
        produced = await produce(daemon)
        await board.until_read(len(produced))
        for member in members:
            await member.commit()
        assert [await one.member_id() for one in members] == ids
        assert shares(await described(daemon.bootstrap, GROUP)) == shares(group)
        assert await members[0].committed(ALL) == [EACH] * PARTITIONS
        assert board.events == events
        assert rebalances(daemon, GROUP) == rounds
    assert read_by_all(board) == sorted(produced)
