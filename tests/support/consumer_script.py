"""A process that reads the topic `t` in group `g` and prints what it has processed, until it is killed.

``python -m tests.support.consumer_script BOOTSTRAP NAME``: a line "PARTITION FIRST LAST" for each batch.
"""

from __future__ import annotations

import asyncio
import sys

from tests.support.consuming import consumer


async def main(bootstrap: str, name: str) -> None:
    """Read for ever."""
    options = {"session_timeout_ms": 1_000, "auto_commit_interval_ms": 20, "max_poll_records": 10}
    async with consumer(bootstrap, name, **options) as one:
        async for batch in one:
            print(batch.partition, batch.records[0].offset, batch.records[-1].offset, flush=True)
            await asyncio.sleep(0.005)  # some work


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
