"""Links of the pages lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.fences import PAGES

LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
WITHOUT_FENCES = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """As the usual viewers make them."""
    text = WITHOUT_FENCES.sub("", page.read_text())
    plain = (re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading) for heading in HEADING.findall(text))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    links = LINK.findall(WITHOUT_FENCES.sub("", page.read_text()))
    for link in links:
        if link.startswith(("http:", "https:")):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file) if file else page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), link


def linked(page: Path) -> set[Path]:
    links = (link.partition("#")[0] for link in LINK.findall(page.read_text()))
    return {(page.parent / link).resolve() for link in links} & set(PAGES)


def test_every_page_is_reached_from_the_front_page() -> None:
    reached, new = set[Path](), {PAGES[0]}
    while new:
        reached |= new
        new = {target for page in new for target in linked(page)} - reached
    assert [page.name for page in PAGES if page not in reached] == []
