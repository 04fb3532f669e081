"""The bodies of requests that change something."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import ClientDisconnect, Request

from ringleader.insight.web.params import BadRequestError

BODY_MAX_BYTES = 4_096


async def json_body(request: Request, names: tuple[str, ...]) -> dict[str, Any]:
    """A JSON object with some of these names. Raises AskedWronglyError."""
    # Another site's page cannot send this type without asking first.
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise BadRequestError("Send JSON, as application/json.", 415)
    body = b""
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > BODY_MAX_BYTES:
                raise BadRequestError(f"What is sent has at most {BODY_MAX_BYTES} bytes.", 413)
    except ClientDisconnect:
        raise BadRequestError("The request did not come as a whole.") from None  # nobody reads it
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise BadRequestError("What is sent is a JSON object.")
    if found.keys() - {*names}:
        raise BadRequestError(f"The JSON object has {_listed(names)}.")
    return found


def _listed(names: tuple[str, ...]) -> str:
    *some, last = names
    return f"{', '.join(some)} and {last}" if some else last
