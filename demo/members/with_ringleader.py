"""A member of the shared group with this package's consumer. ``python -m demo.members.with_ringleader``."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Sequence

from demo import plan
from demo.ledger import Ledger, named_member
from ringleader import GroupConsumer
from ringleader.clients.errors import ClientError
from ringleader.clients.model import TopicPartition


async def consume(consumer: GroupConsumer, ledger: Ledger, stop: asyncio.Event) -> None:
    """Take, process, write down, commit: in this order, until `stop`."""
    while not stop.is_set():
        batches = await consumer.getmany(plan.POLL_RECORDS, timeout_s=0.25)
        if not batches:
            continue
        for batch in batches:
            for record in batch.records:
                json.loads(record.value or b"null")
        ledger.processed(
            {batch.topic_partition[1]: [record.offset for record in batch.records] for batch in batches}
        )
        positions = {str(batch.topic_partition[1]): batch.records[-1].offset + 1 for batch in batches}
        try:
            await consumer.commit()
        except ClientError as error:
            # The group moved on in between: the partition's current owner reads these records again.
            ledger.note("refused", offsets=positions, error=type(error).__name__)
        else:
            ledger.note("committed", offsets=positions)


async def run(bootstrap: str, name: str, ledger: Ledger) -> None:
    """Be a member until SIGTERM."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)

    def assigned(partitions: Sequence[TopicPartition]) -> None:
        ledger.note("assigned", partitions=sorted(partition for _, partition in partitions))

    async with GroupConsumer(
        bootstrap,
        plan.SHARED_GROUP,
        [plan.TOPIC],
        group_protocol="consumer",
        client_id=name,
        auto_offset_reset="earliest",
        auto_commit=False,
        max_poll_interval_ms=plan.REBALANCE_TIMEOUT_MS,
        on_assigned=assigned,
    ) as consumer:
        await consume(consumer, ledger, stop)
    ledger.note("left")


def main() -> None:
    """Be one member."""
    with named_member(__doc__) as member:
        asyncio.run(run(*member))


if __name__ == "__main__":
    main()
