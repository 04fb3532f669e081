"""`POST /record?group=NAME&for_ms=N&max_bytes=N`: the requests to a group from now on, as lines of JSON (see
`recording.file`) that come while it happens; the last one says why it ends. `principals=true`: with the names
of callers. `DELETE /record?number=N`, with the number that the answer's header has: it ends at once, with all
that was asked until now."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from ringleader.coordinator.logs import Log
from ringleader.coordinator.recording.desk import (
    FOR_MAX_MS,
    MAX_BYTES,
    CannotRecordError,
    Desk,
    Recording,
    RecordingRequest,
)
from ringleader.coordinator.recording.file import NUMBER_HEADER
from ringleader.host.http_server import bears

if TYPE_CHECKING:
    import asyncio

    from ringleader.coordinator.runtime.groups import GroupRuntime

T = TypeVar("T")
READER_LEFT = "who read it is gone"
STOPPED = "by Ctrl-C"


class Side(Protocol):
    """Of `http.NodeSide`."""

    runtime: GroupRuntime | None
    """There once it serves."""

    def ask(self, coroutine: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
        """Run it on the node's loop, from another one."""


class Recordings:
    """The endpoint's side of the desk."""

    def __init__(self, side: Side, token: str | None, log: Log) -> None:
        """`token`: the one that may record; None: nobody may."""
        self._side = side
        self._token = token
        self._desk = Desk(log)

    async def record(self, request: Request) -> Response:
        """Answer."""
        if (refused := self._refused(request)) is not None:
            return refused
        try:
            if request.method == "DELETE":
                number = _number(request.query_params.get("number"), "number", MAX_BYTES)
                ended = await self._side.ask(self._desk.end(number, STOPPED))
                return Response(status_code=204 if ended else 404)
            wanted = _recording_request(request)
        except ValueError as error:
            return PlainTextResponse(f"{error}\n", 400)
        runtime = self._side.runtime
        if runtime is None:
            return PlainTextResponse("the node does not serve yet\n", 503)
        try:
            recording = await self._side.ask(self._desk.begin(runtime, wanted))
        except CannotRecordError as error:
            return PlainTextResponse(f"{error}\n", 409)
        return StreamingResponse(
            self._lines(recording),
            headers={NUMBER_HEADER: str(recording.number)},
            media_type="application/x-ndjson",
        )

    def _refused(self, request: Request) -> Response | None:
        if self._token is None:
            return PlainTextResponse(
                "nobody may record groups here: http.recording.token.file is not set\n", 403
            )
        if not bears(request.headers, self._token):
            return PlainTextResponse(
                "recordings need the token of http.recording.token.file\n",
                401,
                headers={"WWW-Authenticate": "Bearer"},
            )
        return None

    async def _lines(self, recording: Recording) -> AsyncIterator[bytes]:
        try:
            ended = False
            while not ended:
                taken, ended = await self._side.ask(_take(recording))
                yield taken
        finally:
            self._side.ask(_end(recording))


async def _take(recording: Recording) -> tuple[bytes, bool]:
    return await recording.take(), recording.ended


async def _end(recording: Recording) -> None:
    recording.end(READER_LEFT)


def _recording_request(request: Request) -> RecordingRequest:
    params = request.query_params
    group_id = params.get("group")
    if not group_id:
        raise ValueError("group= names the group")
    host = "" if request.client is None else request.client.host
    return RecordingRequest(
        group_id,
        _number(params.get("for_ms"), "for_ms", FOR_MAX_MS),
        _number(params.get("max_bytes"), "max_bytes", MAX_BYTES),
        params.get("principals") == "true",
        host,
    )


def _number(text: str | None, name: str, most: int) -> int:
    if text is None or not text.isdecimal() or not 0 < int(text[:20]) <= most:
        raise ValueError(f"{name}= is a whole number, from 1 to {most}")
    return int(text)
