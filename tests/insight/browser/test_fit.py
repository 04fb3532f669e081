"""Fit for screen readers, for small screens, and for a long history."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from ringleader.insight.history import Away
from tests.insight.browser.conftest import WIDE, Open
from tests.insight.browser.served import Served
from tests.insight.made import Made, big

NARROW = (400, 800)
VIEWS = {
    "groups": "#/",
    "group": "#/group/orders",
    "partitions": "#/group/orders?lanes=partition",
    "activity": "#/activity",
    "owners": "#/owners?topic=orders&partition=3",
}
BEYOND_THE_EDGE = """() => [...document.querySelectorAll("main *")]
  .filter((one) => !one.closest(".scroll-x, svg, .visually-hidden"))
  .filter((one) => one.getBoundingClientRect().right > innerWidth + 1)
  .map((one) => one.outerHTML.slice(0, 120))"""
CUT = """() => [...document.querySelectorAll(".virtual :is(.cause > span, .second, th > a, th > button)")]
  .filter((one) => one.checkVisibility())
  .filter((one) => one.scrollWidth > one.clientWidth + 1 || one.scrollHeight > one.clientHeight + 3)
  .map((one) => one.textContent)"""
ROW_HEIGHTS = """() => [...new Set([...document.querySelectorAll("tbody tr:not(.space)")]
  .map((one) => Math.round(one.getBoundingClientRect().height)))]"""
LONG_TASKS = """() => {
  window.longest = 0;
  new PerformanceObserver((list) => {
    for (const task of list.getEntries()) window.longest = Math.max(window.longest, task.duration);
  }).observe({ type: "longtask", buffered: false });
}"""


def serious(page: Page) -> list[tuple[str, str, list[str]]]:
    """The serious findings of axe."""
    return [
        (one["id"], one["impact"], [node["html"][:200] for node in one["nodes"][:3]])
        for one in Axe().run(page).response["violations"]
        if one["impact"] in ("serious", "critical")
    ]


def _shown(page: Page, view: str) -> None:
    """Until what the view is about is there."""
    if view in ("group", "partitions"):
        expect(page.locator(".mark").first).to_be_visible()
        expect(page.get_by_role("heading", name="Advice")).to_be_visible()
    elif view == "owners":
        expect(page.locator(".answer").first).to_be_visible()
    else:
        expect(page.locator("tbody th a").first).to_be_visible()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("view", VIEWS)
def test_axe_finds_nothing_serious(shop: Served, open_page: Open, view: str, dark: bool) -> None:
    page = open_page(f"{shop.url}{VIEWS[view]}", dark=dark)
    _shown(page, view)
    if view == "group":
        page.get_by_text("The timeline as a table").click()
        page.get_by_role("button", name="Session expired").click()
        page.get_by_role("row").filter(has_text="Session expired").get_by_role("link").click()
        expect(page.get_by_role("dialog").get_by_role("heading", name="Session expired")).to_be_visible()
    # An element that is sticky or fades in has its colours when it rests.
    assert not serious(page)


@pytest.mark.parametrize("view", VIEWS)
def test_nothing_is_cut_off_on_a_small_screen(shop: Served, open_page: Open, view: str) -> None:
    page = open_page(f"{shop.url}{VIEWS[view]}", size=NARROW)
    _shown(page, view)
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]
    wide = page.evaluate(BEYOND_THE_EDGE)
    assert not wide


@pytest.fixture(scope="module")
def clusters(shop: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One that answers, one with a long name that does not, and one of which nothing is known."""
    path = tmp_path_factory.mktemp("clusters")
    away = Made(path / "away.sqlite")
    away.group("audit", {"orders": 6}, ["audit-0"])
    away.write()
    away.answers(Away(1_700_000_000_000, "connection refused by every broker that was asked"))
    files = {"prod": shop.path, "eu-central-1/staging & tests of the shop": away.path, "new": path / "none"}
    with Served(files) as served:
        yield served


def _clusters_shown(page: Page) -> None:
    expect(page.locator("tbody th a")).to_have_count(3)
    expect(page.get_by_text("Away", exact=True)).to_be_visible()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_serious_in_the_view_of_clusters(
    clusters: Served, open_page: Open, dark: bool
) -> None:
    page = open_page(clusters.url, dark=dark)
    _clusters_shown(page)
    assert not serious(page)


def test_no_cluster_is_cut_off_on_a_small_screen(clusters: Served, open_page: Open) -> None:
    page = open_page(clusters.url, size=NARROW)
    _clusters_shown(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW[0]
    wide = page.evaluate(BEYOND_THE_EDGE)
    assert not wide


CAUSES_WRAP = ("Downgraded to the classic protocol", "Cooperative rebalance went on", "Member restarted")


@pytest.mark.parametrize("view", ["groups", "activity"])
def test_causes_and_titles_are_read_whole_at_390_px(shop: Served, open_page: Open, view: str) -> None:
    page = open_page(f"{shop.url}{VIEWS[view]}", size=(390, 844))
    _shown(page, view)
    causes = page.locator("tbody .cause > span").all()
    for cause, text in zip(causes, CAUSES_WRAP, strict=False):
        cause.evaluate("(span, text) => { span.textContent = text; }", text)
    assert not page.evaluate(CUT)
    assert len(page.evaluate(ROW_HEIGHTS)) == 1


def test_ten_thousand_rebalances_of_two_hundred_groups_scroll(tmp_path: Path, open_page: Open) -> None:
    groups = 200
    history = big(tmp_path / "big.sqlite", groups=groups, rebalances=10_000)
    with Served(history) as served:
        page = open_page(served.url, size=WIDE)
        expect(page.get_by_text(f"{groups} groups")).to_be_visible()
        page.evaluate(LONG_TASKS)
        _scroll_through(page, 20)
        longest_ms = {"200 groups": page.evaluate("longest")}
        assert page.locator("tbody tr").count() < 80
        page.get_by_role("link", name="Activity").click()
        expect(page.locator("tbody th a").first).to_be_visible()
        page.evaluate("longest = 0")
        while "older" in (page.locator(".head [role=status]").text_content() or ""):
            page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
            page.wait_for_timeout(20)
        expect(page.get_by_text("10,000 rebalances")).to_be_visible()
        longest_ms["10,000 rebalances, read page by page"] = page.evaluate("longest")
        page.evaluate("longest = 0")
        page.evaluate("scrollTo(0, 0)")
        _scroll_through(page, 100)
        longest_ms["10,000 rebalances, scrolled through"] = page.evaluate("longest")
        assert page.locator("tbody tr").count() < 80
    print("\nlongest task while scrolling, ms:", longest_ms)
    assert all(longest < 1_000 for longest in longest_ms.values()), longest_ms


def _scroll_through(page: Page, steps: int) -> None:
    page.evaluate(
        """async (steps) => {
          const end = document.documentElement.scrollHeight - innerHeight;
          for (let step = 1; step <= steps; step++) {
            scrollTo(0, (end * step) / steps);
            await new Promise(requestAnimationFrame);
          }
        }""",
        steps,
    )
    expect(page.locator("tbody th a").last).to_be_in_viewport()
