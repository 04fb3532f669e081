"""Each view opened, clicked and walked through, as people with a mouse and people without one do."""

from __future__ import annotations

import re
import time
from itertools import combinations
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from ringleader.insight.history import Away
from ringleader.insight.model import EventKind, GroupState, Kind
from tests.insight.browser.conftest import Open
from tests.insight.browser.served import Served
from tests.insight.made import Made


def _from(page: Page) -> int:
    """Where the window of a timeline begins, as the address says it; it does so a moment after a move."""
    expect(page).to_have_url(re.compile("from="))
    found = re.search(r"from=(\d+)", page.url)
    assert found is not None
    return int(found[1])


OWNERS = """() => [...document.querySelectorAll(".block[data-owner]")].map((block) => {
  const pen = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d");
  const rgb = (colour) => {
    pen.fillStyle = colour;
    pen.fillRect(0, 0, 1, 1);
    return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const { owner, hatch } = block.dataset;
  const text = getComputedStyle(document.body).color;
  return { owner, hatch, fill: rgb(getComputedStyle(block).fill), text: rgb(text) };
})"""
DARK = {"light": False, "dark": True}
OWNERS_APART = 10
"""Of 255, in red, green or blue: less than this is the same colour to most."""


def _luminance(rgb: list[int]) -> float:
    """WCAG 2's relative luminance."""
    parts = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (one / 255 for one in rgb)]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def _contrast(one: list[int], other: list[int]) -> float:
    dark, light = sorted((_luminance(one), _luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def _open_orders(shop: Served, open_page: Open, more: str = "") -> Page:
    page = open_page(f"{shop.url}#/group/orders{more}")
    expect(page.get_by_role("heading", name="orders", level=1)).to_be_visible()
    expect(page.locator(".mark").first).to_be_visible()
    return page


def test_groups_can_be_sorted_and_filtered_and_a_click_opens_one(shop: Served, open_page: Open) -> None:
    page = open_page(shop.url)
    names = page.locator("tbody th a")
    expect(names).to_have_count(9)
    state = page.get_by_role("columnheader", name="State")
    expect(state).to_have_attribute("aria-sort", "descending")  # trouble first
    page.get_by_role("columnheader", name="Group").get_by_role("button").click()
    expect(state).not_to_have_attribute("aria-sort", "descending")
    assert names.all_text_contents() == sorted(names.all_text_contents())
    lag = page.get_by_role("columnheader", name="Lag")
    lag.get_by_role("button").click()
    expect(lag).to_have_attribute("aria-sort", "descending")
    assert "sort=lag+down" in page.url
    expect(names.last).to_have_text("reporting.nightly")  # not measured: at the end either way
    lag.get_by_role("button").click()
    expect(lag).to_have_attribute("aria-sort", "ascending")
    expect(names.last).to_have_text("reporting.nightly")
    page.get_by_role("searchbox").fill("mail")
    expect(names).to_have_count(1)
    expect(page.get_by_text("1 of 9 groups")).to_be_visible()
    page.get_by_role("searchbox").fill("nobody")
    page.get_by_role("button", name="Show all groups").click()
    expect(names).to_have_count(9)
    page.get_by_role("link", name="billing").click()
    expect(page.get_by_role("heading", name="billing", level=1)).to_be_visible()
    page.go_back()
    expect(names).to_have_count(9)


def test_a_group_has_figures_a_timeline_advice_and_its_rebalances(shop: Served, open_page: Open) -> None:
    page = _open_orders(shop, open_page)
    expect(page.locator(".figures")).to_contain_text("Without owner")
    expect(page.locator(".timeline .label", has_text="orders-0").first).to_be_visible()
    expect(page.locator(".lag-line")).to_have_count(1)
    expect(page.locator(".gap.failed").first).to_be_visible()
    expect(page.get_by_role("heading", name="Advice")).to_be_visible()
    expect(page.get_by_text("Rolling deploy without static members")).to_be_visible()
    page.get_by_role("button", name="Partitions").click()
    expect(page.locator(".timeline .label", has_text="orders:11")).to_be_visible()
    assert "lanes=partition" in page.url
    page.get_by_text("The timeline as a table").click()
    table = page.get_by_role("region", name="The timeline as a table")
    expect(table.get_by_role("cell", name="no owner: session expired").first).to_be_visible()
    page.get_by_text("Lag by partition").click()
    expect(page.get_by_role("region", name="Lag by partition").get_by_role("row")).to_have_count(19)
    table = page.get_by_role("table", name="Rebalances")
    everything = str(1 + 19)
    expect(table).to_have_attribute("aria-rowcount", everything)
    chips = page.get_by_role("group", name="Show only one cause")
    chip = chips.get_by_role("button", name="Session expired")
    chip.click()
    expect(table).to_have_attribute("aria-rowcount", "2")
    chip.click()
    expect(table).to_have_attribute("aria-rowcount", everything)


@pytest.mark.parametrize("theme", DARK)
def test_no_two_owners_share_a_colour(tmp_path: Path, open_page: Open, theme: str) -> None:
    owners = 50
    made = Made(tmp_path / "many.sqlite", start_ms=time.time_ns() // 1_000_000 - 120_000)
    made.group("many", {"many": owners}, [f"many-{one}" for one in range(owners)])
    made.wait(60)
    made.write()
    with Served(made.path) as served:
        page = open_page(f"{served.url}#/group/many?lanes=partition&minutes=15", dark=DARK[theme])
        expect(page.locator(".block[data-owner]")).to_have_count(owners)
        looks = page.evaluate(OWNERS)
    assert len({look["owner"] for look in looks}) == owners
    for one, other in combinations(looks, 2):
        apart = max(abs(a - b) for a, b in zip(one["fill"], other["fill"], strict=True))
        assert one["hatch"] != other["hatch"] or apart >= OWNERS_APART, (one, other)
    assert min(_contrast(look["fill"], look["text"]) for look in looks) >= 4.5


def test_a_link_opens_what_it_names_in_an_open_tab(shop: Served, open_page: Open) -> None:
    page = _open_orders(shop, open_page, "?minutes=10080")
    go = "address => { location.hash = address; }"
    day = page.get_by_role("button", name="24 h")
    page.evaluate(go, "#/group/orders?lanes=partition&minutes=1440")
    expect(day).to_have_attribute("aria-pressed", "true")
    expect(page.get_by_role("button", name="Partitions")).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".timeline .label", has_text="orders:11")).to_be_visible()
    page.evaluate(go, "#/group/orders?from=1700000000000&to=1700000600000")
    expect(page.get_by_text("14 Nov 2023")).to_be_visible()
    expect(page.get_by_role("button", name="Members")).to_have_attribute("aria-pressed", "true")
    page.evaluate(go, "#/group/orders")
    expect(page.get_by_role("button", name="6 h")).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".mark").first).to_be_visible()


def test_what_happened_in_a_day_is_large_enough_to_read(shop: Served, open_page: Open) -> None:
    spark = open_page(shop.url).locator(".spark").first
    expect(spark).to_be_visible()
    box = spark.bounding_box()
    assert box is not None
    assert (box["width"], box["height"]) == (144, 32)


def test_a_click_opens_a_rebalance_and_its_link_leads_back_to_it(shop: Served, open_page: Open) -> None:
    page = _open_orders(shop, open_page)
    page.get_by_role("button", name="Session expired").click()
    row = page.get_by_role("row").filter(has_text="Session expired")
    row.get_by_role("link").click()
    drawer = page.get_by_role("dialog")
    expect(drawer.get_by_role("heading", name="Session expired")).to_be_visible()
    for text in ("Certain: what was seen", "its session timeout is 45.0 s", "What moved", "silent for 45 s"):
        expect(drawer).to_contain_text(text)
    expect(drawer.locator(".phases i")).to_have_count(2)
    expect(drawer).to_be_focused()
    link = page.url
    assert "rebalance=" in link
    page.keyboard.press("Escape")
    expect(drawer).to_have_count(0)
    expect(row.get_by_role("link")).to_be_focused()
    assert "rebalance=" not in page.url
    again = open_page(link)
    expect(again.get_by_role("dialog").get_by_role("heading", name="Session expired")).to_be_visible()
    again.get_by_role("dialog").get_by_role("button", name="Next").click()
    expect(again.get_by_role("dialog").get_by_role("heading", name="Member joined")).to_be_visible()
    again.get_by_role("link", name="Link to this one").click()
    expect(again.get_by_role("dialog").get_by_role("heading", name="Member joined")).to_be_visible()
    again.get_by_role("button", name="Close").click()
    expect(again.get_by_role("dialog")).to_have_count(0)


def test_the_timeline_is_moved_and_zoomed_and_a_mark_opens(shop: Served, open_page: Open) -> None:
    page = _open_orders(shop, open_page)
    box = page.locator(".lanes .plot").bounding_box()
    assert box is not None
    middle, top = box["x"] + box["width"] / 2, box["y"] + 20
    page.mouse.move(middle, top)
    page.keyboard.down("Control")
    page.mouse.wheel(0, -400)
    page.keyboard.up("Control")
    zoomed = _from(page)
    page.mouse.down()
    page.mouse.move(middle + 200, top, steps=4)
    page.mouse.up()
    expect(page).not_to_have_url(re.compile(f"from={zoomed}"))
    dragged = _from(page)
    assert dragged < zoomed
    page.get_by_role("button", name="24 h").click()
    expect(page).to_have_url(re.compile("minutes=1440"))
    page.get_by_role("button", name="6 h").click()
    expect(page).not_to_have_url(re.compile("minutes"))
    mark = page.locator(".mark.slow").first.bounding_box()
    assert mark is not None
    page.mouse.click(mark["x"] + mark["width"] / 2, mark["y"] + mark["height"] / 2)
    expect(page.get_by_role("dialog").get_by_role("heading", name="Poll interval exceeded")).to_be_visible()


def test_everything_is_reached_without_a_mouse(shop: Served, open_page: Open) -> None:
    page = open_page(shop.url)
    expect(page.locator("tbody th a")).to_have_count(9)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("main")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_role("searchbox")).to_be_focused()
    page.keyboard.type("or")
    first = page.locator("tbody th a").first
    while not first.evaluate("element => element === document.activeElement"):
        page.keyboard.press("Tab")
    orders = page.get_by_role("link", name="orders", exact=True)
    while not orders.evaluate("element => element === document.activeElement"):
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="orders", level=1)).to_be_visible()
    expect(page.locator(".mark").first).to_be_visible()
    timeline = page.locator(".surface")
    while not timeline.evaluate("element => element === document.activeElement"):
        page.keyboard.press("Tab")
    page.keyboard.press("+")
    narrow = _from(page)
    page.keyboard.press("ArrowLeft")
    expect(page).not_to_have_url(re.compile(f"from={narrow}"))
    page.keyboard.press("p")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_focused()
    page.keyboard.press("Escape")
    expect(timeline).to_be_focused()


def test_the_owner_of_a_partition_can_be_asked_for_and_has_a_link(shop: Served, open_page: Open) -> None:
    page = open_page(f"{shop.url}#/owners")
    expect(page.get_by_text("Ask for a partition and a time")).to_be_visible()
    page.get_by_label("Topic").fill("orders")
    page.get_by_label("Partition").fill("3")
    page.get_by_role("button", name="Who owned it?").click()
    expect(page.locator(".answer")).to_have_count(2)
    expect(page.locator(".answer").last).to_contain_text("Committed then: offset")
    again = open_page(page.url)
    expect(again.locator(".answer")).to_have_count(2)
    again.get_by_label("Topic").fill("nothing")
    again.get_by_role("button", name="Who owned it?").click()
    expect(again.get_by_text("Nobody owned nothing:3")).to_be_visible()


def test_events_are_seen_while_they_happen(tmp_path: Path, open_page: Open) -> None:
    made = Made(tmp_path / "live.sqlite", start_ms=time.time_ns() // 1_000_000 - 120_000)
    payments = made.group("payments", {"payments": 6}, ["pay-0", "pay-1"])
    made.write()
    with Served(made.path) as served:
        groups = open_page(served.url)
        group = open_page(f"{served.url}#/group/payments")
        activity = open_page(f"{served.url}#/activity")
        for page in (groups, group, activity):
            expect(page.locator("#live-text")).to_have_text("Live")
        row = groups.get_by_role("row").filter(has_text="payments")
        expect(row).to_contain_text("Member joined")
        payments.crash("pay-1")
        made.write()
        expect(row).to_contain_text("Session expired")
        expect(group.get_by_role("table", name="Rebalances")).to_contain_text("Session expired")
        expect(group.locator(".mark.failed")).to_have_count(1)
        expect(activity.get_by_role("table", name="Rebalances")).to_contain_text("Session expired")
        made.group("shipping", {"shipments": 3}, ["ship-0"])
        made.write()
        expect(groups.get_by_role("link", name="shipping")).to_be_visible()


def test_a_cluster_that_is_away_is_not_live(tmp_path: Path, open_page: Open) -> None:
    made = Made(tmp_path / "away.sqlite", start_ms=time.time_ns() // 1_000_000 - 120_000)
    made.group("payments", {"payments": 6}, ["pay-0"])
    made.write()
    with Served(made.path) as served:
        page = open_page(served.url)
        expect(page.locator("#live-text")).to_have_text("Live")
        expect(page.get_by_role("alert")).to_be_hidden()
        made.answers(Away(1_700_000_000_000, "connection refused"))
        for one in (page, open_page(f"{served.url}#/group/payments", size=(390, 800))):
            expect(one.locator("#live-text")).to_have_text("Cluster away")
            expect(one.get_by_role("alert")).to_contain_text("has not answered since 14 Nov 2023")
        made.answers()
        expect(page.locator("#live-text")).to_have_text("Live")
        expect(page.get_by_role("alert")).to_be_hidden()


def test_a_group_that_never_rebalanced_says_in_how_long(tmp_path: Path, open_page: Open) -> None:
    now_ms = time.time_ns() // 1_000_000
    made = Made(tmp_path / "quiet.sqlite", start_ms=now_ms - 30 * 3_600_000)
    made.event(EventKind.TOPIC_CREATED, "orders was created.")
    made.add(GroupState("quiet", Kind.CLASSIC, "Stable", 1, "consumer", "range", "", (), now_ms - 60_000))
    made.write()
    with Served(made.path) as served:
        page = open_page(served.url)
        expect(page.get_by_role("row").filter(has_text="quiet")).to_contain_text(
            re.compile(r"none in (30 h|1 d)")
        )
        page.get_by_role("link", name="quiet", exact=True).click()
        expect(page.get_by_text("has not rebalanced while it was watched, since ")).to_be_visible()


def test_deploys_are_listed_with_their_cost(tmp_path: Path, open_page: Open) -> None:
    made = Made(tmp_path / "rolled.sqlite", start_ms=time.time_ns() // 1_000_000 - 3_600_000, exact=True)
    group = made.group("orders", {"orders": 12}, ["app-1", "app-2", "app-3"])
    made.wait(300)
    group.deploy(pause_s=20)
    made.wait(900)
    made.event(EventKind.DEPLOY_BEGAN, "v2", "orders")
    group.restart("app-1")
    made.event(EventKind.DEPLOY_ENDED, "", "orders")
    made.wait(60)
    made.write()
    with Served(made.path) as served:
        page = open_page(f"{served.url}#/group/orders")
        shown = page.locator("section").filter(has=page.get_by_role("heading", name="Deploys"))
        expect(shown.get_by_role("listitem")).to_have_count(2)
        expect(shown.get_by_role("listitem").first).to_contain_text(re.compile("Marked.*v2: 1 rebalance, "))
        expect(shown.get_by_role("listitem").last).to_contain_text(
            re.compile("Recognised by replaced members.*3 rebalances, ")
        )


def test_principals_of_members_and_refusals_are_shown(tmp_path: Path, open_page: Open) -> None:
    made = Made(tmp_path / "exact.sqlite", start_ms=time.time_ns() // 1_000_000 - 120_000, exact=True)
    payments = made.group("payments", {"payments": 6}, ["pay-0", "pay-1"])
    lost = payments.crash("pay-1")
    refused = "c@10.0.0.3 (User:mallory) was refused to join: GROUP_AUTHORIZATION_FAILED."
    made.event(EventKind.JOIN_REFUSED, refused, "payments")
    made.write()
    with Served(made.path) as served:
        drawer = open_page(f"{served.url}#/group/payments?rebalance={lost.id}").get_by_role("dialog")
        for section in ("Who went", "Members after it"):
            expect(drawer.locator("section").filter(has_text=section)).to_contain_text("User:app")
        expect(open_page(f"{served.url}#/activity").get_by_text(refused)).to_be_visible()


def test_an_empty_history_says_what_to_do(tmp_path: Path, open_page: Open) -> None:
    with Made(tmp_path / "empty.sqlite") as made:
        pass
    with Served(made.path) as served:
        page = open_page(served.url)
        expect(page.get_by_text("No group has been seen yet")).to_be_visible()
        expect(page.get_by_text("ringleader watch --from-start")).to_be_visible()
        page.get_by_role("link", name="Activity").click()
        expect(page.get_by_text("Nothing rebalanced yet")).to_be_visible()
        missing = open_page(f"{served.url}#/group/nobody", expected=("404",))
        expect(missing.get_by_text("No group “nobody” was seen")).to_be_visible()


def test_the_token_is_asked_for_once(shop: Served, open_page: Open) -> None:
    with Served(shop.path, token="correct-horse-battery") as served:
        page = open_page(served.url, expected=("401",))
        field = page.get_by_label("Token")
        field.fill("guess")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_have_text("That is not the token.")
        field.fill("correct-horse-battery")
        page.keyboard.press("Enter")
        expect(page.locator("tbody th a")).to_have_count(9)
        expect(page.locator("#live-text")).to_have_text("Live")
        page.reload()
        expect(page.locator("tbody th a")).to_have_count(9)


def test_colours_and_clock_are_remembered(shop: Served, open_page: Open) -> None:
    page = open_page(f"{shop.url}#/owners", dark=True)
    root = page.locator("html")
    expect(root).to_have_attribute("data-theme", "dark")
    page.get_by_role("button", name="Light").click()
    expect(root).to_have_attribute("data-theme", "light")
    page.get_by_role("button", name="UTC").click()
    expect(page.get_by_label("Time (UTC)")).to_be_visible()
    page.reload()
    expect(root).to_have_attribute("data-theme", "light")
    expect(page.get_by_label("Time (UTC)")).to_be_visible()


def test_one_chooses_among_several_clusters(tmp_path: Path, open_page: Open) -> None:
    now_ms = time.time_ns() // 1_000_000
    files = {}
    for name, group in (("prod", "payments"), ("eu/test & more", "audit")):
        made = Made(tmp_path / f"{group}.sqlite", start_ms=now_ms - 120_000)
        made.group(group, {"orders": 6}, [f"{group}-0"])
        made.write()
        files[name] = made
    with Served({name: made.path for name, made in files.items()}) as served:
        page = open_page(served.url)
        expect(page.get_by_role("heading", name="Clusters")).to_be_visible()
        expect(page.locator("tbody th a")).to_have_text(["prod", "eu/test & more"])
        expect(page.get_by_role("link", name="Activity")).to_be_hidden()
        page.get_by_role("link", name="eu/test & more").click()
        expect(page.locator("tbody th a")).to_have_text("audit")
        expect(page.locator("#live-text")).to_have_text("Live")
        page.get_by_role("link", name="audit", exact=True).click()
        expect(page.get_by_role("heading", name="audit", level=1)).to_be_visible()
        expect(page.locator(".mark").first).to_be_visible()
        expect(page).to_have_url(re.compile(r"cluster=eu%2Ftest\+%26\+more"))
        page.get_by_role("link", name="Activity").click()
        expect(page.get_by_role("row").filter(has_text="audit").first).to_be_visible()
        page.get_by_label("Cluster").select_option("prod")
        expect(page.locator("tbody th a")).to_have_text("payments")
        # Changes of this cluster are shown at once, those of another are not.
        files["eu/test & more"].answers(Away(1_700_000_000_000, "connection refused"))
        expect(page.get_by_label("Cluster").get_by_text("eu/test & more (away)")).to_be_attached()
        expect(page.locator("#live-text")).to_have_text("Live")
        files["prod"].groups["payments"].join("payments-9")
        files["prod"].write()
        expect(page.get_by_role("row").filter(has_text="payments")).to_contain_text("2")
        page.get_by_label("Cluster").select_option("All clusters")
        expect(page.get_by_role("row").filter(has_text="eu/test")).to_contain_text("since 14 Nov 2023")
        page.get_by_role("link", name="eu/test & more").click()
        expect(page.get_by_role("alert")).to_contain_text("has not answered since 14 Nov 2023")
        page.close()  # before its server goes
