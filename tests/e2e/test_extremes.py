"""Every API of the daemon, every version, every field at its extremes: it answers or closes, and goes on.

No request of a client ends the daemon, a shard, or another client's group, and nothing is stored that a start
could not read.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from ringleader.protocol.frames import decode_response, encode_request, request_class, response_class
from ringleader.protocol.messages import (
    ApiVersionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    HeartbeatRequest,
    InitProducerIdRequest,
    ProduceRequest,
)
from ringleader.protocol.schema import Message
from tests.support.daemon import TRACEBACK, Daemon
from tests.support.extremes import decent, spoil_some, spoiled
from tests.support.groupclient import Member, form
from tests.support.rawclient import RawConnection
from tests.support.served import Client, connected
from tests.support.topiclog import produced

PATIENCE_S = 0.25
"""A request that waits for others, or for time to pass, is left then."""
WAITS = {"JoinGroup", "SyncGroup", "Fetch"}
AT_ONCE = 16
COMBINED = 6_000
"""Requests with several extremes each."""
LIMIT_S = 60.0
KEPT = "kept"
"""The other client's topic."""
NAMED = {
    "topic": "orders",
    "topics": "orders",
    "name": "orders",
    "group": "swept",
    "groups": "swept",
    "group_id": "swept",
    "key": "swept",
    "coordinator_keys": "swept",
    "groups_names": "swept",
    "member_id": "",
    "group_instance_id": None,
    "transactional_id": None,
    "resource_name": "orders",
}
MADE_UP = [(0, 0, 0), (2**63 - 1, 0, 0), (2**63 - 1, 32_767, 2**31 - 1), (1, 32_767, 2**31 - 1), (-2, -1, -1)]
"""Producer ids, epochs and sequences."""
Asked = tuple[str, Message, int]


def served_apis(daemon: Daemon) -> list[tuple[type[Message], int]]:
    """What it says that it serves."""
    with RawConnection(daemon.bootstrap) as raw:
        found = raw.call(ApiVersionsRequest("name", "1"), 3)
    return [
        (kind, version)
        for one in found.api_keys
        if (kind := request_class(one.api_key)) is not None
        for version in range(
            max(one.min_version, kind.MIN_VERSION), min(one.max_version, kind.MAX_VERSION) + 1
        )
    ]


def api_of(request: Message) -> str:
    return type(request).__name__.removesuffix("Request")


def decent_one(
    kind: type[Message], version: int, transactional: str | None = None, made_up: Sequence[int] = (0, 0, 0)
) -> Message:
    """A request as a decent client sends it. Topics are made and deleted under names of their own."""
    producer_id, epoch, sequence = made_up
    named: dict[str, Any] = NAMED | {"records": produced(producer_id, sequence, epoch=epoch)}
    if kind is InitProducerIdRequest:
        named["transactional_id"] = transactional
    if kind in (CreateTopicsRequest, DeleteTopicsRequest):
        named["name"] = named["topic_names"] = f"made-{version}"
    request: Message = decent(kind, version, named)
    return request


def sweep(apis: list[tuple[type[Message], int]]) -> Iterator[Asked]:
    """All of them with one field at an extreme."""
    for kind, version in apis:
        label = f"{kind.__name__} v{version}"
        for transactional in (None, "swept") if kind is InitProducerIdRequest else (None,):
            base = decent_one(kind, version, transactional)
            yield label, base, version
            for what, request in spoiled(base, version):
                yield f"{label}: {what}", request, version
        if kind is ProduceRequest:
            for made_up in MADE_UP:
                yield f"{label}: producer {made_up}", decent_one(kind, version, None, made_up), version


def combinations(apis: list[tuple[type[Message], int]], rng: random.Random) -> Iterator[Asked]:
    """Some of them with several."""
    for _ in range(COMBINED):
        kind, version = rng.choice(apis)
        request = decent_one(kind, version, "swept")
        what = spoil_some(rng, request, version, 5)
        yield f"{kind.__name__} v{version}: {what}", request, version


class Sweeper:
    """Sends requests over connections that it opens again when they are closed."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.sent = self.left = 0
        self.closed: list[tuple[str, int]] = []
        """What was sent, and from which port."""
        self.wrong: list[str] = []
        self._idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def ask(self, asked: Asked) -> None:
        """One request: answered, or its connection closed."""
        label, request, version = asked
        try:
            frame = encode_request(request, version, 7, "sweeper")
        except ValueError:
            return  # no client can send it
        reader, writer = (
            self._idle.pop() if self._idle else await asyncio.open_connection("127.0.0.1", self.port)
        )
        self.sent += 1
        writer.write(frame)
        try:
            async with asyncio.timeout(PATIENCE_S if api_of(request) in WAITS else 20):
                size = int.from_bytes(await reader.readexactly(4), "big")
                answer = await reader.readexactly(size)
        except TimeoutError:
            self.left += 1
            if api_of(request) not in WAITS:
                self.wrong.append(f"{label}: no answer")
            writer.close()
            return
        except (asyncio.IncompleteReadError, ConnectionError):
            if getattr(request, "acks", -1) != 0:
                self.closed.append((label, writer.get_extra_info("sockname")[1]))
            writer.close()
            return
        kind = response_class(request.API_KEY)
        assert kind is not None
        if decode_response(kind, answer, version)[0] != 7:
            self.wrong.append(f"{label}: an answer to another request")
        self._idle.append((reader, writer))

    async def all(self, asked: list[Asked]) -> None:
        """All of these, some at once."""
        left = iter(asked)

        async def some() -> None:
            for one in left:
                if getattr(one[1], "acks", -1) == 0:
                    continue  # it has no answer
                await self.ask(one)

        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(some())

    def close(self) -> None:
        """Close what is open."""
        for _, writer in self._idle:
            writer.close()


def said_of(log: str, port: int) -> int:
    """How many lines the log has of the closing of a peer's connection."""
    return sum(f":{port}" in line and "connection closed" in line for line in log.splitlines())


async def go_on(client: Client, member: Member, offset: int) -> None:
    """Another client's group is as it was."""
    beat = await client.call(HeartbeatRequest(member.group_id, member.generation, member.member_id), 3)
    assert beat.error_code == 0
    committed = await client.call(member.commit(offset, KEPT), 8)
    assert [one.error_code for topic in committed.topics for one in topic.partitions] == [0]
    assert (await client.call(InitProducerIdRequest(None, 1_000), 1)).error_code == 0


@pytest.mark.timeout(240)
async def test_every_field_of_every_request_at_its_extremes(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    options = ("--group-initial-rebalance-delay-ms", "0", "--log-format", "json")
    with Daemon(tmp_path, topics=["orders:2", f"{KEPT}:1"], options=options) as daemon:
        apis = served_apis(daemon)
        asked = list(sweep(apis))
        rng.shuffle(asked)
        more = list(combinations(apis, rng))
        began = time.monotonic()
        async with connected("127.0.0.1", daemon.port) as client:
            member = await form(client, "guarded")
            sweeper = Sweeper(daemon.port)
            try:
                for start in range(0, len(asked) + len(more), 500):
                    chunk = (asked + more)[start : start + 500]
                    await sweeper.all(chunk)
                    await go_on(client, member, start)
                    if sweeper.wrong or TRACEBACK in daemon.log():
                        break
                    if time.monotonic() - began > LIMIT_S:
                        break
            finally:
                sweeper.close()
            took_s = time.monotonic() - began
            print(f"{sweeper.sent} sent in {took_s:.1f} s, {len(sweeper.closed)} closed, {sweeper.left} left")
            log = daemon.log()
            assert TRACEBACK not in log
            assert "traceback" not in log, "none in JSON either"
            assert sweeper.wrong == []
            assert [one for one in sweeper.closed if said_of(log, one[1]) < 1] == []
            assert len(sweeper.closed) < sweeper.sent / 10, "hardly anything is answered"
        for _ in range(2):
            daemon.restart()
            async with connected("127.0.0.1", daemon.port) as client:
                await go_on(client, member, 1)
