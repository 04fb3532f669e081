"""Changes arrive by themselves, at every open page, also after a lost connection."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from ringleader.host import http_server
from ringleader.insight.history import Away
from ringleader.insight.web import live, page
from ringleader.insight.web.board import Board, pages
from tests.insight.made import Made
from tests.insight.web.asking import ask, looking_on, ready


def _made(tmp_path: Path) -> Made:
    return Made(tmp_path / "live.sqlite", start_ms=time.time_ns() // 1_000_000 - 600_000)


async def test_a_rebalance_is_told_to_all_who_look_on(tmp_path: Path) -> None:
    made = _made(tmp_path)
    orders = made.group("orders", {"orders": 6}, ["app-1", "app-2"])
    made.write()
    async with page(made.path) as url:
        await ready(url)
        async with looking_on(url) as one, looking_on(url) as other:
            assert (await one.next())[1] == (await other.next())[1] == "hello"
            rebalance = orders.leave("app-2")
            made.write()
            for stream in (one, other):
                _, _, event = await stream.next("rebalance")
                assert event["id"] == rebalance.id
                assert event["cause"] == "member left"
                _, _, row = await stream.next("group")
                assert (row["group"], row["members"]) == ("orders", 1)
        metrics = (await ask(url, "/metrics")).body.decode()
    assert 'ringleader_watch_rebalances_total{cause="member left",group="orders"} 1.0' in metrics
    assert 'ringleader_watch_members{group="orders"} 1.0' in metrics


async def test_a_cluster_that_does_not_answer_is_told_with_since_when(tmp_path: Path) -> None:
    made = _made(tmp_path)
    made.group("orders", {"orders": 6}, ["app-1"])
    made.write()
    async with page(made.path) as url:
        await ready(url)
        async with looking_on(url) as stream:
            assert (await stream.next("cluster"))[2]["away"] is None
            made.answers(Away(1_700_000_000_000, "connection refused"))
            event = (await stream.next("cluster"))[2]
            assert event["cluster"].startswith("prod:9092")
            assert event["away"] == {"since_ms": 1_700_000_000_000, "why": "connection refused"}
            health = await ask(url, "/health")
            assert health.status == 503
            assert health.json == {
                "ok": False,
                "why": "the cluster does not answer: connection refused",
                **event,
            }
            metrics = (await ask(url, "/metrics")).body.decode()
            assert "ringleader_watch_cluster_answers 0.0" in metrics
            made.answers()
            assert (await stream.next("cluster"))[2]["away"] is None
            assert (await ask(url, "/health")).status == 200
            assert "ringleader_watch_cluster_answers 1.0" in (await ask(url, "/metrics")).body.decode()


async def test_an_open_page_may_be_silent_for_longer_than_a_request_may_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_server, "REQUEST_S", 0.1)
    made = _made(tmp_path)
    orders = made.group("orders", {"orders": 6}, ["app-1", "app-2"])
    made.write()
    async with page(made.path) as url:
        await ready(url)
        async with looking_on(url) as stream:
            await stream.next("hello")
            place = urlsplit(url)
            for _ in range(3):
                reader, writer = await asyncio.open_connection(place.hostname, place.port)
                assert await reader.read() == b"", "who does not ask is not waited for"
                writer.close()
            rebalance = orders.leave("app-2")
            made.write()
            assert (await stream.next("rebalance"))[2]["id"] == rebalance.id


async def test_a_page_that_comes_back_gets_what_it_missed_and_a_late_one_loads_again(
    tmp_path: Path,
) -> None:
    made = _made(tmp_path)
    orders = made.group("orders", {"orders": 6}, ["app-1", "app-2"])
    made.write()
    async with page(made.path) as url:
        await ready(url)
        async with looking_on(url) as stream:
            number, _, _ = await stream.next("hello")
        missed = orders.join("app-3")
        made.write()
        async with looking_on(url, number) as stream:
            assert (await stream.next("rebalance"))[2]["id"] == missed.id
        async with looking_on(url, "17") as stream:
            assert (await stream.next())[1] == "reload"


async def test_one_viewer_too_many_is_sent_away_and_the_next_one_may_come_when_one_goes(
    tmp_path: Path,
) -> None:
    made = _made(tmp_path)
    made.group("orders", {"orders": 6}, ["app-1"])
    made.write()
    async with page(made.path) as url:
        await ready(url)
        async with looking_on(url) as first:
            await first.next("hello")
            viewers = [looking_on(url) for _ in range(live.VIEWERS_MAX - 1)]
            for viewer in viewers:
                await (await viewer.__aenter__()).next("hello")
            answer = await ask(url, "/api/live")
            assert answer.status == 503
            assert "Too many pages look on" in answer.json["error"]
            assert (await ask(url, "/api/cluster")).status == 200
            for viewer in viewers:
                await viewer.__aexit__(None, None, None)


def test_the_board_takes_a_changed_conclusion_in_place_of_the_first_one() -> None:
    from dataclasses import replace

    from ringleader.insight.model import Cause, Confidence, GroupState, Kind, Rebalance

    board = Board()
    first = Rebalance("offsets-1-2", "orders", Kind.CLASSIC, 3, 1_000, Cause.UNKNOWN, Confidence.UNKNOWN)
    board.tell(GroupState("orders", Kind.CLASSIC, "Stable", 3, "consumer", "range", "", (), 1_000))
    board.tell(first)
    board.tell(replace(first, cause=Cause.SESSION_EXPIRED, confidence=Confidence.CERTAIN, unowned_ms=400))
    [row] = board.rows(2_000)
    assert row["causes"] == {"session expired": 1}
    assert row["unowned_ms"] == 400
    assert board.totals("orders").rebalances.total() == 1


def test_all_rebalances_of_a_time_are_read_page_by_page(recent: Path) -> None:
    from ringleader.insight.history import History

    with History.open(recent, read_only=True) as history:
        everything = history.rebalances(limit=100_000)
        until_ms = everything[-1].at_ms
        found = list(pages(lambda **options: history.rebalances(None, **options), 0, until_ms, page=7))
    assert sorted(one.id for one in found) == sorted(one.id for one in everything)
    assert [one.at_ms for one in found] == sorted(one.at_ms for one in found)
