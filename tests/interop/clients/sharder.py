"""A member of a sharding group to be killed: ``python -m tests.interop.clients.sharder BOOTSTRAP GROUP``.

Prints ``owns`` and its shards when it has some, and works until its end.
"""

from __future__ import annotations

import asyncio
import sys

from tests.support.sharding import member, shards

SESSION_MS = 1_000


async def work(bootstrap: str, group: str) -> None:
    """Never ends by itself."""
    async with member(bootstrap, group=group, session_timeout_ms=SESSION_MS) as one:
        print("owns", *shards(await one.wait_assigned()), flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(work(*sys.argv[1:]))
