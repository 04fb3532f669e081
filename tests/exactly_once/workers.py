"""Workers that copy records from one topic to another, each batch in a transaction, in processes of their
own.

    python -m tests.exactly_once.workers BOOTSTRAP RUN NUMBER PROTOCOL
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from typing import IO

from ringleader import (
    AbortableTransactionError,
    Admin,
    ClientError,
    FatalProducerError,
    GroupConsumer,
    PartitionConsumer,
    Producer,
)
from ringleader.clients.group.settings import GroupProtocol
from tests.support.tied import tied

SESSION_MS = 2_000
PATIENCE_S = 120.0


async def copy(bootstrap: str, run: str, number: str, protocol: GroupProtocol) -> None:
    """One worker's life: a new producer and consumer whenever they cannot go on. `run`: in the names of its
    topics and its group."""
    classic = (
        {"session_timeout_ms": SESSION_MS, "heartbeat_interval_ms": 300} if protocol == "classic" else {}
    )
    while True:
        with contextlib.suppress(ClientError):
            async with (
                Producer(
                    bootstrap, transactional_id=f"{run}-{number}", transaction_timeout_ms=10_000
                ) as producer,
                GroupConsumer(
                    bootstrap,
                    run,
                    [f"{run}-in"],
                    auto_commit=False,
                    auto_offset_reset="earliest",
                    isolation_level="read_committed",
                    group_protocol=protocol,
                    max_poll_records=20,
                    **classic,  # type: ignore[arg-type]
                ) as consumer,
            ):
                print("ready", flush=True)
                await _copy_on(producer, consumer, f"{run}-out")


async def _copy_on(producer: Producer, consumer: GroupConsumer, out: str) -> None:
    while True:
        try:
            async with producer.transaction(consumer):
                for batch in await consumer.getmany(timeout_s=1):
                    for record in batch:
                        await producer.send(out, record.value, key=record.key)
                await asyncio.sleep(0.02)
        except FatalProducerError:
            raise
        except AbortableTransactionError as error:
            print("again:", error, flush=True)


def stand_still(pid: int, seconds: float) -> None:
    """Freeze a process for that long."""
    os.kill(pid, signal.SIGSTOP)
    time.sleep(seconds)  # a session ends by the clock
    os.kill(pid, signal.SIGCONT)


class WorkerError(Exception):
    """A worker has ended by itself; with the end of its log."""


class Workers:
    """The processes, by number. Two run from the beginning."""

    def __init__(self, bootstrap: str, run: str, protocol: GroupProtocol) -> None:
        self._arguments = (bootstrap, run)
        self._protocol = protocol
        self.running: dict[int, subprocess.Popen[bytes]] = {}
        self._logs: dict[int, IO[bytes]] = {}

    def __enter__(self) -> Workers:
        for number in range(2):
            self.start(number)
        return self

    def __exit__(self, *_error: object) -> None:
        for number in list(self.running):
            self.kill(number)

    def start(self, number: int) -> None:
        """Start one, and return once it runs."""
        where, run = self._arguments
        command = [
            sys.executable,
            "-m",
            "tests.exactly_once.workers",
            where,
            run,
            str(number),
            self._protocol,
        ]
        log = self._logs[number] = tempfile.TemporaryFile()  # noqa: SIM115
        process = tied(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log))
        self.running[number] = process
        assert process.stdout is not None
        if process.stdout.readline() != b"ready\n":
            process.wait()
            self.kill(number)

    def kill(self, number: int) -> None:
        """SIGKILL. Raises WorkerError if it has ended by itself."""
        process, log = self.running.pop(number), self._logs.pop(number)
        ended = process.poll() is not None
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()
        with log:
            if ended:
                log.seek(0)
                raise WorkerError(f"worker {number} ended by itself:\n{log.read().decode()[-5_000:]}")

    def freeze(self, number: int, seconds: float) -> None:
        """Let it stand still for that long."""
        stand_still(self.running[number].pid, seconds)


async def fill(bootstrap: str, run: str, count: int, replicas: int = 1) -> None:
    """Make the topics, and put numbered records into the first."""
    async with Admin(bootstrap) as admin:
        for topic in (f"{run}-in", f"{run}-out"):
            await admin.create_topic(topic, 4, replication_factor=replicas)
    async with Producer(bootstrap) as producer:
        for number in range(count):
            await producer.send(f"{run}-in", b"%d" % number, key=b"%d" % (number % 97))


async def copied(
    bootstrap: str, run: str, count: int, patience_s: float = PATIENCE_S
) -> tuple[list[int], list[int]]:
    """Wait until the copies are there. Returns the numbers that are missing, and those that are there twice,
    for readers of committed records."""
    found: Counter[int] = Counter()
    deadline_s = time.monotonic() + patience_s
    async with PartitionConsumer(
        bootstrap, [f"{run}-out"], auto_offset_reset="earliest", isolation_level="read_committed"
    ) as consumer:
        while time.monotonic() < deadline_s:
            batches = await consumer.getmany(timeout_s=2)
            found.update(int(record.value) for batch in batches for record in batch)
            if not batches and len(found) == count:
                break
    return sorted(set(range(count)) - set(found)), sorted(one for one, times in found.items() if times > 1)


if __name__ == "__main__":
    asyncio.run(copy(*sys.argv[1:]))  # type: ignore[arg-type]
