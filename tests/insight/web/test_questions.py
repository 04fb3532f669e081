"""Each question over HTTP, from a real server over a made history."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from urllib.parse import urlencode

import pytest

from ringleader.insight.history import History
from ringleader.insight.model import Cause
from ringleader.insight.web import page
from ringleader.insight.web.questions import QUESTIONS
from tests.insight.web.asking import ask, ready


async def test_every_question_is_answered_from_the_history(recent: Path) -> None:
    with History.open(recent, read_only=True) as history:
        recorded = history.rebalances("orders")
        state = history.group("orders")
    assert state is not None
    expired = next(one for one in recorded if one.cause is Cause.SESSION_EXPIRED)
    stalled = next(one for one in recorded if one.cause is Cause.POLL_INTERVAL_EXCEEDED)
    since, until = recorded[0].at_ms - 1, recorded[-1].at_ms + 60_000
    async with page(recent) as url:
        await ready(url)

        async def get(name: str, **params: str | float) -> object:
            answer = await ask(url, f"/api/{name}?{urlencode(params)}")
            assert answer.status == 200, answer.body
            return answer.json

        groups = await get("groups")
        group = await get("group", group="orders")
        lines = await get("rebalances", group="orders", limit=2000)
        whole = await get("rebalance", id=expired.id)
        members = await get("members", group="orders")
        owners = await get("owners", topic="orders", partition=3, at=recorded[-1].at_ms)
        timeline = await get("timeline", group="orders", since=since, until=until, by="partition")
        lag = await get("lag", group="orders", since=since, until=until)
        events = await get("events")
        report = await get("report", group="orders", since=since, until=until)
        cluster = await get("cluster")
        ownership = await get("ownership", group="orders", topic="orders", partition=3)
        findings = await get("findings", group="orders", since=since, until=until)

    assert isinstance(groups, dict)
    assert [row["group"] for row in groups["groups"]] == ["audit", "billing", "orders"]
    orders = groups["groups"][2]
    assert orders["members"] == len(state.members)
    assert sum(orders["hours"]) == len(recorded)
    assert orders["last"]["id"] == recorded[-1].id
    assert orders["lag"] is not None
    assert isinstance(group, dict)
    assert group["members"][0]["name"] == state.members[0].name
    assert isinstance(lines, dict)
    assert [row["id"] for row in lines["rebalances"]] == [one.id for one in reversed(recorded)]
    assert not lines["more"]
    assert isinstance(whole, dict)
    assert whole["evidence"] == list(expired.evidence)
    assert whole["names"][expired.cause_members[0]] == expired.before[1].name
    assert isinstance(members, dict)
    assert {"left", "session expired"} <= {one["gone"]["why"] for one in members["members"] if one["gone"]}
    assert isinstance(owners, dict)
    [orders_owner] = [one for one in owners["owners"] if one["group"] == "orders"]
    assert orders_owner["rebalance_id"] == recorded[-1].id
    assert orders_owner["offset"] is not None
    assert isinstance(timeline, dict)
    assert timeline["total"] == 12 + 6
    gaps = [gap for lane in timeline["lanes"] for gap in lane["gaps"]]
    assert any(gap["rebalance"] == stalled.id and gap["cause"] == stalled.cause for gap in gaps)
    assert isinstance(lag, dict)
    assert lag["points"]
    assert len(lag["partitions"]) == 12 + 6
    assert isinstance(events, dict)
    assert "offsets reset" in {event["kind"] for event in events["events"]}
    assert isinstance(report, dict)
    assert report["rebalances"] == len(recorded)
    assert report["unowned_ms"] == sum(one.unowned_ms or 0 for one in recorded)
    assert isinstance(cluster, dict)
    assert cluster["address"] == "prod:9092"
    assert isinstance(ownership, dict)
    assert ownership["ownership"][-1]["until_ms"] is None
    assert isinstance(findings, dict)
    assert "findings" in findings


async def test_older_rebalances_are_reached_by_asking_on(recent: Path) -> None:
    with History.open(recent, read_only=True) as history:
        recorded = [one.id for one in history.rebalances(newest_first=True)]
    async with page(recent) as url:
        seen: list[str] = []
        until = ""
        while True:
            answer = (await ask(url, "/api/rebalances", limit=5, until=until)).json
            seen += [row["id"] for row in answer["rebalances"] if row["id"] not in seen]
            if not answer["more"]:
                break
            until = answer["rebalances"][-1]["at_ms"]
    assert seen == recorded


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("/api/group", 400, "Say which group"),
        ("/api/group?group=nobody", 404, "No group 'nobody' was seen"),
        ("/api/group?grup=orders", 400, "There is no parameter 'grup' here; there are: group."),
        ("/api/rebalances?limit=0", 400, "limit is a whole number from 1 to 2000"),
        ("/api/rebalances?since=yesterday", 400, "since is Unix time in ms or 2026-01-31T12:00:00Z"),
        ("/api/timeline?group=orders&since=2&until=1", 400, "since has to be before until"),
        ("/api/timeline?group=orders&by=topic", 400, "by is member or partition"),
        ("/api/owners?topic=orders", 400, "Say which partition"),
        ("/api/groups?gone=perhaps", 400, "gone is true or false"),
        ("/api/rebalance?id=nothing", 404, "There is no rebalance of that id"),
        ("/api/nothing", 404, "There is nothing here; there are: clusters, groups"),
        (f"/api/group?group={'x' * 1001}", 400, "group may have 1000 characters at most"),
    ],
)
async def test_a_wrong_question_is_answered_with_one_sentence(
    recent: Path, path: str, status: int, says: str
) -> None:
    async with page(recent) as url:
        await ready(url)
        answer = await ask(url, path)
    assert answer.status == status
    assert says in answer.json["error"]


async def test_times_may_be_written_as_iso(recent: Path) -> None:
    async with page(recent) as url:
        answer = await ask(url, "/api/report", group="orders", since="2026-01-31T12:00:00Z")
    assert answer.json["since_ms"] == 1_769_860_800_000


async def test_a_history_that_is_not_there_yet_is_said_and_waited_for(tmp_path: Path, recent: Path) -> None:
    path = tmp_path / "later.sqlite"
    async with page(path) as url:
        health = await ask(url, "/health")
        answer = await ask(url, "/api/cluster")
        assert health.status == answer.status == 503
        assert "The history cannot be read" in answer.json["error"]
        await asyncio.to_thread(shutil.copy, recent, path)
        await ready(url)
        assert (await ask(url, "/api/cluster")).json["address"] == "prod:9092"


def test_every_question_says_what_it_answers() -> None:
    assert all(question.__doc__ for question, _ in QUESTIONS.values())
    json.dumps({name: params for name, (_, params) in QUESTIONS.items()})
