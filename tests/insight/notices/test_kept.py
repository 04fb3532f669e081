"""Notices that wait are in the file of the history until their target has them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ringleader.host.clock import wall_ms
from ringleader.insight.advice import Thresholds
from ringleader.insight.history import Away, History
from ringleader.insight.model import Event, EventKind
from ringleader.insight.notices import NoticeSettings, Notifier
from ringleader.insight.notices.kept import Kept, KeptNotice
from tests.support.receivers import Webhook


def incident(number: int, at_ms: int) -> Event:
    text = f"Storm {number}: there."
    return Event(f"incident-orders-storm-{number}", "orders", at_ms, EventKind.INCIDENT, text)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "h.sqlite"
    History.open(path, cluster_id="id", address="prod:9092").close()
    return path


def kept_in(path: Path) -> list[KeptNotice]:
    notices: list[str] = []
    kept = Kept(path, notices.append)
    found = kept.all().result()
    kept.close()
    assert notices == []
    return found


async def until(holds: Callable[[], bool]) -> None:
    """Of what another thread writes into a file."""
    async with asyncio.timeout(60):
        while not await asyncio.to_thread(holds):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


@asynccontextmanager
async def notifying(path: Path, url: str, noted: list[Event], notices: list[str]) -> AsyncIterator[None]:
    """With a history whose incidents are noted when the block ends, as by a slow recorder."""
    settings = NoticeSettings(webhook_url=url, interval_ms=100, quiet_ms=0)
    cluster = ("id", "prod:9092", "")
    async with Notifier(
        settings,
        path,
        thresholds=Thresholds(),
        cluster=cluster,
        page=None,
        note=noted.extend,
        on_notice=notices.append,
    ):
        yield


def test_what_is_kept_is_read_again_by_target_and_age(file: Path) -> None:
    kept = Kept(file, pytest.fail)
    first, second = incident(1, 1_000), incident(2, 2_000)
    kept.put([KeptNotice(name, one, over=False) for one in (second, first) for name in ("a", "b c")]).result()
    kept.over("a", first)
    kept.close()
    assert kept_in(file) == [
        KeptNotice("a", first, over=True),
        KeptNotice("b c", first, over=False),
        KeptNotice("a", second, over=False),
        KeptNotice("b c", second, over=False),
    ]
    kept = Kept(file, pytest.fail)
    kept.forget([KeptNotice("a", first, over=True)]).result()
    kept.close()
    assert len(kept_in(file)) == 3


async def test_what_was_answered_is_not_told_again_though_the_history_does_not_have_it(file: Path) -> None:
    with History.open(file) as history:
        history.tell_away(Away(1_700_000_000_000, "connection refused"))
    noted: list[Event] = []
    notices: list[str] = []
    with Webhook() as hook:
        async with notifying(file, hook.url, noted, notices):
            await asyncio.to_thread(hook.next)
            await until(lambda: kept_in(file)[0].over)
        [first] = noted
        # As after a kill: the recorder had not written it.
        async with notifying(file, hook.url, noted, notices):
            await until(lambda: len(noted) == 2)
            assert noted == [first, first]
            with History.open(file) as history:
                history.record([first])
            await until(lambda: not kept_in(file))
        assert (hook.posted.empty(), notices) == (True, [])


async def test_what_has_waited_for_too_long_or_for_another_target_is_not_sent(file: Path) -> None:
    old, other = incident(1, 1_000), incident(2, wall_ms())
    kept = Kept(file, pytest.fail)
    with Webhook() as hook:
        rows = [("the webhook at 127.0.0.1", old), ("Slack at elsewhere", other)]
        kept.put([KeptNotice(*row, over=False) for row in rows]).result()
        noted: list[Event] = []
        notices: list[str] = []
        async with notifying(file, hook.url, noted, notices):
            await until(lambda: all(one.over for one in kept_in(file)))
        kept.close()
        assert hook.posted.empty()
    assert ["is given up (nobody watched for long): Storm 1: there." in one for one in notices] == [True]


async def test_a_notice_stays_until_the_history_has_its_own_incident(file: Path) -> None:
    one, other = incident(1, 1_000), incident(2, 2_000)
    kept = Kept(file, pytest.fail)
    kept.put([KeptNotice("gone", row, over=True) for row in (one, other)]).result()
    kept.close()
    with Webhook() as hook:
        async with notifying(file, hook.url, [], []):
            with History.open(file) as history:
                history.record([one])
            await until(lambda: len(kept_in(file)) == 1)
            with History.open(file) as history:
                history.record([other])
            await until(lambda: not kept_in(file))
        assert hook.posted.empty()
