"""The world of a real server behind sockets: Apache Kafka, or our daemon."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import cycle
from typing import Any

from ringleader.protocol.errors import ErrorCode, error_name
from ringleader.protocol.frames import decode_response, encode_request, response_class
from ringleader.protocol.messages import (
    CreatePartitionsRequest,
    CreatePartitionsRequestCreatePartitionsTopic,
    CreateTopicsRequest,
    CreateTopicsRequestCreatableTopic,
    DeleteTopicsRequest,
    MetadataRequest,
    MetadataRequestTopic,
    OffsetFetchRequest,
)
from ringleader.protocol.schema import Message
from tests.interop.play import Receiver
from tests.support.entrance import Entrance
from tests.support.requests_of_all import ALICE, BOB, CAROL

CLIENT_ID = "interop"
PROBE_VERSION = 7

CALLERS = (ALICE, BOB, CAROL)
"""The principals of a play whose clients say who they are."""

POLL_S = 0.001
"""How often a condition is looked at."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a play waits."""

    surely_s: float
    """For an answer that must come."""
    quiet_s: float
    """Without any new answer, until "nothing more comes" is believed."""


RECORDING = Patience(surely_s=5.0, quiet_s=0.040)
COMPARING = Patience(surely_s=4.0, quiet_s=0.025)


class SocketLink:
    """A connection; see `Link`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, receive: Receiver) -> None:
        self._writer = writer
        self._task = asyncio.create_task(self._read(reader, receive))

    async def _read(self, reader: asyncio.StreamReader, receive: Receiver) -> None:
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                receive(await reader.readexactly(size))
        except (asyncio.IncompleteReadError, ConnectionError):
            receive(None)

    def send(self, frame: bytes) -> None:
        """See `Link`."""
        self._writer.write(frame)

    def close(self) -> None:
        """See `Link`."""
        self._task.cancel()
        self._writer.close()


class SocketWorld:
    """See `World`. One for each play: it has connections of its own for what no scenario shows."""

    def __init__(
        self,
        host: str,
        port: int,
        patience: Patience,
        restart: Callable[[], Awaitable[None]],
        entrance: Entrance | None = None,
    ) -> None:
        """`restart` restarts the server, together with all other plays that come to this point. `entrance`:
        through which clients come, the first one as the first of `WHO`, and so on."""
        self._host, self._port = host, port
        self._entrance = entrance
        self._callers = cycle(CALLERS)
        self._patience = patience
        self._restart = restart
        self._own: Caller | None = None

    async def connect(self, receive: Receiver) -> SocketLink:
        """See `World`."""
        if self._entrance is None:
            reader, writer = await asyncio.open_connection(self._host, self._port)
        else:
            reader, writer = await self._entrance.open(next(self._callers))
        return SocketLink(reader, writer, receive)

    async def sleep(self, ms: int) -> None:
        """See `World`."""
        await asyncio.sleep(ms / 1000)

    async def answered(self, done: Callable[[], bool], *, surely: bool) -> bool:
        """See `World`."""
        loop = asyncio.get_running_loop()
        end = loop.time() + (self._patience.surely_s if surely else self._patience.quiet_s)
        pause = POLL_S
        while not done():
            if loop.time() > end:
                return False
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, 0.02)
        return True

    async def settle(self, group_id: str, arrived: Callable[[], int]) -> None:
        """See `World`. A fetch of stable offsets goes through the same queue as the group's requests, and
        comes back after all that they wrote is durable."""
        await asyncio.sleep(0.005)  # the request has a head start before the fetch on another connection
        if group_id:
            await (await self._caller()).call(
                OffsetFetchRequest(group_id=group_id, topics=None, require_stable=True), PROBE_VERSION
            )
        count = -1
        while count != arrived():
            count = arrived()
            await asyncio.sleep(self._patience.quiet_s)

    async def create_topic(self, name: str, partitions: int) -> None:
        """See `World`. Raises RuntimeError."""
        await create_topic(await self._caller(), name, partitions)

    async def delete_topic(self, name: str) -> None:
        """See `World`. Raises RuntimeError."""
        caller = await self._caller()
        response = await caller.call(DeleteTopicsRequest(topic_names=[name], timeout_ms=20_000), 1)
        _check(name, [one.error_code for one in response.responses])

    async def grow_topic(self, name: str, partitions: int) -> None:
        """See `World`. Raises RuntimeError."""
        caller = await self._caller()
        topic = CreatePartitionsRequestCreatePartitionsTopic(name=name, count=partitions, assignments=None)
        response = await caller.call(CreatePartitionsRequest(topics=[topic], timeout_ms=20_000), 1)
        _check(name, [one.error_code for one in response.results])
        await _until_known(caller, name, partitions)

    async def topic_id(self, name: str) -> bytes:
        """See `World`."""
        request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
        found: bytes = (await (await self._caller()).call(request, 10)).topics[0].topic_id
        return found

    async def restart(self) -> None:
        """See `World`."""
        await self.close()
        await self._restart()

    async def _caller(self) -> Caller:
        if self._own is None:
            self._own = await Caller.connect(self._host, self._port)
        return self._own

    async def close(self) -> None:
        """After the play."""
        own, self._own = self._own, None
        if own is not None:
            await own.close()


class Caller:
    """A connection for what no scenario shows: ask, wait for the answer."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def connect(cls, host: str, port: int) -> Caller:
        """Raises OSError."""
        return cls(*await asyncio.open_connection(host, port))

    async def call(self, message: Message, version: int) -> Any:
        """Raises TimeoutError, and ``asyncio.IncompleteReadError`` when the connection was closed."""
        cls = response_class(message.API_KEY)
        assert cls is not None
        self._writer.write(encode_request(message, version, 1, CLIENT_ID))
        async with asyncio.timeout(30):
            (size,) = struct.unpack(">i", await self._reader.readexactly(4))
            return decode_response(cls, await self._reader.readexactly(size), version)[1]

    async def close(self) -> None:
        """Close it."""
        self._writer.close()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()


async def create_topic(caller: Caller, name: str, partitions: int) -> None:
    """Create a topic if it is not there. Raises RuntimeError."""
    topic = CreateTopicsRequestCreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    response = await caller.call(CreateTopicsRequest(topics=[topic], timeout_ms=20_000), 5)
    _check(name, [one.error_code for one in response.topics], ErrorCode.TOPIC_ALREADY_EXISTS)
    await _until_known(caller, name, partitions)


async def _until_known(caller: Caller, name: str, partitions: int) -> None:
    """It is the controller that makes it; whether the broker knows it yet is another question."""
    request = MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=False)
    for _ in range(200):
        known = (await caller.call(request, 4)).topics[0]
        if not known.error_code and len(known.partitions) == partitions:
            return
        await asyncio.sleep(0.02)
    raise RuntimeError(f"topic {name} does not come up")


def _check(name: str, errors: list[int], fine: int = 0) -> None:
    for error in errors:
        if error not in (0, fine):
            raise RuntimeError(f"topic {name}: {error_name(error)}")
