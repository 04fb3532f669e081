"""A real Chromium before a real server. Where there is none, the tests are left out and say why."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from tests.insight.browser.served import Served
from tests.insight.browser.story import story
from tools.chromium import NoChromiumError, chromium

WIDE = (1360, 900)
SERVER_ENDED = ("ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_REFUSED", "ERR_CONNECTION_RESET")
Open = Callable[..., Page]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = str(Path(__file__).parent)
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.browser)
            item.add_marker(pytest.mark.xdist_group("browser"))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One for all tests of a module, each with a window of its own. Not for longer: it is driven by an event
    loop of this thread, and other modules' tests have theirs."""
    try:
        program = chromium()
    except NoChromiumError as error:
        pytest.skip(str(error))
    # Chromium's sandbox does not work for root, as whom tests run in containers.
    args = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=args)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The small shop, served."""
    with Served(story(tmp_path_factory.mktemp("shop") / "shop.sqlite")) as served:
        yield served


@pytest.fixture
def open_page(browser: Browser) -> Iterator[Open]:
    """Opens an address in a window; no error may have come up in any when the test ends."""
    windows, wrong = [], []

    def open_page(
        url: str, *, size: tuple[int, int] = WIDE, dark: bool = False, expected: tuple[str, ...] = ()
    ) -> Page:
        window = browser.new_context(
            viewport={"width": size[0], "height": size[1]},
            color_scheme="dark" if dark else "light",
            locale="en-GB",
            timezone_id="Europe/Berlin",
        )
        windows.append(window)
        page = window.new_page()
        page.set_default_timeout(60_000)

        def noted(text: str) -> None:
            if not any(part in text for part in (*expected, *SERVER_ENDED)):
                wrong.append(text)

        page.on("pageerror", lambda error: noted(str(error)))
        page.on("console", lambda message: noted(message.text) if message.type == "error" else None)
        page.goto(url)
        return page

    yield open_page
    for window in windows:
        window.close()
    assert not wrong
