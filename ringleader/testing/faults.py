"""Faults on request, for tests of applications: errors, delays, lost connections, a coordinator that moved;
and what clients asked for.

A relay in front of the coordinator, which clients take for the coordinator itself. Rules are given from any
thread; each counts the requests that it applies to, and the first one that is not used up decides.
"""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple

from ringleader.protocol.errors import EncodeError, ErrorCode, MalformedError
from ringleader.protocol.frames import (
    RequestHeader,
    decode_request_header,
    encode_response,
    request_class,
    response_class,
)
from ringleader.protocol.refusals import refusal

MAX_FRAME_BYTES = 100 * 1024 * 1024
SEEN_MAX = 100_000
"""Requests that are remembered; beyond that the oldest are forgotten."""

DATA_APIS = ("AddPartitionsToTxn", "Fetch", "ListOffsets", "Produce", "TxnOffsetCommit")
"""Their errors are in the answer for each partition."""
GROUP_APIS = ("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetFetch")

Kind = Literal["error", "delay", "drop", "drop answer"]


class Seen(NamedTuple):
    """One request that came in."""

    at_s: float
    """`time.monotonic()`."""
    api: str
    """Kafka's name: "JoinGroup", "OffsetCommit" ..."""
    version: int
    client_id: str | None
    request: Any
    """The message (of `ringleader.protocol.messages`); None for one that is not served in this version."""


@dataclass(slots=True)
class Rule:
    """A fault. `hits` counts how often it has happened."""

    api: str
    kind: Kind
    skip: int
    """Requests that pass before the first one it applies to."""
    times: int
    """How often it happens; -1: from then on for ever."""
    group: str | None
    client_id: str | None
    code: ErrorCode = ErrorCode.NONE
    seconds: float = 0.0
    hits: int = 0
    passed: int = field(default=0, repr=False)

    def applies(self, header: RequestHeader, api: str, request: Any) -> bool:
        """Whether it happens to this request; counts."""
        if self.api not in (api, "*") or self.times == self.hits:
            return False
        if self.client_id is not None and header.client_id != self.client_id:
            return False
        if self.group is not None and getattr(request, "group_id", None) != self.group:
            return False
        self.passed += 1
        if self.passed <= self.skip:
            return False
        self.hits += 1
        return True


class Faults:
    """The faults to inject, and the requests that were seen. APIs by Kafka's names, "*" for all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rules: list[Rule] = []
        self._seen: list[Seen] = []
        self._moved: set[object] = set()
        self._links: set[_Link] = set()
        self._loop: asyncio.AbstractEventLoop | None = None

    # ---- what shall go wrong ----

    def error(
        self,
        api: str,
        code: ErrorCode,
        *,
        nth: int = 1,
        times: int = 1,
        group: str | None = None,
        client_id: str | None = None,
    ) -> Rule:
        """Answer the n-th request of that API from now on with this error, and the `times` - 1 after it; the
        coordinator does not see them. Raises ValueError for an API whose answers have no place for one."""
        if api not in GROUP_APIS + DATA_APIS and not hasattr(_response_of(api), "error_code"):
            raise ValueError(f"the answer of {api} has no single error code")
        return self._add(Rule(api, "error", nth - 1, times, group, client_id, code))

    def delay(
        self,
        api: str,
        seconds: float,
        *,
        nth: int = 1,
        times: int = -1,
        group: str | None = None,
        client_id: str | None = None,
    ) -> Rule:
        """Let requests of that API wait before the coordinator sees them."""
        return self._add(Rule(api, "delay", nth - 1, times, group, client_id, seconds=seconds))

    def drop(
        self,
        api: str,
        *,
        nth: int = 1,
        times: int = 1,
        group: str | None = None,
        client_id: str | None = None,
        done: bool = False,
    ) -> Rule:
        """Close the connection instead of answering. `done`: the coordinator has acted on the request, and
        its answer is lost."""
        kind: Kind = "drop answer" if done else "drop"
        return self._add(Rule(api, kind, nth - 1, times, group, client_id))

    def move_coordinator(self) -> None:
        """As if the coordinator had moved to another node and back: on every connection that is open now,
        group requests are answered NOT_COORDINATOR until its client asks for the coordinator again."""
        with self._lock:
            self._moved = set(self._links)

    def disconnect(self) -> None:
        """Close all connections of clients, as a failing network would."""
        with self._lock:
            links, loop = list(self._links), self._loop
        if loop is not None:
            for link in links:
                loop.call_soon_threadsafe(link.close)

    def clear(self) -> None:
        """Nothing goes wrong any more."""
        with self._lock:
            self._rules.clear()
            self._moved.clear()

    def _add(self, rule: Rule) -> Rule:
        if rule.api != "*":
            _response_of(rule.api)
        if rule.skip < 0:
            raise ValueError("nth counts from 1")
        with self._lock:
            self._rules.append(rule)
        return rule

    # ---- what was asked ----

    def seen(self, api: str | None = None) -> list[Seen]:
        """The requests that came, in order; of one API only."""
        with self._lock:
            return [one for one in self._seen if api in (None, one.api)]

    def forget_seen(self) -> None:
        """Forget the requests that were seen."""
        with self._lock:
            self._seen.clear()

    # ---- from the relay ----

    def _decide(self, link: _Link, header: RequestHeader, api: str, request: Any) -> Rule | None:
        with self._lock:
            self._seen.append(Seen(time.monotonic(), api, header.api_version, header.client_id, request))
            if len(self._seen) > SEEN_MAX:
                del self._seen[: SEEN_MAX // 10]
            if api == "FindCoordinator":
                self._moved = {one for one in self._moved if not link.same_client(one)}
            elif link in self._moved and api in GROUP_APIS:
                return Rule(api, "error", 0, 1, None, None, ErrorCode.NOT_COORDINATOR)
            for rule in self._rules:
                if rule.applies(header, api, request):
                    return replace(rule)
        return None


class Relay:
    """Takes connections in the coordinator's place. Lives in the coordinator's loop."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._target = ("", 0)

    async def listen(self, host: str, port: int) -> int:
        """Listen; the port. Clients wait until `serve` says where the coordinator is."""
        self._faults._loop = asyncio.get_running_loop()
        self._server = await asyncio.start_server(self._accept, host, port, start_serving=False)
        return int(self._server.sockets[0].getsockname()[1])

    async def serve(self, host: str, port: int) -> None:
        """Pass requests on to there."""
        assert self._server is not None
        self._target = (host, port)
        await self._server.start_serving()

    async def close(self) -> None:
        """Close everything."""
        if self._server is not None:
            self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._faults._loop = None

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        link = _Link(self._faults, reader, writer)
        with self._faults._lock:
            self._faults._links.add(link)
        try:
            await link.run(*self._target)
        except (OSError, EOFError, MalformedError):
            pass
        except asyncio.CancelledError:
            pass  # by `close`; about a cancelled connection asyncio would log an error (before Python 3.12)
        finally:
            link.close()
            with self._faults._lock:
                self._faults._links.discard(link)
                self._faults._moved.discard(link)
            self._tasks.discard(task)


class _Link:
    """One client's connection and the one behind it."""

    def __init__(self, faults: Faults, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._faults = faults
        self._reader, self._writer = reader, writer
        self._behind: asyncio.StreamWriter | None = None
        self._client_id: str | None = None

    def same_client(self, other: object) -> bool:
        """Whether it is the same client, as far as its id tells."""
        return isinstance(other, _Link) and other._client_id == self._client_id

    def close(self) -> None:
        """End both connections at once."""
        for writer in (self._writer, self._behind):
            if writer is not None:
                writer.transport.abort()

    async def run(self, host: str, port: int) -> None:
        """Pass on requests one by one, as the coordinator works on them, until it is ended."""
        answers, self._behind = await asyncio.open_connection(host, port)
        coming = asyncio.ensure_future(_frame(self._reader))
        try:
            while True:
                frame = await coming
                coming = asyncio.ensure_future(_frame(self._reader))
                if not await self._pass_on(frame, answers, coming):
                    return
        finally:
            coming.cancel()

    async def _pass_on(
        self, frame: bytes, answers: asyncio.StreamReader, coming: asyncio.Future[bytes]
    ) -> bool:
        """Whether to go on."""
        if self._writer.is_closing():
            return False  # by `close`, since the request came
        header, request = _read(frame)
        self._client_id = header.client_id
        api = _name(header.api_key)
        rule = self._faults._decide(self, header, api, request)
        kind = None if rule is None else rule.kind
        if kind == "drop":
            return False
        if rule is not None and kind == "error" and request is not None:
            _write(self._writer, _refusal(request, header, rule.code))
            await self._writer.drain()
            return True
        if rule is not None and kind == "delay":
            await asyncio.sleep(rule.seconds)
        assert self._behind is not None
        _write(self._behind, len(frame).to_bytes(4, "big") + frame)
        if api == "Produce" and getattr(request, "acks", 1) == 0:
            return True
        answer = asyncio.ensure_future(_frame(answers))
        try:
            await asyncio.wait((answer, coming), return_when=asyncio.FIRST_COMPLETED)
            if not answer.done() and coming.exception() is not None:
                return False  # the client went away while its request was parked
            data = await answer
        finally:
            answer.cancel()
        if kind == "drop answer":
            return False
        _write(self._writer, len(data).to_bytes(4, "big") + data)
        await self._writer.drain()
        return True


def _write(writer: asyncio.StreamWriter, data: bytes) -> None:
    # Cut by `close` while the request waited: uvloop would raise RuntimeError.
    if writer.is_closing():
        raise ConnectionResetError
    writer.write(data)


async def _frame(reader: asyncio.StreamReader) -> bytes:
    size = int.from_bytes(await reader.readexactly(4), "big", signed=True)
    if not 0 < size <= MAX_FRAME_BYTES:
        raise EOFError
    return await reader.readexactly(size)


def _read(frame: bytes) -> tuple[RequestHeader, Any]:
    header, position = decode_request_header(frame)
    message = request_class(header.api_key)
    if message is None or not message.MIN_VERSION <= header.api_version <= message.MAX_VERSION:
        return header, None
    return header, message.decode(frame, header.api_version, position)


def _name(api_key: int) -> str:
    message = request_class(api_key)
    return f"API {api_key}" if message is None else message.__name__.removesuffix("Request")


def _response_of(api: str) -> Any:
    """An empty answer. Raises ValueError for an API that there is not."""
    for key in range(100):
        if _name(key) == api:
            found = response_class(key)
            assert found is not None
            return found()
    raise ValueError(
        f"there is no API {api!r}; they have Kafka's names: JoinGroup, OffsetCommit, Metadata ..."
    )


def _refusal(request: Any, header: RequestHeader, code: ErrorCode) -> bytes:
    response = refusal(request, header.api_version, int(code))
    try:
        return encode_response(response, header.api_version, header.correlation_id)
    except EncodeError as error:
        raise EOFError from error
