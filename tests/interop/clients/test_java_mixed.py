"""One group of all four clients at once."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from tests.interop.clients.java_clients import JavaClients, JavaMember
from tests.interop.clients.python_members import LIBRARIES, PATIENT_MS, WatchedMember
from tests.interop.clients.team import ALL, EACH, GROUP, PARTITIONS, TOPIC, MakeMember, balanced, produce
from tests.interop.clients.watch import WatchBoard, described, read_by_all, rebalances, shares
from tests.support.daemon import Daemon
from tests.support.members import Board, Stage


def each_owned_once(board: Board, members: int) -> bool:
    """Whether `members` members own every partition once, as evenly as range can."""
    owned = [of for of in board.owned.values() if of is not None]
    sizes = sorted(map(len, owned))
    even = sizes == sorted(len(range(n, PARTITIONS, members)) for n in range(members))
    return even and sorted(partition for of in owned for partition in of) == list(ALL)


async def test_java_and_the_python_libraries_share_a_group(
    daemon: Daemon, java_clients: JavaClients, member: MakeMember
) -> None:
    board = WatchBoard()
    async with Stage() as stage:
        joined: list[JavaMember | WatchedMember] = [member(board, "java")]
        joined += [one(board, daemon.bootstrap, GROUP, TOPIC, one.library) for one in LIBRARIES]
        for number, one in enumerate(joined, 1):
            await stage.enter(one)
            await board.until(partial(each_owned_once, members=number))
        group = await described(daemon.bootstrap, GROUP)
        assert (group.state, group.protocol, len(group.members)) == ("Stable", "range", 4)
        assert {one.client_id: tuple(one.assignment[TOPIC]) for one in group.members} == board.owned
        produced = await produce(java_clients, daemon)
        await board.until_read(len(produced))
        # Each record once, each by the owner of its partition.
        assert read_by_all(board) == sorted(produced)
        assert {name: {partition for partition, _ in got} for name, got in board.got.items()} == {
            name: set(owned or ()) for name, owned in board.owned.items()
        }
        # Every one commits for its own partitions; the one that comes last sees it all.
        for one in joined:
            await one.commit()
        assert await joined[-1].committed(ALL) == [EACH] * PARTITIONS
        # Each of them leads in its turn.
        while len(joined) > 1:
            await stage.exit(joined.pop(0))
            await board.until(lambda now: each_owned_once(now, len(joined)))
        more = await produce(java_clients, daemon, 1)
        await board.until_read(len(produced) + len(more))
    assert read_by_all(board) == sorted(produced + more)


@pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")
@pytest.mark.usefixtures("sockets_forgotten")
async def test_a_crash_of_the_daemon_goes_unnoticed_by_all_four(
    daemon: Daemon, java_clients: JavaClients, member: MakeMember
) -> None:
    board = WatchBoard()
    async with Stage() as stage:
        for library in LIBRARIES:
            name = library.library
            await stage.enter(library(board, daemon.bootstrap, GROUP, TOPIC, name, session_ms=PATIENT_MS))
        await board.until(lambda now: balanced(now, 3))
        await stage.enter(
            member(board, "java", metadata_recovery_strategy="none", session_timeout_ms=PATIENT_MS)
        )
        await board.until(lambda now: each_owned_once(now, 4))
        group, rounds = await described(daemon.bootstrap, GROUP), rebalances(daemon, GROUP)
        events = list(board.events)
        await asyncio.to_thread(daemon.restart)
        produced = await produce(java_clients, daemon)
        await board.until_read(len(produced))
        assert shares(await described(daemon.bootstrap, GROUP)) == shares(group)
        assert board.events == events
        assert rebalances(daemon, GROUP) == rounds
    assert read_by_all(board) == sorted(produced)
