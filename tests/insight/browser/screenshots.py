"""``python -m tests.insight.browser.screenshots`` makes the docs' pictures: the small shop, in Chromium."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.insight.browser.served import Served
from tests.insight.browser.story import story
from tools.chromium import chromium

IMAGES = Path(__file__).resolve().parents[3] / "docs" / "images"


class Picture(NamedTuple):
    """One file."""

    name: str
    view: str
    size: tuple[int, int]
    dark: bool = False
    cause: str = ""
    """The rebalance that is open."""


PICTURES = (
    Picture("insight-groups", "#/", (1280, 640)),
    Picture("insight-group", "#/group/orders", (1280, 1000)),
    Picture("insight-partitions-dark", "#/group/orders?lanes=partition", (1280, 900), dark=True),
    Picture("insight-rebalance", "#/group/orders", (1280, 860), cause="Session expired"),
    Picture("insight-activity-dark", "#/activity", (1280, 720), dark=True),
    Picture("insight-owners", "#/owners?topic=orders&partition=3", (1280, 560)),
    Picture("insight-groups-narrow", "#/", (400, 760), dark=True),
    Picture("insight-group-narrow", "#/group/orders", (400, 860)),
)


def take(browser: Browser, url: str, picture: Picture, directory: Path) -> Path:
    """The file that it was written to."""
    window = browser.new_context(
        viewport={"width": picture.size[0], "height": picture.size[1]},
        color_scheme="dark" if picture.dark else "light",
        locale="en-GB",
        timezone_id="Europe/Berlin",
        reduced_motion="reduce",
    )
    page = window.new_page()
    page.set_default_timeout(60_000)
    page.goto(url + picture.view)
    _settle(page, picture)
    file = directory / f"{picture.name}.png"
    page.screenshot(path=file)
    window.close()
    return file


def _settle(page: Page, picture: Picture) -> None:
    expect(page.locator("#live-text")).to_have_text("Live")
    if "group/" in picture.view:
        expect(page.locator(".mark").first).to_be_visible()
        expect(page.get_by_role("heading", name="Advice")).to_be_visible()
    elif "owners" in picture.view:
        expect(page.locator(".answer").first).to_be_visible()
    else:
        expect(page.locator("tbody th a").first).to_be_visible()
    if picture.cause:
        page.get_by_role("button", name=picture.cause).click()
        page.get_by_role("row").filter(has_text=picture.cause).get_by_role("link").click()
        expect(page.get_by_role("dialog").get_by_role("heading", name=picture.cause)).to_be_visible()
        page.evaluate("scrollTo(0, 0)")


def main() -> int:
    """Write them all, or those that are named."""
    wanted = set(sys.argv[1:])
    IMAGES.mkdir(parents=True, exist_ok=True)
    args = ["--no-sandbox"] if os.geteuid() == 0 else []
    with (
        tempfile.TemporaryDirectory() as made,
        Served(story(Path(made) / "shop.sqlite")) as served,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium(), args=args)
        for picture in PICTURES:
            if not wanted or picture.name in wanted:
                print(take(browser, served.url, picture, IMAGES))
        browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
