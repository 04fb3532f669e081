"""Resets of offsets from the page: shown first, behind a token of their own, and never what was not shown."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ringleader.clients.admin import Admin
from ringleader.clients.consumer import GroupConsumer
from ringleader.clients.producer import Producer
from ringleader.insight.model import Event, EventKind
from ringleader.insight.web import page, page_tls, resets
from ringleader.insight.web.guard import COOKIE, check_access
from ringleader.insight.web.sources import Source
from ringleader.protocol.errors import ErrorCode
from ringleader.testing.coordinator import Coordinator
from tests.insight.web.asking import Answer, ask
from tests.support.certificates import Certificates
from tests.support.consuming import PATIENCE_S

TOKEN = "correct-horse-battery"
LOOKS = "for-who-only-looks-on"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
JSON = {"Content-Type": "application/json"}
NUMBERS = itertools.count()
T0_MS = 1_700_000_000_000
"""Record n of a partition is n seconds later. Partition 0 has 10, 1 has 4, 2 none."""


@pytest.fixture(scope="module")
def coordinator() -> Iterator[Coordinator]:
    with Coordinator(topics={"orders": 3}, log_retention_ms=-1) as started:
        asyncio.run(_fill(started))
        yield started


async def _fill(coordinator: Coordinator) -> None:
    async with Producer(coordinator.bootstrap) as producer:
        for partition, count in ((0, 10), (1, 4)):
            for number in range(count):
                at_ms = T0_MS + number * 1_000
                await producer.send("orders", b"v", partition=partition, timestamp_ms=at_ms)


@dataclass
class Shown:
    """A page over the cluster of one coordinator, and a group that has committed 5 of partition 0 and 2 of
    partition 1."""

    url: str
    admin: Admin
    group: str
    noted: list[Event] = field(default_factory=list)

    async def plan(
        self, to: str, value: str = "", headers: Mapping[str, str] = BEARER, **more: str
    ) -> Answer:
        given: dict[str, Any] = {"group": self.group, "topic": "orders", "to": to, **more}
        given |= {"value": value} if value else {}
        return await ask(self.url, "/api/reset", headers=headers, **given)

    async def carry_out(self, plan: Any, headers: Mapping[str, str] = BEARER) -> Answer:
        body = plan if isinstance(plan, bytes) else json.dumps({"plan": plan}).encode()
        return await ask(self.url, "/api/reset", method="POST", headers={**JSON, **headers}, body=body)

    async def offsets(self) -> dict[int, int]:
        found = await self.admin.group_offsets(self.group)
        return {partition: one.offset for (_, partition), one in found.items()}


@asynccontextmanager
async def showing(coordinator: Coordinator, path: Path, **options: Any) -> AsyncIterator[Shown]:
    options = {"token": LOOKS, "reset_token": TOKEN, **options}
    noted: list[Event] = []
    source = Source("", path, noted.extend, admin=lambda: Admin(coordinator.bootstrap))
    async with Admin(coordinator.bootstrap) as admin, page([source], **options) as url:
        group = f"g{next(NUMBERS)}"
        await admin.set_group_offsets(group, {("orders", 0): 5, ("orders", 1): 2})
        yield Shown(url, admin, group, noted)


async def test_a_plan_is_shown_and_changes_nothing_until_it_is_sent(
    coordinator: Coordinator, recent: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with showing(coordinator, recent) as shown:
        about = await ask(shown.url, "/api/reset", headers=BEARER, group=shown.group)
        assert about.json == {"group": shown.group, "refused": None, "topics": ["orders"]}
        plan = (await shown.plan("shift-by", "4", partitions="0,1")).json
        assert [
            (one["partition"], one["committed"], one["offset"], one["skipped"], one["repeated"], one["note"])
            for one in plan["offsets"]
        ] == [(0, 5, 9, 4, 0, ""), (1, 2, 4, 2, 0, "6 is behind the end of the log")]
        assert await shown.offsets() == {0: 5, 1: 2}
        with caplog.at_level(logging.WARNING, "ringleader.insight.web"):
            done = await shown.carry_out(plan["plan"])
        assert (done.status, done.json["offsets"]) == (200, plan["offsets"])
        assert await shown.offsets() == {0: 9, 1: 4}
        line = f"principal the holder of the token of resets, from 127.0.0.1, group {shown.group}, "
        assert f"{line}orders-0 5 -> 9, orders-1 2 -> 4: done" in caplog.text
        [event] = shown.noted
        assert (event.group, event.kind) == (shown.group, EventKind.OFFSETS_RESET)
        assert event.text == (
            "From the page, by the holder of the token of resets at 127.0.0.1: "
            "orders-0 5 -> 9, orders-1 2 -> 4."
        )
        # Once, though it would be no other than then.
        await shown.admin.set_group_offsets(shown.group, {("orders", 0): 5, ("orders", 1): 2})
        again = await shown.carry_out(plan["plan"])
        assert (again.status, "There is no such plan" in again.json["error"]) == (409, True)
        assert await shown.offsets() == {0: 5, 1: 2}


@pytest.mark.parametrize(
    ("to", "value", "wanted"),
    [
        ("to-earliest", "", {0: (0, 0, 5), 1: (0, 0, 2), 2: (0, None, None)}),
        ("to-latest", "", {0: (10, 5, 0), 1: (4, 2, 0), 2: (0, None, None)}),
        ("to-offset", "3", {0: (3, 0, 2), 1: (3, 1, 0), 2: (0, None, None)}),
        ("to-datetime", "2023-11-14T22:13:26Z", {0: (6, 1, 0), 1: (4, 2, 0), 2: (0, None, None)}),
        ("by-duration", "1ms", {0: (10, 5, 0), 1: (4, 2, 0), 2: (0, None, None)}),
        ("to-current", "", {0: (5, 0, 0), 1: (2, 0, 0), 2: (0, None, None)}),
    ],
)
async def test_every_way_of_the_command(
    coordinator: Coordinator,
    recent: Path,
    to: str,
    value: str,
    wanted: dict[int, tuple[int, int | None, int | None]],
) -> None:
    async with showing(coordinator, recent) as shown:
        plan = (await shown.plan(to, value)).json
        found = {
            one["partition"]: (one["offset"], one["skipped"], one["repeated"]) for one in plan["offsets"]
        }
        assert found == wanted
        assert (await shown.carry_out(plan["plan"])).status == 200
        assert await shown.offsets() == {number: offset for number, (offset, _, _) in wanted.items()}


async def test_a_plan_that_is_stale_is_refused(coordinator: Coordinator, recent: Path) -> None:
    async with showing(coordinator, recent) as shown:
        plan = (await shown.plan("to-earliest")).json
        await shown.admin.set_group_offsets(shown.group, {("orders", 1): 3})
        refused = await shown.carry_out(plan["plan"])
        assert (refused.status, refused.json["error"]) == (
            409,
            f"Group {shown.group} has moved since the plan was made (orders-1: 2 then, 3 now): "
            "make the plan again.",
        )
        assert await shown.offsets() == {0: 5, 1: 3}
        assert shown.noted == []


async def test_a_group_with_members_is_refused(coordinator: Coordinator, recent: Path) -> None:
    async with showing(coordinator, recent) as shown:
        before = (await shown.plan("to-earliest")).json
        consumer = GroupConsumer(coordinator.bootstrap, shown.group, ["orders"], client_id="biller")
        async with consumer:
            await consumer.wait_assigned(PATIENCE_S)
            sentence = (
                f"Group {shown.group} has 1 member (biller on 127.0.0.1); stop them, then reset its offsets."
            )
            about = await ask(shown.url, "/api/reset", headers=BEARER, group=shown.group)
            assert about.json["refused"] == sentence
            now = (await shown.plan("to-earliest")).json
            assert now["refused"] == sentence
            for plan in (before["plan"], now["plan"]):
                refused = await shown.carry_out(plan)
                assert (refused.status, refused.json["error"]) == (409, sentence)
        assert (await shown.offsets())[0] == 5
        assert shown.noted == []


async def test_a_member_that_came_between_look_and_commit_is_told_by_the_cluster(
    coordinator: Coordinator, recent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def passes(*_: object) -> None:
        pass

    monkeypatch.setattr(resets, "check_fresh", passes)
    async with showing(coordinator, recent) as shown:
        plan = (await shown.plan("to-earliest")).json["plan"]
        consumer = GroupConsumer(coordinator.bootstrap, shown.group, ["orders"])
        async with consumer:
            await consumer.wait_assigned(PATIENCE_S)
            refused = await shown.carry_out(plan)
        assert (refused.status, refused.json["error"]) == (
            409,
            f"Group {shown.group} has members; stop them, then reset its offsets.",
        )


async def test_without_a_token_of_resets_nothing_is_changed_by_anybody(
    coordinator: Coordinator, recent: Path
) -> None:
    for token in (None, TOKEN):
        async with showing(coordinator, recent, token=token, reset_token=None) as shown:
            session = await ask(shown.url, "/api/session", headers=BEARER)
            assert session.json == {"resets": False, "may_reset": False}
            for answer in (
                await ask(shown.url, "/api/reset", headers=BEARER, group=shown.group),
                await shown.plan("to-earliest"),
                await shown.carry_out("x"),
            ):
                assert answer.status == 403
                assert answer.json["error"].startswith(
                    "Offsets are not reset on this page: it was started without --reset-token-file FILE"
                )


@pytest.mark.parametrize("token", [None, LOOKS])
async def test_who_only_looks_on_resets_nothing(
    coordinator: Coordinator, recent: Path, token: str | None
) -> None:
    looking = {"Authorization": f"Bearer {LOOKS}"}
    async with showing(coordinator, recent, token=token) as shown:
        plan = (await shown.plan("to-earliest")).json["plan"]
        session = await ask(shown.url, "/api/session", headers=looking)
        assert session.json == {"resets": True, "may_reset": False}
        for answer in (
            await ask(shown.url, "/api/reset", headers=looking, group=shown.group),
            await shown.plan("to-earliest", headers=looking),
            await shown.carry_out(plan, headers=looking),
        ):
            assert (answer.status, answer.json["error"]) == (
                403,
                "Offsets are reset with the token of resets; this request has another one.",
            )
        for answer in (await shown.plan("to-earliest", headers={}), await shown.carry_out(plan, headers={})):
            assert answer.status == (403 if token is None else 401)
        assert await shown.offsets() == {0: 5, 1: 2}
        session = await ask(shown.url, "/api/session", headers=BEARER)
        assert session.json == {"resets": True, "may_reset": True}


async def test_signing_in_with_either_token(coordinator: Coordinator, recent: Path) -> None:
    async with showing(coordinator, recent) as shown:
        for token, may_reset in ((LOOKS, False), (TOKEN, True)):
            signed = await ask(shown.url, "/api/session", method="POST", body=token.encode())
            cookie = {"Cookie": str(signed.headers["set-cookie"]).split(";")[0]}
            assert (await ask(shown.url, "/api/cluster", headers=cookie)).status == 200
            session = await ask(shown.url, "/api/session", headers=cookie)
            assert session.json == {"resets": True, "may_reset": may_reset}
        wrong = await ask(shown.url, "/api/session", method="POST", body=b"neither")
        assert wrong.status == 401


def test_the_token_of_resets_is_another_one_and_nobody_reads_it_on_the_way(tmp_path: Path) -> None:
    made = Certificates(tmp_path)
    check_access("127.0.0.1", None, None, TOKEN)
    check_access("0.0.0.0", LOOKS, page_tls(made.server), TOKEN)
    check_access("0.0.0.0", None, page_tls(made.server, made.authority), TOKEN)
    with pytest.raises(ValueError, match="could be read on the way: give a certificate"):
        check_access("0.0.0.0", LOOKS, None, TOKEN)
    with pytest.raises(ValueError, match="the token of resets is that of the page"):
        check_access("127.0.0.1", TOKEN, None, TOKEN)


async def test_it_is_never_done_by_get(coordinator: Coordinator, recent: Path) -> None:
    async with showing(coordinator, recent) as shown:
        plan = (await shown.plan("to-earliest")).json["plan"]
        for method in ("GET", "HEAD"):
            for more in ({"plan": plan}, {"plan": plan, "group": shown.group, "to": "to-earliest"}):
                answer = await ask(shown.url, "/api/reset", method=method, headers=BEARER, **more)
                assert answer.status == 400
        for method in ("PUT", "DELETE", "PATCH"):
            answer = await ask(shown.url, "/api/reset", method=method, headers=BEARER, body=b"{}")
            assert answer.status == 405
        assert await shown.offsets() == {0: 5, 1: 2}


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "http://[evil"}, 403),
        ({}, 403),
        ({"Origin": "http://{here}", "Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": "http://{here}", "Content-Type": "text/plain"}, 415),
        ({"Origin": "http://{here}"}, 200),
        ({"Origin": "https://{here}", "Sec-Fetch-Site": "same-origin"}, 200),
    ],
)
async def test_with_a_cookie_it_has_to_come_from_the_page_itself(
    coordinator: Coordinator, recent: Path, headers: dict[str, str], status: int
) -> None:
    async with showing(coordinator, recent) as shown:
        here = shown.url.split("/")[2]
        signed = await ask(shown.url, "/api/session", method="POST", body=TOKEN.encode())
        cookie = {"Cookie": str(signed.headers["set-cookie"]).split(";")[0]}
        assert cookie["Cookie"].startswith(COOKIE)
        plan = (await shown.plan("to-earliest", headers=cookie)).json["plan"]
        sent = {name: value.replace("{here}", here) for name, value in headers.items()}
        answer = await shown.carry_out(plan, headers={**cookie, **sent})
        assert answer.status == status
        after = {0: 0, 1: 0, 2: 0} if status == 200 else {0: 5, 1: 2}
        assert await shown.offsets() == after


async def test_a_plan_is_for_whom_it_was_made_and_for_its_time(
    coordinator: Coordinator, recent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = Certificates(tmp_path / "certificates")
    tls = page_tls(made.server, made.authority)
    ann, bob = made.client_tls(made.issued("ann")), made.client_tls(made.issued("bob"))
    async with showing(coordinator, recent, token=None, tls=tls) as shown:
        parameters: dict[str, Any] = {"group": shown.group, "topic": "orders", "to": "to-earliest"}
        parameters["headers"] = BEARER
        plan = (await ask(shown.url, "/api/reset", tls=ann, **parameters)).json["plan"]
        sent: dict[str, Any] = {
            "method": "POST", "headers": {**JSON, **BEARER}, "body": json.dumps({"plan": plan}).encode(),
        }  # fmt: skip
        assert (await ask(shown.url, "/api/reset", tls=bob, **sent)).status == 409
        assert await shown.offsets() == {0: 5, 1: 2}
        assert (await ask(shown.url, "/api/reset", tls=ann, **sent)).status == 200
        assert "by User:CN=ann,OU=unit,O=org at 127.0.0.1" in shown.noted[0].text
    monkeypatch.setattr(resets, "PLAN_S", -1.0)
    async with showing(coordinator, recent) as shown:
        plan = (await shown.plan("to-earliest")).json["plan"]
        assert (await shown.carry_out(plan)).status == 409
        assert await shown.offsets() == {0: 5, 1: 2}


async def test_the_plans_that_wait_are_bounded(
    coordinator: Coordinator, recent: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resets, "PLANS_MAX", 1)
    async with showing(coordinator, recent) as shown:
        first, second = [(await shown.plan("to-earliest")).json["plan"] for _ in range(2)]
        assert (await shown.carry_out(first)).status == 409
        assert (await shown.carry_out(second)).status == 200


@pytest.mark.parametrize(
    ("parameters", "status", "says"),
    [
        ({"to": "yesterday"}, 400, "to is one of to-earliest, to-latest, "),
        ({"to": "to-offset"}, 400, "to-offset: value is a whole number, not ''."),
        ({"to": "to-offset", "value": "-1"}, 400, "to-offset: value is a whole number"),
        ({"to": "shift-by", "value": "٣"}, 400, "shift-by: value is a whole number"),
        ({"to": "to-datetime", "value": "noon"}, 400, "to-datetime: a time is 2026-01-31T12:00:00Z"),
        ({"to": "by-duration", "value": "long"}, 400, "by-duration: a length of time is 1h"),
        ({"to": "to-earliest", "partitions": "0,"}, 400, "partitions is 0,1 for these two, not '0,'."),
        ({"to": "to-earliest", "partitions": "3"}, 409, "There is no partition 3 of topic orders"),
        ({"to": "shift-by", "value": "1"}, 409, "no committed offset to shift for orders-2"),
        ({"to": "to-earliest", "topic": "none"}, 502, "UNKNOWN_TOPIC_OR_PARTITION"),
        ({"to": "to-earliest", "how": "x"}, 400, "There is no parameter 'how' here"),
    ],
)
async def test_what_cannot_be_planned_is_a_sentence(
    coordinator: Coordinator, recent: Path, parameters: dict[str, str], status: int, says: str
) -> None:
    async with showing(coordinator, recent) as shown:
        given: dict[str, Any] = {"group": shown.group, "topic": "orders", **parameters}
        answer = await ask(shown.url, "/api/reset", headers=BEARER, **given)
        assert answer.status == status
        assert says in answer.json["error"]


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"{", 400), (b"[]", 400), (b'{"plan": 1}', 409), (b'{"do": 1}', 400), (b" " * 5000, 413)],
)
async def test_what_is_no_plan_is_refused(
    coordinator: Coordinator, recent: Path, body: bytes, status: int
) -> None:
    async with showing(coordinator, recent) as shown:
        answer = await shown.carry_out(body)
        assert (answer.status, "error" in answer.json) == (status, True)


async def test_what_the_cluster_refuses_is_said(
    coordinator: Coordinator, recent: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with showing(coordinator, recent) as shown:
        plan = (await shown.plan("to-earliest")).json["plan"]
        coordinator.faults.error("OffsetCommit", ErrorCode.GROUP_AUTHORIZATION_FAILED, times=1)
        refused = await shown.carry_out(plan)
        assert refused.status == 502
        assert "GROUP_AUTHORIZATION_FAILED" in refused.json["error"]
        assert "refused by the cluster (" in caplog.text
        assert await shown.offsets() == {0: 5, 1: 2}
        assert shown.noted == []


async def test_a_commit_without_an_answer_is_not_said_to_be_done(
    coordinator: Coordinator, recent: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resets, "TIMEOUT_S", 1.0)
    async with showing(coordinator, recent) as shown:
        plan = (await shown.plan("to-earliest")).json["plan"]
        coordinator.faults.drop("OffsetCommit", times=-1)
        open_ = await shown.carry_out(plan)
        coordinator.faults.clear()
        assert (open_.status, shown.noted) == (502, [])
        assert open_.json["error"].startswith("Whether the offsets were set is not known")
        assert "not known whether done (" in caplog.text


async def test_a_page_over_a_file_alone_resets_nothing(recent: Path) -> None:
    async with page(recent, reset_token=TOKEN) as url:
        answer = await ask(url, "/api/reset", headers=BEARER, group="orders")
    assert (answer.status, "No watcher runs" in answer.json["error"]) == (403, True)


async def test_names_cannot_forge_a_line_of_the_log(
    coordinator: Coordinator, recent: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with showing(coordinator, recent) as shown:
        shown.group = "bill\noffsets reset from the page: principal root"
        plan = (await shown.plan("to-earliest")).json["plan"]
        assert (await shown.carry_out(plan)).status == 200
        [line] = [one.getMessage() for one in caplog.records if one.name == "ringleader.insight.web"]
        assert "\n" not in line
        assert "group bill\\noffsets reset" in line
