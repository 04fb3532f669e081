"""Resets of offsets over HTTP: a plan that is shown, and the request that carries it out."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from ringleader.clients.admin import Admin
from ringleader.clients.errors import ClientError, RetriableError
from ringleader.clients.offsets.reset_plan import (
    KINDS,
    Plan,
    ResetError,
    Target,
    busy,
    carry_out,
    check_fresh,
    make_plan,
    target_of,
)
from ringleader.host.clock import wall_ms
from ringleader.host.printable import printable
from ringleader.insight.model import Event, EventKind
from ringleader.insight.web.guard import MAY_RESET, principal, refusal
from ringleader.insight.web.params import BadRequestError, Params
from ringleader.insight.web.requests import json_body
from ringleader.insight.web.sources import Place

PLANS_MAX = 64
"""Plans that wait to be carried out; for one more the oldest is forgotten."""
PLAN_S = 600.0
"""How long a plan can be carried out."""
TIMEOUT_S = 10.0
"""For all that the cluster is asked."""
EVENT_MAX = 10
"""Partitions in the event of the history; the log has all."""
PARAMETERS = ("group", "topic", "partitions", "to", "value")
_NUMBER = re.compile(r"-?[0-9]{1,18}", re.ASCII)
_PARTITIONS = re.compile(r"[0-9]{1,9}(,[0-9]{1,9})*", re.ASCII)

logger = logging.getLogger("ringleader.insight.web")


class _Kept(NamedTuple):
    place: Place
    user: str
    plan: Plan
    until_s: float


class Resets:
    """The plans of a page, for clients with the token of resets."""

    def __init__(self, *, on: bool) -> None:
        """`on`: the page has such a token; without one resets are refused."""
        self._on = on
        self._plans: OrderedDict[str, _Kept] = OrderedDict()
        self._turn = asyncio.Lock()
        """One after the other: what one looks at, another may not change meanwhile."""

    async def look(self, place: Place, query: Mapping[str, str], request: Request) -> Response:
        """GET: without `to` whether the group can be reset and what it has committed, else a plan."""
        params = Params(query, PARAMETERS)
        group, to = params.text("group"), params.optional("to")
        if (no := self._closed(place, request)) is not None:
            return no
        if to is None:
            return await _answer(place, lambda admin: _about(admin, group))
        topic = params.text("topic")
        scope = {topic: _partitions(params.optional("partitions"))}
        target = _target(to, params.optional("value"))
        return await _answer(
            place,
            lambda admin: self._planned(admin, place, principal(request), group, target, scope),
        )

    async def carry_out(self, place: Place, query: Mapping[str, str], request: Request) -> Response:
        """POST: a JSON object with `plan`, that of an answer of `look`. A plan is carried out once, and by
        whom it was made for."""
        Params(query, ())
        if (no := self._closed(place, request)) is not None:
            return no
        body = await json_body(request, ("plan",))
        user, name = principal(request), body.get("plan")
        kept = self._plans.get(name) if isinstance(name, str) else None
        if kept is None or kept.place is not place or kept.user != user or time.monotonic() > kept.until_s:
            return refusal(409, "There is no such plan, or no longer: make the plan again.")
        del self._plans[str(name)]
        async with self._turn:
            return await _answer(place, lambda admin: _set(admin, place, user, _from(request), kept.plan))

    async def session(self, place: Place, query: Mapping[str, str], request: Request) -> Response:
        """GET: whether offsets can be reset here, and whether the client has shown the token for it."""
        Params(query, ())
        offered = self._on and place.source.admin is not None
        return JSONResponse({"resets": offered, "may_reset": offered and request.scope[MAY_RESET]})

    def _closed(self, place: Place, request: Request) -> Response | None:
        if not self._on:
            return refusal(
                403,
                "Offsets are not reset on this page: it was started without --reset-token-file FILE (of "
                "ringleader serve: --ui-reset-token-file).",
            )
        if place.source.admin is None:
            return refusal(403, "No watcher runs with this page, so offsets cannot be reset here.")
        if not request.scope[MAY_RESET]:
            return refusal(403, "Offsets are reset with the token of resets; this request has another one.")
        return None

    async def _planned(
        self,
        admin: Admin,
        place: Place,
        user: str,
        group: str,
        target: Target,
        scope: dict[str, set[int] | None],
    ) -> JSONResponse:
        plan = await make_plan(admin, group, target, scope)
        name = secrets.token_urlsafe(32)
        self._plans[name] = _Kept(place, user, plan, time.monotonic() + PLAN_S)
        while len(self._plans) > PLANS_MAX:
            self._plans.popitem(last=False)
        return JSONResponse({"plan": name, **_plan_json(plan)})


async def _about(admin: Admin, group: str) -> JSONResponse:
    refused = await busy(admin, group)
    committed = await admin.group_offsets(group)
    topics = sorted({topic for topic, _ in committed})
    return JSONResponse({"group": group, "refused": refused or None, "topics": topics})


async def _set(admin: Admin, place: Place, user: str, where: str, plan: Plan) -> Response:
    def say(outcome: str) -> None:
        logger.warning(
            "offsets reset from the page: principal %s, from %s, group %s%s, %s: %s",
            *map(printable, (user, where, plan.group, _in(place), plan.text)),
            outcome,
        )

    try:
        await check_fresh(admin, plan)
        await carry_out(admin, plan)
    except ResetError:
        say("refused")
        raise
    except ClientError as error:
        if isinstance(error, RetriableError):
            say(f"not known whether done ({printable(str(error))})")
            sentence = f"Whether the offsets were set is not known, make the plan again to see: {error}"
            return refusal(502, f"{sentence.rstrip('.')}.")
        say(f"refused by the cluster ({printable(str(error))})")
        raise
    say("done")
    if (note := place.source.note) is not None:
        note([_event(plan, user, where)])
    return JSONResponse(_plan_json(plan))


def _event(plan: Plan, user: str, where: str) -> Event:
    some = Plan(plan.group, plan.changes[:EVENT_MAX], "").text
    more = len(plan.changes) - EVENT_MAX
    others = f" and {more} more" if more > 0 else ""
    at_ms = wall_ms()
    text = f"From the page, by {user} at {where}: {some}{others}."
    return Event(f"reset-{at_ms}-{plan.group}", plan.group, at_ms, EventKind.OFFSETS_RESET, printable(text))


def _plan_json(plan: Plan) -> dict[str, object]:
    offsets = [one.as_json() for one in plan.changes]
    return {"group": plan.group, "refused": plan.refused or None, "offsets": offsets}


async def _answer(place: Place, work: Callable[[Admin], Awaitable[Response]]) -> Response:
    """The answer of the work, or the sentence why there is none."""
    made = place.source.admin
    assert made is not None
    try:
        async with made() as admin:
            return await work(admin.within(TIMEOUT_S))
    except ResetError as error:
        return refusal(409, str(error))
    except ClientError as error:
        return refusal(502, f"The cluster did not do it: {str(error).rstrip('.')}.")


def _target(to: str, value: str | None) -> Target:
    """Raises AskedWronglyError."""
    if to not in KINDS:
        raise BadRequestError(f"to is one of {', '.join(KINDS)}, not {to[:40]!r}.")
    given: int | str = value or ""
    if to in ("to-offset", "shift-by"):
        if not _NUMBER.fullmatch(str(given)) or (to == "to-offset" and int(given) < 0):
            raise BadRequestError(f"{to}: value is a whole number, not {str(given)[:40]!r}.")
        given = int(given)
    try:
        return target_of(to, given, wall_ms())
    except ValueError as error:
        raise BadRequestError(f"{to}: {error}.") from None


def _partitions(text: str | None) -> set[int] | None:
    """Raises AskedWronglyError."""
    if text is None:
        return None
    if not _PARTITIONS.fullmatch(text):
        raise BadRequestError(f"partitions is 0,1 for these two, not {text[:40]!r}.")
    return {int(one) for one in text.split(",")}


def _from(request: Request) -> str:
    return request.client.host if request.client is not None else "?"


def _in(place: Place) -> str:
    return f" of cluster {place.source.name}" if place.source.name else ""
