"""The application: questions, live messages, metrics, health, and the files of the page."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from ringleader.host.clock import wall_ms
from ringleader.insight.advice.thresholds import DEFAULT, Thresholds
from ringleader.insight.history import History, HistoryError
from ringleader.insight.model import Event
from ringleader.insight.plain import Json, entry
from ringleader.insight.web.desk import BusyError
from ringleader.insight.web.guard import SIGN_IN, Guard, refusal
from ringleader.insight.web.live import VIEWERS_MAX
from ringleader.insight.web.metrics import exposition
from ringleader.insight.web.params import BadRequestError, Params, mark_of
from ringleader.insight.web.questions import QUESTIONS, SLOW, NotFoundError, Question, deploys, findings
from ringleader.insight.web.requests import json_body
from ringleader.insight.web.resets import Resets
from ringleader.insight.web.sources import CLUSTER, Place, Places

STATIC = Path(__file__).parent / "static"

Handler = Callable[[Request], Awaitable[Response]]
Query = Mapping[str, str]
"""The parameters of a request, but for the cluster."""
OfOne = Callable[[Place, Query, Request], Awaitable[Response]]
"""Answers from one cluster."""


def application(
    places: Places,
    *,
    token: str | None = None,
    reset_token: str | None = None,
    names: Iterable[str] = (),
    thresholds: Thresholds = DEFAULT,
) -> Starlette:
    """Answers from `places`. `names`: host names that it may be asked for, beside localhost, this machine's
    and addresses. `thresholds`: of findings. `reset_token`: with it clients may reset offsets, too; without
    one nobody may."""
    resets = Resets(on=reset_token is not None)
    set_up = {
        "findings": partial(findings, thresholds=thresholds),
        "deploys": partial(deploys, thresholds=thresholds),
    }
    handlers = {
        name: partial(_question, name in SLOW, set_up.get(name, question), allowed)
        for name, (question, allowed) in QUESTIONS.items()
    }
    return Starlette(
        routes=[
            Route("/", _page),
            Route("/health", partial(_health, places)),
            Route("/metrics", partial(_metrics, places)),
            Route("/api/clusters", _answering(partial(_clusters, places))),
            Route("/api/groups", _of_one(places, _groups)),
            Route("/api/live", _of_one(places, partial(_live, places))),
            Route("/api/deploys", _of_one(places, _mark), methods=["POST"]),
            Route(SIGN_IN, _of_one(places, resets.session)),
            Route("/api/reset", _of_one(places, resets.look)),
            Route("/api/reset", _of_one(places, resets.carry_out), methods=["POST"]),
            *(Route(f"/api/{name}", _of_one(places, handler)) for name, handler in handlers.items()),
            Route("/api/{rest:path}", _nothing),
            Mount("/static", StaticFiles(directory=STATIC)),
        ],
        middleware=[
            Middleware(Guard, token=token, reset_token=reset_token, names=tuple(names)),
            Middleware(GZipMiddleware, minimum_size=2048),
        ],
    )


def _of_one(places: Places, handler: OfOne) -> Handler:
    """Answers from the cluster that the request names."""

    async def answer(request: Request) -> Response:
        place, query = places.pick(request.query_params)
        return await handler(place, query, request)

    return _answering(answer)


def _answering(handler: Handler) -> Handler:
    """An error becomes an answer with one sentence."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except BadRequestError as error:
            return refusal(error.status, str(error))
        except NotFoundError as error:
            return refusal(404, str(error))
        except HistoryError as error:
            return refusal(503, f"The history cannot be read: {error}.")
        except BusyError:
            return refusal(503, "Too many questions at once: ask again in a moment.")

    return answer


async def _question(
    slow: bool, question: Question, allowed: tuple[str, ...], place: Place, query: Query, _request: Request
) -> Response:
    params = Params(query, allowed)

    def ask(history: History) -> bytes:
        return _encoded(question(history, params, wall_ms()))

    return _json(await (place.slow if slow else place.desk).ask(ask))


async def _mark(place: Place, query: Query, request: Request) -> Response:
    """Takes the mark of a deploy: a JSON object with `what`, `group` and `label`."""
    Params(query, ())
    if (note := place.source.note) is None:
        return refusal(403, "No watcher runs with this page, so nothing can be written.")
    kind, group, label = mark_of(await json_body(request, ("what", "group", "label")))
    if group and await place.desk.ask(lambda history: history.group(group)) is None:
        raise NotFoundError(f"No group {group!r} was seen.")
    at_ms = wall_ms()
    event = Event(f"{kind.value.replace(' ', '-')}-{at_ms}-{group}", group, at_ms, kind, label)
    note([event])
    return Response(_encoded(entry(event)), 201, media_type="application/json")


async def _groups(place: Place, query: Query, _request: Request) -> Response:
    live, params = place.live, Params(query, ("gone",))
    if not live.ready:
        return refusal(503, f"The history cannot be read: {live.trouble or 'it is being opened'}.")
    gone = params.flag("gone", False)
    now_ms = wall_ms()
    rows = live.board.rows(now_ms, gone=gone)
    return _json(_encoded({"groups": rows, "oldest_ms": live.oldest_ms, "now_ms": now_ms}))


async def _clusters(places: Places, request: Request) -> Response:
    """A row for each cluster: whether it answers, and what its groups do."""
    Params(request.query_params, ())
    now_ms = wall_ms()
    rows = [
        {"name": one.source.name, **one.live.status(), "why": _trouble(one), **one.live.board.sums(now_ms)}
        for one in places.all
    ]
    return _json(_encoded({"clusters": rows, "now_ms": now_ms}))


async def _live(places: Places, place: Place, query: Query, request: Request) -> Response:
    Params(query, ())
    if sum(one.live.viewers for one in places.all) >= VIEWERS_MAX:
        return refusal(503, "Too many pages look on already: close one.")
    last = request.headers.get("last-event-id", "")
    after = int(last) if last.isascii() and last.isdigit() and len(last) < 18 else None
    return StreamingResponse(
        place.live.messages(after), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"}
    )


async def _metrics(places: Places, _request: Request) -> Response:
    return Response(await run_in_threadpool(exposition, places), media_type=CONTENT_TYPE_LATEST)


async def _health(places: Places, request: Request) -> Response:
    """Of one cluster; without the name of one of several that of the page, which is well while one is."""
    if not places.named or CLUSTER in request.query_params:
        try:
            place, _ = places.pick(request.query_params)
        except BadRequestError as error:
            return refusal(400, str(error))
        body = _healthy(place)
    else:
        found = {one.source.name: _healthy(one) for one in places.all}
        body = {"ok": any(one["ok"] for one in found.values()), "clusters": found}
    return Response(_encoded(body), 200 if body["ok"] else 503, media_type="application/json")


def _healthy(place: Place) -> Json:
    trouble = _trouble(place)
    body: Json = {"ok": trouble is None, **place.live.status()}
    if trouble is not None:
        body["why"] = trouble
    return body


def _trouble(place: Place) -> str | None:
    """The reason why the cluster's figures are not current; None: they are."""
    live = place.live
    if live.away is not None:
        return f"the cluster does not answer: {live.away.why}"
    return live.trouble or (None if live.ready else "the history is being opened")


async def _page(_request: Request) -> Response:
    return FileResponse(
        STATIC / "index.html", media_type="text/html; charset=utf-8", headers={"Cache-Control": "no-cache"}
    )


async def _nothing(_request: Request) -> Response:
    there = ", ".join(QUESTIONS)
    return refusal(404, f"There is nothing here; there are: clusters, groups, live, reset, {there}.")


def _json(body: bytes) -> Response:
    return Response(body, media_type="application/json")


def _encoded(value: Json) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")
