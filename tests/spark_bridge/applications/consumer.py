"""A plain consumer with one of two libraries, until SIGTERM: reads, writes down, commits, in this order."""

from __future__ import annotations

import asyncio
import signal
import threading
import time
from argparse import ArgumentParser
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.spark_bridge.applications.ledger import Ledger, ranges_of

TIMES: dict[str, Any] = {"session_timeout_ms": 6_000, "heartbeat_interval_ms": 500}
LEFT_OUT_S = 5.0


async def with_ringleader(bootstrap: str, group: str, assignors: Sequence[str], ledger: Ledger) -> None:
    """`GroupConsumer`."""
    from ringleader.clients.consumer import GroupConsumer
    from ringleader.clients.errors import ClientError

    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    consumer = GroupConsumer(
        bootstrap, group, ["t"], assignors=assignors, auto_offset_reset="earliest", auto_commit=False, **TIMES
    )
    async with consumer:
        while not stop.is_set():
            batches = await consumer.getmany(timeout_s=0.2)
            rows = [(batch.partition, record.offset) for batch in batches for record in batch.records]
            if not rows:
                continue
            number = ledger.read(ranges_of(rows))
            ends = {(batch.topic, batch.partition): batch.next_offset for batch in batches}
            try:
                await consumer.commit(ends)
            except ClientError as error:
                ledger.refused(number, str(error))
            else:
                ledger.committed(number)


def with_kafka_python(bootstrap: str, group: str, assignors: Sequence[str], ledger: Ledger) -> None:
    """kafka-python's `KafkaConsumer` with its own assignors."""
    from kafka import KafkaConsumer, OffsetAndMetadata
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.errors import KafkaError

    known: dict[str, Any] = {
        "cooperative-sticky": CooperativeStickyAssignor,
        "range": RangePartitionAssignor,
    }
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    consumer = KafkaConsumer(
        "t",
        bootstrap_servers=bootstrap,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        partition_assignment_strategy=[known[name] for name in assignors],
        **TIMES,
    )
    try:
        left_out_since_s = None
        while not stop.is_set():
            batches = consumer.poll(timeout_ms=200, max_records=500)
            # Under load kafka-python 3.0.12 now and then takes a rebalance for finished that it has just
            # begun: it stays without a heartbeat or a join, for good. It is told to join again.
            coordinator = consumer._coordinator
            if not coordinator.rebalance_in_progress() or coordinator.rejoin_needed:
                left_out_since_s = None
            elif left_out_since_s is None:
                left_out_since_s = time.monotonic()
            elif time.monotonic() - left_out_since_s > LEFT_OUT_S:
                coordinator.request_rejoin()
            rows = [(tp.partition, record.offset) for tp, records in batches.items() for record in records]
            if not rows:
                continue
            number = ledger.read(ranges_of(rows))
            ends = {tp: OffsetAndMetadata(found[-1].offset + 1, "", -1) for tp, found in batches.items()}
            try:
                consumer.commit(ends)
            except KafkaError as error:
                ledger.refused(number, repr(error))
            else:
                ledger.committed(number)
    finally:
        consumer.close()


def main() -> None:
    parser = ArgumentParser()
    parser.add_argument("--library", choices=["ringleader", "kafka-python"], required=True)
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--group", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--assignor", action="append", required=True)
    args = parser.parse_args()
    ledger = Ledger(args.out / "ledger")
    if args.library == "ringleader":
        asyncio.run(with_ringleader(args.bootstrap, args.group, args.assignor, ledger))
    else:
        with_kafka_python(args.bootstrap, args.group, args.assignor, ledger)


if __name__ == "__main__":
    main()
