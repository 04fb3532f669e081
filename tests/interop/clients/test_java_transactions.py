"""Exactly once in Java: consume, transform, produce in transactions (KIP-98, KIP-447)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from ringleader.clients.admin import Admin
from tests.interop.clients.java_clients import JavaClients, JavaError, JavaMember, JavaProducer
from tests.interop.clients.team import ALL, EACH, PARTITIONS, TOPIC, MakeMember, produce
from tests.interop.clients.watch import WatchBoard
from tests.support.daemon import Daemon

OUT = "shipped"


class Worker:
    """A consumer of the input and a transactional producer of the output."""

    def __init__(self, reader: JavaMember, producer: JavaProducer, board: WatchBoard) -> None:
        self.reader, self.producer, self._board = reader, producer, board

    async def begin(self, offset: int) -> None:
        """Write down what is read of each own partition, up to an offset, and the offset itself."""
        await self.producer.call("begin")
        own = self._board.owned[self.reader.name] or ()
        for partition in own:
            values = [f"{self.reader.name} {partition}-{number}" for number in range(offset)]
            await self.producer.send(OUT, [(partition % 2, value) for value in values])
        await self.send_offsets(own, offset)

    async def send_offsets(self, partitions: tuple[int, ...], offset: int) -> None:
        """As sendOffsetsToTransaction, with the reader's group metadata."""
        offsets = [[TOPIC, partition, offset] for partition in partitions]
        await self.producer.call("offsets", offsets=offsets, consumer=self.reader.client)


@pytest.fixture
async def topics(daemon: Daemon, java_clients: JavaClients) -> list[tuple[int, int]]:
    """The input, filled, and the output, empty."""
    async with Admin(daemon.bootstrap) as admin:
        await admin.create_topic(OUT, 2)
    return await produce(java_clients, daemon)


class Works:
    """Makes workers of one group."""

    def __init__(self, daemon: Daemon, java_clients: JavaClients, member: MakeMember) -> None:
        self._daemon, self._java, self._member = daemon, java_clients, member

    @asynccontextmanager
    async def worker(self, board: WatchBoard, name: str, **options: Any) -> AsyncIterator[Worker]:
        """One at work; closed at the end."""
        async with self.producer(name) as producer:
            reader = self._member(board, name, isolation_level="read_committed", **options)
            await reader.join()
            try:
                yield Worker(reader, producer, board)
            finally:
                await reader.leave()

    @asynccontextmanager
    async def producer(self, name: str) -> AsyncIterator[JavaProducer]:
        """A producer with that transactional id, ready to begin."""
        async with JavaProducer(
            self._java, self._daemon.bootstrap, {"transactional.id": name, "transaction.timeout.ms": "30000"}
        ) as producer:
            await producer.call("init")
            yield producer

    @asynccontextmanager
    async def reader(self, board: WatchBoard, name: str, isolation: str) -> AsyncIterator[JavaMember]:
        """A consumer of the output, in a group of its own."""
        # With its default a Java client joins again when its only broker was away, and reads again what it
        # has not committed.
        config = {"isolation.level": isolation, "metadata.recovery.strategy": "none"}
        reader = JavaMember(board, self._java, self._daemon.bootstrap, name, OUT, name, config)
        await reader.join()
        try:
            yield reader
        finally:
            await reader.leave()


@pytest.fixture
def works(daemon: Daemon, java_clients: JavaClients, member: MakeMember) -> Works:
    """Makes workers."""
    return Works(daemon, java_clients, member)


@pytest.mark.usefixtures("topics")
async def test_output_and_offsets_appear_together_at_the_commit(works: Works) -> None:
    board = WatchBoard()
    async with (
        works.worker(board, "mover") as worker,
        works.reader(board, "careful", "read_committed"),
        works.reader(board, "hasty", "read_uncommitted"),
    ):
        await board.until(lambda now: now.owned.get("mover") == ALL)
        await worker.begin(EACH)
        # One that reads uncommitted sees it all before the end; the other sees nothing, nor does the group.
        await board.until(lambda _: len(board.values.get("hasty", ())) == EACH * PARTITIONS)
        assert "careful" not in board.values
        # A client that asks for the offsets waits for the end (require stable, KIP-447).
        asking = asyncio.ensure_future(worker.reader.committed(ALL))
        await worker.producer.call("commit")
        assert await asking == [EACH] * PARTITIONS
        await board.until(lambda _: len(board.values.get("careful", ())) == EACH * PARTITIONS)
        assert sorted(board.values["careful"]) == sorted(board.values["hasty"])


@pytest.mark.usefixtures("topics")
async def test_nothing_is_left_of_an_aborted_transaction_but_what_comes_after_it(works: Works) -> None:
    board = WatchBoard()
    async with (
        works.worker(board, "mover") as worker,
        works.reader(board, "careful", "read_committed"),
    ):
        await board.until(lambda now: now.owned.get("mover") == ALL)
        await worker.begin(3)
        await worker.producer.call("abort")
        assert await worker.reader.committed(ALL) == [None] * PARTITIONS
        await worker.begin(2)
        await worker.producer.call("commit")
        assert await worker.reader.committed(ALL) == [2] * PARTITIONS
        await board.until(lambda _: len(board.values.get("careful", ())) == 2 * PARTITIONS)
        # Were any of the aborted ones to come, they would have come before.
        assert sorted(board.values["careful"]) == sorted(f"mover {p}-{n}" for p in ALL for n in range(2))


@pytest.mark.usefixtures("topics")
async def test_the_next_producer_of_the_same_id_fences_the_one_before_it(works: Works) -> None:
    board = WatchBoard()
    async with (
        works.worker(board, "mover") as worker,
        works.reader(board, "careful", "read_committed"),
    ):
        await board.until(lambda now: now.owned.get("mover") == ALL)
        await worker.begin(EACH)
        async with works.producer("mover") as successor:
            with pytest.raises(JavaError) as error:
                await worker.producer.call("commit")
            assert error.value.error in ("ProducerFencedException", "InvalidProducerEpochException")
            # The transaction that it had begun is undone.
            assert await worker.reader.committed(ALL) == [None] * PARTITIONS
            await successor.call("begin")
            await successor.send(OUT, [(0, "after")])
            await successor.call("commit")
        await board.until(lambda _: board.values.get("careful") == ["after"])


@pytest.mark.usefixtures("topics")
async def test_a_member_that_lost_its_partitions_cannot_commit_their_offsets(works: Works) -> None:
    """The zombie of KIP-447: its producer is as good as ever, but its group has gone on without it."""
    board = WatchBoard()
    async with works.worker(board, "old") as old:
        await board.until(lambda now: now.owned.get("old") == ALL)
        await old.begin(1)
        stale = old.reader.client
        await old.producer.call("abort")
        await old.reader.leave()
        async with works.worker(board, "new") as new:
            await board.until(lambda now: now.owned.get("new") == ALL)
            await old.producer.call("begin")
            offsets = [[TOPIC, partition, EACH] for partition in ALL]
            with pytest.raises(JavaError) as error:
                await old.producer.call("offsets", offsets=offsets, consumer=stale)
            assert error.value.error == "CommitFailedException"
            await old.producer.call("abort")
            assert await new.reader.committed(ALL) == [None] * PARTITIONS


async def test_transactions_of_two_workers_outlive_a_crash_of_the_daemon(
    daemon: Daemon, works: Works, topics: list[tuple[int, int]]
) -> None:
    board = WatchBoard()
    async with (
        works.worker(board, "one", metadata_recovery_strategy="none") as one,
        works.worker(board, "two", metadata_recovery_strategy="none") as two,
        works.reader(board, "careful", "read_committed"),
    ):
        await board.until(
            lambda now: (len(now.owned.get("one") or ()), len(now.owned.get("two") or ())) == (3, 3)
        )
        # In the middle of a transaction, and between its end being asked for and being done with.
        await one.begin(EACH)
        await two.begin(EACH)
        await asyncio.to_thread(daemon.restart)
        await asyncio.gather(one.producer.call("commit"), two.producer.call("commit"))
        assert await one.reader.committed(ALL) == [EACH] * PARTITIONS
        await board.until(lambda _: len(board.values.get("careful", ())) >= len(topics))
        due = [
            f"{w.reader.name} {p}-{n}"
            for w in (one, two)
            for p in board.owned[w.reader.name] or ()
            for n in range(EACH)
        ]
        assert sorted(board.values["careful"]) == sorted(due)
