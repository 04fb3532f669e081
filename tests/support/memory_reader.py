"""Reads records in a process of its own: how much memory that takes at most. Prints it in bytes."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from ringleader.clients.consumer import GroupConsumer


def most_bytes() -> int:
    """The largest resident size so far (that of `getrusage` may be the parent's)."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


async def main(bootstrap: str, topic: str, buffer_max_bytes: int, count: int) -> None:
    """Look at every value of `count` records."""
    consumer = GroupConsumer(
        bootstrap,
        f"memory-{buffer_max_bytes}",
        [topic],
        auto_offset_reset="earliest",
        buffer_max_bytes=buffer_max_bytes,
    )
    async with consumer:
        await consumer.wait_assigned(30)
        before = most_bytes()
        async for batch in consumer:
            assert all(record.value for record in batch)
            count -= len(batch)
            if count <= 0:
                break
    print(most_bytes() - before)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
