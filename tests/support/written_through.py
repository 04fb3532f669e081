"""A producer that goes on while its broker crashes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ringleader import Admin, PartitionConsumer, Producer, Record


async def written_through(bootstrap: str, count: int, crash: Callable[[], object]) -> None:
    """Write numbered records while the broker crashes in the middle: each is there once, at the offset that
    its result says."""
    async with Admin(bootstrap) as admin:
        await admin.create_topic("in", 4)
    async with Producer(bootstrap, retry_backoff_max_ms=200, linger_ms=1) as producer:
        sent = []
        crashing: asyncio.Task[object] | None = None
        for number in range(count):
            sent.append(await producer.send("in", b"%d" % number, partition=number % 4))
            if number == count // 2:
                crashing = asyncio.create_task(asyncio.to_thread(crash))
            if number % 10 == 0:
                await asyncio.sleep(0.001)
        places = [found[:3] for found in await asyncio.gather(*sent)]
        assert crashing is not None
        await crashing
    found: list[Record] = []
    async with PartitionConsumer(bootstrap, ["in"], auto_offset_reset="earliest") as consumer:
        while len(found) < count and (batches := await consumer.getmany(timeout_s=20)):
            found += [record for batch in batches for record in batch]
        assert not any((await consumer.lag()).values())
    assert sorted(int(record.value) for record in found) == list(range(count))
    assert all(places[int(record.value)] == record[:3] for record in found)
