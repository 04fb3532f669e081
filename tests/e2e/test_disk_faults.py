"""A disk that fails under a running daemon: what is stored stays, what is not is not believed, and a sentence
says what happened. Needs a C compiler (for tests/support/disk_faults.c).

Faults are written into a file that the daemon's process reads before each call: see there.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from random import Random

import pytest

from ringleader.protocol import messages as m
from ringleader.protocol.errors import ErrorCode
from tests.e2e.power_node import Client, batch
from tests.support.daemon import Daemon
from tests.support.failing_disk import Faults
from tests.support.rawclient import AsyncRawConnection, ConnectionClosedError

SLOW_MS = 400
PATIENCE_S = 20.0
RETRIABLE = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)


class Disk:
    """A daemon whose disk can be made to fail."""

    def __init__(self, directory: Path) -> None:
        self._faults = Faults(directory / "faults")
        self.fail = self._faults.fail
        self.connections: list[AsyncRawConnection] = []
        self.daemon = Daemon(
            directory,
            topics=["orders:1", "out:1"],
            options=["--storage-timeout-ms", "1500"],
            environ=self._faults.environ(),
        )

    async def client(self) -> Client:
        connection = await AsyncRawConnection.connect(self.daemon.bootstrap)
        self.connections.append(connection)
        return Client(connection)

    async def ended(self) -> str:
        """The daemon gives up; what it says last."""
        code = await asyncio.to_thread(self.daemon.wait)
        assert code == 1
        lines = self.daemon.log().strip().splitlines()
        return [line for line in lines if not line.startswith("left behind: ")][-1]


@pytest.fixture
async def disk(tmp_path: Path) -> AsyncIterator[Disk]:
    found = Disk(tmp_path)
    found.daemon.start()
    try:
        yield found
    finally:
        for connection in found.connections:
            await connection.close()
        found.fail()
        found.daemon.kill()


async def commit_until_refused(client: Client, last: int) -> int:
    """Commits what comes after `last`; the last offset that was acknowledged."""
    for offset in range(last + 1, last + 1_000_000):
        try:
            await client.commit("group", "orders", offset)
        except (AssertionError, ConnectionClosedError):
            return last
        last = offset
    raise AssertionError("no end of it")


async def test_a_store_that_nobody_can_trust_ends_the_daemon(disk: Disk) -> None:
    for number, fault in enumerate(("sync groups.db EIO", "write groups.db EIO", "sync groups.db hang"), 1):
        # Nothing ends a thread that waits for a disk.
        disk.daemon.tracebacks_expected = fault.endswith("hang")
        first = number * 1_000_000
        client = await disk.client()
        await client.commit("group", "orders", first)
        committing = asyncio.create_task(commit_until_refused(client, first))
        disk.fail(fault)
        assert "It stops (" in await disk.ended(), fault
        last = await committing
        disk.fail()
        disk.daemon.start()
        # A write that was on its way may have reached the disk; nothing that was answered is missing.
        assert await (await disk.client()).committed("group", "orders") >= last, fault


async def test_a_full_disk_refuses_what_writes_and_opens_again(disk: Disk) -> None:
    client, other = await disk.client(), await disk.client()
    pid = disk.daemon.pid
    await client.commit("group", "orders", 1)
    disk.fail("write groups.db ENOSPC")
    last = await commit_until_refused(client, 1)
    part = m.OffsetCommitRequestPartition(partition_index=0, committed_offset=999_999_999)
    request = m.OffsetCommitRequest(
        "other", topics=[m.OffsetCommitRequestTopic(name="orders", partitions=[part])]
    )
    for _ in range(3):
        answer = await client.ask(request, 7)
        assert answer.topics[0].partitions[0].error_code in RETRIABLE
    async with asyncio.timeout(PATIENCE_S):
        while True:  # the group's shard may be loading
            try:
                assert await other.committed("group", "orders") == last
                break
            except AssertionError as error:
                if not any(
                    code.name in str(error) for code in (*RETRIABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
                ):
                    raise
    disk.fail()
    async with asyncio.timeout(PATIENCE_S):
        while (await client.ask(request, 7)).topics[0].partitions[0].error_code:
            pass
    assert disk.daemon.pid == pid
    disk.daemon.restart()
    client = await disk.client()
    assert await client.committed("group", "orders") == last
    assert await client.committed("other", "orders") == 999_999_999


async def test_a_slow_disk_delays_commits_and_nobody_else(disk: Disk) -> None:
    client, other = await disk.client(), await disk.client()
    await client.commit("group", "orders", 1)
    await other.ask(m.ApiVersionsRequest(), 0)
    disk.fail(f"sync groups.db {SLOW_MS}")
    began = time.monotonic()
    committing = asyncio.create_task(client.commit("group", "orders", 2))
    answered = 0
    while not committing.done():
        await other.ask(m.ApiVersionsRequest(), 0)
        answered += 1
    assert time.monotonic() - began >= SLOW_MS / 1000
    assert answered > 10
    await committing


async def create_topic(client: Client) -> None:
    request = m.CreateTopicsRequest([m.CreateTopicsRequestCreatableTopic("fresh", 1, 1)])
    await client.until_possible(request, 7, lambda answer: answer.topics[0].error_code)


async def take_producer_id(client: Client) -> None:
    await client.producer(None)


async def delete_records(client: Client) -> None:
    await client.produce(None, "orders", batch(1))
    await client.delete_records("orders", 1)


async def end_transaction(client: Client) -> None:
    producer = await client.producer("mover")
    await client.move(producer, 1)
    await client.producer("mover")


async def test_a_failed_sync_of_topics_or_transactions_ends_the_daemon(disk: Disk) -> None:
    faults: dict[str, Callable[[Client], Awaitable[None]]] = {
        "sync producer-ids EIO": take_producer_id,  # first, while no block of them is reserved
        "sync topics.json EIO": create_topic,
        "sync log-start EIO": delete_records,
        "sync /data/topics/data/ EIO": end_transaction,
        "sync transactions.db EIO": end_transaction,
    }
    for fault, ask in faults.items():
        client = await disk.client()
        disk.fail(fault)
        asking = asyncio.ensure_future(ask(client))
        assert "It stops (" in await disk.ended(), fault
        # An error, or no answer at all.
        assert isinstance((await asyncio.gather(asking, return_exceptions=True))[0], Exception), fault
        disk.fail()
        disk.daemon.start()
        assert await (await disk.client()).committed("group", "orders") == -1, fault


# ---- at the start ----


def refused(directory: Path, environment: dict[str, str] | None = None) -> str:
    """The output of a daemon that does not start in this directory: one sentence, and exit code 1."""
    command = [sys.executable, "-m", "ringleader", "serve", "--listen", "127.0.0.1:0"]
    command += ["--data-dir", str(directory), "--log-level", "error"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (1, ""), done.stderr
    assert "Traceback" not in done.stderr
    [line] = done.stderr.strip().splitlines()
    return line


def _remove(path: Path, draw: Random) -> None:
    path.unlink()


def _cut(path: Path, draw: Random) -> None:
    os.truncate(path, draw.randrange(1, min(path.stat().st_size, 4_000)))


def _empty(path: Path, draw: Random) -> None:
    os.truncate(path, 0)


def _flip_all(path: Path, draw: Random) -> None:
    path.write_bytes(bytes(byte ^ 0x80 for byte in path.read_bytes()))


def test_damaged_and_missing_files_are_one_sentence_each(tmp_path: Path, seed: int) -> None:
    draw = Random(seed)
    with Daemon(tmp_path, topics=["orders:1"]) as daemon:
        data = daemon.data_dir
    for name, damage in (
        ("groups.db", _cut),
        ("groups.db", _empty),
        ("transactions.db", _cut),
        ("transactions.db", _remove),
        ("topics/topics.json", _cut),
        ("node.json", _cut),
        ("node.json", _flip_all),
    ):
        whole = (data / name).read_bytes()
        damage(data / name, draw)
        damaged = (data / name).read_bytes() if (data / name).exists() else None
        says = refused(data)
        assert Path(name).name in says, says
        assert ((data / name).read_bytes() if (data / name).exists() else None) == damaged
        (data / name).write_bytes(whole)
    with Daemon(tmp_path, topics=["orders:1"]):
        pass


@pytest.mark.parametrize("fault", ["name /data EROFS", "write /data ENOSPC", "sync /data EIO"])
def test_a_directory_that_cannot_be_written_is_one_sentence(tmp_path: Path, fault: str) -> None:
    (tmp_path / "faults").write_text(f"{fault}\n")
    environment = Faults(tmp_path / "faults").environ()
    data = tmp_path / "data"
    assert refused(data, environment)
    # A first start that failed is none: the next one begins, and with its stores it is refused as before.
    (tmp_path / "faults").write_text("")
    with Daemon(tmp_path, topics=["orders:1"]):
        pass
    (tmp_path / "faults").write_text(f"{fault}\n")
    assert refused(data, environment)
