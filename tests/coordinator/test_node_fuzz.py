"""Damaged requests of every API: no handler fails, nobody else notices, nothing is left behind."""

from __future__ import annotations

import asyncio
import dataclasses
import random
import struct
from pathlib import Path
from typing import Any

import pytest

from ringleader.coordinator.config import Settings
from ringleader.coordinator.node import Node
from ringleader.protocol.errors import EncodeError
from ringleader.protocol.fields import FieldSpec
from ringleader.protocol.frames import REQUESTS, encode_request
from ringleader.protocol.messages import ApiVersionsRequest
from ringleader.protocol.records import Record, build_batch
from ringleader.protocol.schema import Message
from tests.support.groupclient import form
from tests.support.served import Client

CASES_PER_SEED = 150
BATCH = build_batch([Record(0, 0, b"k", b"v", [])])
WORDS = ["", "orders", "group", "consumer", "range", "x" * 300, "ä", "__consumer_offsets", ".."]
NUMBERS = [0, 1, -1, 2, 7, 100, 30_000, 2**15 - 1, -(2**15), 2**31 - 1, -(2**31)]


def _filled(kind: Any, version: int, source: random.Random) -> Any:
    """A message or struct whose fields of this version hold random but fitting values."""
    made = kind()
    for declared in dataclasses.fields(kind):
        spec: FieldSpec = declared.metadata["ringleader"]
        if not spec.versions[0] <= version <= spec.versions[1]:
            continue
        nullable = spec.nullable is not None and spec.nullable[0] <= version <= spec.nullable[1]
        if nullable and source.random() < 0.2:
            value = None
        elif spec.array:
            value = [_value(spec.type, version, source) for _ in range(source.randrange(3))]
        else:
            value = _value(spec.type, version, source)
        setattr(made, declared.name, value)
    return made


def _value(kind: Any, version: int, source: random.Random) -> Any:
    if not isinstance(kind, str):
        return _filled(kind, version, source)
    match kind:
        case "bool":
            return source.random() < 0.5
        case "string":
            return source.choice(WORDS)
        case "bytes" | "records":
            return source.choice([b"", source.randbytes(20), BATCH, BATCH + BATCH, BATCH[:-3]])
        case "uuid":
            return source.choice([bytes(16), source.randbytes(16)])
        case "float64":
            return source.choice([0.0, -1.0, 1e300])
    bits = int(kind.removeprefix("u").removeprefix("int"))
    low, high = (0, 2**bits) if kind.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1))
    return source.choice([number for number in NUMBERS if low <= number < high])


def _damaged(keys: list[int], source: random.Random) -> bytes:
    """A request frame of some API and version, with some bytes changed, cut or added."""
    while True:
        request: type[Message] = REQUESTS[source.choice(keys)]
        version = source.randint(request.MIN_VERSION, request.MAX_VERSION)
        try:
            frame = encode_request(_filled(request, version, source), version, 1, "fuzz")
        except EncodeError:
            continue
        body = bytearray(frame[4:])
        for _ in range(source.choice([0, 0, 1, 3])):
            at = source.randrange(8, len(body))
            match source.randrange(4):
                case 0:
                    body[at] = source.randrange(256)
                case 1:
                    body[at : at + 4] = struct.pack(">i", source.choice(NUMBERS[:-1]))
                case 2:
                    del body[at:]
                    body += bytes(2)
                case _:
                    body[at:at] = source.randbytes(source.randint(1, 30))
        return struct.pack(">i", len(body)) + bytes(body)


@pytest.mark.parametrize("seed", range(4), indirect=True)
async def test_damaged_requests_harm_nobody(
    seed: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    source = random.Random(seed)
    options: dict[str, Any] = {
        "listen": "127.0.0.1:0",
        "data_dir": tmp_path,
        "topic": "orders:2",
        "group_initial_rebalance_delay_ms": 0,
    }
    async with Node(Settings(**options)) as node:
        bystander = Client(*await asyncio.open_connection(node.host, node.port))
        member = await form(bystander, "bystander")
        keys = sorted(node.server.routes)
        for _ in range(CASES_PER_SEED):
            client = Client(*await asyncio.open_connection(node.host, node.port))
            client.writer.write(_damaged(keys, source))
            await client.writer.drain()
            assert (await bystander.call(member.heartbeat(), 3)).error_code == 0
            await client.close()
        assert (await bystander.call(ApiVersionsRequest(), 0)).error_code == 0
        await bystander.close()
    handled = sum(route.requests for route in node.server.routes.values())
    assert handled > CASES_PER_SEED * 1.5, "hardly any request came through to be handled"
    failures = [record.getMessage() for record in caplog.records if record.exc_info]
    assert failures == []
    assert node.server.held_bytes == 0
    assert not node.server.connections
