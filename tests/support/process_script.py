"""A process that works on the topic `t` in group `g` with `process`, until it is killed.

``python -m tests.support.process_script BOOTSTRAP NAME``: a line "PARTITION OFFSET KEY" for each record
that is done."""

from __future__ import annotations

import asyncio
import random
import sys

from ringleader import Record
from tests.support.consuming import consumer

CONCURRENCY = 20


async def handler(record: Record) -> None:
    """Some work, which may end behind that of later records."""
    await asyncio.sleep(random.random() * 0.02)
    print(record.partition, record.offset, record.key.decode(), flush=True)


async def main(bootstrap: str, name: str) -> None:
    """Work for ever."""
    options = {"session_timeout_ms": 1_000, "auto_commit_interval_ms": 20}
    async with consumer(bootstrap, name, **options) as one:
        await one.process(handler, concurrency=CONCURRENCY)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
