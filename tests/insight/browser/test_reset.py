"""Offsets are reset from a group's view: the plan first, then the button."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from ringleader.clients.admin import Admin
from ringleader.testing.coordinator import Coordinator
from tests.insight.browser.conftest import WIDE, Open
from tests.insight.browser.served import Served
from tests.insight.browser.test_fit import BEYOND_THE_EDGE, NARROW, serious
from tests.insight.made import Made

TOKEN = "correct-horse-battery"
RESETS = "battery-horse-correct"
ORDERS = ("orders", 0), ("orders", 1)


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a group that has no members now."""
    path = tmp_path_factory.mktemp("reset") / "reset.sqlite"
    with Made(path) as made:
        made.group("orders", {"orders": 2}, ["orders-0"]).leave("orders-0")
    return path


@pytest.fixture(scope="module")
def coordinator() -> Iterator[Coordinator]:
    with Coordinator(topics={"orders": 2}) as started:
        for number in range(10):
            started.produce("orders", b"v", partition=number % 2)
        yield started


def _commit(coordinator: Coordinator, offset: int) -> None:
    async def commit() -> None:
        async with Admin(coordinator.bootstrap) as admin:
            await admin.set_group_offsets("orders", dict.fromkeys(ORDERS, offset))

    coordinator.run(commit())


def _opened(url: str, open_page: Open, size: tuple[int, int] = WIDE) -> Page:
    """The page of who may look; then of who may reset."""
    page = open_page(f"{url}#/group/orders", size=size, expected=("401", "403", "409"))
    _sign_in(page, TOKEN)
    expect(page.locator("#live-text")).to_have_text("Live")  # it reads all again after the login
    page.get_by_text("Reset offsets").click()
    page.get_by_role("button", name="Sign in to reset offsets").click()
    _sign_in(page, RESETS)
    return page


def _sign_in(page: Page, token: str) -> None:
    page.get_by_label("Token").fill(token)
    page.keyboard.press("Enter")


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_a_plan_is_shown_and_set(
    coordinator: Coordinator, history: Path, open_page: Open, size: tuple[int, int]
) -> None:
    _commit(coordinator, 3)
    with Served(history, TOKEN, coordinator.bootstrap, RESETS) as served:
        page = _opened(served.url, open_page, size)
        expect(page.get_by_label("Topic")).to_have_value("orders")
        page.get_by_label("Where to", exact=True).select_option("A number of records on or back")
        page.get_by_label("How many; back with a minus").fill("-2")
        page.get_by_role("button", name="Show the plan").click()
        table = page.get_by_role("table", name="Offsets")
        expect(table.get_by_role("row").nth(1)).to_contain_text("orders:0")
        expect(table.get_by_role("row").nth(1).get_by_role("cell")).to_have_text(["3", "1", "0", "2", ""])
        expect(page.get_by_text("0 records would be skipped, 4 records read again.")).to_be_visible()
        assert not serious(page)
        if size == NARROW:
            assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]
            assert not page.evaluate(BEYOND_THE_EDGE)
        assert coordinator.committed("orders") == dict.fromkeys(ORDERS, 3)
        page.get_by_role("button", name="Set 2 offsets").click()
        expect(page.locator(".reset").get_by_text("2 offsets of orders are set.")).to_be_visible()
        assert coordinator.committed("orders") == dict.fromkeys(ORDERS, 1)


def test_a_plan_that_is_stale_says_so(coordinator: Coordinator, history: Path, open_page: Open) -> None:
    _commit(coordinator, 3)
    with Served(history, TOKEN, coordinator.bootstrap, RESETS) as served:
        page = _opened(served.url, open_page)
        page.get_by_role("button", name="Show the plan").click()
        button = page.get_by_role("button", name="Set 2 offsets")
        expect(button).to_be_enabled()
        _commit(coordinator, 4)
        button.click()
        expect(page.locator(".reset").get_by_role("alert")).to_contain_text(
            "has moved since the plan was made"
        )
        assert coordinator.committed("orders") == dict.fromkeys(ORDERS, 4)


def test_without_a_token_of_resets_it_is_not_offered(
    coordinator: Coordinator, history: Path, open_page: Open
) -> None:
    with Served(history, bootstrap=coordinator.bootstrap) as served:
        page = open_page(f"{served.url}#/group/orders")
        expect(page.locator("#live-text")).to_have_text("Live")
        page.wait_for_load_state("networkidle")
        expect(page.get_by_text("Reset offsets")).to_be_hidden()


def test_who_only_looks_on_is_asked_for_the_token_of_resets(
    coordinator: Coordinator, history: Path, open_page: Open
) -> None:
    with Served(history, bootstrap=coordinator.bootstrap, reset_token=RESETS) as served:
        page = open_page(f"{served.url}#/group/orders", expected=("401",))
        page.get_by_text("Reset offsets").click()
        page.get_by_role("button", name="Sign in to reset offsets").click()
        assert not serious(page)
        _sign_in(page, TOKEN)
        expect(page.get_by_role("dialog").get_by_role("alert")).to_have_text("That is not the token.")
        page.get_by_role("button", name="Cancel").click()
        expect(page.get_by_role("dialog")).to_have_count(0)
        expect(page.get_by_role("button", name="Show the plan")).to_have_count(0)
