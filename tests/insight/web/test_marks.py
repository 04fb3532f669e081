"""Marks of deploys over HTTP: the only thing that can be written, behind the same guard as all else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ringleader.insight.model import Event, EventKind
from ringleader.insight.web import page
from tests.insight.web.asking import Answer, ask, ready

TOKEN = "correct-horse-battery"
JSON = {"Content-Type": "application/json"}


async def mark(url: str, body: Any, headers: dict[str, str] | None = None) -> Answer:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    return await ask(url, "/api/deploys", method="POST", body=sent, headers={**JSON, **(headers or {})})


async def test_a_mark_is_noted_and_answered_as_an_event(recent: Path) -> None:
    noted: list[Event] = []
    async with page(recent, note=noted.extend) as url:
        await ready(url)
        began = await mark(url, {"what": "begin", "group": "orders", "label": "v1.4 ü"})
        ended = await mark(url, {"what": "end"})
    assert (began.status, ended.status) == (201, 201)
    assert [(one.group, one.kind, one.text) for one in noted] == [
        ("orders", EventKind.DEPLOY_BEGAN, "v1.4 ü"),
        ("", EventKind.DEPLOY_ENDED, ""),
    ]
    assert began.json["id"] == noted[0].id
    assert (began.json["format"], began.json["type"], began.json["kind"]) == (1, "event", "deploy began")


@pytest.mark.parametrize(
    ("body", "headers", "status", "says"),
    [
        (b"{", {}, 400, "is a JSON object"),
        (b"[" * 4_000, {}, 400, "is a JSON object"),
        (b"[]", {}, 400, "is a JSON object"),
        ({"what": "begin", "when": 1}, {}, 400, "has what, group and label"),
        ({"what": "again"}, {}, 400, "what is begin or end"),
        ({"what": "begin", "group": 1}, {}, 400, "are texts"),
        ({"what": "begin", "label": "x" * 201}, {}, 400, "at most 200 printable"),
        ({"what": "begin", "label": "a\nb"}, {}, 400, "at most 200 printable"),
        ({"what": "begin", "group": "nobody"}, {}, 404, "No group 'nobody' was seen"),
        (b" " * 5_000, {}, 413, "at most 4096 bytes"),
        ({"what": "begin"}, {"Content-Type": "text/plain"}, 415, "Send JSON"),
        ({"what": "begin"}, {"Sec-Fetch-Site": "cross-site"}, 403, "Another site's page"),
        ({"what": "begin"}, {"Host": "evil.example"}, 421, "not a name of this page"),
    ],
)
async def test_a_wrong_mark_is_one_sentence_and_not_noted(
    recent: Path, body: Any, headers: dict[str, str], status: int, says: str
) -> None:
    noted: list[Event] = []
    async with page(recent, note=noted.extend) as url:
        await ready(url)
        answer = await mark(url, body, headers)
    assert (answer.status, noted) == (status, [])
    assert says in answer.json["error"]


async def test_a_mark_needs_the_token_where_the_page_does(recent: Path) -> None:
    noted: list[Event] = []
    async with page(recent, token=TOKEN, note=noted.extend) as url:
        assert (await mark(url, {"what": "begin"})).status == 401
        assert noted == []
        assert (await mark(url, {"what": "begin"}, {"Authorization": f"Bearer {TOKEN}"})).status == 201
    assert len(noted) == 1


async def test_a_page_without_a_watcher_takes_no_mark(recent: Path) -> None:
    async with page(recent) as url:
        await ready(url)
        answer = await mark(url, {"what": "begin"})
        assert answer.status == 403
        assert "No watcher runs" in answer.json["error"]
        assert (await ask(url, "/api/deploys", group="orders")).json["deploys"]
