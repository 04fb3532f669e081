"""Transactions of V2 (KIP-890) over sockets: Produce v12, TxnOffsetCommit v5, EndTxn v5."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ringleader.protocol import messages as m
from ringleader.protocol.errors import ErrorCode
from tests.coordinator.server.test_transactions import (
    CONCURRENT,
    EPOCH,
    FENCED,
    MAPPING,
    TXN_STATE,
    UNKNOWN,
    Producer,
    Talk,
    batch,
    talking,
)
from tests.support.topiclog import produced

ABORTABLE = ErrorCode.TRANSACTION_ABORTABLE


async def produce(talk: Talk, producer: Producer, sequence: int, partition: int = 0, name: str = "t") -> int:
    """As soon as the last transaction is finished."""
    data = batch(producer, sequence)
    return int(await talk.patiently(lambda: talk.produce(name, "a", partition, data, v=12), CONCURRENT))


async def end(talk: Talk, producer: Producer, committed: bool = True) -> Any:
    """The error, or the producer of the next transaction."""
    answer = await talk.client.call(m.EndTxnRequest("t", *producer, committed), 5)
    if answer.error_code:
        assert (answer.producer_id, answer.producer_epoch) == (-1, -1)
    return answer.error_code or (answer.producer_id, answer.producer_epoch)


async def ended(talk: Talk, producer: Producer, committed: bool = True) -> Any:
    """`end`, as soon as the last transaction is finished."""
    return await talk.patiently(lambda: end(talk, producer, committed), CONCURRENT)


async def test_what_is_produced_is_in_the_transaction(tmp_path: Path) -> None:
    async with talking(tmp_path) as talk:
        producer = await talk.init()
        assert await produce(talk, producer, 0) == 0
        assert await produce(talk, producer, 1) == 0
        assert (await talk.fetch("a", 0))[:2] == (2, 0)
        raised = await end(talk, producer)
        assert raised == (producer[0], producer[1] + 1)
        assert await talk.stable("a") == (3, 3, [], [0, 1, 2])
        assert await ended(talk, producer) == raised, "the answer was lost, and asked for again"
        assert await produce(talk, producer, 2) == EPOCH, "a late record is not a part of the next one"
        assert await produce(talk, raised, 0) == 0
        assert await ended(talk, raised, False) == (producer[0], producer[1] + 2)
        assert await talk.stable("a") == (5, 5, [3], [0, 1, 2, 3, 4])
        assert await ended(talk, raised, True) == TXN_STATE


async def test_only_its_producer_may_produce_in_a_transaction(tmp_path: Path) -> None:
    async with talking(tmp_path) as talk:
        await talk.init()
        producer = await talk.init()
        assert await produce(talk, producer, 0, name="nobody") == MAPPING
        assert await produce(talk, (producer[0] + 1000, 0), 0) == MAPPING
        assert await produce(talk, (producer[0], producer[1] - 1), 0) == EPOCH
        assert await produce(talk, producer, 0, partition=9) == UNKNOWN
        assert await end(talk, producer, True) == TXN_STATE, "nothing was added"
        assert await end(talk, (producer[0], 7), True) == FENCED
        assert await talk.produce(None, "a", 0, batch(producer, 0), v=12) == 53
        assert await talk.produce("t", "a", 0, produced(-1, -1), v=12) == 0, "it is no part of a transaction"
        assert await end(talk, producer, True) == TXN_STATE


async def test_clients_of_each_age_get_an_error_that_they_know(tmp_path: Path) -> None:
    async with talking(tmp_path) as talk:
        producer = await talk.init()
        data = batch(producer, 0)
        assert await talk.produce("t", "a", 0, data, v=10) == TXN_STATE
        assert await talk.produce("t", "a", 0, data, v=11) == ABORTABLE
        assert await talk.commit(producer, ("a", 0, 5), v=3) == TXN_STATE
        assert await talk.commit(producer, ("a", 0, 5), v=4) == ABORTABLE


async def test_one_request_has_one_producer(tmp_path: Path) -> None:
    async with talking(tmp_path) as talk:
        producer = await talk.init()
        parts = [
            m.ProduceRequestPartitionProduceData(number, batch((producer[0] + number, 0), 0))
            for number in (0, 1)
        ]
        request = m.ProduceRequest(
            "t", -1, 5000, [m.ProduceRequestTopicProduceData("a", partition_data=parts)]
        )
        found = (await talk.client.call(request, 12)).responses[0].partition_responses
        assert [one.error_code for one in found] == [MAPPING, MAPPING]


async def test_offsets_that_are_committed_are_in_the_transaction(tmp_path: Path) -> None:
    async with talking(tmp_path) as talk:
        await talk.init()
        producer = await talk.init()
        old = (producer[0], producer[1] - 1)
        assert await talk.commit(old, ("a", 0, 4), v=5) == EPOCH
        assert await talk.commit(producer, ("a", 0, 5), ("none", 0, 1), v=5) == {
            ("a", 0): 0,
            ("none", 0): UNKNOWN,
        }
        assert await talk.commit(producer, ("a", 0, 5), group="", v=5) == ErrorCode.INVALID_GROUP_ID
        assert await talk.offset(stable=True) == ErrorCode.UNSTABLE_OFFSET_COMMIT
        raised = await end(talk, producer)
        assert await talk.patiently(talk.offset, -1) == 5
        late = await talk.patiently(lambda: talk.commit(producer, ("a", 0, 6), v=5), CONCURRENT)
        assert late == EPOCH
        assert await talk.patiently(lambda: talk.commit(raised, ("a", 0, 7), v=5), CONCURRENT) == 0
        await end(talk, raised, False)
        assert await talk.patiently(lambda: talk.offset(stable=True), ErrorCode.UNSTABLE_OFFSET_COMMIT) == 5
