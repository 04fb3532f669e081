"""A job of many shards, spread over however many processes run this. The group has a protocol type of its
own: what a shard is, and who gets which, is decided here, in the process that leads.

    python sharded_job.py 127.0.0.1:9092 results

Start it as often as you like, and kill any of them; each one ends when the whole job is done.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import sys
from pathlib import Path

from ringleader import CommitFailedError, GroupMember, MemberProtocol

JOB, SHARDS, PIECES = "thumbnails", 8, 25  # the job's name; its shards; pieces of work in each


def deal(protocol, members):
    """Runs in the member that leads: every shard to one member, in turn."""
    ids = sorted(member.member_id for member in members)
    return {one: json.dumps(list(range(turn, SHARDS, len(ids)))).encode() for turn, one in enumerate(ids)}


async def work(shard, piece, results):
    """One piece of work. Now and then one is done twice: a kill may come between this and the commit."""
    await asyncio.sleep(0.02)
    line = {"shard": shard, "piece": piece, "digest": hashlib.sha256(b"%d/%d" % (shard, piece)).hexdigest()}
    with results.open("a") as file:
        file.write(json.dumps(line) + "\n")


async def main(bootstrap, directory):
    results = Path(directory) / f"{os.getpid()}.jsonl"
    results.parent.mkdir(exist_ok=True)
    every = [(JOB, shard) for shard in range(SHARDS)]
    async with GroupMember(
        bootstrap,
        JOB,
        protocol_type="shards",
        protocols=[MemberProtocol("deal")],
        assign=deal,
        session_timeout_ms=6_000,
        heartbeat_interval_ms=1_000,
        on_assigned=lambda share: print("shards", share.assignment.decode(), flush=True),
    ) as member:
        done, generation = {}, None
        while True:
            # While this holds the share, nobody else gets it: a rebalance waits for the piece in hand.
            async with member.working() as share:
                if share.generation != generation:  # others may have got further with these shards
                    generation = share.generation
                    done = {shard: at.offset for (_, shard), at in (await member.committed(every)).items()}
                mine = [s for s in json.loads(share.assignment) if done.get(s, 0) < PIECES]
                if mine:
                    shard = min(mine, key=lambda s: done.get(s, 0))
                    await work(shard, done.get(shard, 0), results)
                    done[shard] = done.get(shard, 0) + 1
                    # Refused if the group went on without this process: then another one has the shard.
                    with contextlib.suppress(CommitFailedError):
                        await member.commit({(JOB, shard): done[shard]}, generation=generation)
                    continue
            if not mine:
                await asyncio.sleep(0.2)  # the others are still at it
                done |= {shard: at.offset for (_, shard), at in (await member.committed(every)).items()}
                if all(done.get(shard, 0) == PIECES for shard in range(SHARDS)):
                    print("the job is done", flush=True)
                    return


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
