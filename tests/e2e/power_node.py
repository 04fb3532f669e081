"""A node's promises about commits, transactions, topics, deleted records and producer ids, cut at any moment.

Clients speak to a node of this process over its socket; see `tests.support.cut_lab`.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from itertools import pairwise
from typing import Any

from ringleader.coordinator.config import Settings
from ringleader.coordinator.node import Node
from ringleader.protocol import messages as m
from ringleader.protocol.errors import ErrorCode, error_name
from ringleader.protocol.records import Record, build_batch, iter_batches
from ringleader.protocol.schema import Message
from tests.support.cut_lab import Scenario, Tell
from tests.support.rawclient import AsyncRawConnection

STEPS = 6
"""Of each client in a round."""
PATIENCE_S = 30.0

EARLIEST, LATEST = -2, -1


def value_of(number: int, step: int) -> int:
    """Grows from step to step and from round to round."""
    return number * 1_000 + step


def batch(value: int, **options: Any) -> bytes:
    """One record; large enough for a file to be full after a few."""
    return build_batch([Record(0, 1_700_000_000_000, None, b"%d %s" % (value, b"x" * 6_000))], **options)


class Client:
    """One connection; answers that say no are exceptions, and CONCURRENT_TRANSACTIONS means to ask again."""

    def __init__(self, connection: AsyncRawConnection) -> None:
        self.ask = connection.call

    async def until_possible(self, request: Message, version: int, error: Callable[[Any], int]) -> Any:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                answer = await self.ask(request, version)
                code = error(answer)
                if code == ErrorCode.CONCURRENT_TRANSACTIONS:
                    await asyncio.sleep(0.002)
                    continue
                assert not code, f"{type(request).__name__}: {error_name(code)}"
                return answer

    async def commit(self, group: str, topic: str, offset: int) -> None:
        part = m.OffsetCommitRequestPartition(partition_index=0, committed_offset=offset)
        request = m.OffsetCommitRequest(
            group, topics=[m.OffsetCommitRequestTopic(name=topic, partitions=[part])]
        )
        await self.until_possible(request, 7, lambda answer: answer.topics[0].partitions[0].error_code)

    async def committed(self, group: str, topic: str) -> int:
        topics = [m.OffsetFetchRequestTopic(topic, [0])]
        request = m.OffsetFetchRequest(group_id=group, topics=topics, require_stable=True)
        answer = await self.until_possible(
            request, 7, lambda answer: answer.error_code or answer.topics[0].partitions[0].error_code
        )
        return int(answer.topics[0].partitions[0].committed_offset)

    async def producer(self, transactional_id: str | None) -> tuple[int, int]:
        request = m.InitProducerIdRequest(transactional_id, 60_000, -1, -1)
        answer = await self.until_possible(request, 4, lambda answer: answer.error_code)
        return answer.producer_id, answer.producer_epoch

    async def produce(self, transactional_id: str | None, topic: str, records: bytes) -> None:
        part = m.ProduceRequestPartitionProduceData(0, records)
        data = [m.ProduceRequestTopicProduceData(topic, partition_data=[part])]
        request = m.ProduceRequest(transactional_id, -1, 5_000, data)
        await self.until_possible(
            request, 9, lambda answer: answer.responses[0].partition_responses[0].error_code
        )

    async def move(self, producer: tuple[int, int], value: int) -> None:
        """A record into "out" and the offset of its source, in the transaction of "mover"."""
        parts = m.AddPartitionsToTxnRequestAddPartitionsToTxnTopic("out", [0])
        await self.until_possible(
            m.AddPartitionsToTxnRequest("mover", *producer, [parts]),
            3,
            lambda answer: (
                answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
            ),
        )
        id_, epoch = producer
        options = {"producer_id": id_, "producer_epoch": epoch, "base_sequence": 0, "transactional": True}
        await self.produce("mover", "out", batch(value, **options))
        await self.until_possible(
            m.AddOffsetsToTxnRequest("mover", *producer, "moved"), 3, lambda answer: answer.error_code
        )
        offset = m.TxnOffsetCommitRequestTopic(
            "orders", [m.TxnOffsetCommitRequestPartition(0, value, -1, "")]
        )
        await self.until_possible(
            m.TxnOffsetCommitRequest("mover", "moved", *producer, topics=[offset]),
            3,
            lambda answer: answer.topics[0].partitions[0].error_code,
        )

    async def delete_records(self, topic: str, before: int) -> None:
        part = m.DeleteRecordsRequestDeleteRecordsPartition(0, before)
        topics = [m.DeleteRecordsRequestDeleteRecordsTopic(topic, [part])]
        request = m.DeleteRecordsRequest(topics, 5_000)
        await self.until_possible(request, 2, lambda answer: answer.topics[0].partitions[0].error_code)

    async def offset(self, topic: str, timestamp: int) -> int:
        part = m.ListOffsetsRequestListOffsetsPartition(0, -1, timestamp)
        request = m.ListOffsetsRequest(-1, 0, [m.ListOffsetsRequestListOffsetsTopic(topic, [part])])
        answer = await self.until_possible(
            request, 7, lambda answer: answer.topics[0].partitions[0].error_code
        )
        return int(answer.topics[0].partitions[0].offset)

    async def values(self, topic: str) -> list[int]:
        """Of all records that a reader of committed ones sees."""
        at, found = await self.offset(topic, EARLIEST), list[int]()
        while True:
            part = m.FetchRequestFetchPartition(0, fetch_offset=at, partition_max_bytes=1 << 20)
            request = m.FetchRequest(
                max_wait_ms=0,
                max_bytes=1 << 20,
                isolation_level=1,
                session_epoch=-1,
                topics=[m.FetchRequestFetchTopic(topic=topic, partitions=[part])],
            )
            answer = await self.until_possible(
                request, 11, lambda answer: answer.responses[0].partitions[0].error_code
            )
            got = answer.responses[0].partitions[0]
            assert got.last_stable_offset == got.high_watermark, "a transaction is open for ever"
            aborted = {(entry.producer_id, entry.first_offset) for entry in got.aborted_transactions or ()}
            views = list(iter_batches(got.records or b""))
            if not views:
                return found
            for view in views:
                head = view.header
                if (head.producer_id, head.base_offset) in aborted or head.attributes & 32:
                    continue
                found += [int((record.value or b"").split()[0]) for record in view.records()]
            at = views[-1].header.base_offset + views[-1].header.last_offset_delta + 1


class NodeScenario(Scenario):
    """A node in the directory, and its clients."""

    @contextlib.asynccontextmanager
    async def node(self) -> AsyncIterator[Node]:
        settings = Settings(
            listen="127.0.0.1:0",
            data_dir=self.directory,
            group_initial_rebalance_delay_ms=0,
            shutdown_grace_ms=0,
            log_segment_bytes=16_384,
            topic=["orders:1", "out:1", "log:1"],
        )
        node = Node(settings)
        await node.start()
        try:
            yield node
        finally:
            await node.stop()


class FirstStart(NodeScenario):
    """A node starts for the first time: any moment may be the last one."""

    async def live(self, tell: Tell) -> None:
        """The process reports that it was ready, with its topics."""
        async with self.node() as node:
            tell("ready")
            assert node.topics.describe("orders") is not None

    async def check(self, promised: list[Any], tell: Tell) -> None:
        """It starts again, and what it made is there."""
        made = (self.directory / "node.json").exists()
        assert made or not promised, "node.json is gone"
        async with self.node() as node:
            assert {info.name for info in node.topics.all() if not info.is_internal} == {
                "orders",
                "out",
                "log",
            }


class Everything(NodeScenario):
    """Commits, transactions, topics, deleted records and producer ids, all at once."""

    async def live(self, tell: Tell) -> None:
        """The process reports the answers that were acknowledged."""
        async with self.node() as node:
            await self._together(
                node, tell, self._commit, self._move, self._produce, self._topics, self._identify
            )

    async def _together(
        self, node: Node, tell: Tell, *clients: Callable[[Client, Tell], Coroutine[Any, Any, None]]
    ) -> None:
        connections = [await AsyncRawConnection.connect(node.bootstrap) for _ in clients]
        async with asyncio.TaskGroup() as tasks:
            for client, connection in zip(clients, connections, strict=True):
                tasks.create_task(client(Client(connection), tell))
        for connection in connections:
            await connection.close()

    async def _commit(self, client: Client, tell: Tell) -> None:
        for step in range(STEPS * 2):
            await client.commit("plain", "orders", value_of(self.number, step))
            tell(["commit", value_of(self.number, step)])

    async def _move(self, client: Client, tell: Tell) -> None:
        """Transactions, every third one aborted. One is reported when the next one begins: until then its
        records may be lost, as the documents say."""
        last: list[Any] = []
        for step in range(STEPS):
            producer = await client.producer("mover")
            if last:
                tell(last)
            value, commits = value_of(self.number, step), step % 3 != 1
            await client.move(producer, value)
            await client.until_possible(
                m.EndTxnRequest("mover", *producer, commits), 3, lambda answer: answer.error_code
            )
            last = ["committed" if commits else "aborted", value]

    async def _produce(self, client: Client, tell: Tell) -> None:
        """Records over several files, the older ones deleted on the way."""
        for step in range(STEPS * 2):
            await client.produce(None, "log", batch(value_of(self.number, step)))
            if step % 4 == 3:
                start = await client.offset("log", LATEST) - self.draw.randint(0, 2)
                await client.delete_records("log", start)
                tell(["start", start])

    async def _topics(self, client: Client, tell: Tell) -> None:
        for step in range(STEPS):
            name = f"topic-{self.number}-{step}"
            made = await client.until_possible(
                m.CreateTopicsRequest([m.CreateTopicsRequestCreatableTopic(name, 1, 1)]),
                7,
                lambda answer: answer.topics[0].error_code,
            )
            tell(["created", name, made.topics[0].topic_id.hex()])
            await client.produce(None, name, batch(0))
            await client.delete_records(name, 1)
            tell(["emptied", name])
            if step % 2:
                tell(["deleting", name])
                await client.until_possible(
                    m.DeleteTopicsRequest(topic_names=[name], timeout_ms=5_000),
                    5,
                    lambda answer: answer.responses[0].error_code,
                )
                tell(["deleted", name])

    async def _identify(self, client: Client, tell: Tell) -> None:
        for _ in range(STEPS):
            tell(["producer id", (await client.producer(None))[0]])

    async def check(self, promised: list[Any], tell: Tell) -> None:
        """Everything that was reported, and nothing that it excludes."""
        facts: dict[str, list[Any]] = {}
        for kind, *rest in promised:
            facts.setdefault(kind, []).append(rest[0] if len(rest) == 1 else tuple(rest))
        async with self.node() as node:
            connection = await AsyncRawConnection.connect(node.bootstrap)
            client = Client(connection)
            await self._check_offsets(client, facts)
            await self._check_log(client, facts)
            await self._check_topics(client, node, facts)
            ids = facts.get("producer id", [])
            fresh = (await client.producer(None))[0]
            tell(["producer id", fresh])
            assert len({*ids, fresh}) == len(ids) + 1, f"a producer id was given out twice: {fresh}, {ids}"
            await connection.close()

    async def _check_offsets(self, client: Client, facts: dict[str, list[Any]]) -> None:
        offset = await client.committed("plain", "orders")
        assert offset >= max(facts.get("commit", [-1])), f"a commit is lost: {offset}"
        await client.producer("mover")  # completes or aborts what was under way
        visible, offset = await client.values("out"), await client.committed("moved", "orders")
        assert visible == sorted(set(visible)), f"moved twice: {visible}"
        lost = set(facts.get("committed", [])) - set(visible)
        assert not lost, f"records of committed transactions are lost: {lost}, {visible}"
        assert not set(facts.get("aborted", [])) & set(visible), f"aborted records are seen: {visible}"
        assert offset >= max(visible, default=-1), f"records without their offsets: {visible[-1]}, {offset}"
        assert offset not in facts.get("aborted", []), "an aborted offset is committed"

    async def _check_log(self, client: Client, facts: dict[str, list[Any]]) -> None:
        start, end = await client.offset("log", EARLIEST), await client.offset("log", LATEST)
        promised = max(facts.get("start", [0]))
        assert start >= promised, f"deleted records are back: from {start}, deleted up to {promised}"
        values = await client.values("log")
        assert end - start == len(values), f"{len(values)} records from {start} to {end}"
        for before, after in pairwise(values):
            assert after == before + 1 or after // 1_000 > before // 1_000, f"a hole in the log: {values}"

    async def _check_topics(self, client: Client, node: Node, facts: dict[str, list[Any]]) -> None:
        there = {info.name: info.id.hex() for info in node.topics.all()}
        for name, topic_id in facts.get("created", []):
            if name not in facts.get("deleting", []):
                assert there.get(name) == topic_id, f"{name} was created: {there}"
        back = set(facts.get("deleted", [])) & there.keys()
        assert not back, f"deleted topics are back: {back}"
        for name in set(facts.get("emptied", [])) & there.keys():
            assert await client.offset(name, EARLIEST) == 1, f"the record of {name} is back"
