"""Machines of different strength share the partitions of a topic: each says how many cores it has, and gets
partitions in proportion.

    python weighted_group.py 127.0.0.1:9092 frames        # as many cores as there are
    python weighted_group.py 127.0.0.1:9092 frames 2      # no more than two of them

Start one on each machine, and kill any of them: the others take over what it had, again by their cores.
"""

import asyncio
import os
import sys
from concurrent.futures import ThreadPoolExecutor

from ringleader import GroupConsumer


def render(record):
    """The work on one record."""
    return record.value.decode()


async def main(bootstrap, topic, cores):
    loop, pool = asyncio.get_running_loop(), ThreadPoolExecutor(cores)

    def report(_new):
        print(f"cores {cores}: {len(consumer.assignment())} partitions", flush=True)

    # weight= is what this member tells the leader. Whoever leads computes with everybody's.
    consumer = GroupConsumer(
        bootstrap,
        "rendering",
        [topic],
        assignors=["weighted"],
        weight=cores,
        auto_offset_reset="earliest",
        session_timeout_ms=6_000,
        heartbeat_interval_ms=1_000,
        on_assigned=report,
    )
    async with consumer:
        # Asking for the next batch says that the one before it is processed, and may be committed.
        async for batch in consumer:
            work = [loop.run_in_executor(pool, render, record) for record in batch.records]
            for name in await asyncio.gather(*work):
                print("rendered", name, flush=True)


if __name__ == "__main__":
    bootstrap, topic, *cores = sys.argv[1:]
    asyncio.run(main(bootstrap, topic, int(cores[0]) if cores else os.cpu_count()))
