"""Members that nobody stops: their process ends, or it is copied."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

from ringleader.testing.coordinator import Coordinator

HEAD = """
import asyncio, os, sys
from ringleader import GroupMember, MemberProtocol, SyncGroupMember
from ringleader.clients.errors import MembershipError

def made(kind, **options):
    return kind(
        sys.argv[1], "g", protocol_type="x", protocols=[MemberProtocol("p")], session_timeout_ms=60_000,
        assign=lambda _protocol, members: {one.member_id: b"all" for one in members}, **options)
"""

ASYNC = """
async def main():
    member = made(GroupMember, group_instance_id=INSTANCE)
    await member.start()
    await member.wait_assigned(20)
asyncio.run(main())
"""

SYNC = """
member = made(SyncGroupMember, group_instance_id=INSTANCE)
member.start()
member.wait_assigned(20)
"""

FORK = """
with made(SyncGroupMember) as member:
    member.wait_assigned(20)
    child = os.fork()
    if not child:
        for ask in (lambda: member.commit({("t", 0): 1}), lambda: member.commit_nowait({("t", 0): 1}),
                    lambda: member.committed()):
            try:
                ask()
            except MembershipError as error:
                print(error, flush=True)
        member.stop()
        sys.exit()
    os.waitpid(child, 0)
    member.commit({("t", 0): 1})
    print("the parent goes on", flush=True)
"""


def run(coordinator: Coordinator, script: str, head: str = HEAD) -> str:
    """The output of a process that runs it, and ends well."""
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(head + script), coordinator.bootstrap],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def reasons(coordinator: Coordinator) -> list[str]:
    return [one.request.members[0].reason for one in coordinator.faults.seen("LeaveGroup")]


@pytest.mark.parametrize("script", [ASYNC, SYNC])
def test_a_process_that_ends_without_a_word_leaves(coordinator: Coordinator, script: str) -> None:
    run(coordinator, "INSTANCE = None\n" + script)
    (reason,) = reasons(coordinator)
    assert reason in ("the application's event loop has ended", "the process has ended")


@pytest.mark.parametrize("script", [ASYNC, SYNC])
def test_a_static_member_may_be_back(coordinator: Coordinator, script: str) -> None:
    run(coordinator, "INSTANCE = 'a'\n" + script)
    assert reasons(coordinator) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_copy_of_the_process_does_not_have_the_member(coordinator: Coordinator) -> None:
    lines = run(coordinator, FORK).splitlines()
    assert len(lines) == 4
    assert all("it runs in the process that this one was forked from" in line for line in lines[:3])
    assert lines[3] == "the parent goes on"
    assert reasons(coordinator) == ["stopped"]
