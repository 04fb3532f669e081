"""Transactions of `Producer` and `SyncProducer`: all or nothing, with the offsets of what was read."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ringleader import (
    AbortableTransactionError,
    CommitFailedError,
    FatalProducerError,
    GroupConsumer,
    GroupMetadata,
    PartitionConsumer,
    ProduceError,
    Producer,
    ProducerFencedError,
    RecordTooLargeError,
    SyncGroupConsumer,
    SyncProducer,
    TransactionAbortedError,
)
from ringleader.clients.model import OffsetAndMetadata
from ringleader.coordinator.server.handlers import versions
from ringleader.protocol.errors import ErrorCode
from ringleader.testing.coordinator import Coordinator
from tests.support.consuming import PATIENCE_S, QUICK, Source, consumer, until

ONCE: dict[str, Any] = {"auto_commit": False, "isolation_level": "read_committed"}


@pytest.fixture(params=["V1", "V2"], autouse=True)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The kind of transactions (KIP-890): that of clusters that do not have the feature, or have it."""
    if request.param == "V1":
        monkeypatch.setattr(versions, "TRANSACTION_VERSION", {})
    return str(request.param)


@pytest.fixture
def out(coordinator: Coordinator) -> str:
    coordinator.create_topic("out", 2)
    return "out"


def writer(coordinator: Coordinator, **options: Any) -> Producer:
    return Producer(coordinator.bootstrap, transactional_id="x", retry_backoff_ms=5, **options)


async def visible(coordinator: Coordinator, topic: str = "out") -> list[bytes]:
    """The records that readers of committed records see, to the end of the log."""
    found: list[bytes] = []
    async with PartitionConsumer(
        coordinator.bootstrap, [topic], auto_offset_reset="earliest", isolation_level="read_committed"
    ) as reader:
        ends = await reader.end_offsets(reader.assignment())
        while any([await reader.position(tp) < end for tp, end in ends.items()]):
            found += [record.value for batch in await reader.getmany(timeout_s=0.2) for record in batch]
    return sorted(found)


async def committed(coordinator: Coordinator) -> dict[int, int]:
    async with consumer(coordinator, group="g", **ONCE) as one:
        found = await one.committed()
    return {partition: value.offset for (_, partition), value in found.items() if value.offset}


async def test_records_become_visible_together_or_never(coordinator: Coordinator, out: str) -> None:
    async with writer(coordinator) as producer:
        async with producer.transaction() as tx:
            first = await tx.send(out, b"1", partition=0)
            await producer.send(out, b"2", partition=1)
        assert first.result().offset == 0
        with pytest.raises(ZeroDivisionError):  # noqa: PT012
            async with producer.transaction():
                aborted = await producer.send(out, b"3", partition=0)
                1 / 0  # noqa: B018
        with pytest.raises(TransactionAbortedError):
            await aborted
        async with producer.transaction():
            written = await producer.send(out, b"4", partition=0)
            await written
            assert await visible(coordinator) == [b"1", b"2"]
        async with producer.transaction():
            pass
        with pytest.raises(RuntimeError, match="no transaction is open: begin one first"):
            await producer.send(out, b"5")
    assert await visible(coordinator) == [b"1", b"2", b"4"]


async def test_by_hand_as_in_java(coordinator: Coordinator, out: str) -> None:
    async with writer(coordinator) as producer:
        producer.begin_transaction()
        with pytest.raises(RuntimeError, match="a transaction is open"):
            producer.begin_transaction()
        await producer.send(out, b"1")
        await producer.send_offsets_to_transaction({("t", 0): OffsetAndMetadata(7, "m")}, GroupMetadata("g"))
        assert await committed(coordinator) == {}
        await producer.commit_transaction()
        with pytest.raises(RuntimeError, match="no transaction is open"):
            await producer.commit_transaction()
        producer.begin_transaction()
        await producer.send(out, b"2")
        await producer.send_offsets_to_transaction({("t", 0): 9}, GroupMetadata("g"))
        await producer.abort_transaction()
        producer.begin_transaction()
        await producer.send(out, b"3")
    assert await visible(coordinator) == [b"1"]
    assert await committed(coordinator) == {0: 7}
    async with Producer(coordinator.bootstrap) as plain:
        with pytest.raises(RuntimeError, match="a transaction needs a transactional_id"):
            plain.transaction()


async def test_each_end_of_v2_raises_the_epoch_and_asks_for_nothing_else(
    coordinator: Coordinator, out: str, kind: str
) -> None:
    async with writer(coordinator) as producer:
        first = producer._transactional().producer
        if kind == "V1":
            await written(producer, out)
            assert producer._transactional().producer == first
            coordinator.faults.error("AddPartitionsToTxn", ErrorCode.INVALID_REQUEST)
            with pytest.raises(FatalProducerError, match="INVALID_REQUEST"):
                await written(producer, out)
            return
        coordinator.faults.error("AddPartitionsToTxn", ErrorCode.INVALID_REQUEST)
        coordinator.faults.error("AddOffsetsToTxn", ErrorCode.INVALID_REQUEST)
        for _ in range(3):
            await written(producer, out)
        with pytest.raises(ZeroDivisionError):  # noqa: PT012
            async with producer.transaction():
                await (await producer.send(out, b"no"))
                1 / 0  # noqa: B018
        assert producer._transactional().producer == (first[0], first[1] + 4)
    assert await visible(coordinator) == [b"yes"] * 3
    assert await committed(coordinator) == {1: 1}


async def written(producer: Producer, out: str) -> None:
    async with producer.transaction():
        await producer.send(out, b"yes")
        await producer.send_offsets_to_transaction({("t", 1): 1}, GroupMetadata("g"))


async def test_a_newcomer_shuts_the_former_out(coordinator: Coordinator, out: str) -> None:
    async with writer(coordinator) as old:
        old.begin_transaction()
        await (await old.send(out, b"old"))
        async with writer(coordinator) as new:
            async with new.transaction():
                await new.send(out, b"new")
            with pytest.raises((AbortableTransactionError, ProducerFencedError)):  # noqa: PT012
                await old.send(out, b"late")
                await old.commit_transaction()
            with pytest.raises(ProducerFencedError, match="another producer has begun with it"):
                await old.abort_transaction()
            with pytest.raises(ProducerFencedError):
                old.begin_transaction()
    assert await visible(coordinator) == [b"new"]
    assert issubclass(ProducerFencedError, FatalProducerError)


async def test_a_record_that_failed_keeps_its_transaction_from_committing(
    coordinator: Coordinator, out: str
) -> None:
    coordinator.create_topic("small", 1, {"max.message.bytes": "300"})
    async with writer(coordinator, max_request_size=2_000) as producer:
        with pytest.raises(AbortableTransactionError, match=r"max\.message\.bytes"):  # noqa: PT012
            async with producer.transaction():
                await producer.send(out, b"1", partition=0)
                await producer.send("small", bytes(1_000))
        with pytest.raises(AbortableTransactionError, match="max_request_size"):  # noqa: PT012
            async with producer.transaction():
                await producer.send(out, b"2", partition=0)
                with pytest.raises(RecordTooLargeError):
                    await producer.send(out, bytes(3_000))
        async with producer.transaction():
            await producer.send(out, b"3", partition=0)
            await producer.send("small", b"4")
    assert await visible(coordinator) == [b"3"]
    assert await visible(coordinator, "small") == [b"4"]


@pytest.mark.parametrize(
    ("api", "code"),
    [
        ("AddPartitionsToTxn", ErrorCode.CONCURRENT_TRANSACTIONS),
        ("AddPartitionsToTxn", ErrorCode.NOT_COORDINATOR),
        ("AddOffsetsToTxn", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS),
        ("TxnOffsetCommit", ErrorCode.COORDINATOR_NOT_AVAILABLE),
        ("EndTxn", ErrorCode.CONCURRENT_TRANSACTIONS),
        ("EndTxn", None),
        ("Produce", None),
        ("AddPartitionsToTxn", None),
        ("TxnOffsetCommit", None),
    ],
)
async def test_what_fails_for_the_moment_is_asked_again(
    coordinator: Coordinator, out: str, api: str, code: ErrorCode | None
) -> None:
    if code is None:
        coordinator.faults.drop(api, done=True)
    else:
        coordinator.faults.error(api, code, times=2)
    async with writer(coordinator) as producer:
        for number in range(2):
            async with producer.transaction():
                await producer.send(out, b"%d" % number)
                await producer.send_offsets_to_transaction({("t", 1): number + 1}, GroupMetadata("g"))
    assert await visible(coordinator) == [b"0", b"1"]
    assert await committed(coordinator) == {1: 2}


async def test_a_refusal_of_the_offsets_aborts(coordinator: Coordinator, out: str) -> None:
    async with writer(coordinator) as producer:
        coordinator.faults.error("TxnOffsetCommit", ErrorCode.GROUP_AUTHORIZATION_FAILED)
        with pytest.raises(AbortableTransactionError, match="GROUP_AUTHORIZATION_FAILED"):  # noqa: PT012
            async with producer.transaction():
                await producer.send(out, b"1")
                await producer.send_offsets_to_transaction({("t", 1): 1}, GroupMetadata("g"))
        with pytest.raises(CommitFailedError, match="ILLEGAL_GENERATION"):  # noqa: PT012
            async with producer.transaction():
                await producer.send(out, b"2")
                await producer.send_offsets_to_transaction({("t", 1): 1}, GroupMetadata("g", 3, "nobody"))
        async with producer.transaction():
            await producer.send(out, b"3")
    assert await visible(coordinator) == [b"3"]


async def test_what_cannot_be_written_any_more_is_not_waited_for(
    coordinator: Coordinator, out: str, kind: str
) -> None:
    api = "AddPartitionsToTxn" if kind == "V1" else "Produce"
    async with writer(coordinator, linger_ms=0) as producer:
        coordinator.faults.error(api, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        producer.begin_transaction()
        lost = await producer.send(out, b"1")
        await producer.flush()
        error = TransactionAbortedError if kind == "V1" else ProduceError
        with pytest.raises(error, match="TOPIC_AUTHORIZATION_FAILED"):
            await lost
        with pytest.raises(AbortableTransactionError, match="TOPIC_AUTHORIZATION_FAILED"):
            await producer.commit_transaction()
        await producer.abort_transaction()
        coordinator.faults.error(api, ErrorCode.PRODUCER_FENCED)
        producer.begin_transaction()
        lost = await producer.send(out, b"2")
        await producer.flush()
        with pytest.raises(ProducerFencedError):
            await lost
        with pytest.raises(ProducerFencedError):
            await producer.send(out, b"3")
    assert await visible(coordinator) == []


async def test_an_abort_of_nothing_is_one_whatever_an_earlier_transaction_had(
    coordinator: Coordinator, out: str, kind: str
) -> None:
    api = "AddPartitionsToTxn" if kind == "V1" else "Produce"
    async with writer(coordinator, linger_ms=0) as producer:
        async with producer.transaction():
            await producer.send_offsets_to_transaction({("t", 0): 7}, GroupMetadata("g"))
        coordinator.faults.error(api, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        producer.begin_transaction()
        await producer.send(out, b"1")
        await producer.flush()
        await producer.abort_transaction()
        async with producer.transaction():
            await producer.send(out, b"2")
    assert await visible(coordinator) == [b"2"]


async def copy(producer: Producer, one: GroupConsumer, count: int) -> int:
    """One transaction with up to that many records."""
    async with producer.transaction(one) as tx:
        done = 0
        while done < count and (batches := await one.getmany(count - done, timeout_s=PATIENCE_S)):
            for batch in batches:
                for record in batch:
                    await tx.send("out", record.value, key=record.key)
                    done += 1
        return done


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
async def test_an_abort_hands_out_the_same_again(coordinator: Coordinator, out: str, protocol: Any) -> None:
    source = Source(coordinator)
    source.fill(batches=1, count=10)
    async with (
        writer(coordinator) as producer,
        GroupConsumer(
            coordinator.bootstrap,
            "g",
            ["t"],
            auto_offset_reset="earliest",
            retry_backoff_ms=20,
            group_protocol=protocol,
            **ONCE,
        ) as one,
    ):
        assert await copy(producer, one, 15) == 15
        with pytest.raises(ZeroDivisionError):  # noqa: PT012
            async with producer.transaction(one):
                for _ in range(3):
                    for batch in await one.getmany(4, timeout_s=PATIENCE_S):
                        for record in batch:
                            await producer.send(out, record.value)
                1 / 0  # noqa: B018
        async with producer.transaction(one):
            for batch in await one.getmany(4, timeout_s=PATIENCE_S):
                for record in batch:
                    await producer.send(out, record.value)
            assert await one._fetched(4, PATIENCE_S, True)
            assert one._reader
            one._reader.take_back()  # an answer that was lost comes again, and nothing before it
        done = 19
        while done < 40:
            done += await copy(producer, one, 40 - done)
        assert sum((await one.lag()).values()) == 0
        assert one.group_metadata().group_id == "g"
    values = await visible(coordinator)
    assert len(values) == len(set(values)) == 40
    assert await committed(coordinator) == {0: 10, 1: 10, 2: 10, 3: 10}


async def test_a_rebalance_waits_for_the_transaction(coordinator: Coordinator, out: str) -> None:
    source = Source(coordinator)
    source.fill(batches=1, count=10)
    async with writer(coordinator) as producer, consumer(coordinator, **ONCE) as one:
        revoked: list[Any] = []
        one._on_revoked = revoked.extend
        async with producer.transaction(one):
            done = 0
            while done < 40:
                for batch in await one.getmany(40 - done, timeout_s=PATIENCE_S):
                    for record in batch:
                        await producer.send(out, record.value)
                        done += 1
            async with consumer(coordinator, "b", **ONCE) as other:
                await until(lambda: any(state.suspended for state in one._read().states.values()))
                assert not revoked
                await other.stop()
        assert sum((await committed(coordinator)).values()) == 40
    assert len(set(await visible(coordinator))) == 40


async def test_a_lost_member_does_not_commit(coordinator: Coordinator, out: str) -> None:
    source = Source(coordinator)
    source.fill(batches=1, count=10)
    async with writer(coordinator) as producer, consumer(coordinator, **ONCE) as one:
        with pytest.raises(AbortableTransactionError, match=r"was not kept|is not part of generation"):  # noqa: PT012
            async with producer.transaction(one):
                for batch in await one.getmany(timeout_s=PATIENCE_S):
                    for record in batch:
                        await producer.send(out, record.value)
                former = set(one._read().states.values())
                coordinator.faults.delay("Heartbeat", 0.3)
                coordinator.advance_clock(60)
                await until(lambda: len(one._read().states) == 4)
                await until(lambda: former.isdisjoint(one._read().states.values()))
                await until(lambda: len(one._read().states) == 4)
        coordinator.faults.clear()
        assert await visible(coordinator) == []
        done = 0
        while done < 40:
            done += await copy(producer, one, 5)
    values = await visible(coordinator)
    assert len(values) == len(set(values)) == 40


async def test_a_cancelled_task_leaves_no_transaction_open(coordinator: Coordinator, out: str) -> None:
    source = Source(coordinator)
    source.fill(batches=1, count=10)
    async with writer(coordinator) as producer, consumer(coordinator, **ONCE) as one:

        async def work() -> None:
            async with producer.transaction(one):
                for batch in await one.getmany(timeout_s=PATIENCE_S):
                    for record in batch:
                        await producer.send(out, record.value)
                began.set()
                await asyncio.Event().wait()

        began = asyncio.Event()
        task = asyncio.create_task(work())
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        done = 0
        while done < 40:
            done += await copy(producer, one, 40 - done)
    values = await visible(coordinator)
    assert len(values) == len(set(values)) == 40


async def test_a_consumer_that_commits_by_itself_is_refused(coordinator: Coordinator) -> None:
    async with writer(coordinator) as producer, consumer(coordinator) as one:
        with pytest.raises(ValueError, match="the consumer needs auto_commit=False"):
            async with producer.transaction(one):
                pass


def test_without_an_event_loop(coordinator: Coordinator, out: str) -> None:
    source = Source(coordinator)
    source.fill(batches=1, count=10)
    given = QUICK | ONCE
    with (
        SyncProducer(coordinator.bootstrap, transactional_id="x") as producer,
        SyncGroupConsumer(coordinator.bootstrap, "g", ["t"], **given) as one,
    ):
        assert one.group_metadata().group_id == "g"
        done = 0
        while done < 40:
            with producer.transaction(one):
                for batch in one.getmany(7, timeout_s=PATIENCE_S):
                    for record in batch:
                        producer.send(out, record.value)
                        done += 1
        with pytest.raises(AbortableTransactionError, match="partition 9"), producer.transaction():  # noqa: PT012
            producer.send(out, b"no", partition=0)
            producer.send(out, b"no", partition=9)
        with pytest.raises(ZeroDivisionError), producer.transaction():  # noqa: PT012
            producer.send(out, b"no", partition=0)
            1 / 0  # noqa: B018
        producer.begin_transaction()
        producer.send(out, b"by hand")
        producer.commit_transaction()
        producer.begin_transaction()
        producer.send(out, b"no")
        producer.abort_transaction()
    values = asyncio.run(visible(coordinator))
    assert len(values) == len(set(values)) == 41
    assert asyncio.run(committed(coordinator)) == {0: 10, 1: 10, 2: 10, 3: 10}


async def test_what_was_read_for_a_producer_that_is_shut_out_comes_again(
    coordinator: Coordinator, out: str
) -> None:
    Source(coordinator).fill(batches=1, count=10)
    async with consumer(coordinator, **ONCE) as one:
        async with writer(coordinator) as former:
            coordinator.faults.error("EndTxn", ErrorCode.PRODUCER_FENCED)
            with pytest.raises(ProducerFencedError):
                await copy(former, one, 40)
        async with writer(coordinator) as producer:
            done = 0
            while done < 40:
                done += await copy(producer, one, 40 - done)
    values = await visible(coordinator)
    assert len(values) == len(set(values)) == 40


async def test_offsets_alone_are_a_transaction_whose_end_may_be_refused(
    coordinator: Coordinator, kind: str
) -> None:
    """With V1 a transaction that took too long is told as PRODUCER_FENCED."""
    async with writer(coordinator) as producer:
        coordinator.faults.error("EndTxn", ErrorCode.INVALID_TXN_STATE)
        with pytest.raises(FatalProducerError, match="INVALID_TXN_STATE") as refused:
            async with producer.transaction():
                await producer.send_offsets_to_transaction({("t", 0): 7}, GroupMetadata("g"))
        assert isinstance(refused.value, ProducerFencedError) == (kind == "V2")
    assert await committed(coordinator) == {}


async def test_a_transaction_over_its_time_is_aborted_and_its_producer_told(
    coordinator: Coordinator, out: str
) -> None:
    async with (
        writer(coordinator, transaction_timeout_ms=1_000) as producer,
        PartitionConsumer(coordinator.bootstrap, [out], isolation_level="read_committed") as reader,
    ):
        producer.begin_transaction()
        await (await producer.send(out, b"slow", partition=0))

        async def aborted() -> bool:
            return bool((await reader.end_offsets([(out, 0)]))[out, 0])

        async with asyncio.timeout(PATIENCE_S):
            while not await aborted():  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        with pytest.raises(ProducerFencedError, match="longer than transaction_timeout_ms"):
            await producer.commit_transaction()
    assert await visible(coordinator) == []


async def test_a_coordinator_that_moved_is_looked_for(coordinator: Coordinator, out: str) -> None:
    async with writer(coordinator) as producer:
        async with producer.transaction():
            await producer.send(out, b"1")
        coordinator.faults.forget_seen()
        coordinator.faults.error("EndTxn", ErrorCode.NOT_COORDINATOR)
        async with producer.transaction():
            await producer.send(out, b"2")
        apis = [seen.api for seen in coordinator.faults.seen() if seen.api in ("EndTxn", "FindCoordinator")]
        assert apis == ["EndTxn", "FindCoordinator", "EndTxn"]
    assert await visible(coordinator) == [b"1", b"2"]
