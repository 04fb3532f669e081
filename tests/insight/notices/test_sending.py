"""Notices over real connections: each target gets each once, and what cannot be sent is said."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ringleader.insight.model import Event, EventKind
from ringleader.insight.notices import notifier as module
from ringleader.insight.notices.forms import Notice
from ringleader.insight.notices.notifier import Queue
from ringleader.insight.notices.settings import NoticeSettings
from ringleader.insight.notices.targets import THREAD, NotSentError, targets_of
from tests.support.certificates import Certificates
from tests.support.ports import free_ports
from tests.support.receivers import HANG, PATIENCE_S, Mailbox, Webhook, serving

TOKEN = "only-the-webhook-knows"


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_PAUSE_S", 0.01)


def notice(number: int = 1) -> Notice:
    event = Event(
        f"incident-orders-storm-{number}", "orders", number, EventKind.INCIDENT, f"Storm: {number}."
    )
    return Notice(event, "id", "prod:9092", "", "http://watch/#/group/orders")


class Sending:
    """The queue of the one target that is set, and the lines that it said."""

    def __init__(self, **settings: Any) -> None:
        self.notices: asyncio.Queue[str] = asyncio.Queue()
        found = NoticeSettings(**settings)
        [target] = targets_of(found)
        self.queue = Queue(target, found, self.notices.put_nowait)

    async def says(self) -> str:
        return await asyncio.wait_for(self.notices.get(), PATIENCE_S)


@asynccontextmanager
async def sending(**settings: Any) -> AsyncIterator[Sending]:
    one = Sending(**settings)
    task = asyncio.create_task(one.queue.run())
    try:
        yield one
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        for thread in threading.enumerate():
            if thread.name == THREAD:
                await asyncio.to_thread(thread.join, PATIENCE_S)


def mail(mailbox: Mailbox, **more: Any) -> dict[str, Any]:
    return {
        "mail_to": "a@example.com,b@example.com",
        "mail_from": "watch@example.com",
        "mail_server": mailbox.address,
        "mail_security": "none",
        **more,
    }


async def test_a_webhook_gets_json_and_the_token() -> None:
    with Webhook() as hook:
        async with sending(webhook_url=f"{hook.url}/here?x=1", webhook_token=TOKEN) as one:
            one.queue.put(notice())
            received = await asyncio.to_thread(hook.next)
    assert received.path == "/here?x=1"
    assert received.headers["Authorization"] == f"Bearer {TOKEN}"
    assert received.headers["Content-Type"] == "application/json"
    assert (received.json["id"], received.json["type"]) == ("incident-orders-storm-1", "event")


async def test_slack_gets_text() -> None:
    with Webhook() as hook:
        async with sending(slack_url=hook.url) as one:
            one.queue.put(notice())
            received = await asyncio.to_thread(hook.next)
    assert received.json == {"text": "*orders*: Storm: 1.\n<http://watch/#/group/orders|Open the page>"}


@pytest.mark.parametrize("status", [500, 503, 429, 408])
async def test_an_answer_that_may_change_is_tried_again(status: int) -> None:
    with Webhook(status, status) as hook:
        async with sending(webhook_url=hook.url) as one:
            one.queue.put(notice(1))
            one.queue.put(notice(2))
            received = [(await asyncio.to_thread(hook.next)).json["id"][-1] for _ in range(4)]
            assert received == ["1", "1", "1", "2"]
            assert one.notices.empty()


@pytest.mark.parametrize("status", [400, 404, 302])
async def test_a_refusal_is_said_and_not_tried_again(status: int) -> None:
    with Webhook(status, headers={"Location": "/elsewhere"}) as hook:
        async with sending(webhook_url=f"{hook.url}/secret") as one:
            one.queue.put(notice(1))
            line = await one.says()
            one.queue.put(notice(2))
            received = [(await asyncio.to_thread(hook.next)) for _ in range(2)]
    assert [one.json["id"][-1] for one in received] == ["1", "2"]
    assert line == (
        f"a notice of orders to the webhook at 127.0.0.1 is given up (HTTP status {status}): Storm: 1."
    )


async def test_a_server_that_is_away_and_comes_back_gets_its_notices() -> None:
    [port] = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    async with sending(webhook_url=url, deadline_ms=0) as one:
        one.queue.put(notice())
        assert "is given up (tried for 0 ms, Connection refused): Storm: 1." in await one.says()
    async with sending(webhook_url=url) as one:
        one.queue.put(notice())
        await asyncio.sleep(0)  # it may have been tried, or not
        hook = Webhook(at=port)
        with hook:
            assert (await asyncio.to_thread(hook.next)).json["group"] == "orders"


async def test_a_server_that_hangs_does_not_hold_up_more_than_the_timeout() -> None:
    with Webhook(HANG) as hook:
        async with sending(webhook_url=hook.url, timeout_ms=200) as one:
            one.queue.put(notice())
            received = [(await asyncio.to_thread(hook.next)).json["id"] for _ in range(2)]
            assert received == [notice().incident.id] * 2  # the same id: a receiver knows it again
    with Webhook(HANG) as hook:
        async with sending(webhook_url=hook.url, timeout_ms=200, deadline_ms=0) as one:
            one.queue.put(notice())
            line = await one.says()
            assert (
                "(tried for 0 ms, no answer within 200 ms)" in line or "(tried for 0 ms, timed out)" in line
            )


async def test_a_pause_that_the_target_asks_for_counts_against_the_deadline() -> None:
    with Webhook(429, headers={"Retry-After": "3600"}) as hook:
        async with sending(webhook_url=hook.url) as one:
            one.queue.put(notice())
            assert "(tried for 10 min, HTTP status 429)" in await one.says()


class Failing:
    """A target that takes a notice at the last of some tries."""

    name = "nobody"

    def __init__(self, *after_s: float) -> None:
        self._after_s = list(after_s)

    def send(self, _notice: Notice) -> None:
        if self._after_s:
            raise NotSentError("not now", self._after_s.pop(0))


async def test_pauses_grow_to_the_longest_and_a_target_may_ask_for_a_longer_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pauses: list[float] = []
    real = asyncio.sleep

    async def short(pause_s: float) -> None:
        pauses.append(pause_s)
        await real(0)

    monkeypatch.setattr(module, "LONGEST_PAUSE_S", 0.04)
    monkeypatch.setattr(asyncio, "sleep", short)
    over = asyncio.Event()
    target: Any = Failing(0.001, 0.0, 0.0, 0.0, 0.05)
    queue = Queue(target, NoticeSettings(), pytest.fail, lambda *_: over.set())
    task = asyncio.create_task(queue.run())
    queue.put(notice())
    await asyncio.wait_for(over.wait(), PATIENCE_S)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert pauses == [0.01, 0.02, 0.04, 0.04, 0.05]


async def test_too_many_and_those_left_at_the_end_are_said() -> None:
    one = Sending(webhook_url="http://127.0.0.1:1/secret", queue_max=2)
    for number in range(1, 4):
        one.queue.put(notice(number))
    assert "is given up (2 others wait): Storm: 3." in await one.says()
    one.queue.leave()
    lines = [await one.says(), await one.says()]
    assert [line[-9:] for line in lines] == ["Storm: 1.", "Storm: 2."]
    assert all("waits for the next watcher" in line and "secret" not in line for line in lines)


async def test_a_mail_comes_with_evidence_and_link() -> None:
    with serving(Mailbox()) as box:
        async with sending(**mail(box)) as one:
            one.queue.put(notice())
            received = await asyncio.to_thread(box.next)
    assert received["Subject"] == "[ringleader] orders: Storm"
    assert received["To"] == "a@example.com, b@example.com"
    assert "http://watch/#/group/orders" in received.get_content()


@pytest.mark.parametrize("security", ["starttls", "tls"])
async def test_a_mail_over_tls_with_a_login(
    security: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificates = Certificates(tmp_path)
    context = certificates.server_tls()
    monkeypatch.setenv("SSL_CERT_FILE", str(certificates.authority))
    box = Mailbox(tls=context, login=("watch", TOKEN), at_once=security == "tls")
    with serving(box):
        async with sending(
            **mail(box, mail_security=security, mail_user="watch", mail_password=TOKEN)
        ) as one:
            one.queue.put(notice())
            assert (await asyncio.to_thread(box.next))["Subject"] == "[ringleader] orders: Storm"
        async with sending(
            **mail(box, mail_security=security, mail_user="watch", mail_password="wrong")
        ) as one:
            one.queue.put(notice())
            line = await one.says()
            assert f"to the SMTP server {box.address} is given up (SMTP 535 not that password)" in line
    monkeypatch.delenv("SSL_CERT_FILE")
    box = Mailbox(tls=context, at_once=security == "tls")
    with serving(box):
        async with sending(**mail(box, mail_security=security, deadline_ms=0)) as one:
            one.queue.put(notice())
            assert "certificate verify failed" in await one.says()
            assert box.mails.empty()


async def test_a_server_without_starttls_gets_no_mail() -> None:
    with serving(Mailbox()) as box:
        async with sending(**mail(box, mail_security="starttls")) as one:
            one.queue.put(notice())
            assert "STARTTLS" in await one.says()
            assert box.mails.empty()


@pytest.mark.parametrize(
    ("refuses", "says"),
    [
        ({"MAIL": "550 no"}, "(SMTP 550 no)"),
        (
            {"RCPT TO:<a@example.com>": "550 who?"},
            "(it does not take mail for a@example.com; others have it)",
        ),
        (
            {"RCPT TO:<a@example.com>": "550 who?", "RCPT TO:<b@example.com>": "550 who?"},
            "(SMTP 550: it takes mail for none of them)",
        ),
        ({"MAIL": "451 later"}, ""),
        ({"EHLO": "421 busy", "HELO": "421 busy"}, ""),
    ],
)
async def test_what_an_smtp_server_refuses_for_good_is_said_and_else_tried_again(
    refuses: dict[str, str], says: str
) -> None:
    with serving(Mailbox(refuses=refuses)) as box:
        async with sending(**mail(box)) as one:
            one.queue.put(notice())
            if says:
                assert says in await one.says()
            else:
                assert (await asyncio.to_thread(box.next))["Subject"] == "[ringleader] orders: Storm"
                assert one.notices.empty()
