"""A broker that answers as the test says: right, late, wrong or not at all."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

from ringleader.protocol.frames import decode_request_header, encode_response, request_class
from ringleader.protocol.messages import (
    ApiVersionsResponse,
    ApiVersionsResponseApiVersion,
    FindCoordinatorResponse,
    FindCoordinatorResponseCoordinator,
    MetadataResponse,
    MetadataResponseBroker,
)
from tests.support.ports import free_ports

Reply = Any
"""A response message; bytes to be sent as they are; None: no answer; CLOSE: hang up."""
CLOSE = object()
VERSIONS = {
    3: (0, 12),
    8: (2, 9),
    9: (1, 9),
    10: (0, 4),
    11: (0, 9),
    12: (0, 4),
    13: (0, 5),
    14: (0, 5),
    18: (0, 3),
}


class ScriptedBroker:
    """`handlers`: API key -> function of (request, version, correlation id) to a Reply. ApiVersions, Metadata
    and FindCoordinator are answered by themselves unless a handler is given."""

    def __init__(
        self,
        handlers: Mapping[int, Callable[[Any, int, int], Reply]] | None = None,
        versions: Mapping[int, tuple[int, int]] = VERSIONS,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.handlers = dict(handlers or {})
        self.versions = dict(versions)
        self._tls = tls
        self.requests: list[tuple[Any, int]] = []
        self.connections = 0
        [self.port] = free_ports(1)
        self._server: asyncio.Server | None = None
        self.writers: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[Any]] = set()
        self._received = asyncio.Condition()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def names(self) -> list[str]:
        """Names of the requests so far, without the handshakes."""
        names = [type(request).__name__.removesuffix("Request") for request, _ in self.requests]
        return [name for name in names if name != "ApiVersions"]

    async def until(self, name: str, times: int = 1) -> None:
        """Wait until `times` requests of that name have come."""
        async with self._received:
            await self._received.wait_for(lambda: self.names().count(name) >= times)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", self.port, ssl=self._tls)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        writers = list(self.writers)
        for task in self._serving:
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)
        for writer in writers:
            writer.transport.abort()  # what nobody reads any more is not waited for
            with contextlib.suppress(OSError):
                await writer.wait_closed()
        await self._server.wait_closed()

    def hang_up(self) -> None:
        """End all connections."""
        for writer in self.writers:
            writer.close()

    def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Known from the first moment, so that the end of the broker ends it, too."""
        self.connections += 1
        self.writers.add(writer)
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._serving.add(task)
        task.add_done_callback(lambda _: self._ended(task, writer))

    def _ended(self, task: asyncio.Task[None], writer: asyncio.StreamWriter) -> None:
        self._serving.discard(task)
        self.writers.discard(writer)
        writer.close()
        if not task.cancelled() and (error := task.exception()) is not None:
            asyncio.get_running_loop().call_exception_handler(
                {"message": "a scripted broker failed", "exception": error}
            )

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                size = int.from_bytes(await reader.readexactly(4), "big")
                frame = await reader.readexactly(size)
                header, position = decode_request_header(frame)
                cls = request_class(header.api_key)
                assert cls is not None
                if header.api_key == 18 and header.api_version > self.versions[18][1]:
                    request: Any = cls()
                else:
                    request = cls.decode(frame, header.api_version, position)
                async with self._received:
                    self.requests.append((request, header.api_version))
                    self._received.notify_all()
                reply = self._reply(request, header.api_key, header.api_version, header.correlation_id)
                if asyncio.iscoroutine(reply):
                    reply = await reply
                if reply is CLOSE:
                    return
                if isinstance(reply, bytes):
                    writer.write(reply)
                elif reply is not None:
                    version = header.api_version
                    if header.api_key == 18 and version > self.versions[18][1]:
                        version = 0
                    writer.write(encode_response(reply, version, header.correlation_id))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass

    def _reply(self, request: Any, key: int, version: int, correlation_id: int) -> Reply:
        handler = self.handlers.get(key)
        if handler is not None:
            return handler(request, version, correlation_id)
        if key == 18:
            keys = [
                ApiVersionsResponseApiVersion(*item) for item in ((k, *v) for k, v in self.versions.items())
            ]
            if version > self.versions[18][1]:
                own = [one for one in keys if one.api_key == 18]
                return ApiVersionsResponse(error_code=35, api_keys=own)
            return ApiVersionsResponse(api_keys=keys)
        if key == 3:
            broker = MetadataResponseBroker(node_id=1, host="127.0.0.1", port=self.port)
            return MetadataResponse(brokers=[broker], controller_id=1)
        if key == 10:
            where: dict[str, Any] = {"node_id": 1, "host": "127.0.0.1", "port": self.port}
            if version < 4:
                return FindCoordinatorResponse(**where)
            return FindCoordinatorResponse(
                coordinators=[FindCoordinatorResponseCoordinator(key="g", **where)]
            )
        if key == 17:
            return CLOSE  # as a broker hangs up that knows nothing of SASL
        raise AssertionError(f"no handler for {type(request).__name__}")
