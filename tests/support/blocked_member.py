"""A process with a group member whose event loop stands still.

    python -m tests.support.blocked_member BOOTSTRAP WAY BLOCKED_S SESSION_MS

WAY: "sleep" (a call that blocks), "busy" (Python that computes). At the end one line of JSON says what became
of its membership.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from typing import Any

from ringleader.clients.group.membership import GroupMember
from ringleader.clients.model import MemberProtocol

WAIT_S = 30.0


def block(way: str, seconds: float) -> None:
    """Stand still."""
    if way == "sleep":
        time.sleep(seconds)
        return
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        sum(range(1_000))


async def run(bootstrap: str, way: str, blocked_s: float, session_ms: int) -> dict[str, Any]:
    """See the module."""
    calls: list[str] = []
    async with GroupMember(
        bootstrap,
        "g",
        protocol_type="work",
        protocols=[MemberProtocol("all")],
        assign=lambda _protocol, members: {one.member_id: b"x" for one in members},
        on_assigned=lambda _: calls.append("assigned"),
        on_revoked=lambda _: calls.append("revoked"),
        on_lost=lambda lost: calls.append(f"lost: {lost.reason}"),
        session_timeout_ms=session_ms,
        heartbeat_interval_ms=session_ms // 4,
    ) as member:
        before = await member.wait_assigned(WAIT_S)
        beats = member.metrics().heartbeats
        block(way, blocked_s)
        figures = member.metrics()
        await member.commit({("t", 0): 7}, generation=before.generation)
        after = await member.wait_assigned(WAIT_S)
        return {
            "same": before == after,
            "told": list(calls),
            "beats": figures.heartbeats - beats,
            "slowest_ms": figures.heartbeat_round_trip_ms_max,
            "committed": (await member.committed())["t", 0].offset,
        }


if __name__ == "__main__":
    print(json.dumps(asyncio.run(run(sys.argv[1], sys.argv[2], float(sys.argv[3]), int(sys.argv[4])))))
