"""Consume, transform, produce: exactly once, with real clients, while the daemon is killed under them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as AioPartition
from aiokafka.errors import ProducerFenced
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition

from ringleader.coordinator.runtime.log import EPOCH
from ringleader.coordinator.runtime.transactions import STORE_PARTITIONS
from ringleader.coordinator.storage.sqlite import SqliteStorage
from ringleader.coordinator.transactions.records import decode_key, decode_value, encode_value
from ringleader.coordinator.transactions.states import State
from ringleader.protocol import messages as m
from ringleader.protocol.errors import ErrorCode
from tests.coordinator.server.test_transactions import Talk
from tests.support.daemon import Daemon
from tests.support.mover import GROUP, QUICK, WAIT_S, consumer, producer
from tests.support.served import connected

ROOT = Path(__file__).parents[2]
MANY = 5_000
"""Partitions of one commit: more than one turn of the daemon's loop takes."""
ROUNDS = 4


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    """A daemon with a topic to read and a topic to write."""
    node = Daemon(
        tmp_path,
        topics=["in:2", "out:2", f"many:{MANY}"],
        options=["--group-initial-rebalance-delay-ms", "0"],
    ).start()
    try:
        yield node
    finally:
        with contextlib.suppress(AssertionError):
            node.stop()


def fill(daemon: Daemon, count: int) -> None:
    """Numbers from 0 on into the topic that is read."""
    sender = Producer({"bootstrap.servers": daemon.bootstrap, **QUICK})
    for number in range(count):
        sender.produce("in", str(number), partition=number % 2)
    assert sender.flush(WAIT_S) == 0


def read_all(daemon: Daemon, topic: str = "out", isolation: str = "read_committed") -> list[bytes]:
    """The records up to the ends as readers of this isolation level see them, sorted."""
    reader = consumer(
        daemon.bootstrap, "reader", **{"isolation.level": isolation, "enable.partition.eof": True}
    )
    parts = [TopicPartition(topic, index, 0) for index in range(2)]
    reader.assign(parts)
    found: list[bytes] = []
    ended: set[int | None] = set()
    while len(ended) < len(parts):
        message = reader.poll(WAIT_S)
        assert message is not None
        error = message.error()
        if error is None:
            found.append(message.value() or b"")
        elif error.code() == KafkaError._PARTITION_EOF:
            ended.add(message.partition())
    reader.close()
    return sorted(found)


def committed(daemon: Daemon, group: str) -> list[int]:
    """Committed offsets of the topic that is read."""
    asking = consumer(daemon.bootstrap, group)
    parts = asking.committed([TopicPartition("in", 0), TopicPartition("in", 1)], WAIT_S)
    asking.close()
    return [max(part.offset, 0) for part in parts]


class Mover:
    """The program of `tests.support.mover`, started and killed."""

    def __init__(self, daemon: Daemon, count: int) -> None:
        self._command = [sys.executable, "-m", "tests.support.mover", daemon.bootstrap, str(count)]
        self._process = self._start()

    def _start(self) -> subprocess.Popen[str]:
        return subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True, cwd=ROOT)

    def wait_until(self, moved: int) -> None:
        """Until that many are moved."""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if int(line) >= moved:
                return
        raise AssertionError(f"the mover ended before {moved}")

    def kill(self) -> None:
        """`kill -9`."""
        self._process.kill()
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def start_again(self) -> None:
        """After `kill`."""
        self._process = self._start()

    def finish(self) -> int:
        """Wait for its end; the exit code."""
        code = self._process.wait(WAIT_S * 3)
        assert self._process.stdout is not None
        self._process.stdout.close()
        return code


def test_records_are_moved_exactly_once_while_the_daemon_and_the_mover_are_killed(daemon: Daemon) -> None:
    count = 300
    fill(daemon, count)
    mover = Mover(daemon, count)
    try:
        for goal, kills_daemon in ((30, True), (80, False), (140, True), (200, True)):
            mover.wait_until(goal)
            if kills_daemon:
                daemon.kill()
            # librdkafka may wait for ever for the end of a call whose connection was lost.
            mover.kill()
            if kills_daemon:
                daemon.start()
            mover.start_again()
        mover.wait_until(count)
        assert mover.finish() == 0
    finally:
        mover.kill()
    assert sum(committed(daemon, GROUP)) == count
    assert read_all(daemon) == sorted(str(number).encode() for number in range(count))


def test_a_decided_transaction_is_completed_by_the_next_process(daemon: Daemon) -> None:
    """The daemon is killed between the decision and the markers: here the decision is written into its store
    after the kill, so that it is that moment and no other."""
    fill(daemon, 2)
    reader = consumer(daemon.bootstrap, GROUP)
    reader.subscribe(["in"])
    messages: list[Any] = []
    while len(messages) < 2:
        messages += reader.consume(1, WAIT_S)
    sender = producer(daemon.bootstrap)
    sender.init_transactions(WAIT_S)
    sender.begin_transaction()
    for message in messages:
        sender.produce("out", message.value(), partition=message.partition())
    sender.send_offsets_to_transaction(
        reader.position(reader.assignment()), reader.consumer_group_metadata(), WAIT_S
    )
    assert sender.flush(WAIT_S) == 0
    assert read_all(daemon) == []
    assert read_all(daemon, isolation="read_uncommitted") == [b"0", b"1"]
    daemon.kill()
    asyncio.run(decide(daemon.data_dir / "transactions.db", State.PREPARE_COMMIT))
    daemon.start()
    again = producer(daemon.bootstrap)
    again.init_transactions(WAIT_S)
    assert read_all(daemon) == [b"0", b"1"]
    assert committed(daemon, GROUP) == [1, 1]
    with pytest.raises(KafkaException) as error:
        sender.abort_transaction(WAIT_S)
    assert error.value.args[0].fatal()
    reader.close()


async def decide(path: Path, state: State) -> None:
    """Write the next state of the only transaction, as the daemon does it."""
    storage = SqliteStorage(path, partitions=STORE_PARTITIONS)
    await storage.start()
    for partition in range(STORE_PARTITIONS):
        rows = [row async for chunk in storage.replay(partition) for row in chunk]
        for _, _, key, value in rows:
            assert value is not None
            assert decode_key(key) == "mover"
            transaction = decode_value(value)
            assert transaction.state == State.ONGOING
            decided = encode_value(
                type(transaction)(
                    transaction.producer_id,
                    transaction.epoch,
                    transaction.timeout_ms,
                    state,
                    transaction.partitions,
                    transaction.started_ms,
                    transaction.updated_ms,
                )
            )
            await storage.append([(partition, EPOCH, [(key, decided)])])
    await storage.close()


def test_a_long_commit_that_its_end_overtakes_is_whole_or_refused_after_kill_9(
    daemon: Daemon, seed: int
) -> None:
    asyncio.run(end_during_commits(daemon, random.Random(seed)))


async def end_during_commits(daemon: Daemon, chance: random.Random) -> None:
    acknowledged = -1
    for number in range(ROUNDS):
        async with connected("127.0.0.1", daemon.port) as one, connected("127.0.0.1", daemon.port) as other:
            talk = Talk(other)
            producer = await talk.began("long")
            assert await talk.add_group(producer, "long", name="long") == 0
            entries = [m.TxnOffsetCommitRequestPartition(index, number, -1, "") for index in range(MANY)]
            topics = [m.TxnOffsetCommitRequestTopic("many", entries)]
            request = m.TxnOffsetCommitRequest("long", "long", *producer, topics=topics)
            one.send(request, 3)
            await asyncio.sleep(chance.choice((0, chance.uniform(0, 0.1), 1)))
            assert await talk.end(producer, name="long") == 0
            _, answer = await one.receive(m.TxnOffsetCommitRequest, 3)
        daemon.restart()
        codes = {entry.error_code for topic in answer.topics for entry in topic.partitions}
        if codes == {0}:
            acknowledged = number
        else:
            assert codes < {ErrorCode.INVALID_TXN_STATE, ErrorCode.CONCURRENT_TRANSACTIONS}
        async with connected("127.0.0.1", daemon.port) as one:
            await Talk(one).began("long")  # what was decided before the kill is done
            wanted = [m.OffsetFetchRequestTopic("many", list(range(MANY)))]
            found = await one.call(m.OffsetFetchRequest("long", wanted, require_stable=True), 7)
            [topic] = found.topics
            assert {(entry.error_code, entry.committed_offset) for entry in topic.partitions} == {
                (0, acknowledged)
            }


def test_an_open_transaction_of_a_killed_client_is_aborted_by_the_next_one(daemon: Daemon) -> None:
    zombie = producer(daemon.bootstrap)
    zombie.init_transactions(WAIT_S)
    zombie.begin_transaction()
    zombie.produce("out", b"lost", partition=0)
    assert zombie.flush(WAIT_S) == 0
    after = producer(daemon.bootstrap)
    after.init_transactions(WAIT_S)
    after.begin_transaction()
    after.produce("out", b"kept", partition=0)
    after.commit_transaction(WAIT_S)
    assert read_all(daemon) == [b"kept"]
    assert read_all(daemon, isolation="read_uncommitted") == [b"kept", b"lost"]
    with pytest.raises(KafkaException) as error:
        zombie.commit_transaction(WAIT_S)
    assert error.value.args[0].fatal()
    assert error.value.args[0].code() == KafkaError._FENCED


@pytest.mark.second_try("aiokafka's clients: timeouts that run by the clock")
async def test_aiokafka_moves_records_in_transactions(daemon: Daemon) -> None:
    fill(daemon, 20)
    reader = AIOKafkaConsumer(
        "in",
        bootstrap_servers=daemon.bootstrap,
        group_id=GROUP,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        isolation_level="read_committed",
    )
    sender = AIOKafkaProducer(bootstrap_servers=daemon.bootstrap, transactional_id="mover")
    await reader.start()
    await sender.start()
    moved = 0
    try:
        async with asyncio.timeout(60):
            while moved < 20:
                moved += await move_some(reader, sender, fail=moved == 0)
        zombie, sender = (
            sender,
            AIOKafkaProducer(bootstrap_servers=daemon.bootstrap, transactional_id="mover"),
        )
        await zombie.begin_transaction()
        await zombie.send_and_wait("out", b"zombie", partition=0)
        await sender.start()
        with pytest.raises(ProducerFenced):
            await zombie.commit_transaction()
        await zombie.stop()
    finally:
        await reader.stop()
        await sender.stop()
    expected = sorted(str(number).encode() for number in range(20))
    assert await asyncio.to_thread(read_all, daemon) == expected
    assert sum(await asyncio.to_thread(committed, daemon, GROUP)) == 20


async def move_some(reader: AIOKafkaConsumer, sender: AIOKafkaProducer, *, fail: bool) -> int:
    """One transaction; how many records it moved. The first one fails once, and is done again."""
    batches = await reader.getmany(timeout_ms=1_000, max_records=6)
    messages = [message for some in batches.values() for message in some]
    if not messages:
        return 0
    offsets = {part: some[-1].offset + 1 for part, some in batches.items()}
    for failing in (True, False) if fail else (False,):
        with contextlib.suppress(json.JSONDecodeError):
            async with sender.transaction():
                for message in messages:
                    await sender.send("out", message.value, partition=message.partition)
                await sender.send_offsets_to_transaction(
                    {AioPartition(part.topic, part.partition): offset for part, offset in offsets.items()},
                    GROUP,
                )
                if failing:
                    json.loads("what goes wrong here aborts")
    return len(messages)
