"""A process that works on the topic `t` and its retry topics in group `g`, until it is killed.

``python -m tests.support.retry_script BOOTSTRAP NAME``: a line "PARTITION OFFSET ATTEMPT" for each record
before it fails, as all do in their first two attempts, or is done."""

from __future__ import annotations

import asyncio
import sys

from ringleader import Producer, Record, retry_topics
from tests.support.consuming import consumer

TOPIC = "t.retry"
DELAYS_S = (0.1, 0.2)


async def handler(record: Record) -> None:
    """Fails twice."""
    attempt = int(dict(record.headers).get("retry.attempt") or 0)
    print(record.partition, record.offset, attempt, flush=True)
    if attempt < len(DELAYS_S):
        raise ValueError(f"attempt {attempt}")


async def main(bootstrap: str, name: str) -> None:
    """Work for ever."""
    options = {"session_timeout_ms": 6_000, "auto_commit_interval_ms": 20}
    async with Producer(bootstrap, linger_ms=0) as producer:
        policy = retry_topics(producer, TOPIC, delays_s=DELAYS_S)
        async with consumer(bootstrap, name, topics=["t", *policy.topics], **options) as one:
            await one.process(handler, failures={ValueError: policy})


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2]))
