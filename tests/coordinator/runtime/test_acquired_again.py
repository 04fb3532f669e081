"""A shard that is acquired while the end of its former life is still to come."""

from __future__ import annotations

import asyncio

from tests.coordinator.runtime.test_moves import node
from tests.support.served import until
from tests.support.tables import turns


async def test_a_shard_that_is_lost_while_it_is_acquired_again_stays_with_the_node() -> None:
    async with node() as runtime:
        runtime.store.replays.clear()
        first = asyncio.ensure_future(runtime.acquire(0))
        await until(lambda: runtime.store.opened == [0])
        second = asyncio.ensure_future(runtime.acquire(0))
        await turns()
        runtime.broken[0]["put late"] = 1
        await runtime.put(0, b"a", 1).result()
        runtime.store.replays.set()
        await asyncio.wait([first, second])
        await turns()
        assert runtime.store.released == [0]
        assert await runtime.put(0, b"a", 1).result() == 0
        assert isinstance(first.exception(), RuntimeError)
