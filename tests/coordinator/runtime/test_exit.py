"""When a node gives up: `ringleader serve` ends with exit code 1 and a sentence, and the next one goes on."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ringleader.protocol.errors import ErrorCode
from tests.support.daemon import Daemon
from tests.support.groupclient import JOIN_VERSION, Member, form, join_request
from tests.support.served import Client, connected

_SERVE = """
import sys, threading
{patch}
from ringleader.cli import main
sys.argv = ["ringleader", *sys.argv[sys.argv.index("serve"):]]
main()
"""

_A_SHARD_WITH_A_BUG = """
from ringleader.coordinator.groups.shard import Shard
handle = Shard.handle
def fail(self, request, ticket, now_ms):
    if request.group_id == "early":
        raise RuntimeError("an early bug")
    if request.group_id == "bug":
        self._core.begin_change()
        raise RuntimeError("a bug")
    return handle(self, request, ticket, now_ms)
Shard.handle = fail
heartbeat = Shard.heartbeat
def fail_to_beat(self, group_id, *more):
    if group_id == "beat":
        raise RuntimeError("an early bug")
    return heartbeat(self, group_id, *more)
Shard.heartbeat = fail_to_beat
"""

_A_DISK_THAT_DOES_NOT_ANSWER = """
from ringleader.coordinator.storage.sqlite import SqliteStorage
SqliteStorage._append = lambda self, batches: threading.Event().wait()
"""


@contextlib.contextmanager
def started(directory: Path, patch: str, *options: str) -> Iterator[Daemon]:
    """A daemon in whose process something is wrong."""
    daemon = Daemon(directory, topics=["orders:1"], options=options)
    daemon.tracebacks_expected = True
    daemon.start(wrapper=[sys.executable, "-c", _SERVE.format(patch=patch)])
    try:
        yield daemon
    finally:
        daemon.kill()


async def join(client: Client, group_id: str) -> int:
    """The error code of a JoinGroup."""
    return int((await client.call(join_request(group_id), JOIN_VERSION)).error_code)


async def commit(client: Client, member: Member) -> int:
    """The error code of a commit."""
    answer = await client.call(member.commit(1), 7)
    return int(answer.topics[0].partitions[0].error_code)


async def test_a_bug_that_changes_nothing_is_no_reason_to_stop(tmp_path: Path) -> None:
    with started(tmp_path, _A_SHARD_WITH_A_BUG, "--group-initial-rebalance-delay-ms", "0") as daemon:
        async with connected("127.0.0.1", daemon.port) as client:
            member = await form(client, "group")
            for _ in range(20):
                assert await join(client, "early") == ErrorCode.UNKNOWN_SERVER_ERROR
            assert (await client.call(member.heartbeat(), 3)).error_code == 0
            unlucky = await form(client, "beat")
            await client.call(unlucky.heartbeat(), 3)  # the first one of a connection takes another way
            for _ in range(20):
                failed = await client.call(unlucky.heartbeat(), 3)
                assert failed.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
            assert await commit(client, unlucky) == ErrorCode.NONE
        daemon.stop()
        assert daemon.log().count("RuntimeError: an early bug") < 5, "one line in a few seconds"


async def test_a_shard_that_fails_twice_within_a_minute(tmp_path: Path) -> None:
    with started(tmp_path, _A_SHARD_WITH_A_BUG, "--group-initial-rebalance-delay-ms", "0") as daemon:
        async with connected("127.0.0.1", daemon.port) as client:
            member = await form(client, "group")
            assert await join(client, "bug") == ErrorCode.NOT_COORDINATOR
            assert (await client.call(member.heartbeat(), 3)).error_code == 0, "the others are served"
            assert await join(client, "bug") == ErrorCode.NOT_COORDINATOR
        assert daemon.wait() == 1
        log = daemon.log()
        assert log.count("RuntimeError: a bug") == 2
        assert "It stops (shard 8 failed twice within a minute); start again" in " ".join(log.split())
    (tmp_path / "daemon.log").unlink()
    with Daemon(tmp_path) as daemon:
        async with connected("127.0.0.1", daemon.port) as client:
            assert (await client.call(member.heartbeat(), 3)).error_code == 0


@pytest.mark.parametrize("waiting", [False, True])
async def test_a_disk_that_does_not_answer(tmp_path: Path, waiting: bool) -> None:
    options = ["--group-initial-rebalance-delay-ms", "0", "--storage-timeout-ms", "1000"]
    with started(tmp_path, _A_DISK_THAT_DOES_NOT_ANSWER, *options) as daemon:
        async with connected("127.0.0.1", daemon.port) as client:
            client.send(join_request("group"), JOIN_VERSION)
            if waiting:
                await client.frame()
        assert daemon.wait() == 1
        log = " ".join(daemon.log().split())
        assert "append took longer than storage.timeout.ms (1000)); start again" in log
