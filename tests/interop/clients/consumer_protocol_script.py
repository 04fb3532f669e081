"""A process that reads a topic as a member of the consumer protocol, and prints what it has processed.

``python -m tests.interop.clients.consumer_protocol_script BOOTSTRAP GROUP TOPIC``: for each batch a line
"PARTITION FIRST LAST", and "lost PARTITIONS" when it hears that they are.
"""

from __future__ import annotations

import asyncio
import sys

from ringleader.clients.consumer import GroupConsumer
from ringleader.clients.model import TopicPartition


def lost(partitions: list[TopicPartition]) -> None:
    """Say so."""
    print("lost", *(number for _, number in partitions), flush=True)


async def main(bootstrap: str, group: str, topic: str) -> None:
    """Read for ever."""
    async with GroupConsumer(
        bootstrap,
        group,
        topic,
        group_protocol="consumer",
        auto_offset_reset="earliest",
        auto_commit_interval_ms=20,
        max_poll_records=10,
        on_lost=lost,
    ) as one:
        async for batch in one:
            print(batch.partition, batch.records[0].offset, batch.records[-1].offset, flush=True)
            await asyncio.sleep(0.005)  # some work


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
