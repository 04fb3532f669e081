"""The Chromium that the page is opened with is found, and that there is none is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.chromium import NoChromiumError, chromium


def _program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_a_named_browser_comes_before_one_on_the_path_and_that_before_a_fetched_one(
    tmp_path: Path,
) -> None:
    fetched = _program(tmp_path / "fetched" / "chromium-1" / "chrome-linux64" / "chrome")
    on_path = _program(tmp_path / "bin" / "chromium-browser")
    named = _program(tmp_path / "mine")
    nothing = {"PATH": "", "PLAYWRIGHT_BROWSERS_PATH": str(tmp_path / "fetched")}
    both = nothing | {"PATH": str(on_path.parent)}
    assert chromium(nothing) == fetched
    assert chromium(both) == on_path
    assert chromium(both | {"CHROMIUM": str(named)}) == named


def test_none_is_one_sentence_that_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(NoChromiumError, match="apt-get install chromium"):
        chromium({"PATH": "", "PLAYWRIGHT_BROWSERS_PATH": str(tmp_path)})
    with pytest.raises(NoChromiumError, match="CHROMIUM is nothing, which is no program"):
        chromium({"PATH": "", "CHROMIUM": "nothing"})
