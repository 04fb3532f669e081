"""A leader is elected that does not have all records (unclean): our consumers go on where Java's does, or
fail as it does (KIP-320), also one that reads from a replica in its rack (KIP-392)."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from ringleader import PartitionConsumer, Producer
from ringleader.clients.fetch.errors import LogTruncatedError
from tests.interop.cluster.test_racks import RACKS, SELECTOR
from tests.interop.kafka import TOOL_JVM, command, tool
from tests.interop.kafka_cluster import KafkaCluster
from tests.support.tied import tied

TOOLS = "org.apache.kafka.tools."
PLACE = ("t", 0)
WAIT_S = 120
BOTH = [f"a{number}" for number in range(10)]
FIRST_ONLY = [f"a{number}" for number in range(10, 20)]
SECOND_ONLY = [f"b{number}" for number in range(10, 15)]


@contextmanager
def javas(cluster: KafkaCluster, directory: Path, reset: str) -> Iterator[Path]:
    """Java's consumer, from the beginning on: where it writes what it reads, and then why it ends."""
    found = directory / reset
    words = ["--bootstrap-server", cluster.bootstrap, "--topic", "t", "--partition", "0", "--offset", "0"]
    words += ["--command-property", f"auto.offset.reset={reset}"]
    words += ["--command-property", "metadata.max.age.ms=1000"]
    with found.open("wb") as out:
        consumer = command(f"{TOOLS}consumer.ConsoleConsumer", *words, jvm=TOOL_JVM)
        process = tied(subprocess.Popen(consumer, stdout=out, stderr=subprocess.DEVNULL))
        try:
            yield found
        finally:
            process.kill()
            process.wait()


async def written(cluster: KafkaCluster, values: list[str]) -> None:
    async with Producer(cluster.bootstrap, delivery_timeout_ms=WAIT_S * 1_000) as producer:
        for value in values:
            await producer.send_and_wait("t", value.encode(), partition=0)


async def read(consumer: PartitionConsumer, found: list[str], count: int) -> None:
    async with asyncio.timeout(WAIT_S):
        while len(found) < count:
            for batch in await consumer.getmany():
                found += [(record.value or b"").decode() for record in batch]


def shape(cluster: KafkaCluster) -> tuple[int, set[int]]:
    """The leader, and who is in sync."""
    found = AdminClient({"bootstrap.servers": cluster.bootstrap}).list_topics("t", timeout=10)
    partition = found.topics["t"].partitions[0]
    return partition.leader, set(partition.isrs)


async def becomes(cluster: KafkaCluster, leader: int, in_sync: set[int]) -> None:
    async with asyncio.timeout(WAIT_S):
        while True:
            with contextlib.suppress(KafkaException, KeyError):
                if await asyncio.to_thread(shape, cluster) == (leader, in_sync):
                    return
            await asyncio.sleep(0.2)


def lines(file: Path) -> list[str]:
    return file.read_text().splitlines()


async def shown(file: Path, what: str) -> None:
    async with asyncio.timeout(WAIT_S):
        while not any(what in line for line in lines(file)):  # noqa: ASYNC110 - another process writes it
            await asyncio.sleep(0.2)


@pytest.mark.timeout(900)
async def test_records_are_gone_after_an_unclean_election(tmp_path: Path) -> None:
    cluster = KafkaCluster(tmp_path / "brokers", properties={"replica.selector.class": SELECTOR}, racks=RACKS)
    async with AsyncExitStack() as ends:
        ends.enter_context(cluster)
        made = await asyncio.to_thread(
            partial(
                tool,
                *(f"{TOOLS}TopicCommand", "--bootstrap-server", cluster.bootstrap, "--create"),
                *("--topic", "t", "--replica-assignment", "1:2", "--config", "min.insync.replicas=1"),
                *("--config", "unclean.leader.election.enable=true"),
            )
        )
        assert made.returncode == 0, made.stderr
        await becomes(cluster, 1, {1, 2})
        await written(cluster, BOTH)
        ours: list[PartitionConsumer] = []
        for reset, rack in (("earliest", None), ("none", None), ("earliest", "b")):
            options: Any = {"auto_offset_reset": reset, "client_rack": rack}
            ours.append(await ends.enter_async_context(PartitionConsumer(cluster.bootstrap, **options)))
            await ours[-1].assign([PLACE])
            ours[-1].seek(PLACE, 0)
        going, failing, near = ours
        java_going = ends.enter_context(javas(cluster, tmp_path, "earliest"))
        java_failing = ends.enter_context(javas(cluster, tmp_path, "none"))
        found: list[list[str]] = [[], [], []]
        for one, into in zip(ours, found, strict=True):
            await read(one, into, len(BOTH))
        assert near._running().states[PLACE].replica == 2
        assert going._running().states[PLACE].replica != 2
        for file in (java_going, java_failing):
            await shown(file, BOTH[-1])

        # The follower misses what comes now, and everybody reads it.
        cluster.kill(2)
        await becomes(cluster, 1, {1})
        await written(cluster, FIRST_ONLY)
        for one, into in zip(ours, found, strict=True):
            await read(one, into, len(BOTH) + len(FIRST_ONLY))
        for file in (java_going, java_failing):
            await shown(file, FIRST_ONLY[-1])

        # It is all that is left.
        cluster.kill(1)
        await asyncio.to_thread(cluster.brokers[2].start)
        await becomes(cluster, 2, {2})
        await written(cluster, SECOND_ONLY)
        everything = [*BOTH, *FIRST_ONLY, *SECOND_ONLY]
        for one, into in ((going, found[0]), (near, found[2])):
            await read(one, into, len(everything))
            assert into == everything
        await shown(java_going, SECOND_ONLY[-1])
        assert lines(java_going) == everything

        async with asyncio.timeout(WAIT_S):
            with pytest.raises(LogTruncatedError, match="the histories part at offset 10") as raised:
                await failing.getmany()
        assert (raised.value.offset, raised.value.end_offset) == (20, 10)
        await shown(java_failing, "divergent offsets {t-0=OffsetAndMetadata{offset=10,")
        read_before = len(BOTH) + len(FIRST_ONLY)
        assert lines(java_failing)[:read_before] == found[1] == everything[:read_before]
