"""Workers share what is left to do, not the number of partitions: the leader looks at the group's lag and
gives the partition with the long backlog to a member that has little else.

    python lag_leader.py 127.0.0.1:9092 uploads

Start as many as you like, and kill any of them.
"""

import asyncio
import logging
import sys

from ringleader import GroupConsumer


async def handle(record):
    """The work on one record."""
    await asyncio.sleep(0.001)
    print("handled", record.value.decode(), flush=True)


async def main(bootstrap, topic):
    def report(_new):
        print("partitions", [partition for _, partition in consumer.assignment()], flush=True)

    consumer = GroupConsumer(
        bootstrap,
        "uploading",
        [topic],
        assignors=["lag-aware"],
        imbalance=0.25,  # a quarter above the mean is even enough: nothing moves for less
        lag_check_ms=2_000,  # the leader looks that often; without it at rebalances only
        auto_offset_reset="earliest",  # so a partition without a commit counts from its first record
        auto_commit_interval_ms=500,  # the leader goes by what is committed
        session_timeout_ms=6_000,
        heartbeat_interval_ms=500,
        on_assigned=report,
    )
    async with consumer:
        async for batch in consumer:
            for record in batch.records:
                await handle(record)


if __name__ == "__main__":
    # Why the group rebalances: "... is 1500 records behind, the mean is 750: moving uploads-3".
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    asyncio.run(main(*sys.argv[1:]))
