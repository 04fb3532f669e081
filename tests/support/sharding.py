"""A job whose shards are dealt out by GroupMember: the group that the membership tests run."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from ringleader.clients.group.membership import GroupMember
from ringleader.clients.model import Assigned, MemberInfo, MemberProtocol
from ringleader.testing.coordinator import Coordinator

SHARDS = 12
PATIENCE_S = 20.0


def assign(_protocol: str, members: list[MemberInfo]) -> dict[str, bytes]:
    """The shards of a job, dealt out in turn."""
    names = sorted(member.member_id for member in members)
    return {name: json.dumps(list(range(i, SHARDS, len(names)))).encode() for i, name in enumerate(names)}


class Diary:
    """The events of one member, and a way to wait for one."""

    def __init__(self, **hooks: Any) -> None:
        self.lines: list[Any] = []
        self._hooks = hooks
        self._changed = asyncio.Event()

    async def note(self, line: Any) -> None:
        self.lines.append(line)
        self._changed.set()
        if (hook := self._hooks.get(type(line).__name__)) is not None:
            await hook(line)

    def of(self, kind: type[Any]) -> list[Any]:
        return [line for line in self.lines if isinstance(line, kind)]

    async def until(self, kind: type[Any], count: int = 1) -> Any:
        """The newest line of that kind, when there are `count` of them."""
        async with asyncio.timeout(PATIENCE_S):
            while len(self.of(kind)) < count:
                self._changed.clear()
                await self._changed.wait()
        return self.of(kind)[-1]


def member(
    where: Coordinator | str, diary: Diary | None = None, *, group: str = "jobs", **options: Any
) -> GroupMember:
    diary = diary or Diary()
    given: dict[str, Any] = {
        "protocol_type": "sharding",
        "protocols": [MemberProtocol("deal")],
        "assign": assign,
        "session_timeout_ms": 6_000,
        "heartbeat_interval_ms": 100,
        "on_assigned": diary.note,
        "on_revoked": diary.note,
        "on_lost": diary.note,
        "on_failed": diary.note,
    }
    bootstrap = where if isinstance(where, str) else where.bootstrap
    return GroupMember(bootstrap, group, **(given | options))


def shards(assigned: Assigned) -> list[int]:
    return list(json.loads(assigned.assignment))


async def settled(*members: GroupMember) -> list[Assigned]:
    """All of them in one generation."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            shares = [await one.wait_assigned() for one in members]
            if len({share.generation for share in shares}) == 1 and all(one.assigned for one in members):
                return shares
            await asyncio.sleep(0.01)
