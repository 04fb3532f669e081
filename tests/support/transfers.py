"""Workers that copy records from one topic to another, each batch in a transaction, in processes of their
own; and a hand that kills, freezes and adds some.

    python -m tests.support.transfers BOOTSTRAP NAME PROTOCOL
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable

from ringleader import (
    AbortableTransactionError,
    Admin,
    ClientError,
    FatalProducerError,
    GroupConsumer,
    PartitionConsumer,
    Producer,
    Record,
)
from ringleader.clients.group.settings import GroupProtocol

SESSION_MS = 2_000
PATIENCE_S = 120.0


async def copy(bootstrap: str, name: str, protocol: GroupProtocol) -> None:
    """One worker's life: a new producer and consumer whenever they cannot go on."""
    classic = (
        {"session_timeout_ms": SESSION_MS, "heartbeat_interval_ms": 300} if protocol == "classic" else {}
    )
    while True:
        with contextlib.suppress(ClientError):
            async with (
                Producer(
                    bootstrap, transactional_id=f"copy-{name}", transaction_timeout_ms=10_000
                ) as producer,
                GroupConsumer(
                    bootstrap,
                    "copies",
                    ["in"],
                    auto_commit=False,
                    auto_offset_reset="earliest",
                    isolation_level="read_committed",
                    group_protocol=protocol,
                    max_poll_records=20,
                    **classic,  # type: ignore[arg-type]
                ) as consumer,
            ):
                print("ready", flush=True)
                await _copy_on(producer, consumer)


async def _copy_on(producer: Producer, consumer: GroupConsumer) -> None:
    while True:
        try:
            async with producer.transaction(consumer):
                for batch in await consumer.getmany(timeout_s=1):
                    for record in batch:
                        await producer.send("out", record.value, key=record.key)
                await asyncio.sleep(0.02)
        except FatalProducerError:
            raise
        except AbortableTransactionError as error:
            print("again:", error, flush=True)


class Workers:
    """The processes; a seed decides what happens to them."""

    def __init__(self, bootstrap: str, protocol: GroupProtocol, chance: random.Random) -> None:
        self._bootstrap, self._protocol, self._chance = bootstrap, protocol, chance
        self._running: dict[int, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> Workers:
        for number in range(2):
            self.start(number)
        return self

    def __exit__(self, *_error: object) -> None:
        for number in list(self._running):
            self.kill(number)

    def start(self, number: int) -> None:
        """A worker of that number."""
        command = [
            sys.executable,
            "-m",
            "tests.support.transfers",
            self._bootstrap,
            str(number),
            self._protocol,
        ]
        self._running[number] = subprocess.Popen(command, stdout=subprocess.PIPE)
        out = self._running[number].stdout
        assert out is not None
        assert out.readline() == b"ready\n"

    def kill(self, number: int) -> None:
        """SIGKILL."""
        process = self._running.pop(number)
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()

    def one_deed(self) -> str:
        """Kill one and start it again, freeze one for longer than its session, or add one."""
        number = self._chance.choice(list(self._running))
        deed = self._chance.choice(["kill", "freeze", "add"])
        if deed == "kill":
            self.kill(number)
            self.start(number)
        elif deed == "freeze":
            self._running[number].send_signal(signal.SIGSTOP)
            time.sleep(SESSION_MS / 1000 + 1)  # a session ends by the clock
            self._running[number].send_signal(signal.SIGCONT)
        elif len(self._running) < 4:
            self.start(max(self._running) + 1)
        return f"{deed} {number}"


async def fill(bootstrap: str, count: int) -> None:
    """Make the topics, and put numbered records into the first."""
    async with Admin(bootstrap) as admin:
        for topic in ("in", "out"):
            await admin.create_topic(topic, 4)
    async with Producer(bootstrap) as producer:
        for number in range(count):
            await producer.send("in", b"%d" % number, key=b"%d" % (number % 97))


async def written_through(bootstrap: str, count: int, crash: Callable[[], object]) -> None:
    """Write numbered records while the broker crashes in the middle: each is there once, at the offset that
    its result says."""
    async with Producer(bootstrap, retry_backoff_max_ms=200, linger_ms=1) as producer:
        sent = []
        crashing: asyncio.Task[object] | None = None
        for number in range(count):
            sent.append(await producer.send("in", b"%d" % number, partition=number % 4))
            if number == count // 2:
                crashing = asyncio.create_task(asyncio.to_thread(crash))
            if number % 10 == 0:
                await asyncio.sleep(0.001)
        places = [found[:3] for found in await asyncio.gather(*sent)]
        assert crashing is not None
        await crashing
    found: list[Record] = []
    async with PartitionConsumer(bootstrap, ["in"], auto_offset_reset="earliest") as consumer:
        while len(found) < count and (batches := await consumer.getmany(timeout_s=20)):
            found += [record for batch in batches for record in batch]
        assert not any((await consumer.lag()).values())
    assert sorted(int(record.value) for record in found) == list(range(count))
    assert all(places[int(record.value)] == record[:3] for record in found)


async def copied(bootstrap: str, count: int) -> tuple[list[int], list[int]]:
    """Wait until the copies are there: the numbers that are missing, and those that are there twice, for
    readers of committed records."""
    found: Counter[int] = Counter()
    deadline_s = time.monotonic() + PATIENCE_S
    async with PartitionConsumer(
        bootstrap, ["out"], auto_offset_reset="earliest", isolation_level="read_committed"
    ) as consumer:
        while time.monotonic() < deadline_s:
            batches = await consumer.getmany(timeout_s=2)
            found.update(int(record.value) for batch in batches for record in batch)
            if not batches and len(found) == count:
                break
    return sorted(set(range(count)) - set(found)), sorted(one for one, times in found.items() if times > 1)


if __name__ == "__main__":
    asyncio.run(copy(sys.argv[1], sys.argv[2], sys.argv[3]))  # type: ignore[arg-type]
