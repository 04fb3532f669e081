"""SIGKILL of the daemon: what was acknowledged stays, and groups go on as if nothing had been."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.messages import (
    DescribeGroupsRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    LeaveGroupRequest,
    LeaveGroupRequestMemberIdentity,
)
from tests.support.committers import Committer, commit_until_cut_off, committed
from tests.support.daemon import Daemon
from tests.support.rawclient import RawConnection, address_of
from tests.support.rawgroup import FormedGroup, GroupMember, form_group

TOPIC = "orders"
MEMBERS = 16
SOLITARY = 16
COMMITS_BEFORE_KILL = 400


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A running daemon whose groups form at once."""
    options = ["--group-initial-rebalance-delay-ms", "0"]
    with Daemon(tmp_path, topics=[f"{TOPIC}:{MEMBERS}"], options=options) as running:
        yield running


def form(daemon: Daemon, group_id: str, count: int) -> FormedGroup:
    """A stable group whose connections are closed: its members come back on new ones."""
    group = form_group(address_of(daemon.bootstrap), group_id, count, topic=TOPIC)
    group.close()
    return group


def heartbeat(connection: RawConnection, group: FormedGroup, member: GroupMember) -> int:
    """The error code of one heartbeat."""
    request = HeartbeatRequest(
        group_id=group.group_id, generation_id=group.generation, member_id=member.member_id
    )
    answer: HeartbeatResponse = connection.call(request)
    return answer.error_code


def leave_all(daemon: Daemon, group: FormedGroup) -> None:
    """All members leave."""
    members = [LeaveGroupRequestMemberIdentity(member_id=member.member_id) for member in group.members]
    with RawConnection(daemon.bootstrap) as connection:
        answer = connection.call(LeaveGroupRequest(group_id=group.group_id, members=members), 3)
    assert [one.error_code for one in answer.members] == [ErrorCode.NONE] * len(members)


def rebalances(daemon: Daemon, group_id: str) -> int:
    """Log lines about a new generation of the group."""
    return sum("generation" in line and group_id in line for line in daemon.log().splitlines())


async def test_every_acknowledged_commit_survives_repeated_kills(daemon: Daemon) -> None:
    group = form(daemon, "team", MEMBERS)
    committers = [
        Committer("team", member.index, TOPIC, member.member_id, group.generation) for member in group.members
    ]
    committers += [Committer(f"alone-{number}", 0, TOPIC) for number in range(SOLITARY)]
    for _ in range(4):
        cut = asyncio.Event()
        running = asyncio.create_task(
            commit_until_cut_off(daemon.bootstrap, committers, COMMITS_BEFORE_KILL, cut)
        )
        await cut.wait()
        daemon.kill()
        await running
        # The members' next commits carry the same generation: no round could pass if a kill ended it.
        daemon.start()
        for one, found in zip(committers, committed(daemon.bootstrap, committers), strict=True):
            assert one.acknowledged <= found <= one.attempted, one


def test_members_go_on_in_their_generation(daemon: Daemon) -> None:
    group = form(daemon, "steady", 3)
    lines = rebalances(daemon, "steady")
    assert lines > 0
    for _ in range(3):
        daemon.restart()
        with RawConnection(daemon.bootstrap) as connection:
            codes = [heartbeat(connection, group, member) for member in group.members]
            assert codes == [ErrorCode.NONE] * 3
            described = connection.call(DescribeGroupsRequest(groups=["steady"]), 5).groups[0]
        assert described.group_state == "Stable"
        kept = {one.member_id: one.member_assignment for one in described.members}
        assert kept == {member.member_id: member.assignment for member in group.members}
    assert rebalances(daemon, "steady") == lines


def test_a_generation_is_never_given_out_twice(daemon: Daemon) -> None:
    generations = []
    for _ in range(3):
        group = form_group(address_of(daemon.bootstrap), "counting", 2, topic=TOPIC)
        generations.append(group.generation)
        group.close()
        daemon.restart()
        leave_all(daemon, group)
    assert generations == sorted(set(generations))


def test_a_rebalance_that_the_crash_cut_short_begins_again(daemon: Daemon) -> None:
    group = form(daemon, "cut-short", 2)
    with RawConnection(daemon.bootstrap) as joining:
        request = JoinGroupRequest(
            group_id="cut-short",
            session_timeout_ms=30_000,
            rebalance_timeout_ms=60_000,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=b"\0\1\0\0\0\0\0\0\0\0")],
        )
        joining.send(request, 3)  # up to version 3 a member joins with its first request
        with RawConnection(daemon.bootstrap) as connection:
            while heartbeat(connection, group, group.members[0]) != ErrorCode.REBALANCE_IN_PROGRESS:
                pass
        daemon.restart()
    with RawConnection(daemon.bootstrap) as connection:
        codes = [heartbeat(connection, group, member) for member in group.members]
    assert codes == [ErrorCode.NONE, ErrorCode.NONE]
