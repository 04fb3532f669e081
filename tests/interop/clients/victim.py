"""A member to be killed: ``python -m tests.interop.clients.victim LIBRARY BOOTSTRAP GROUP TOPIC SESSION_MS``.

Prints ``owns`` and its partitions when it has some, and works until its end.
"""

from __future__ import annotations

import asyncio
import sys

from tests.interop.clients.python_members import BY_NAME
from tests.interop.clients.watch import WatchBoard


async def work(library: str, bootstrap: str, group: str, topic: str, session_ms: str) -> None:
    """Never ends by itself."""
    board = WatchBoard()
    member = BY_NAME[library](board, bootstrap, group, topic, "victim", session_ms=int(session_ms))
    await member.join()
    await board.until(lambda now: bool(now.owned.get("victim")))
    print("owns", *(board.owned["victim"] or ()), flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(work(*sys.argv[1:]))
