"""Prints the Chromium that the tests of the page drive: ``$CHROMIUM``, else one on the path, else one that
playwright has fetched. It fetches none: PyPI has none, and that of npm ends when a text needs a second font.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ADVICE = (
    "install one (Debian: apt-get install chromium; elsewhere: python -m playwright install chromium), "
    "or set CHROMIUM to one"
)


class NoChromiumError(Exception):
    """There is no Chromium; the text says what to do."""


def chromium(environ: Mapping[str, str] | None = None) -> Path:
    """The one to drive. Raises NoChromiumError."""
    environ = os.environ if environ is None else environ
    path = environ.get("PATH", "")
    named = environ.get("CHROMIUM")
    if named:
        found = shutil.which(named, path=path)
        if found is None:
            raise NoChromiumError(f"CHROMIUM is {named}, which is no program: {ADVICE}")
        return Path(found)
    for name in NAMES:
        found = shutil.which(name, path=path)
        if found is not None:
            return Path(found)
    home = Path(environ.get("PLAYWRIGHT_BROWSERS_PATH") or Path.home() / ".cache" / "ms-playwright")
    fetched = sorted(home.glob("chromium-*/chrome-linux*/chrome"))
    if not fetched:
        raise NoChromiumError(f"There is no Chromium to open the page with: {ADVICE}")
    return fetched[-1]


def main() -> int:
    """Print it; exit code 1 and one sentence when there is none."""
    try:
        print(chromium())
    except NoChromiumError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
