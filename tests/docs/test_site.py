"""The documentation site: every page has a place in it, and it is built without a broken link.

It is built where the extra `site` is installed, as `make` does; else the menu is compared with the files, and
the tests that need the built site are left out with a sentence.
"""

from __future__ import annotations

import html.parser
import importlib.util
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import ringleader
from tests.docs.fences import ROOT
from tools.site import BESIDE, DOCS, api_pages, for_the_site, outside_links

CONFIG: dict[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text())


def in_menu(menu: object) -> Iterator[str]:
    """The pages of the navigation, in order."""
    if isinstance(menu, str):
        yield menu
    elif isinstance(menu, dict):
        for below in menu.values():
            yield from in_menu(below)
    elif isinstance(menu, list):
        for one in menu:
            yield from in_menu(one)


def test_the_menu_has_every_page_once() -> None:
    menu = list(in_menu(CONFIG["nav"]))
    pages = {page.name for page in DOCS.glob("*.md")} | set(BESIDE) | {path for path, _ in api_pages()}
    assert sorted(menu) == sorted(pages)


def test_the_reference_has_every_public_name() -> None:
    text = "".join(page for _, page in api_pages())
    named = {name.rpartition(".")[2] for name in re.findall(r"^::: (\S+)$", text, re.MULTILINE)}
    assert set(ringleader.__all__) <= named
    assert {"Coordinator", "Faults", "Assignor", "lag_aware"} <= named


def test_a_page_has_no_comments_of_tests_and_no_way_out_of_the_site() -> None:
    text = (
        "<!-- runs: until shown -->\n```sh\nls\n```\n[a](../deploy/x.yaml) [b](../SECURITY.md#c) [d](e.md)\n"
    )
    made = "```sh\nls\n```\n[a](deploy/x.yaml) [b](SECURITY.md#c) [d](e.md)\n"
    assert for_the_site(text) == made
    assert {"SECURITY.md", "deploy/kubernetes.yaml"} <= outside_links()


class Text(html.parser.HTMLParser):
    """The words of a built page that are no code, and its links."""

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.loaded: list[str] = []
        self._code = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Code counts, and what a browser loads by itself is kept."""
        self._code += tag in ("code", "pre", "script", "style")
        if tag == "td":
            self.words.append("cell: ")  # its text may begin with a number, and is no list
        given = dict(attrs)
        if tag in ("script", "img", "iframe") and given.get("src"):
            self.loaded.append(str(given["src"]))
        if tag == "link" and given.get("rel") in ("stylesheet", "preconnect", "icon"):
            self.loaded.append(str(given["href"]))

    def handle_endtag(self, tag: str) -> None:
        """Code ends."""
        self._code -= tag in ("code", "pre", "script", "style")

    def handle_data(self, data: str) -> None:
        """Words."""
        if not self._code:
            self.words.append(data)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, or the test is left out with a sentence."""
    if importlib.util.find_spec("mkdocs") is None or importlib.util.find_spec("mkdocstrings") is None:
        pytest.skip("the site is not built here: the extra `site` is not installed")
    made = tmp_path_factory.mktemp("site") / "site"
    done = subprocess.run(
        [sys.executable, "-m", "tools.site", "--site-dir", str(made)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return made


@pytest.mark.timeout(600)
@pytest.mark.xdist_group("site")
def test_the_site_is_built_strictly(built: Path) -> None:
    for page in in_menu(CONFIG["nav"]):
        assert (built / page).with_suffix(".html").exists()
    assert '"location":"consumer.html' in (built / "search/search_index.json").read_text().replace(
        '": "', '":"'
    )
    reference = (built / "api/consumers.html").read_text()
    assert 'id="ringleader.clients.consumer.GroupConsumer"' in reference
    assert "commit_nowait" in reference
    assert (built / "examples/sharded_job.py").exists()


@pytest.mark.timeout(600)
@pytest.mark.xdist_group("site")
def test_a_page_is_laid_out_and_loads_nothing_from_elsewhere(built: Path) -> None:
    for file in sorted(built.rglob("*.html")):
        page = Text()
        page.feed(file.read_text())
        text = "".join(page.words)
        # A piece that Markdown did not understand stands there as it was written.
        left = re.findall(r"^(?:- |\d\. |\| )(?!.*¶$).*|\]\(|\*\*\w.*|<!-- runs", text, re.MULTILINE)
        assert not left, f"{file.name}: {left[:3]}"
        assert not [one for one in page.loaded if one.startswith(("http", "//"))], file.name


@pytest.mark.timeout(600)
@pytest.mark.xdist_group("site")
def test_a_broken_link_fails_the_build(built: Path, tmp_path: Path) -> None:
    assert built.exists()
    copy = tmp_path / "docs"
    copy.mkdir()
    (copy / "index.md").write_text("# A\n\n[b](b.md)\n")
    config = tmp_path / "mkdocs.yml"
    config.write_text(yaml.safe_dump({"site_name": "A", "strict": True, "validation": CONFIG["validation"]}))
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(config)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "b.md" in done.stderr
