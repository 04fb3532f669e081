"""The bytes that a broker sends: frames as a connection receives them, each answer to its own caller, or an
end."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from random import Random
from typing import Any

from ringleader.clients.connection import connection
from ringleader.clients.connection.connection import Connection
from ringleader.clients.connection.requests import GREETING, Request, found_coordinator
from ringleader.clients.errors import ClientError
from ringleader.protocol.errors import MalformedError
from ringleader.protocol.frames import RESPONSES, decode_response, encode_response
from ringleader.protocol.messages import (
    ApiVersionsRequest,
    FetchRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    ListOffsetsRequest,
    MetadataRequest,
    MetadataResponse,
    OffsetFetchRequest,
    SyncGroupRequest,
)
from ringleader.protocol.overview import FLAT_VERSION, NEWEST_VERSION, read_overview
from tests.fuzz.mutation import changed_bytes, joined, number, parts_of
from tests.fuzz.target import Target, promise
from tests.support.wire_reference import full, written

REQUESTS = (
    ApiVersionsRequest,
    MetadataRequest,
    FindCoordinatorRequest,
    JoinGroupRequest,
    SyncGroupRequest,
    HeartbeatRequest,
    OffsetFetchRequest,
    ListOffsetsRequest,
    FetchRequest,
)
"""One request of each, in this order, so that the correlation ids are 0 and so on."""
LIMIT_BYTES = 1 << 20


class _Transport(asyncio.Transport):
    """Takes everything."""

    def write(self, data: Any) -> None:
        pass

    def abort(self) -> None:
        pass

    close = abort


_loop: list[asyncio.AbstractEventLoop] = []


def close() -> None:
    while _loop:
        _loop.pop().close()


def check(data: bytes) -> None:
    if not _loop:
        _loop.append(asyncio.new_event_loop())
    if not data:
        return
    if data[0] & 1:
        _overview(data[1:])
        return
    _loop[0].run_until_complete(_conversation(parts_of(data[1:])))


async def _conversation(arrivals: list[bytes]) -> None:
    connection = Connection("broker:1", "c", LIMIT_BYTES, 60.0)
    connection.connection_made(_Transport())
    connection.wire.versions = {kind.API_KEY: (kind.MIN_VERSION, kind.MAX_VERSION) for kind in REQUESTS}
    connection.established()
    troubles: list[Any] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: troubles.append(context))
    kept: list[Any] = []
    tasks = [asyncio.ensure_future(connection.ask(_request(kind, kept), 60.0)) for kind in REQUESTS]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    for arrived in arrivals[:30]:
        left = memoryview(arrived)
        while len(left) and not connection.ended.is_set():
            room = connection.get_buffer(-1)
            promise(len(room) > 0, "no room to receive into")
            some = left[: len(room)]
            room[: len(some)] = some
            connection.buffer_updated(len(some))
            left = left[len(some) :]
        await asyncio.sleep(0)
    connection.connection_lost(None)
    for kind, found in zip(REQUESTS, await asyncio.gather(*tasks, return_exceptions=True), strict=True):
        if isinstance(found, BaseException):
            if not isinstance(found, ClientError):
                raise found
        elif kind is FindCoordinatorRequest:
            found_coordinator(found)
    promise(connection.in_flight == 0, "somebody still waits")
    promise(not troubles, f"{troubles}")


def _request(kind: Any, kept: list[Any]) -> Request:
    if kind is ApiVersionsRequest:
        return Request(kind, lambda _version: GREETING)

    def keep(answer: Any) -> bool:
        kept.append(answer)
        return True

    return Request(kind, lambda _version: kind(), keep=keep if kind is FetchRequest else None)


def _overview(frame: bytes) -> None:
    """The walk reads the same as the decoder."""
    for version in range(FLAT_VERSION, NEWEST_VERSION + 1):
        try:
            answer = decode_response(MetadataResponse, frame, version)[1]
        except MalformedError:
            answer = None
        for with_replicas in (False, True):
            try:
                found = read_overview(frame, version, with_replicas)
            except MalformedError:
                promise(answer is None, "an overview is refused that a decoder reads")
                continue
            if answer is None:
                continue
            promise(found.brokers.keys() == {one.node_id for one in answer.brokers}, "other brokers")
            counts = {one.name or "": len(one.partitions) for one in answer.topics}
            promise({name: one.partitions for name, one in found.topics.items()} == counts, "other topics")


def _answer(at: int) -> bytes:
    kind = REQUESTS[at]
    response = RESPONSES[kind.API_KEY]
    version = min(kind.MAX_VERSION, response.MAX_VERSION)
    message: Any = full(response, version)
    if hasattr(message, "throttle_time_ms"):
        message.throttle_time_ms = 0
    return encode_response(message, version, at)


def seeds() -> Iterator[bytes]:
    whole = [_answer(at) for at in range(len(REQUESTS))]
    yield b"\0" + joined(whole)
    for at in range(len(REQUESTS)):
        yield b"\0" + joined(whole[at : at + 1])
    together = b"".join(whole)
    yield b"\0" + joined([together[:100], together[100:101], together[101:]])
    yield b"\0" + joined([b"\x15\x03\x03\x00\x02\x02\x0a"])
    for version in range(FLAT_VERSION, NEWEST_VERSION + 1):
        yield b"\1" + encode_response(full(MetadataResponse, version), version, 1)[4:]


SEEDS = list(seeds())


def mutate(data: bytes, rng: Random) -> bytes:
    """A length, count, tag or text of one answer, whose size is mostly made right again."""
    if not data or rng.random() < 0.05:
        data = rng.choice(SEEDS)
    if data[0] & 1:
        return data[:1] + changed_bytes(data[1:], rng)
    parts = parts_of(data[1:])
    if not parts or rng.random() < 0.3:
        at = rng.randrange(len(parts) + 1)
        parts[at : at + 1] = [changed_bytes(parts[at] if at < len(parts) else b"", rng)]
        return data[:1] + joined(parts)
    at = rng.randrange(len(parts))
    index = rng.randrange(len(REQUESTS))
    kind = RESPONSES[REQUESTS[index].API_KEY]
    good = written(full(kind, kind.MAX_VERSION), kind.MAX_VERSION)
    mark = rng.choice(good.marks)
    old = good.body[mark.start : mark.stop]
    body = good.replaced(mark, number(rng) if rng.random() < 0.5 else changed_bytes(old, rng))
    frame = (
        index.to_bytes(4, "big")
        + (b"\0" if index and kind.MAX_VERSION >= kind.FLEXIBLE_VERSION else b"")
        + body
    )
    parts[at] = len(frame).to_bytes(4, "big") + frame
    return data[:1] + joined([part[: 2**16 - 1] for part in parts])


def plant(patch: Any) -> None:
    """An answer that a decoder refuses ends its caller."""
    patch.setattr(connection, "MalformedError", KeyError)


TARGET = Target(
    "answers",
    "Whatever a broker sends, everyone who asked gets an answer or a ClientError, and nothing else is "
    "raised; "
    "an overview of topics is what a decoder reads.",
    check,
    seeds,
    mutate,
    plant,
    close,
)
