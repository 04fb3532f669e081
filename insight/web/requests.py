"""The bodies of requests that change something."""

from __future__ import annotations

import json
from typing import Any

from starlette.requests import ClientDisconnect, Request

from ringleader.insight.web.params import AskedWronglyError

BODY_MAX_BYTES = 4_096


async def json_body(request: Request, names: tuple[str, ...]) -> dict[str, Any]:
    """A JSON object with some of these names. Raises AskedWronglyError."""
    # Another site's page cannot send this type without asking first.
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise AskedWronglyError("Send JSON, as application/json.", 415)
    body = b""
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > BODY_MAX_BYTES:
                raise AskedWronglyError(f"What is sent has at most {BODY_MAX_BYTES} bytes.", 413)
    except ClientDisconnect:
        raise AskedWronglyError("The request did not come as a whole.") from None  # nobody reads it
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):
        told = None
    if not isinstance(told, dict):
        raise AskedWronglyError("What is sent is a JSON object.")
    if told.keys() - {*names}:
        raise AskedWronglyError(f"The JSON object has {_listed(names)}.")
    return told


def _listed(names: tuple[str, ...]) -> str:
    *some, last = names
    return f"{', '.join(some)} and {last}" if some else last
