"""Transactions over sockets, request by request. The answers are those that Apache Kafka 4.3 gave."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from ringleader.coordinator.clock import wall_ms
from ringleader.coordinator.config import Settings
from ringleader.coordinator.node import Node
from ringleader.protocol import messages as m
from ringleader.protocol.errors import ErrorCode
from ringleader.protocol.records import iter_batches
from tests.support.groupclient import form
from tests.support.served import Client
from tests.support.topiclog import produced

FENCED, EPOCH, MAPPING = (
    ErrorCode.PRODUCER_FENCED,
    ErrorCode.INVALID_PRODUCER_EPOCH,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
)
UNKNOWN, INVALID = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_REQUEST
TXN_STATE, CONCURRENT = ErrorCode.INVALID_TXN_STATE, ErrorCode.CONCURRENT_TRANSACTIONS
Producer = tuple[int, int]


class Talk:
    """One client's requests, with what matters of the answers."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def init(
        self, name: str | None = "t", expected: Producer = (-1, -1), *, v: int = 4, timeout_ms: int = 60_000
    ) -> Any:
        answer = await self.client.call(m.InitProducerIdRequest(name, timeout_ms, *expected), v)
        if answer.error_code:
            assert (answer.producer_id, answer.producer_epoch) == (-1, -1)
        return answer.error_code or (answer.producer_id, answer.producer_epoch)

    async def began(self, name: str = "t", **options: Any) -> Producer:
        """As `init`, asked again while an earlier transaction ends."""
        producer: Producer = await self.patiently(lambda: self.init(name, **options), CONCURRENT)
        return producer

    async def patiently(self, ask: Any, unless: int | None) -> Any:
        """Ask until the answer is another one."""
        for _ in range(4_000):
            found = await ask()
            if found != unless:
                return found
            await asyncio.sleep(0.005)
        raise TimeoutError(f"still {unless}")

    async def add(self, producer: Producer, *parts: tuple[str, int], name: str = "t", v: int = 3) -> Any:
        topics = [m.AddPartitionsToTxnRequestAddPartitionsToTxnTopic(topic, [part]) for topic, part in parts]
        request = m.AddPartitionsToTxnRequest(name, *producer, topics)
        answer = await self.client.call(request, v)
        errors = [
            found.partition_error_code
            for topic in answer.results_by_topic_v3_and_below
            for found in topic.results_by_partition
        ]
        return errors[0] if len(parts) == 1 else errors

    async def added(self, producer: Producer, *parts: tuple[str, int], name: str = "t") -> None:
        for part in parts:
            assert (
                await self.patiently(lambda part=part: self.add(producer, part, name=name), CONCURRENT) == 0
            )

    async def add_group(self, producer: Producer, group: str = "g", *, name: str = "t", v: int = 3) -> int:
        request = m.AddOffsetsToTxnRequest(name, *producer, group)
        return int((await self.client.call(request, v)).error_code)

    async def end(self, producer: Producer, committed: bool = True, *, name: str = "t", v: int = 3) -> int:
        request = m.EndTxnRequest(name, *producer, committed)
        return int((await self.client.call(request, v)).error_code)

    async def produce(self, name: str | None, topic: str, partition: int, batch: bytes, *, v: int = 9) -> int:
        part = m.ProduceRequestPartitionProduceData(partition, batch)
        request = m.ProduceRequest(
            name, -1, 5000, [m.ProduceRequestTopicProduceData(topic, partition_data=[part])]
        )
        return int((await self.client.call(request, v)).responses[0].partition_responses[0].error_code)

    async def commit(
        self, producer: Producer, *parts: tuple[str, int, int], name: str = "t", v: int = 3, **membership: Any
    ) -> Any:
        topics = [
            m.TxnOffsetCommitRequestTopic(topic, [m.TxnOffsetCommitRequestPartition(part, offset, -1, "")])
            for topic, part, offset in parts
        ]
        group = membership.pop("group", "g")
        request = m.TxnOffsetCommitRequest(name, group, *producer, topics=topics, **membership)
        answer = await self.client.call(request, v)
        errors = {
            (topic.name, found.partition_index): found.error_code
            for topic in answer.topics
            for found in topic.partitions
        }
        assert len(errors) == len(parts)
        return next(iter(errors.values())) if len(parts) == 1 else errors

    async def offset(self, *, stable: bool = False, group: str = "g") -> Any:
        request = m.OffsetFetchRequest(
            group_id=group, topics=[m.OffsetFetchRequestTopic("a", [0])], require_stable=stable
        )
        found = (await self.client.call(request, 7)).topics[0].partitions[0]
        return found.error_code or found.committed_offset

    async def fetch(self, topic: str, offset: int, *, committed: bool = True, wait_ms: int = 0) -> Any:
        """High watermark, last stable offset, first offsets of aborted ones, base offsets of batches."""
        part = m.FetchRequestFetchPartition(0, fetch_offset=offset, partition_max_bytes=1 << 20)
        request = m.FetchRequest(
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=1 << 20,
            isolation_level=int(committed),
            session_epoch=-1,
            topics=[m.FetchRequestFetchTopic(topic=topic, partitions=[part])],
        )
        found = (await self.client.call(request, 11)).responses[0].partitions[0]
        aborted = found.aborted_transactions
        return (
            found.error_code or found.high_watermark,
            found.last_stable_offset,
            None if aborted is None else [entry.first_offset for entry in aborted],
            [view.header.base_offset for view in iter_batches(found.records or b"")],
        )

    async def stable(self, topic: str, offset: int = 0) -> Any:
        """As `fetch`, when no transaction is open."""
        return await self.patiently(lambda: self._decided(topic, offset), None)

    async def _decided(self, topic: str, offset: int) -> Any:
        found = await self.fetch(topic, offset)
        return found if found[0] == found[1] else None

    async def list_offset(self, timestamp: int, *, committed: bool) -> int:
        part = m.ListOffsetsRequestListOffsetsPartition(0, -1, timestamp)
        topics = [m.ListOffsetsRequestListOffsetsTopic("a", [part])]
        request = m.ListOffsetsRequest(replica_id=-1, isolation_level=int(committed), topics=topics)
        return int((await self.client.call(request, 7)).topics[0].partitions[0].offset)


def batch(producer: Producer, sequence: int, count: int = 1, epoch_more: int = 0) -> bytes:
    """A transactional batch of now, so that markers go into the same file."""
    epoch = producer[1] + epoch_more
    return produced(producer[0], sequence, count, epoch, transactional=True, at_ms=wall_ms())


@contextlib.asynccontextmanager
async def talking(directory: Path, **more: Any) -> AsyncIterator[Talk]:
    settings = Settings(
        listen="127.0.0.1:0",
        data_dir=directory,
        topic="a:2,b:2",
        group_initial_rebalance_delay_ms=0,
        **more,
    )
    async with Node(settings) as node:
        client = Client(*await asyncio.open_connection(node.host, node.port))
        try:
            yield Talk(client)
        finally:
            await client.close()


async def test_init_producer_id_checks_its_request(tmp_path: Path) -> None:
    async with talking(tmp_path, transaction_max_timeout_ms=1_000_000) as talk:
        assert await talk.init("") == INVALID
        assert await talk.init(timeout_ms=0) == ErrorCode.INVALID_TRANSACTION_TIMEOUT
        assert await talk.init(timeout_ms=1_000_001) == ErrorCode.INVALID_TRANSACTION_TIMEOUT
        assert await talk.init(expected=(5, -1)) == INVALID
        producer_id, epoch = await talk.init(v=0)
        assert epoch == 0
        assert await talk.init(expected=(producer_id, 0)) == (producer_id, 1)
        assert await talk.init(expected=(producer_id, 0), v=3) == (producer_id, 1)
        assert await talk.init(expected=(producer_id, 7)) == FENCED
        assert await talk.init(expected=(producer_id, 7), v=3) == EPOCH
        assert (await talk.init(None))[0] != producer_id


async def test_only_its_producer_may_change_a_transaction(tmp_path: Path) -> None:
    async with talking(tmp_path) as talk:
        await talk.init()
        producer = (producer_id, epoch) = await talk.init()
        old, other = (producer_id, epoch - 1), (producer_id + 1000, epoch)
        for ask in (
            lambda producer, **more: talk.add(producer, ("a", 0), **more),
            talk.add_group,
            talk.end,
        ):
            assert await ask(producer, name="") == INVALID
            assert await ask(producer, name="nobody") == MAPPING
            assert await ask(other) == MAPPING
            assert await ask(old) == FENCED
            assert await ask(old, v=2) == FENCED
            assert await ask(old, v=1) == EPOCH
        assert await talk.add(producer, ("a", 0), ("none", 0)) == [ErrorCode.OPERATION_NOT_ATTEMPTED, UNKNOWN]
        assert await talk.add(producer, ("a", 0), ("a", 9)) == [ErrorCode.OPERATION_NOT_ATTEMPTED, UNKNOWN]
        assert await talk.end(producer) == TXN_STATE
        assert await talk.end(producer, False) == TXN_STATE


async def test_only_a_partition_of_the_transaction_is_written_to(tmp_path: Path) -> None:
    async with talking(tmp_path) as talk:
        await talk.init()
        producer = await talk.init()
        assert await talk.produce("t", "a", 0, batch(producer, 0)) == TXN_STATE
        assert await talk.produce("nobody", "a", 0, batch(producer, 0)) == MAPPING
        assert await talk.produce("", "a", 0, batch(producer, 0)) == INVALID
        assert await talk.produce(None, "a", 0, batch(producer, 0)) == 53
        await talk.added(producer, ("a", 0))
        assert await talk.produce("t", "a", 0, batch(producer, 0, 2)) == 0
        assert await talk.produce("t", "a", 0, batch(producer, 0, 2)) == 0
        assert await talk.produce("t", "a", 1, batch(producer, 0)) == TXN_STATE
        assert await talk.produce("t", "a", 0, batch(producer, 2, 1, -1)) == EPOCH
        assert await talk.produce("t", "a", 0, batch(producer, 0, 1, 1)) == EPOCH
        assert await talk.produce("t", "a", 0, batch(producer, 9)) == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert await talk.produce("t", "a", 0, produced(producer[0], 2, 1, producer[1])) == TXN_STATE
        assert await talk.end(producer) == 0
        assert (await talk.stable("a"))[0] == 3
        # Until the end is durable too, the one retriable error that all producers know.
        late = await talk.patiently(
            lambda: talk.produce("t", "a", 0, batch(producer, 2)), ErrorCode.NOT_ENOUGH_REPLICAS
        )
        assert late == TXN_STATE


async def test_readers_of_committed_records_see_what_is_decided(tmp_path: Path) -> None:
    async with talking(tmp_path) as talk:
        producer = await talk.init()
        await talk.added(producer, ("a", 0))
        await talk.produce("t", "a", 0, batch(producer, 0, 2))
        await talk.produce(None, "a", 0, produced(-1, -1))
        assert await talk.fetch("a", 0) == (3, 0, [], [])
        assert await talk.fetch("a", 2) == (3, 0, [], [])
        assert (await talk.fetch("a", 9))[:3] == (1, -1, None)
        assert await talk.fetch("a", 0, committed=False) == (3, 0, None, [0, 2])
        assert await talk.list_offset(-1, committed=True) == 0
        assert await talk.list_offset(-1, committed=False) == 3
        assert await talk.list_offset(0, committed=True) == -1
        assert await talk.list_offset(0, committed=False) == 0
        await talk.end(producer)
        assert await talk.stable("a") == (4, 4, [], [0, 2, 3])
        await talk.added(producer, ("a", 0))
        await talk.produce("t", "a", 0, batch(producer, 2))
        await talk.produce("t", "a", 0, batch(producer, 3))
        assert await talk.fetch("a", 0) == (6, 4, [], [0, 2, 3])
        await talk.end(producer, False)
        assert await talk.stable("a") == (7, 7, [4], [0, 2, 3, 4, 5, 6])
        assert await talk.stable("a", 5) == (7, 7, [4], [5, 6])
        assert await talk.stable("a", 7) == (7, 7, [], [])
        assert await talk.fetch("a", 0, committed=False) == (7, 7, None, [0, 2, 3, 4, 5, 6])


async def test_a_reader_who_waits_is_woken_by_the_marker(tmp_path: Path) -> None:
    async with talking(tmp_path) as talk:
        producer = await talk.init()
        await talk.added(producer, ("a", 0))
        reader, writer = await asyncio.open_connection(*talk.client.writer.get_extra_info("peername"))
        second = Talk(Client(reader, writer))
        waiting = asyncio.ensure_future(second.fetch("a", 0, wait_ms=60_000))
        for sequence in range(3):
            await talk.produce("t", "a", 0, batch(producer, sequence))
        assert not waiting.done(), "nothing is decided"
        await talk.end(producer)
        async with asyncio.timeout(20):
            assert await waiting == (4, 4, [], [0, 1, 2, 3])
        await second.client.close()


async def test_offsets_of_a_group_belong_to_the_transaction(tmp_path: Path) -> None:
    async with talking(tmp_path) as talk:
        await talk.init()
        producer = (producer_id, epoch) = await talk.init()
        commit = ("a", 0, 5)
        assert await talk.commit(producer, commit) == TXN_STATE, "the group was not added"
        assert await talk.add_group(producer) == 0
        assert await talk.add_group(producer) == 0
        assert await talk.commit(producer, commit, ("none", 0, 1), ("b", 7, 1)) == {
            ("a", 0): 0,
            ("none", 0): UNKNOWN,
            ("b", 7): UNKNOWN,
        }
        assert await talk.commit((producer_id, epoch - 1), commit) == EPOCH
        assert await talk.commit((producer_id, epoch - 1), commit, v=0) == EPOCH
        assert await talk.commit((producer_id + 1000, epoch), commit) == MAPPING
        assert await talk.commit(producer, commit, group="") == ErrorCode.INVALID_GROUP_ID
        assert await talk.commit(producer, ("none", 0, 1), group="") == UNKNOWN
        assert await talk.commit(producer, commit, group="otherg1") == TXN_STATE
        membership: dict[str, Any] = {"generation_id_or_member_epoch": 4, "member_id": "x"}
        assert await talk.commit(producer, commit, **membership) == ErrorCode.UNKNOWN_MEMBER_ID
        assert await talk.offset() == -1
        assert await talk.offset(stable=True) == ErrorCode.UNSTABLE_OFFSET_COMMIT
        await talk.end(producer)
        assert await talk.patiently(talk.offset, -1) == 5
        assert await talk.offset(stable=True) == 5
        late = await talk.patiently(lambda: talk.commit(producer, ("a", 0, 6)), CONCURRENT)
        assert late == TXN_STATE
        assert await talk.patiently(lambda: talk.add_group(producer), CONCURRENT) == 0
        assert await talk.commit(producer, ("a", 0, 99), v=1) == 0
        await talk.end(producer, False)
        assert await talk.patiently(lambda: talk.offset(stable=True), ErrorCode.UNSTABLE_OFFSET_COMMIT) == 5


async def test_a_member_commits_with_its_generation(tmp_path: Path) -> None:
    async with talking(tmp_path) as talk:
        member = await form(talk.client, "g")
        producer = await talk.init()
        assert await talk.add_group(producer) == 0
        known: dict[str, Any] = {
            "member_id": member.member_id,
            "generation_id_or_member_epoch": member.generation,
        }
        assert await talk.commit(producer, ("a", 0, 5), **known) == 0
        known["generation_id_or_member_epoch"] += 1
        assert await talk.commit(producer, ("a", 0, 6), **known) == ErrorCode.ILLEGAL_GENERATION
        await talk.end(producer)
        assert await talk.patiently(talk.offset, -1) == 5


async def test_a_new_producer_fences_the_one_before(tmp_path: Path) -> None:
    async with talking(tmp_path) as talk:
        zombie = await talk.init()
        await talk.added(zombie, ("b", 0))
        await talk.produce("t", "b", 0, batch(zombie, 0))
        assert await talk.init() == CONCURRENT
        assert await talk.began() == (zombie[0], zombie[1] + 2)
        assert await talk.add(zombie, ("b", 0)) == FENCED
        assert await talk.end(zombie) == FENCED
        assert await talk.produce("t", "b", 0, batch(zombie, 1)) == EPOCH
        assert await talk.init(expected=zombie) == FENCED
        assert await talk.stable("b") == (2, 2, [0], [0, 1])


async def test_a_transaction_that_takes_too_long_is_aborted(tmp_path: Path) -> None:
    async with talking(tmp_path) as talk:
        producer = await talk.init("u", timeout_ms=100)
        await talk.added(producer, ("b", 0), name="u")
        await talk.produce("u", "b", 0, batch(producer, 0))
        await talk.patiently(lambda: talk.add(producer, ("b", 0), name="u"), 0)
        await talk.patiently(lambda: talk.add(producer, ("b", 0), name="u"), CONCURRENT)
        assert await talk.stable("b") == (2, 2, [0], [0, 1])
        assert await talk.end(producer, name="u") == FENCED
        assert await talk.produce("u", "b", 0, batch(producer, 1)) == EPOCH
        assert await talk.init("u", producer) == (producer[0], producer[1] + 1)
        assert await talk.init("u") == (producer[0], producer[1] + 2)


async def test_open_and_aborted_transactions_are_known_after_a_restart(tmp_path: Path) -> None:
    async with talking(tmp_path) as talk:
        producer, open_ = await talk.init(), await talk.init("open")
        await talk.added(producer, ("a", 0))
        await talk.produce("t", "a", 0, batch(producer, 0))
        await talk.end(producer, False)
        await talk.began()  # its end is durable, too: after a restart its marker is not sent again
        await talk.added(open_, ("a", 0), name="open")
        await talk.add_group(open_, name="open")
        assert await talk.commit(open_, ("a", 0, 5), name="open") == 0
        assert await talk.produce("open", "a", 0, batch(open_, 0)) == 0
    async with talking(tmp_path) as talk:
        assert await talk.fetch("a", 0) == (3, 2, [0], [0, 1])
        assert await talk.offset(stable=True) == ErrorCode.UNSTABLE_OFFSET_COMMIT
        assert await talk.produce("open", "a", 0, batch(open_, 1)) == 0
        assert await talk.end(open_, name="open") == 0
        assert await talk.stable("a") == (5, 5, [0], [0, 1, 2, 3, 4])
        assert await talk.patiently(lambda: talk.offset(stable=True), ErrorCode.UNSTABLE_OFFSET_COMMIT) == 5


def cut_markers(directory: Path) -> None:
    """Take the last batch off each file that ends with a marker."""
    for path in directory.glob("topics/data/*/*/*.log"):
        batches = [view.header for view in iter_batches(path.read_bytes())]
        if batches and batches[-1].is_control:
            os.truncate(path, path.stat().st_size - batches[-1].size_bytes)


@pytest.mark.parametrize("committed", [True, False])
async def test_a_file_that_lost_its_marker_gets_it_again(tmp_path: Path, committed: bool) -> None:
    async with talking(tmp_path) as talk:
        producer = await talk.init()
        await talk.added(producer, ("a", 0))
        await talk.produce("t", "a", 0, batch(producer, 0, 2))
        await talk.end(producer, committed)
        before = await talk.stable("a")
        # Its end is durable by then.
        assert await talk.patiently(lambda: talk.end(producer, committed), CONCURRENT) == 0
    cut_markers(tmp_path)
    async with talking(tmp_path) as talk:
        assert await talk.stable("a") == before == (3, 3, [] if committed else [0], [0, 2])


async def test_a_topic_that_is_deleted_is_no_obstacle(tmp_path: Path) -> None:
    async with talking(tmp_path) as talk:
        producer = await talk.init()
        await talk.added(producer, ("a", 0), ("b", 0))
        await talk.produce("t", "a", 0, batch(producer, 0))
        await talk.produce("t", "b", 0, batch(producer, 0))
        await talk.client.call(m.DeleteTopicsRequest(topic_names=["a"], timeout_ms=1000), 3)
        assert await talk.end(producer) == 0
        assert await talk.stable("b") == (2, 2, [], [0, 1])
        await talk.added(producer, ("b", 0))


@pytest.mark.parametrize("version", [0, 1])
async def test_there_is_no_sasl_here(tmp_path: Path, version: int) -> None:
    async with talking(tmp_path) as talk:
        answer = await talk.client.call(m.SaslHandshakeRequest("PLAIN"), version)
        assert (answer.error_code, answer.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, [])
        answer = await talk.client.call(m.SaslAuthenticateRequest(b"x"), version)
        assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert answer.error_message == "SaslAuthenticate request received after successful authentication"
