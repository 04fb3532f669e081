"""Consumers for code without an event loop."""

from __future__ import annotations

import asyncio
import signal
import threading
from typing import Any

import pytest

from ringleader import (
    ConnectionLostError,
    ConsumerClosedError,
    OffsetAndMetadata,
    SyncGroupConsumer,
    SyncPartitionConsumer,
    TopicPartition,
)
from ringleader.testing.coordinator import Coordinator
from tests.support.consuming import PATIENCE_S, QUICK, Sink, Source, places


@pytest.fixture
def source(coordinator: Coordinator) -> Source:
    return Source(coordinator)


def consumer(coordinator: Coordinator, **options: Any) -> SyncGroupConsumer:
    return SyncGroupConsumer(coordinator.bootstrap, "g", ["t"], **(QUICK | options))


def test_every_record_once_and_in_order(coordinator: Coordinator, source: Source) -> None:
    source.fill()
    sink = Sink()
    with consumer(coordinator) as one:
        assert one.wait_assigned(PATIENCE_S) == places(range(4))
        for batch in one:
            sink.add(batch)
            if sink.total == 400:
                break
        one.commit()
        assert one.committed() == {at: OffsetAndMetadata(100, "", 0) for at in places(range(4))}
        assert (one.lag(), one.metrics().records) == (dict.fromkeys(places(range(4)), 0), 400)
        assert one.getmany(timeout_s=0.01) == []
        assert one.getone(0.01) is None
    sink.exactly(source)
    with pytest.raises(ConsumerClosedError, match="has been stopped"):
        one.getmany()
    with pytest.raises(ConsumerClosedError, match="has been stopped"):
        one.commit()
    one.stop()


def test_positions(coordinator: Coordinator, source: Source) -> None:
    source.fill(batches=1, count=10)
    with SyncPartitionConsumer(coordinator.bootstrap, [("t", 0)], auto_offset_reset="earliest") as one:
        assert one.position(("t", 0)) == 0
        one.seek_to_end()
        assert one.position(("t", 0)) == 10
        one.seek(("t", 0), 7)
        one.pause(("t", 0))
        assert (one.paused(), one.getmany(timeout_s=0.05)) == ([("t", 0)], [])
        one.resume(("t", 0))
        batch = next(one)
        assert [record.offset for record in batch.records] == [7, 8, 9]
        one.assign(["t"])
        one.seek_to_beginning(("t", 0))
        assert one.assignment() == places(range(4))
        assert one.beginning_offsets([("t", 1)]) == {("t", 1): 0}
        assert one.end_offsets([("t", 1)]) == {("t", 1): 10}
        assert one.offsets_for_times({("t", 1): 1_004}) == {("t", 1): (4, 1_004)}
        with pytest.raises(ValueError, match="whole number"):
            one.seek(("t", 0), 5.5)  # type: ignore[arg-type]
        assert one.metrics().records == 3


def test_callbacks_may_block_and_call_the_consumer(coordinator: Coordinator, source: Source) -> None:
    source.fill(batches=1, count=10)
    reported: list[tuple[str, list[TopicPartition]]] = []

    def assigned(partitions: list[TopicPartition]) -> None:
        reported.append(("assigned", partitions))
        one.seek(("t", 0), 5)

    def revoked(partitions: list[TopicPartition]) -> None:
        reported.append(("revoked", partitions))
        one.commit()

    one = consumer(
        coordinator, auto_commit=False, on_assigned=assigned, on_revoked=revoked, max_poll_records=100
    )
    with one:
        sink = Sink()
        while sink.total < 35:
            for batch in one.getmany(timeout_s=PATIENCE_S):
                sink.add(batch)
        assert one.getmany(timeout_s=0) == []
    assert reported == [("assigned", places(range(4))), ("revoked", places(range(4)))]
    assert sink.offsets[("t", 0)] == [5, 6, 7, 8, 9]
    with SyncGroupConsumer(coordinator.bootstrap, "g", ["t"]) as two:
        committed = two.committed()
    assert {at: value.offset for at, value in committed.items()} == dict.fromkeys(places(range(4)), 10)


def test_another_thread_may_stop_it(coordinator: Coordinator) -> None:
    with consumer(coordinator) as one:
        one.wait_assigned(PATIENCE_S)
        stopper = threading.Timer(0.1, one.stop)
        stopper.start()
        assert list(one) == []
        stopper.join()


def test_an_interrupted_caller_loses_no_record(coordinator: Coordinator, source: Source) -> None:
    """Ctrl-C while waiting; what comes in that moment is for the next call."""
    with consumer(coordinator) as one:
        one.wait_assigned(PATIENCE_S)
        main = threading.main_thread().ident
        assert main is not None
        for number in range(5):
            interrupt = threading.Timer(0.05, signal.pthread_kill, (main, signal.SIGINT))
            interrupt.start()
            sink = Sink()
            try:
                while True:
                    for batch in one.getmany(timeout_s=PATIENCE_S):
                        sink.add(batch)
            except KeyboardInterrupt:
                pass
            interrupt.join()
            source.put(("t", number % 4))
            while sink.total < 1:
                for batch in one.getmany(timeout_s=PATIENCE_S):
                    sink.add(batch)
            assert sink.total == 1


def test_a_start_that_fails_leaves_nothing(coordinator: Coordinator) -> None:
    one = SyncGroupConsumer("127.0.0.1:1", "g", ["t"])
    with pytest.raises(ConnectionLostError, match=r"127\.0\.0\.1:1"):
        one.start(timeout_s=0.2)
    with pytest.raises(ConsumerClosedError, match="was not started"):
        next(one)
    with pytest.raises(ValueError, match="on_lost has to be something that can be called"):
        consumer(coordinator, on_lost=5)


async def test_it_may_run_beside_an_event_loop(coordinator: Coordinator, source: Source) -> None:
    source.put(("t", 0))

    def work() -> int:
        with consumer(coordinator) as one:
            return len(next(one))

    assert await asyncio.to_thread(work) == 1
