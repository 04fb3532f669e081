"""The application: questions, live messages, metrics, health, and the files of the page."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from ringleader.insight.advice.thresholds import DEFAULT, Thresholds
from ringleader.insight.history import History, HistoryError
from ringleader.insight.model import Event
from ringleader.insight.plain import Json, entry
from ringleader.insight.web.desk import BusyError, Desk
from ringleader.insight.web.guard import Guard, refusal
from ringleader.insight.web.live import Live
from ringleader.insight.web.metrics import exposition
from ringleader.insight.web.params import AskedWronglyError, Params, mark_of
from ringleader.insight.web.questions import QUESTIONS, SLOW, NotFoundError, Question, deploys, findings

STATIC = Path(__file__).parent / "static"

MARK_MAX_BYTES = 4_096

Handler = Callable[[Request], Awaitable[Response]]
Note = Callable[[Iterable[Event]], None]


def application(
    desk: Desk,
    slow: Desk,
    live: Live,
    *,
    token: str | None = None,
    names: Iterable[str] = (),
    thresholds: Thresholds = DEFAULT,
    note: Note | None = None,
) -> Starlette:
    """Answers over `desk`, and over `slow` what may take seconds, with the board and the messages of `live`.
    `names`: host names that it may be asked for, beside localhost, this machine's and addresses.
    `thresholds`: of findings. `note` puts marks into the history; None: nothing can be written."""
    set_up = {
        "findings": partial(findings, thresholds=thresholds),
        "deploys": partial(deploys, thresholds=thresholds),
    }
    asked = {
        name: partial(_question, slow if name in SLOW else desk, set_up.get(name, question), allowed)
        for name, (question, allowed) in QUESTIONS.items()
    }
    return Starlette(
        routes=[
            Route("/", _page),
            Route("/health", partial(_health, live)),
            Route("/metrics", partial(_metrics, live)),
            Route("/api/groups", _answering(partial(_groups, live))),
            Route("/api/live", _answering(partial(_live, live))),
            Route("/api/deploys", _answering(partial(_mark, desk, note)), methods=["POST"]),
            *(Route(f"/api/{name}", _answering(handler)) for name, handler in asked.items()),
            Route("/api/{rest:path}", _nothing),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        middleware=[
            Middleware(Guard, token=token, names=tuple(names)),
            Middleware(GZipMiddleware, minimum_size=2048),
        ],
    )


def _answering(handler: Handler) -> Handler:
    """An error becomes an answer with one sentence."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except AskedWronglyError as error:
            return refusal(400, str(error))
        except NotFoundError as error:
            return refusal(404, str(error))
        except HistoryError as error:
            return refusal(503, f"The history cannot be read: {error}.")
        except BusyError:
            return refusal(503, "Too many questions at once: ask again in a moment.")

    return answer


async def _question(desk: Desk, question: Question, allowed: tuple[str, ...], request: Request) -> Response:
    params = Params(request.query_params, allowed)

    def ask(history: History) -> bytes:
        return _encoded(question(history, params, _now_ms()))

    return _json(await desk.ask(ask))


async def _mark(desk: Desk, note: Note | None, request: Request) -> Response:
    """Takes the mark of a deploy: a JSON object with `what`, `group` and `label`."""
    if note is None:
        return refusal(403, "No watcher runs with this page, so nothing can be written.")
    # Another site's page cannot send this type without asking first.
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return refusal(415, "Send JSON, as application/json.")
    body = b""
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > MARK_MAX_BYTES:
                return refusal(413, f"A mark is sent in at most {MARK_MAX_BYTES} bytes.")
    except ClientDisconnect:
        return refusal(400, "The mark did not come as a whole.")  # nobody reads it
    kind, group, label = mark_of(body)
    if group and await desk.ask(lambda history: history.group(group)) is None:
        raise NotFoundError(f"No group {group!r} was seen.")
    at_ms = _now_ms()
    event = Event(f"{kind.value.replace(' ', '-')}-{at_ms}-{group}", group, at_ms, kind, label)
    note([event])
    return Response(_encoded(entry(event)), 201, media_type="application/json")


async def _groups(live: Live, request: Request) -> Response:
    params = Params(request.query_params, ("gone",))
    if not live.ready:
        return refusal(503, f"The history cannot be read: {live.trouble or 'it is being opened'}.")
    gone = params.flag("gone", False)
    now_ms = _now_ms()
    rows = live.board.rows(now_ms, gone=gone)
    return _json(_encoded({"groups": rows, "oldest_ms": live.oldest_ms, "now_ms": now_ms}))


async def _live(live: Live, request: Request) -> Response:
    Params(request.query_params, ())
    if live.full:
        return refusal(503, "Too many pages look on already: close one.")
    last = request.headers.get("last-event-id", "")
    after = int(last) if last.isascii() and last.isdigit() and len(last) < 18 else None
    return StreamingResponse(
        live.messages(after), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"}
    )


async def _metrics(live: Live, _request: Request) -> Response:
    return Response(await run_in_threadpool(exposition, live), media_type=CONTENT_TYPE_LATEST)


async def _health(live: Live, _request: Request) -> Response:
    trouble = live.trouble or (None if live.ready else "the history is being opened")
    if trouble is None and live.away is not None:
        trouble = f"the cluster does not answer: {live.away.why}"
    body: Json = {"ok": trouble is None, **live.status()}
    if trouble is not None:
        body["why"] = trouble
    return Response(_encoded(body), 200 if trouble is None else 503, media_type="application/json")


async def _page(_request: Request) -> Response:
    return FileResponse(
        STATIC / "index.html", media_type="text/html; charset=utf-8", headers={"Cache-Control": "no-cache"}
    )


async def _nothing(_request: Request) -> Response:
    return refusal(404, f"There is nothing here; there are: groups, live, {', '.join(QUESTIONS)}.")


def _json(body: bytes) -> Response:
    return Response(body, media_type="application/json")


def _encoded(value: Json) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
