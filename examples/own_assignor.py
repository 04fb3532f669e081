"""An assignor of one's own: one member has all partitions, the others stand by. For work that must not run
twice at the same time, and has to go on when its process dies.

    python own_assignor.py 127.0.0.1:9092 orders

Start two; the second one prints nothing but that it stands by. Kill the first one.
"""

import asyncio
import sys

from ringleader import GroupConsumer
from ringleader.clients.assignors import ASSIGNORS, Assignor


def one_works(members, partitions, racks=None):
    """The member that has partitions keeps them; else the one whose id comes first has them. A pure function:
    every member that may lead has to compute the same."""
    active = min(members, key=lambda one: (not one.owned, -one.generation, one.member_id))
    mine = {topic: list(range(partitions.get(topic, 0))) for topic in active.topics}
    return {one.member_id: mine if one is active else {} for one in members}


# cooperative: members keep what they have while the group rebalances, and `owned` says what that is.
ASSIGNORS["one-works"] = Assignor("one-works", one_works, cooperative=True)


async def main(bootstrap, topic):
    consumer = GroupConsumer(
        bootstrap,
        "standby",
        [topic],
        assignors=["one-works"],
        auto_offset_reset="earliest",
        session_timeout_ms=6_000,
        heartbeat_interval_ms=500,
        on_assigned=lambda _new: print("works" if consumer.assignment() else "stands by", flush=True),
    )
    async with consumer:
        if not await consumer.wait_assigned():
            print("stands by", flush=True)
        async for batch in consumer:
            for record in batch:
                print("did", record.value.decode(), flush=True)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
