"""Every API of the daemon, every version, every field at its extremes: it answers or closes, and goes on.

No request of a client ends the daemon, a shard, or another client's group, and nothing is stored that a start
could not read. The sender is a live member, and a producer in a transaction.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ringleader.protocol.messages import HeartbeatRequest, InitProducerIdRequest
from tests.support.daemon import TRACEBACK, Daemon
from tests.support.groupclient import Member, form
from tests.support.served import Client, connected
from tests.support.shares import share
from tests.support.sweep import TOPIC, Found, drawn, send_all, served_apis

COMBINED = share(500, whole=6_000)
"""Requests with several extremes each."""
KEPT = "kept"
"""The other client's topic."""
OPTIONS = (
    "--telemetry-enable",
    *("--group-initial-rebalance-delay-ms", "0", "--log-format", "json"),
    *("--authorizer", "acl", "--super-users", "User:ANONYMOUS"),
)


def closings(log: str, port: int) -> int:
    """How many lines the log has of the closing of a peer's connection."""
    return sum(f":{port}" in line and "connection closed" in line for line in log.splitlines())


async def go_on(client: Client, member: Member, offset: int) -> None:
    """Another client's group is as it was."""
    beat = await client.call(HeartbeatRequest(member.group_id, member.generation, member.member_id), 3)
    assert beat.error_code == 0
    committed = await client.call(member.commit(offset, KEPT), 8)
    assert [one.error_code for topic in committed.topics for one in topic.partitions] == [0]
    assert (await client.call(InitProducerIdRequest(None, 1_000), 1)).error_code == 0


@pytest.mark.share
@pytest.mark.timeout(600)
async def test_every_field_of_every_request_at_its_extremes(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    found = Found()
    with Daemon(tmp_path, topics=[f"{TOPIC}:2", f"{KEPT}:1"], options=OPTIONS) as daemon:
        apis = await served_apis("127.0.0.1", daemon.port)
        requests = drawn(apis, rng, COMBINED)
        async with connected("127.0.0.1", daemon.port) as client:
            member = await form(client, "guarded")
            for start in range(0, len(requests), 500):
                await send_all("127.0.0.1", daemon.port, requests[start : start + 500], found)
                await go_on(client, member, start)
                if found.wrong or TRACEBACK in daemon.log():
                    break
            log = daemon.log()
            assert TRACEBACK not in log
            assert "traceback" not in log, "none in JSON either"
            found.check()
            assert [one for one in found.closed if closings(log, one[1]) < 1] == []
        for _ in range(2):
            daemon.restart()
            async with connected("127.0.0.1", daemon.port) as client:
                await go_on(client, member, 1)
